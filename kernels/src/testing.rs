//! Small octrees for this crate's tests, with tables looked up by brute force.

use crate::layout::{DIRECTIONS, FACES, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, OCTANTS};
use crate::level::face_boundary::FaceBoundary;
use crate::level::group_locator::{GroupLocator, buffer_sides};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::real::Real;

/// Groups of every level by coordinate, slots counted through all levels.
pub(crate) struct Mesh {
    /// Groups along each axis of the root.
    pub(crate) root: [i32; 3],
    /// Along which axes it is periodic.
    pub(crate) periodic: [bool; 3],
    /// What is beyond the faces of the other axes.
    pub(crate) faces: [FaceBoundary; FACES],
    /// Coordinates of the groups of each level.
    pub(crate) levels: Vec<Vec<[i32; 3]>>,
}

impl Mesh {
    /// The root level alone, periodic along all axes or none.
    pub(crate) fn new(root: [i32; 3], periodic: bool) -> Self {
        let mut groups = Vec::new();
        for z in 0..root[2] {
            for y in 0..root[1] {
                groups.extend((0..root[0]).map(|x| [x, y, z]));
            }
        }
        Self { root, periodic: [periodic; 3], faces: Default::default(), levels: vec![groups] }
    }

    /// Periodic along these axes, with these boundaries beyond the faces of the others.
    pub(crate) fn with_faces(mut self, periodic: [bool; 3], faces: [FaceBoundary; FACES]) -> Self {
        (self.periodic, self.faces) = (periodic, faces);
        self
    }

    /// With these groups as the next level.
    pub(crate) fn with_level(mut self, groups: Vec<[i32; 3]>) -> Self {
        self.levels.push(groups);
        self
    }

    /// `levels` levels below a small root that is periodic along some axes, each refined at random wherever proper
    /// nesting allows: groups meet at faces, edges and corners, across the ends of periodic axes and at walls.
    pub(crate) fn random(noise: &mut Noise, levels: usize) -> Self {
        let mut chance = |percent: f64| noise.next() < percent / 50.0 - 1.0;
        let periodic = [0, 1, 2].map(|_| chance(70.0));
        let kinds =
            [FaceBoundary::Outflow, FaceBoundary::Reflecting, FaceBoundary::Fixed([1.1, 0.2, -0.1, 0.3, 2.0, 1.0])];
        let faces = std::array::from_fn(|_| kinds[usize::from(chance(50.0)) + usize::from(chance(50.0))]);
        let root = [3, 2 + i32::from(chance(50.0)), 2];
        let mut mesh = Self::new(root, false).with_faces(periodic, faces);
        for level in 0..levels {
            let nested: Vec<[i32; 3]> = mesh.levels[level]
                .iter()
                .copied()
                .filter(|&c| {
                    (0..DIRECTIONS as i32)
                        .map(|d| [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1])
                        .all(|step| mesh.slot(level, c, step) != NONE)
                })
                .collect();
            let children = nested
                .iter()
                .flat_map(|c| (0..8).map(move |o| [2 * c[0] + (o & 1), 2 * c[1] + (o >> 1 & 1), 2 * c[2] + (o >> 2)]));
            // the finer, the fuller, or little would be left to refine
            let groups: Vec<[i32; 3]> =
                children.filter(|_| chance([50.0, 80.0, 85.0][level.min(2)])).take(160).collect();
            if groups.is_empty() {
                break;
            }
            mesh = mesh.with_level(groups);
        }
        mesh
    }

