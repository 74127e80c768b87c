//! What a cell and its neighbours look like: said of the first cell that no rung of the robustness ladder could repair.

use crate::octree::Key;
use crate::records::CellPlace;
use crate::state::State;
use comove_kernels::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, cell};
use comove_kernels::point::dual_energy::pressure;
use comove_kernels::{Eos, Real};
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
    /// Looks at a cell of a state, or at the one over it if a regrid has removed it: collective, with the owner's eyes.
    pub fn of<T: Real>(state: &State<T>, eos: &Eos<T>, mut place: CellPlace) -> Self {
        let is_own = |place: &CellPlace| state.tree.find(place.group()).is_some();
        while !state.communicator.any(is_own(&place)) {
            place = CellPlace { level: place.level - 1, cell: place.cell.map(|x| x / 2) };
        }
        let own = if is_own(&place) { Self::of_own(state, eos, place).words() } else { Vec::new() };
        let all = state.communicator.gather_all(bytemuck::cast_slice(&own));
        let words = all.into_iter().find(|words| !words.is_empty()).expect("some rank owns it");
        Self::from_words(place, &bytemuck::pod_collect_to_vec(&words))
    }

    /// Numbers as bits: what is said here may be no number.
    fn words(&self) -> Vec<u64> {
        let gases = std::iter::once(Some(&self.gas)).chain(self.neighbours.iter().map(Option::as_ref));
        gases.flat_map(|gas| gas.map_or([0; 8], CellGas::words)).collect()
    }

    fn from_words(place: CellPlace, words: &[u64]) -> Self {
        let gas = |n: usize| CellGas::from_words(&words[8 * n..][..8]);
        Self { place, gas: gas(0).expect("a cell"), neighbours: std::array::from_fn(|face| gas(face + 1)) }
    }

    fn of_own<T: Real>(state: &State<T>, eos: &Eos<T>, place: CellPlace) -> Self {
        let key = place.group();
        let at = place.cell.map(|x| x % GROUP);
        let fluid = state.fluid.to_host();
        let neighbour = |face: usize| {
            let (axis, step) = (face / 2, if face & 1 == 0 { -1 } else { 1 });
            let mut beside = at.map(|x| x as i32);
            beside[axis] += step;
            let mut offset = [0; 3];
            offset[axis] = beside[axis].div_euclid(GROUP as i32);
            let key = state.tree.neighbour(key, offset)?;
            Some(gas(state, &fluid, eos, key, beside.map(|x| x.rem_euclid(GROUP as i32) as usize)))
        };
        Self { place, gas: gas(state, &fluid, eos, key, at), neighbours: std::array::from_fn(neighbour) }
    }
}

/// The gas of cell `at` of a group, or of the cell over it on the finest level that has one.
fn gas<T: Real>(state: &State<T>, fluid: &[T], eos: &Eos<T>, key: Key, at: [usize; 3]) -> CellGas {
    let Some(slot) = state.slot_of(key) else {
        let over: [usize; 3] = std::array::from_fn(|a| (key.coordinate[a] as usize * GROUP + at[a]) / 2);
        let parent = Key::new(key.level - 1, over.map(|x| (x / GROUP) as u32));
        return gas(state, fluid, eos, parent, over.map(|x| x % GROUP));
    };
    let first = slot as usize * GROUP_VALUES + cell(at[0], at[1], at[2]);
    let u: [T; FIELDS] = std::array::from_fn(|f| fluid[first + f * GROUP_CELLS]);
    let [density, x, y, z, energy, entropy] = u.map(Real::as_f64);
    let velocity = [x, y, z].map(|momentum| momentum / density);
    CellGas { density, velocity, pressure: pressure(&u, eos).as_f64(), energy, entropy }
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
