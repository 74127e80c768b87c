//! `comove report`: the HTML page, from what the stages have left.
//!
//! | module | what it holds |
//! |---|---|
//! | [`state`] | how far the campaign is, what failed, how it goes on |
//! | [`provenance`] | what made the results, and the digests of all they rest on |

mod provenance;
mod state;

use super::{print, stored};
use crate::campaign::CampaignResolver;
use crate::error::PipelineError;
use crate::files;
use crate::folder::CampaignFolder;
use crate::ledger::{History, Ledger, history};
use crate::lock::Lock;
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::stage::section::{self, Section};
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
                tracing::warn!("there is no report: {error}; `comove report {folder}` writes it");
                None
            }
        }
    }
}

/// Writes the report of a recipe's campaign: how far it is, and the sections of the stages that are done, in the campaign's
/// order. One that cannot be read is left out, and the page says why. `holder`: who works on the campaign.
fn write(
    recipe: &Recipe,
    folder: &CampaignFolder,
    history: &History,
    holder: Option<String>,
    progress: &Progress,
) -> Result<PathBuf, PipelineError> {
    let mut resolver = CampaignResolver::new(&recipe.campaign, folder.path()).shown(progress);
    let hindrances = resolver.look_at_all(history);
    // runs that differ in where they end share a folder, and its section
    let mut shown: Vec<(usize, String)> = Vec::new();
    for n in resolver.positions() {
        let result = |n: usize| resolver.result(n).filter(|result| result.artefact(section::FILE).is_some());
        let Some(found) = result(n) else { continue };
        match shown.iter_mut().find(|(other, _)| result(*other).is_some_and(|other| other.folder == found.folder)) {
            Some((_, heading)) => *heading += &format!("; {}", resolver.name(n)),
            None => shown.push((n, resolver.name(n).to_owned())),
        }
    }
    let section = |(n, heading): (usize, String)| {
        let folder = &resolver.result(n).expect("it has a section").folder;
        let mut section = read(&heading, folder).unwrap_or_else(|error| left_out(&heading, &error));
        if let Some(versions) = resolver.resolved(n).and_then(|resolved| provenance::versions(resolved, history)) {
            section.text += &format!(". {versions}: CHANGELOG says what they differ in.");
        }
        section
    };
    let sections = shown.into_iter().map(section).collect();
    let page = Report {
        title: recipe.campaign.name.clone(),
        state: state::State { recipe, folder: folder.path(), history, resolver: &resolver, hindrances }.now(holder),
        recipe_text: recipe.source.text.clone(),
        sections,
        provenance: provenance::facts(recipe, history),
        digests: provenance::digests(&resolver, folder.path(), history),
    };
    page.write(&folder.report())?;
    Ok(folder.report())
}

/// The section of the stages of this name, with its pictures.
fn read(name: &str, folder: &Path) -> Result<report::Section, PipelineError> {
    let path = folder.join(section::FILE);
    let text = files::read(&path)?;
    let section: Section = serde_json::from_slice(&text)
        .map_err(|e| PipelineError::input(&path, format!("not a section of a report: {e}")))?;
    let image = |image: section::SectionImage| {
        let path = folder.join(&image.file);
        let png = files::read(&path)?;
        Ok(Image { caption: image.caption, png })
    };
    let table = |table: section::SectionTable| {
        let mut shown = Table::new(table.columns);
        table.rows.into_iter().for_each(|row| shown.push(row.into_iter().map(Into::into).collect()));
        (table.caption, shown)
    };
    Ok(report::Section {
        heading: name.into(),
        text: section.text,
        tables: section.tables.into_iter().map(table).collect(),
        images: section.images.into_iter().map(image).collect::<Result<_, PipelineError>>()?,
    })
}

/// What stands in the report in place of a section that cannot be read.
fn left_out(name: &str, error: &PipelineError) -> report::Section {
    let text = format!("This section is left out: {error}. `comove resume` makes it again.");
    report::Section { heading: name.into(), text, tables: Vec::new(), images: Vec::new() }
}
