//! The snapshot file: bits come back, the layout is the one of docs/snapshot-format.md, damage is found and named.

use comove_kernels::layout::{FIELDS, GROUP, GROUP_CELLS, OCTANTS, cell};
use comove_sim::mesh::{CLOSED, PERIODIC};
use comove_sim::parallel::Communicator;
use comove_sim::snapshot::file_digest;
use comove_sim::{Coordinates, Cosmology, HostState, Key, Octree, Precision, Role, SimError, Snapshot, SnapshotHeader};
use std::fs;
use std::path::{Path, PathBuf};

/// Numbers without order, from their index (SplitMix64).
fn scrambled(index: u64) -> f64 {
    let mut x = index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

/// Three levels on a root of 2 × 1 × 3 groups.
fn tree() -> Octree {
    let level_1 = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1], [3, 1, 5], [2, 0, 3]].map(|c| Key::new(1, c));
    let level_2 = [[0, 0, 0], [2, 1, 0], [7, 3, 11], [1, 3, 1]].map(|c| Key::new(2, c));
    Octree::with_groups([2, 1, 3], PERIODIC, level_1.into_iter().chain(level_2))
}

fn header(precision: Precision) -> SnapshotHeader {
    SnapshotHeader {
        role: Role::Checkpoint,
        a: 0.1 + 0.2 - 0.05,
        time: 1.0 / 3.0,
        step: u64::from(u32::MAX) + 7,
        box_length: 20.0,
        coordinates: Coordinates::Comoving,
        cosmology: Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)),
        gamma: 5.0 / 3.0,
        mean_molecular_weight: 1.22,
        eta: 1e-2,
        precision,
        fields: comove_sim::fields::FieldSet::default(),
        restart: serde_json::json!({ "dt": 0.1 + 0.2, "ledger": [1e-310, -0.0, 12345678901234567u64] }),
        recipe: "const A = \"Ω\";\n".into(),
        provenance: serde_json::json!({ "version": "0.1.0" }),
        dark_matter: None,
    }
}

/// Every field random and different along x, y, z; positive density and energy; some awkward numbers.
fn snapshot(precision: Precision) -> Snapshot {
    let mut state = HostState::zeros(tree());
    state.potential = vec![0.0; state.tree.group_count() * GROUP_CELLS];
    let round = |x: f64| if precision == Precision::Single { f64::from(x as f32) } else { x };
    for (i, value) in state.fluid.iter_mut().enumerate() {
        let offset = if matches!(i / GROUP_CELLS % FIELDS, 1..=3) { -0.5 } else { 0.1 };
        *value = round(scrambled(i as u64) + offset);
    }
    for (i, value) in state.potential.iter_mut().enumerate() {
        *value = round(scrambled(i as u64 + (1 << 40)) - 0.5);
    }
    let denormal = if precision == Precision::Single { f64::from(f32::from_bits(3)) } else { f64::from_bits(3) };
    state.potential[..5].copy_from_slice(&[-0.0, denormal, -denormal, f64::INFINITY, round(1e30)]);
    state.fluid[GROUP_CELLS..GROUP_CELLS + 2].copy_from_slice(&[-0.0, denormal]);
    Snapshot { header: header(precision), state }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn written(folder: &Path, snapshot: &Snapshot) -> PathBuf {
    let path = folder.join("snapshot.h5");
    snapshot.write(&path).unwrap();
    path
}

fn names_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn bits_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for precision in [Precision::Single, Precision::Double] {
        let snapshot = snapshot(precision);
        let path = folder.path().join("snapshot.h5");
        let digest = snapshot.write(&path).unwrap();
        assert_eq!(digest, file_digest(&path).unwrap());
        assert_eq!(digest, blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string());
        assert_eq!(names_in(folder.path()), ["snapshot.h5"]);

        let back = Snapshot::read(&path).unwrap();
        assert_eq!(back.header, snapshot.header);
        let restart = |s: &Snapshot| serde_json::to_string(&s.header.restart).unwrap();
        assert_eq!(restart(&back), restart(&snapshot)); // tells −0 from 0
        assert_eq!(back.state.tree, snapshot.state.tree);
        assert_eq!(bits(&back.state.fluid), bits(&snapshot.state.fluid));
        assert_eq!(bits(&back.state.potential), bits(&snapshot.state.potential));
        assert_eq!(Snapshot::read_header(&path).unwrap(), snapshot.header);
        assert_eq!(digest, snapshot.write(&path).unwrap(), "the file is a function of the snapshot");
    }
}

