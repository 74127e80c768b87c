//! Writing: under a temporary name, by all ranks, block by block as owners send their groups; verified, then renamed.

use super::column::{Column, ascii, label};
use super::contents::{self, Document};
use super::digest::{BlockDigests, Stored, digest, file_digest};
use super::gamer::{self, LEVELS, TreeShape};
use super::{Snapshot, SnapshotHeader, info, particles, read};
use crate::dark_matter::{self, HostParticles};
use crate::error::SimError;
use crate::gas::fields::{Field, Storage};
use crate::io::blocks::{self, Blocks};
use crate::io::complete_file::Temporary;
use crate::io::shared_file::{self, SharedFile, allocate, failure};
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parameters::Precision;
use comove_kernels::layout::{FIELDS, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH};
use comove_kernels::point::dual_energy;
use comove_kernels::{Eos, Real};
use hdf5::types::FixedAscii;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A snapshot that is written under a temporary name, and goes when it is dropped.
#[derive(Debug)]
pub struct Unverified {
    temporary: Temporary,
    path: PathBuf,
}

impl Unverified {
    /// Brings the file to disk, reads it back, and gives it its name. Returns the BLAKE3 digest (hex) of the whole file.
    ///
    /// # Errors
    /// [`SimError::Io`], also when the file does not read back as written. A file of that name, if any, is then untouched.
    pub fn complete(self) -> Result<String, SimError> {
        let _phase = tracing::trace_span!(target: crate::PHASE, "snapshot").entered();
        let Self { temporary, path } = self;
        let io = |source| SimError::Io { path: path.clone(), source };
        let (synced, verified, whole) = std::thread::scope(|scope| {
            // waits for the disk, while the file is read back from the system's cache
            let syncing = scope.spawn(|| File::open(temporary.path()).and_then(|file| file.sync_all()));
            let verify = || read::verify(temporary.path(), &path);
            let (verified, whole) = rayon::join(verify, || file_digest(temporary.path()));
            (syncing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), verified, whole)
        });
        synced.map_err(io)?;
        verified.map_err(|error| unwritten(&path, &error))?;
        let whole = whole?;
        temporary.rename(&path).map_err(io)?;
        Ok(whole)
    }
}

/// Writes a snapshot by the ranks that have its groups; see [`Snapshot::write_by`].
///
/// * `block`: groups of a block
pub(super) fn write(
    snapshot: &Snapshot,
    communicator: &Communicator,
    path: &Path,
    block: usize,
) -> Result<Option<Unverified>, SimError> {
    let _phase = tracing::trace_span!(target: crate::PHASE, "snapshot").entered();
    let HostState { tree, fluid, potential, scalars, dark_matter, particles } = &snapshot.state;
    let found = particles.as_ref().map(|particles| particles.header_of_all(communicator));
    assert_eq!(found, snapshot.header.dark_matter, "the particles that the header has");
    let groups = tree.group_count();
    let gas = snapshot.header.fields.has_gas();
    assert_eq!(fluid.len(), if gas { groups * GROUP_VALUES } else { 0 }, "fluid values of {groups} groups");
    assert_eq!(scalars.len(), snapshot.header.fields.scalars().len(), "as many scalars as the header has");
    assert!(scalars.iter().all(|scalar| scalar.len() == groups * GROUP_CELLS), "scalars of {groups} groups");
    let of_cells = |values: &Vec<f64>| values.is_empty() || values.len() == groups * GROUP_CELLS;
    assert!(of_cells(dark_matter), "dark matter of {groups} groups");
    assert!(potential.is_empty() || potential.len() == groups * GROUP_CELLS, "potential of {groups} groups");
    match snapshot.header.precision {
        Precision::Single => write_as::<f32>(snapshot, communicator, path, block),
        Precision::Double => write_as::<f64>(snapshot, communicator, path, block),
    }
}

