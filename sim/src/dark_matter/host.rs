//! Particles on the host: what an initial condition ends as and what a snapshot holds.

use crate::error::SimError;
use crate::mesh::{Key, OCTANT_OF_ROW, Octree};
use crate::parallel::communicator::Communicator;
use comove_kernels::layout::{GROUP, OCTANTS, PATCH};
use comove_kernels::particles::COLUMNS;
use comove_kernels::point::particle::{CLASSES, WeightUnit, class_of, is_followed, mass_of, mass_of_class};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Fractions of the box that a position counts.
pub(super) const FRACTIONS: f64 = 4_294_967_296.0; // 2³²

/// The dark matter of a snapshot, in its header.
///
/// Bits 60 to 62 of an identity are a particle's mass class ([`class_of`]): a particle of class c has 8ᶜ times the mass of one
/// of class 0. Bit 59 marks particles that refinement does not follow ([`is_followed`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DarkMatterHeader {
    /// Number of particles of all classes.
    pub particles: u64,
    /// Mass of a particle of class 0: mean density · code length³.
    pub particle_mass: f64,
    /// Numbers of particles of classes 1 to 7; left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub heavier: [u64; CLASSES - 1],
    /// Number of particles of class 0 that refinement does not follow; left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_followed: u64,
}

fn is_zero<T: Default + PartialEq>(numbers: &T) -> bool {
    *numbers == T::default()
}

impl DarkMatterHeader {
    /// The highest class that has particles.
    pub fn heaviest_class(&self) -> usize {
        self.heavier.iter().rposition(|&count| count > 0).map_or(0, |n| n + 1)
    }

    /// Numbers of particles of each class.
    fn counts(&self) -> [u64; CLASSES] {
        let lightest = self.particles.saturating_sub(self.heavier.iter().sum());
        std::array::from_fn(|class| if class == 0 { lightest } else { self.heavier[class - 1] })
    }

    /// The sum over all particles of a power of their mass in units of class 0.
    fn sum_of_powers(&self, power: u32) -> u128 {
        let mass = |class: usize| u128::from(mass_of_class(class)).pow(power);
        self.counts().into_iter().enumerate().map(|(class, count)| u128::from(count) * mass(class)).sum()
    }

    /// Mass of all particles in units of class 0.
    pub fn mass_in_class_0(&self) -> u64 {
        self.sum_of_powers(1) as u64
    }

    /// Number of particles if all of the mass were in particles of the lightest class present.
    pub fn number_if_lightest(&self) -> u64 {
        let lightest = self.counts().iter().position(|&count| count > 0).unwrap_or(0);
        self.mass_in_class_0() / u64::from(mass_of_class(lightest))
    }

    /// Mass of all particles: mean density · code length³.
    pub fn mass(&self) -> f64 {
        self.mass_in_class_0() as f64 * self.particle_mass
    }

    /// Number of equal particles with the same shot noise: (Σm)²/Σm².
    pub fn effective_number(&self) -> f64 {
        let mass = self.sum_of_powers(1) as f64;
        mass / (self.sum_of_powers(2) as f64 / mass)
    }

    /// Unit of deposits, with head-room for the heaviest class.
    pub fn weight_unit(&self) -> WeightUnit {
        WeightUnit::for_heaviest(self.heaviest_class())
    }

    /// Unit of deposits of the particles that refinement follows alone, where there are others as well.
    pub fn unit_of_followed(&self) -> Option<WeightUnit> {
        (self.heaviest_class() > 0 || self.not_followed > 0).then(|| self.weight_unit().followed_alone())
    }

    /// Weight of all particles in that unit.
    pub fn weight(&self) -> u128 {
        self.sum_of_powers(1) * u128::from(self.weight_unit().whole())
    }

    /// Density of a weight of 1 ([`DarkMatterHeader::weight_unit`]) in a cell of this width.
    pub fn density_of_weight(&self, width: f64) -> f64 {
        self.particle_mass / (self.weight_unit().whole() as f64 * width.powi(3))
    }
}

