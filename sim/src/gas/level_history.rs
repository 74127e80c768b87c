//! What individual time steps keep: states of the levels that have finer ones, for these to interpolate between, and
//! sums of fluxes.

use crate::mesh::nesting::AROUND;
use comove_kernels::ghosts::EarlierFluid;
use comove_kernels::layout::{FLUX_PLANE_VALUES, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::level_topology::NONE;
use comove_kernels::slots::{add_slots, clear_slots, copy_slots};
use comove_kernels::{Buffer, Device, DeviceTable, KernelError, LevelTopology, Real, TimedPotential};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Groups whose parents one thread looks at.
const GROUPS_AT_ONCE: usize = 512;

/// When, in the current step of a level, its potential was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// Before the step.
    Start,
    /// At the kick.
    Mid,
    /// After it.
    End,
}

/// Past states of the groups that finer ones interpolate from. They sit in *places*, counted level by level in key
/// order: a regrid of the levels finer than one that has finished its step leaves the places of coarser levels alone.
pub struct LevelHistory<T> {
    /// Place of the group in each slot, [`NONE`] where no finer group is near.
    places: DeviceTable<u32>,
    /// Per level: the slots of the groups that have a place, and these places.
    read: Vec<[DeviceTable<u32>; 2]>,
    /// Before the level's current step: conserved, comoving, `[places, 6, 16, 16, 16]`.
    fluid: Buffer<T>,
    /// φ̃ at each [`StepPhase`] of the level's current step, `[places, 16, 16, 16]`; empty without gravity.
    potential: [Buffer<T>; 3],
    /// Fluxes summed over the sweeps of the current steps, `[planes, 6, 16, 16]`.
    pub register: Buffer<T>,
}

impl<T: Real> LevelHistory<T> {
    /// Without room yet.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(device: &Device) -> Result<Self, KernelError> {
        let empty = || Buffer::zeros(device, 0);
        Ok(Self {
            places: DeviceTable::default(),
            read: Vec::new(),
            fluid: empty()?,
            potential: [empty()?, empty()?, empty()?],
            register: empty()?,
        })
    }

    /// Makes room for the groups that are read by those of these tables, in pools of `capacity` slots, and for so many flux
    /// planes. What is there of levels that neither have changed nor are next to such a level stays.
    ///
    /// * `read`: by level, what [`read_slots`] gives
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn fit(
        &mut self,
        device: &Device,
        read: &[DeviceTable<u32>],
        capacity: usize,
        planes: usize,
        gravity: bool,
    ) -> Result<(), KernelError> {
        let mut places = vec![NONE; capacity];
        let mut groups = 0;
        self.read.clear();
        for slots in read {
            let first = groups as u32;
            groups += slots.len();
            for (place, &slot) in (first..).zip(slots) {
                places[slot as usize] = place;
            }
            self.read.push([slots.clone(), (first..groups as u32).collect()]);
        }
        self.places = places.into();
        self.fluid.grow(device, groups * GROUP_VALUES)?;
        for potential in self.potential.iter_mut().filter(|_| gravity) {
            potential.grow(device, groups * GROUP_CELLS)?;
        }
        self.register.grow(device, planes * FLUX_PLANE_VALUES)
    }

    /// Bytes of the past states on the device.
    pub fn bytes(&self) -> usize {
        let potentials: usize = self.potential.iter().map(Buffer::len).sum();
        (self.fluid.len() + potentials) * T::BYTES
    }

    /// Bytes on the device of what says where they are.
    pub fn table_bytes(&self) -> usize {
        self.places.bytes() + self.read.iter().flatten().map(DeviceTable::bytes).sum::<usize>()
    }

    /// [`LevelHistory::bytes`] and [`LevelHistory::table_bytes`] where these slots are read, in pools of `capacity` slots.
    pub fn bytes_for(read: &[DeviceTable<u32>], capacity: usize, gravity: bool) -> [usize; 2] {
        let places = read.iter().map(|slots| slots.len()).sum::<usize>();
        let values = GROUP_VALUES + if gravity { 3 * GROUP_CELLS } else { 0 };
        [places * values * T::BYTES, (capacity + 2 * places) * size_of::<u32>()]
    }

    /// Keeps the fluid of a level that begins a step, of the groups where it will be read.
    pub fn keep_fluid(&mut self, device: &Device, level: usize, fluid: &Buffer<T>) {
        let [slots, places] = &self.read[level];
        copy_slots(device, GROUP_VALUES, fluid, slots, &mut self.fluid, places);
    }

    /// Keeps the potential of a level, of the groups where it will be read.
    pub fn keep_potential(&mut self, device: &Device, level: usize, moment: StepPhase, potential: &Buffer<T>) {
        let [slots, places] = &self.read[level];
        copy_slots(device, GROUP_CELLS, potential, slots, &mut self.potential[moment as usize], places);
    }

    /// The fluid of the coarser level at a fraction of its step, whose end is in the pool.
    pub fn fluid_at(&self, fraction: f64) -> EarlierFluid<'_, T> {
        EarlierFluid { fluid: &self.fluid, places: &self.places, weight: T::from_f64(fraction) }
    }

    /// The potential of the coarser level at a fraction of its step: between start and middle or middle and end.
    pub fn potential_at(&self, fraction: f64) -> TimedPotential<'_, T> {
        let [start, mid, end] = &self.potential;
        let (from, to, weight) =
            if fraction <= 0.5 { (start, mid, 2.0 * fraction) } else { (mid, end, 2.0 * fraction - 1.0) };
        TimedPotential { from, to, places: &self.places, weight: T::from_f64(weight) }
    }

    /// Sums of these planes start from zero.
    pub fn clear_fluxes(&mut self, device: &Device, planes: &DeviceTable<u32>) {
        clear_slots(device, FLUX_PLANE_VALUES, &mut self.register, planes);
    }

    /// Adds the fluxes of a sweep through these planes.
    pub fn add_fluxes(&mut self, device: &Device, planes: &DeviceTable<u32>, fluxes: &Buffer<T>) {
        add_slots(device, FLUX_PLANE_VALUES, fluxes, &mut self.register, planes);
    }
}

/// By level: the slots of the groups that finer ones interpolate from.
///
/// * `slots`: of each level, ghosts included
pub fn read_slots(tables: &[LevelTopology], slots: &[DeviceTable<u32>]) -> Vec<DeviceTable<u32>> {
    let end = slots.iter().flatten().max().map_or(0, |&last| last as usize + 1);
    let read: Vec<AtomicBool> = (0..end).map(|_| AtomicBool::new(false)).collect();
    for finer in tables {
        (0..finer.len()).into_par_iter().with_min_len(GROUPS_AT_ONCE).for_each(|g| {
            let around = AROUND[usize::from(finer.octants[g])];
            let parents = finer.parent_row(g).iter().enumerate();
            for (_, &slot) in parents.filter(|(entry, slot)| around >> entry & 1 == 1 && **slot != NONE) {
                read[slot as usize].store(true, Ordering::Relaxed);
            }
        });
    }
    let of_level = |level: &DeviceTable<u32>| {
        level.iter().copied().filter(|&slot| read[slot as usize].load(Ordering::Relaxed)).collect()
    };
    slots.par_iter().map(of_level).collect()
}
