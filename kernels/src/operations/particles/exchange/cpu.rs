//! Exchanges of particles on the processor.

use super::super::{BLOCK, COLUMNS, Particles};
use crate::level::group_locator::GroupLocator;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) fn foreign(locator: &GroupLocator, particles: &Particles, range: Range<usize>, from: usize) -> Vec<u32> {
    let [x, y, z] = [0, 1, 2].map(|axis| particles.columns[axis].host());
    let of_block = |block: usize| {
        let first = range.start + block * BLOCK;
        let leaves = |n: &usize| {
            let (slot, level) = locator.home([x[*n], y[*n], z[*n]]);
            level >= from && locator.is_foreign(slot)
        };
        (first..range.end.min(first + BLOCK)).filter(leaves).map(|n| n as u32).collect::<Vec<u32>>()
    };
    let blocks: Vec<Vec<u32>> = (0..range.len().div_ceil(BLOCK)).into_par_iter().map(of_block).collect();
    blocks.concat()
}

pub(super) fn count_in_groups(locator: &GroupLocator, particles: &Particles) -> Vec<u32> {
    let [x, y, z] = [0, 1, 2].map(|axis| particles.columns[axis].host());
    let lowest = locator.first[0];
    let counts: Vec<AtomicU32> = (lowest..locator.groups() as u32).map(|_| AtomicU32::new(0)).collect();
    (0..particles.len()).into_par_iter().with_min_len(BLOCK).for_each(|n| {
        let (slot, _) = locator.home([x[n], y[n], z[n]]);
        if let Some(number) = locator.numbers[slot as usize].checked_sub(lowest) {
            counts[number as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    counts.into_iter().map(AtomicU32::into_inner).collect()
}

pub(super) fn take(particles: &Particles, list: &[u32]) -> [Vec<u32>; COLUMNS] {
    particles.columns.each_ref().map(|column| {
        let column = column.host();
        list.iter().map(|&n| column[n as usize]).collect()
    })
}

pub(super) fn put(particles: &mut Particles, list: &[u32], columns: [&[u32]; COLUMNS]) {
    for (to, from) in particles.columns.iter_mut().zip(columns) {
        let to = to.host_mut();
        list.iter().zip(from).for_each(|(&n, &value)| to[n as usize] = value);
    }
}
