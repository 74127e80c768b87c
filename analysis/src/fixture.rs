//! Synthetic snapshots for tests: a tree refined where a rule says so, filled from a function of position.

use crate::cells::{LeafCell, mean_density_by, patch_cells};
use crate::covering_grid::{GRID_LIMIT_MIB, grid_within};
use crate::error::AnalysisError;
use comove_sim::kernels::layout::{
    DENSITY, ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, OCTANTS, PATCH, octant_origin,
};
use comove_sim::kernels::point::particle::{id_of_class, mass_of};
use comove_sim::mesh::PERIODIC;
use comove_sim::parallel::Communicator;
use comove_sim::{
    Coordinates, Cosmology, HostParticles, HostState, Key, Octree, Precision, Role, Snapshot, SnapshotHeader,
};
use ndarray::Array3;

type Fluid = [f64; FIELDS];

/// A snapshot to be.
pub(crate) struct Fixture {
    /// Root groups along each axis.
    pub(crate) root: [u32; 3],
    /// Box length along x.
    pub(crate) box_length: f64,
    /// Scale factor.
    pub(crate) a: f64,
    /// Finest level.
    pub(crate) max_level: usize,
    /// Samples along each axis of a cell that its mean is taken over.
    pub(crate) samples: usize,
    /// Whether a patch of `level` with this centre and half width is refined.
    pub(crate) refine: Box<dyn Fn(usize, [f64; 3], f64) -> bool>,
    /// The gas at a position.
    pub(crate) fluid: Box<dyn Fn([f64; 3]) -> Fluid>,
}

impl Fixture {
    /// 32³ root cells in 1 Mpc/h at a = 0.5, unrefined, filled from a function.
    pub(crate) fn new(fluid: impl Fn([f64; 3]) -> Fluid + 'static) -> Self {
        Self {
            root: [2; 3],
            box_length: 1.0,
            a: 0.5,
            max_level: 0,
            samples: 1,
            refine: Box::new(|_, _, _| false),
            fluid: Box::new(fluid),
        }
    }

    /// Gas at rest of this density.
    pub(crate) fn uniform(density: f64) -> Self {
        Self::new(move |_| gas(density, [0.0; 3], density))
    }

    /// Three levels around a smooth blob at (0.3, 0.4, 0.55), flowing inwards.
    pub(crate) fn blob() -> Self {
        let centre = [0.3, 0.4, 0.55];
        let mut fixture = Self::new(move |x| {
            let d = separation(x, centre, 1.0);
            let r2 = d.iter().map(|d| d * d).sum::<f64>();
            gas(0.5 + 60.0 * (-r2 / 0.005).exp(), d.map(|d| -3.0 * d), 1.0 + 40.0 * (-r2 / 0.01).exp())
        });
        fixture.max_level = 2;
        fixture.refine = Box::new(move |_, x, half| norm(separation(x, centre, 1.0)) < 0.08 + half);
        fixture
    }

    /// A box of 1 × ½ × ¼ Mpc/h, refined in its first quarter along x, with a gradient along every axis.
    pub(crate) fn long() -> Self {
        let tau = std::f64::consts::TAU;
        let mut fixture = Self::new(move |x| {
            let waves = (tau * x[0]).sin() + (2.0 * tau * x[1]).cos() + (4.0 * tau * x[2]).sin();
            gas(2.0 + 0.3 * waves, [x[1], -x[2], x[0]], 1.0)
        });
        (fixture.root, fixture.max_level) = ([4, 2, 1], 1);
        fixture.refine = Box::new(|_, x, _| x[0] < 0.25);
        fixture
    }

