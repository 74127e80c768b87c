//! The leaf cells: they tile the box exactly once, and every sum over the gas runs over them.

use crate::messages;
use crate::part::Part;
use comove_sim::fields::MAX_SCALARS;
use comove_sim::kernels::layout::{DENSITY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell, octant_origin};
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use comove_sim::{Key, Octree, Snapshot};
use rayon::prelude::*;

/// Cells of a patch.
pub const PATCH_CELLS: usize = PATCH * PATCH * PATCH;

/// A cell without finer cells in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafCell {
    /// Its centre in code length (comoving Mpc/h), x, y, z.
    pub position: [f64; 3],
    /// Its width in code length.
    pub width: f64,
    /// Its level.
    pub level: usize,
    /// Density, three momenta, energy and entropy scalar in code units; zeros without gas.
    pub fluid: [f64; FIELDS],
    /// Potential in code units; NaN where none was solved.
    pub potential: f64,
    /// Density of dark matter in code units; 0 where there is none.
    pub dark_matter: f64,
    /// Densities of the passive scalars; NaN behind the last.
    pub scalars: [f64; MAX_SCALARS],
}

impl LeafCell {
    /// Its volume in code length³.
    pub fn volume(&self) -> f64 {
        self.width * self.width * self.width
    }

    /// The density of all matter in code units.
    pub fn matter_density(&self) -> f64 {
        self.fluid[DENSITY] + self.dark_matter
    }
}

/// The 512 cells of a leaf patch, x fastest.
pub fn patch_cells(snapshot: &Snapshot, patch: LeafPatch) -> impl Iterator<Item = LeafCell> + '_ {
    let width = snapshot.cell_width(patch.level);
    let origin = octant_origin(patch.octant);
    (0..PATCH_CELLS).map(move |n| {
        let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
        let [i, j, k] = std::array::from_fn(|a| origin[a] + inside[a]);
        let position = std::array::from_fn(|a| ((patch.first_cell[a] + inside[a]) as f64 + 0.5) * width);
        read_cell(snapshot, patch.group, cell(i, j, k), position, patch.level, width)
    })
}

/// One stored field of the gas in the 512 cells of a leaf patch, x fastest, in code units; zeros without gas.
pub fn patch_values(snapshot: &Snapshot, patch: LeafPatch, field: usize) -> impl Iterator<Item = f64> + '_ {
    static NONE: [f64; GROUP_CELLS] = [0.0; GROUP_CELLS];
    let first = (patch.group * FIELDS + field) * GROUP_CELLS;
    let values = snapshot.state.fluid.get(first..first + GROUP_CELLS).unwrap_or(&NONE);
    let [x, y, z] = octant_origin(patch.octant);
    let lines = (0..PATCH * PATCH).map(move |line| cell(x, y + line % PATCH, z + line / PATCH));
    lines.flat_map(move |first| &values[first..first + PATCH]).copied()
}

/// The leaf cell that contains a position in code length; the box is taken as periodic.
pub fn leaf_at(snapshot: &Snapshot, position: [f64; 3]) -> LeafCell {
    leaf_of(&snapshot.into(), position).expect("a rank without others has every cell")
}

/// The same where this rank has it.
pub(crate) fn leaf_of(part: &Part, position: [f64; 3]) -> Option<LeafCell> {
    let root = Place::new(part, 0, position);
    if !part.has(root.group) {
        return None;
    }
    let Place { group, cell: lattice, level } = root.finest(part, position);
    let width = part.snapshot.cell_width(level);
    let centre = lattice.map(|c| (c as f64 + 0.5) * width);
    let [i, j, k] = lattice.map(|c| c % GROUP);
    Some(read_cell(part.snapshot, part.own(level, group), cell(i, j, k), centre, level, width))
}

/// Centre, width and density of all matter of a leaf cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafDensity {
    pub(crate) position: [f64; 3],
    pub(crate) width: f64,
    /// Density in code units.
    pub(crate) density: f64,
}

