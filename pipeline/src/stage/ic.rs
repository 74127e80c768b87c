//! `ic_gaussian` and `ic_load`: an initial condition as a uniform mesh, and its way onto a run's octree.
//!
//! The mesh is the stage's artefact, in our own HDF5 format; it belongs to no octree, so runs with other roots, levels
//! and criteria share it. All processes make it together, and each puts its part of it on the octree ([`ic_task`]).

use super::extents::Extents;
pub(crate) use super::initial::{InitialCondition, InitialFacts, shown};

use super::initial::{SpeciesPresent, header, yes};
use super::section::Section;
use super::{Input, Memory, SavedState, Stage, Work, ic_task};
use crate::error::PipelineError;
use crate::processes::isolated_read;
use crate::processes::task::{IcTask, Task};
use comove_ic::format::{comove_ic as mesh_file, files};
use comove_ic::gaussian_ic::DEFAULT_LPT_ORDER;
use comove_ic::{
    Audit, Contents, Finding, GaussianIc, Identities, LengthUnit, LoadFormat, LoadIc, NoiseFile, NoiseSign,
    PowerSource, SpeciesTransfer, Zoom,
};
use comove_kernels::Device;
use comove_kernels::point::particle::unmarked;
use comove_sim::fields::FieldSet;
use comove_sim::{Coordinates, Cosmology, RunParameters, Snapshot, SnapshotHeader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What an initial condition is called that the recipe does not name.
pub(crate) const TITLE: &str = "Initial condition";

/// The mesh's file name.
pub(crate) const MESH: &str = "initial_condition.h5";

/// Bytes that making a mesh takes for each of its cells, of all processes together: fields in double precision, modes and
/// their transform. Measured as peak memory at 128³ cells, the program itself included: 60.
pub(crate) const BYTES_PER_CELL: f64 = 60.0;

/// Bytes of a cell of gas in the mesh's file: five fields in double precision.
const FILE_BYTES_PER_CELL: f64 = 40.0;

/// The same of a particle beside it: displacement and velocity.
const PARTICLE_BYTES: f64 = 48.0;

/// Bytes of a particle at a given position in the file: position, velocity, identity.
const SET_BYTES: f64 = 44.0;

/// Bytes of such a particle in memory while it is read, its identity compared and it is written.
const SET_MEMORY: f64 = 56.0;

/// Bytes that making particles takes for each of them beyond [`BYTES_PER_CELL`]: modes of second order and six fields.
const PARTICLE_MEMORY: f64 = 96.0;

/// The same where gas and dark matter have their own transfer functions: modes of both.
const SPECIES_MEMORY: f64 = 16.0;

/// Bytes that third order takes for each cell beyond those of second: twelve fields and eight sets of modes at its peak. Measured
/// at 128³ cells, the program itself included: 216 in all.
const THIRD_ORDER_MEMORY: f64 = 60.0;

/// Bytes that a zoom takes for each cell of its finest mesh, which fills the box: modes of displacement and velocity, and one
/// field at a time. Measured as peak memory at 256³ cells, the program itself included: 53.
const ZOOM_BYTES_PER_CELL: f64 = 55.0;

/// Bytes that third order takes for each cell of a zoom's finest mesh beyond those of second order. Measured with 128³ cells, the
/// program itself included: 201 in all.
const ZOOM_THIRD_ORDER: f64 = 150.0;

/// Bytes that the gas of a zoom takes for each cell of its finest mesh, with a margin: a field before it is cut to the region, and
/// its parts. Measured with 256³ cells and a region of 112³: 3.
const ZOOM_GAS: f64 = 10.0;

/// Bytes that making a zoom takes, of all processes together.
pub(crate) fn zoom_bytes(ic: &GaussianIc, zoom: &Zoom) -> f64 {
    let of = |there: bool, bytes: f64| if there { bytes } else { 0.0 };
    let per_cell = ZOOM_BYTES_PER_CELL + of(ic.lpt_order == 3, ZOOM_THIRD_ORDER) + of(ic.gas, ZOOM_GAS);
    per_cell * volume(zoom.finest(ic.cells)) + SET_MEMORY * zoom.particles(ic.cells, ic.box_mpc_h) as f64
}

/// Columns of a table of findings.
pub(super) const FINDING_COLUMNS: [&str; 5] = ["quantity", "found", "expected", "verdict", "sentence"];

/// A row of that table.
pub(super) fn finding_row(finding: &Finding) -> Vec<String> {
    let Finding { quantity, found, expected, verdict, sentence } = finding.clone();
    vec![quantity, found, expected, verdict.name().into(), sentence]
}

/// Cells of a mesh; as a real number, which no product of three counts overflows.
pub(crate) fn volume(cells: [usize; 3]) -> f64 {
    cells.into_iter().map(|n| n as f64).product()
}

impl InitialCondition {
    /// What a run on a root of `root` cells has to know.
    pub(crate) fn facts(&self, root: [usize; 3]) -> Result<InitialFacts, String> {
        let (cosmology, box_mpc_h, z, mean_molecular_weight, gamma) = match self {
            Self::Gaussian(ic) => (ic.cosmology, ic.box_mpc_h, ic.z, ic.mean_molecular_weight, ic.gamma),
            Self::Load(ic, _) => (ic.cosmology, ic.box_mpc_h, ic.z, ic.mean_molecular_weight, ic.gamma),
        };
        let cells = self.mesh_cells();
        if root.iter().any(|n| *n == 0 || n % 16 != 0) {
            return Err(format!("root = {root:?}: every axis needs a multiple of 16 cells"));
        }
        let level = (0..=12u8).find(|level| root.map(|n| n << level) == cells).ok_or_else(|| {
            format!("root = {root:?}: cells = {cells:?} must be root times a power of two, the same along all axes")
        })?;
        let particles = match self {
            Self::Load(_, Some(contents)) => contents.particles,
            Self::Gaussian(ic @ GaussianIc { zoom: Some(zoom), .. }) => zoom.particles(ic.cells, box_mpc_h),
            _ if self.has_particles() => cells.iter().map(|&n| n as u64).product(),
            _ => 0,
        };
        let gas = self.has_gas();
        let species_known = self.known_species().is_some();
        Ok(InitialFacts {
            cosmology,
            box_mpc_h,
            cells,
            root,
            level,
            z,
            mean_molecular_weight,
            gamma,
            gas,
            particles,
            species_known,
        })
    }

    /// Cells with gas on meshes finer than that of the whole box.
    fn nested_cells(&self) -> f64 {
        match self {
            Self::Gaussian(GaussianIc { gas: true, zoom: Some(zoom), cells, box_mpc_h, .. }) => {
                zoom.gas_cells(*cells, *box_mpc_h) as f64
            }
            Self::Load(_, Some(contents)) => contents.nested_cells as f64,
            _ => 0.0,
        }
    }

    /// Cells of the mesh along x, y, z.
    pub(crate) fn mesh_cells(&self) -> [usize; 3] {
        match self {
            Self::Gaussian(ic) => ic.cells,
            Self::Load(ic, _) => ic.cells,
        }
    }

    /// Whether there is gas, as far as that is known.
    pub(crate) fn has_gas(&self) -> bool {
        self.known_species().is_none_or(|species| species.gas)
    }

    /// Whether there is dark matter, as far as that is known.
    pub(crate) fn has_particles(&self) -> bool {
        self.known_species().is_some_and(|species| species.dark_matter)
    }

    fn known_species(&self) -> Option<SpeciesPresent> {
        match self {
            Self::Gaussian(ic) => Some(SpeciesPresent { gas: ic.gas, dark_matter: ic.dark_matter }),
            Self::Load(_, contents) => {
                contents.map(|contents| SpeciesPresent { gas: contents.gas, dark_matter: contents.particles > 0 })
            }
        }
    }

    /// Number of particles that are on no lattice, as far as that is known.
    pub(crate) fn off_lattice(&self) -> Option<u64> {
        match self {
            Self::Load(_, Some(contents)) if contents.off_lattice => Some(contents.particles),
            Self::Gaussian(GaussianIc { zoom: Some(zoom), cells, box_mpc_h, .. }) => {
                Some(zoom.particles(*cells, *box_mpc_h))
            }
            _ => None,
        }
    }

    /// Identities of the particles that refinement follows; empty if it follows all.
    pub(crate) fn follow(&self) -> &Identities {
        match self {
            Self::Gaussian(ic) => &ic.follow,
            Self::Load(ic, _) => &ic.follow,
        }
    }

    /// The initial condition without `follow`.
    pub(crate) fn without_follow(&self) -> Self {
        let follow = Identities::default();
        match self.clone() {
            Self::Gaussian(ic) => Self::Gaussian(GaussianIc { follow, ..ic }),
            Self::Load(ic, contents) => Self::Load(LoadIc { follow, ..ic }, contents),
        }
    }

    /// What the mesh's file states of it.
    pub(super) fn header(&self) -> mesh_file::Header {
        match self {
            Self::Gaussian(ic) => header(&ic.cosmology, ic.box_mpc_h, ic.z, ic.mean_molecular_weight, ic.gamma),
            Self::Load(ic, _) => ic.header(),
        }
    }
}

impl Stage for InitialCondition {
    fn kind(&self) -> &'static str {
        match self {
            Self::Gaussian(_) => "ic_gaussian",
            Self::Load(..) => "ic_load",
        }
    }

    fn title(&self) -> String {
        TITLE.into()
    }

    fn results_version(&self) -> u32 {
        // headers of tables decide columns and units, and rows with comments count
        match self {
            Self::Gaussian(ic) if ic.power.file().is_some() || ic.species_transfer.is_some() => 2,
            _ => 1,
        }
    }

    fn describe(&self) -> String {
        let (cells, box_mpc_h, z, source) = match self {
            Self::Gaussian(ic) => {
                let species = match (ic.gas, ic.dark_matter, &ic.species_transfer) {
                    (true, false, _) => "",
                    (true, true, None) => " with dark matter",
                    (true, true, Some(_)) => " with dark matter and transfer functions of each",
                    (false, _, _) => " of dark matter alone",
                };
                let zoom = ic.zoom.map_or(String::new(), |zoom| {
                    format!(", lattices of {} to {} in a zoom", shown(ic.cells), shown(zoom.finest(ic.cells)))
                });
                let order = match ic.lpt_order {
                    DEFAULT_LPT_ORDER => String::new(),
                    order => format!(", {order}LPT"),
                };
                let source = ic
                    .noise
                    .as_ref()
                    .map_or_else(|| format!("seed {}", ic.seed), |noise| format!("noise of {}", noise.path.display()));
                (ic.cells, ic.box_mpc_h, ic.z, format!("{species}{zoom}{order}, {source}"))
            }
            Self::Load(ic, _) => (ic.cells, ic.box_mpc_h, ic.z, format!(" from {}", ic.path.display())),
        };
        let source = match (self.follow().len(), self) {
            (0, _) => source,
            (count, Self::Gaussian(_)) => format!("{source}, refinement follows those from {count} places"),
            (count, Self::Load(..)) => format!("{source}, refinement follows {count} of them"),
        };
        if let (Some(particles), false) = (self.off_lattice(), self.has_gas()) {
            return format!("{particles} particles in {box_mpc_h} Mpc/h at z = {z}{source}");
        }
        format!("{} cells in {box_mpc_h} Mpc/h at z = {z}{source}", shown(cells))
    }

    fn as_initial(&self) -> Option<&InitialCondition> {
        Some(self)
    }

    fn species(&self) -> Option<SpeciesPresent> {
        self.known_species()
    }

    fn mesh_bytes(&self) -> f64 {
        let cells = volume(self.mesh_cells());
        let of = |there: bool, bytes: f64| if there { bytes } else { 0.0 };
        let gas = of(self.has_gas(), FILE_BYTES_PER_CELL) * (cells + self.nested_cells());
        match self.off_lattice() {
            Some(particles) => gas + SET_BYTES * particles as f64,
            None => gas + of(self.has_particles(), PARTICLE_BYTES) * cells,
        }
    }

    fn parameters(&self) -> Value {
        // a file counts by its content, wherever it lies
        match self {
            Self::Gaussian(ic) => {
                let mut value = serde_json::to_value(ic).expect("numbers and names");
                value["power"] = ic.power.name().into();
                if let Some(source) = &ic.species_transfer {
                    value["species_transfer"] = source.name().into();
                }
                if let Some(noise) = &ic.noise {
                    value["seed"] = Value::Null;
                    // the default is one way to write the sign
                    value["noise"] = json!({ "sign": noise.sign.filter(|&sign| sign != NoiseSign::Grafic) });
                }
                value
            }
            Self::Load(ic, _) => {
                // whether a remark is wanted decides nothing, nor why a file is trusted, but that it is
                let is_trusted = ic.trust.is_some();
                let ic = LoadIc { baryons_only: false, trust: None, ..ic.clone() };
                let mut value = serde_json::to_value(ic).expect("numbers and names");
                value["path"] = Value::Null;
                if is_trusted {
                    value["is_trusted"] = true.into();
                }
                value
            }
        }
    }

    fn extent(&self) -> Value {
        match self {
            Self::Load(LoadIc { trust: Some(reason), .. }, _) => json!({ "trust": reason }),
            _ => Value::Null,
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Gaussian(ic) => {
                let noise = ic.noise.as_ref().map(|noise| noise.path.as_path());
                let tables = [ic.power.file(), ic.species_transfer.as_ref().map(SpeciesTransfer::file), noise];
                tables.into_iter().flatten().map(PathBuf::from).collect()
            }
            Self::Load(ic, _) => files(&ic.path),
        }
    }

    fn memory(&self, _device: &Device, _begun: Option<&SavedState>) -> Memory {
        if let Self::Gaussian(ic @ GaussianIc { zoom: Some(zoom), .. }) = self {
            return Memory { host: zoom_bytes(ic, zoom), device: 0.0 };
        }
        let cells = volume(self.mesh_cells());
        if let Some(particles) = self.off_lattice() {
            let gas = if self.has_gas() { cells + self.nested_cells() } else { 0.0 };
            return Memory { host: BYTES_PER_CELL * gas + SET_MEMORY * particles as f64, device: 0.0 };
        }
        let fields = match self {
            Self::Gaussian(GaussianIc { species_transfer: Some(_), .. }) => {
                BYTES_PER_CELL + PARTICLE_MEMORY + SPECIES_MEMORY
            }
            _ if self.has_particles() => BYTES_PER_CELL + PARTICLE_MEMORY,
            _ => BYTES_PER_CELL,
        };
        let fields = match self {
            Self::Gaussian(GaussianIc { lpt_order: 3, .. }) => fields + THIRD_ORDER_MEMORY,
            _ => fields,
        };
        Memory { host: fields * cells, device: 0.0 }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        if let Self::Load(ic, _) = self {
            let history = work.ledger.history();
            let is_known = work.files.iter().all(|file| history.vouches_for(&file.digest));
            if !matches!(ic.format, Some(LoadFormat::UmIc { .. })) && !is_known {
                isolated_read::mesh(ic)?;
            }
        }
        let made = {
            let line = work.progress.stage();
            let report = |activity: &str, fraction: f64| line.at(activity, fraction);
            let make = |communicator: &_| ic_task::make(self, communicator, &work.path(MESH), &report);
            work.crew.run_collective(&Task::Ic(Box::new(IcTask::Make(self.clone()))), make)?
        };
        if let Self::Load(ic, _) = self {
            made.remarks.iter().for_each(|remark| tracing::warn!("{}: {remark}", ic.path.display()));
        }
        let mut section = Section::new(self.describe());
        section.account("The mesh", &["quantity", "value"], made.rows);
        if let Self::Load(ic, _) = self {
            section.account("Examination", &FINDING_COLUMNS, made.findings.iter().map(finding_row).collect());
            if let Some(reason) = &ic.trust {
                section.account("Trust", &["reason"], vec![vec![reason.clone()]]);
            }
        }
        Ok(vec![MESH.into(), work.write_section(&section)?])
    }
}