fn write_as<T: Real + Stored>(
    snapshot: &Snapshot,
    communicator: &Communicator,
    path: &Path,
    block: usize,
) -> Result<Option<Unverified>, SimError> {
    let Snapshot { header, state } = snapshot;
    // a rank may have no groups
    let potential = communicator.any(!state.potential.is_empty());
    let density = communicator.any(!state.dark_matter.is_empty());
    let stored: Vec<Field> = header.fields.stored(density, potential).collect();
    let pressure_of_gas = header.fields.has_gas().then_some(None);
    let fields: Vec<Option<&Field>> = stored.iter().map(Some).chain(pressure_of_gas).collect();
    let (blocks, tree) = Blocks::of_shares(communicator, &state.tree, block);
    let gathered = match &state.particles {
        Some(particles) if communicator.size() > 1 => dark_matter::gather(communicator, particles, tree.as_ref()),
        _ => None,
    };
    let particles = gathered.as_ref().or(state.particles.as_ref());
    let file = SharedFile::create(communicator, path, |file| {
        let tree = tree.expect("the first rank has the whole tree");
        begin::<T>(file, path, header, &tree, &fields, particles)
    })?;
    drop(gathered);

    let eos = Eos { eta: T::from_f64(header.eta), ..Eos::new(header.gamma) };
    let pack = |field: usize, groups: Range<usize>, rows: &mut [T]| match fields[field] {
        Some(field) => {
            let (array, values, offset) = state.values(field.storage);
            let first = groups.start * values + offset;
            gamer::to_patches(rows, |group, cell| T::from_f64(array[first + group * values + cell]));
        }
        None => pressure(rows, &state.fluid[groups.start * GROUP_VALUES..], &eos),
    };
    let bytes_of = |groups: usize| groups * GROUP_CELLS * <T as Stored>::BYTES;
    let mut digests = BlockDigests::new(bytes_of(blocks.groups()), bytes_of(block));
    let collected = blocks.collect(communicator, fields.len(), pack, |field, number, rows: &[T]| {
        let bytes = bytemuck::cast_slice(rows);
        rayon::join(|| file.put(field, number * bytes_of(block), bytes), || digests.add(number, bytes)).0
    });
    let temporary = file.close(communicator, collected)?;
    let digests = digests.whole(communicator, fields.len());
    let labelled = temporary.zip(digests).map(|(temporary, digests)| {
        let label = |file: &hdf5::File| label_fields(file, &fields, &digests);
        shared_file::amend(&temporary, path, label).map(|()| Unverified { temporary, path: path.into() })
    });
    collective_result(communicator, labelled.transpose())
}

/// The run's own pressure in file order: cold gas has it from the entropy scalar.
fn pressure<T: Real>(rows: &mut [T], fluid: &[f64], eos: &Eos<T>) {
    gamer::to_patches(rows, |group, cell| {
        let values: [T; FIELDS] =
            std::array::from_fn(|field| T::from_f64(fluid[group * GROUP_VALUES + field * GROUP_CELLS + cell]));
        dual_energy::pressure(&values, eos)
    });
}

/// The dataset of a field, or of the pressure.
fn dataset(field: Option<&Field>) -> String {
    field.map_or_else(|| contents::PRESSURE.into(), contents::dataset)
}

/// Writes everything but the fields, and returns the places of these.
fn begin<T: Stored>(
    file: &hdf5::File,
    path: &Path,
    header: &SnapshotHeader,
    tree: &Octree,
    fields: &[Option<&Field>],
    dark_matter: Option<&HostParticles>,
) -> Result<Vec<u64>, SimError> {
    header.check()?;
    let tree_shape = TreeShape::of(tree);
    tree_shape.check()?;
    let has = |storage: Storage| fields.iter().flatten().any(|field| field.storage == storage);
    let document = Document::new(header, tree_shape, has(Storage::DarkMatter), has(Storage::Potential));
    let shape = [tree.group_count() * OCTANTS, PATCH, PATCH, PATCH];
    let places = || fields.iter().map(|&field| allocate::<T>(file, &dataset(field), &shape)).collect();
    let put_particles = || dark_matter.map_or(Ok(()), |dark_matter| particles::write(file, dark_matter, header, tree));
    preface(file, header, &document, tree)
        .and_then(|()| put_particles())
        .and_then(|()| places())
        .map_err(|source| failure(path, source))
}

