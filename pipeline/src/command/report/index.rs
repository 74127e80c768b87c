//! `index.json`: the stages of a campaign, their state and their files, for programs that read the results.

use super::state::State;
use crate::campaign::StageStatus;
use crate::error::PipelineError;
use crate::ledger::SnapshotFile;
use crate::moment::Moment;
use crate::recipe::docs::records;
use crate::stage::combine::{kind_of, moment_of};
use crate::stage::evolve::section::SUMMARY;
use crate::stage::evolve::start::AUDIT;
use crate::stage::evolve::{observed, steps};
use crate::stage::section;
use crate::stage::work::write_file;
use crate::storage::folder::CampaignFolder;
use comove_analysis::columns;
use comove_analysis::report::{self, StateKind};
use comove_sim::Role;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Units and meanings of the columns of a stage's tables and of the members of its records, beside them: separated by tabs, so
/// that `*.csv` are tables of results alone.
const COLUMNS: &str = "columns.tsv";

/// Layout of the index.
const VERSION: u32 = 1;

/// Writes the index of a campaign in this state.
pub(super) fn write(state: &State<'_>, now: &report::State, folder: &CampaignFolder) -> Result<(), PipelineError> {
    let order = state.resolver.listed_order();
    let stages: Vec<Value> = order.iter().map(|&n| stage(state, now.kind, n)).collect();
    let (mut tables, mut records) = (Map::new(), Map::new());
    for &n in &order {
        let described = described(state, n);
        add_described(&described, [&mut tables, &mut records]);
        if let Some(known) = state.known(n) {
            write_columns(&state.folder.join(&known.folder), &described)?;
        }
    }
    let index = json!({
        "version": VERSION,
        "program": concat!("comove ", env!("CARGO_PKG_VERSION")),
        "campaign": state.recipe.campaign.name,
        "state": match now.kind {
            StateKind::Finished => "finished",
            StateKind::Stopped => "interrupted",
            StateKind::Failed => "failed",
            StateKind::Running => "running",
        },
        "report": "report.html",
        "stages": stages,
        "tables": tables,
        "records": records,
    });
    let text = serde_json::to_vec_pretty(&index).expect("plain data");
    write_file(&folder.index(), &text)
}

/// A stage: name, kind, folder, state, redshifts or times, and files.
fn stage(state: &State<'_>, campaign: StateKind, n: usize) -> Value {
    let (resolver, known) = (state.resolver, state.known(n));
    let resolved = resolver.resolved(n);
    let folder = match (resolved, resolver.result(n)) {
        (Some(resolved), _) => known.map(|_| resolved.folder.clone()),
        (None, Some(given)) => Some(given.folder.display().to_string()),
        (None, None) => None,
    };
    let is_at_work = resolved.is_some_and(|resolved| state.history.at_work.contains(&resolved.fingerprint));
    let status = match resolver.status(n) {
        StageStatus::Given | StageStatus::Done | StageStatus::Decided => "done",
        _ if campaign == StateKind::Running && is_at_work => "running",
        _ if state.failure(n).is_some() => "failed",
        StageStatus::ToDo if known.is_some() => "interrupted",
        StageStatus::ToDo | StageStatus::Waiting => "to do",
    };
    let files = files(state, n);
    // of an analysis those of the snapshots that it reads
    let read = resolved.filter(|_| resolver.stage(n).as_run().is_none());
    let read = read.into_iter().flat_map(|resolved| resolved.inputs.iter().flatten()).filter_map(|input| input.moment);
    let mut moments: Vec<Moment> = Vec::new();
    for moment in read {
        if !moments.contains(&moment) {
            moments.push(moment);
        }
    }
    if moments.is_empty() {
        for file in files.iter().filter(|file| file.kind != "checkpoint") {
            moments.extend(file.moment.filter(|moment| !moments.contains(moment)));
        }
    }
    moments.sort_by(|x, y| x.now().total_cmp(&y.now()));
    let mut value = json!({
        "name": resolver.name(n),
        "kind": resolver.stage(n).kind(),
        "label": resolver.stage(n).label(),
        "state": status,
        "folder": folder,
        "fingerprint": resolved.map(|resolved| &resolved.fingerprint),
        "seconds": known.and_then(|known| known.seconds),
        "reads": resolver.reads(n).iter().map(|&input| resolver.name(input)).collect::<Vec<_>>(),
    });
    for (symbol, key) in [("z", "redshifts"), ("t", "times")] {
        let values: Vec<f64> = moments.iter().filter(|m| m.symbol() == symbol).map(|m| m.value()).collect();
        if !values.is_empty() {
            value[key] = values.into();
        }
    }
    value["files"] = files.into_iter().map(IndexedFile::value).collect();
    value
}

/// The columns or members of one kind of a stage's files.
struct Described {
    /// The first part of the files' names.
    name: String,
    /// The files' names, redshifts as `*`.
    files: String,
    /// Whether they are records, not tables.
    is_record: bool,
    /// Name, unit, description of each column; columns that a recipe has made are left out.
    columns: Vec<[String; 3]>,
}