/// Puts a stored mesh on the octree of a run ([`ic_task::place`]); of this process its part.
pub(crate) fn place(
    input: &Input,
    facts: &InitialFacts,
    parameters: &RunParameters,
    work: &Work<'_>,
) -> Result<(Snapshot, Audit), PipelineError> {
    let line = work.progress.stage();
    let report = |activity: &str, fraction: f64| line.at(activity, fraction);
    let task =
        IcTask::Place { mesh: input.path.clone(), facts: facts.clone(), parameters: Box::new(parameters.clone()) };
    let place = |communicator: &_| ic_task::place(communicator, &input.path, facts, parameters, &report);
    let (state, audit, particles) = work.crew.run_collective(&Task::Ic(Box::new(task)), place)?;
    let header = SnapshotHeader {
        a: 1.0 / (1.0 + facts.z),
        box_length: facts.box_mpc_h,
        cosmology: Some(facts.cosmology),
        gamma: facts.gamma,
        mean_molecular_weight: facts.mean_molecular_weight,
        eta: parameters.eta,
        precision: parameters.precision,
        fields: if audit.has_gas() { FieldSet::default() } else { FieldSet::without_gas() },
        dark_matter: particles,
        provenance: json!({}),
        ..SnapshotHeader::initial(Coordinates::Comoving)
    };
    Ok((Snapshot { header, state }, audit))
}

