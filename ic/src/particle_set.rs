//! Dark matter at given positions.

use crate::error::IcError;
use crate::identities::Identities;
use crate::ordered_sum::{BLOCK, ordered_sum_of_ranks};
use crate::slab::part;
use bytemuck::{Pod, Zeroable};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::{
    CLASSES, class_of, is_followed, marked, mass_of, mass_of_class, number_of, unmarked,
};
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;

/// Particles at any positions, of one or several masses; of ranks that share them each has consecutive rows, those of the first
/// rank first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParticleSet {
    /// Positions along x, y, z as fractions of the box in 2⁻³².
    pub position: [Vec<u32>; 3],
    /// Velocities ṽ = a v_pec/(100 km/s) along x, y, z.
    pub velocity: [Vec<f32>; 3],
    /// Identities, each of one particle, with the mass class in bits 60 to 62 and the mark of those that refinement does not follow
    /// in bit 59.
    pub id: Vec<u64>,
}

/// A particle that is sent to another rank.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    id: u64,
    position: [u32; 3],
    velocity: [f32; 3],
}

/// The fraction of the box that particles must reach along each axis.
const SMALLEST_EXTENT: f64 = 0.5;

/// Sets of fewer particles may fill any part of the box.
pub(crate) const FEW: u64 = 512;

impl ParticleSet {
    /// Number of particles that are here.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none here.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Reserves room for `count` more particles if memory allows: a file may claim more than it holds.
    pub(crate) fn reserve(&mut self, count: usize) {
        let positions = self.position.iter_mut().try_for_each(|column| column.try_reserve_exact(count));
        let velocities = self.velocity.iter_mut().try_for_each(|column| column.try_reserve_exact(count));
        // columns without room grow later
        let _ = positions.and(velocities).and_then(|()| self.id.try_reserve_exact(count));
    }

    /// The rows of a rank, of `total` of all ranks: whole blocks of sums.
    pub(crate) fn rows(total: u64, rank: usize, ranks: usize) -> Range<usize> {
        part(total as usize, BLOCK, rank, ranks)
    }

