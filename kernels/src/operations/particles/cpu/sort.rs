//! Sorts particles by group.
//!
//! Most are at home in the group that they were in, and no order within a group counts: a particle moves only if its place
//! is now another group's. Particles that move and the places that they leave are equally many in every group, so the
//! movers, sorted by group, fill the places in order.

use super::super::{BLOCK, Particles};
use crate::level::group_locator::GroupLocator;
use rayon::prelude::*;

pub(in super::super) fn sort(
    locator: &GroupLocator,
    particles: &mut Particles,
    first: usize,
    from: usize,
) -> Vec<usize> {
    let lowest = locator.first[from];
    let groups = locator.groups() - lowest as usize;
    let last_of_from = locator.first[from + 1] - 1;
    let number_in = |slot: u32| match locator.numbers[slot as usize] {
        home if home < lowest => last_of_from - lowest,
        home => home - lowest,
    };
    // as many parts as threads: each counts for itself
    let length = (particles.len() - first).div_ceil(rayon::current_num_threads()).max(1);
    let [x, y, z] = [0, 1, 2].map(|axis| particles.columns[axis].host()[first..].par_chunks(length));
    let numbers = particles.spare.host_mut()[first..].par_chunks_mut(length);
    let mut counts: Vec<Vec<u32>> = (numbers, x, y, z)
        .into_par_iter()
        .map(|(numbers, x, y, z)| find_numbers(locator, groups, number_in, [x, y, z], numbers))
        .collect();
    let starts = places_of_groups(groups, &mut counts);
    let numbers = particles.spare.host()[first..].par_chunks(length).enumerate();
    let holes: Option<Vec<Vec<u32>>> =
        numbers.map(|(part, numbers)| places_of_others(part * length, numbers, &starts)).collect();
    match holes {
        Some(holes) => move_few(particles, first, length, groups, &holes),
        None => move_all(particles, first, length, counts),
    }
    locator.first[from..].iter().map(|group| first + starts[(group - lowest) as usize] as usize).collect()
}

/// The number of every particle's group, and how many particles each group has.
fn find_numbers(
    locator: &GroupLocator,
    groups: usize,
    number_in: impl Fn(u32) -> u32,
    [x, y, z]: [&[u32]; 3],
    numbers: &mut [u32],
) -> Vec<u32> {
    let mut counts = vec![0; groups];
    let Some(first) = x.first() else { return counts };
    let position = [*first, y[0], z[0]];
    let home = locator.home(position);
    let mut region = locator.home_region(home, position);
    let (mut number, mut at_home, mut last_slot) = (number_in(home.0), 0, home.0);
    for n in 0..numbers.len() {
        let position = [x[n], y[n], z[n]];
        if region.contains(position) {
            numbers[n] = number;
            at_home += 1;
            continue;
        }
        let home = locator.home(position);
        numbers[n] = number_in(home.0);
        counts[numbers[n] as usize] += 1;
        // two that are elsewhere: another group's particles begin
        if home.0 == last_slot && numbers[n] != number {
            counts[number as usize] += std::mem::take(&mut at_home);
            (region, number) = (locator.home_region(home, position), numbers[n]);
        }
        last_slot = home.0;
    }
    counts[number as usize] += at_home;
    counts
}

fn count<'a>(groups: usize, numbers: impl Iterator<Item = &'a u32>) -> Vec<u32> {
    let mut counts = vec![0; groups];
    numbers.for_each(|&number| counts[number as usize] += 1);
    counts
}

/// The place of every group's first particle, and behind them their number. Counts of each part's particles in groups
/// become the places of the first of them.
fn places_of_groups(groups: usize, counts: &mut [Vec<u32>]) -> Vec<u32> {
    let (mut starts, mut next) = (Vec::with_capacity(groups + 1), 0);
    for group in 0..groups {
        starts.push(next);
        for counts in &mut *counts {
            next += std::mem::replace(&mut counts[group], next);
        }
    }
    starts.push(next);
    starts
}

