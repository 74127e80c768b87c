//! Which peaks become halos. A denser peak claims its sphere first.
//!
//! A peak inside a halo is a sub-peak. So is one most of whose own sphere lies in halos already found: the sphere of a saddle
//! between two clumps grows over both, is heavier than either and has denser peaks beside its centre. A peak whose sphere
//! holds small denser halos is their host.

use super::Halo;
use super::growth::Outcome;
use crate::cells::LeafCell;
use crate::part::Part;
use crate::sphere::{Sphere, norm, separation};
use crate::spheres::{Look, look_at, visit_sample_places};
use comove_sim::kernels::layout::DENSITY;
use comove_sim::parallel::Communicator;

/// Share of a sphere's mass in denser halos above which its peak is a sub-peak.
const CLAIMED: f64 = 0.5;

/// Halos so far, in the order of their peaks, and the peaks that became none; equal on all ranks but for `sub_peaks`, which
/// the first rank counts.
pub(super) struct Claims<'a> {
    communicator: &'a Communicator,
    part: &'a Part<'a>,
    /// Samples along a sphere's radius.
    samples: usize,
    pub(super) halos: Vec<Halo>,
    pub(super) too_small: usize,
    pub(super) unbounded: usize,
    /// Sub-peaks outside the halos that count them: position and halo.
    saddles: Vec<([f64; 3], usize)>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(communicator: &'a Communicator, part: &'a Part<'a>, samples: usize) -> Self {
        let (halos, saddles) = (Vec::new(), Vec::new());
        Self { communicator, part, samples, halos, too_small: 0, unbounded: 0, saddles }
    }

    /// Whether a peak lies inside a halo, which then counts it.
    pub(super) fn joins(&mut self, peak: [f64; 3]) -> bool {
        let snapshot = self.part.snapshot;
        let host = self.halos.iter_mut().find(|h| norm(separation(snapshot, h.position_mpc_h, peak)) < h.radius_mpc_h);
        host.map(|halo| halo.sub_peaks += 1).is_some()
    }

    /// Takes a peak that lies in no halo: collective.
    pub(super) fn take(&mut self, peak: [f64; 3], outcome: Outcome) {
        match outcome {
            Outcome::TooSmall => self.too_small += 1,
            Outcome::Unbounded => self.unbounded += 1,
            Outcome::Halo(halo) => match self.owner(&halo) {
                Some(owner) => {
                    self.halos[owner].sub_peaks += 1;
                    self.saddles.push((peak, owner));
                }
                None => self.halos.push(halo),
            },
        }
    }

    /// The halo that a sphere belongs to: of a saddle inside, or the nearest of those that most of its mass lies in.
    fn owner(&self, sphere: &Halo) -> Option<usize> {
        let least = CLAIMED * sphere.mass_msun_h;
        let offset = |x: [f64; 3]| separation(self.part.snapshot, sphere.position_mpc_h, x);
        let saddle = self.saddles.iter().find(|(saddle, owner)| {
            norm(offset(*saddle)) < sphere.radius_mpc_h && self.halos[*owner].mass_msun_h > least
        });
        if let Some((_, owner)) = saddle {
            return Some(*owner);
        }
        let reach = |halo: &Halo| sphere.radius_mpc_h + halo.radius_mpc_h;
        let meets = |n: &usize| norm(offset(self.halos[*n].position_mpc_h)) < reach(&self.halos[*n]);
        let met: Vec<usize> = (0..self.halos.len()).filter(meets).collect();
        let most: f64 = met.iter().map(|&n| self.halos[n].mass_msun_h).sum();
        if most <= least {
            return None;
        }
        let others: Vec<([f64; 3], f64)> =
            met.iter().map(|&n| (offset(self.halos[n].position_mpc_h), self.halos[n].radius_mpc_h)).collect();
        if self.claimed_share(sphere, &others) <= CLAIMED {
            return None;
        }
        let distance = |n: &usize| norm(offset(self.halos[*n].position_mpc_h));
        met.into_iter().min_by(|x, y| distance(x).total_cmp(&distance(y)))
    }

    /// Share of a sphere's mass in other spheres, given by the offsets of their centres and their radii: collective.
    fn claimed_share(&self, sphere: &Halo, others: &[([f64; 3], f64)]) -> f64 {
        let sphere = Sphere { centre: sphere.position_mpc_h, radius: sphere.radius_mpc_h };
        let look = Claimed { radius: sphere.radius, others, samples: self.samples };
        let sums = look_at(self.communicator, self.part, &[sphere], &look);
        sums[0][1] / sums[0][0]
    }
}

/// Mass in a sphere, and its part in other spheres.
struct Claimed<'a> {
    radius: f64,
    others: &'a [([f64; 3], f64)],
    samples: usize,
}

impl Look for Claimed<'_> {
    type Sums = [f64; 2];
    const FIELDS: usize = DENSITY + 1;

    fn start(&self, _: usize) -> Self::Sums {
        [0.0; 2]
    }

    fn add(&self, _: usize, sums: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]) {
        visit_sample_places(cell, offset, self.radius, self.samples, |place, _, volume| {
            let mass = cell.fluid[DENSITY] * volume;
            let is_inside = |&(centre, radius): &([f64; 3], f64)| {
                norm([place[0] - centre[0], place[1] - centre[1], place[2] - centre[2]]) < radius
            };
            sums[0] += mass;
            if self.others.iter().any(is_inside) {
                sums[1] += mass;
            }
        });
    }

    fn finish(&self, _: usize, sums: Self::Sums) -> Vec<f64> {
        sums.to_vec()
    }
}