/// The root alone, without potential, in non-comoving coordinates with outflow boundaries.
#[test]
fn plain_coordinates_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut header = header(Precision::Double);
    (header.coordinates, header.cosmology, header.a) = (Coordinates::Plain, None, 1.0);
    (header.recipe, header.restart, header.role) = (String::new(), serde_json::Value::Null, Role::Initial);
    let mut state = HostState::zeros(Octree::new([1, 1, 1], CLOSED));
    state.fluid.iter_mut().enumerate().for_each(|(i, value)| *value = i as f64);
    let path = written(folder.path(), &Snapshot { header: header.clone(), state: state.clone() });
    let back = Snapshot::read(&path).unwrap();
    assert_eq!((back.header, back.state.tree), (header, state.tree));
    assert_eq!((back.state.fluid, back.state.potential.len()), (state.fluid, 0));
    assert!(!hdf5::File::open(&path).unwrap().link_exists("GridData/Pote"));
}

/// The file seen without our reader: rows found by their corners, cells by their positions.
#[test]
fn layout_is_gamers() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(Precision::Double);
    let file = hdf5::File::open(written(folder.path(), &snapshot)).unwrap();
    let tree = &snapshot.state.tree;
    let corner = file.dataset("Tree/Corner").unwrap();
    let corners = corner.read_2d::<i32>().unwrap();
    let sons = file.dataset("Tree/Son").unwrap().read_1d::<i32>().unwrap();
    let finest = corner.attr("Cvt2Phy").unwrap().read_scalar::<f64>().unwrap();
    let pressure = file.dataset("GridData/Pres").unwrap().read::<f64, ndarray::Ix4>().unwrap();
    let fields = ["Dens", "MomX", "MomY", "MomZ", "Engy", "Entropy", "Pote"]
        .map(|name| file.dataset(&format!("GridData/{name}")).unwrap().read::<f64, ndarray::Ix4>().unwrap());
    assert_eq!(fields[0].shape(), [8 * tree.group_count(), 8, 8, 8]);

    let offsets = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]];
    let mut row = 0;
    for level in 0..tree.level_count() {
        for _ in tree.level(level) {
            let width = snapshot.cell_width(level);
            let first = row;
            for offset in offsets {
                let position = |axis: usize| f64::from(corners[[row, axis]]) * finest;
                let at = [0, 1, 2].map(|axis| (position(axis) / width).round() as usize);
                let origin = [0, 1, 2].map(|axis| f64::from(corners[[first, axis]]) * finest / width);
                assert_eq!(at, [0, 1, 2].map(|axis| origin[axis].round() as usize + 8 * offset[axis]));
                let key = Key::new(level as u8, at.map(|n| (n / GROUP) as u32));
                let group = tree.index(key).unwrap();
                for (x, y, z) in [(0, 0, 0), (1, 2, 3), (7, 6, 5), (3, 0, 7)] {
                    let [i, j, k] = [at[0] + x, at[1] + y, at[2] + z].map(|n| n % GROUP);
                    for (field, stored) in fields[..6].iter().enumerate() {
                        assert_eq!(stored[[row, z, y, x]], snapshot.state.field(group, field)[[k, j, i]]);
                    }
                    let potential = snapshot.state.potential[group * GROUP_CELLS + cell(i, j, k)];
                    assert_eq!(fields[6][[row, z, y, x]].to_bits(), potential.to_bits());
                    let u: [f64; 6] = std::array::from_fn(|field| fields[field][[row, z, y, x]]);
                    let expected = u[5] * u[0].powf(2.0 / 3.0);
                    // two orders of a few operations on numbers of order one
                    let difference = (pressure[[row, z, y, x]] - expected).abs();
                    assert!(difference < 1e-13 * (u[4] + expected), "{difference:e}");
                }
                let octant = offset[0] + 2 * offset[1] + 4 * offset[2];
                let child = tree.index(key.child(octant)).map_or(-1, |child| (8 * child) as i32);
                assert_eq!(sons[row], child);
                row += 1;
            }
        }
    }
    assert_eq!(row, 8 * tree.group_count());
    assert!(file.dataset("GridData/Dens").unwrap().offset().is_some(), "fields in one piece");
}