/// The places in a part, which begins at `first`, that are now those of other groups; none if they are not few.
fn places_of_others(first: usize, numbers: &[u32], starts: &[u32]) -> Option<Vec<u32>> {
    let few = numbers.len() / 4;
    let mut places = Vec::new();
    for (n, &number) in numbers.iter().enumerate() {
        let own = starts[number as usize]..starts[number as usize + 1];
        if !own.contains(&((first + n) as u32)) {
            if places.len() == few {
                return None;
            }
            places.push(n as u32);
        }
    }
    Some(places)
}

/// Moves the particles in these places of each part.
fn move_few(particles: &mut Particles, first: usize, length: usize, groups: usize, holes: &[Vec<u32>]) {
    let Particles { columns, spare, target, .. } = particles;
    let numbers = &spare.host()[first..];
    let of_part = || holes.par_iter().zip(numbers.par_chunks(length));
    let mut counts: Vec<Vec<u32>> =
        of_part().map(|(holes, numbers)| count(groups, holes.iter().map(|&n| &numbers[n as usize]))).collect();
    let moved = *places_of_groups(groups, &mut counts).last().expect("the end") as usize;
    // the movers in the order of holes
    let sources = &mut target.host_mut()[..moved];
    let places = Scattered::new(sources);
    of_part().zip(counts).enumerate().for_each(|(part, ((holes, numbers), mut counts))| {
        for &n in holes {
            // SAFETY: every mover has a place of its own.
            unsafe { places.put(next_place(&mut counts, numbers[n as usize]), (part * length) as u32 + n) };
        }
    });
    let values = &mut spare.host_mut()[..moved];
    for column in columns {
        let column = &mut column.host_mut()[first..];
        values.par_chunks_mut(BLOCK).zip(sources.par_chunks(BLOCK)).for_each(|(values, sources)| {
            values.iter_mut().zip(sources).for_each(|(value, &source)| *value = column[source as usize]);
        });
        let mut rest = &*values;
        let of_parts = holes.iter().map(|holes| rest.split_off(..holes.len()).expect("one for each hole"));
        let of_parts: Vec<(&Vec<u32>, &[u32])> = holes.iter().zip(of_parts).collect();
        column.par_chunks_mut(length).zip(of_parts).for_each(|(column, (holes, values))| {
            holes.iter().zip(values).for_each(|(&hole, &value)| column[hole as usize] = value);
        });
    }
}

/// Moves all particles.
///
/// * `counts`: the place of the first particle of each part in each group
fn move_all(particles: &mut Particles, first: usize, length: usize, counts: Vec<Vec<u32>>) {
    let Particles { columns, spare, target, .. } = particles;
    let numbers = &spare.host()[first..];
    let targets = &mut target.host_mut()[first..];
    targets.par_chunks_mut(length).zip(numbers.par_chunks(length)).zip(counts).for_each(
        |((targets, numbers), mut counts)| {
            for (target, &number) in targets.iter_mut().zip(numbers) {
                *target = next_place(&mut counts, number) as u32;
            }
        },
    );
    for column in columns {
        let sorted = Scattered::new(&mut spare.host_mut()[first..]);
        column.host()[first..].par_chunks(length).zip(targets.par_chunks(length)).for_each(|(values, targets)| {
            for (&value, &target) in values.iter().zip(targets) {
                // SAFETY: every particle has a place of its own.
                unsafe { sorted.put(target as usize, value) };
            }
        });
        match first {
            0 => std::mem::swap(column, spare),
            _ => column.host_mut()[first..].copy_from_slice(&spare.host()[first..]),
        }
    }
}

/// The next place for a particle of a group.
#[inline(always)]
fn next_place(next: &mut [u32], number: u32) -> usize {
    let place = next[number as usize];
    next[number as usize] += 1;
    place as usize
}

/// Writes to places of an array from many threads, each place once.
struct Scattered(*mut u32, usize);

// SAFETY: it is written to different places only, by the contract of `put`.
unsafe impl Sync for Scattered {}

impl Scattered {
    fn new(array: &mut [u32]) -> Self {
        Self(array.as_mut_ptr(), array.len())
    }

    /// # Safety
    /// No two calls with one place.
    #[inline(always)]
    unsafe fn put(&self, place: usize, value: u32) {
        assert!(place < self.1);
        // SAFETY: in bounds by the assertion, and nobody else writes there.
        unsafe { *self.0.add(place) = value };
    }
}
