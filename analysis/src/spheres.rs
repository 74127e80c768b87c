//! Many spheres at once, each looked at by one rank, whoever has the cells in it.
//!
//! The rank that looks at a sphere walks down the octree, which all have, and takes the values of others' cells from what
//! these have sent in the same order. So it visits the cells in the order in which a rank without others would.

use crate::cells::LeafCell;
use crate::messages::{exchange, gather_all};
use crate::part::Part;
use crate::sphere::{Image, Sphere, norm};
use comove_sim::parallel::Communicator;
use rayon::prelude::*;

/// Spheres that a rank looks at together where others send it cells.
pub(crate) const SPHERES: usize = 8;
/// Root groups of a sphere whose cells are sent at once.
const ROOT_GROUPS: usize = 8;

/// What is done with the cells of a sphere.
pub(crate) trait Look: Sync {
    /// What is collected of a sphere.
    type Sums: Send;

    /// The first fields of the fluid that it wants to know.
    const FIELDS: usize;

    /// Whether `add` uses the density of dark matter; if not, that density is 0 in cells from other ranks.
    const DARK_MATTER: bool = false;

    /// Nothing yet, of sphere `n`.
    fn start(&self, n: usize) -> Self::Sums;

    /// Adds a leaf cell that touches sphere `n`; `offset` is its centre minus the sphere's.
    fn add(&self, n: usize, sums: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]);

    /// What comes of it.
    fn finish(&self, n: usize, sums: Self::Sums) -> Vec<f64>;
}

/// What comes of each sphere, on all ranks: collective. Rank `n` modulo the number of ranks looks at sphere `n`.
pub(crate) fn look_at<L: Look>(
    communicator: &Communicator,
    part: &Part,
    spheres: &[Sphere],
    look: &L,
) -> Vec<Vec<f64>> {
    let (rank, ranks) = (communicator.rank(), communicator.size());
    if ranks == 1 {
        let of_sphere = |(n, sphere): (usize, &Sphere)| {
            let mut sums = look.start(n);
            for image in sphere.images(part) {
                let add = |cell: &LeafCell, offset| look.add(n, &mut sums, cell, offset);
                visit_own(part, sphere, &image, add);
            }
            look.finish(n, sums)
        };
        return spheres.par_iter().enumerate().map(of_sphere).collect();
    }
    let mut results = Vec::with_capacity(spheres.len());
    for (chunk, spheres) in spheres.chunks(SPHERES * ranks).enumerate() {
        let first = chunk * SPHERES * ranks;
        let images: Vec<Vec<Image>> = spheres.par_iter().map(|sphere| sphere.images(part)).collect();
        let mut own: Vec<_> = (rank..spheres.len()).step_by(ranks).map(|n| (n, look.start(first + n))).collect();
        let longest = images.iter().map(Vec::len).max().unwrap_or(0);
        for start in (0..longest).step_by(ROOT_GROUPS) {
            let now = |n: usize| {
                let images: &[Image] = &images[n];
                &images[start.min(images.len())..(start + ROOT_GROUPS).min(images.len())]
            };
            let came = exchange(communicator, values_for::<L>(part, spheres, now, (rank, ranks)));
            let came: Vec<Vec<&[f64]>> = came.iter().map(|values| split(values)).collect();
            own.par_iter_mut().enumerate().for_each(|(place, (n, sums))| {
                let sphere = &spheres[*n];
                let mut left: Vec<&[f64]> =
                    came.iter().map(|of_rank| of_rank.get(place).copied().unwrap_or(&[])).collect();
                for image in now(*n) {
                    let add = |cell: &LeafCell, offset| look.add(first + *n, sums, cell, offset);
                    if part.has(image.root) {
                        visit_own(part, sphere, image, add);
                    } else {
                        visit_sent::<L>(part, sphere, image, &mut left[part.rank_of(image.root)], add);
                    }
                }
            });
        }
        let own: Vec<Vec<f64>> = own.into_par_iter().map(|(n, sums)| look.finish(first + n, sums)).collect();
        let lists = gather_all(communicator, &joined(own));
        let lists: Vec<Vec<&[f64]>> = lists.iter().map(|values| split(values)).collect();
        results.extend((0..spheres.len()).map(|n| lists[n % ranks][n / ranks].to_vec()));
    }
    results
}