/// The leaf cells of all ranks that contain positions in code length; the box is taken as periodic. Collective.
pub(crate) fn leaf_densities_at(communicator: &Communicator, part: &Part, positions: &[[f64; 3]]) -> Vec<LeafDensity> {
    let place = |&position: &[f64; 3]| {
        let root = Place::new(part, 0, position);
        let Place { group, cell: lattice, level } = root.finest(part, position);
        let [i, j, k] = lattice.map(|c| c % GROUP);
        let width = part.snapshot.cell_width(level);
        let leaf = LeafDensity { position: lattice.map(|c| (c as f64 + 0.5) * width), width, density: f64::NAN };
        (leaf, part.rank_of(root.group), [level, group, cell(i, j, k)].map(|n| n as u64))
    };
    let places: Vec<_> = positions.par_iter().map(place).collect();
    let mut to = vec![Vec::new(); communicator.size()];
    places.iter().for_each(|(_, rank, place)| to[*rank].push(*place));
    let density = |&[level, group, cell]: &[u64; 3]| {
        let (group, cell) = (part.own(level as usize, group as usize), cell as usize);
        let state = &part.snapshot.state;
        let gas = state.fluid.get(group * GROUP_VALUES + DENSITY * GROUP_CELLS + cell).copied().unwrap_or(0.0);
        gas + state.dark_matter.get(group * GROUP_CELLS + cell).copied().unwrap_or(0.0)
    };
    let asked = messages::exchange(communicator, to);
    let answers = asked.iter().map(|places| places.par_iter().map(density).collect()).collect();
    let mut answers: Vec<_> = messages::exchange(communicator, answers).into_iter().map(Vec::into_iter).collect();
    let answered = |(leaf, rank, _): (LeafDensity, usize, _)| LeafDensity {
        density: answers[rank].next().expect("an answer to each question"),
        ..leaf
    };
    places.into_iter().map(answered).collect()
}

/// The width of the leaf cell that contains a position, whoever has it.
pub(crate) fn leaf_width_at(part: &Part, position: [f64; 3]) -> f64 {
    part.snapshot.cell_width(Place::new(part, 0, position).finest(part, position).level)
}

/// Sums over all leaf cells, whatever a sum is: each patch's on its own and in parallel, added in key order, so that the
/// bits do not depend on the number of threads.
pub fn fold_leaves<T: Send>(
    snapshot: &Snapshot,
    empty: impl Fn() -> T + Sync,
    add_cell: impl Fn(&mut T, &LeafCell) + Sync,
    add: impl Fn(&mut T, T),
) -> T {
    let of_patch = |&patch: &LeafPatch| {
        let mut sums = empty();
        patch_cells(snapshot, patch).for_each(|cell| add_cell(&mut sums, &cell));
        sums
    };
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let mut total = empty();
    // a few at a time: a histogram's sums are as many as its bins
    for patches in patches.chunks(1024) {
        let partial: Vec<T> = patches.par_iter().map(of_patch).collect();
        partial.into_iter().for_each(|sums| add(&mut total, sums));
    }
    total
}

/// Σ f over all leaf cells, as [`fold_leaves`] sums.
pub fn sum_over_leaves<const N: usize>(snapshot: &Snapshot, f: impl Fn(&LeafCell) -> [f64; N] + Sync) -> [f64; N] {
    let add = |sum: &mut [f64; N], term: [f64; N]| sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term);
    fold_leaves(snapshot, || [0.0; N], |sum, cell| add(sum, f(cell)), add)
}

/// The leaf cell with the largest density of all matter; of equally dense ones the first in key order.
pub fn densest(snapshot: &Snapshot) -> LeafCell {
    let denser =
        |best: LeafCell, cell: LeafCell| if cell.matter_density() > best.matter_density() { cell } else { best };
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let of_patches = patches.par_iter().filter_map(|&patch| patch_cells(snapshot, patch).reduce(denser));
    let of_patches: Vec<LeafCell> = of_patches.collect();
    of_patches.into_iter().reduce(denser).expect("level 0 covers the box")
}

/// The mean density of the gas in the box in code units, 0 without gas: of gas alone 1 in comoving coordinates, up to round-off and
/// the run's drift. Of a snapshot in parts, on all ranks: collective. Masses of patches are added in key order.
pub fn mean_density_by(communicator: &Communicator, part: &Part) -> f64 {
    let volume = |level: usize| {
        let width = part.snapshot.cell_width(level);
        width * width * width
    };
    let patches: Vec<LeafPatch> = part.leaf_patches().collect();
    let mass = |&patch: &LeafPatch| {
        let volume = volume(patch.level);
        patch_values(part.snapshot, patch, DENSITY).fold(0.0, |mass, density| mass + density * volume)
    };
    let masses = part.gather_of_patches(communicator, patches.par_iter().map(mass).collect());
    let mean = masses.map(|masses| {
        let levels = 0..part.tree.level_count();
        let volumes = levels.flat_map(|level| {
            let patches = 8 * part.tree.level(level).len() - part.tree.level(level + 1).len();
            let cells = std::iter::repeat_n(volume(level), PATCH_CELLS);
            std::iter::repeat_n(cells.fold(0.0, |sum, volume| sum + volume), patches)
        });
        masses.iter().fold(0.0, |sum, mass| sum + mass) / volumes.fold(0.0, |sum, volume| sum + volume)
    });
    messages::number_of_first(communicator, mean)
}

/// A cell that holds a position.
#[derive(Clone, Copy)]
struct Place {
    /// Its group, by its place in its level's list.
    group: usize,
    /// On the level's lattice.
    cell: [usize; 3],
    level: usize,
}

