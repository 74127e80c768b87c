//! Nested lattices of particles: fine ones in a region, coarser ones around it.
//!
//! Lattice 0 has a particle for each cell of the whole box, lattice ℓ half the spacing of lattice ℓ−1. A particle is whole or
//! replaced by its eight children, which have its centre of mass, so the mass is exact. Lattice ℓ covers the region of lattice ℓ+1
//! and `padding` of its own spacings around that, so the masses of neighbours differ by at most a factor of 8.

use crate::error::IcError;
use crate::span::Span;
use comove_sim::kernels::layout::GROUP;
use comove_sim::kernels::point::particle::{CLASSES, id_of_class};
use serde::{Deserialize, Serialize};

/// A region of finer particles: those of the finest lattice within a box, and coarser ones around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zoom {
    /// Centre of a box that holds the finest particles at the start, comoving Mpc/h; it may reach through periodic faces.
    pub center: [f64; 3],
    /// Side lengths of the region in comoving Mpc/h, capped at those of the box.
    pub extent: [f64; 3],
    /// Number of finer lattices, 1 to 7; each halves the spacing of particles and divides their mass by 8.
    pub levels: u8,
    /// Width of each intermediate lattice around the next finer one, in its own spacings, at least 1; by default 4.
    #[serde(default = "padding")]
    pub padding: usize,
}

fn padding() -> usize {
    4
}

/// Cells of the finest lattice along an axis at most.
const MOST_CELLS: usize = 1 << 16;

impl Zoom {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range.
    pub fn check(&self, cells: [usize; 3], box_mpc_h: f64) -> Result<(), IcError> {
        let refuse = |name, value: String, reason: String| Err(IcError::Parameter { name, value, reason });
        let Self { center, extent, levels, padding } = *self;
        if !(1..CLASSES).contains(&usize::from(levels)) {
            let reason = format!("must lie between 1 and {}", CLASSES - 1);
            return refuse("zoom.levels", levels.to_string(), reason);
        }
        if center.iter().any(|x| !x.is_finite()) {
            return refuse("zoom.center", format!("{center:?}"), "must be finite, in Mpc/h".into());
        }
        if !extent.iter().all(|x| *x > 0.0 && x.is_finite()) {
            let reason = "must be positive: lengths of the region along x, y, z in Mpc/h";
            return refuse("zoom.extent", format!("{extent:?}"), reason.into());
        }
        if padding == 0 {
            let reason = "must be at least 1, so that masses of neighbours differ by a factor of 8";
            return refuse("zoom.padding", padding.to_string(), reason.into());
        }
        let longest = cells.into_iter().max().unwrap_or(0);
        if padding > longest {
            let reason = format!("must not exceed the {longest} particles of the coarsest lattice along an axis");
            return refuse("zoom.padding", padding.to_string(), reason);
        }
        let finest = self.finest(cells);
        if finest.iter().any(|n| *n > MOST_CELLS) {
            let reason =
                format!("the finest lattice has {finest:?} cells, at most {MOST_CELLS}: reduce levels or cells");
            return refuse("zoom.levels", levels.to_string(), reason);
        }
        if self.nests(cells, box_mpc_h)[0].particles() == 0 {
            let reason = "fills the box with its padding: reduce extent or padding, or increase cells";
            return refuse("zoom.extent", format!("{extent:?}"), reason.into());
        }
        Ok(())
    }

    /// Cells of the finest lattice, if it filled the box.
    pub fn finest(&self, cells: [usize; 3]) -> [usize; 3] {
        cells.map(|n| n << self.levels)
    }

    /// Number of particles of all lattices.
    pub fn particles(&self, cells: [usize; 3], box_mpc_h: f64) -> u64 {
        self.nests(cells, box_mpc_h).iter().map(Nest::particles).sum()
    }

    /// Cells of the gas at the resolution of each lattice but the coarsest: whole groups of the octree, which hold the places of its
    /// particles and a margin of 16 cells for those that have left them and for the flag buffer of a run.
    pub(crate) fn gas_regions(&self, cells: [usize; 3], box_mpc_h: f64) -> Vec<[Span; 3]> {
        let nests = self.nests(cells, box_mpc_h);
        let mut regions: Vec<[Span; 3]> = Vec::new();
        for (n, nest) in nests.iter().enumerate().skip(1).rev() {
            let around = regions.last().map(|finer| finer.map(|span| span.parents().padded(self.padding)));
            // particle j starts at cell j less half a cell of the coarsest lattice
            let margin = GROUP + (1 << (n - 1));
            regions.push(around.unwrap_or(nest.region).map(|span| span.padded(margin).in_blocks(GROUP)));
        }
        regions.reverse();
        regions
    }

    /// Number of these cells.
    pub fn gas_cells(&self, cells: [usize; 3], box_mpc_h: f64) -> u64 {
        Span::cells_of(&self.gas_regions(cells, box_mpc_h))
    }

    /// Cells of the coarsest lattice in which particles of the finest one start.
    pub(crate) fn places_of_finest(&self, cells: [usize; 3], box_mpc_h: f64) -> [Span; 3] {
        let finest = self.nests(cells, box_mpc_h).last().expect("at least the coarsest").region;
        (0..self.levels).fold(finest, |region, _| region.map(Span::parents))
    }

