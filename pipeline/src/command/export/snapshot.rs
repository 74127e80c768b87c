//! Exports of snapshots.

use super::{
    check_absent, check_apart, check_memory, lattice, leaf_cells, meshes, omega_of_gas, output, remove_earlier,
};
use crate::cli::{Export, ExportFormat, name_of};
use crate::command::print;
use crate::error::PipelineError;
use crate::processes::isolated_read;
use crate::storage::files::regular_file;
use crate::terminal::progress::Progress;
use comove_ic::format::FileHeader;
use comove_ic::format::gadget::write::{self as gadget, Dialect};
use comove_ic::format::grafic::write as grafic;
use comove_ic::particle_rows::{Particles, next_id};
use comove_sim::kernels::layout::{FIELDS, GROUP_CELLS};
use comove_sim::kernels::particles::COLUMNS;
use comove_sim::{Cosmology, HostParticles, Snapshot};
use std::path::Path;

pub(super) fn export(asked: &Export, format: ExportFormat) -> Result<(), PipelineError> {
    let (is_folder, name) = (matches!(format, ExportFormat::Npy | ExportFormat::Grafic), name_of(format));
    let ignored =
        |option: &str| Err(PipelineError::Usage(format!("--{option}: has no effect with --format {name}; remove it")));
    if asked.level.is_some() && !is_folder {
        return ignored("level");
    }
    if !asked.fields.is_empty() && matches!(format, ExportFormat::Gadget | ExportFormat::Grafic) {
        return ignored("fields");
    }
    let path = output(asked, ending(format));
    check_absent(&path, asked, is_folder)?;
    check_apart(&path, &asked.source)?;
    regular_file(&asked.source)?;
    isolated_read::snapshot(&asked.source)?;
    check_memory(bytes(&asked.source)?)?;
    let progress = Progress::on_terminal();
    let snapshot = {
        let line = progress.file("reading", &asked.source);
        Snapshot::read_reporting(&asked.source, &|fraction| line.fraction(fraction))?
    };
    let job = progress.job("export");
    let line = job.stage();
    let report = |fraction: f64| line.at("writing", fraction);
    let level = asked.level.unwrap_or(0).into();
    let contents = match format {
        ExportFormat::Gadget => particles(&asked.source, &snapshot, &path, &report)?,
        ExportFormat::Npy => {
            let fields = meshes::fields(&snapshot, &asked.fields)?;
            std::fs::create_dir_all(&path).map_err(PipelineError::io(&path))?;
            meshes::npy(&snapshot, &path, (&fields, level), &report)?
        }
        ExportFormat::Vtkhdf => meshes::vtkhdf(&snapshot, &path, &meshes::fields(&snapshot, &asked.fields)?, &report)?,
        ExportFormat::Grafic => {
            let header = header(&asked.source, &snapshot, &name)?;
            let (mesh, followed) = lattice::mesh(&asked.source, &snapshot, level)?;
            std::fs::create_dir_all(&path).map_err(PipelineError::io(&path))?;
            remove_earlier(&path, grafic::names())?;
            let mean = mesh.density.iter().sum::<f64>() / mesh.density.len().max(1) as f64;
            grafic::write(&path, &header, (&mesh, mean, snapshot.header.gamma), followed.as_deref(), &report)?;
            format!("{:?} cells", mesh.cells)
        }
    };
    drop((line, job));
    print(&format!("{}: {contents}", path.display()))
}

/// Bytes that a snapshot takes in memory.
fn bytes(source: &Path) -> Result<f64, PipelineError> {
    let (header, tree) = Snapshot::read_tree(source)?;
    let gas = if header.fields.has_gas() { FIELDS + header.fields.scalars().len() } else { 0 };
    // with potential and density of dark matter
    let values = (gas + 2) * GROUP_CELLS * tree.group_count() * size_of::<f64>();
    let particles = header.dark_matter.map_or(0, |dark_matter| dark_matter.particles as usize);
    Ok((values + particles * COLUMNS * size_of::<u32>()) as f64)
}

/// Ending of the names of files, or of a folder.
fn ending(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Gadget => ".hdf5",
        ExportFormat::Npy => "_npy",
        ExportFormat::Vtkhdf => ".vtkhdf",
        ExportFormat::Grafic => "_grafic",
    }
}

/// Header of a file for a comoving, cubic box.
///
/// # Errors
/// For another snapshot.
fn header(source: &Path, snapshot: &Snapshot, format: &str) -> Result<FileHeader, PipelineError> {
    let (header, lengths) = (&snapshot.header, snapshot.box_lengths());
    let unusable = |found: String, expected: &str| {
        let remedy = "use --format npy or vtkhdf";
        PipelineError::input(source, format!("{found}; --format {format} needs {expected}; {remedy}"))
    };
    let Some(cosmology) = header.cosmology else {
        return Err(unusable("a run in non-comoving coordinates".into(), "comoving coordinates"));
    };
    if lengths.iter().any(|length| *length != lengths[0]) {
        return Err(unusable(format!("a box of {lengths:?} Mpc/h"), "a cubic box"));
    }
    let has_dark_matter = snapshot.state.particles.is_some();
    let omega_b = omega_of_gas(&cosmology, header.fields.has_gas(), has_dark_matter);
    Ok(FileHeader { cosmology: Cosmology { omega_b, ..cosmology }, a: header.a, box_mpc_h: lengths[0] })
}

/// Writes particles, and leaf cells in their place; returns what was written.
fn particles(source: &Path, snapshot: &Snapshot, path: &Path, progress: &dyn Fn(f64)) -> Result<String, PipelineError> {
    let header = header(source, snapshot, "gadget")?;
    let dark_matter: Option<&HostParticles> = snapshot.state.particles.as_ref();
    let mut types: Vec<Particles<'_>> = Vec::new();
    if snapshot.header.fields.has_gas() {
        types.push(leaf_cells::particles(snapshot, next_id(dark_matter)));
    }
    types.extend(
        dark_matter.into_iter().flat_map(|particles| Particles::of_dark_matter(particles, snapshot.box_lengths())),
    );
    gadget::write(path, Dialect::Gadget, &header, &types, progress)?;
    let counts = types.iter().map(|particles| format!("{} of type {}", particles.count, particles.kind as usize));
    Ok(format!("{} particles", counts.collect::<Vec<_>>().join(", ")))
}
