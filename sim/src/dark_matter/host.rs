//! Particles on the host: what an initial condition ends as and what a snapshot holds.

use crate::error::SimError;
use crate::mesh::{Key, OCTANT_OF_ROW, Octree};
use comove_kernels::layout::{GROUP, OCTANTS, PATCH};
use comove_kernels::particles::COLUMNS;
use comove_kernels::point::particle::WHOLE;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Fractions of the box that a position counts.
pub(super) const FRACTIONS: f64 = 4_294_967_296.0; // 2³²

/// The density of a weight of 1 in a cell of this width, of particles of this mass.
pub(super) fn density_of_weight(particle_mass: f64, width: f64) -> f64 {
    particle_mass / (WHOLE as f64 * width.powi(3))
}

/// The dark matter of a snapshot, in its header.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DarkMatterHeader {
    /// How many particles.
    pub particles: u64,
    /// Mass of each: mean density · code length³.
    pub particle_mass: f64,
}

/// Particles of one mass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostParticles {
    /// Mass of each: mean density · code length³.
    pub particle_mass: f64,
    /// Positions along x, y, z as fractions of the box in 2⁻³².
    pub position: [Vec<u32>; 3],
    /// Velocities ṽ = a v_pec/(100 km/s) along x, y, z.
    pub velocity: [Vec<f32>; 3],
    /// What each is called.
    pub id: Vec<u64>,
}

impl HostParticles {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// What a header says of them.
    pub fn header(&self) -> DarkMatterHeader {
        DarkMatterHeader { particles: self.len() as u64, particle_mass: self.particle_mass }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.len() * COLUMNS * size_of::<u32>()
    }

    /// The density of a weight of 1 in a cell of this width.
    pub fn density_of_weight(&self, width: f64) -> f64 {
        density_of_weight(self.particle_mass, width)
    }

    /// A position in code length along an axis of a box of that length.
    pub fn coordinate(&self, particle: usize, axis: usize, box_length: f64) -> f64 {
        f64::from(self.position[axis][particle]) * (box_length / FRACTIONS)
    }

    /// The fraction of the box, in 2⁻³², of a position in code length; none outside the box.
    pub fn fraction(x: f64, box_length: f64) -> Option<u32> {
        let fraction = (x * (FRACTIONS / box_length)).round_ties_even();
        // the far end is the near one
        (0.0..=FRACTIONS).contains(&fraction).then_some(fraction as u64 as u32)
    }

    /// As the kernels have them.
    pub(crate) fn columns(&self) -> [Vec<u32>; COLUMNS] {
        let bits = |values: &Vec<f32>| values.iter().map(|v| v.to_bits()).collect();
        let half = |shift: u32| self.id.iter().map(|id| (id >> shift) as u32).collect();
        let [x, y, z] = self.position.clone();
        let [vx, vy, vz] = self.velocity.each_ref().map(bits);
        [x, y, z, vx, vy, vz, half(0), half(32)]
    }

    /// Of the kernels' columns.
    pub(crate) fn of_columns(particle_mass: f64, columns: [Vec<u32>; COLUMNS]) -> Self {
        let [x, y, z, vx, vy, vz, low, high] = columns;
        let velocity = [vx, vy, vz].map(|bits| bits.into_iter().map(f32::from_bits).collect());
        let id = low.iter().zip(&high).map(|(&low, &high)| u64::from(low) | u64::from(high) << 32).collect();
        Self { particle_mass, position: [x, y, z], velocity, id }
    }

    /// The leaf patch that contains a particle: the number of its group in key order, and its octant there. The tree has the
    /// particle's group; coarser ones need not be there.
    pub(crate) fn leaf_patch(&self, tree: &Octree, particle: usize) -> (usize, usize) {
        let cell = |level: usize, axis: usize| {
            let cells = tree.cells(level)[axis] as u64;
            ((u64::from(self.position[axis][particle]) * cells) >> 32) as usize
        };
        let patch = |level: usize| std::array::from_fn(|axis| cell(level, axis) / PATCH % 2);
        let group =
            |level: usize| Key::new(level as u8, std::array::from_fn(|axis| (cell(level, axis) / GROUP) as u32));
        let finest = (0..tree.level_count()).rev().find_map(|level| Some((level, tree.index(group(level))?)));
        let (level, found) = finest.expect("a group at every particle");
        let [x, y, z]: [usize; 3] = patch(level);
        (found, x | y << 1 | z << 2)
    }

