//! Ranks that share a mesh compute, with ghosts of each other's groups, what one rank does that owns it all.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::messages::{Piece, tests::deliver};
use crate::layout::{FIELDS, FLUX_PLANES, GROUP, GROUP_CELLS, GROUP_VALUES, OCTANTS};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::level::troubled_cells::tests::groups_that_see;
use crate::level::troubled_cells::{MARK_ROWS, TroubledCells, groups_to_redo};
use crate::operations::flag::{Combination, FlagCriteria, FlagCriterion, FlagLevel, Quantity, flag};
use crate::operations::gravity_kick::{gravity_kick, max_acceleration};
use crate::operations::group_poisson::{FACE_GRADIENTS, group_poisson, sine::SineTables};
use crate::operations::hydro_sweep::{SweepParameters, SweepTargets, hydro_sweep};
use crate::operations::mass_sheet::mass_sheet;
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::{GHOST_CELLS, GhostOrigin, potential_ghosts};
use crate::operations::prolong::prolong;
use crate::operations::restrict::restrict;
use crate::operations::state_hash::state_hash;
use crate::operations::timestep::signal_speed;
use crate::operations::totals::{GroupTotals, totals};
use crate::point::eos::Eos;
use crate::real::Real;
use crate::testing::{Mesh, Noise, conserved, with_gpu};
use std::collections::BTreeMap;

const RANKS: usize = 3;
const H: f64 = 0.3;

/// Three levels: a periodic root, groups that fill a corner of it, and some within.
fn mesh() -> Mesh {
    let within = |n: i32, side: i32| [n % side, n / side % side, n / (side * side)];
    let finest = [0, 1, 2, 4, 7, 12, 13, 21, 22, 31, 42, 63].map(|n| within(n, 4).map(|c| c + 2));
    Mesh::new([2, 2, 2], true).with_level((0..64).map(|n| within(n, 4)).collect()).with_level(finest.to_vec())
}

/// The rank that owns a group: seldom that of its parent or of a neighbour.
fn owner(level: usize, [x, y, z]: [i32; 3]) -> usize {
    (x + 2 * y + z * z + level as i32) as usize % RANKS
}

/// Whether a rank owns it; without a number it is one that owns all groups.
fn owns(rank: Option<usize>, level: usize, c: [i32; 3]) -> bool {
    rank.is_none_or(|rank| owner(level, c) == rank)
}

fn tables_of(mesh: &Mesh, level: usize, rank: Option<usize>) -> LevelTopology {
    mesh.tables_of(level, |level, c| owns(rank, level, c))
}

/// Gas fast enough for marks here and there.
fn gas<T: Real>(mesh: &Mesh, noise: &mut Noise) -> Vec<T> {
    mesh.fill(|_| {
        let velocity = [0; 3].map(|_| 4.0 * noise.next() * noise.next());
        conserved(10f64.powf(1.5 * noise.next()), velocity, 10f64.powf(2.0 * noise.next() - 2.0), 5.0 / 3.0)
    })
}

fn random<T: Real>(noise: &mut Noise, values: usize) -> Vec<T> {
    (0..values).map(|_| T::from_f64(noise.next())).collect()
}

fn bits<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.bits()).collect()
}

/// Asserts that what a rank has of `pool`, `values` a slot, is what one rank alone has in the slots in `tables`, and what
/// was `before` in all others.
fn assert_own_slots_are<T: Real>(
    what: &str,
    values: usize,
    tables: &LevelTopology,
    pool: &Buffer<T>,
    alone: &Buffer<T>,
    before: &[T],
) {
    let (pool, alone) = (pool.to_host(), alone.to_host());
    assert!(bits(&alone) != bits(before), "{what}: nothing changes");
    for (slot, (found, before)) in pool.chunks(values).zip(before.chunks(values)).enumerate() {
        let own = tables.slots.contains(&(slot as u32));
        let expected = if own { &alone[slot * values..][..values] } else { before };
        assert!(bits(found) == bits(expected), "{what}: slot {slot}, own: {own}");
    }
}

/// What a rank says of each of its groups, by slot.
type Said = BTreeMap<u32, String>;