    /// The lattices, the coarsest first.
    pub(crate) fn nests(&self, cells: [usize; 3], box_mpc_h: f64) -> Vec<Nest> {
        let levels = usize::from(self.levels);
        let spacing = box_mpc_h / cells[0] as f64;
        let parents_of_finest = |axis: usize| {
            let (n, half) = (cells[axis] << levels, 0.5 * self.extent[axis]);
            if 2.0 * half >= cells[axis] as f64 * spacing {
                return Span::new(0, n as i64 - 1, n);
            }
            // particle j is at (j + ½) spacings of its lattice less half of one of the coarsest
            let fine = spacing / (1 << levels) as f64;
            let place = |x: f64| (x + 0.5 * spacing) / fine - 0.5;
            let first = place(self.center[axis] - half).ceil() as i64;
            let last = place(self.center[axis] + half).floor() as i64;
            Span::new(first, last.max(first), n)
        };
        let mut span = [0, 1, 2].map(|axis| parents_of_finest(axis).parents());
        let mut nests = Vec::new();
        let mut covered = [Span::default(); 3];
        for level in (0..=levels).rev() {
            let cells = cells.map(|n| n << level);
            let region = match level {
                0 => cells.map(Span::whole),
                _ => span.map(Span::children),
            };
            nests.push(Nest { cells, class: levels - level, region, covered });
            covered = span;
            span = span.map(|span| span.padded(self.padding).parents());
        }
        nests.reverse();
        nests
    }
}

/// A lattice, and which of its particles there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nest {
    /// Cells of the whole box.
    pub(crate) cells: [usize; 3],
    /// Mass class of its particles.
    pub(crate) class: usize,
    region: [Span; 3],
    /// Cells whose particles are replaced by finer ones.
    covered: [Span; 3],
}

impl Nest {
    /// Number of particles.
    fn particles(&self) -> u64 {
        let volume = |spans: &[Span; 3]| spans.iter().map(|span| span.count as u64).product::<u64>();
        volume(&self.region) - volume(&self.covered)
    }

    /// True for a cell with a particle of this lattice.
    pub(crate) fn holds(&self, at: [usize; 3]) -> bool {
        let is_in = |spans: &[Span; 3]| (0..3).all(|axis| spans[axis].holds(at[axis]));
        is_in(&self.region) && !is_in(&self.covered)
    }

    /// Identity of a particle: its class, and its place on the lattice, x fastest.
    pub(crate) fn id(&self, [i, j, k]: [usize; 3]) -> u64 {
        let [nx, ny, _] = self.cells;
        id_of_class(self.class, ((k * ny + j) * nx + i) as u64).expect("a lattice of fewer than 2⁵⁹ cells")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every particle of the coarsest lattice is whole or replaced by its descendants, and the padding is kept, across faces, along
    /// uneven axes, and where the region is as long as the box.
    #[test]
    fn masses_add_up_and_neighbours_differ_by_eight() {
        let cells = [8, 6, 16];
        for (center, extent, levels, padding) in [
            ([0.2, 3.0, 15.9], [1.0, 0.3, 2.0], 2, 1),
            ([4.0, 3.0, 8.0], [2.6, 0.1, 4.0], 1, 4),
            ([7.9, 0.0, 0.0], [0.1, 100.0, 1.0], 3, 2),
        ] {
            let zoom = Zoom { center, extent, levels, padding };
            zoom.check(cells, 8.0).unwrap();
            let nests = zoom.nests(cells, 8.0);
            let finest = zoom.finest(cells);
            // the class of the particle that holds each cell of the finest lattice
            let class = |at: [usize; 3]| {
                let mut found = nests.iter().filter(|nest| nest.holds(at.map(|i| i >> nest.class)));
                let class = found.next().expect("a particle").class;
                assert!(found.next().is_none(), "two particles at {at:?}");
                class
            };
            let mut counts = vec![0; nests.len()];
            for n in 0..finest.iter().product::<usize>() {
                let at = [n % finest[0], n / finest[0] % finest[1], n / finest[0] / finest[1]];
                let own = class(at);
                counts[own] += 1;
                for axis in 0..3 {
                    // so many spacings of the next coarser lattice further
                    let mut beside = at;
                    beside[axis] = (at[axis] + (padding << (own + 1))) % finest[axis];
                    assert!(class(beside) <= own + 1, "{at:?} {beside:?}");
                }
                // the finest are in the region
                let offset = |axis: usize| {
                    let length = finest[axis] as f64 / finest[0] as f64 * 8.0;
                    let spacing = 8.0 / finest[0] as f64;
                    let d = (at[axis] as f64 + 0.5) * spacing - 0.5 - center[axis];
                    (d - length * (d / length).round()).abs() - 0.5 * extent[axis]
                };
                if (0..3).all(|axis| offset(axis) < 0.0) {
                    assert_eq!(own, 0, "{at:?}");
                }
            }
            for nest in &nests {
                assert_eq!(nest.particles() << (3 * nest.class), counts[nest.class], "{nest:?}");
            }
            assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        }
    }

    #[test]
    fn bad_regions_are_named() {
        let good = Zoom { center: [1.0; 3], extent: [1.0; 3], levels: 2, padding: 4 };
        let said = |zoom: Zoom| zoom.check([32; 3], 8.0).unwrap_err().to_string();
        assert!(said(Zoom { levels: 8, ..good }).starts_with("zoom.levels = 8: "));
        assert!(said(Zoom { extent: [1.0, 0.0, 1.0], ..good }).contains("positive"));
        assert!(said(Zoom { padding: 0, ..good }).contains("factor of 8"));
        assert!(said(Zoom { padding: 33, ..good }).contains("32 particles"));
        assert!(said(Zoom { extent: [8.0; 3], ..good }).contains("fills the box"));
        assert!(said(Zoom { levels: 200, ..good }).starts_with("zoom.levels = 200: "));
        assert!(good.check([1 << 15; 3], 8.0).unwrap_err().to_string().contains("reduce levels or cells"));
    }
}
