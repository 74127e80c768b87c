//! The collective work of an initial condition: making its file, and putting that on the octree of a run.

use super::initial::{InitialCondition, InitialFacts, header, shown};
use comove_ic::doctor::{self, Subject};
use comove_ic::format::{Part, comove_ic as mesh_file};
use comove_ic::{Audit, DarkMatter, Examination, Finding, IcError, LinearPower, LoadFormat, UniformMesh, restrict};
use comove_sim::parallel::{Communicator, collective_result};
use comove_sim::{Clock, DarkMatterHeader, HostState, RunParameters};
use rayon::prelude::*;
use std::path::Path;

/// A mesh that was made.
pub(crate) struct Made {
    /// Rows of a table about it.
    pub rows: Vec<Vec<String>>,
    /// Remarks on a file that is probably not what it is taken for.
    pub remarks: Vec<String>,
    /// Findings of a file's examination.
    pub findings: Vec<Finding>,
}

/// Makes a mesh, each process some planes of it, of which the first writes the file. Collective.
pub(crate) fn make(
    ic: &InitialCondition,
    communicator: &Communicator,
    file: &Path,
    progress: &dyn Fn(&str, f64),
) -> Result<Made, IcError> {
    let (mesh, remarks, findings) = mesh(ic, communicator, progress)?;
    mesh_file::write(file, communicator, &mesh, &ic.header())?;
    Ok(Made { rows: rows(communicator, &mesh), remarks, findings })
}

/// Makes this process's planes of a mesh, with remarks on the file and findings of its examination. Collective.
pub(crate) fn mesh(
    ic: &InitialCondition,
    communicator: &Communicator,
    progress: &dyn Fn(&str, f64),
) -> Result<(UniformMesh, Vec<String>, Vec<Finding>), IcError> {
    Ok(match ic {
        InitialCondition::Gaussian(ic) => (ic.generate(communicator, progress)?, Vec::new(), Vec::new()),
        InitialCondition::Load(ic, _) => {
            let (mesh, examination) = ic.load(communicator, progress)?;
            (mesh, examination.remarks(ic.trust.as_deref()), examination.findings)
        }
    })
}

/// Examines a stored mesh, each process its part. Collective.
pub(crate) fn examine(communicator: &Communicator, mesh: &Path, ic: &InitialCondition) -> Result<Examination, IcError> {
    let header = ic.header();
    let cells = ic.mesh_cells();
    let (cosmology, power, temperature_k, format) = match ic {
        InitialCondition::Gaussian(ic) => (&ic.cosmology, ic.linear_power(), ic.temperature_k, LoadFormat::ComoveIc),
        InitialCondition::Load(ic, contents) => {
            let format = ic.format.or(contents.map(|contents| contents.format)).unwrap_or(LoadFormat::ComoveIc);
            (&ic.cosmology, LinearPower::estimate(&ic.cosmology), ic.temperature_k, format)
        }
    };
    let part = Part::even(cells, communicator.rank(), communicator.size());
    let read = mesh_file::read(mesh, cells, part, &header);
    let both = read.and_then(|mesh| Ok((mesh, power?)));
    let (mesh, power) = collective_result(communicator, both)?;
    let subject = Subject {
        cosmology,
        power: &power,
        amplitude_is_known: true,
        a: header.a,
        box_mpc_h: header.box_mpc_h,
        format,
        temperature_k,
        mean_molecular_weight: header.mean_molecular_weight,
        gamma: header.gamma,
    };
    Ok(doctor::examine(communicator, &mesh, &subject, true))
}

/// Mean and scatter of the gas's density, and its emptiest and densest cell; without gas displacements of particles on a
/// lattice, or velocities of others: collective.
fn rows(communicator: &Communicator, mesh: &UniformMesh) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let has_gas = mesh.has_gas(communicator);
    if let Some(DarkMatter::Set(set)) = mesh.dark_matter.as_ref().filter(|_| !has_gas) {
        let square = |n: usize| set.velocity.iter().map(|along| f64::from(along[n]).powi(2)).sum::<f64>();
        return vec![
            row("particles", set.described(communicator)),
            row("rms velocity a v/(100 km/s)", format!("{:.5}", set.mean(communicator, square).sqrt())),
        ];
    }
    if let Some(lattice) = mesh.lattice().filter(|_| !has_gas) {
        let square = |i: usize| lattice.displacement.iter().map(|along| along[i].powi(2)).sum::<f64>();
        let largest = (0..mesh.cell_count()).into_par_iter().map(square).reduce(|| 0.0, f64::max);
        return vec![
            row("particles", shown(mesh.cells)),
            row("rms displacement, Mpc/h", format!("{:.5}", mesh.mean(communicator, square).sqrt())),
            row("largest displacement, Mpc/h", format!("{:.5}", communicator.max(largest).sqrt())),
        ];
    }
    let mean = mesh.mean(communicator, |i| mesh.density[i]);
    let variance = mesh.mean(communicator, |i| (mesh.density[i] - mean).powi(2));
    let most = |sign: f64| {
        let own = mesh.density.par_iter().map(|d| sign * d).reduce(|| f64::NEG_INFINITY, f64::max);
        sign * communicator.max(own)
    };
    vec![
        row("cells", shown(mesh.cells)),
        row("mean density of the gas over that of matter", format!("{mean:.9}")),
        row("rms density contrast of the gas", format!("{:.5}", variance.sqrt() / mean)),
        row("smallest and largest density of the gas", format!("{:.4}, {:.4}", most(-1.0), most(1.0))),
    ]
}

/// Puts a stored mesh on the octree of a run, averaged down to its root and thinned to what its criteria keep: each process
/// some layers of groups along z, and its rows of particles that are on no lattice. With the header of all particles.
/// Collective.
pub(crate) fn place(
    communicator: &Communicator,
    mesh: &Path,
    facts: &InitialFacts,
    parameters: &RunParameters,
    progress: &dyn Fn(&str, f64),
) -> Result<(HostState, Audit, Option<DarkMatterHeader>), IcError> {
    let stated = header(&facts.cosmology, facts.box_mpc_h, facts.z, facts.mean_molecular_weight, facts.gamma);
    progress("reading the mesh", 0.0);
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let part = restrict::part(facts.cells, facts.level, rank, ranks)?;
    let mesh = collective_result(communicator, mesh_file::read(mesh, facts.cells, part, &stated))?;
    let clock = Clock::new(1.0 / (1.0 + facts.z), 0.0, Some(facts.cosmology));
    let (state, audit) =
        comove_ic::restrict(communicator, mesh, facts.level, facts.box_mpc_h, &clock, parameters, progress)?;
    let particles = state.particles.as_ref().map(|own| own.header_of_all(communicator));
    Ok((state, audit, particles))
}