    /// In the order that files and runs have them in: by leaf patch of a tree, in each by identity.
    #[must_use]
    pub fn in_file_order(self, tree: &Octree) -> Self {
        let mut order: Vec<(usize, u64, u32)> = (0..self.len())
            .into_par_iter()
            .map(|n| {
                let (group, octant) = self.leaf_patch(tree, n);
                (group * OCTANTS + OCTANT_OF_ROW[octant], self.id[n], n as u32)
            })
            .collect();
        order.par_sort_unstable();
        fn ordered<V: Copy + Send + Sync>(column: &[V], order: &[(usize, u64, u32)]) -> Vec<V> {
            order.par_iter().map(|&(_, _, n)| column[n as usize]).collect()
        }
        Self {
            particle_mass: self.particle_mass,
            position: self.position.each_ref().map(|column| ordered(column, &order)),
            velocity: self.velocity.each_ref().map(|column| ordered(column, &order)),
            id: ordered(&self.id, &order),
        }
    }

    /// Checks what a run relies on.
    ///
    /// # Errors
    /// [`SimError::Parameter`] where there are none, for a mass that is not positive, a velocity that is not finite, or an
    /// identity that occurs twice.
    pub fn check(&self) -> Result<(), SimError> {
        SimError::require(
            "particles",
            &self.len(),
            !self.is_empty(),
            "must be at least 1; without particles leave dark matter out",
        )?;
        self.check_part()
    }

    /// The same of particles that a rank has among others, which may be none.
    ///
    /// # Errors
    /// As [`HostParticles::check`].
    pub(crate) fn check_part(&self) -> Result<(), SimError> {
        let mass = self.particle_mass;
        SimError::require("particle mass", &mass, mass > 0.0 && mass.is_finite(), "must be positive and finite")?;
        let most = u32::MAX as usize;
        SimError::require("particles", &self.len(), self.len() < most, format!("must be fewer than {most}"))?;
        for (axis, velocity) in ["x", "y", "z"].iter().zip(&self.velocity) {
            if let Some(n) = velocity.par_iter().position_first(|v| !v.is_finite()) {
                let reason = format!("along {axis}, of particle {}: must be finite", self.id[n]);
                return SimError::require("velocity", &velocity[n], false, reason);
            }
        }
        let mut ids = self.id.clone();
        ids.par_sort_unstable();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => SimError::require("particle identity", &pair[0], false, "belongs to two particles"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::PERIODIC;

    #[test]
    fn positions_come_back_from_lengths() {
        let mut particles =
            HostParticles { position: [vec![0, 1, u32::MAX, 1_234_567_891], vec![], vec![]], ..Default::default() };
        particles.id = vec![0; 4];
        for box_length in [1.0, 67.74, 1e3 / 3.0] {
            for n in 0..4 {
                let x = particles.coordinate(n, 0, box_length);
                assert!((0.0..box_length).contains(&x));
                assert_eq!(HostParticles::fraction(x, box_length), Some(particles.position[0][n]));
            }
            assert_eq!(HostParticles::fraction(box_length, box_length), Some(0));
            assert_eq!(HostParticles::fraction(-1e-6, box_length), None);
            assert_eq!(HostParticles::fraction(f64::NAN, box_length), None);
        }
    }

    #[test]
    fn files_have_them_by_patch_and_identity() {
        let tree = Octree::with_groups([2, 1, 1], PERIODIC, [Key::new(1, [3, 1, 0])]);
        let at = |x: f64| (x * FRACTIONS) as u32;
        let position = [[0.9, 0.1, 0.9, 0.3, 0.1], [0.9, 0.1, 0.8, 0.2, 0.2], [0.1; 5]].map(|row| row.map(at).to_vec());
        let velocity = [0, 1, 2].map(|axis| (0..5).map(|n| (axis * 5 + n) as f32).collect());
        let particles = HostParticles { particle_mass: 2.0, position, velocity, id: vec![9, 8, 7, 6, 1 << 40] };
        assert_eq!(HostParticles::of_columns(2.0, particles.columns()), particles);
        let sorted = particles.clone().in_file_order(&tree);
        assert_eq!(sorted.id, [8, 1 << 40, 6, 7, 9]);
        assert_eq!(sorted.velocity[1], [6.0, 9.0, 8.0, 7.0, 5.0]);
        assert_eq!(sorted.leaf_patch(&tree, 4), (2, 3));
        assert!(particles.check().is_ok());
        let error = |change: fn(&mut HostParticles)| {
            let mut bad = particles.clone();
            change(&mut bad);
            bad.check().unwrap_err().to_string()
        };
        assert!(error(|bad| bad.velocity[2][3] = f32::NAN).contains("velocity = NaN: along z, of particle 6"));
        assert!(error(|bad| bad.id[0] = 7).contains("particle identity = 7: belongs to two particles"));
        assert!(error(|bad| bad.particle_mass = 0.0).contains("particle mass = 0"));
    }
}