    /// Groups of all levels.
    pub(crate) fn group_count(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    /// The slot of the group at `coordinate`, components across a boundary that is not periodic dropped; [`NONE`] if
    /// there is none.
    pub(crate) fn slot(&self, level: usize, from: [i32; 3], step: [i32; 3]) -> u32 {
        let wrapped: [i32; 3] = std::array::from_fn(|a| {
            let n = self.root[a] << level;
            let c = from[a] + step[a];
            if self.periodic[a] {
                c.rem_euclid(n)
            } else if (0..n).contains(&c) {
                c
            } else {
                from[a]
            }
        });
        if level >= self.levels.len() {
            return NONE;
        }
        let first: usize = self.levels[..level].iter().map(Vec::len).sum();
        self.levels[level].iter().position(|&c| c == wrapped).map_or(NONE, |i| (first + i) as u32)
    }

    /// What particles look up.
    pub(crate) fn locator(&self) -> GroupLocator {
        let group = |level: usize, c: [i32; 3]| self.slot(level, c, [0; 3]);
        let groups =
            || self.levels.iter().enumerate().flat_map(|(level, groups)| groups.iter().map(move |&c| (level, c)));
        let children = groups().flat_map(|(level, c)| {
            (0..OCTANTS as i32).map(move |o| (level + 1, std::array::from_fn(|a| 2 * c[a] + (o >> a & 1))))
        });
        let first =
            (0..=self.levels.len()).map(|level| self.levels[..level].iter().map(Vec::len).sum::<usize>() as u32);
        GroupLocator {
            root: self.root.map(|n| n as u32),
            slots: self.group_count() as u32,
            root_slots: self.levels[0].iter().map(|&c| group(0, c)).collect(),
            children: children.map(|(level, c)| group(level, c)).collect(),
            numbers: (0..self.group_count() as u32).collect(),
            buffers: groups().map(|(level, c)| buffer_sides(|step| self.slot(level, c, step) == NONE)).collect(),
            first: first.collect(),
        }
    }

    /// The tables of a level.
    pub(crate) fn tables(&self, level: usize) -> LevelTopology {
        self.tables_of(level, |_, _| true)
    }

    /// The tables of a rank that owns some of the groups, told by level and coordinate: all others are ghosts, in the
    /// slots that they have anyway.
    pub(crate) fn tables_of(&self, level: usize, owns: impl Fn(usize, [i32; 3]) -> bool) -> LevelTopology {
        let (mut slots, mut neighbours, mut parents) = (Vec::new(), Vec::new(), Vec::new());
        let (mut octants, mut outsides, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refining, mut beyond) = (Vec::new(), Vec::new());
        let steps = || (0..DIRECTIONS as i32).map(|d| [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1]);
        for &c in self.levels[level].iter().filter(|&&c| owns(level, c)) {
            slots.push(self.slot(level, c, [0; 3]));
            neighbours.extend(steps().map(|step| self.slot(level, c, step)));
            let parent = c.map(|c| c / 2);
            // those on the octant's side: nobody may read more
            let is_near = |step: [i32; 3]| (0..3).all(|a| step[a] == 0 || step[a] == 2 * (c[a] & 1) - 1);
            let parent_at = |step| if level > 0 && is_near(step) { self.slot(level - 1, parent, step) } else { NONE };
            parents.extend(steps().map(parent_at));
            octants.push((c[0] & 1 | (c[1] & 1) << 1 | (c[2] & 1) << 2) as u8);
            let outside = |a: usize, edge: i32| !self.periodic[a] && c[a] == edge;
            outsides.push((0..6).fold(0, |bits, b| {
                let edge = if b % 2 == 0 { 0 } else { (self.root[b / 2] << level) - 1 };
                bits | u8::from(outside(b / 2, edge)) << b
            }));
            let patches = || (0..OCTANTS as i32).map(|o| std::array::from_fn(|a| 2 * c[a] + (o >> a & 1)));
            let finer = level + 1;
            let children: Vec<u32> = patches().map(|patch| self.slot(finer, patch, [0; 3])).collect();
            leaves.push((0..OCTANTS).fold(0, |mask, o| mask | u8::from(children[o] == NONE) << o));
            refining.extend(
                children.iter().zip(patches()).map(|(&slot, patch)| if owns(finer, patch) { slot } else { NONE }),
            );
            for patch in patches() {
                beyond.extend((0..FACES).map(|face| {
                    let mut step = [0; 3];
                    step[face / 2] = if face % 2 == 0 { -1 } else { 1 };
                    let edge = patch[face / 2] + step[face / 2];
                    let inside = self.periodic[face / 2] || (0..self.root[face / 2] << finer).contains(&edge);
                    if inside { self.slot(finer, patch, step) } else { NONE }
                }));
            }
        }
        let tables = LevelTopology {
            slots: slots.into(),
            neighbours: neighbours.into(),
            parents: parents.into(),
            octants: octants.into(),
            outside: outsides.into(),
            faces: self.faces,
            leaves: leaves.into(),
            children: refining.into(),
            beyond: beyond.into(),
            ..LevelTopology::default()
        };
        tables.check();
        tables
    }

    /// The pool of all levels with `value(centre)` in every cell; the centre in units of root cells.
    pub(crate) fn fill<T: Real>(&self, mut value: impl FnMut([f64; 3]) -> [f64; FIELDS]) -> Vec<T> {
        let mut fluid = vec![T::zero(); self.group_count() * GROUP_VALUES];
        let mut slot = 0;
        for (level, groups) in self.levels.iter().enumerate() {
            let h = 0.5f64.powi(level as i32);
            for c in groups {
                for e in 0..GROUP_CELLS {
                    let local = [e % GROUP, e / GROUP % GROUP, e / GROUP / GROUP];
                    let centre = std::array::from_fn(|a| h * (c[a] as f64 * GROUP as f64 + local[a] as f64 + 0.5));
                    let u = value(centre);
                    for f in 0..FIELDS {
                        fluid[slot * GROUP_VALUES + f * GROUP_CELLS + e] = T::from_f64(u[f]);
                    }
                }
                slot += 1;
            }
        }
        fluid
    }
}

/// Hands a GPU whose operations give the CPU's bits to a test, where there is one; a test of a program without CUDA, or
/// without a GPU, passes.
#[cfg(feature = "cuda")]
pub(crate) fn with_gpu(test: impl FnOnce(&crate::Device)) {
    let host = crate::device::cpu::CpuDevice::new(2).expect("threads");
    match crate::device::cuda::CudaDevice::new(0, host, true) {
        Ok(gpu) => test(&crate::Device::Cuda(gpu)),
        Err(reason) => println!("skipped: {reason}"),
    }
}

/// Gas in every cell of a mesh for comparisons of devices: hot, cold and floored by turns, and with `broken` a few cells
/// that are not finite.
pub(crate) fn motley_gas<T: Real>(mesh: &Mesh, noise: &mut Noise, broken: bool) -> Vec<T> {
    mesh.fill(|_| {
        let density = 10f64.powf(2.0 * noise.next());
        let kind = noise.next();
        // Mach numbers from 0 to 1000
        let speed = 10f64.powf(3.0 * noise.next());
        let velocity = [0, 1, 2].map(|_| speed * noise.next());
        let mut u = conserved(density, velocity, 1.0 + 0.5 * noise.next(), 5.0 / 3.0);
        if kind > 0.995 {
            u[[0, 4, 5][(100.0 * (noise.next() + 1.0)) as usize % 3]] *= -1e-3;
        }
        if broken && kind < -0.9995 {
            u[(3.0 * (noise.next() + 1.0)) as usize] = [f64::NAN, f64::INFINITY][usize::from(noise.next() > 0.0)];
        }
        u
    })
}

/// Compares the pools of fluid of two devices bit by bit; what is not a number has no bits.
pub(crate) fn assert_same_fluid<T: Real>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let different =
        |n: &usize| found[*n].bits() != expected[*n].bits() && !(found[*n].is_nan() && expected[*n].is_nan());
    let count = (0..found.len()).filter(different).count();
    if let Some(n) = (0..found.len()).find(different) {
        let (slot, field, cell) = (n / GROUP_VALUES, n / GROUP_CELLS % FIELDS, n % GROUP_CELLS);
        let at = crate::layout::cell_coordinate(cell);
        let (found, expected) = (found[n], expected[n]);
        panic!(
            "{what}: {count} values differ, first slot {slot} field {field} cell {at:?}: GPU {found}, CPU {expected}"
        );
    }
}