    /// The snapshot: finer levels filled first and averaged down.
    pub(crate) fn build(&self) -> Snapshot {
        let tree = self.tree();
        let mut state = HostState::zeros(tree.clone());
        let root_cells = self.root[0] as usize * GROUP;
        let keys: Vec<Key> = tree.keys().collect();
        for (g, key) in keys.iter().enumerate().rev() {
            let width = self.box_length / (root_cells << key.level) as f64;
            for n in 0..GROUP_CELLS {
                let inside = [n % GROUP, n / GROUP % GROUP, n / GROUP / GROUP];
                let octant = (0..3).map(|a| (inside[a] / PATCH) << a).sum::<usize>();
                let values = match tree.index(key.child(octant)) {
                    Some(child) => average_down(&state, child, inside.map(|i| i % PATCH * 2)),
                    None => {
                        let cell: [f64; 3] =
                            std::array::from_fn(|a| (key.coordinate[a] as usize * GROUP + inside[a]) as f64);
                        self.cell_mean(cell, width)
                    }
                };
                for (field, value) in values.into_iter().enumerate() {
                    state.fluid[(g * FIELDS + field) * GROUP_CELLS + n] = value;
                }
            }
        }
        Snapshot { header: self.header(), state }
    }

    fn tree(&self) -> Octree {
        let mut groups = Vec::new();
        let mut parents: Vec<Key> = Octree::new(self.root, PERIODIC).keys().collect();
        for level in 0..self.max_level {
            let width = self.box_length / f64::from((self.root[0] * GROUP as u32) << level);
            let mut next = Vec::new();
            for key in &parents {
                for octant in 0..OCTANTS {
                    let origin = octant_origin(octant);
                    let centre = std::array::from_fn(|a| {
                        (key.coordinate[a] as usize * GROUP + origin[a] + PATCH / 2) as f64 * width
                    });
                    if (self.refine)(level, centre, PATCH as f64 / 2.0 * width) {
                        next.push(key.child(octant));
                    }
                }
            }
            groups.extend(&next);
            parents = next;
        }
        Octree::with_groups(self.root, PERIODIC, groups)
    }

    fn cell_mean(&self, cell: [f64; 3], width: f64) -> Fluid {
        let n = self.samples;
        let mut mean = [0.0; FIELDS];
        for s in 0..n * n * n {
            let sub = [s % n, s / n % n, s / n / n];
            let x = std::array::from_fn(|a| (cell[a] + (sub[a] as f64 + 0.5) / n as f64) * width);
            let values = (self.fluid)(x);
            for field in 0..FIELDS {
                mean[field] += values[field] / (n * n * n) as f64;
            }
        }
        mean
    }

    fn header(&self) -> SnapshotHeader {
        SnapshotHeader {
            role: Role::Output,
            a: self.a,
            time: 0.0,
            step: 0,
            box_length: self.box_length,
            coordinates: Coordinates::Comoving,
            cosmology: Some(Cosmology::flat(0.7, 0.3, 0.045, 0.8, 1.0)),
            gamma: 5.0 / 3.0,
            mean_molecular_weight: 0.6,
            eta: 1e-2,
            precision: Precision::Double,
            fields: comove_sim::fields::FieldSet::default(),
            restart: serde_json::Value::Null,
            recipe: String::new(),
            provenance: serde_json::Value::Null,
            dark_matter: None,
        }
    }
}

/// Conserved values of a gas with γ = 5/3.
pub(crate) fn gas(density: f64, velocity: [f64; 3], pressure: f64) -> Fluid {
    let kinetic = 0.5 * density * velocity.iter().map(|v| v * v).sum::<f64>();
    let mut fluid = [0.0; FIELDS];
    fluid[DENSITY] = density;
    for axis in 0..3 {
        fluid[1 + axis] = density * velocity[axis];
    }
    fluid[ENERGY] = kinetic + 1.5 * pressure;
    fluid[ENTROPY] = pressure / density.powf(2.0 / 3.0);
    fluid
}