    /// Sends rows to the ranks that are to have them ([`ParticleSet::rows`]), in the order of classes, the heaviest first, and of
    /// identities: collective.
    ///
    /// * `counts`: numbers of own particles of each class, in this order; of a class those of the first rank are first
    pub(crate) fn in_rows(self, communicator: &Communicator, counts: &[u64]) -> Self {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if ranks == 1 {
            return self;
        }
        let of_ranks: Vec<Vec<u64>> = communicator.gather_all_of(&counts.to_vec());
        let total = of_ranks.iter().flatten().sum();
        let rows: Vec<Range<usize>> = (0..ranks).map(|rank| Self::rows(total, rank, ranks)).collect();
        let mut to = vec![Vec::new(); ranks];
        let (mut before, mut own) = (0, 0..);
        for (class, &count) in counts.iter().enumerate() {
            let of_class = |ranks: &[Vec<u64>]| ranks.iter().map(|counts| counts[class] as usize).sum::<usize>();
            let first = before + of_class(&of_ranks[..rank]);
            for (row, n) in (first..first + count as usize).zip(&mut own) {
                let receiver = rows.partition_point(|rows| rows.end <= row);
                let (position, velocity) =
                    ([0, 1, 2].map(|a| self.position[a][n]), [0, 1, 2].map(|a| self.velocity[a][n]));
                to[receiver].extend_from_slice(bytemuck::bytes_of(&Row { id: self.id[n], position, velocity }));
            }
            before += of_class(&of_ranks);
        }
        drop(self);
        let came = communicator.exchange(to);
        let mut came: Vec<Row> = came.iter().flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, Row>(bytes)).collect();
        came.par_sort_unstable_by_key(|row| (Reverse(class_of(row.id)), row.id));
        let column = |axis: usize| came.iter().map(move |row| (row.position[axis], row.velocity[axis])).unzip();
        let [x, y, z]: [(Vec<u32>, Vec<f32>); 3] = [0, 1, 2].map(column);
        Self { position: [x.0, y.0, z.0], velocity: [x.1, y.1, z.1], id: came.iter().map(|row| row.id).collect() }
    }

    /// Number of particles of all ranks: collective.
    pub fn total(&self, communicator: &Communicator) -> u64 {
        let mut count = [self.len() as u64];
        communicator.sum(&mut count);
        count[0]
    }

    /// Numbers of all ranks' particles by mass class: collective.
    pub fn counts(&self, communicator: &Communicator) -> [u64; CLASSES] {
        let mut counts = [0; CLASSES];
        self.id.iter().for_each(|&id| counts[class_of(id)] += 1);
        communicator.sum(&mut counts);
        counts
    }

    /// Mass of all ranks' particles in units of class 0: collective.
    pub fn mass(&self, communicator: &Communicator) -> u64 {
        let counts = self.counts(communicator);
        counts.iter().enumerate().map(|(class, count)| count * u64::from(mass_of_class(class))).sum()
    }

    /// Number of all ranks' particles that refinement follows: collective.
    fn followed(&self, communicator: &Communicator) -> u64 {
        let mut count = [self.id.par_iter().filter(|&&id| is_followed(id)).count() as u64];
        communicator.sum(&mut count);
        count[0]
    }

    /// Has refinement follow, of the particles of class 0, those alone whose numbers a function picks.
    pub(crate) fn follow(&mut self, picks: impl Fn(u64) -> bool + Sync) {
        self.id.par_iter_mut().filter(|id| class_of(**id) == 0).for_each(|id| {
            let number = number_of(*id);
            *id = if picks(number) { number } else { marked(number) };
        });
    }

    /// The first of some identities that no particle of class 0 has, on any rank: collective.
    pub(crate) fn first_missing(&self, communicator: &Communicator, identities: &Identities) -> Option<u64> {
        let is_one = |id: &u64| is_followed(*id) && identities.contains(*id);
        let own: Vec<u64> = self.id.par_iter().copied().filter(is_one).collect();
        let of_ranks = communicator.gather_all(bytemuck::cast_slice(&own));
        let found: Identities = of_ranks.iter().flat_map(|ids| bytemuck::pod_collect_to_vec::<u8, u64>(ids)).collect();
        identities.iter().find(|&id| !found.contains(id))
    }

    /// The number of particles in words, with that of each further mass, and of those that refinement does not follow: collective.
    pub fn described(&self, communicator: &Communicator) -> String {
        let counts = self.counts(communicator);
        let heavier = counts.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
        let heavier =
            heavier.map(|(class, count)| format!(", {count} of them {} times as heavy", mass_of_class(class)));
        let heavier = heavier.collect::<String>();
        let marked = match counts[0] - self.followed(communicator) {
            0 => String::new(),
            marked => format!(", {marked} of the lightest not followed by refinement"),
        };
        format!("{}{heavier}{marked}", counts.iter().sum::<u64>())
    }

    /// The mean by mass over all ranks' particles of what a function gives for a row, with bits that do not depend on the number
    /// of ranks: collective.
    pub fn mean(&self, communicator: &Communicator, f: impl Fn(usize) -> f64 + Sync) -> f64 {
        let weighted = |n: usize| f64::from(mass_of(self.id[n])) * f(n);
        ordered_sum_of_ranks(communicator, self.len(), weighted) / self.mass(communicator) as f64
    }

    /// The particles of a run.
    ///
    /// * `particle_mass`: of class 0
    pub(crate) fn with_mass(self, particle_mass: f64) -> HostParticles {
        let Self { position, velocity, id } = self;
        HostParticles { particle_mass, position, velocity, id }
    }

    /// Checks that there are particles, that each has an identity of its own, and that they fill the box: collective.
    ///
    /// # Errors
    /// [`IcError::Parameter`], on all ranks.
    pub(crate) fn check(&self, communicator: &Communicator) -> Result<(), IcError> {
        let refuse = |name, value: String, reason: &str| Err(IcError::Parameter { name, value, reason: reason.into() });
        let total = self.total(communicator);
        if total == 0 {
            return refuse("particles", "0".into(), "must be at least 1; without particles leave dark matter out");
        }
        let too_large = self.id.iter().copied().filter(|&id| id >> 63 != 0).min();
        if let Some(id) = communicator.gather_all_of(&too_large).into_iter().flatten().min() {
            return refuse(
                "particle identity",
                id.to_string(),
                "must be below 2⁶³, where bits 60 to 62 are the mass class and bit 59 a mark; number particles anew",
            );
        }
        if let Some(id) = self.repeated_id(communicator) {
            return refuse(
                "particle identity",
                number_of(id).to_string(),
                "belongs to two particles; number them anew",
            );
        }
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let own = self.position[axis].par_iter().max().copied().unwrap_or(0);
            let extent = communicator.max(f64::from(own) / 2f64.powi(32));
            if extent < SMALLEST_EXTENT && total >= FEW {
                let value = format!("at most {extent:.3e} of the box along {name}");
                return refuse("positions", value, "positions must fill the box: give them and box_mpc_h in one unit");
            }
        }
        Ok(())
    }

    /// Checks that refinement has particles to follow: collective.
    ///
    /// # Errors
    /// [`IcError::Parameter`], on all ranks.
    pub(crate) fn check_followed(&self, communicator: &Communicator) -> Result<(), IcError> {
        if self.followed(communicator) > 0 {
            return Ok(());
        }
        let lightest = self.counts(communicator)[0];
        if lightest == 0 {
            return Ok(());
        }
        let reason = "refinement needs some to follow: give follow, set ic_refmap to 1 in their cells, or clear bit 59 of their \
                      identities";
        Err(IcError::Parameter {
            name: "followed particles",
            value: format!("none of {lightest}"),
            reason: reason.into(),
        })
    }

    /// The lowest identity that two particles have: collective.
    fn repeated_id(&self, communicator: &Communicator) -> Option<u64> {
        // a mark makes no difference
        let mut ids: Vec<u64> = self.id.par_iter().map(|&id| unmarked(id)).collect();
        let ranks = communicator.size();
        if ranks > 1 {
            let mut to = vec![Vec::new(); ranks];
            ids.iter().for_each(|id| to[(id % ranks as u64) as usize].extend_from_slice(&id.to_ne_bytes()));
            let come = communicator.exchange(to);
            ids = come.iter().flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, u64>(bytes)).collect();
        }
        ids.par_sort_unstable();
        let own = ids.par_windows(2).find_first(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        communicator.gather_all_of(&own).into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;

    fn set(rows: Range<usize>, id: impl Fn(usize) -> u64) -> ParticleSet {
        let position =
            [0, 1, 2].map(|axis| rows.clone().map(|n| (n as u32 * (7 + axis)).wrapping_mul(1 << 22)).collect());
        let velocity = [(); 3].map(|()| vec![0.0; rows.len()]);
        ParticleSet { position, velocity, id: rows.map(id).collect() }
    }

    /// An identity that particles of two ranks have is found, and so are positions in a corner of the box.
    #[test]
    fn all_ranks_refuse_a_bad_set() {
        let said = |id: fn(usize) -> u64, narrow: bool| {
            on_ranks(3, |communicator| {
                let mut own = set(ParticleSet::rows(4000, communicator.rank(), 3), id);
                if narrow {
                    own.position[1].iter_mut().for_each(|x| *x /= 1000);
                }
                own.check(&communicator).map_err(|error| error.to_string())
            })
        };
        assert_eq!(said(|n| n as u64, false), [Ok(()), Ok(()), Ok(())]);
        let twice = said(|n| if n == 3999 { 17 } else { n as u64 }, false);
        assert!(
            twice.iter().all(|said| said.as_ref().unwrap_err().starts_with("particle identity = 17: ")),
            "{twice:?}"
        );
        let narrow = said(|n| n as u64, true);
        assert!(narrow.iter().all(|said| said.as_ref().unwrap_err().contains("of the box along y")), "{narrow:?}");
    }
}