/// The same in a program without CUDA: nothing to test.
#[cfg(not(feature = "cuda"))]
pub(crate) fn with_gpu(_test: impl FnOnce(&crate::Device)) {
    println!("skipped: built without CUDA");
}

/// Reproducible noise in [−1, 1).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Conserved values of gas with γ of this density, velocity and pressure.
pub(crate) fn conserved(density: f64, velocity: [f64; 3], pressure: f64, gamma: f64) -> [f64; FIELDS] {
    let [x, y, z] = velocity.map(|v| density * v);
    let kinetic = 0.5 * (x * x + y * y + z * z) / density;
    [density, x, y, z, pressure / (gamma - 1.0) + kinetic, pressure / density.powf(gamma - 1.0)]
}

/// Asserts that values of two devices have the same bits, or are both no numbers; `values` of them lie in a slot.
#[cfg(feature = "cuda")]
pub(crate) fn assert_same_bits<T: Real>(what: &str, cpu: &[T], gpu: &[T], values: usize) {
    assert_eq!(cpu.len(), gpu.len(), "{what}: lengths");
    let differs = |n: &usize| cpu[*n].bits() != gpu[*n].bits() && !(cpu[*n].is_nan() && gpu[*n].is_nan());
    let differing: Vec<usize> = (0..cpu.len()).filter(differs).collect();
    if let Some(&first) = differing.first() {
        let worst = differing.iter().map(|&n| (cpu[n] - gpu[n]).abs().as_f64()).fold(0.0, f64::max);
        panic!(
            "{what}: {} of {} values differ by up to {worst:e}; the first: value {} of slot {}, CPU {:e}, GPU {:e}",
            differing.len(),
            cpu.len(),
            first % values,
            first / values,
            cpu[first].as_f64(),
            gpu[first].as_f64(),
        );
    }
}

/// The same numbers in host memory and on a GPU.
#[cfg(feature = "cuda")]
pub(crate) fn on_both<T: Real>(gpu: &crate::Device, values: &[T]) -> [crate::Buffer<T>; 2] {
    [crate::Buffer::Cpu(values.to_vec()), crate::Buffer::from_host(gpu, values.to_vec()).expect("room")]
}

/// A few random octrees of up to four levels.
#[cfg(feature = "cuda")]
pub(crate) fn meshes(noise: &mut Noise) -> Vec<Mesh> {
    (0..4).map(|_| Mesh::random(noise, 3)).collect()
}
