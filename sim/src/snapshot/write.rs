//! Writing: under a temporary name, verified, then renamed.

use super::contents::{self, Document};
use super::digest::{Stored, digest, file_digest};
use super::gamer::{self, LEVELS, TreeShape};
use super::{Snapshot, info, read};
use crate::complete_file::Temporary;
use crate::error::SimError;
use crate::host_state::HostState;
use crate::parameters::Precision;
use comove_kernels::layout::{FIELDS, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH};
use comove_kernels::point::dual_energy;
use comove_kernels::{Eos, Real};
use hdf5::file::FileAccessBuilder;
use hdf5::types::FixedAscii;
use std::fs::File;
use std::path::Path;

/// Patches of a chunk: a reader that wants a few patches loads 256 kB in single precision.
const CHUNK_PATCHES: usize = 128;

/// Writes a snapshot; see [`Snapshot::write`].
pub(super) fn write(snapshot: &Snapshot, path: &Path) -> Result<String, SimError> {
    let _phase = tracing::trace_span!(target: crate::PHASE, "snapshot").entered();
    let groups = snapshot.state.tree.group_count();
    assert_eq!(snapshot.state.fluid.len(), groups * GROUP_VALUES, "fluid values of {groups} groups");
    let potential = !snapshot.state.potential.is_empty();
    assert!(!potential || snapshot.state.potential.len() == groups * GROUP_CELLS, "potential of {groups} groups");

    snapshot.header.check()?;
    let tree = TreeShape::of(&snapshot.state.tree);
    tree.check()?;
    let document = Document::new(&snapshot.header, tree, potential);

    let io = |source| SimError::Io { path: path.into(), source };
    let temporary = Temporary::beside(path).map_err(io)?;
    write_hdf5(snapshot, &document, temporary.path()).map_err(|source| failure(path, source))?;
    let (synced, verified, whole) = std::thread::scope(|scope| {
        // waits for the disk, while the file is read back from the system's cache
        let syncing = scope.spawn(|| File::open(temporary.path()).and_then(|file| file.sync_all()));
        let (verified, whole) = rayon::join(|| read::verify(temporary.path(), path), || file_digest(temporary.path()));
        (syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), verified, whole)
    });
    synced.map_err(io)?;
    verified.map_err(|error| unwritten(path, &error))?;
    let whole = whole?;
    temporary.rename(path).map_err(io)?;
    Ok(whole)
}

/// What was just written does not read back.
fn unwritten(path: &Path, error: &SimError) -> SimError {
    let what = match error {
        SimError::Damaged { dataset, .. } => dataset.clone(),
        other => other.to_string(),
    };
    let message = format!("it does not read back as it was written ({what}): the disk is full, or it is failing");
    SimError::Io { path: path.into(), source: std::io::Error::other(message) }
}

fn failure(path: &Path, source: hdf5::Error) -> SimError {
    match system_error(&source) {
        Some(source) => SimError::Io { path: path.into(), source },
        None => SimError::Hdf5 { path: path.into(), source },
    }
}

/// The system's own word where it was the cause of what HDF5 could not do (a full disk).
pub fn system_error(error: &hdf5::Error) -> Option<std::io::Error> {
    let text = error.to_string();
    let (_, rest) = text.split_once("errno = ")?;
    rest.split(',').next()?.parse().ok().map(std::io::Error::from_raw_os_error)
}

/// Has HDF5 write data when it is told to, so that it is the writing that fails on a full disk. What it keeps back it writes
/// when a dataset is closed, where a failure is lost, and crashes the next time that the file is flushed.
pub fn at_once(fapl: &mut FileAccessBuilder) -> &mut FileAccessBuilder {
    fapl.sieve_buf_size(0).chunk_cache(1, 0, 1.0)
}

/// Writes and closes the HDF5 file.
fn write_hdf5(snapshot: &Snapshot, document: &Document, path: &Path) -> hdf5::Result<()> {
    // No locks: parallel file systems may have none, and no other process knows the temporary name.
    // No times: the same state is the same file, byte for byte, whenever it is written.
    let file = hdf5::File::with_options()
        .with_fapl(|fapl| at_once(fapl).file_locking(false))
        .with_fcpl(|fcpl| fcpl.obj_track_times(false))
        .create(path)?;
    let written = match snapshot.header.precision {
        Precision::Single => fill::<f32>(&file, snapshot, document),
        Precision::Double => fill::<f64>(&file, snapshot, document),
    };
    let flushed = written.and_then(|()| file.flush());
    let closed = file.close();
    flushed.and(closed)
}

