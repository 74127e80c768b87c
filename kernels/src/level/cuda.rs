//! A level's tables as kernels get them: the `Level` of `level.cuh`.

use crate::device::cuda::CudaDevice;
use crate::device::cuda::array::Pointer;
use crate::layout::{FACES, FIELDS};
use crate::level::face_boundary::FaceBoundary;
use crate::level::level_topology::LevelTopology;

/// What is beyond a face of the domain.
#[derive(Clone, Copy)]
#[repr(C)]
struct Face {
    /// 0: copies of the outermost cell, 1: a mirror, 2: `state`.
    kind: i32,
    state: [f64; FIELDS],
}

/// The tables of a level, on the device.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Level {
    slots: Pointer<u32>,
    neighbours: Pointer<u32>,
    parents: Pointer<u32>,
    children: Pointer<u32>,
    beyond: Pointer<u32>,
    octants: Pointer<u8>,
    outside: Pointer<u8>,
    leaves: Pointer<u8>,
    groups: u32,
    faces: [Face; FACES],
}

impl Level {
    /// Uploads tables that the device does not have yet.
    pub(crate) fn of(device: &CudaDevice, tables: &LevelTopology) -> Self {
        let face = |boundary| match boundary {
            FaceBoundary::Outflow => Face { kind: 0, state: [0.0; FIELDS] },
            FaceBoundary::Reflecting => Face { kind: 1, state: [0.0; FIELDS] },
            FaceBoundary::Fixed(state) => Face { kind: 2, state },
        };
        Self {
            slots: tables.slots.on(device),
            neighbours: tables.neighbours.on(device),
            parents: tables.parents.on(device),
            children: tables.children.on(device),
            beyond: tables.beyond.on(device),
            octants: tables.octants.on(device),
            outside: tables.outside.on(device),
            leaves: tables.leaves.on(device),
            groups: tables.len() as u32,
            faces: tables.faces.map(face),
        }
    }
}
