//! The examination of files: planted mistakes are named, and right files are accepted.
//!
//! Each file is written here, of a universe with a fixed seed; Gadget and SWIFT by code of its own.

use comove_ic::format::{comove_ic as own, um_ic};
use comove_ic::temperature::gas_temperature_k;
use comove_ic::uniform_mesh::Lattice;
use comove_ic::{
    BareFile, DarkMatter, GaussianIc, Given, LoadFormat, LoadIc, ParticleSet, PowerSource, SpeciesTransfer,
    UniformMesh, Verdict, silent,
};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::id_of_class;
use comove_sim::parallel::{Communicator, on_ranks};
use comove_sim::{Cosmology, Precision, Units};
use std::path::{Path, PathBuf};
use um_ic::Order;

const CELLS: usize = 32;
const BOX: f64 = 40.0;

fn cosmology(h: f64) -> Cosmology {
    Cosmology::flat(h, 0.3, 0.045, 0.8, 0.96)
}

fn universe(z: f64, h: f64, gas: bool, dark_matter: bool) -> GaussianIc {
    GaussianIc {
        cosmology: cosmology(h),
        box_mpc_h: BOX,
        cells: [CELLS; 3],
        z,
        seed: 7,
        noise: None,
        power: PowerSource::EisensteinHu,
        fixed_amplitude: false,
        f_nl: 0.0,
        inverted: false,
        lpt_order: 2,
        gas,
        dark_matter,
        species_transfer: None,
        zoom: None,
        follow: comove_ic::Identities::default(),
        temperature_k: None,
        mean_molecular_weight: 1.22,
        gamma: 5.0 / 3.0,
    }
}

/// A universe, the recipe that loads it, and what is written.
#[derive(Clone)]
struct File {
    ic: GaussianIc,
    mesh: UniformMesh,
    recipe: LoadIc,
    header: own::Header,
    format: Format,
    /// Factor of velocities in Gadget and SWIFT files.
    speed: f64,
    /// Bytes of a raw file are reversed; its axes order.
    big_endian: bool,
    order: Order,
    /// Particles are on the lattice's cells, shifted by these.
    lattice_shift: f64,
    /// Displacements are applied.
    displaced: f64,
    jitter: f64,
    /// Particles outside the middle of the box are means of eight.
    zoom: bool,
    /// Bytes that are cut off.
    cut: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Format {
    Comove,
    Set,
    UmIc,
    Gadget,
    Swift,
}

impl File {
    fn new(ic: GaussianIc, format: Format) -> Self {
        let mesh = ic.generate(&Communicator::alone(), &silent).unwrap();
        Self::of(ic, mesh, format)
    }

    fn of(ic: GaussianIc, mesh: UniformMesh, format: Format) -> Self {
        let loaded = match format {
            Format::Comove | Format::Set => LoadFormat::ComoveIc,
            Format::UmIc => LoadFormat::UmIc { order: Order::Vzyx, precision: None },
            Format::Gadget => LoadFormat::Gadget,
            Format::Swift => LoadFormat::Swift,
        };
        let mut recipe = crate::common::load(ic.clone(), Path::new(""), loaded);
        recipe.baryons_only = true;
        let header = recipe.header();
        Self {
            ic,
            mesh,
            recipe,
            header,
            format,
            speed: 1.0,
            big_endian: false,
            order: Order::Vzyx,
            lattice_shift: 0.0,
            displaced: 1.0,
            jitter: 0.0,
            zoom: false,
            cut: 0,
        }
    }

    fn lattice(&mut self) -> &mut Lattice {
        match &mut self.mesh.dark_matter {
            Some(DarkMatter::Lattice(lattice)) => lattice,
            _ => panic!("no lattice"),
        }
    }

    fn take_velocities_of_another_seed(&mut self) {
        let other = GaussianIc { seed: 8, ..self.ic.clone() }.generate(&Communicator::alone(), &silent).unwrap();
        self.lattice().velocity = other.lattice().unwrap().velocity.clone();
    }

    fn scale_velocities(&mut self, factor: f64) {
        self.speed *= factor;
        if self.mesh.lattice().is_some() {
            self.lattice().velocity.iter_mut().flatten().for_each(|v| *v *= factor);
        }
        self.mesh.momentum.iter_mut().flatten().for_each(|v| *v *= factor);
    }