/// The columns of a stage's tables and the members of its records.
fn described(state: &State<'_>, n: usize) -> Vec<Described> {
    let Some(folder) = state.known(n).map(|known| state.folder.join(&known.folder)) else { return Vec::new() };
    let mut found: Vec<Described> = Vec::new();
    for IndexedFile { file, kind, moment } in files(state, n) {
        let is_record = match kind {
            "table" => false,
            "data" | "step records" | "observations" | "summary" => true,
            _ => continue,
        };
        let name = kind_of(&file);
        let end = file.rsplit_once('.').map_or("", |(_, end)| end);
        let files = if file == format!("{name}.{end}") { file.clone() } else { format!("{name}_*.{end}") };
        if found.iter().any(|other| other.files == files) {
            continue;
        }
        let has_code_units = matches!(moment, Some(Moment::Time(_)));
        let unit = |unit: &str| if has_code_units { records::in_code_units(unit).into() } else { unit.to_owned() };
        let columns: Vec<[String; 3]> = if is_record {
            let rows = records::kind_of(&name).map(records::rows).unwrap_or_default();
            rows.into_iter().map(|row| [row.name, unit(row.unit), row.text]).collect()
        } else {
            let noted = |column: String| Some((columns::note(&name, &column)?, column));
            let noted = names_in(&folder.join(&file)).into_iter().filter_map(noted);
            noted.map(|(note, column)| [column, unit(&note.unit), note.description]).collect()
        };
        if !columns.is_empty() {
            found.push(Described { name, files, is_record, columns });
        }
    }
    found
}

/// Adds what [`described`] has found to the tables and the records of the index.
fn add_described(described: &[Described], [tables, records]: [&mut Map<String, Value>; 2]) {
    for Described { name, is_record, columns, .. } in described {
        let column =
            |[name, unit, description]: &[String; 3]| json!({ "name": name, "unit": unit, "description": description });
        let map = if *is_record { &mut *records } else { &mut *tables };
        let known = map.entry(name.clone()).or_insert_with(|| Value::Array(vec![]));
        let known = known.as_array_mut().expect("a list");
        for new in columns {
            if !known.iter().any(|column| column["name"] == new[0]) {
                known.push(column(new));
            }
        }
    }
}

/// Writes `columns.tsv` beside a stage's tables and records.
fn write_columns(folder: &Path, described: &[Described]) -> Result<(), PipelineError> {
    if described.is_empty() || !folder.is_dir() {
        return Ok(());
    }
    let line = |columns: [&str; 4]| columns.join("\t") + "\n";
    let lines = described.iter().flat_map(|Described { files, columns, .. }| {
        columns.iter().map(move |[name, unit, description]| line([files, name, unit, description]))
    });
    let text = line(["file", "name", "unit", "description"]) + lines.collect::<String>().as_str();
    let path = folder.join(COLUMNS);
    let is_there = std::fs::read(&path).is_ok_and(|known| known == text.as_bytes());
    if is_there { Ok(()) } else { write_file(&path, text.as_bytes()) }
}

/// The names of a table's columns; none if the file cannot be read.
fn names_in(table: &Path) -> Vec<String> {
    let mut line = String::new();
    let read = File::open(table).and_then(|file| BufReader::new(file).read_line(&mut line));
    match read {
        Ok(_) => line.trim_end().split(',').map(String::from).collect(),
        Err(_) => Vec::new(),
    }
}

struct IndexedFile {
    /// Below the stage's folder.
    file: String,
    kind: &'static str,
    moment: Option<Moment>,
}

impl IndexedFile {
    fn of(file: &str) -> Self {
        Self { file: file.into(), kind: kind(file), moment: moment_of(file) }
    }

    fn of_snapshot(snapshot: &SnapshotFile) -> Self {
        let kind = match snapshot.role {
            Role::Checkpoint => "checkpoint",
            Role::Output | Role::Initial => "output",
        };
        Self { file: snapshot.file.clone(), kind, moment: Some(snapshot.moment()) }
    }

    fn value(self) -> Value {
        let mut value = Map::from_iter([("file".into(), self.file.into()), ("kind".into(), self.kind.into())]);
        value.extend(self.moment.map(|moment| (moment.symbol().into(), moment.value().into())));
        value.into()
    }
}

/// The files of a stage: snapshots, then everything else.
fn files(state: &State<'_>, n: usize) -> Vec<IndexedFile> {
    let Some(known) = state.known(n) else {
        let given = state.resolver.result(n).into_iter();
        return given.flat_map(|given| given.snapshots.iter().map(IndexedFile::of_snapshot)).collect();
    };
    let snapshots = known.snapshots.iter().map(IndexedFile::of_snapshot);
    let folder = state.folder.join(&known.folder);
    let others: Vec<IndexedFile> = match &known.artefacts {
        Some(artefacts) => artefacts.iter().map(|made| IndexedFile::of(&made.file)).collect(),
        // the records of an unfinished run
        None => [steps::FILE, observed::FILE, SUMMARY, AUDIT]
            .into_iter()
            .filter(|file| folder.join(file).is_file())
            .map(IndexedFile::of)
            .collect(),
    };
    snapshots.chain(others).collect()
}

/// The content of a file, by its name.
fn kind(file: &str) -> &'static str {
    let end = Path::new(file).extension().and_then(|end| end.to_str()).unwrap_or_default();
    match (file, end) {
        (section::FILE, _) => "report section",
        (steps::FILE, _) => "step records",
        (observed::FILE, _) => "observations",
        (SUMMARY, _) => "summary",
        (_, "csv") => "table",
        (_, "png" | "svg" | "pdf") => "figure",
        (_, "json") => "data",
        (_, "h5") => "initial condition",
        _ => "file",
    }
}
