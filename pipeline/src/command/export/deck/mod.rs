//! The input of another code for the run of a recipe: parameter files, each line with the comove option that decides it.
//!
//! A code's file is one table of its lines. Options of the run that no line names are listed at its top.

pub(super) mod enzo;
pub(super) mod gadget;
pub(super) mod gamer;
pub(super) mod nyx;
pub(super) mod ramses;
pub(super) mod swift;

use super::omega_of_gas;
use crate::cli::Code;
use crate::error::PipelineError;
use crate::stage::evolve::run::Evolve;
use crate::stage::initial::InitialFacts;
use comove_ic::format::enzo::write as enzo_files;
use comove_ic::format::grafic::write as grafic;
use comove_sim::{Cosmology, Criterion, DarkMatterHeader, complete_file};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A run, with the initial condition that is written for it.
pub(super) struct Setup<'a> {
    pub campaign: &'a str,
    pub facts: &'a InitialFacts,
    pub run: &'a Evolve,
    pub has_gas: bool,
    pub dark_matter: Option<DarkMatterHeader>,
    /// The particles that refinement follows, where these are not all.
    pub follow: Option<String>,
    /// Mean temperature of the gas by mass in K; 0 without gas.
    pub temperature_k: f64,
}

/// Files of the input of a code, the parameter file first.
pub(super) fn files(code: Code) -> Box<dyn Iterator<Item = PathBuf>> {
    match code {
        Code::Gadget => Box::new(gadget::FILES.into_iter().map(PathBuf::from)),
        Code::Swift => Box::new(swift::FILES.into_iter().map(PathBuf::from)),
        Code::Gamer => Box::new(gamer::files().map(PathBuf::from)),
        Code::Enzo => Box::new([enzo::PARAMETERS].into_iter().chain(enzo_files::names()).map(PathBuf::from)),
        Code::Nyx => Box::new(nyx::FILES.into_iter().map(PathBuf::from)),
        Code::Ramses => {
            let ics = grafic::names().map(|name| Path::new(ramses::IC).join(name));
            Box::new([PathBuf::from(ramses::PARAMETERS)].into_iter().chain(ics))
        }
    }
}

/// A line of a parameter file.
pub(super) struct Line {
    key: &'static str,
    value: String,
    /// The comove options that decide it, separated by commas; empty where the code's documentation does.
    options: &'static str,
}

pub(super) fn line(key: &'static str, value: impl ToString, options: &'static str) -> Line {
    Line { key, value: value.to_string(), options }
}

/// Options that act on the initial condition alone, which is written as it is, that have no effect in comoving coordinates, or
/// whose only value here is the default of all codes.
const WITHOUT_EFFECT: [&str; 6] = [
    "cosmology.sigma8",
    "cosmology.n_s",
    "cosmology.t_cmb_k",
    "evolve.four_pi_g",
    "evolve.boundary",
    "evolve.gravity_boundary",
];

/// Options of gas.
const OF_GAS: [&str; 10] = [
    "evolve.courant",
    "evolve.density_floor",
    "evolve.dual_energy",
    "evolve.eta",
    "evolve.first_order_redo",
    "evolve.floor_budget",
    "evolve.gamma",
    "evolve.pressure_floor",
    "evolve.scheme",
    "evolve.sweep_order",
];

/// Values with which an option has no effect.
const NEUTRAL: [(&str, f64); 3] = [("cosmology.omega_r", 0.0), ("cosmology.w0", -1.0), ("cosmology.wa", 0.0)];

