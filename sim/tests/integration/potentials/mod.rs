//! A refined box, periodic or isolated, with a density given on its finest mesh.
#![allow(dead_code)] // each test file uses its part

use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::{DENSITY, ENERGY, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, cell};
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::{
    Buffer, DensitySource, Device, DeviceTable, Eos, GhostOrigin, LevelTopology, PoissonSource, Real, SineTables,
    gravity_kick, group_poisson, mass_sheet, potential_ghosts,
};
use comove_sim::gravity::{Hierarchy, PoissonSolver, Sharing};
use comove_sim::mesh::{CLOSED, PERIODIC};
use comove_sim::mesh::{build_tables, root_slots};
use comove_sim::parallel::Communicator;
use comove_sim::parallel::GhostExchange;
use comove_sim::parallel::Owners;
use comove_sim::{GravityBoundary, Key, Octree, RunParameters};
use std::collections::BTreeSet;

/// A box of unit length along x.
pub(crate) struct Case<T> {
    pub(crate) device: Device,
    pub(crate) tree: Octree,
    pub(crate) tables: Vec<LevelTopology>,
    pub(crate) slots: Vec<Vec<u32>>,
    pub(crate) root_slots: DeviceTable<u32>,
    pub(crate) fluid: Buffer<T>,
    pub(crate) potential: Buffer<T>,
}

impl<T: Real> Case<T> {
    /// `mesh` is the density on the complete mesh of the tree's level `mesh_level`, x fastest; every group gets means
    /// of it, so the finest level must not be finer.
    pub(crate) fn new(threads: usize, tree: Octree, mesh_level: usize, mesh: &[f64]) -> Self {
        let [nx, ny, _] = tree.cells(mesh_level);
        Self::with_cells(threads, tree, |level, at| {
            let ratio = 1 << (mesh_level - level);
            let offsets = (0..ratio * ratio * ratio).map(|n| [n % ratio, n / ratio % ratio, n / ratio / ratio]);
            let place = |axis: usize, offset: [usize; 3]| at[axis] * ratio + offset[axis];
            let sum: f64 = offsets.map(|d| mesh[(place(2, d) * ny + place(1, d)) * nx + place(0, d)]).sum();
            sum / (ratio * ratio * ratio) as f64
        })
    }

    /// Every cell gets `density` at its centre, positions in units of the box's x length.
    pub(crate) fn with_density(threads: usize, tree: Octree, density: impl Fn([f64; 3]) -> f64) -> Self {
        let root = tree.cells(0)[0] as f64;
        let at = |level: usize, cell: [usize; 3]| cell.map(|c| (c as f64 + 0.5) / (root * (1u64 << level) as f64));
        Self::with_cells(threads, tree, |level, cell| density(at(level, cell)))
    }

    /// `density(level, cell)` gives every cell's density.
    fn with_cells(threads: usize, tree: Octree, density: impl Fn(usize, [usize; 3]) -> f64) -> Self {
        let device = Device::from_name(&std::env::var("COMOVE_TEST_DEVICE").unwrap_or("cpu".into()), threads)
            .expect("the device is there");
        // slots run backwards, so that no slot is the place of its group
        let last = tree.group_count() - 1;
        let slots: Vec<Vec<u32>> = (0..tree.level_count())
            .map(|l| (0..tree.level(l).len()).map(|n| (last - tree.first_of_level(l) - n) as u32).collect())
            .collect();
        let mut fluid = vec![T::zero(); tree.group_count() * GROUP_VALUES];
        for level in 0..tree.level_count() {
            for (key, &slot) in tree.level(level).iter().zip(&slots[level]) {
                let group = &mut fluid[slot as usize * GROUP_VALUES..][..GROUP_VALUES];
                for c in 0..GROUP_CELLS {
                    let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
                    let place = std::array::from_fn(|axis| key.coordinate[axis] as usize * GROUP + at[axis]);
                    group[DENSITY * GROUP_CELLS + c] = T::from_f64(density(level, place));
                }
            }
        }
        Self {
            tables: build_tables(&tree, &slots, Default::default()),
            root_slots: root_slots(&tree, &slots),
            potential: Buffer::zeros(&device, tree.group_count() * GROUP_CELLS).expect("room"),
            fluid: Buffer::from_host(&device, fluid).expect("room"),
            device,
            tree,
            slots,
        }
    }

    /// Cell width of a level.
    pub(crate) fn width(&self, level: usize) -> f64 {
        1.0 / self.tree.cells(level)[0] as f64
    }

    /// Mean density over the box that does not attract: none where gravity is isolated.
    pub(crate) fn mean(&self) -> f64 {
        if self.tree.periodic() == CLOSED {
            return 0.0;
        }
        let fluid = self.fluid.to_host();
        let groups = self.slots[0].iter().map(|&slot| &fluid[slot as usize * GROUP_VALUES..][..GROUP_CELLS]);
        groups.flatten().map(|v| v.as_f64()).sum::<f64>() / (self.slots[0].len() * GROUP_CELLS) as f64
    }

    /// The solver with these options, periodic or isolated as the tree is.
    pub(crate) fn gravity(&self, parameters: &RunParameters) -> PoissonSolver<T> {
        let isolated = self.tree.periodic() == CLOSED;
        let gravity_boundary = if isolated { GravityBoundary::Isolated } else { GravityBoundary::Periodic };
        let parameters = RunParameters { gravity_boundary, ..parameters.clone() };
        let root = self.tree.root_groups();
        PoissonSolver::new(&self.device, &Communicator::alone(), &Owners::alone(), &parameters, false, root)
            .expect("room")
    }

