//! `force_test`: the forces between two point masses on refined meshes, a test of the Poisson solver without a run.

use super::section::Section;
use super::{Memory, SavedState, Stage, Work};
use crate::error::PipelineError;
use comove_analysis::figure::results::force_figure;
use comove_analysis::{Record, Table};
use comove_ic::problems::PointMasses;
use comove_ic::problems::point_masses::{ForceBin, ForceSample, ForceTable, Spread};
use comove_kernels::Device;
use comove_sim::{Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

/// The pairs and how their forces are solved for.
#[derive(Clone, Debug)]
pub(crate) struct ForceTest {
    pub masses: PointMasses,
    /// Mesh and solver.
    pub options: SolverOptions,
}

/// What a recipe says in `force_test(#{ … })` besides the options of [`PointMasses`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SolverOptions {
    /// Refinement levels around the masses.
    pub levels: u8,
    /// Precision of the potential.
    pub precision: Precision,
    /// Cells around the masses' cells that are refined with them.
    pub flag_buffer: u32,
    /// Cycles of the Poisson solve of a refined level: each leaves a seventh of the error of the force, or less.
    pub poisson_cycles: u32,
    /// How often the potential is solved again with the pseudo mass sheets at coarse–fine faces; 0: without sheets.
    pub sheet_passes: u32,
}

pub(crate) const MASSES: [&str; 5] = ["root", "pairs", "separations", "bins", "seed"];

impl Default for SolverOptions {
    fn default() -> Self {
        let run = RunParameters::default();
        Self {
            levels: 4,
            precision: Precision::Double,
            flag_buffer: 8,
            poisson_cycles: 4,
            sheet_passes: run.sheet_passes,
        }
    }
}

/// What is written: the options with what they gave.
#[derive(Serialize)]
struct ForceRecord<'a> {
    /// The point masses.
    masses: &'a PointMasses,
    /// Options of the solver.
    #[serde(flatten)]
    options: &'a SolverOptions,
    /// Bins that have samples, by separation.
    bins: &'a [ForceBin],
    /// Samples, two a pair, by separation.
    samples: &'a [ForceSample],
}

impl Record for ForceRecord<'_> {
    fn table(&self) -> Table {
        Table::of(
            self.bins,
            &[
                ("separation_finest_cells", |bin| bin.separation.into()),
                ("forces", |bin| bin.count.into()),
                ("pull_over_root_mean", |bin| bin.to_root.mean.into()),
                ("pull_over_root_rms", |bin| bin.to_root.rms.into()),
                ("felt_over_root_mean", |bin| bin.felt_to_root.mean.into()),
                ("felt_over_root_rms", |bin| bin.felt_to_root.rms.into()),
            ],
        )
    }
}

impl Stage for ForceTest {
    fn kind(&self) -> &'static str {
        "force_test"
    }

    fn title(&self) -> String {
        "Forces of point masses".into()
    }

    fn describe(&self) -> String {
        let sheet = if self.options.sheet_passes > 0 { "" } else { ", without mass sheets" };
        format!("{} pairs of point masses on {} levels{sheet}", self.masses.pairs, self.options.levels)
    }

    fn parameters(&self) -> Value {
        json!({ "masses": self.masses, "options": self.options })
    }

    fn memory(&self, _device: &Device, _begun: Option<&SavedState>) -> Memory {
        Memory { host: self.masses.bytes(self.options.levels), device: 0.0 }
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let SolverOptions { levels, precision, flag_buffer, poisson_cycles, sheet_passes } = self.options.clone();
        let poisson_cycles = Some(poisson_cycles);
        let parameters =
            RunParameters { precision, flag_buffer, poisson_cycles, sheet_passes, ..RunParameters::default() };
        let asked = OnceLock::new();
        let is_over = || work.control.stop(Duration::ZERO).map(|by| asked.set(by)).is_some();
        let table: Option<ForceTable> = {
            let line = work.progress.stage();
            line.doing("pairs");
            self.masses.force_test(levels, &parameters, is_over)?
        };
        let Some(table) = table else {
            let by = asked.into_inner().expect("somebody has asked");
            return Err(PipelineError::Interrupted { folder: work.campaign.into(), by });
        };
        let record =
            ForceRecord { masses: &self.masses, options: &self.options, bins: &table.bins, samples: &table.samples };
        let text = format!(
            "{}. Force on a mass of each pair, over the force of the root level alone at the same separation in cells: \
             of the other mass, and including the force of the mass on itself through the mesh. Bars show the scatter.",
            self.describe()
        );
        let mut section = Section::new(text);
        let mut files: Vec<String> = work.write_record("force_test", &record)?.into();
        let points = |of: fn(&ForceBin) -> Spread| {
            table.bins.iter().map(|bin| [bin.separation, of(bin).mean, of(bin).rms]).collect::<Vec<_>>()
        };
        let curves = [("pull", points(|bin| bin.to_root)), ("with its own", points(|bin| bin.felt_to_root))];
        let figure = force_figure(&format!("Forces of point masses, {levels} levels"), &curves);
        files.extend(work.write_figure("force_test", &figure, &mut section)?);
        section.record("Bins", &record.table());
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}