/// Notes the digests of the fields.
fn label_fields(file: &hdf5::File, fields: &[Option<&Field>], digests: &[String]) -> hdf5::Result<()> {
    fields.iter().zip(digests).try_for_each(|(&field, digest)| label(&file.dataset(&dataset(field))?, digest))
}

/// What was just written does not read back.
fn unwritten(path: &Path, error: &SimError) -> SimError {
    let what = match error {
        SimError::Damaged { dataset, .. } => dataset.clone(),
        other => other.to_string(),
    };
    let message = format!("its content differs from what was written ({what}): the disk is full or failing");
    SimError::Io { path: path.into(), source: std::io::Error::other(message) }
}

/// Fills an empty file with everything but the fields.
fn preface(file: &hdf5::File, header: &SnapshotHeader, document: &Document, tree: &Octree) -> hdf5::Result<()> {
    for group in ["Comove", "Info", "Tree", "GridData"] {
        file.create_group_builder().obj_track_times(false).create(group)?;
    }
    let json = |text: serde_json::Result<Vec<u8>>| text.map_err(|error| hdf5::Error::from(error.to_string().as_str()));
    text(file, contents::HEADER, &json(serde_json::to_vec(document))?)?;
    text(file, contents::RECIPE, header.recipe.as_bytes())?;
    text(file, contents::RESTART, &json(serde_json::to_vec(&header.restart))?)?;
    text(file, contents::PROVENANCE, &json(serde_json::to_vec(&header.provenance))?)?;
    attributes(&file.group("Comove")?, header)?;

    compound(file, contents::KEY_INFO, &info::key_info(header, &document.tree))?;
    compound(file, contents::MAKEFILE, &info::makefile(header))?;
    compound(file, contents::INPUT_PARA, &info::input_para(header, &document.tree))?;

    let patches = tree.group_count() * OCTANTS;
    let keys: Vec<Key> = tree.keys().collect();
    let of_groups = |name: &str, shape: &[usize], rows: &dyn Fn(&[Key]) -> Vec<i32>| {
        let mut column = Column::create::<i32>(file, name, shape)?;
        keys.chunks(blocks::GROUPS).try_for_each(|keys| column.append(&rows(keys)))?;
        column.label()
    };
    let corner = of_groups(contents::CORNER, &[patches, 3], &|keys| gamer::corners(keys.iter().copied()))?;
    corner.new_attr::<f64>().create("Cvt2Phy")?.write_scalar(&header.cell_width(tree, LEVELS - 1))?;
    of_groups(contents::SON, &[patches], &|keys| gamer::sons(tree, keys.iter().copied()))?;
    Ok(())
}

/// What is worth seeing without reading JSON.
fn attributes(group: &hdf5::Group, header: &SnapshotHeader) -> hdf5::Result<()> {
    group.new_attr::<u32>().create("format_version")?.write_scalar(&contents::FORMAT)?;
    group.new_attr::<FixedAscii<16>>().create("role")?.write_scalar(&ascii::<16>(header.role.name())?)?;
    group.new_attr::<f64>().create("a")?.write_scalar(&header.a)?;
    group.new_attr::<f64>().create("time")?.write_scalar(&header.time)?;
    group.new_attr::<u64>().create("step")?.write_scalar(&header.step)?;
    let hash = digest(header.recipe.as_bytes());
    group.new_attr::<FixedAscii<64>>().create("recipe_hash")?.write_scalar(&ascii::<64>(&hash)?)
}

/// A text as its bytes: read back without trust in the file's string lengths.
fn text(file: &hdf5::File, name: &str, text: &[u8]) -> hdf5::Result<()> {
    let mut column = Column::create::<u8>(file, name, &[text.len()])?;
    column.append(text)?;
    column.label().map(drop)
}