fn say<R: std::fmt::Debug>(said: &mut Said, tables: &LevelTopology, of_groups: &[R]) {
    assert_eq!(of_groups.len(), tables.len());
    for (&slot, one) in tables.slots.iter().zip(of_groups) {
        *said.entry(slot).or_default() += &format!("{one:?}\n");
    }
}

/// What each rank says is what one rank alone says.
fn assert_said(what: &str, ranks: &[Said], alone: &Said) {
    assert_eq!(ranks.iter().map(Said::len).sum::<usize>(), alone.len(), "{what}: groups");
    for (slot, said) in ranks.iter().flatten() {
        assert_eq!(said, &alone[slot], "{what}: slot {slot}");
    }
}

/// One rank alone, then all ranks.
fn everyone<R>(mut one: impl FnMut(Option<usize>) -> R) -> (R, Vec<R>) {
    (one(None), (0..RANKS).map(|rank| one(Some(rank))).collect())
}

fn operations_on_levels_agree<T: Real>(device: &Device) {
    let (mesh, mut noise) = (mesh(), Noise::new(31));
    let slots = mesh.group_count();
    let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
    let fluid = gas::<T>(&mesh, &mut noise);
    let [potential, gradients] = [GROUP_CELLS, FACE_GRADIENTS].map(|n| random::<T>(&mut noise, slots * n));
    let (eos, sine) = (Eos::new(5.0 / 3.0), SineTables::new());
    for level in 0..mesh.levels.len() {
        let what = format!("level {level}");
        let run = |rank: Option<usize>| {
            let tables = tables_of(&mesh, level, rank);
            let mut said = Said::new();
            let gas = pool(&fluid);
            let mut sums = vec![GroupTotals::default(); tables.len()];
            totals(device, &tables, &gas, &mut sums);
            say(&mut said, &tables, &sums);
            say(&mut said, &tables, &signal_speed(device, &tables, &gas, &eos).wait());
            let mut hashes = vec![0; tables.len()];
            state_hash(device, &tables, GROUP_VALUES, &gas, &mut hashes);
            say(&mut said, &tables, &hashes);
            say(&mut said, &tables, &max_acceleration(device, &tables, &pool(&potential), None, H).wait());
            let masks = flags(device, &mesh, level, &tables, rank, &gas, eos);
            say(&mut said, &tables, masks.as_chunks::<OCTANTS>().0);

            let mut kicked = pool(&fluid);
            let kicks = gravity_kick(device, &tables, &pool(&potential), None, &mut kicked, H, 0.05, &eos);
            say(&mut said, &tables, &kicks.wait());
            let mut prolonged = pool(&fluid);
            let mut solved = [pool(&potential), pool(&gradients)];
            if level > 0 {
                prolong(device, &tables, &(0..tables.len()).collect::<Vec<_>>(), &mut prolonged, &eos);
                let [potential, gradients] = &mut solved;
                let mut ghosts = Buffer::zeros(device, tables.len() * GHOST_CELLS).unwrap();
                let source = pool(&potential.to_host());
                let source = PoissonSource::Field(&source);
                potential_ghosts(device, &tables, GhostOrigin::Sibling, potential, None, &mut ghosts);
                group_poisson(device, &tables, &sine, &source, &ghosts, H, potential, Some(gradients));
            }
            (tables, said, kicked, prolonged, solved)
        };
        let (alone, ranks) = everyone(run);
        assert_said(&what, &ranks.iter().map(|rank| rank.1.clone()).collect::<Vec<_>>(), &alone.1);
        for (n, (tables, _, kicked, prolonged, [solved, slopes])) in ranks.iter().enumerate() {
            let what = |name: &str| format!("level {level}, rank {n}: {name}");
            assert_own_slots_are(&what("kick"), GROUP_VALUES, tables, kicked, &alone.2, &fluid);
            if level > 0 {
                assert_own_slots_are(&what("prolongation"), GROUP_VALUES, tables, prolonged, &alone.3, &fluid);
                assert_own_slots_are(&what("solution"), GROUP_CELLS, tables, solved, &alone.4[0], &potential);
                assert_own_slots_are(&what("gradients"), FACE_GRADIENTS, tables, slopes, &alone.4[1], &gradients);
            }
        }
    }
}