/// Every digest is BLAKE3 of the dataset's bytes as they lie in the file.
#[test]
fn digests_are_of_the_stored_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &snapshot(Precision::Single));
    let digests = Snapshot::digests(&path).unwrap();
    assert_eq!(digests.len(), 17);
    let file = hdf5::File::open(&path).unwrap();
    let of = |name: &str| digests.iter().find(|(n, _)| n == name).unwrap().1.clone();
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let density = file.dataset("GridData/Dens").unwrap().read_raw::<f32>().unwrap();
    assert_eq!(of("GridData/Dens"), hash(&density.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()));
    let header = file.dataset("Comove/header").unwrap().read_raw::<u8>().unwrap();
    assert_eq!(of("Comove/header"), hash(&header));
    assert_eq!(of("Info/Makefile"), hash(&1i32.to_le_bytes()));
    assert_eq!(file.group("Comove").unwrap().attr("a").unwrap().read_scalar::<f64>().unwrap(), 0.1 + 0.2 - 0.05);

    // what a run computed is told apart from where it ran
    let mut elsewhere = snapshot(Precision::Single);
    elsewhere.header.provenance = serde_json::json!({ "host": "another" });
    elsewhere.state.potential[77] += 1.0;
    let path = folder.path().join("elsewhere.h5");
    elsewhere.write(&path).unwrap();
    let changed: Vec<_> = digests.iter().zip(Snapshot::digests(&path).unwrap()).filter(|(a, b)| *a != b).collect();
    let changed: Vec<&str> = changed.iter().map(|(a, _)| a.0.as_str()).collect();
    assert_eq!(changed, ["Comove/provenance", "GridData/Pote"]);
}

/// The digest of the content is of what a run computed; recipe, provenance and the format of the file are no part of it.
#[test]
fn content_is_what_a_run_computed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.h5");
    let content = |change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot(Precision::Single);
        change(&mut snapshot);
        snapshot.write(&path).unwrap();
        (Snapshot::content_digest(&path).unwrap(), file_digest(&path).unwrap())
    };
    let (same, file) = content(&|_| ());
    let (elsewhere, other_file) = content(&|snapshot| {
        snapshot.header.recipe = "// the same".into();
        snapshot.header.provenance = serde_json::json!({ "host": "another" });
    });
    assert!(same == elsewhere && file != other_file);
    let changes: [&dyn Fn(&mut Snapshot); 7] = [
        &|s| s.header.role = Role::Output,
        &|s| s.header.a += 1e-15,
        &|s| s.header.cosmology.as_mut().unwrap().omega_b = 0.046,
        &|s| s.header.restart = serde_json::json!({ "dt": 0.3 }),
        &|s| s.state.fluid[7] += 1.0,
        &|s| s.state.potential[77] += 1.0,
        &|s| s.state.tree = Octree::with_groups([2, 1, 3], CLOSED, s.state.tree.keys().filter(|key| key.level > 0)),
    ];
    for (n, change) in changes.iter().enumerate() {
        assert_ne!(content(change).0, same, "change {n}");
    }
}

