//! Looks at the cell that an error is about.

use crate::error::diagnosis::{CellGas, Diagnosis};
use crate::mesh::{CellPlace, Key};
use crate::state::State;
use comove_kernels::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, cell};
use comove_kernels::point::dual_energy::pressure;
use comove_kernels::{Eos, Real};

/// Looks at a cell of a state, or at the one over it if a regrid has removed it: collective, with the owner's eyes.
pub(crate) fn diagnose<T: Real>(state: &State<T>, eos: &Eos<T>, mut place: CellPlace) -> Diagnosis {
    let is_own = |place: &CellPlace| state.mesh.tree.find(place.group()).is_some();
    while !state.exchange.communicator.any(is_own(&place)) {
        place = CellPlace { level: place.level - 1, cell: place.cell.map(|x| x / 2) };
    }
    let own = if is_own(&place) { of_own(state, eos, place).words() } else { Vec::new() };
    let all = state.exchange.communicator.gather_all(bytemuck::cast_slice(&own));
    let words = all.into_iter().find(|words| !words.is_empty()).expect("some rank owns it");
    Diagnosis::from_words(place, &bytemuck::pod_collect_to_vec(&words))
}

fn of_own<T: Real>(state: &State<T>, eos: &Eos<T>, place: CellPlace) -> Diagnosis {
    let key = place.group();
    let at = place.cell.map(|x| x % GROUP);
    let fluid = state.gas().fluid.values.to_host();
    let neighbour = |face: usize| {
        let (axis, step) = (face / 2, if face & 1 == 0 { -1 } else { 1 });
        let mut beside = at.map(|x| x as i32);
        beside[axis] += step;
        let mut offset = [0; 3];
        offset[axis] = beside[axis].div_euclid(GROUP as i32);
        let key = state.mesh.tree.neighbour(key, offset)?;
        Some(gas(state, &fluid, eos, key, beside.map(|x| x.rem_euclid(GROUP as i32) as usize)))
    };
    Diagnosis { place, gas: gas(state, &fluid, eos, key, at), neighbours: std::array::from_fn(neighbour) }
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