fn flags<T: Real>(
    device: &Device,
    mesh: &Mesh,
    level: usize,
    tables: &LevelTopology,
    rank: Option<usize>,
    fluid: &Buffer<T>,
    eos: Eos<T>,
) -> Vec<u32> {
    let mine = |c: &&[i32; 3]| owns(rank, level, **c);
    let coordinates: Vec<[u32; 3]> = mesh.levels[level].iter().filter(mine).map(|c| c.map(|c| c as u32)).collect();
    let steep = FlagCriterion::GradientAbove { of: Quantity::Pressure, threshold: T::from_f64(40.0) };
    let either = [FlagCriterion::DensityAbove(T::from_f64(31.5)), steep].map(Combination::from);
    let criteria = FlagCriteria {
        met: Combination::any(either).expect("two criteria"),
        level: FlagLevel {
            level,
            cells: mesh.root.map(|n| (n as usize * GROUP) << level),
            periodic: mesh.periodic,
            cell_width: H,
            a: 1.0,
            four_pi_g: 0.1,
            mean_density: 1.0,
            mean_gas_density: 1.0,
            eos,
        },
    };
    let mut masks = vec![0; tables.len() * OCTANTS];
    flag(device, tables, &coordinates, Some(fluid), None, None, &criteria, 2, &mut masks);
    masks
}

/// A sweep, an exchange of marks and a redo.
fn sweeps_and_redos_agree<T: Real>(device: &Device) {
    let (mesh, mut noise) = (mesh(), Noise::new(32));
    let slots = mesh.group_count();
    let fluid = gas::<T>(&mesh, &mut noise);
    let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
    let before = pool(&fluid);
    let mut redone = 0;
    for level in 0..mesh.levels.len() {
        let parameters = SweepParameters {
            // of which the other schemes would redo less
            scheme: crate::Scheme::RelaxingTvd,
            dt_over_dx: T::from_f64(0.06),
            axes: [0, 1, 2],
            eos: Eos::new(5.0 / 3.0),
        };
        let sweep = |tables: &LevelTopology, out: &mut Buffer<T>, marks: &mut TroubledCells, targets: SweepTargets| {
            let planes: DeviceTable<u32> = vec![NONE; tables.len() * FLUX_PLANES].into();
            let none = &mut Buffer::zeros(device, 0).unwrap();
            hydro_sweep(device, tables, &planes, &before, None, out, none, marks, None, targets, &parameters)
                .reports
                .wait()
        };
        // every rank sweeps, and tells what it has found
        let mut found = vec![0; slots * MARK_ROWS];
        let (mut alone, mut ranks) = everyone(|rank| {
            let tables = tables_of(&mesh, level, rank);
            let (mut out, mut marks) = (pool(&fluid), TroubledCells::new(device, slots).unwrap());
            let reports = sweep(&tables, &mut out, &mut marks, SweepTargets::All);
            let rows = marks.found_of(device, &tables.slots);
            for (&slot, rows) in tables.slots.iter().zip(rows.chunks(MARK_ROWS)) {
                found[slot as usize * MARK_ROWS..][..MARK_ROWS].copy_from_slice(rows);
            }
            (tables, out, marks, reports)
        });
        let every = mesh.tables(level).slots;
        let redo = |(tables, out, marks, reports): &mut (LevelTopology, Buffer<T>, TroubledCells, Vec<_>)| {
            let others: DeviceTable<u32> = every.iter().copied().filter(|slot| !tables.slots.contains(slot)).collect();
            let rows = |&slot: &u32| &found[slot as usize * MARK_ROWS..][..MARK_ROWS];
            let theirs: Vec<u16> = others.iter().flat_map(rows).copied().collect();
            let mut said = Said::new();
            say(&mut said, tables, reports);
            // first as of an earlier sweep
            marks.set_found(device, &others, &vec![0xffff; theirs.len()]);
            marks.clear_found(device, &others);
            let marked: DeviceTable<u32> =
                others.iter().copied().filter(|slot| rows(slot).iter().any(|row| *row != 0)).collect();
            marks.set_found(device, &marked, &marked.iter().flat_map(rows).copied().collect::<Vec<_>>());
            marks.accept();
            let groups = groups_to_redo(tables, reports, groups_that_see(tables, &others, &theirs));
            for (&g, report) in groups.iter().zip(sweep(tables, out, marks, SweepTargets::Redo(&groups))) {
                reports[g as usize] = report;
            }
            say(&mut said, tables, reports);
            (groups.len(), said)
        };
        let (count, expected) = redo(&mut alone);
        let (counts, said): (Vec<usize>, Vec<Said>) = ranks.iter_mut().map(redo).unzip();
        assert_eq!(counts.iter().sum::<usize>(), count, "level {level}: groups swept again");
        assert_said(&format!("level {level}"), &said, &expected);
        for (n, (tables, out, ..)) in ranks.iter().enumerate() {
            assert_own_slots_are(&format!("level {level}, rank {n}"), GROUP_VALUES, tables, out, &alone.1, &fluid);
        }
        redone += count;
    }
    // were all swept again, nothing would depend on the exchange
    assert!(redone > 20 && redone < slots - 20, "{redone} of {slots} groups swept again");
}