/// One wrong byte in any dataset is found and named.
#[test]
fn flipped_bytes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &snapshot(Precision::Single));
    let names: Vec<String> = Snapshot::digests(&path).unwrap().into_iter().map(|(name, _)| name).collect();
    let offsets: Vec<u64> = {
        let file = hdf5::File::open(&path).unwrap();
        let offset = |name: &String| {
            let dataset = file.dataset(name).unwrap();
            dataset.offset().unwrap_or_else(|| dataset.chunk_info(0).unwrap().addr)
        };
        names.iter().map(offset).collect()
    };
    let good = fs::read(&path).unwrap();
    for (name, offset) in names.iter().zip(offsets) {
        let mut bytes = good.clone();
        bytes[offset as usize + 2] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        let error = Snapshot::read(&path).unwrap_err();
        assert!(matches!(&error, SimError::Damaged { dataset, .. } if dataset == name), "{name}: {error}");
        assert!(error.to_string().contains("snapshot.h5") && error.to_string().contains(name.as_str()), "{error}");
    }
}

/// A byte changed anywhere, or a file cut anywhere, is refused or harmless (padding); nothing panics.
#[test]
fn any_damage_is_an_error_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = snapshot(Precision::Single);
    let tree = Octree::with_groups([1, 1, 1], PERIODIC, [Key::new(1, [1, 0, 1])]);
    small.state = HostState { potential: Vec::new(), ..HostState::zeros(tree) };
    let path = written(folder.path(), &small);
    let good = fs::read(&path).unwrap();
    let same = |state: &HostState| state.tree == small.state.tree && bits(&state.fluid) == bits(&small.state.fluid);
    for i in 0..400 {
        let mut bytes = good.clone();
        // half of them where the structure lies
        let within = if i % 2 == 0 { bytes.len() } else { 16384 };
        let at = (scrambled(i) * within as f64) as usize;
        bytes[at] ^= 1 << (i % 8);
        fs::write(&path, &bytes).unwrap();
        match Snapshot::read(&path) {
            Ok(back) => assert!(same(&back.state) && back.header == small.header, "byte {at}"),
            Err(SimError::Damaged { .. } | SimError::NotASnapshot { .. }) => (),
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
    for length in (0..good.len()).step_by(good.len() / 40) {
        fs::write(&path, &good[..length]).unwrap();
        let error = Snapshot::read(&path).unwrap_err();
        assert!(matches!(error, SimError::Damaged { .. } | SimError::NotASnapshot { .. }), "{length}: {error}");
    }
}

#[test]
fn other_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.h5");
    let refused = |what: &str| {
        let error = Snapshot::read(&path).unwrap_err().to_string();
        assert!(error.contains("other.h5") && error.contains(what), "{error}");
        assert_eq!(error, Snapshot::read_header(&path).unwrap_err().to_string());
    };
    assert!(matches!(Snapshot::read(&path), Err(SimError::Io { .. })));
    refused("No such file");
    fs::write(&path, "").unwrap();
    refused("empty");
    fs::write(&path, "a text that is no HDF5 file").unwrap();
    refused("not an HDF5 file");
    drop(hdf5::File::create(&path).unwrap());
    refused("no group Comove");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused("not a regular file");
}