    /// Comoving positions in Mpc/h, code velocities and mass classes, particle by particle, the lightest first.
    fn particles(&self) -> Vec<([f64; 3], [f64; 3], usize)> {
        let lattice = self.mesh.lattice().unwrap();
        let spacing = BOX / self.ic.cells[0] as f64;
        let random = |n: usize| ((n as f64 * 12.9898 + 1.0).sin() * 43758.5453).rem_euclid(1.0) - 0.5;
        let particle = |n: usize| {
            let cell = self.mesh.cell(n);
            let position = std::array::from_fn(|a| {
                let from = cell[a] as f64 + self.lattice_shift + self.jitter * random(3 * n + a);
                from * spacing + self.displaced * lattice.displacement[a][n]
            });
            (position, [0, 1, 2].map(|a| lattice.velocity[a][n]))
        };
        let is_fine = |n: &usize| {
            let side = self.ic.cells[0];
            !self.zoom || self.mesh.cell(*n).iter().all(|i| (side / 4..3 * side / 4).contains(i))
        };
        let all = || 0..self.mesh.cell_count();
        let mut particles: Vec<_> = all().filter(is_fine).map(particle).map(|(x, v)| (x, v, 0)).collect();
        let first_of_eight = |n: &usize| self.mesh.cell(*n).iter().all(|i| i % 2 == 0);
        for n in all().filter(|n| !is_fine(n)).filter(first_of_eight) {
            let [i, j, k] = self.mesh.cell(n);
            let eight = (0..8).map(|c| particle(self.mesh.index([i + (c & 1), j + (c >> 1 & 1), k + (c >> 2)])));
            let sum = eight.fold(([0.0; 3], [0.0; 3]), |(x, v), (dx, dv)| {
                ([0, 1, 2].map(|a| x[a] + dx[a] / 8.0), [0, 1, 2].map(|a| v[a] + dv[a] / 8.0))
            });
            particles.push((sum.0, sum.1, 1));
        }
        particles.iter_mut().for_each(|(x, ..)| *x = x.map(|x| x.rem_euclid(BOX)));
        particles
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ic");
        match self.format {
            Format::Comove => own::write(&path, &Communicator::alone(), &self.mesh, &self.header).unwrap(),
            Format::Set => {
                let particles = self.particles();
                let fraction = |x: f64| HostParticles::fraction(x, BOX).unwrap();
                let id = |(n, (_, _, class)): (u64, &(_, _, usize))| id_of_class(*class, n).unwrap();
                let set = ParticleSet {
                    position: [0, 1, 2].map(|a| particles.iter().map(|(x, ..)| fraction(x[a])).collect()),
                    velocity: [0, 1, 2].map(|a| particles.iter().map(|(_, v, _)| v[a] as f32).collect()),
                    id: (0..).zip(&particles).map(id).collect(),
                };
                let mesh = UniformMesh { dark_matter: Some(DarkMatter::Set(set)), ..self.mesh.clone() };
                own::write(&path, &Communicator::alone(), &mesh, &self.header).unwrap();
            }
            Format::UmIc => {
                um_ic::write(&path, &self.mesh, self.order, Precision::Single).unwrap();
                if self.big_endian {
                    let mut bytes = std::fs::read(&path).unwrap();
                    bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                    std::fs::write(&path, bytes).unwrap();
                }
            }
            Format::Gadget | Format::Swift => self.write_particles(&path).unwrap(),
        }
        if self.cut > 0 {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - self.cut]).unwrap();
        }
        path
    }

    /// Gadget's HDF5: v_pec/√a in km/s, Mpc/h, 10¹⁰ M☉/h; SWIFT's: v_pec in km/s, Mpc, 10¹⁰ M☉.
    fn write_particles(&self, path: &Path) -> hdf5::Result<()> {
        let (a, c) = (self.header.a, self.ic.cosmology);
        let particles = self.particles();
        let is_gadget = self.format == Format::Gadget;
        let (length, speed) = if is_gadget { (1.0, 100.0 / a / a.sqrt()) } else { (1.0 / c.h, 100.0 / a) };
        let mass = Units::new(Some(c)).mass_msun_h() * BOX.powi(3) / self.mesh.cell_count() as f64 / 1e10;
        let mass = if is_gadget { mass } else { mass / c.h };
        let file = hdf5::File::create(path)?;
        let header = file.create_group("Header")?;
        let list = |name: &str, values: &[f64]| header.new_attr_builder().with_data(values).create(name).map(drop);
        let fine = particles.iter().filter(|(.., class)| *class == 0).count();
        let counts = [0.0, fine as f64, (particles.len() - fine) as f64, 0.0, 0.0, 0.0];
        list("NumPart_ThisFile", &counts)?;
        list("NumPart_Total", &counts)?;
        list("MassTable", &[0.0, mass, 8.0 * mass, 0.0, 0.0, 0.0])?;
        list("BoxSize", &[BOX * length])?;
        if is_gadget {
            list("Time", &[a])?;
            list("HubbleParam", &[self.header.h])?;
            list("Omega0", &[self.header.omega_m])?;
            list("OmegaLambda", &[self.header.omega_lambda])?;
        } else {
            let units = file.create_group("Units")?;
            let unit = |name: &str, value: f64| units.new_attr_builder().with_data(&[value]).create(name).map(drop);
            unit("Unit length in cgs (U_L)", 3.085_677_581_491_367e24)?;
            unit("Unit mass in cgs (U_M)", 1.988_409_87e43)?;
            unit("Unit time in cgs (U_t)", 3.085_677_581_491_367e19)?;
        }
        let matrix = |values: Vec<[f64; 3]>, factor: f64| {
            let flat: Vec<f64> = values.iter().flatten().map(|value| value * factor).collect();
            ndarray::Array2::from_shape_vec((values.len(), 3), flat).unwrap()
        };
        for (name, rows) in [("PartType1", 0..fine), ("PartType2", fine..particles.len())] {
            let (part, own) = (file.create_group(name)?, &particles[rows.clone()]);
            let x = matrix(own.iter().map(|(x, ..)| *x).collect(), length);
            let v = matrix(own.iter().map(|(_, v, _)| *v).collect(), speed);
            let ids: Vec<u64> = rows.map(|n| n as u64).collect();
            part.new_dataset_builder().with_data(&x).create("Coordinates")?;
            part.new_dataset_builder().with_data(&v).create("Velocities")?;
            part.new_dataset_builder().with_data(&ids).create("ParticleIDs")?;
        }
        file.close()
    }

    /// The verdict of the examination, true for accepted files, and its remarks or error.
    fn said(&self) -> (bool, String) {
        let folder = tempfile::tempdir().unwrap();
        let recipe = LoadIc { path: self.write(folder.path()), ..self.recipe.clone() };
        match recipe.load(&Communicator::alone(), &silent) {
            Ok((_, examination)) => {
                if std::env::var("COMOVE_SHOW_FINDINGS").is_ok() {
                    for f in &examination.findings {
                        println!(
                            "    {} | {} | {} | {:?} | {}",
                            f.quantity, f.found, f.expected, f.verdict, f.sentence
                        );
                    }
                }
                (true, examination.remarks(None).join("; "))
            }
            Err(error) => (false, error.to_string()),
        }
    }
}

