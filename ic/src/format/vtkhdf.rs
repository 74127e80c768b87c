//! VTKHDF files of overlapping meshes, which ParaView reads (VTK documentation, *VTKHDF file format*, OverlappingAMR).

use super::write_arrays;
use crate::error::IcError;
use comove_sim::parallel::Communicator;
use comove_sim::shared_file::allocate;
use hdf5::File;
use hdf5::types::FixedAscii;
use std::path::Path;

/// Blocks of one cell width, cubes of the same number of cells.
pub struct Level {
    /// Width of a cell.
    pub width: f64,
    /// First cell of each block along x, y, z, counted in cells of this width from the box's lower corner.
    pub blocks: Vec<[usize; 3]>,
}

/// Blocks whose values are computed at a time.
const AT_A_TIME: usize = 64;

/// Writes a file, a bounded number of blocks at a time.
///
/// * `side`: cells of a block along each axis
/// * `fields`: names of the fields
/// * `values`: of a field in a block of a level, by their numbers; x fastest
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError`] of a file that cannot be written; a file of that name, if any, is then untouched.
pub fn write(
    path: &Path,
    side: usize,
    levels: &[Level],
    fields: &[&str],
    values: &dyn Fn(usize, usize, usize) -> Vec<f32>,
    progress: &dyn Fn(f64),
) -> Result<(), IcError> {
    let all = fields.len() * levels.iter().map(|level| level.blocks.len()).sum::<usize>();
    let mut written = 0;
    let arrays = (0..levels.len()).flat_map(|level| (0..fields.len()).map(move |field| (level, field)));
    let prepare = |file: &File| preface(file, side, levels, fields);
    write_arrays(&Communicator::alone(), path, prepare, |file| {
        for (array, (level, field)) in arrays.enumerate() {
            let blocks = levels[level].blocks.len();
            for first in (0..blocks).step_by(AT_A_TIME) {
                let some = first..blocks.min(first + AT_A_TIME);
                written += some.len();
                let numbers: Vec<f32> = some.flat_map(|block| values(field, level, block)).collect();
                file.put(array, first * side.pow(3) * size_of::<f32>(), bytemuck::cast_slice(&numbers))?;
                progress(written as f64 / all as f64);
            }
        }
        Ok(())
    })
}

/// Writes everything but the values, and returns their places.
fn preface(file: &File, side: usize, levels: &[Level], fields: &[&str]) -> hdf5::Result<Vec<u64>> {
    let group = |name: &str| file.create_group_builder().obj_track_times(false).create(name);
    let root = group("VTKHDF")?;
    root.new_attr_builder().with_data(&[1i64, 0]).create("Version")?;
    // texts of fixed length: VTK 9.2 and 9.4 read no others
    let text = |text: &str| FixedAscii::<14>::from_ascii(text).map_err(|error| error.to_string());
    root.new_attr::<FixedAscii<14>>().create("Type")?.write_scalar(&text("OverlappingAMR")?)?;
    let xyz = FixedAscii::<3>::from_ascii("XYZ").map_err(|error| error.to_string())?;
    root.new_attr::<FixedAscii<3>>().create("GridDescription")?.write_scalar(&xyz)?;
    root.new_attr_builder().with_data(&[0f64; 3]).create("Origin")?;
    let mut places = Vec::new();
    for (n, level) in levels.iter().enumerate() {
        let name = format!("VTKHDF/Level{n}");
        group(&name)?.new_attr_builder().with_data(&[level.width; 3]).create("Spacing")?;
        let last = side - 1;
        let corners = |first: &[usize; 3]| first.map(|i| [i as i32, (i + last) as i32]);
        let boxes: Vec<i32> = level.blocks.iter().flat_map(|first| corners(first).into_iter().flatten()).collect();
        let shaped = ndarray::ArrayView2::from_shape((level.blocks.len(), 6), &boxes).expect("six numbers a block");
        file.new_dataset_builder().with_data(shaped).create(format!("{name}/AMRBox").as_str())?;
        // VTK expects all three
        for data in ["CellData", "PointData", "FieldData"] {
            group(&format!("{name}/{data}"))?;
        }
        for field in fields {
            let name = format!("{name}/CellData/{field}");
            places.push(allocate::<f32>(file, &name, &[level.blocks.len() * side.pow(3)])?);
        }
    }
    Ok(places)
}
