//! From linear theory through files to a run by several ranks: the bits of one, and the same errors.

use crate::common;

use common::load;
use comove_ic::format::um_ic::Order;
use comove_ic::format::{comove_ic as own_format, um_ic};
use comove_ic::{
    Audit, GaussianIc, IcError, LoadFormat, LoadIc, NestedGas, PowerSource, SpeciesTransfer, UniformMesh, Zoom,
    restrict, silent,
};
use comove_sim::Clock;
use comove_sim::kernels::Device;
use comove_sim::kernels::layout::GROUP_CELLS;
use comove_sim::parallel::{Communicator, Ranks, on_ranks};
use comove_sim::{Coordinates, Cosmology, Criterion, Precision, RunParameters, Simulation, Snapshot, SnapshotHeader};
use std::path::{Path, PathBuf};

const RANKS: [usize; 4] = [1, 2, 3, 5];

fn gaussian() -> GaussianIc {
    GaussianIc {
        cosmology: Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0),
        box_mpc_h: 25.0,
        cells: [64, 32, 96],
        z: 49.0,
        seed: 5,
        noise: None,
        power: PowerSource::EisensteinHu,
        fixed_amplitude: true,
        f_nl: 50.0,
        inverted: false,
        lpt_order: 2,
        gas: true,
        dark_matter: false,
        species_transfer: None,
        zoom: None,
        follow: comove_ic::Identities::default(),
        temperature_k: None,
        mean_molecular_weight: 1.22,
        gamma: 5.0 / 3.0,
    }
}

/// The fields of a mesh, those of its lattice included.
fn fields(mesh: &UniformMesh) -> Vec<&[f64]> {
    let lattice = mesh.lattice().into_iter().flat_map(|lattice| lattice.displacement.iter().chain(&lattice.velocity));
    mesh.fields().into_iter().chain(lattice).map(Vec::as_slice).collect()
}

/// Slabs that follow each other are the whole.
fn assert_make(slabs: &[UniformMesh], whole: &UniformMesh) {
    for (n, field) in fields(whole).into_iter().enumerate() {
        let slabs: Vec<&[f64]> = slabs.iter().map(|slab| fields(slab)[n]).collect();
        assert!(slabs.concat() == *field, "field {n} on {} ranks", slabs.len());
    }
}

#[test]
fn meshes_and_their_files_do_not_depend_on_ranks() {
    let (ic, folder) = (gaussian(), tempfile::tempdir().unwrap());
    let whole = ic.generate(&Communicator::alone(), &silent).unwrap();
    let raw = load(gaussian(), &folder.path().join("UM_IC"), LoadFormat::UmIc { order: Order::Zyxv, precision: None });
    um_ic::write(&raw.path, &whole, Order::Zyxv, Precision::Double).unwrap();
    let loaded = raw.load(&Communicator::alone(), &silent).unwrap().0;
    let file = |ranks: usize| folder.path().join(format!("{ranks}.h5"));
    for ranks in RANKS {
        let own = load(gaussian(), &file(ranks), LoadFormat::ComoveIc);
        let slabs = on_ranks(ranks, |communicator| {
            let mesh = ic.generate(&communicator, &silent).unwrap();
            own_format::write(&own.path, &communicator, &mesh, &own.header()).unwrap();
            assert_eq!(own.load(&communicator, &silent).unwrap().0, mesh);
            [mesh, raw.load(&communicator, &silent).unwrap().0]
        });
        let [generated, read] = [0, 1].map(|n| slabs.iter().map(|slabs| slabs[n].clone()).collect::<Vec<_>>());
        assert_make(&generated, &whole);
        assert_make(&read, &loaded);
        assert!(std::fs::read(file(ranks)).unwrap() == std::fs::read(file(1)).unwrap(), "the file of {ranks} ranks");
        own.try_reading().unwrap();
    }
}