type Change = Box<dyn Fn(&mut File)>;

/// Mistakes: name, file, the mistake, whether it is refused, and what must be said.
fn mistakes() -> Vec<(&'static str, File, Change, bool, Vec<&'static str>)> {
    const Z: f64 = 49.0;
    let a = 1.0 / (1.0 + Z);
    let h = 0.7;
    let of = |gas, dark_matter, format| File::new(universe(Z, h, gas, dark_matter), format);
    let dark = of(false, true, Format::Comove);
    let as_format = |file: &File, format| File::of(file.ic.clone(), file.mesh.clone(), format);
    let (set, gadget, swift) =
        (as_format(&dark, Format::Set), as_format(&dark, Format::Gadget), as_format(&dark, Format::Swift));
    let zoom = File { zoom: true, ..gadget.clone() };
    let gas = of(true, false, Format::UmIc);
    let both = of(true, true, Format::Comove);
    let velocities = |factor: f64| -> Change { Box::new(move |file| file.scale_velocities(factor)) };
    let displacements = |factor: f64| -> Change {
        Box::new(move |file| file.lattice().displacement.iter_mut().flatten().for_each(|d| *d *= factor))
    };
    let amplitude = |factor: f64| -> Change {
        Box::new(move |file| {
            file.scale_velocities(factor);
            if file.mesh.lattice().is_some() {
                file.lattice().displacement.iter_mut().flatten().for_each(|d| *d *= factor);
            }
            let mean = file.mesh.density.iter().sum::<f64>() / file.mesh.density.len().max(1) as f64;
            file.mesh.density.iter_mut().for_each(|d| *d = mean + factor * (*d - mean));
        })
    };
    let density =
        |f: fn(f64) -> f64| -> Change { Box::new(move |file| file.mesh.density.iter_mut().for_each(|d| *d = f(*d))) };
    let energy = |factor: f64| -> Change {
        Box::new(move |file| file.mesh.internal_energy.iter_mut().for_each(|e| *e *= factor))
    };
    let growth = cosmology(h).growth_factor(a);
    let share = 0.15;
    let change = |f: fn(&mut File)| -> Change { Box::new(f) };
    let swap = |file: &mut File| {
        let lattice = file.lattice();
        lattice.velocity.swap(0, 2);
    };
    vec![
        // velocities of comove_ic
        ("v_pec/(100 km/s)", dark.clone(), velocities(1.0 / a), true, vec!["v_pec in 100 km/s"]),
        ("a v_pec in km/s", dark.clone(), velocities(100.0), true, vec!["a v_pec in km/s"]),
        ("v_pec in km/s", dark.clone(), velocities(100.0 / a), true, vec!["look like v_pec in km/s"]),
        (
            "Gadget's in km/s",
            dark.clone(),
            velocities(100.0 * a.powf(-1.5)),
            true,
            vec!["v_pec/√a, Gadget's convention in km/s"],
        ),
        ("dx/dt", dark.clone(), velocities(a.powi(-2)), true, vec!["dx/dt = v_pec/a in 100 km/s"]),
        ("a² v_pec", dark.clone(), velocities(a), true, vec!["a² v_pec in 100 km/s"]),
        ("√a missing", dark.clone(), velocities(a.powf(-0.5)), true, vec!["√a v_pec in 100 km/s"]),
        ("h twice", dark.clone(), velocities(h), false, vec!["multiplied by h"]),
        ("without h", dark.clone(), velocities(1.0 / h), false, vec!["divided by h"]),
        ("opposite velocities", dark.clone(), velocities(-1.0), true, vec!["opposite", "sign"]),
        ("at rest", dark.clone(), velocities(0.0), false, vec!["at rest"]),
        ("components swapped", dark.clone(), change(swap), true, vec!["another order", "[z, y, x]"]),
        (
            "component of other sign",
            dark.clone(),
            change(|file| file.lattice().velocity[1].iter_mut().for_each(|v| *v = -*v)),
            true,
            vec!["other signs", "[x, -y, z]"],
        ),
        (
            "component missing",
            dark.clone(),
            change(|file| file.lattice().velocity[2].iter_mut().for_each(|v| *v = 0.0)),
            true,
            vec!["along z is not the growing mode's"],
        ),
        (
            "component of another unit",
            dark.clone(),
            change(|file| file.lattice().velocity[0].iter_mut().for_each(|v| *v *= 3.0)),
            true,
            vec!["have all one unit?"],
        ),
        (
            "velocities of another seed",
            dark.clone(),
            change(File::take_velocities_of_another_seed),
            true,
            vec!["of another realisation"],
        ),
        (
            "bulk velocity",
            dark.clone(),
            change(|file| file.lattice().velocity[0].iter_mut().for_each(|v| *v += 0.3)),
            false,
            vec!["moves as a whole", "subtract the mean"],
        ),
        // displacements
        ("displacements in kpc/h", dark.clone(), displacements(1e3), true, vec!["kpc/h in place of Mpc/h"]),
        ("displacements in Mpc", dark.clone(), displacements(1.0 / h), false, vec!["Mpc in place of Mpc/h"]),
        ("displacements with h twice", dark.clone(), displacements(h), false, vec!["multiplied by h twice"]),
        ("displacements proper", dark.clone(), displacements(a), true, vec!["displacements look proper"]),
        ("displacements of box lengths", dark.clone(), displacements(1.0 / BOX), true, vec!["fractions of the box"]),
        (
            "positions for displacements",
            dark.clone(),
            change(|file| {
                let all: Vec<_> = (0..file.mesh.cell_count()).map(|n| file.mesh.cell(n)).collect();
                for axis in 0..3 {
                    let width = BOX / CELLS as f64;
                    let values = &mut file.lattice().displacement[axis];
                    values.iter_mut().zip(&all).for_each(|(d, cell)| *d += cell[axis] as f64 * width);
                }
            }),
            true,
            vec!["these may be positions"],
        ),
        // amplitude of both
        ("spectrum of z = 0", dark.clone(), amplitude(1.0 / growth), true, vec!["that of z = 0"]),
        ("scaled back twice", dark.clone(), amplitude(growth), true, vec!["twice"]),
        ("(2π)³", dark.clone(), amplitude(std::f64::consts::TAU.powf(-1.5)), true, vec!["(2π)³ too small"]),
        ("P in Mpc³", dark.clone(), amplitude(h.powf(-1.5)), false, vec!["Mpc³ in place of (Mpc/h)³"]),
        ("scaled by a", dark.clone(), amplitude(a / growth), false, vec!["by a in place of D(a)/D(1)"]),
        ("variance of both parts", dark.clone(), amplitude(2f64.sqrt()), false, vec!["real and imaginary parts"]),
        ("sigma8", dark.clone(), amplitude(0.8), false, vec!["sigma8 = 0.6"]),
        (
            "epoch, without header",
            gas.clone(),
            change(|file| file.recipe.z = 24.0),
            true,
            vec!["those of z = 48|those of z = 49|those of z = 50", "in place of 24.00"],
        ),
        (
            "epoch, header and recipe",
            dark.clone(),
            change(|file| {
                file.recipe.z = 99.0;
                file.header.a = 0.01;
            }),
            true,
            vec!["those of z = 48|those of z = 49|those of z = 50", "in place of 99.00"],
        ),
        (
            "box without header",
            gas.clone(),
            change(|file| file.recipe.box_mpc_h = BOX / 0.7),
            true,
            vec!["a box of 40", "a factor 1/h off"],
        ),
        (
            "omega_m without header",
            gas.clone(),
            change(|file| {
                file.recipe.cosmology = Cosmology { omega_b: 0.05, ..Cosmology::flat(0.7, 0.4, 0.05, 0.8, 0.96) }
            }),
            false,
            vec!["omega_m = 0.3", "in place of 0.4"],
        ),
        // gas
        ("δ for 1 + δ", gas.clone(), density(|d| d - 1.0), true, vec!["looks like δ"]),
        ("δ for 1 + δ beside dark matter", both.clone(), density(|d| d - 0.15), true, vec!["looks like δ"]),
        ("density of its own mean", both.clone(), density(|d| d / 0.15), true, vec!["gas's own mean"]),
        ("density of ρ_c", both.clone(), density(|d| d * 0.3), true, vec!["units of the critical density"]),
        ("proper density", both.clone(), density(|d| d * 125_000.0), true, vec!["it is proper"]),
        ("density in g/cm³", both.clone(), density(|d| d * 0.3 * 1.878_34e-29 * 0.49), true, vec!["comoving g/cm³"]),
        ("species swapped", both.clone(), density(|d| d / 0.15 * 0.85), true, vec!["species swapped?"]),
        ("dark matter missing", gas.clone(), density(|d| d * 0.15), true, vec!["dark matter missing?"]),
        (
            "velocities for momenta",
            both.clone(),
            Box::new(move |file| file.mesh.momentum.iter_mut().flatten().for_each(|p| *p /= share)),
            true,
            vec!["momenta look like velocities"],
        ),
        (
            "gas of another seed",
            both.clone(),
            change(|file| {
                let other =
                    GaussianIc { seed: 8, ..file.ic.clone() }.generate(&Communicator::alone(), &silent).unwrap();
                file.mesh = UniformMesh { dark_matter: file.mesh.dark_matter.clone(), ..other };
            }),
            true,
            vec!["gas and dark matter do not correlate"],
        ),
        (
            "density transposed",
            gas.clone(),
            change(|file| {
                let old = file.mesh.density.clone();
                for n in 0..old.len() {
                    let [x, y, z] = file.mesh.cell(n);
                    file.mesh.density[n] = old[(x * CELLS + y) * CELLS + z];
                }
            }),
            true,
            vec!["axes of the density of gas are in another order", "[z, y, x]"],
        ),
        (
            "gas at corners, dark matter from centres",
            both.clone(),
            change(|file| {
                // fields half a cell away, by the mean of neighbours
                let half = |values: &Vec<f64>, mesh: &UniformMesh| -> Vec<f64> {
                    let at =
                        |x: usize, y: usize, z: usize| values[((z % CELLS) * CELLS + y % CELLS) * CELLS + x % CELLS];
                    (0..values.len())
                        .map(|n| {
                            let [x, y, z] = mesh.cell(n);
                            let corner = |i: usize| at(x + (i & 1), y + (i >> 1 & 1), z + (i >> 2));
                            (0..8).map(corner).sum::<f64>() / 8.0
                        })
                        .collect()
                };
                let old = file.mesh.clone();
                file.mesh.density = half(&old.density, &old);
                file.mesh.momentum = old.momentum.each_ref().map(|p| half(p, &old));
                file.mesh.internal_energy = half(&old.internal_energy, &old);
            }),
            true,
            vec!["gas is displaced from dark matter", "half a cell"],
        ),
        (
            "velocities at faces",
            gas.clone(),
            change(|file| {
                let old = file.mesh.clone();
                for n in 0..old.cell_count() {
                    let [x, y, z] = old.cell(n);
                    let next = old.index([(x + 1) % CELLS, y, z]);
                    let velocity = |i: usize| old.momentum[0][i] / old.density[i];
                    file.mesh.momentum[0][n] = 0.5 * (velocity(n) + velocity(next)) * old.density[n];
                }
            }),
            true,
            vec!["velocities of gas are displaced from its density", "staggered"],
        ),
        ("truncated", gas.clone(), change(|file| file.cut = 4000), true, vec!["cut short"]),
        ("truncated HDF5", dark.clone(), change(|file| file.cut = 4000), true, vec!["truncated"]),
        ("big-endian", gas.clone(), change(|file| file.big_endian = true), true, vec!["big-endian"]),
        ("cell by cell", gas.clone(), change(|file| file.order = Order::Zyxv), true, vec!["\"zyxv\"; set that order"]),
        (
            "field by field",
            gas.clone(),
            change(|file| file.recipe.format = Some(LoadFormat::UmIc { order: Order::Zyxv, precision: None })),
            true,
            vec!["\"vzyx\"; set that order"],
        ),
        // temperature
        ("proper energy", both.clone(), energy(a.powi(-2)), true, vec!["(100 km/s)² without a²"]),
        ("energy in (km/s)²", both.clone(), energy(1e4), true, vec!["look like (km/s)²"]),
        ("energy of mass", both.clone(), energy(1.0 / share), false, vec!["those of mass"]),
        (
            "temperature of radiation",
            both.clone(),
            Box::new(move |file| {
                let now = gas_temperature_k(&file.ic.cosmology, Z);
                let factor = 2.7255 * (1.0 + Z) / now;
                file.mesh.internal_energy.iter_mut().for_each(|e| *e *= factor);
            }),
            false,
            vec!["background radiation"],
        ),
        // particles at given positions
        ("Gadget with v_pec", gadget.clone(), velocities(a.sqrt()), true, vec!["look like v_pec in km/s"]),
        ("Gadget with a v_pec", gadget.clone(), velocities(a.powf(1.5)), true, vec!["look like a v_pec in km/s"]),
        ("Gadget with m/s", gadget.clone(), velocities(1e3), true, vec!["Gadget's convention in m/s"]),
        ("Gadget with √a twice", gadget.clone(), velocities(1.0 / a.sqrt()), true, vec!["dx/dt = v_pec/a in km/s"]),
        (
            "SWIFT with Gadget's velocities",
            swift.clone(),
            velocities(1.0 / a.sqrt()),
            true,
            vec!["Gadget's convention in km/s"],
        ),
        ("SWIFT with a v_pec", swift.clone(), velocities(a), true, vec!["look like a v_pec in km/s"]),
        ("Gadget with components swapped", gadget.clone(), change(swap), true, vec!["another order", "[z, y, x]"]),
        ("positions not displaced", set.clone(), change(|file| file.displaced = 0.0), true, vec!["were not applied"]),
        ("displacements subtracted", set.clone(), change(|file| file.displaced = -1.0), true, vec!["opposite"]),
        (
            "displacements of positions in Mpc",
            set.clone(),
            change(|file| file.displaced = 1.0 / 0.7),
            false,
            vec!["Mpc in place of Mpc/h"],
        ),
        (
            "set of another seed",
            set.clone(),
            change(File::take_velocities_of_another_seed),
            true,
            vec!["another realisation"],
        ),
        (
            "Gadget, epoch of header and recipe",
            gadget.clone(),
            change(|file| {
                let (old, new) = (file.header.a, 0.01);
                file.recipe.z = 99.0;
                file.header.a = new;
                // what the file holds stays as it was
                file.scale_velocities((new / old).powf(1.5));
            }),
            true,
            vec!["those of z = 48|those of z = 49|those of z = 50", "in place of 99.00"],
        ),
        // two masses
        ("zoom with v_pec", zoom.clone(), velocities(a.sqrt()), true, vec!["look like v_pec in km/s"]),
        ("zoom in m/s", zoom.clone(), velocities(1e3), true, vec!["Gadget's convention in m/s"]),
        ("zoom with components swapped", zoom.clone(), change(swap), true, vec!["another order", "[z, y, x]"]),
        ("zoom, opposite velocities", zoom.clone(), velocities(-1.0), true, vec!["opposite"]),
        (
            "zoom of another seed",
            zoom.clone(),
            change(File::take_velocities_of_another_seed),
            true,
            vec!["another realisation"],
        ),
        (
            "h of the header",
            dark.clone(),
            change(|file| file.header.h = 0.67),
            true,
            vec!["h = 0.67", "recipe says 0.7"],
        ),
        (
            "omega_m of the header",
            gadget.clone(),
            change(|file| file.header.omega_m = 0.25),
            true,
            vec!["\"Omega0\"", "0.25"],
        ),
        (
            "box of the header",
            dark.clone(),
            change(|file| file.header.box_mpc_h = BOX / 0.7),
            true,
            vec!["box_mpc_h = 57.1"],
        ),
        ("a of the header", dark.clone(), change(|file| file.header.a = 0.01), true, vec!["a = 0.01 (z = 99"]),
    ]
}

