//! `comove report`: the HTML page and the index of stages, from what the stages have left.
//!
//! | module | what it holds |
//! |---|---|
//! | [`state`] | progress of the campaign, failures, the command that continues it |
//! | [`head`] | cosmology, box, levels, species, resolution and units of the runs |
//! | [`index`] | `index.json`: stages, their state and files |
//! | [`provenance`] | what made the results, and the digests of all they rest on |

mod head;
mod index;
mod provenance;
mod state;

use super::{print, stored};
use crate::campaign::CampaignResolver;
use crate::error::PipelineError;
use crate::ledger::{History, Ledger, history};
use crate::recipe::Recipe;
use crate::stage::StageResult;
use crate::stage::evolve::so_far::so_far;
use crate::stage::section::{self, Section};
use crate::storage::files;
use crate::storage::folder::CampaignFolder;
use crate::storage::lock::Lock;
use crate::terminal::progress::Progress;
use comove_analysis::Table;
use comove_analysis::report::{self, Image, Report};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes the report of the campaign in a folder.
pub(super) fn report(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    let (recipe, _) = stored(&folder)?;
    // in this order what the last process has written last is seen
    let holder = Lock::holder(folder.path());
    let (history, _) = history::read(&folder.ledger())?;
    let page = write(&recipe, &folder, &history, holder, &Progress::on_terminal())?;
    print(&page.display().to_string())?;
    Ok(())
}

/// Writes the report of the campaign that this process works on, when it ends.
pub(super) struct Writer {
    pub(super) recipe: Recipe,
    pub(super) folder: CampaignFolder,
    ledger: Arc<Ledger>,
    progress: Progress,
    /// Held while the page is written: the work may end while the process is made to leave.
    writing: Mutex<()>,
}

impl Writer {
    pub(super) fn new(recipe: Recipe, folder: CampaignFolder, ledger: Arc<Ledger>, progress: Progress) -> Self {
        Self { recipe, folder, ledger, progress, writing: Mutex::new(()) }
    }

    /// Writes the page, or warns why there is none.
    pub(super) fn write_or_say(&self) -> Option<PathBuf> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        match write(&self.recipe, &self.folder, &self.ledger.history(), None, &self.progress) {
            Ok(page) => Some(page),
            Err(error) => {
                let folder = self.folder.path().display();
                tracing::warn!("the report was not written: {error}; `comove report {folder}` writes it");
                None
            }
        }
    }
}

/// Writes the report of a recipe's campaign, and the index of its stages. The results follow one another as the recipe lists
/// them; a section that cannot be read is replaced by the reason. `holder`: the process that computes the campaign.
fn write(
    recipe: &Recipe,
    folder: &CampaignFolder,
    history: &History,
    holder: Option<String>,
    progress: &Progress,
) -> Result<PathBuf, PipelineError> {
    let mut resolver = CampaignResolver::new(&recipe.campaign, folder.path()).shown(progress);
    let hindrances = resolver.look_at_all(history);
    let resolver = &resolver;
    let state = state::State { recipe, folder: folder.path(), history, resolver, hindrances };
    let sections = Sections { resolver, history, folder: folder.path() };
    let (results, accounts) = sections.all();
    let (head, runs) = head::head(resolver);
    let now = state.now(holder);
    index::write(&state, &now, folder)?;
    let page = Report {
        title: recipe.campaign.name.clone(),
        state: now,
        head,
        runs,
        sections: results,
        stages: state.stages(),
        accounts,
        provenance: provenance::facts(recipe, history),
        digests: provenance::digests(resolver, folder.path(), history),
        recipe_text: recipe.source.text.clone(),
    };
    page.write(&folder.report())?;
    Ok(folder.report())
}

/// Makes the sections of the report from what stages have left.
struct Sections<'a> {
    resolver: &'a CampaignResolver<'a>,
    history: &'a History,
    folder: &'a Path,
}