/// Particles, of one or several masses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostParticles {
    /// Mass of a particle of class 0 ([`DarkMatterHeader`]): mean density · code length³.
    pub particle_mass: f64,
    /// Positions along x, y, z as fractions of the box in 2⁻³².
    pub position: [Vec<u32>; 3],
    /// Velocities ṽ = a v_pec/(100 km/s) along x, y, z.
    pub velocity: [Vec<f32>; 3],
    /// Identities, with the mass class in bits 60 to 62 and the mark of those that refinement does not follow in bit 59.
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

    /// Header for these particles.
    pub fn header(&self) -> DarkMatterHeader {
        self.header_of_all(&Communicator::alone())
    }

    /// Header for the particles of all ranks: collective.
    pub fn header_of_all(&self, communicator: &Communicator) -> DarkMatterHeader {
        const NONE: [u64; CLASSES + 1] = [0; CLASSES + 1];
        let count = |mut counts: [u64; CLASSES + 1], &id: &u64| {
            counts[class_of(id)] += 1;
            counts[CLASSES] += u64::from(is_followed(id));
            counts
        };
        let add = |a: [u64; CLASSES + 1], b: [u64; CLASSES + 1]| std::array::from_fn(|n| a[n] + b[n]);
        let mut counts = self.id.par_iter().fold(|| NONE, count).reduce(|| NONE, add);
        communicator.sum(&mut counts);
        let [lightest, heavier @ .., followed] = counts;
        let (particles, not_followed) = (lightest + heavier.iter().sum::<u64>(), lightest - followed);
        DarkMatterHeader { particles, particle_mass: self.particle_mass, heavier, not_followed }
    }

    /// Mass of a particle: mean density · code length³.
    pub fn mass(&self, particle: usize) -> f64 {
        self.particle_mass * f64::from(mass_of(self.id[particle]))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.len() * COLUMNS * size_of::<u32>()
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

    /// Checks the particles of one rank, which may have none.
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
    use comove_kernels::point::particle::{id_of_class, marked};

    /// Counts, masses and shot noise of several classes in closed form; the text of a single class has no `heavier`.
    #[test]
    fn headers_count_the_classes() {
        let class = |class, number| id_of_class(class, number).unwrap();
        let id = vec![0, 1, class(1, 2), class(3, 2), class(3, 3), 5];
        let particles = HostParticles { particle_mass: 0.5, id, ..HostParticles::default() };
        let header = particles.header();
        assert_eq!((header.particles, header.heavier, header.heaviest_class()), (6, [1, 0, 2, 0, 0, 0, 0], 3));
        assert_eq!((header.mass(), particles.mass(1), particles.mass(4)), (0.5 * 1035.0, 0.5, 256.0));
        assert_eq!(header.effective_number(), 1035.0 / ((3.0 + 64.0 + 2.0 * 512f64.powi(2)) / 1035.0));
        assert_eq!(header.number_if_lightest(), 1035);
        let text = serde_json::to_string(&header).unwrap();
        assert_eq!(serde_json::from_str::<DarkMatterHeader>(&text).unwrap(), header);
        let one = HostParticles { particle_mass: 0.5, id: vec![1, 2, 7], ..HostParticles::default() }.header();
        assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"particles":3,"particle_mass":0.5}"#);
        assert_eq!((one.effective_number(), one.weight_unit(), one.mass()), (3.0, WeightUnit::default(), 1.5));
        let heavy =
            DarkMatterHeader { particles: 5, particle_mass: 1.0, heavier: [0, 4, 1, 0, 0, 0, 0], not_followed: 0 };
        assert_eq!((heavy.number_if_lightest(), heavy.mass()), (4 + 8, 4.0 * 64.0 + 512.0));
        let id = [1, 2, class(1, 7)].into_iter().chain([3, class(1, 8)].map(marked)).collect();
        let some = HostParticles { particle_mass: 1.0, id, ..HostParticles::default() }.header();
        assert_eq!((some.particles, some.heavier[0], some.not_followed), (5, 2, 1));
        let text = serde_json::to_string(&some).unwrap();
        assert_eq!(serde_json::from_str::<DarkMatterHeader>(&text).unwrap(), some);
        let all = HostParticles { particle_mass: 1.0, id: vec![1, marked(2)], ..HostParticles::default() };
        let units = [one, heavy, some, all.header()].map(|header| header.unit_of_followed().is_some());
        assert_eq!(units, [false, true, true, true]);
    }

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