/// What a recipe says in `ic_gaussian(COSMOLOGY, #{ … })`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GaussianOptions {
    /// Box length along x in Mpc/h.
    pub box_mpc_h: f64,
    /// Cells of the mesh along each axis: the root's, or more by a power of two.
    pub cells: Extents,
    /// Cells of the root level along each axis; by default those of the mesh.
    pub root: Option<Extents>,
    /// Redshift.
    pub z: f64,
    /// Chooses the realisation; required without `noise`.
    pub seed: Option<u64>,
    /// File of white noise in place of a seed, on a mesh of `cells`: GRAFIC's, or MUSIC's `wnoise_*.bin`.
    pub noise: Option<PathBuf>,
    /// Sign of the numbers in a GRAFIC file of `noise`, which does not state it: `"grafic"`, the default, is that of the density
    /// contrast (MUSIC with `grafic_sign = yes`), `"music"` the opposite (MUSIC without).
    pub noise_sign: Option<NoiseSign>,
    /// Shape of the linear spectrum.
    #[serde(default)]
    pub power: PowerSource,
    /// Give every mode its mean amplitude.
    #[serde(default)]
    pub fixed_amplitude: bool,
    /// Give every mode of the Gaussian field the opposite sign: with `fixed_amplitude` the other one of a pair.
    #[serde(default)]
    pub inverted: bool,
    /// f_NL of primordial non-Gaussianity of the local type; positive values make more massive halos.
    #[serde(default)]
    pub f_nl: f64,
    /// Order of Lagrangian perturbation theory, 1 to 3, for displacements and velocities of particles, and for the velocity of gas
    /// beside them; by default 2.
    pub lpt_order: Option<u8>,
    /// Whether there is gas.
    #[serde(default = "yes")]
    pub gas: bool,
    /// Whether there is dark matter: a particle for each cell of the mesh. With gas, which then has omega_b, it has the rest of
    /// omega_m, else all.
    #[serde(default)]
    pub dark_matter: bool,
    /// Whether gas without dark matter, which then has all of omega_m, is meant where omega_b is less: a warning without it.
    #[serde(default)]
    pub baryons_only: bool,
    /// Transfer functions of gas and dark matter at `z`, densities and velocities: a table of CAMB (13 columns) or CLASS
    /// (`_tk.dat` of `output = mTk, vTk`) at that redshift. By default both have that of all matter; `power` and `sigma8` set
    /// all matter as without. With `m_nu_ev` the table of CAMB at `z`, of the run that made `power: #{ camb_transfer: … }` at
    /// z = 0, is needed for one species too: spectrum and velocities follow from both tables, scale by scale.
    pub species_transfer: Option<SpeciesTransfer>,
    /// A region of finer particles, and of gas at their resolution: `cells` are then those of the coarsest lattice.
    pub zoom: Option<Zoom>,
    /// Identities of the particles that refinement follows, numbered as in a run with these `cells` and no zoom:
    /// `particles_above` and `region_of_particles` then count only the lightest particles that start in these cells. By default
    /// all of the lightest.
    pub follow: Option<Vec<u64>>,
    /// Gas temperature in K; by default from decoupling.
    pub temperature_k: Option<f64>,
    /// Mean molecular weight.
    #[serde(default = "neutral")]
    pub mean_molecular_weight: f64,
}