/// Fills an empty file.
fn fill<T: Real + Stored>(file: &hdf5::File, snapshot: &Snapshot, document: &Document) -> hdf5::Result<()> {
    let (header, state) = (&snapshot.header, &snapshot.state);
    for group in ["Comove", "Info", "Tree", "GridData"] {
        file.create_group_builder().obj_track_times(false).create(group)?;
    }
    let json = |text: serde_json::Result<Vec<u8>>| text.map_err(|error| hdf5::Error::from(error.to_string().as_str()));
    text(file, contents::HEADER, &json(serde_json::to_vec(document))?)?;
    text(file, contents::RECIPE, header.recipe.as_bytes())?;
    text(file, contents::RESTART, &json(serde_json::to_vec(&header.restart))?)?;
    text(file, contents::PROVENANCE, &json(serde_json::to_vec(&header.provenance))?)?;
    attributes(&file.group("Comove")?, snapshot)?;

    compound(file, contents::KEY_INFO, &info::key_info(header, &document.tree))?;
    compound(file, contents::MAKEFILE, &info::makefile(header))?;
    compound(file, contents::INPUT_PARA, &info::input_para(header, &document.tree))?;

    let patches = state.tree.group_count() * OCTANTS;
    let corner = array(file, contents::CORNER, &[patches, 3], &gamer::corners(&state.tree))?;
    corner.new_attr::<f64>().create("Cvt2Phy")?.write_scalar(&snapshot.cell_width(LEVELS - 1))?;
    array(file, contents::SON, &[patches], &gamer::sons(&state.tree))?;

    // one field after the other takes this place: fresh memory costs as much as the copy
    let mut rows = vec![T::of(0.0); state.tree.group_count() * GROUP_CELLS];
    let shape = [patches, PATCH, PATCH, PATCH];
    for field in contents::stored_fields(document.potential) {
        let (values, stride, first) = match field.index {
            Some(index) => (&state.fluid, GROUP_VALUES, index * GROUP_CELLS),
            None => (&state.potential, GROUP_CELLS, 0),
        };
        gamer::to_patches(&mut rows, |group, cell| T::of(values[group * stride + first + cell]));
        array(file, &contents::dataset(field), &shape, &rows)?;
    }
    pressure(&mut rows, state, header.gamma, header.eta);
    array(file, contents::PRESSURE, &shape, &rows)?;
    Ok(())
}

/// The run's own pressure in file order: cold gas has it from the entropy scalar.
fn pressure<T: Real>(rows: &mut [T], state: &HostState, gamma: f64, eta: f64) {
    let eos = Eos { eta: T::of(eta), ..Eos::new(gamma) };
    gamer::to_patches(rows, |group, cell| {
        let values: [T; FIELDS] =
            std::array::from_fn(|field| T::of(state.fluid[group * GROUP_VALUES + field * GROUP_CELLS + cell]));
        dual_energy::pressure(&values, &eos)
    });
}

/// What is worth seeing without reading JSON.
fn attributes(group: &hdf5::Group, snapshot: &Snapshot) -> hdf5::Result<()> {
    let header = &snapshot.header;
    group.new_attr::<u32>().create("format_version")?.write_scalar(&contents::FORMAT)?;
    group.new_attr::<FixedAscii<16>>().create("role")?.write_scalar(&ascii::<16>(header.role.name())?)?;
    group.new_attr::<f64>().create("a")?.write_scalar(&header.a)?;
    group.new_attr::<f64>().create("time")?.write_scalar(&header.time)?;
    group.new_attr::<u64>().create("step")?.write_scalar(&header.step)?;
    let hash = digest(header.recipe.as_bytes());
    group.new_attr::<FixedAscii<64>>().create("recipe_hash")?.write_scalar(&ascii::<64>(&hash)?)
}

/// A short string for an attribute.
fn ascii<const N: usize>(text: &str) -> hdf5::Result<FixedAscii<N>> {
    FixedAscii::from_ascii(text).map_err(|error| hdf5::Error::from(error.to_string().as_str()))
}

/// A text as its bytes: read back without trust in the file's string lengths.
fn text(file: &hdf5::File, name: &str, text: &[u8]) -> hdf5::Result<()> {
    array(file, name, &[text.len()], text).map(drop)
}

/// A scalar compound with its digest.
fn compound<T: Stored>(file: &hdf5::File, name: &str, value: &T) -> hdf5::Result<()> {
    let dataset = file.new_dataset::<T>().packed(true).create(name)?;
    dataset.write_scalar(value)?;
    label(&dataset, &digest(std::slice::from_ref(value)))
}

/// An array with its digest; cell data is chunked by patches.
fn array<T: Stored>(file: &hdf5::File, name: &str, shape: &[usize], values: &[T]) -> hdf5::Result<hdf5::Dataset> {
    let builder = file.new_dataset::<T>().shape(shape);
    let dataset = match *shape {
        [patches, PATCH, PATCH, PATCH] => builder.chunk([patches.min(CHUNK_PATCHES), PATCH, PATCH, PATCH]),
        _ => builder,
    }
    .create(name)?;
    let (digest, written) = rayon::join(|| digest(values), || dataset.write_raw(values));
    written?;
    label(&dataset, &digest)?;
    Ok(dataset)
}

/// Notes a dataset's digest.
fn label(dataset: &hdf5::Dataset, digest: &str) -> hdf5::Result<()> {
    dataset.new_attr::<FixedAscii<64>>().create(contents::DIGEST)?.write_scalar(&ascii::<64>(digest)?)
}
