//! Writing particles, and cells of gas in their place, as HDF5 files of Gadget and of SWIFT in the units of the module's table.
//!
//! Lengths of Gadget are in kpc/h, the unit that its readers assume of a file that states none.

use super::header::{MPC_CM, SWIFT_LENGTH};
use super::input::HEADER;
use super::units::MSUN_G;
use crate::error::IcError;
use crate::format::hdf5_input::pieces;
use crate::format::{FileHeader, write_arrays};
use crate::particle_rows::{ParticleType, Particles, Rows};
use comove_sim::parallel::Communicator;
use comove_sim::shared_file::allocate;
use comove_sim::{Units, VELOCITY_KM_S};
use hdf5::{File, Group};
use std::path::Path;

/// The program that is to read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Gadget, and readers of its files.
    Gadget,
    /// SWIFT.
    Swift,
}

impl Dialect {
    /// Unit of lengths in cm, without h.
    pub fn length_cm(self) -> f64 {
        match self {
            Self::Gadget => MPC_CM / 1e3,
            Self::Swift => MPC_CM,
        }
    }
}

/// Unit of masses in g, without h: 10¹⁰ M☉.
pub const MASS_G: f64 = 1e10 * MSUN_G;

/// Unit of velocities in cm/s: km/s.
pub const VELOCITY_CM_S: f64 = 1e5;

/// Radius of a kernel over the width of a cell: 64 cells in the sphere, Gadget's neighbours.
const GADGET_SMOOTHING: f64 = 2.481_4;

/// Smoothing length over the width of a cell: SWIFT's `resolution_eta`.
const SWIFT_SMOOTHING: f64 = 1.234_8;

/// One code unit in the units of a file.
struct FileUnits {
    length: f64,
    mass: f64,
    velocity: f64,
    specific_energy: f64,
    smoothing: f64,
    /// Number that is added to identities.
    first_id: u64,
}

impl FileUnits {
    fn new(dialect: Dialect, header: &FileHeader) -> Self {
        let (a, h) = (header.a, header.cosmology.h);
        let mass = Units::new(Some(header.cosmology)).mass_msun_h() / 1e10;
        let velocity = VELOCITY_KM_S / a;
        let specific_energy = velocity * velocity;
        match dialect {
            Dialect::Gadget => Self {
                length: 1e3,
                mass,
                velocity: velocity / a.sqrt(),
                specific_energy,
                smoothing: GADGET_SMOOTHING,
                first_id: 0,
            },
            Dialect::Swift => Self {
                length: 1.0 / h,
                mass: mass / h,
                velocity,
                specific_energy,
                smoothing: SWIFT_SMOOTHING,
                // SWIFT refuses 0
                first_id: 1,
            },
        }
    }
}