impl Place {
    /// The cell of a level; its group must be there.
    fn new(part: &Part, level: usize, position: [f64; 3]) -> Self {
        Self::find(part, level, position).expect("level 0 covers the box")
    }

    fn find(part: &Part, level: usize, position: [f64; 3]) -> Option<Self> {
        let width = part.snapshot.cell_width(level);
        let cells = part.tree.cells(level);
        let cell = std::array::from_fn(|a| ((position[a] / width).floor() as i64).rem_euclid(cells[a] as i64) as usize);
        Some(Self { group: group_of(part.tree, level, cell)?, cell, level })
    }

    /// The leaf cell in it that holds the position.
    fn finest(self, part: &Part, position: [f64; 3]) -> Self {
        let mut finest = self;
        // a finer group exists if and only if the patch is not a leaf
        while finest.level + 1 < part.tree.level_count()
            && let Some(finer) = Self::find(part, finest.level + 1, position)
        {
            finest = finer;
        }
        finest
    }
}

/// The group that holds a cell of a level's lattice, by its place in the level's list, if it is there.
pub(crate) fn group_of(tree: &Octree, level: usize, cell: [usize; 3]) -> Option<usize> {
    tree.find(Key::new(level as u8, cell.map(|c| (c / GROUP) as u32)))
}

/// Reads a cell of a group, by its index among those that are there.
pub(crate) fn read_cell(
    snapshot: &Snapshot,
    group: usize,
    cell: usize,
    position: [f64; 3],
    level: usize,
    width: f64,
) -> LeafCell {
    let start = group * GROUP_VALUES + cell;
    let fluid = std::array::from_fn(|field| *snapshot.state.fluid.get(start + field * GROUP_CELLS).unwrap_or(&0.0));
    let potential = snapshot.state.potential.get(group * GROUP_CELLS + cell).copied().unwrap_or(f64::NAN);
    let mut scalars = [f64::NAN; MAX_SCALARS];
    for (value, scalar) in scalars.iter_mut().zip(&snapshot.state.scalars) {
        *value = scalar[group * GROUP_CELLS + cell];
    }
    let dark_matter = snapshot.state.dark_matter.get(group * GROUP_CELLS + cell).copied().unwrap_or(0.0);
    LeafCell { position, width, level, fluid, potential, dark_matter, scalars }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, grid, leaf_cells, mean_density};

    /// Leaves tile the box once, and a look-up by position finds each of them.
    #[test]
    fn leaves_tile_the_box_and_are_found_by_position() {
        let snapshot = Fixture::blob().build();
        let [volume, mass] = sum_over_leaves(&snapshot, |c| [c.volume(), c.matter_density() * c.volume()]);
        let lengths = snapshot.box_lengths();
        assert!((volume / (lengths[0] * lengths[1] * lengths[2]) - 1.0).abs() < 1e-13);
        let serial: f64 = leaf_cells(&snapshot).map(|c| c.matter_density() * c.volume()).sum();
        assert!((mass / serial - 1.0).abs() < 1e-13);
        for cell in leaf_cells(&snapshot).step_by(37) {
            let off = cell.position.map(|x| x + 0.49 * cell.width - lengths[0]);
            let found = leaf_at(&snapshot, off);
            assert_eq!((found.level, found.fluid), (cell.level, cell.fluid));
            assert_eq!(found.position, cell.position);
        }
    }

    #[test]
    fn the_densest_cell_lies_in_the_blob() {
        let cell = densest(&Fixture::blob().build());
        assert_eq!(cell.level, 2);
        assert!((0..3).all(|a| (cell.position[a] - [0.3, 0.4, 0.55][a]).abs() <= cell.width));
    }

    /// One and three threads give the same bits in everything that is computed in parallel.
    #[test]
    fn bits_do_not_depend_on_threads() {
        use crate::density_pdf::density_pdf;

        use crate::halos::peaks::{HaloOptions, find_halos};
        use crate::map::{MapOptions, projection};
        use crate::power_spectrum::{PowerOptions, power_spectrum};
        let snapshot = Fixture::blob().build();
        let results = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mean = mean_density(&snapshot).to_bits();
                let halos = find_halos(&snapshot, &HaloOptions { delta: 20.0, ..HaloOptions::default() }).unwrap();
                let power = power_spectrum(&snapshot, &PowerOptions { level: 1, ..PowerOptions::default() }).unwrap();
                let pdf = density_pdf(&snapshot, 10).unwrap();
                let temperature = MapOptions { field: "temperature".into(), pixels: Some(50), ..MapOptions::default() };
                let map = projection(&snapshot, &temperature).unwrap().values;
                let mesh = grid(&snapshot, "velocity_x", 1).unwrap();
                let text = serde_json::to_string(&(halos, power, pdf, map, mesh)).unwrap();
                (mean, densest(&snapshot).position, text)
            })
        };
        assert!(results(1) == results(3), "one thread and three differ");
    }
}