/// The patches of a level that groups of `rank` refine and other ranks own: tables of these parents, with children alone.
fn parents_elsewhere(mesh: &Mesh, level: usize, rank: usize) -> LevelTopology {
    let whole = mesh.tables_of(level, |l, c| l == level || owner(l, c) == rank);
    let own = tables_of(mesh, level, Some(rank));
    let elsewhere =
        |g: &usize| !own.slots.contains(&whole.slots[*g]) && whole.children_of(*g).iter().any(|child| *child != NONE);
    let groups: Vec<usize> = (0..whole.len()).filter(elsewhere).collect();
    LevelTopology {
        slots: groups.iter().map(|&g| whole.slots[g]).collect(),
        children: groups.iter().flat_map(|&g| *whole.children_of(g)).collect(),
        ..LevelTopology::default()
    }
}

/// Sends the patches of `parents` that have children from one rank's pool to the ranks that own them.
fn send_patches<T: Real>(
    device: &Device,
    fields: usize,
    parents: &LevelTopology,
    from: usize,
    pools: &mut [Buffer<T>],
    owners: &[LevelTopology],
) {
    for (to, owner) in owners.iter().enumerate().filter(|(to, _)| *to != from) {
        let (mut pieces, mut end) = (Vec::new(), 0);
        for g in (0..parents.len()).filter(|&g| owner.slots.contains(&parents.slots[g])) {
            for octant in (0..OCTANTS).filter(|&o| parents.children_of(g)[o] != NONE) {
                pieces.push(Piece::patch(parents.slots[g], octant, end));
                end = pieces[pieces.len() - 1].end() as u32;
            }
        }
        let [from, to] = pools.get_disjoint_mut([from, to]).expect("two ranks");
        deliver(device, fields, from, to, pieces);
    }
}

/// Means of groups whose parents other ranks own are made in ghosts and sent.
fn restrictions_agree<T: Real>(device: &Device) {
    let (mesh, mut noise) = (mesh(), Noise::new(33));
    let fluid = gas::<T>(&mesh, &mut noise);
    let eos = Eos { density_floor: T::from_f64(0.4), ..Eos::new(5.0 / 3.0) };
    for level in 0..mesh.levels.len() - 1 {
        let (alone, mut ranks) = everyone(|rank| {
            let mut pool = Buffer::from_host(device, fluid.clone()).unwrap();
            restrict(device, &tables_of(&mesh, level, rank), &mut pool, &eos);
            pool
        });
        let tables: Vec<_> = (0..RANKS).map(|rank| tables_of(&mesh, level, Some(rank))).collect();
        for rank in 0..RANKS {
            let parents = parents_elsewhere(&mesh, level, rank);
            assert!(!parents.is_empty(), "level {level}: rank {rank} needs parents elsewhere");
            restrict(device, &parents, &mut ranks[rank], &eos);
            send_patches(device, FIELDS, &parents, rank, &mut ranks, &tables);
        }
        let alone = alone.to_host();
        for (n, (pool, tables)) in ranks.iter().zip(&tables).enumerate() {
            let pool = pool.to_host();
            for &slot in &tables.slots {
                let values = |pool: &[T]| bits(&pool[slot as usize * GROUP_VALUES..][..GROUP_VALUES]);
                assert!(values(&pool) == values(&alone), "level {level}, rank {n}, slot {slot}");
            }
        }
    }
}