/// What a recipe says in `ic_load(COSMOLOGY, "file", #{ … })`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadOptions {
    /// Box length along x in Mpc/h.
    pub box_mpc_h: f64,
    /// Cells of the mesh along each axis; for particles at given positions not needed.
    pub cells: Option<Extents>,
    /// Cells of the root level along each axis; by default those of the mesh.
    pub root: Option<Extents>,
    /// Redshift.
    pub z: f64,
    /// Format of the file; by default recognised by content, but for `um_ic`.
    pub format: Option<LoadFormat>,
    /// Unit of lengths of a Gadget file without `UnitLength_in_cm`; by default Mpc/h.
    pub length_unit: Option<LengthUnit>,
    /// Gas temperature in K instead of the file's energy.
    pub temperature_k: Option<f64>,
    /// Mean molecular weight.
    #[serde(default = "neutral")]
    pub mean_molecular_weight: f64,
    /// Whether a file of gas alone, which then has all of omega_m, is meant where omega_b is less: a warning without it.
    #[serde(default)]
    pub baryons_only: bool,
    /// Identities of the particles that refinement follows, of the lightest mass, as in the file; of files without identities
    /// numbers of rows, from 0. `particles_above` and `region_of_particles` then count only these. By default all that the file
    /// does not mark.
    pub follow: Option<Vec<u64>>,
    /// The reason why the file is accepted though its examination finds mistakes; for the report and the ledger.
    pub trust: Option<String>,
}

