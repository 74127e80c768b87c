//! From linear theory through a file to the octree, by the crate's public functions alone.

use crate::common;

use common::load;
use comove_ic::format::um_ic::Order;
use comove_ic::format::{comove_ic as own_format, um_ic};
use comove_ic::{GaussianIc, LoadFormat, PowerSource, UniformMesh, restrict, silent};
use comove_sim::Clock;
use comove_sim::Criterion;
use comove_sim::kernels::layout::{DENSITY, ENERGY, MOMENTUM};
use comove_sim::parallel::Communicator;
use comove_sim::{Cosmology, Precision, RunParameters, Units};
use std::path::PathBuf;

fn gaussian() -> GaussianIc {
    GaussianIc {
        cosmology: Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0),
        box_mpc_h: 25.0,
        cells: [64; 3],
        z: 49.0,
        seed: 5,
        noise: None,
        power: PowerSource::CambTransfer(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/camb_transfer_z0.dat")),
        fixed_amplitude: false,
        f_nl: 0.0,
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

/// Generated, written, read and placed at level 1: the same octree as without the detour, and an audit to round-off.
#[test]
fn files_carry_an_initial_condition_to_the_octree() {
    let mesh = gaussian().generate(&Communicator::alone(), &silent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let raw = load(gaussian(), &folder.path().join("UM_IC"), LoadFormat::UmIc { order: Order::Zyxv, precision: None });
    um_ic::write(&raw.path, &mesh, Order::Zyxv, Precision::Double).unwrap();
    let own = load(gaussian(), &folder.path().join("ic.h5"), LoadFormat::ComoveIc);
    own_format::write(&own.path, &Communicator::alone(), &mesh, &own.header()).unwrap();
    assert_eq!(own.load(&Communicator::alone(), &silent).unwrap().0, mesh);

    let parameters = RunParameters {
        max_level: 1,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.35] }],
        ..RunParameters::default()
    };
    let ic = gaussian();
    let clock = Clock::new(1.0 / (1.0 + ic.z), 0.0, Some(ic.cosmology));
    let place = |mesh: UniformMesh| {
        restrict(&Communicator::alone(), mesh, 1, ic.box_mpc_h, &clock, &parameters, &silent).unwrap()
    };
    let (direct, audit) = place(mesh.clone());
    assert!(audit.levels[1].cells_kept > 0 && audit.levels[1].cells_removed > 0, "{audit:?}");
    assert!(audit.worst_change() < 1e-13 && audit.unresolved_kinetic_energy > 0.0);
    let (detour, _) = place(raw.load(&Communicator::alone(), &silent).unwrap().0);
    assert_eq!(detour.tree, direct.tree);
    // The raw file holds the total energy, which comes back up to the rounding of one subtraction and one addition.
    for field in [DENSITY, MOMENTUM, MOMENTUM + 2] {
        assert_eq!(detour.field(0, field), direct.field(0, field));
    }
    let energies = detour.field(0, ENERGY).to_owned() / direct.field(0, ENERGY);
    assert!(energies.iter().all(|ratio| (ratio - 1.0).abs() < 1e-13));
}

/// The temperature of a loaded mesh, in K, is that of linear theory, or the one the recipe states.
#[test]
fn temperatures_survive_and_can_be_replaced() {
    let mesh = gaussian().generate(&Communicator::alone(), &silent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut ic = load(
        gaussian(),
        &folder.path().join("UM_IC"),
        LoadFormat::UmIc { order: Order::Vzyx, precision: Some(Precision::Single) },
    );
    um_ic::write(&ic.path, &mesh, Order::Vzyx, Precision::Single).unwrap();
    let unit_k = Units::new(Some(ic.cosmology)).temperature_k(0.02, 1.22);
    let temperature_k =
        |mesh: &UniformMesh, index: usize| 2.0 / 3.0 * mesh.internal_energy[index] / mesh.density[index] * unit_k;
    let expected = 2.7255 * 2500.0 / (137.0 * (0.045f64 * 0.49 / 0.022).powf(0.4));
    // single precision keeps the total energy to 6e-8, the internal one to that times the Mach number squared
    let loaded = ic.load(&Communicator::alone(), &silent).unwrap().0;
    assert!((0..1000).all(|i| (temperature_k(&loaded, i) / expected - 1.0).abs() < 1e-3));
    ic.temperature_k = Some(1234.0);
    let replaced = ic.load(&Communicator::alone(), &silent).unwrap().0;
    assert!((0..1000).all(|i| (temperature_k(&replaced, i) / 1234.0 - 1.0).abs() < 1e-12));
}

/// The wrong field order shows as a density that no gas has, another density unit as a mean that is not 1.
#[test]
fn files_of_another_kind_are_refused() {
    let mut mesh = gaussian().generate(&Communicator::alone(), &silent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ic = load(gaussian(), &folder.path().join("UM_IC"), LoadFormat::UmIc { order: Order::Vzyx, precision: None });
    um_ic::write(&ic.path, &mesh, Order::Zyxv, Precision::Double).unwrap();
    let error = ic.load(&Communicator::alone(), &silent).unwrap_err().to_string();
    assert!(error.contains("field and byte order") && error.contains("\"zyxv\"; set that order"), "{error}");
    mesh.density.iter_mut().for_each(|density| *density *= 0.15);
    um_ic::write(&ic.path, &mesh, Order::Vzyx, Precision::Double).unwrap();
    let error = ic.load(&Communicator::alone(), &silent).unwrap_err().to_string();
    assert!(error.contains("UM_IC: mean density 0.15"), "{error}");
}