/// Every planted mistake is named.
#[test]
fn planted_mistakes_are_named() {
    let mut wrong = Vec::new();
    let all = mistakes();
    let count = all.len();
    for (name, mut file, change, is_refused, expected) in all {
        change(&mut file);
        let (accepted, said) = file.said();
        if accepted == is_refused || !expected.iter().all(|part| part.split('|').any(|part| said.contains(part))) {
            wrong.push(format!("{name}: accepted = {accepted}, {said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Right files have no remark.
#[test]
fn right_files_are_accepted() {
    let mut wrong = Vec::new();
    let mut check = |name: String, file: &File| {
        let (accepted, said) = file.said();
        if !accepted || !said.is_empty() {
            wrong.push(format!("{name}: accepted = {accepted}, {said}"));
        }
    };
    for (z, h) in [(20.0, 0.7), (49.0, 0.5), (49.0, 1.0), (99.0, 0.7)] {
        for (gas, dark_matter) in [(true, false), (false, true), (true, true)] {
            let formats: &[Format] = match (gas, dark_matter) {
                (true, false) => &[Format::Comove, Format::UmIc],
                (false, true) => &[Format::Comove, Format::Set, Format::Gadget, Format::Swift],
                _ => &[Format::Comove, Format::Set],
            };
            let first = File::new(universe(z, h, gas, dark_matter), Format::Comove);
            for &format in formats {
                let file = File::of(first.ic.clone(), first.mesh.clone(), format);
                check(format!("{format:?} z = {z}, h = {h}, gas {gas}, dark matter {dark_matter}"), &file);
            }
        }
    }
    // lattices elsewhere, particles off a lattice, fixed amplitudes, and other seeds
    let dark = File::new(universe(49.0, 0.7, false, true), Format::Set);
    check("lattice of centres".into(), &File { lattice_shift: 0.5, ..dark.clone() });
    check("scattered".into(), &File { jitter: 0.05, ..dark.clone() });
    check("random".into(), &File { jitter: 1.0, ..dark.clone() });
    // zooms
    for (z, h, format) in [(99.0, 0.7, Format::Gadget), (49.0, 0.7, Format::Set), (20.0, 0.7, Format::Swift)] {
        for lattice_shift in [0.0, 0.5] {
            let zoom = File { zoom: true, lattice_shift, ..File::new(universe(z, h, false, true), format) };
            check(format!("zoom, {format:?} z = {z}, lattice at {lattice_shift}"), &zoom);
        }
    }
    for seed in 1..6 {
        let ic =
            GaussianIc { seed, fixed_amplitude: seed == 1, inverted: seed == 2, ..universe(30.0, 0.7, true, true) };
        check(format!("seed {seed}"), &File::new(ic, Format::Comove));
    }
    for box_mpc_h in [5.0, 500.0] {
        let ic = GaussianIc { box_mpc_h, cells: [16; 3], ..universe(49.0, 0.7, true, true) };
        check(format!("16³ cells of {box_mpc_h} Mpc/h"), &File::new(ic, Format::Comove));
    }
    // displacements of late times
    for (z, format) in [(3.0, Format::Comove), (3.0, Format::Set), (0.0, Format::Comove), (0.0, Format::Set)] {
        check(format!("{format:?} at z = {z}"), &File::new(universe(z, 0.7, false, true), format));
    }
    // gas behind dark matter after decoupling
    let table = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/camb_transfer_z99.dat");
    let first = universe(99.0, 0.7, true, true);
    let cosmology = Cosmology { sigma8: 0.9, n_s: 1.0, ..first.cosmology };
    let ic = GaussianIc { species_transfer: Some(SpeciesTransfer::Camb(table)), cosmology, ..first };
    check("transfer functions of each".into(), &File::new(ic, Format::Comove));
    // meshes that are averaged
    for format in [Format::Comove, Format::Set] {
        let ic = GaussianIc { cells: [80; 3], ..universe(49.0, 0.7, true, true) };
        check(format!("80³ {format:?}"), &File::new(ic, format));
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A file with mistakes is accepted with a reason, which is said; ranks find what one finds, to the bit.
#[test]
fn trust_and_ranks() {
    let folder = tempfile::tempdir().unwrap();
    for (format, zoom) in
        [(Format::Comove, false), (Format::Set, false), (Format::Gadget, false), (Format::Gadget, true)]
    {
        let mut file = File { zoom, ..File::new(universe(49.0, 0.7, format != Format::Gadget, true), format) };
        file.scale_velocities(50.0);
        let recipe = LoadIc { path: file.write(folder.path()), ..file.recipe.clone() };
        let refused = recipe.load(&Communicator::alone(), &silent).unwrap_err().to_string();
        assert!(refused.ends_with("if the file is right, set trust: \"reason\""), "{refused}");
        let trusting = LoadIc { trust: Some("a test".into()), ..recipe };
        let (_, alone) = trusting.load(&Communicator::alone(), &silent).unwrap();
        assert!(!alone.sentences(Verdict::Wrong).is_empty());
        let remarks = alone.remarks(trusting.trust.as_deref());
        assert!(remarks[0].ends_with("(trusted: a test)"), "{remarks:?}");
        let of_ranks = on_ranks(3, |communicator| trusting.load(&communicator, &silent).unwrap().1.findings);
        assert!(of_ranks.iter().all(|findings| *findings == alone.findings), "{format:?} {zoom}");
    }
}

/// Files without a recipe: numbers that the header lacks are listed, or required.
#[test]
fn bare_files_are_examined() {
    let folder = tempfile::tempdir().unwrap();
    let of = |file: &File, given: &Given| BareFile::examine(&file.write(folder.path()), given);
    let gadget = File::new(universe(49.0, 0.7, false, true), Format::Gadget);
    let known = Given { sigma8: Some(0.8), n_s: Some(0.96), omega_b: Some(0.045), ..Given::default() };
    let found = of(&gadget, &known).unwrap();
    assert!(found.missing.is_empty() && found.format == "gadget", "{found:?}");
    assert!(found.findings.iter().all(|finding| finding.verdict == Verdict::Good), "{found:?}");
    let without = of(&gadget, &Given::default()).unwrap();
    assert!(without.missing.len() == 3 && without.missing[0].starts_with("sigma8 is not known"), "{without:?}");
    let mut fast = gadget.clone();
    fast.scale_velocities(1e3);
    let found = of(&fast, &Given::default()).unwrap();
    assert!(found.findings.iter().any(|finding| finding.sentence.contains("Gadget's convention in m/s")), "{found:?}");
    let swift = File::of(gadget.ic.clone(), gadget.mesh.clone(), Format::Swift);
    let error = of(&swift, &known).unwrap_err().to_string();
    assert!(error.ends_with("h is neither in the file nor given: add --cosmology h=…"), "{error}");
    let all = Given { h: Some(0.7), omega_m: Some(0.3), z: Some(49.0), ..known };
    let found = of(&swift, &all).unwrap();
    assert!(found.findings.iter().all(|finding| finding.verdict == Verdict::Good), "{found:?}");
    let own = File::new(universe(49.0, 0.7, true, true), Format::Comove);
    let found = of(&own, &known).unwrap();
    assert!(found.findings.iter().all(|finding| finding.verdict == Verdict::Good), "{found:?}");
}
