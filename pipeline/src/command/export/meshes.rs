//! Exports of a snapshot's fields: on uniform grids for NumPy, on its own meshes for ParaView.

use super::remove_earlier;
use crate::error::PipelineError;
use comove_analysis::cell_fields::{CellField, Gas, field_of};
use comove_analysis::cells::patch_cells;
use comove_analysis::covering_grid::{GRID_LIMIT_MIB, grid_within};
use comove_ic::format::{npy, vtkhdf};
use comove_sim::kernels::layout::{GROUP, OCTANTS, PATCH, octant_origin};
use comove_sim::kernels::point::particle::unmarked;
use comove_sim::mesh::LeafPatch;
use comove_sim::{HostParticles, Key, Snapshot, complete_file};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Fields that are exported unless others are named, as far as a snapshot holds them.
const USUAL: [&str; 7] =
    ["density", "velocity_x", "velocity_y", "velocity_z", "temperature", "dark_matter_density", "potential"];

/// Numbers that are converted at a time.
const AT_A_TIME: usize = 1 << 20;

/// The description of the arrays in a folder, which is written last.
const CONTENTS: &str = "contents.json";

/// The named fields, or the usual ones and passive scalars.
///
/// # Errors
/// For a name that the snapshot has no field of.
pub(super) fn fields(snapshot: &Snapshot, names: &[String]) -> Result<Vec<CellField>, PipelineError> {
    if !names.is_empty() {
        return names.iter().map(|name| Ok(field_of(snapshot, name)?)).collect();
    }
    let scalars = snapshot.header.fields.scalars().iter().map(String::as_str);
    let has_dark_matter = snapshot.header.dark_matter.is_some();
    let is_there = |name: &&str| has_dark_matter || *name != "dark_matter_density";
    let usual = USUAL.into_iter().filter(is_there).chain(scalars);
    Ok(usual.filter_map(|name| field_of(snapshot, name).ok()).collect())
}

/// Writes a folder of arrays: each field on the grid of a level, and the columns of particles; returns what was written.
pub(super) fn npy(
    snapshot: &Snapshot,
    folder: &Path,
    (fields, level): (&[CellField], usize),
    progress: &dyn Fn(f64),
) -> Result<String, PipelineError> {
    remove_earlier(folder, earlier_arrays(folder))?;
    let mut arrays = Map::new();
    let mut describe = |name: &str, unit: &str, meaning: &str, shape: &[usize]| {
        arrays.insert(name.into(), json!({ "unit": unit, "meaning": meaning, "shape": shape }));
    };
    for (n, field) in fields.iter().enumerate() {
        let grid = grid_within(snapshot, &field.name, level, GRID_LIMIT_MIB)?;
        let shape = grid.shape().to_vec();
        let values = grid.as_slice().expect("in standard order").chunks(AT_A_TIME);
        npy::write(&folder.join(format!("{}.npy", field.name)), &shape, values)?;
        describe(&field.name, field.unit, &field.meaning, &shape);
        progress((n + 1) as f64 / (fields.len() + 1) as f64);
    }
    if let Some(particles) = &snapshot.state.particles {
        for (name, unit, meaning) in columns(snapshot, particles, folder)? {
            describe(&name, unit, meaning, &[particles.len()]);
        }
    }
    let header = &snapshot.header;
    let contents = json!({
        "a": header.a,
        "time": header.time,
        "box_lengths": snapshot.box_lengths(),
        "level": level,
        "arrays": Value::Object(arrays),
    });
    let path = folder.join(CONTENTS);
    let text = serde_json::to_vec_pretty(&contents).expect("numbers and names");
    complete_file::write(&path, &text).map_err(PipelineError::io(&path))?;
    Ok(format!("{} fields on the grid of level {level}", fields.len()))
}