    /// Solves with 4πG = 1.
    pub(crate) fn solve(&mut self, parameters: &RunParameters) {
        let mut gravity = self.gravity(parameters);
        self.solve_with(&mut gravity);
    }

    /// Solves again with a solver that is there.
    pub(crate) fn solve_with(&mut self, gravity: &mut PoissonSolver<T>) {
        let ghost_exchange = GhostExchange::alone(&self.device).expect("room");
        let ranks = Sharing { ghost_exchange: &ghost_exchange, links: &[] };
        let hierarchy = Hierarchy { tables: &self.tables, root_slots: &self.root_slots, h: self.width(0), ranks };
        let density = DensitySource::of_fluid(&self.fluid, 1.0, self.mean());
        gravity.solve(&self.device, &hierarchy, density, &mut self.potential).expect("room");
    }

    /// The mass sheet of a level from the potential that is there, `[groups, 16³]` in key order. Only for a level
    /// with one finer level, whose boundary values come from this one.
    pub(crate) fn sheet(&self, level: usize) -> Vec<f64> {
        let slots = self.tree.group_count();
        let zeros = |values: usize| Buffer::zeros(&self.device, slots * values).expect("room");
        let (mut gradients, mut sheet, mut ghosts) = (zeros(FACE_GRADIENTS), zeros(GROUP_CELLS), zeros(GHOST_CELLS));
        let mut potential = Buffer::from_host(&self.device, self.potential.to_host()).expect("room");
        let (device, finer) = (&self.device, &self.tables[level + 1]);
        let density = DensitySource::of_fluid(&self.fluid, 1.0, self.mean());
        potential_ghosts(device, finer, GhostOrigin::Coarse, &self.potential, None, &mut ghosts);
        group_poisson(
            device,
            finer,
            &SineTables::new(),
            &PoissonSource::Density(density),
            &ghosts,
            self.width(level + 1),
            &mut potential,
            Some(&mut gradients),
        );
        let tables = &self.tables[level];
        mass_sheet(device, tables, self.width(level), &potential, &gradients, &mut sheet);
        let sheet = sheet.to_host();
        let group = |slot: &u32| &sheet[*slot as usize * GROUP_CELLS..][..GROUP_CELLS];
        self.slots[level].iter().flat_map(group).map(|v| v.as_f64()).collect()
    }

    /// g of every cell of a level, `[groups, 3, 16³]` in key order: the momentum that a unit of mass gains in a unit
    /// of time.
    pub(crate) fn acceleration(&self, level: usize) -> Vec<[Vec<f64>; 3]> {
        let mut values = vec![T::one(); self.tree.group_count() * GROUP_VALUES];
        for group in values.chunks_exact_mut(GROUP_VALUES) {
            group[MOMENTUM * GROUP_CELLS..ENERGY * GROUP_CELLS].fill(T::zero());
        }
        let mut gas = Buffer::from_host(&self.device, values).expect("room");
        let _ = gravity_kick(
            &self.device,
            &self.tables[level],
            &self.potential,
            None,
            &mut gas,
            self.width(level),
            1.0,
            &Eos::new(5.0 / 3.0),
        );
        let gas = gas.to_host();
        let field = |slot: u32, axis: usize| {
            let start = slot as usize * GROUP_VALUES + (MOMENTUM + axis) * GROUP_CELLS;
            gas[start..][..GROUP_CELLS].iter().map(|v| v.as_f64()).collect()
        };
        self.slots[level].iter().map(|&slot| [0, 1, 2].map(|axis| field(slot, axis))).collect()
    }
}

/// The octree whose patches of level ℓ are refined where `refine(level, corner, width)` says so, corner and width of
/// the patch in units of the box's x length, and where proper nesting asks for it.
pub(crate) fn refine_where(root: [u32; 3], levels: usize, refine: impl Fn(usize, [f64; 3], f64) -> bool) -> Octree {
    refine_within(root, PERIODIC, levels, refine)
}

/// The same in a box that is periodic along these axes.
pub(crate) fn refine_within(
    root: [u32; 3],
    periodic: [bool; 3],
    levels: usize,
    refine: impl Fn(usize, [f64; 3], f64) -> bool,
) -> Octree {
    let empty = Octree::new(root, periodic);
    let mut refined = BTreeSet::new();
    for level in (0..levels).rev() {
        let width = 0.5 / f64::from(root[0] << level);
        let patches = root.map(|n| (2 * n) << level);
        for x in 0..patches[0] {
            for (y, z) in (0..patches[1]).flat_map(|y| (0..patches[2]).map(move |z| (y, z))) {
                if refine(level, [x, y, z].map(|c| f64::from(c) * width), width) {
                    refined.insert(Key::new(level as u8 + 1, [x, y, z]));
                }
            }
        }
        let finer: Vec<Key> = refined.iter().copied().filter(|key| usize::from(key.level) == level + 1).collect();
        for key in finer {
            for d in 0..27 {
                let neighbour = empty.neighbour(key, [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1]);
                refined.extend(neighbour.and_then(|key| key.parent()).filter(|parent| parent.level > 0));
            }
        }
    }
    Octree::with_groups(root, periodic, refined)
}

/// g of one cell of a complete level at `at` (cell coordinates).
pub(crate) fn at(case: &Case<f64>, acceleration: &[[Vec<f64>; 3]], level: usize, at: [usize; 3]) -> [f64; 3] {
    let key = Key::new(level as u8, at.map(|c| (c / GROUP) as u32));
    let group = &acceleration[case.tree.find(key).expect("a group there")];
    [0, 1, 2].map(|axis| group[axis][cell(at[0] % GROUP, at[1] % GROUP, at[2] % GROUP)])
}