/// A scalar compound with its digest.
fn compound<T: Stored>(file: &hdf5::File, name: &str, value: &T) -> hdf5::Result<()> {
    let dataset = file.new_dataset::<T>().packed(true).create(name)?;
    dataset.write_scalar(value)?;
    label(&dataset, &digest(std::slice::from_ref(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gas::fields::FieldSet;
    use crate::mesh::PERIODIC;
    use crate::parallel::communicator::FIRST;
    use crate::parallel::on_ranks;
    use crate::parallel::owners::Owners;
    use crate::parameters::Coordinates;

    /// What a rank owns of a state.
    fn share(whole: &Snapshot, owners: &Owners, rank: usize) -> Snapshot {
        let HostState { tree, fluid, potential, scalars, .. } = &whole.state;
        let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
        let own = Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect());
        let places: Vec<usize> = own.keys().map(|key| tree.index(key).unwrap()).collect();
        let of = |values: &[f64], length: usize| {
            places.iter().flat_map(|g| values[g * length..][..length].iter().copied()).collect()
        };
        let scalars = scalars.iter().map(|scalar| of(scalar, GROUP_CELLS)).collect();
        let (fluid, potential) = (of(fluid, GROUP_VALUES), of(potential, GROUP_CELLS));
        let state = HostState { fluid, potential, scalars, ..HostState::zeros(own) };
        Snapshot { state, header: whole.header.clone() }
    }

    /// 96 groups on three levels, no two cells alike.
    fn whole(precision: Precision) -> Snapshot {
        let finer = (0..64).map(|c| Key::new(1, [c % 4, c / 4 % 4, c / 16]));
        let finest = (0..24).map(|c| Key::new(2, [c % 2, c / 2 % 2, c / 4]));
        let mut state = HostState::zeros(Octree::with_groups([2; 3], PERIODIC, finer.chain(finest)));
        state.potential = vec![0.0; state.tree.group_count() * GROUP_CELLS];
        state.fluid.iter_mut().enumerate().for_each(|(n, value)| *value = 1.0 + (n % 8_388_593) as f64 / 8_388_608.0);
        state.potential.iter_mut().enumerate().for_each(|(n, value)| *value = -1.0 - n as f64 / 8_388_608.0);
        let mut header = SnapshotHeader { precision, ..SnapshotHeader::initial(Coordinates::Plain) };
        if precision == Precision::Double {
            header.fields = FieldSet::with_scalars(["metals", "dye"]).unwrap();
            state.scalars = [3.0, 5.0].map(|first| state.potential.iter().map(|value| first - value).collect()).into();
        }
        Snapshot { header, state }
    }

    /// One file, whoever has the groups and however many are sent at a time.
    #[test]
    fn the_bytes_do_not_depend_on_ranks_and_blocks() {
        let folder = tempfile::tempdir().unwrap();
        for precision in [Precision::Single, Precision::Double] {
            let whole = whole(precision);
            let path = folder.path().join("alone.h5");
            let alone = whole.write(&path).unwrap();
            let root = whole.state.tree.root_groups();
            // the last leaves a rank without groups
            let teams = [
                (Owners::even(2, root), 16),
                (Owners::scattered(3, root, 7), 64),
                (Owners::scattered(2, root, 1), blocks::GROUPS),
                (Owners::even(9, root), 32),
            ];
            for (owners, block) in teams {
                let path = folder.path().join("shared.h5");
                let written = on_ranks(owners.ranks(), |communicator| {
                    let own = share(&whole, &owners, communicator.rank());
                    let file = write(&own, &communicator, &path, block).unwrap();
                    file.map(|file| file.complete().unwrap())
                });
                assert_eq!(written[FIRST].as_ref(), Some(&alone), "{owners:?} in blocks of {block}");
                assert!(written[1..].iter().all(Option::is_none));
            }
        }
    }

    /// What the first rank cannot write no rank has written, and the folder is as it was.
    #[test]
    fn all_ranks_say_that_a_file_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let whole = whole(Precision::Single);
        let owners = Owners::scattered(3, whole.state.tree.root_groups(), 3);
        let mut no_header = whole.clone();
        no_header.header.time = f64::NAN;
        let missing = folder.path().join("missing/x.h5");
        for (snapshot, path, says) in
            [(&whole, &missing, "No such file"), (&no_header, &folder.path().join("x.h5"), "time")]
        {
            let ends = on_ranks(3, |communicator| {
                let own = share(snapshot, &owners, communicator.rank());
                own.write_by(&communicator, path).expect_err("no file").to_string()
            });
            assert!(ends.iter().all(|end| end.contains(says)), "{ends:?}");
            assert!(ends[1..].iter().all(|end| end.starts_with("rank 0: ")), "{ends:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
