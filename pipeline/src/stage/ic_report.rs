//! `ic_report`: an initial condition beside linear theory.

use super::ic::{FINDING_COLUMNS, InitialCondition, MESH, finding_row};
use super::section::Section;
use super::{Input, Memory, SavedState, Stage, StageResult, Work, ic_task};
use crate::error::PipelineError;
use crate::processes::task::{IcTask, Task};
use comove_analysis::figure::initial_condition::{Species, initial_condition_figure};
use comove_ic::Verdict;
use comove_ic::doctor::Picture;
use comove_kernels::Device;
use serde_json::{Value, json};

/// The initial condition that is examined.
#[derive(Clone, Debug)]
pub(crate) struct IcReport {
    pub ic: InitialCondition,
}

impl Stage for IcReport {
    fn kind(&self) -> &'static str {
        "ic_report"
    }

    fn title(&self) -> String {
        "Examination of the initial condition".into()
    }

    fn describe(&self) -> String {
        "density, velocities and temperature beside linear theory".into()
    }

    fn results_version(&self) -> u32 {
        2
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        let missing = || PipelineError::input(&input.folder, format!("{MESH} is missing"));
        Ok(vec![input.artefact(MESH).ok_or_else(missing)?])
    }

    fn memory(&self, device: &Device, begun: Option<&SavedState>) -> Memory {
        self.ic.memory(device, begun)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let input = &work.inputs[0][0];
        let mesh = std::path::absolute(&input.path).map_err(PipelineError::io(&input.path))?;
        let examination = {
            work.progress.stage().doing("examining");
            let task = Task::Ic(Box::new(IcTask::Examine { mesh: mesh.clone(), ic: self.ic.clone() }));
            work.crew.run_collective(&task, |communicator| ic_task::examine(communicator, &mesh, &self.ic))?
        };
        let count = |verdict| examination.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let text = format!(
            "{}: {} quantities, {} suspicious, {} wrong. θ = −∇·v/(aHf), the velocity's divergence over that of the growing mode, is \
             compared with the density contrast δ mode by mode, below half of the Nyquist wave number.",
            self.ic.describe(),
            examination.findings.len(),
            count(Verdict::Suspicious),
            count(Verdict::Wrong)
        );
        let mut section = Section::new(text);
        section.table("Findings", &FINDING_COLUMNS, examination.findings.iter().map(finding_row).collect());
        let mut files = Vec::new();
        if !examination.pictures.is_empty() {
            let header = self.ic.header();
            let species: Vec<Species> = examination.pictures.into_iter().map(drawn).collect();
            let figure = initial_condition_figure(1.0 / header.a - 1.0, header.box_mpc_h, &species)?;
            files.extend(work.write_figure("ic_report", &figure, &mut section)?);
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

fn drawn(picture: Picture) -> Species {
    Species {
        name: picture.species.into(),
        cells: picture.slice_cells,
        slice: picture.slice,
        k_h_mpc: picture.spectrum.k_h_mpc,
        power_mpc3_h3: picture.spectrum.power_mpc3_h3,
        linear_mpc3_h3: picture.spectrum.linear_mpc3_h3,
        scatter: picture.scatter,
    }
}
