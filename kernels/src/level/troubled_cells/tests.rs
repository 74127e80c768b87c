//! Marks of groups of other ranks.

use super::*;
use crate::testing::{Mesh, Noise, with_gpu};
use std::collections::HashMap;

/// Rows of a few groups, about one cell in `rarity` marked.
fn random_rows(noise: &mut Noise, slots: usize, rarity: f64) -> Vec<u16> {
    let mut row = |_| (0..GROUP).filter(|_| noise.next().abs() * rarity < 1.0).fold(0, |row, i| row | 1 << i);
    (0..slots * MARK_ROWS).map(&mut row).collect()
}

fn marks_of_slots_are_set_and_read(device: &Device) {
    let mut marks = TroubledCells::new(device, 6).unwrap();
    let rows = random_rows(&mut Noise::new(2), 3, 3.0);
    let [first, second, third] = [0, 1, 2].map(|n| &rows[n * MARK_ROWS..][..MARK_ROWS]);
    let none = [0; MARK_ROWS];
    marks.set_found(device, &vec![4, 0].into(), &rows[..2 * MARK_ROWS]);
    assert_eq!(marks.found_of(device, &vec![5, 0, 4].into()), [&none, second, first].concat());
    marks.set_found(device, &vec![2, 0].into(), &[third, &none].concat());
    assert_eq!(marks.found_of(device, &(0..6).collect()), [&none, &none, third, &none, first, &none].concat());
    marks.set_found(device, &DeviceTable::default(), &[]);
    assert!(marks.found_of(device, &DeviceTable::default()).is_empty());
}

/// The groups of a level, in order, that see a mark of other ranks' groups, which lie in `slots` and have these rows,
/// `[slots, 16, 16]`.
pub(crate) fn groups_that_see(tables: &LevelTopology, slots: &[u32], rows: &[u16]) -> Vec<usize> {
    let reach_of: HashMap<u32, u32> = slots.iter().copied().zip(rows.chunks_exact(MARK_ROWS).map(reach)).collect();
    let sees = |&g: &usize| {
        let mut around = tables.row(g).iter().enumerate().filter_map(|(d, slot)| Some((d, reach_of.get(slot)?)));
        // seen from the other group, this one lies in the opposite direction
        around.any(|(d, reach)| reach >> (DIRECTIONS - 1 - d) & 1 == 1)
    };
    (0..tables.len()).filter(sees).collect()
}

#[test]
fn marks_of_other_ranks_are_set_and_own_ones_read() {
    let device = Device::cpu(1).unwrap();
    marks_of_slots_are_set_and_read(&device);
    // a redo knows of them once they are accepted
    let mut marks = TroubledCells::new(&device, 2).unwrap();
    let rows = random_rows(&mut Noise::new(3), 1, 3.0);
    marks.set_found(&device, &vec![1].into(), &rows);
    assert!(marks.host().0.iter().all(|&row| row == 0));
    marks.accept();
    assert_eq!(marks.host().0[MARK_ROWS..], rows);
}

#[test]
fn a_gpu_sets_and_reads_single_marks() {
    with_gpu(marks_of_slots_are_set_and_read);
}

#[test]
#[should_panic(expected = "marks of slot 2 in a pool of 2")]
fn marks_beyond_the_pool_are_refused() {
    let device = Device::cpu(1).unwrap();
    TroubledCells::new(&device, 2).unwrap().found_of(&device, &vec![1, 2].into());
}

/// Each rank lists its own groups, from the reports of its own and the rows of the others': together those that one rank
/// lists that owns all.
#[test]
fn ranks_redo_the_groups_that_one_would() {
    const RANKS: i32 = 3;
    let mut noise = Noise::new(11);
    let (mut listed, mut of) = (0, 0);
    for case in 0..12 {
        let mesh = Mesh::random(&mut noise, 2);
        for level in 0..mesh.levels.len() {
            // few enough marks that not all groups see one
            let every = random_rows(&mut noise, mesh.group_count(), 3e4);
            let rows = |slot: u32| &every[slot as usize * MARK_ROWS..][..MARK_ROWS];
            let to_redo = |tables: &LevelTopology, others: &[u32]| -> Vec<u32> {
                let report = |&slot: &u32| {
                    let marked = rows(slot).iter().map(|row| row.count_ones()).sum();
                    GroupReport { marked, marks_reach: reach(rows(slot)), ..Default::default() }
                };
                let mut reports: Vec<_> = tables.slots.iter().map(report).collect();
                let theirs: Vec<u16> = others.iter().flat_map(|&slot| rows(slot)).copied().collect();
                let groups = groups_to_redo(tables, &mut reports, groups_that_see(tables, others, &theirs));
                assert!(groups.is_sorted() && reports.iter().all(|report| report.marked == 0));
                groups.iter().map(|&g| tables.slots[g as usize]).collect()
            };
            let whole = mesh.tables(level);
            let expected = to_redo(&whole, &[]);
            let mut found: Vec<u32> = (0..RANKS)
                .flat_map(|rank| {
                    let tables = mesh.tables_of(level, |_, [x, y, z]| (x + 2 * y + z * z) % RANKS == rank);
                    let is_other = |slot: &&u32| !tables.slots.contains(slot);
                    to_redo(&tables, &whole.slots.iter().filter(is_other).copied().collect::<Vec<_>>())
                })
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "case {case} level {level}");
            (listed, of) = (listed + expected.len(), of + whole.len());
        }
    }
    assert!(listed > 50 && of - listed > 50, "{listed} of {of}");
}