/// μ of neutral primordial gas.
fn neutral() -> f64 {
    1.22
}

impl GaussianOptions {
    /// The initial condition, and its root.
    pub(crate) fn build(self, cosmology: Cosmology) -> (InitialCondition, [usize; 3]) {
        let Extents(root) = self.root.unwrap_or(self.cells);
        let ic = GaussianIc {
            cosmology,
            box_mpc_h: self.box_mpc_h,
            cells: self.cells.0,
            z: self.z,
            seed: self.seed.unwrap_or_default(),
            noise: self.noise.map(|path| NoiseFile { path, sign: self.noise_sign }),
            power: self.power,
            fixed_amplitude: self.fixed_amplitude,
            inverted: self.inverted,
            f_nl: self.f_nl,
            lpt_order: self.lpt_order.unwrap_or(DEFAULT_LPT_ORDER),
            gas: self.gas,
            dark_matter: self.dark_matter,
            species_transfer: self.species_transfer,
            zoom: self.zoom,
            follow: self.follow.into_iter().flatten().map(unmarked).collect(),
            temperature_k: self.temperature_k,
            mean_molecular_weight: self.mean_molecular_weight,
            gamma: 5.0 / 3.0,
        };
        (InitialCondition::Gaussian(ic), root)
    }
}

impl LoadOptions {
    /// Contents of the file; `None` if it does not exist yet.
    ///
    /// # Errors
    /// For a file that cannot be read.
    pub(crate) fn contents(&self, path: &Path) -> Result<Option<Contents>, PipelineError> {
        match self.format {
            Some(format @ LoadFormat::UmIc { .. }) => {
                Ok(Some(Contents { format, gas: true, nested_cells: 0, particles: 0, off_lattice: false }))
            }
            _ => isolated_read::mesh_contents(path),
        }
    }

    /// The initial condition, and its root.
    ///
    /// # Errors
    /// The name of a missing option.
    pub(crate) fn build(
        self,
        cosmology: Cosmology,
        path: PathBuf,
        contents: Option<Contents>,
    ) -> Result<(InitialCondition, [usize; 3]), &'static str> {
        let is_set = contents.is_some_and(|contents| contents.off_lattice && !contents.gas);
        let of_root = self.root.filter(|_| is_set || contents.is_none());
        let cells = self.cells.or(of_root).ok_or(if is_set { "root" } else { "cells" })?;
        let Extents(root) = self.root.unwrap_or(cells);
        let ic = LoadIc {
            path,
            format: self.format,
            length_unit: self.length_unit,
            cosmology,
            box_mpc_h: self.box_mpc_h,
            cells: cells.0,
            z: self.z,
            temperature_k: self.temperature_k,
            mean_molecular_weight: self.mean_molecular_weight,
            gamma: 5.0 / 3.0,
            baryons_only: self.baryons_only,
            follow: self.follow.into_iter().flatten().map(unmarked).collect(),
            trust: self.trust,
        };
        Ok((InitialCondition::Load(ic, contents), root))
    }
}