/// The same with dark matter, from linear theory through the file to a few steps of a run.
#[test]
fn dark_matter_does_not_depend_on_ranks() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/camb_transfer_z99.dat");
    let species_transfer = Some(SpeciesTransfer::Camb(table));
    let ic = GaussianIc { dark_matter: true, species_transfer, ..gaussian() };
    let folder = tempfile::tempdir().unwrap();
    let whole = ic.generate(&Communicator::alone(), &silent).unwrap();
    let file = |ranks: usize| folder.path().join(format!("{ranks}.h5"));
    let make = |communicator: Communicator| {
        let own = load(ic.clone(), &file(communicator.size()), LoadFormat::ComoveIc);
        let mesh = ic.generate(&communicator, &silent).unwrap();
        own_format::write(&own.path, &communicator, &mesh, &own.header()).unwrap();
        let ended = run(communicator, &own.path, Precision::Single, &ic);
        (mesh, ended)
    };
    let (_, alone) = make(Communicator::alone());
    for ranks in [2, 3, 5] {
        let (slabs, ends): (Vec<_>, Vec<_>) = on_ranks(ranks, make).into_iter().unzip();
        assert_make(&slabs, &whole);
        assert!(std::fs::read(file(ranks)).unwrap() == std::fs::read(file(1)).unwrap(), "the file of {ranks} ranks");
        assert!(ends.iter().all(|end| *end == alone), "{ranks} ranks");
    }
}

/// Both species of a zoom: gas has the modes of each lattice where the lattice has particles and is averaged to the coarser levels,
/// and the run keeps the levels that it starts with.
#[test]
fn gas_of_a_zoom_is_at_the_level_of_its_particles() {
    let zoom = Zoom { center: [24.0, 1.0, 24.0], extent: [6.0; 3], levels: 1, padding: 2 };
    let ic = GaussianIc { dark_matter: true, cells: [32, 32, 64], zoom: Some(zoom), f_nl: 0.0, ..gaussian() };
    let whole = ic.generate(&Communicator::alone(), &silent).unwrap();
    let everywhere = |cells: [usize; 3]| {
        let ic = GaussianIc { cells, zoom: None, ..ic.clone() };
        ic.generate(&Communicator::alone(), &silent).unwrap()
    };
    let [coarse, fine] = [ic.cells, [64, 64, 128]].map(everywhere);
    assert!(fields(&coarse)[..5] == fields(&whole));
    let NestedGas { region, gas } = &whole.nests[0];
    for index in [0, 1, gas.cell_count() / 2 + 5, gas.cell_count() - 1] {
        let at = gas.cell(index);
        let cell = fine.index([0, 1, 2].map(|axis| region[axis].cell(at[axis])));
        assert!(fine.fields().iter().zip(gas.fields()).all(|(fine, part)| fine[cell] == part[index]), "{at:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let make = |communicator: Communicator| {
        let own = load(ic.clone(), &folder.path().join(format!("{}.h5", communicator.size())), LoadFormat::ComoveIc);
        let mesh = ic.generate(&communicator, &silent).unwrap();
        own_format::write(&own.path, &communicator, &mesh, &own.header()).unwrap();
        run(communicator, &own.path, Precision::Single, &ic)
    };
    let alone = make(Communicator::alone());
    assert!(alone.1.worst_change() < 1e-13, "{:?}", alone.1);
    for ranks in [2, 3] {
        assert!(on_ranks(ranks, make).iter().all(|end| *end == alone), "{ranks} ranks");
        let [one, many] = [1, ranks].map(|n| std::fs::read(folder.path().join(format!("{n}.h5"))).unwrap());
        assert!(one == many, "the file of {ranks} ranks");
    }
}

/// A file that is cut short, or that one rank alone finds missing, is refused by all.
#[test]
fn bad_files_are_refused_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let raw = load(gaussian(), &folder.path().join("UM_IC"), LoadFormat::UmIc { order: Order::Vzyx, precision: None });
    let whole = gaussian().generate(&Communicator::alone(), &silent).unwrap();
    um_ic::write(&raw.path, &whole, Order::Vzyx, Precision::Single).unwrap();
    let errors = on_ranks(3, |communicator| {
        let missing = LoadIc { path: PathBuf::from("/nowhere/UM_IC"), ..raw.clone() };
        let ic = if communicator.rank() == 2 { &missing } else { &raw };
        ic.load(&communicator, &silent).unwrap_err()
    });
    assert!(errors.iter().all(|error| error.to_string().contains("/nowhere/UM_IC") && !error.is_of_the_system()));
    assert!(matches!(errors[0], IcError::OnRank { rank: 2, .. }) && matches!(errors[2], IcError::Io { .. }));
    std::fs::OpenOptions::new().write(true).open(&raw.path).unwrap().set_len(1000).unwrap();
    for error in on_ranks(3, |communicator| raw.load(&communicator, &silent).unwrap_err()) {
        assert!(matches!(error, IcError::Size { found: 1000, .. }), "{error}");
    }
}