impl Sections<'_> {
    /// Results in the order of the recipe's list, and their accounting in the order in which stages run.
    fn all(&self) -> (Vec<report::Section>, Vec<report::Section>) {
        let mut found: Vec<(usize, report::Section, report::Section)> = Vec::new();
        for (n, heading) in self.shown() {
            if let Some((result, account)) = self.of(n, &heading) {
                found.push((n, result, account));
            }
        }
        let has_result = |section: &&report::Section| {
            !(section.text.is_empty() && section.tables.is_empty() && section.images.is_empty())
        };
        let results = found.iter().map(|(_, result, _)| result).filter(has_result).cloned().collect();
        found.sort_by_key(|(n, ..)| *n);
        let accounts = found.into_iter().map(|(_, _, account)| account).filter(|account| !account.text.is_empty());
        (results, accounts.collect())
    }

    /// Stages that are done or unfinished runs, with their headings. Runs that differ in where they end share a folder, and its
    /// section.
    fn shown(&self) -> Vec<(usize, String)> {
        let mut shown: Vec<(usize, String)> = Vec::new();
        for n in self.resolver.listed_order() {
            let Some(folder) = self.folder_of(n) else { continue };
            match shown.iter_mut().find(|(other, _)| self.folder_of(*other) == Some(folder.clone())) {
                Some((_, heading)) => *heading += &format!("; {}", self.resolver.name(n)),
                None => shown.push((n, self.resolver.name(n).to_owned())),
            }
        }
        shown
    }

    /// The folder of a stage that has something to show.
    fn folder_of(&self, n: usize) -> Option<PathBuf> {
        match self.resolver.result(n) {
            Some(result) => result.artefact(section::FILE).map(|_| result.folder.clone()),
            None => {
                self.resolver.stage(n).as_run()?;
                self.resolver.known(n, self.history)?;
                Some(self.folder.join(&self.resolver.resolved(n)?.folder))
            }
        }
    }

    /// The result and the accounting of a stage; without text where there is none.
    fn of(&self, n: usize, heading: &str) -> Option<(report::Section, report::Section)> {
        let folder = self.folder_of(n)?;
        let of_one = |text: String| report::Section { heading: heading.into(), text, ..report::Section::default() };
        let left_out = |error: PipelineError| {
            of_one(format!("This section is missing: {error}. `comove resume` computes it again."))
        };
        let (section, images) = match self.resolver.result(n) {
            Some(result) => match read(&folder).and_then(|section| Ok((images(&section, result)?, section))) {
                Ok((images, section)) => (section, images),
                Err(error) => return Some((left_out(error), report::Section::default())),
            },
            None => {
                let (run, known) = (self.resolver.stage(n).as_run()?, self.resolver.known(n, self.history)?);
                let (section, figure) = match so_far(run, &folder, known) {
                    Ok(found) => found?,
                    Err(error) => return Some((left_out(error), report::Section::default())),
                };
                let png = figure.png().ok();
                let image =
                    |png| Image { caption: "Cells of each level, and densities".into(), png, links: Vec::new() };
                (section, png.map(image).into_iter().collect())
            }
        };
        let Section { mut text, tables, mut accounting, .. } = section;
        let stage = self.resolver.stage(n);
        let mut result = of_one(String::new());
        result.images = images;
        if accounting.is_empty() && (stage.as_run().is_some() || stage.as_initial().is_some()) {
            // an older program put them among the results
            accounting = tables;
        } else {
            result.tables = tables.into_iter().map(table).collect();
        }
        if let Some(versions) =
            self.resolver.resolved(n).and_then(|resolved| provenance::versions(resolved, self.history))
        {
            text += &format!(". {versions}; CHANGELOG lists the differences.");
        }
        if self.resolver.result(n).is_none()
            && let Some((run, so_far)) = text.split_once("\n\n")
        {
            result.text = so_far.into();
            text = run.into();
        }
        let mut account = report::Section::default();
        if accounting.is_empty() {
            result.text = text;
        } else {
            account = of_one(text);
            account.tables = accounting.into_iter().map(table).collect();
        }
        Some((result, account))
    }
}

/// A stage's part of the report.
fn read(folder: &Path) -> Result<Section, PipelineError> {
    let path = folder.join(section::FILE);
    let text = files::read(&path)?;
    serde_json::from_slice(&text).map_err(|e| PipelineError::input(&path, format!("not a section of a report: {e}")))
}

/// The pictures of a section, with links to the other formats that the stage has left of each.
fn images(section: &Section, result: &StageResult) -> Result<Vec<Image>, PipelineError> {
    let stage = result.folder.file_name().unwrap_or_default().to_string_lossy();
    let link = |file: &str, (name, end): (&str, &str)| {
        let other = format!("{}.{end}", file.strip_suffix(".png")?);
        result.artefact(&other)?;
        Some((name.to_owned(), format!("{}/{}", address(&stage), address(&other))))
    };
    let image = |image: &section::SectionImage| {
        let png = files::read(&result.folder.join(&image.file))?;
        let links = [("SVG", "svg"), ("PDF", "pdf")].into_iter().filter_map(|format| link(&image.file, format));
        Ok(Image { caption: image.caption.clone(), png, links: links.collect() })
    };
    section.images.iter().filter(|image| image.file.ends_with(".png")).map(image).collect()
}

/// A file's name as part of an address.
fn address(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

fn table(table: section::SectionTable) -> (String, Table) {
    let mut shown = Table::new(table.columns);
    table.rows.into_iter().for_each(|row| shown.push(row.into_iter().map(Into::into).collect()));
    (table.caption, shown)
}
