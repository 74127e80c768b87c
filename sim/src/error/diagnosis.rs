//! What a cell and its neighbours look like: part of the error about the first cell that no rung of the robustness ladder
//! could repair.

use crate::mesh::key::CellPlace;
use std::fmt::{Display, Formatter};

/// The gas of a cell, code units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellGas {
    /// Mass density.
    pub density: f64,
    /// Velocity along x, y, z.
    pub velocity: [f64; 3],
    /// Pressure.
    pub pressure: f64,
    /// Total energy density.
    pub energy: f64,
    /// Entropy scalar.
    pub entropy: f64,
}

/// A cell among its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Where it is.
    pub place: CellPlace,
    /// Its gas.
    pub gas: CellGas,
    /// The gas across its faces −x, +x, −y, +y, −z, +z: of the same level, else of the coarser one; `None` beyond the
    /// domain.
    pub neighbours: [Option<CellGas>; 6],
}

impl Diagnosis {
    /// Numbers as bits: what is said here may be no number.
    pub(crate) fn words(&self) -> Vec<u64> {
        let gases = std::iter::once(Some(&self.gas)).chain(self.neighbours.iter().map(Option::as_ref));
        gases.flat_map(|gas| gas.map_or([0; 8], CellGas::words)).collect()
    }

    pub(crate) fn from_words(place: CellPlace, words: &[u64]) -> Self {
        let gas = |n: usize| CellGas::from_words(&words[8 * n..][..8]);
        Self { place, gas: gas(0).expect("a cell"), neighbours: std::array::from_fn(|face| gas(face + 1)) }
    }
}

impl CellGas {
    fn words(&self) -> [u64; 8] {
        let Self { density, velocity: [x, y, z], pressure, energy, entropy } = *self;
        let [a, b, c, d, e, f, g] = [density, x, y, z, pressure, energy, entropy].map(f64::to_bits);
        [1, a, b, c, d, e, f, g]
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let number = |n: usize| f64::from_bits(words[n]);
        (words[0] == 1).then(|| Self {
            density: number(1),
            velocity: [2, 3, 4].map(number),
            pressure: number(5),
            energy: number(6),
            entropy: number(7),
        })
    }
}

impl Display for CellGas {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.velocity;
        write!(f, "density {:.4e}, pressure {:.4e}, velocity ({x:.4e}, {y:.4e}, {z:.4e})", self.density, self.pressure)
    }
}

impl Display for Diagnosis {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let CellPlace { level, cell } = self.place;
        let CellGas { energy, entropy, .. } = self.gas;
        write!(f, "level {level}, cell {cell:?} ({}, energy {energy:.4e}, entropy {entropy:.4e})", self.gas)?;
        for (name, neighbour) in ["-x", "+x", "-y", "+y", "-z", "+z"].into_iter().zip(&self.neighbours) {
            match neighbour {
                Some(gas) => write!(f, "; {name}: {gas}")?,
                None => write!(f, "; {name}: beyond the domain")?,
            }
        }
        Ok(())
    }
}