/// The state after a few steps of a run that these ranks start from their parts of a mesh, and the audit of these.
fn run(communicator: Communicator, path: &Path, precision: Precision, ic: &GaussianIc) -> (String, Audit) {
    // root 32 along the first axis
    let (cells, level) = (ic.cells, if ic.zoom.is_some() { 0 } else { 1 });
    let part = restrict::part(cells, level, communicator.rank(), communicator.size()).unwrap();
    let header = load(ic.clone(), path, LoadFormat::ComoveIc).header();
    let mesh = own_format::read(path, cells, part, &header).unwrap();
    let parameters = RunParameters {
        max_level: 2,
        refine: vec![match (ic.zoom, ic.dark_matter) {
            (Some(_), _) => Criterion::ParticlesAbove { thresholds: vec![1.0, 1.5] },
            (None, true) => Criterion::OverdensityAbove { thresholds: vec![1.3, 1.5] },
            (None, false) => Criterion::DensityAbove { thresholds: vec![1.3, 1.5] },
        }],
        coordinates: Coordinates::Comoving,
        precision,
        ..RunParameters::default()
    };
    let clock = Clock::new(0.02, 0.0, Some(ic.cosmology));
    let (state, audit) = restrict(&communicator, mesh, level, ic.box_mpc_h, &clock, &parameters, &silent).unwrap();
    let header = SnapshotHeader {
        a: 0.02,
        box_length: ic.box_mpc_h,
        cosmology: Some(ic.cosmology),
        gamma: parameters.gamma,
        precision,
        dark_matter: state.particles.as_ref().map(|own| own.header_of_all(&communicator)),
        ..SnapshotHeader::initial(Coordinates::Comoving)
    };
    let snapshot = Snapshot { header, state };
    let is_alone = communicator.size() == 1;
    let ranks = Ranks::of(communicator);
    let mut simulation = Simulation::start_on(Device::cpu(1).unwrap(), ranks, &snapshot, parameters).unwrap();
    if ic.zoom.is_some() && is_alone {
        let kept = &audit.levels[1];
        assert!(kept.cells_kept > 0 && kept.cells_removed > 0, "{kept:?}");
        // of all that the run refines there is gas
        let cells = (simulation.groups()[1] * GROUP_CELLS) as u64;
        assert!(cells > 0 && cells <= kept.cells_kept, "{cells} cells, {kept:?}");
    }
    (0..2).for_each(|_| _ = simulation.step().unwrap());
    let levels = if ic.zoom.is_some() { 2 } else { 3 };
    assert_eq!(simulation.groups().len(), levels, "the test needs levels that ranks share");
    (simulation.state_hash(), audit)
}

#[test]
fn runs_that_start_from_parts_have_the_bits_of_one() {
    let (ic, folder) = (gaussian(), tempfile::tempdir().unwrap());
    let path = folder.path().join("ic.h5");
    let whole = ic.generate(&Communicator::alone(), &silent).unwrap();
    let header = load(gaussian(), &path, LoadFormat::ComoveIc).header();
    own_format::write(&path, &Communicator::alone(), &whole, &header).unwrap();
    for precision in [Precision::Single, Precision::Double] {
        let alone = run(Communicator::alone(), &path, precision, &ic);
        assert!(alone.1.levels[1].cells_kept > 0 && alone.1.levels[1].cells_removed > 0, "{:?}", alone.1);
        for ranks in [2, 3, 5] {
            let ends = on_ranks(ranks, |communicator| run(communicator, &path, precision, &ic));
            assert!(ends.iter().all(|end| *end == alone), "{ranks} ranks");
        }
    }
}