/// Numbers that look random (splitmix64), the same each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A point on the unit sphere.
    pub(crate) fn direction(&mut self) -> [f64; 3] {
        let (z, angle) = (2.0 * self.unit() - 1.0, std::f64::consts::TAU * self.unit());
        let across = (1.0 - z * z).sqrt();
        [across * angle.cos(), across * angle.sin(), z]
    }

    /// Of a normal distribution with a variance of 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Particles at these places (code length, across periodic faces), with identities from 0 on.
pub(crate) fn particles_at(
    places: impl IntoIterator<Item = ([f64; 3], [f64; 3])>,
    lengths: [f64; 3],
    particle_mass: f64,
) -> HostParticles {
    let mut particles = HostParticles { particle_mass, ..HostParticles::default() };
    for (position, velocity) in places {
        for axis in 0..3 {
            let x = position[axis].rem_euclid(lengths[axis]);
            particles.position[axis].push(HostParticles::fraction(x, lengths[axis]).expect("inside the box"));
            particles.velocity[axis].push(velocity[axis] as f32);
        }
        particles.id.push(particles.id.len() as u64);
    }
    particles
}

/// Particles anywhere in a box, at rest.
pub(crate) fn random_particles(count: usize, lengths: [f64; 3], seed: u64) -> HostParticles {
    let mut random = Random::new(seed);
    let mut place = || lengths.map(|length| length * random.unit());
    particles_at((0..count).map(|_| (place(), [0.0; 3])), lengths, 1.0)
}

/// Particles of which every third has mass class 1, and a set with eight particles of class 0 in place of each of these.
pub(crate) fn heavy_and_light(mut heavy: HostParticles) -> [HostParticles; 2] {
    for n in (0..heavy.len()).step_by(3) {
        heavy.id[n] = id_of_class(1, heavy.id[n]).expect("a small number");
    }
    let each: Vec<usize> = (0..heavy.len()).flat_map(|n| vec![n; mass_of(heavy.id[n]) as usize]).collect();
    let light = HostParticles {
        particle_mass: heavy.particle_mass,
        position: heavy.position.each_ref().map(|column| each.iter().map(|&n| column[n]).collect()),
        velocity: heavy.velocity.each_ref().map(|column| each.iter().map(|&n| column[n]).collect()),
        id: (0..each.len() as u64).collect(),
    };
    [heavy, light]
}

/// The snapshot with these particles.
pub(crate) fn with_particles(mut snapshot: Snapshot, particles: HostParticles) -> Snapshot {
    snapshot.header.dark_matter = Some(particles.header());
    snapshot.state.particles = Some(particles);
    snapshot
}

/// x − y in a periodic cube.
pub(crate) fn separation(x: [f64; 3], y: [f64; 3], length: f64) -> [f64; 3] {
    std::array::from_fn(|a| (x[a] - y[a]) - length * ((x[a] - y[a]) / length).round())
}

/// |x|.
pub(crate) fn norm(x: [f64; 3]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn average_down(state: &HostState, child: usize, first: [usize; 3]) -> Fluid {
    std::array::from_fn(|field| {
        let values = state.field(child, field);
        (0..8).map(|o| values[[first[2] + (o >> 2), first[1] + (o >> 1 & 1), first[0] + (o & 1)]]).sum::<f64>() / 8.0
    })
}

/// Every leaf cell, patch by patch in key order.
pub(crate) fn leaf_cells(snapshot: &Snapshot) -> impl Iterator<Item = LeafCell> + '_ {
    snapshot.state.tree.leaf_patches().flat_map(|patch| patch_cells(snapshot, patch))
}

/// The mean density of the box.
pub(crate) fn mean_density(snapshot: &Snapshot) -> f64 {
    mean_density_by(&Communicator::alone(), &snapshot.into())
}

/// A field on the grid of a level.
pub(crate) fn grid(snapshot: &Snapshot, field: &str, level: usize) -> Result<Array3<f64>, AnalysisError> {
    grid_within(snapshot, field, level, GRID_LIMIT_MIB)
}