#[test]
fn missing_and_foreign_parts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.h5");
    let refused = |what: &str, change: &dyn Fn(&hdf5::File)| {
        snapshot(Precision::Single).write(&path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        change(&file);
        file.close().unwrap();
        let error = Snapshot::read(&path).unwrap_err();
        assert!(matches!(error, SimError::NotASnapshot { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    refused("no dataset GridData/MomY", &|file| file.unlink("GridData/MomY").unwrap());
    refused("no dataset Comove/restart", &|file| file.unlink("Comove/restart").unwrap());
    refused("GridData/Engy has the shape [5]", &|file| {
        file.unlink("GridData/Engy").unwrap();
        file.new_dataset::<f32>().shape(5).create("GridData/Engy").unwrap();
    });
    refused("Tree/Son has another type", &|file| {
        file.unlink("Tree/Son").unwrap();
        file.new_dataset::<u32>().shape(16 * OCTANTS).create("Tree/Son").unwrap();
    });
    refused("format 3", &|file| set_format(file, 3));
}

fn set_format(file: &hdf5::File, format: u32) {
    file.group("Comove").unwrap().attr("format_version").unwrap().write_scalar(&format).unwrap();
}

/// Replaces a part of the header and gives the new one the right digest.
fn replace_in_header(file: &hdf5::File, from: &str, to: &str) {
    let bytes = file.dataset("Comove/header").unwrap().read_raw::<u8>().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let changed = text.replace(from, to);
    assert_ne!(text, changed, "{from}");
    file.unlink("Comove/header").unwrap();
    let dataset = file.new_dataset_builder().with_data(changed.as_bytes()).create("Comove/header").unwrap();
    let digest = blake3::hash(changed.as_bytes()).to_hex().to_string();
    let digest = hdf5::types::FixedAscii::<64>::from_ascii(&digest).unwrap();
    dataset.new_attr::<hdf5::types::FixedAscii<64>>().create("blake3").unwrap().write_scalar(&digest).unwrap();
}

/// Files of format 1 name one boundary for all faces.
#[test]
fn files_of_format_1_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.h5");
    let mut snapshot = snapshot(Precision::Single);
    for (periodic, axes, name) in
        [(PERIODIC, "[true,true,true]", "\"periodic\""), (CLOSED, "[false,false,false]", "\"outflow\"")]
    {
        let tree = &snapshot.state.tree;
        let refined: Vec<Key> = tree.keys().filter(|key| key.level > 0).collect();
        snapshot.state.tree = Octree::with_groups(tree.root_groups(), periodic, refined);
        snapshot.write(&path).unwrap();
        let content = Snapshot::content_digest(&path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        replace_in_header(&file, &format!("\"periodic\":{axes}"), &format!("\"boundary\":{name}"));
        set_format(&file, 1);
        file.close().unwrap();
        let read = Snapshot::read(&path).unwrap();
        assert_eq!(read.state.tree, snapshot.state.tree);
        assert_eq!(read.state.fluid, snapshot.state.fluid);
        assert_eq!(Snapshot::content_digest(&path).unwrap(), content);
    }
}

/// A header with right digests that asks for what no file holds: refused before anything is allocated.
#[test]
fn hostile_headers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.h5");
    for (from, to) in [
        ("\"groups\":[6,6,4]", "\"groups\":[6,6,9999999]"),
        ("\"groups\":[6,6,4]", "\"groups\":[6,5,5]"),
        ("\"groups\":[6,6,4]", "\"groups\":[18446744073709551615,1]"),
        ("\"groups\":[6,6,4]", "\"groups\":[]"),
        ("\"root_groups\":[2,1,3]", "\"root_groups\":[3,1,2]"),
        ("\"root_groups\":[2,1,3]", "\"root_groups\":[4294967295,4294967295,4294967295]"),
        ("\"precision\":\"single\"", "\"precision\":\"double\""),
        ("\"a\":0.25", "\"a\":-0.25"),
        ("\"box_length\":20.0", "\"box_length\":null"),
        ("{\"format\"", "[{\"format\""),
    ] {
        snapshot(Precision::Single).write(&path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        replace_in_header(&file, from, to);
        file.close().unwrap();
        let error = Snapshot::read(&path).unwrap_err();
        assert!(matches!(error, SimError::NotASnapshot { .. }), "{to}: {error}");
    }
}

/// A file holds no times: the same snapshot is the same file, whenever it is written.
#[test]
fn the_same_snapshot_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(Precision::Single);
    let path = folder.path().join("snapshot.h5");
    let digest = snapshot.write(&path).unwrap();
    // HDF5 would note whole seconds
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(snapshot.write(&path).unwrap(), digest);
}

/// A write that cannot succeed says why and leaves the folder as it was.
#[test]
fn failed_writes_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let good = snapshot(Precision::Single);
    let path = written(folder.path(), &good);
    let digest = file_digest(&path).unwrap();

    let mut bad = good.clone();
    bad.header.time = f64::NAN;
    assert!(matches!(bad.write(&path), Err(SimError::Parameter { name: "time", .. })));
    let mut bad = good.clone();
    bad.header.cosmology = None;
    assert!(matches!(bad.write(&path), Err(SimError::Parameter { name: "cosmology", .. })));

    // a folder stands where the file would go: found only at the rename, when everything is written
    let taken = folder.path().join("taken.h5");
    fs::create_dir(&taken).unwrap();
    let error = good.write(&taken).unwrap_err();
    assert!(matches!(&error, SimError::Io { path, .. } if *path == taken), "{error}");

    let nowhere = folder.path().join("missing/snapshot.h5");
    assert!(matches!(good.write(&nowhere), Err(SimError::Io { path, .. }) if path == nowhere));
    // a folder that no one can write to, whoever runs the test
    let error = good.write(Path::new("/proc/snapshot.h5")).unwrap_err();
    assert!(matches!(&error, SimError::Io { path, .. } if path == Path::new("/proc/snapshot.h5")), "{error}");
    assert!(matches!(good.write(Path::new("..")), Err(SimError::Io { .. })));

    let mut names = names_in(folder.path());
    names.sort();
    assert_eq!(names, ["snapshot.h5", "taken.h5"]);
    assert_eq!(file_digest(&path).unwrap(), digest);
}

/// A file system that takes no more: the write says so, and both the old file and the next write are well. A child
/// process is given a limit on the size of its files in place of a full disk.
#[test]
fn full_disk_is_named() {
    const FOLDER: &str = "COMOVE_TEST_LIMITED_FOLDER";
    let good = snapshot(Precision::Double);
    let mut small = good.clone();
    small.state = HostState::zeros(Octree::new([1, 1, 1], PERIODIC));
    if let Some(folder) = std::env::var_os(FOLDER) {
        let path = PathBuf::from(folder).join("snapshot.h5");
        for _ in 0..2 {
            let digest = small.write(&path).unwrap();
            let error = good.write(&path).unwrap_err();
            let limit = |error: &std::io::Error| error.kind() == std::io::ErrorKind::FileTooLarge;
            assert!(matches!(&error, SimError::Io { path: p, source } if *p == path && limit(source)), "{error}");
            assert_eq!(file_digest(&path).unwrap(), digest);
            assert_eq!(names_in(path.parent().unwrap()), ["snapshot.h5"]);
        }
        // the last of three ranks has all groups, the first one the disk
        let ends: Vec<String> = std::thread::scope(|scope| {
            let rank = |communicator: Communicator| {
                let mut own = good.clone();
                if communicator.rank() < 2 {
                    let tree = Octree::share(good.state.tree.root_groups(), PERIODIC, Vec::new());
                    own.state = HostState::zeros(tree);
                }
                let path = &path;
                scope.spawn(move || own.write_by(&communicator, path).unwrap_err().to_string())
            };
            let threads: Vec<_> = Communicator::threads(3).into_iter().map(rank).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ends.iter().all(|end| end.contains("File too large")), "{ends:?}");
        assert_eq!(names_in(path.parent().unwrap()), ["snapshot.h5"]);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // 4096 blocks of 512 bytes: half of the larger file; without the signal, writes fail as on a full disk
    let child = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$0\" --exact snapshot::full_disk_is_named"])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}
