//! What all processes do together of an initial condition: make its mesh, and put a mesh on the octree of a run.

use super::initial::{InitialCondition, InitialFacts, header, shown};
use comove_ic::format::comove_ic as mesh_file;
use comove_ic::{Audit, IcError, UniformMesh, restrict};
use comove_sim::parallel::{Communicator, collective_result};
use comove_sim::{Clock, HostState, RunParameters};
use std::path::Path;

/// A mesh that was made.
pub(crate) struct Made {
    /// Rows of a table about it.
    pub rows: Vec<Vec<String>>,
    /// Remarks on a file that is probably not what it is taken for.
    pub remarks: Vec<String>,
}

/// Makes a mesh, each process some planes of it, of which the first writes the file. Collective.
pub(crate) fn make(
    ic: &InitialCondition,
    communicator: &Communicator,
    file: &Path,
    progress: &dyn Fn(&str, f64),
) -> Result<Made, IcError> {
    let (mesh, remarks) = match ic {
        InitialCondition::Gaussian(ic) => (ic.generate(communicator, progress)?, Vec::new()),
        InitialCondition::Load(ic, _) => ic.load(communicator, progress)?,
    };
    mesh_file::write(file, communicator, &mesh, &ic.header())?;
    Ok(Made { rows: rows(communicator, &mesh), remarks })
}

/// Mean and scatter of the gas's density, and its emptiest and densest cell; without gas how far particles are displaced:
/// collective.
fn rows(communicator: &Communicator, mesh: &UniformMesh) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    if let Some(lattice) = mesh.lattice.as_ref().filter(|_| !mesh.has_gas(communicator)) {
        let square = |i: usize| lattice.displacement.iter().map(|along| along[i].powi(2)).sum::<f64>();
        let largest = (0..mesh.cell_count()).map(square).fold(0.0, f64::max);
        return vec![
            row("particles", shown(mesh.cells)),
            row("rms displacement, Mpc/h", format!("{:.5}", mesh.mean(communicator, square).sqrt())),
            row("largest displacement, Mpc/h", format!("{:.5}", communicator.max(largest).sqrt())),
        ];
    }
    let mean = mesh.mean(communicator, |i| mesh.density[i]);
    let variance = mesh.mean(communicator, |i| (mesh.density[i] - mean).powi(2));
    let most = |sign: f64| {
        let own = mesh.density.iter().fold(f64::NEG_INFINITY, |most, d| most.max(sign * d));
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
/// some layers of groups along z. Collective.
pub(crate) fn place(
    communicator: &Communicator,
    mesh: &Path,
    facts: &InitialFacts,
    parameters: &RunParameters,
    progress: &dyn Fn(&str, f64),
) -> Result<(HostState, Audit), IcError> {
    let stated = header(&facts.cosmology, facts.box_mpc_h, facts.z, facts.mean_molecular_weight, facts.gamma);
    progress("reading the mesh", 0.0);
    let planes = restrict::planes(facts.cells, facts.level, communicator.rank(), communicator.size())?;
    let mesh = collective_result(communicator, mesh_file::read(mesh, facts.cells, planes, &stated))?;
    let clock = Clock::new(1.0 / (1.0 + facts.z), 0.0, Some(facts.cosmology));
    comove_ic::restrict(communicator, mesh, facts.level, facts.box_mpc_h, &clock, parameters, progress)
}