/// A dataset of a type of particles.
struct Column {
    name: &'static str,
    is_there: fn(Dialect, &Particles<'_>) -> bool,
    values: Values,
}

/// Values of a dataset in the units of a file.
enum Values {
    /// Floats, and how many a particle has.
    Floats(usize, fn(&Rows, &FileUnits) -> Vec<f64>),
    Identities,
}

/// Datasets of a type. Floats have 64 bits, so that a file has the bits of what it was written from.
const COLUMNS: [Column; 7] = [
    Column {
        name: "Coordinates",
        is_there: |_, _| true,
        values: Values::Floats(3, |rows, units| scaled(rows.position.as_flattened(), units.length)),
    },
    Column {
        name: "Velocities",
        is_there: |_, _| true,
        values: Values::Floats(3, |rows, units| scaled(rows.velocity.as_flattened(), units.velocity)),
    },
    Column { name: "ParticleIDs", is_there: |_, _| true, values: Values::Identities },
    Column {
        name: "Masses",
        is_there: |dialect, particles| dialect == Dialect::Swift || particles.mass.is_none(),
        values: Values::Floats(1, |rows, units| scaled(&rows.mass, units.mass)),
    },
    Column {
        name: "Density",
        is_there: |dialect, particles| dialect == Dialect::Gadget && is_gas(particles),
        values: Values::Floats(1, |rows, units| scaled(&rows.density, units.mass / units.length.powi(3))),
    },
    Column {
        name: "InternalEnergy",
        is_there: |_, particles| is_gas(particles),
        values: Values::Floats(1, |rows, units| scaled(&rows.specific_energy, units.specific_energy)),
    },
    Column {
        name: "SmoothingLength",
        is_there: |_, particles| is_gas(particles),
        values: Values::Floats(1, |rows, units| scaled(&rows.width, units.smoothing * units.length)),
    },
];

fn is_gas(particles: &Particles<'_>) -> bool {
    particles.kind == ParticleType::Gas
}

fn scaled(values: &[f64], factor: f64) -> Vec<f64> {
    values.iter().map(|value| value * factor).collect()
}

/// Writes a file, a bounded number of particles at a time.
///
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError`] of a file that cannot be written; a file of that name, if any, is then untouched.
pub fn write(
    path: &Path,
    dialect: Dialect,
    header: &FileHeader,
    types: &[Particles<'_>],
    progress: &dyn Fn(f64),
) -> Result<(), IcError> {
    let units = FileUnits::new(dialect, header);
    let there = |particles: &Particles<'_>| {
        let there = COLUMNS.iter().filter(|column| (column.is_there)(dialect, particles));
        there.collect::<Vec<&Column>>()
    };
    let prepare = |file: &File| preface(file, dialect, header, types, &units).and_then(|()| places(file, types, there));
    let all: usize = types.iter().map(|particles| particles.count).sum();
    write_arrays(&Communicator::alone(), path, prepare, |file| {
        let (mut first, mut written) = (0, 0);
        for particles in types {
            let columns = there(particles);
            for piece in pieces(0..particles.count) {
                let rows = particles.rows(piece.clone());
                for (n, column) in columns.iter().enumerate() {
                    match column.values {
                        Values::Floats(components, values) => {
                            let (values, at) = (values(&rows, &units), piece.start * components * size_of::<f64>());
                            file.put(first + n, at, bytemuck::cast_slice(&values))?;
                        }
                        Values::Identities => {
                            let ids: Vec<u64> = rows.id.iter().map(|id| id + units.first_id).collect();
                            file.put(first + n, piece.start * size_of::<u64>(), bytemuck::cast_slice(&ids))?;
                        }
                    }
                }
                written += piece.len();
                progress(written as f64 / all as f64);
            }
            first += columns.len();
        }
        Ok(())
    })
}

/// Creates the datasets, and returns their places.
fn places<'c>(
    file: &File,
    types: &[Particles<'_>],
    there: impl Fn(&Particles<'_>) -> Vec<&'c Column>,
) -> hdf5::Result<Vec<u64>> {
    let mut places = Vec::new();
    for particles in types {
        let group = format!("PartType{}", particles.kind as usize);
        file.create_group_builder().obj_track_times(false).create(group.as_str())?;
        for Column { name, values, .. } in there(particles) {
            let name = format!("{group}/{name}");
            places.push(match values {
                Values::Floats(1, _) => allocate::<f64>(file, &name, &[particles.count])?,
                Values::Floats(components, _) => allocate::<f64>(file, &name, &[particles.count, *components])?,
                Values::Identities => allocate::<u64>(file, &name, &[particles.count])?,
            });
        }
    }
    Ok(places)
}

/// Writes header, units and cosmology.
fn preface(
    file: &File,
    dialect: Dialect,
    header: &FileHeader,
    types: &[Particles<'_>],
    units: &FileUnits,
) -> hdf5::Result<()> {
    let FileHeader { cosmology: c, a, box_mpc_h } = *header;
    let kinds = if dialect == Dialect::Swift { 7 } else { 6 };
    let (mut counts, mut masses) = (vec![0u64; kinds], vec![0f64; kinds]);
    for particles in types {
        counts[particles.kind as usize] = particles.count as u64;
        // SWIFT reads masses of particles alone
        masses[particles.kind as usize] = match dialect {
            Dialect::Gadget => particles.mass.map_or(0.0, |mass| mass * units.mass),
            Dialect::Swift => 0.0,
        };
    }
    let group = |name: &str| file.create_group_builder().obj_track_times(false).create(name);
    let in_header = group(HEADER)?;
    list(&in_header, "NumPart_ThisFile", &counts)?;
    list(&in_header, "NumPart_Total", &counts)?;
    list(&in_header, "NumPart_Total_HighWord", &vec![0u32; kinds])?;
    list(&in_header, "MassTable", &masses)?;
    numbers(&in_header, &[("BoxSize", box_mpc_h * units.length), ("Time", a), ("Redshift", 1.0 / a - 1.0)])?;
    let flags = ["Flag_Sfr", "Flag_Cooling", "Flag_StellarAge", "Flag_Metals", "Flag_Feedback", "Flag_Entropy_ICs"];
    whole(&in_header, &flags.map(|name| (name, 0)))?;
    whole(&in_header, &[("NumFilesPerSnapshot", 1), ("Flag_DoublePrecision", 1)])?;
    match dialect {
        Dialect::Gadget => {
            let cosmology = [
                ("HubbleParam", c.h),
                ("Omega0", c.omega_m),
                ("OmegaLambda", c.omega_lambda),
                ("OmegaBaryon", c.omega_b),
            ];
            let in_units = [
                ("UnitLength_in_cm", dialect.length_cm()),
                ("UnitMass_in_g", MASS_G),
                ("UnitVelocity_in_cm_per_s", VELOCITY_CM_S),
            ];
            // Gadget-2 and its readers look in the header, AREPO's in Units, Gadget-4's in Parameters
            let parameters = group("Parameters")?;
            numbers(&parameters, &[("BoxSize", box_mpc_h * units.length)])?;
            [&in_header, &parameters].into_iter().try_for_each(|group| numbers(group, &cosmology))?;
            [&in_header, &group("Units")?, &parameters].into_iter().try_for_each(|group| numbers(group, &in_units))
        }
        Dialect::Swift => {
            whole(&in_header, &[("Dimension", 3)])?;
            whole(&group("RuntimePars")?, &[("PeriodicBoundariesOn", 1)])?;
            numbers(
                &group("Units")?,
                &[
                    (SWIFT_LENGTH, dialect.length_cm()),
                    ("Unit mass in cgs (U_M)", MASS_G),
                    ("Unit time in cgs (U_t)", dialect.length_cm() / VELOCITY_CM_S),
                    ("Unit current in cgs (U_I)", 1.0),
                    ("Unit temperature in cgs (U_T)", 1.0),
                ],
            )?;
            let cosmology = [
                ("Scale-factor", a),
                ("h", c.h),
                ("Omega_m", c.omega_m),
                ("Omega_lambda", c.omega_lambda),
                ("Omega_b", c.omega_b),
            ];
            numbers(&group("Cosmology")?, &cosmology)
        }
    }
}

fn list<T: hdf5::H5Type>(group: &Group, name: &str, values: &[T]) -> hdf5::Result<()> {
    group.new_attr_builder().with_data(values).create(name).map(drop)
}

fn numbers(group: &Group, values: &[(&str, f64)]) -> hdf5::Result<()> {
    values.iter().try_for_each(|(name, value)| group.new_attr::<f64>().create(*name)?.write_scalar(value))
}

fn whole(group: &Group, values: &[(&str, i32)]) -> hdf5::Result<()> {
    values.iter().try_for_each(|(name, value)| group.new_attr::<i32>().create(*name)?.write_scalar(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::LoadFormat;
    use crate::format::{LoadIc, Part, open};
    use crate::uniform_mesh::DarkMatter;
    use comove_sim::kernels::point::particle::{class_of, id_of_class};
    use comove_sim::{Cosmology, HostParticles};

    /// Particles of two masses, each numbered from 0, come back bit for bit; in files numbers of the heavier ones follow, and for
    /// SWIFT identities are from 1 on.
    #[test]
    fn particles_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ics.hdf5");
        let cosmology = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
        let (z, box_mpc_h) = (24.0, 13.7);
        let mut known = HostParticles::default();
        let value = |n: u32, axis: u32| n.wrapping_mul(0x9e37_79b9).wrapping_add(axis * 0x85eb_ca6b).rotate_left(7);
        for n in 0..700u32 {
            (0..3).for_each(|axis| known.position[axis as usize].push(value(n, axis)));
            (0..3).for_each(|axis| known.velocity[axis as usize].push(value(n, axis) as f32 * 1e-10 - 0.2));
            let (class, number) = if n % 3 == 0 { (2, n / 3) } else { (0, n - n / 3 - 1) };
            known.id.push(id_of_class(class, u64::from(number)).unwrap());
        }
        known.particle_mass = 1.0;
        known.particle_mass = f64::powi(box_mpc_h, 3) / known.header().mass_in_class_0() as f64;
        let header = FileHeader { cosmology, a: 1.0 / (1.0 + z), box_mpc_h };
        let types = Particles::of_dark_matter(&known, [box_mpc_h; 3]);
        assert_eq!(types.iter().map(|particles| particles.count).collect::<Vec<_>>(), [466, 234]);
        for (dialect, format) in [(Dialect::Gadget, LoadFormat::Gadget), (Dialect::Swift, LoadFormat::Swift)] {
            write(&path, dialect, &header, &types, &|_| ()).unwrap();
            assert_eq!(LoadFormat::of(&path).unwrap(), format);
            let ic = LoadIc {
                path: path.clone(),
                format: None,
                length_unit: None,
                cosmology,
                box_mpc_h,
                cells: [16; 3],
                z,
                temperature_k: None,
                mean_molecular_weight: 1.22,
                gamma: 5.0 / 3.0,
                baryons_only: false,
                follow: crate::Identities::default(),
                trust: None,
            };
            let read = open(format, &ic, &Communicator::alone()).unwrap();
            let Some(DarkMatter::Set(set)) = read(&Part::even([16; 3], 0, 1)).unwrap().dark_matter else { panic!() };
            let mut order: Vec<usize> = (0..known.len()).collect();
            order.sort_by_key(|&n| known.id[n]);
            let first = u64::from(dialect == Dialect::Swift);
            let in_file = |id: u64| id + first + 466 * class_of(id) as u64;
            assert_eq!(set.id, order.iter().map(|&n| in_file(known.id[n])).collect::<Vec<_>>());
            for axis in 0..3 {
                assert_eq!(set.position[axis], order.iter().map(|&n| known.position[axis][n]).collect::<Vec<_>>());
                assert_eq!(set.velocity[axis], order.iter().map(|&n| known.velocity[axis][n]).collect::<Vec<_>>());
            }
        }
        // a failed write leaves the old file alone
        let before = std::fs::read(&path).unwrap();
        std::fs::create_dir(folder.path().join(format!(".ics.hdf5.tmp-{}", std::process::id()))).unwrap();
        assert!(write(&path, Dialect::Gadget, &header, &types, &|_| ()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
