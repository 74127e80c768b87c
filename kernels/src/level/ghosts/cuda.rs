//! What kernels that use `ghosts.cuh` get.

use super::EarlierFluid;
use crate::device::cuda::CudaDevice;
use crate::device::cuda::array::Pointer;
use crate::real::Real;

/// The `EarlierFluid` of `ghosts.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct EarlierFluidPointers<T> {
    fluid: Pointer<T>,
    places: Pointer<u32>,
    weight: T,
}

impl<T: Real> EarlierFluidPointers<T> {
    /// Uploads what is not there yet.
    pub(crate) fn of(device: &CudaDevice, earlier: Option<&EarlierFluid<T>>) -> Self {
        match earlier {
            Some(earlier) => {
                Self { fluid: earlier.fluid.pointer(), places: earlier.places.on(device), weight: earlier.weight }
            }
            None => Self { fluid: Pointer::NULL, places: Pointer::NULL, weight: T::zero() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::buffer::Buffer;
    use crate::device::cuda::array::Array;
    use crate::device::cuda::launch;
    use crate::device::device_table::DeviceTable;
    use crate::layout::{FIELDS, GROUP_VALUES, HYDRO_BLOCK};
    use crate::level::cuda::Level;
    use crate::level::face_boundary::FaceBoundary;
    use crate::level::ghosts::{BLOCK_VALUES, CoarseCells, gather};
    use crate::point::eos::Eos;
    use crate::testing::{Mesh, Noise, motley_gas, with_gpu};

    /// Whole blocks of all groups, random values on random hierarchies, with and without an earlier state: equal bits.
    fn blocks_agree<T: Real>(gpu: &Device) {
        let Device::Cuda(cuda) = gpu else { panic!("a GPU is tested") };
        let mut noise = Noise::new(17);
        for case in 0..6 {
            let mut mesh = Mesh::random(&mut noise, 3);
            if case >= 3 {
                // walls on all sides, each kind on each axis in turn
                let kinds = [FaceBoundary::Reflecting, FaceBoundary::Outflow, FaceBoundary::Fixed([0.5; FIELDS])];
                mesh = mesh.with_faces([false; 3], std::array::from_fn(|face| kinds[(case + face) % 3]));
            }
            let eos = Eos::<T>::new(5.0 / 3.0);
            let fluid: Vec<T> = motley_gas(&mesh, &mut noise, false);
            let before: Vec<T> = motley_gas(&mesh, &mut noise, false);
            let slots = mesh.group_count();
            // the earlier states in another order
            let reversed = before.chunks(GROUP_VALUES).rev().flatten().copied().collect::<Vec<T>>();
            let places: DeviceTable<u32> = (0..slots as u32).map(|slot| slots as u32 - 1 - slot).collect();
            let cpu = Device::cpu(1).unwrap();
            let pools = [&cpu, gpu].map(|device| Buffer::from_host(device, fluid.clone()).unwrap());
            let earlier_pools = [&cpu, gpu].map(|device| Buffer::from_host(device, reversed.clone()).unwrap());
            for (level, timed) in (0..mesh.levels.len()).flat_map(|level| [(level, false), (level, true)]) {
                let tables = mesh.tables(level);
                let earlier = |n: usize| {
                    timed.then(|| EarlierFluid {
                        fluid: &earlier_pools[n],
                        places: &places,
                        weight: T::from_f64(0.375),
                    })
                };
                let blocks = Array::<T>::room(cuda, tables.len() * BLOCK_VALUES).unwrap();
                // SAFETY: the parameters are the kernel's; a block of cells for each group.
                unsafe {
                    launch!(cuda, T, "gather_blocks", tables.len(), 256, 0; Level::of(cuda, &tables),
                        pools[1].pointer(), EarlierFluidPointers::of(cuda, earlier(1).as_ref()), eos, blocks.pointer());
                }
                let found = blocks.to_host();
                let mut expected: Box<[T; BLOCK_VALUES]> =
                    vec![T::zero(); BLOCK_VALUES].into_boxed_slice().try_into().unwrap();
                for (g, found) in found.chunks(BLOCK_VALUES).enumerate() {
                    let coarse = &mut CoarseCells::new();
                    gather(&tables, g, pools[0].host(), earlier(0).as_ref(), &eos, coarse, &mut expected);
                    for (n, (found, expected)) in found.iter().zip(&expected[..]).enumerate() {
                        let place = |stride: usize| (n / stride % HYDRO_BLOCK) as i32 - 3;
                        let [i, j, k] = [1, HYDRO_BLOCK, HYDRO_BLOCK * HYDRO_BLOCK].map(place);
                        assert!(
                            found.bits() == expected.bits(),
                            "case {case} level {level} group {g} earlier {timed} field {} cell ({i}, {j}, {k}): \
                             GPU {found}, CPU {expected}; row {:?}, parents {:?}, octant {}, outside {:b}, {:?}",
                            n / (BLOCK_VALUES / FIELDS),
                            tables.row(g),
                            tables.parent_row(g),
                            tables.octants[g],
                            tables.outside[g],
                            tables.faces,
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_those_of_the_processor() {
        with_gpu(|gpu| {
            blocks_agree::<f32>(gpu);
            blocks_agree::<f64>(gpu);
        });
    }
}