/// Files of an earlier export into a folder: its description, and the arrays in it.
fn earlier_arrays(folder: &Path) -> impl Iterator<Item = String> {
    let text = std::fs::read(folder.join(CONTENTS)).unwrap_or_default();
    let contents: Value = serde_json::from_slice(&text).unwrap_or_default();
    let names = contents["arrays"].as_object().into_iter().flat_map(|arrays| arrays.keys());
    let files: Vec<String> = names.map(|name| format!("{name}.npy")).collect();
    [CONTENTS.to_owned()].into_iter().chain(files)
}

/// Writes the columns of particles; returns their names, units and meanings.
fn columns(
    snapshot: &Snapshot,
    particles: &HostParticles,
    folder: &Path,
) -> Result<Vec<(String, &'static str, &'static str)>, PipelineError> {
    let (count, lengths, units) = (particles.len(), snapshot.box_lengths(), snapshot.header.units());
    let file = |name: &str| folder.join(format!("{name}.npy"));
    let pieces = || (0..count).step_by(AT_A_TIME).map(|first| first..count.min(first + AT_A_TIME));
    let velocity = units.velocity_km_s(snapshot.header.a);
    let mut written = Vec::new();
    for (axis, letter) in ["x", "y", "z"].into_iter().enumerate() {
        let name = format!("particle_position_{letter}");
        let position = |n: usize| particles.coordinate(n, axis, lengths[axis]);
        npy::write(&file(&name), &[count], pieces().map(|piece| piece.map(position).collect::<Vec<f64>>()))?;
        written.push((name, "comoving Mpc/h", "position of dark matter"));
        let name = format!("particle_velocity_{letter}");
        let speed = |n: usize| (f64::from(particles.velocity[axis][n]) * velocity) as f32;
        npy::write(&file(&name), &[count], pieces().map(|piece| piece.map(speed).collect::<Vec<f32>>()))?;
        written.push((name, "km/s", "proper peculiar velocity of dark matter"));
    }
    let mass = |n: usize| particles.mass(n) * units.mass_msun_h();
    npy::write(&file("particle_mass"), &[count], pieces().map(|piece| piece.map(mass).collect::<Vec<f64>>()))?;
    written.push(("particle_mass".into(), "Msun/h", "mass of a particle"));
    let id = |n: usize| unmarked(particles.id[n]);
    npy::write(&file("particle_id"), &[count], pieces().map(|piece| piece.map(id).collect::<Vec<u64>>()))?;
    written.push(("particle_id".into(), "", "identity, with the mass class in bits 60 to 62"));
    Ok(written)
}

/// Writes the groups of all levels, whose covered cells hold means; returns what was written.
pub(super) fn vtkhdf(
    snapshot: &Snapshot,
    path: &Path,
    fields: &[CellField],
    progress: &dyn Fn(f64),
) -> Result<String, PipelineError> {
    let (tree, gas) = (&snapshot.state.tree, Gas::new(snapshot));
    let block = |key: &Key| key.coordinate.map(|c| c as usize * GROUP);
    let levels = (0..tree.level_count()).map(|level| vtkhdf::Level {
        width: snapshot.cell_width(level),
        blocks: tree.level(level).iter().map(block).collect(),
    });
    let levels: Vec<vtkhdf::Level> = levels.collect();
    let values = |field: usize, level: usize, n: usize| {
        let mut values = vec![0f32; GROUP * GROUP * GROUP];
        for octant in 0..OCTANTS {
            let origin = octant_origin(octant);
            let first_cell = [0, 1, 2].map(|axis| levels[level].blocks[n][axis] + origin[axis]);
            let patch = LeafPatch { group: tree.first_of_level(level) + n, octant, level, first_cell };
            for (m, cell) in patch_cells(snapshot, patch).enumerate() {
                let inside = [m % PATCH, m / PATCH % PATCH, m / (PATCH * PATCH)];
                let [i, j, k] = [0, 1, 2].map(|axis| origin[axis] + inside[axis]);
                values[(k * GROUP + j) * GROUP + i] = fields[field].value(&gas, &cell) as f32;
            }
        }
        values
    };
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    vtkhdf::write(path, GROUP, &levels, &names, &values, progress)?;
    Ok(format!("{} blocks of {} levels, {} fields", tree.group_count(), levels.len(), fields.len()))
}