/// Calls `visit(radius, volume)` for every sub-cell of a cell whose centre lies within `reach`.
pub(crate) fn visit_samples(
    cell: &LeafCell,
    offset: [f64; 3],
    reach: f64,
    samples: usize,
    mut visit: impl FnMut(f64, f64),
) {
    visit_sample_places(cell, offset, reach, samples, |_, r, volume| visit(r, volume));
}

/// Calls `visit(offset, radius, volume)` for these sub-cells; their offsets are from the centre of the sphere.
pub(crate) fn visit_sample_places(
    cell: &LeafCell,
    offset: [f64; 3],
    reach: f64,
    samples: usize,
    mut visit: impl FnMut([f64; 3], f64, f64),
) {
    let n = (cell.width * samples as f64 / reach).ceil().max(1.0) as usize;
    let width = cell.width / n as f64;
    // of a cell much wider than the sphere few can lie within: the others are not looked at
    let within = |axis: usize| {
        let middle = 0.5 * cell.width - offset[axis];
        let index = |x: f64| (x / width).floor().clamp(0.0, n as f64) as usize;
        index(middle - reach - width)..index(middle + reach + width).saturating_add(1).min(n)
    };
    for z in within(2) {
        for y in within(1) {
            for x in within(0) {
                let sub = [x, y, z];
                let place = std::array::from_fn(|a| offset[a] + (sub[a] as f64 + 0.5) * width - 0.5 * cell.width);
                let r = norm(place);
                if r <= reach {
                    visit(place, r, width * width * width);
                }
            }
        }
    }
}

fn visit_own(part: &Part, sphere: &Sphere, image: &Image, mut add: impl FnMut(&LeafCell, [f64; 3])) {
    sphere.visit(part, image, |place, offset| add(&place.read(part.snapshot), offset));
}

/// Reads the values of each cell from the message of its rank.
fn visit_sent<L: Look>(
    part: &Part,
    sphere: &Sphere,
    image: &Image,
    values: &mut &[f64],
    mut add: impl FnMut(&LeafCell, [f64; 3]),
) {
    sphere.visit(part, image, |place, offset| {
        let (of_cell, rest) = values.split_at(L::FIELDS + usize::from(L::DARK_MATTER));
        *values = rest;
        let (fluid, dark_matter) = of_cell.split_at(L::FIELDS);
        add(&place.with(fluid, dark_matter.first().copied().unwrap_or(0.0)), offset);
    });
}

/// What this rank sends to each: a list for each sphere that the other looks at.
fn values_for<'i, L: Look>(
    part: &Part,
    spheres: &[Sphere],
    now: impl Fn(usize) -> &'i [Image] + Sync,
    (rank, ranks): (usize, usize),
) -> Vec<Vec<f64>> {
    let of_sphere = |n: usize| {
        let mut values = Vec::new();
        for image in now(n).iter().filter(|image| n % ranks != rank && part.has(image.root)) {
            visit_own(part, &spheres[n], image, |cell, _| {
                values.extend_from_slice(&cell.fluid[..L::FIELDS]);
                values.extend(L::DARK_MATTER.then_some(cell.dark_matter));
            });
        }
        values
    };
    let mut lists: Vec<Vec<f64>> = (0..spheres.len()).into_par_iter().map(of_sphere).collect();
    let to =
        |other: usize| joined((other..spheres.len()).step_by(ranks).map(|n| std::mem::take(&mut lists[n])).collect());
    (0..ranks).map(to).collect()
}

/// Lists one after the other, each behind its length.
pub(crate) fn joined(lists: Vec<Vec<f64>>) -> Vec<f64> {
    let mut all = Vec::with_capacity(lists.iter().map(|list| 1 + list.len()).sum());
    for list in lists {
        all.push(list.len() as f64);
        all.extend(list);
    }
    all
}

/// The lists again.
pub(crate) fn split(mut all: &[f64]) -> Vec<&[f64]> {
    let mut lists = Vec::new();
    while let Some((&length, rest)) = all.split_first() {
        let (list, rest) = rest.split_at(length as usize);
        lists.push(list);
        all = rest;
    }
    lists
}
