//! Signal speeds on the processor: a plane of cells at a time, then the cell within the fastest plane.

use super::SignalSpeed;
use crate::device::isa::{Isa, Kernel};
use crate::layout::{FACE_CELLS, GROUP, GROUP_CELLS, GROUP_VALUES};
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::point::relaxing_tvd::signal_speed as point_speed;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn signal_speed<T: Real>(isa: Isa, tables: &LevelTopology, fluid: &[T], eos: &Eos<T>) -> Vec<SignalSpeed> {
    let speed = |&slot: &u32| {
        let group = &fluid[slot as usize * GROUP_VALUES..][..GROUP_VALUES];
        isa.run(GroupSpeed { group, eos: *eos })
    };
    tables.slots.par_iter().map(speed).collect()
}

struct GroupSpeed<'a, T> {
    /// `[6, 16, 16, 16]`
    group: &'a [T],
    eos: Eos<T>,
}

impl<T: Real> Kernel for GroupSpeed<'_, T> {
    type Output = SignalSpeed;

    #[inline(always)]
    fn run(self) -> SignalSpeed {
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        if self.eos.gamma == monatomic {
            fastest(self.group, &Eos { gamma: monatomic, ..self.eos })
        } else {
            fastest(self.group, &self.eos)
        }
    }
}

#[inline(always)]
fn fastest<T: Real>(group: &[T], eos: &Eos<T>) -> SignalSpeed {
    let mut fastest = (T::neg_infinity(), 0);
    for k in 0..GROUP {
        let fields: [&[T]; 6] = std::array::from_fn(|f| &group[f * GROUP_CELLS + k * FACE_CELLS..][..FACE_CELLS]);
        let mut speeds = [T::zero(); FACE_CELLS];
        for e in 0..FACE_CELLS {
            let u = [fields[0][e], fields[1][e], fields[2][e], fields[3][e], fields[4][e], fields[5][e]];
            let speed = point_speed(&u, eos);
            // a floor must not hide a cell that is no number
            let sum = speed + u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
            speeds[e] = if sum * T::zero() == T::zero() { speed } else { T::infinity() };
        }
        let mut lanes = [T::neg_infinity(); GROUP];
        for row in speeds.as_chunks::<GROUP>().0 {
            for i in 0..GROUP {
                lanes[i] = if row[i] > lanes[i] { row[i] } else { lanes[i] };
            }
        }
        let most = lanes.iter().fold(T::neg_infinity(), |most, &speed| if speed > most { speed } else { most });
        if most > fastest.0 {
            let first = speeds.iter().position(|&speed| speed == most).expect("the largest is one of them");
            fastest = (most, k * FACE_CELLS + first);
        }
    }
    SignalSpeed { speed: fastest.0.as_f64(), cell: fastest.1 as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::cell;

    #[test]
    fn names_the_fastest_cell_on_every_instruction_set() {
        let eos = Eos::<f32>::new(5.0 / 3.0);
        let mut group = vec![0f32; GROUP_VALUES];
        for e in 0..GROUP_CELLS {
            group[e] = 1.0 + 0.01 * (e % 7) as f32;
            group[3 * GROUP_CELLS + e] = -0.1 * (e % 5) as f32;
            group[4 * GROUP_CELLS + e] = 3.0;
            group[5 * GROUP_CELLS + e] = 1.0;
        }
        let worst = cell(3, 9, 14);
        group[2 * GROUP_CELLS + worst] = -4.0;
        group[4 * GROUP_CELLS + worst] = 20.0;
        let density = f64::from(group[worst]);
        let momentum = f64::from(group[3 * GROUP_CELLS + worst]);
        let pressure = (20.0 - 0.5 * (16.0 + momentum * momentum) / density) / 1.5;
        let exact = 4.0 / density + (5.0 / 3.0 * pressure / density).sqrt();
        let tables = LevelTopology { slots: vec![0].into(), ..Default::default() };
        for isa in Isa::available() {
            let speeds = signal_speed(isa, &tables, &group, &eos);
            assert_eq!(speeds[0].cell as usize, worst);
            // a dozen single-precision roundings
            assert!((speeds[0].speed / exact - 1.0).abs() < 1e-6);
        }
        group[cell(1, 0, 0)] = f32::NAN;
        let speeds = signal_speed(Isa::best(), &tables, &group, &eos);
        assert_eq!(speeds, [SignalSpeed { speed: f64::INFINITY, cell: 1 }]);
    }
}