/// The same with the sheets of all levels, from fine to coarse. Gradients of groups of other ranks are in slots behind
/// those of all pools.
fn sheets_agree<T: Real>(device: &Device) {
    let (mesh, mut noise) = (mesh(), Noise::new(34));
    let slots = mesh.group_count();
    let [potential, sheet] = [0; 2].map(|_| random::<T>(&mut noise, slots * GROUP_CELLS));
    let gradients = random::<T>(&mut noise, slots * FACE_GRADIENTS);
    let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
    let potential = pool(&potential);
    let (mut alone, mut ranks) = everyone(|_| pool(&sheet));
    for level in (0..mesh.levels.len()).rev() {
        let beyond_pools = (0..RANKS).map(|rank| {
            let finer = if level + 1 < mesh.levels.len() {
                tables_of(&mesh, level + 1, Some(rank)).slots
            } else {
                DeviceTable::default()
            };
            let mut own = vec![T::nan(); slots * FACE_GRADIENTS];
            for &slot in &finer {
                let range = slot as usize * FACE_GRADIENTS..(slot as usize + 1) * FACE_GRADIENTS;
                own[range.clone()].copy_from_slice(&gradients[range]);
            }
            let mut tables = tables_of(&mesh, level, Some(rank));
            let place = |&slot: &u32| if slot == NONE || finer.contains(&slot) { slot } else { slots as u32 + slot };
            tables.beyond = tables.beyond.iter().map(place).collect();
            tables.check();
            (tables, pool(&[own, gradients.clone()].concat()))
        });
        let (tables, gradients_of): (Vec<_>, Vec<_>) = beyond_pools.unzip();
        for rank in 0..RANKS {
            let mut parents = parents_elsewhere(&mesh, level, rank);
            parents.leaves = vec![0; parents.len()].into();
            parents.beyond = vec![NONE; parents.len() * OCTANTS * 6].into();
            mass_sheet(device, &parents, H, &potential, &gradients_of[rank], &mut ranks[rank]);
            send_patches(device, 1, &parents, rank, &mut ranks, &tables);
        }
        mass_sheet(device, &mesh.tables(level), H, &potential, &pool(&gradients), &mut alone);
        let expected = alone.to_host();
        for (rank, tables) in tables.iter().enumerate() {
            mass_sheet(device, tables, H, &potential, &gradients_of[rank], &mut ranks[rank]);
            let found = ranks[rank].to_host();
            for &slot in &tables.slots {
                let values = |pool: &[T]| bits(&pool[slot as usize * GROUP_CELLS..][..GROUP_CELLS]);
                assert!(values(&found) == values(&expected), "level {level}, rank {rank}, slot {slot}");
            }
        }
    }
}

/// In both precisions.
macro_rules! on_cpu {
    ($agree:ident) => {
        let device = Device::cpu(2).unwrap();
        $agree::<f32>(&device);
        $agree::<f64>(&device);
    };
}

#[test]
fn ranks_look_at_kick_prolong_and_solve_what_one_would() {
    on_cpu!(operations_on_levels_agree);
}

#[test]
fn ranks_sweep_and_redo_what_one_would() {
    on_cpu!(sweeps_and_redos_agree);
}

#[test]
fn ranks_restrict_what_one_would() {
    on_cpu!(restrictions_agree);
}

#[test]
fn ranks_make_the_sheets_that_one_would() {
    on_cpu!(sheets_agree);
}

#[test]
fn ranks_compute_what_one_would_on_a_gpu() {
    with_gpu(|gpu| {
        operations_on_levels_agree::<f32>(gpu);
        sweeps_and_redos_agree::<f32>(gpu);
        restrictions_agree::<f32>(gpu);
        sheets_agree::<f32>(gpu);
        sheets_agree::<f64>(gpu);
    });
}
