//! Which peaks become halos. A denser peak claims its sphere first.
//!
//! A peak inside a halo is a sub-peak. So is one whose own sphere consists of halos already found: the sphere of a saddle
//! between two clumps grows over both, is heavier than either and has a denser peak beside its centre. A peak whose sphere
//! holds less than that of denser halos is their host.

use super::Halo;
use super::growth::Outcome;
use crate::sphere::{norm, separation};
use comove_sim::Snapshot;

/// Share of a sphere's mass from which on denser halos inside make its peak a sub-peak.
const CLAIMED: f64 = 0.5;

/// Halos so far, in the order of their peaks, and the peaks that became none.
pub(super) struct Claims<'a> {
    snapshot: &'a Snapshot,
    pub(super) halos: Vec<Halo>,
    pub(super) too_small: usize,
    pub(super) unbounded: usize,
    /// Sub-peaks outside the halos that count them: position and halo.
    saddles: Vec<([f64; 3], usize)>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, halos: Vec::new(), too_small: 0, unbounded: 0, saddles: Vec::new() }
    }

    /// Whether a peak lies inside a halo, which then counts it.
    pub(super) fn joins(&mut self, peak: [f64; 3]) -> bool {
        let snapshot = self.snapshot;
        let host = self.halos.iter_mut().find(|h| norm(separation(snapshot, h.position_mpc_h, peak)) < h.radius_mpc_h);
        host.map(|halo| halo.sub_peaks += 1).is_some()
    }

    /// Takes a peak that lies in no halo.
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

    /// The nearest of the denser halos that a sphere consists of, if it does: those whose centres or saddles it holds.
    fn owner(&self, sphere: &Halo) -> Option<usize> {
        let distance = |x: [f64; 3]| norm(separation(self.snapshot, sphere.position_mpc_h, x));
        let holds = |x: [f64; 3]| distance(x) < sphere.radius_mpc_h;
        let centres = self.halos.iter().enumerate().filter(|(_, halo)| holds(halo.position_mpc_h)).map(|(n, _)| n);
        let saddles = self.saddles.iter().filter(|(saddle, _)| holds(*saddle)).map(|(_, owner)| *owner);
        let mut inside: Vec<usize> = centres.chain(saddles).collect();
        inside.sort_unstable();
        inside.dedup();
        let claimed: f64 = inside.iter().map(|&n| self.halos[n].mass_msun_h).sum();
        let from_centre = |n: &usize| distance(self.halos[*n].position_mpc_h);
        let nearest = inside.into_iter().min_by(|x, y| from_centre(x).total_cmp(&from_centre(y)));
        nearest.filter(|_| claimed > CLAIMED * sphere.mass_msun_h)
    }
}
