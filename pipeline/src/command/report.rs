//! `comove report`: the HTML page, from what the stages have left.

use super::{print, stored};
use crate::campaign::Walk;
use crate::error::PipelineError;
use crate::folder::CampaignFolder;
use crate::ledger::{Event, History, history};
use crate::recipe::Recipe;
use crate::stage::StageResult;
use crate::stage::section::{self, Section};
use comove_analysis::Table;
use comove_analysis::report::{self, Image, Report};
use comove_sim::Role;
use std::path::{Path, PathBuf};

/// Writes the report of the campaign in a folder.
pub(super) fn report(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    let (recipe, _) = stored(&folder)?;
    let (history, _) = history::read(&folder.ledger())?;
    let page = write(&recipe, &folder, &history)?;
    print(&page.display().to_string());
    Ok(())
}

/// Writes the report of a recipe's campaign: the sections of the stages that are done, in the campaign's order. One that
/// cannot be read is left out, and the page says why.
///
/// # Errors
/// [`PipelineError::Io`], [`PipelineError::Input`], [`PipelineError::Analysis`].
pub(super) fn write(recipe: &Recipe, folder: &CampaignFolder, history: &History) -> Result<PathBuf, PipelineError> {
    let campaign = &recipe.campaign;
    let mut walk = Walk::new(campaign, folder.path());
    let mut shown: Vec<PathBuf> = Vec::new();
    let mut sections = Vec::new();
    for n in walk.positions() {
        if let Err(error) = walk.look(n, history) {
            sections.push(left_out(walk.name(n), &error));
        }
        // runs that differ in where they end share a folder, and its section
        let section = walk.result(n).filter(|result| result.artefact(section::FILE).is_some());
        if let Some(result) = section.filter(|result| !shown.contains(&result.folder)) {
            sections.push(read(walk.name(n), &result.folder).unwrap_or_else(|error| left_out(walk.name(n), &error)));
            shown.push(result.folder.clone());
        }
    }
    let provenance = provenance(recipe, folder, history, walk.results());
    let page = Report { title: campaign.name.clone(), recipe_text: recipe.source.text.clone(), sections, provenance };
    page.write(&folder.report())?;
    Ok(folder.report())
}

/// What made the results: program, device, recipe, and the digests of the snapshots and of everything the stages rest on.
fn provenance<'a>(
    recipe: &Recipe,
    folder: &CampaignFolder,
    history: &History,
    results: impl Iterator<Item = &'a StageResult>,
) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(Event::CampaignStarted { program, device, process, .. }) = &history.start {
        facts.push(("program".to_owned(), program.clone()));
        facts.push(("device and its class of reproducible bits".into(), device.clone()));
        facts.push(("last run by".into(), process.clone()));
    }
    facts.push(("recipe, BLAKE3".into(), blake3::hash(recipe.source.text.as_bytes()).to_hex().to_string()));
    facts.extend(recipe.parameters.given.iter().map(|(name, value)| (format!("-p {name}"), value.clone())));
    for result in results {
        let name = result.folder.strip_prefix(folder.path()).unwrap_or(&result.folder).display().to_string();
        if let Some((fingerprint, _)) = history.stages().find(|(_, stage)| stage.folder == name) {
            facts.push((format!("{name}, fingerprint"), fingerprint.to_owned()));
        }
        let outputs = result.snapshots.iter().filter(|s| s.role == Role::Output);
        facts.extend(outputs.map(|s| (format!("{name}/{}, BLAKE3", s.file), s.digest.clone())));
    }
    facts
}

/// The section of the stage of this name, with its pictures.
fn read(name: &str, folder: &Path) -> Result<report::Section, PipelineError> {
    let path = folder.join(section::FILE);
    let text = std::fs::read(&path).map_err(PipelineError::io(&path))?;
    let section: Section = serde_json::from_slice(&text)
        .map_err(|e| PipelineError::input(&path, format!("not a section of a report: {e}")))?;
    let image = |image: section::SectionImage| {
        let path = folder.join(&image.file);
        let png = std::fs::read(&path).map_err(PipelineError::io(&path))?;
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