impl Setup<'_> {
    pub(super) fn cosmology(&self) -> &Cosmology {
        &self.facts.cosmology
    }

    pub(super) fn omega_gas(&self) -> f64 {
        omega_of_gas(self.cosmology(), self.has_gas, self.dark_matter.is_some())
    }

    /// Particles of dark matter of all masses.
    pub(super) fn particles(&self) -> u64 {
        self.dark_matter.map_or(0, |dark_matter| dark_matter.particles)
    }

    /// Dark matter of which comove counts all particles, as other codes do.
    pub(super) fn counted(&self) -> Option<DarkMatterHeader> {
        self.dark_matter.filter(|dark_matter| dark_matter.heaviest_class() == 0 && self.follow.is_none())
    }

    /// The refinement criteria of the run; of a combination with `any` its parts.
    fn criteria(&self) -> Vec<&Criterion> {
        fn parts(criterion: &Criterion) -> Vec<&Criterion> {
            match criterion {
                Criterion::Any(any) => any.iter().flat_map(parts).collect(),
                one => vec![one],
            }
        }
        self.run.parameters.refine.iter().flat_map(parts).collect()
    }

    /// Thresholds of the levels that may be refined, of several criteria the weakest one; none where no criterion counts.
    ///
    /// * `of`: thresholds of a criterion that counts
    /// * `weaker`: of two thresholds
    fn thresholds(
        &self,
        of: impl Fn(&Criterion) -> Option<Vec<f64>>,
        weaker: fn(f64, f64) -> f64,
    ) -> Option<Vec<Option<f64>>> {
        let found: Vec<Vec<f64>> = self.criteria().into_iter().filter_map(of).collect();
        let of_level = |level| found.iter().filter_map(|thresholds| thresholds.get(level).copied()).reduce(weaker);
        (!found.is_empty()).then(|| (0..usize::from(self.run.parameters.max_level)).map(of_level).collect())
    }

    pub(super) fn start(&self) -> f64 {
        1.0 / (1.0 + self.facts.z)
    }

    pub(super) fn end(&self) -> f64 {
        self.run.end.now()
    }

    /// Scale factors of the outputs, rising.
    pub(super) fn outputs(&self) -> Vec<f64> {
        self.run.outputs.iter().map(|moment| moment.now()).collect()
    }

    /// Width of a cell of a level in comoving Mpc/h.
    pub(super) fn width(&self, level: u8) -> f64 {
        self.facts.box_mpc_h / (self.facts.root[0] as f64 * f64::from(1u32 << level))
    }

    /// Width of a cell of the finest level.
    pub(super) fn finest(&self) -> f64 {
        self.width(self.run.parameters.max_level)
    }

    /// All options of background and run, with their values.
    fn options(&self) -> Vec<(String, String)> {
        let cosmology = serde_json::to_value(self.facts.cosmology).expect("numbers");
        let run = serde_json::to_value(&self.run.parameters).expect("numbers and names");
        let members = |group: &'static str, value: Value| {
            let Value::Object(members) = value else { return Vec::new() };
            let set = members.into_iter().filter(|(_, value)| !value.is_null() && *value != json!([]));
            set.map(|(name, value)| (format!("{group}.{name}"), shown(&value))).collect::<Vec<_>>()
        };
        let mut all = members("cosmology", cosmology);
        all.extend(members("evolve", run).into_iter().filter(|(name, _)| name != "evolve.refine"));
        if self.has_gas {
            all.push(("ic.mean_molecular_weight".into(), self.facts.mean_molecular_weight.to_string()));
        }
        all.extend(self.follow.iter().map(|follow| ("ic.follow".into(), follow.clone())));
        let checkpoints = serde_json::to_value(&self.run.checkpoints).expect("numbers");
        all.extend(members("evolve.checkpoints", checkpoints));
        all
    }

    /// Options that lines of a parameter file do not cover, with their values.
    ///
    /// * `criteria`: refinement criteria that no line covers
    fn not_covered(&self, lines: &[&Line], criteria: &[&Criterion]) -> Vec<String> {
        let named = |option: &str| lines.iter().any(|line| line.options.split(", ").any(|name| name == option));
        let is_neutral = |option: &str, value: &str| {
            NEUTRAL.iter().any(|(name, neutral)| *name == option && value.parse() == Ok(*neutral))
        };
        let has_effect = |option: &str| {
            !WITHOUT_EFFECT.contains(&option) && (self.has_gas || !OF_GAS.contains(&option)) && !named(option)
        };
        let left = self.options().into_iter();
        let left = left.filter(|(option, value)| has_effect(option) && !is_neutral(option, value));
        let criteria = criteria.iter().map(|criterion| format!("evolve.refine: {}", criterion_text(criterion)));
        left.map(|(option, value)| format!("{option}: {value}")).chain(criteria).collect()
    }
}

fn criterion_text(criterion: &Criterion) -> String {
    match criterion {
        Criterion::Where { source, .. } => format!("refine_where({source})"),
        _ => serde_json::to_string(criterion).expect("numbers and names"),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The beginning of a parameter file: its source, remarks, and the options that it does not carry over.
///
/// * `comment`: begins a line of comment
fn top(setup: &Setup<'_>, code: &str, comment: &str, remarks: &[String], not_covered: &[String]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![format!("Input of {code} for the campaign {}, written by comove {version}.", setup.campaign)];
    lines.push(
        "After each value: the comove options that decide it; none where it is the code's recommendation.".into(),
    );
    lines.extend(remarks.iter().cloned());
    lines.push(format!("Options of comove that are not carried over to {code}:"));
    lines.extend(not_covered.iter().map(|option| format!("  {option}")));
    lines.iter().map(|line| format!("{comment} {line}\n")).collect()
}

/// Lines of keys and values in columns, with the options as comments.
fn columns(lines: &[Line], comment: &str) -> String {
    let width = |of: fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let (key, value) = (width(|line| line.key.len()), width(|line| line.value.len()));
    let text = |line: &Line| match line.options {
        "" => format!("{:key$}  {}\n", line.key, line.value),
        options => format!("{:key$}  {:value$}  {comment} {options}\n", line.key, line.value),
    };
    lines.iter().map(text).collect()
}

/// Lines with keys `GROUP:name` by group.
fn by_group(lines: &[Line]) -> impl Iterator<Item = (&'static str, impl Iterator<Item = (&'static str, &Line)>)> {
    let split = |line: &Line| line.key.split_once(':').expect("a group and a name");
    let groups = lines.chunk_by(move |a, b| split(a).0 == split(b).0);
    groups.map(move |group| (split(&group[0]).0, group.iter().map(move |line| (split(line).1, line))))
}

/// The options that decide a line, as a comment behind it.
fn remark(line: &Line, comment: &str) -> String {
    if line.options.is_empty() { String::new() } else { format!("  {comment} {}", line.options) }
}

/// Writes a text file.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), PipelineError> {
    let path = folder.join(name);
    complete_file::write(&path, text.as_bytes()).map_err(PipelineError::io(&path))
}
