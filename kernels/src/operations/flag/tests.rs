//! Criteria against brute force, cell by cell.

use super::cpu::{Pools, Scratch, flagged_rows};
use super::program::Op;
use super::*;
use crate::layout::{DIRECTIONS, FIELDS, GROUP, GROUP_CELLS, HYDRO_GHOSTS, PATCH, cell, octant_origin};
use crate::level::ghosts::{BLOCK_VALUES, CoarseCells, block_cell, gather};
use crate::point::dual_energy::pressure;
use crate::point::particle::WHOLE;
use crate::testing::{Mesh, Noise, conserved};

const GAMMA: f64 = 5.0 / 3.0;

fn level<T: Real>(mesh: &Mesh, level: usize) -> FlagLevel<T> {
    FlagLevel {
        level,
        cells: mesh.root.map(|n| (n as usize * GROUP) << level),
        periodic: mesh.periodic,
        cell_width: 0.5f64.powi(level as i32),
        a: 0.25,
        four_pi_g: 0.01,
        mean_density: 1.25,
        mean_gas_density: 1.0,
        eos: Eos::new(GAMMA),
    }
}

fn pools<'a, T>(fluid: Option<&'a [T]>, matter: Option<&'a [T]>) -> Pools<'a, T> {
    Pools { fluid, matter, followed: None }
}

/// The flagged cells of a group in the order of its layout, the same on every instruction set.
fn flagged<T: Real>(mesh: &Mesh, l: usize, g: usize, fluid: &[T], criterion: FlagCriterion<T>) -> Vec<bool> {
    let criteria = FlagCriteria { met: criterion.into(), level: level(mesh, l) };
    let coordinate = mesh.levels[l][g].map(|c| c as u32);
    let rows = |isa| {
        let mut scratch = Scratch::for_criteria(&criteria);
        flagged_rows(isa, &mesh.tables(l), g, coordinate, pools(Some(fluid), None), &criteria, &mut scratch)
    };
    let best = rows(Isa::best());
    for isa in Isa::available() {
        assert_eq!(rows(isa), best, "{isa:?}");
    }
    (0..GROUP_CELLS).map(|c| best[c / GROUP] >> (c % GROUP) & 1 == 1).collect()
}

/// A criterion must find some cells and leave some, or the test shows nothing.
fn assert_same(found: &[bool], expected: &[bool], what: &str) {
    assert!(expected.contains(&true) && expected.contains(&false), "{what}: the test needs both");
    for (c, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{what}: cell {c}");
    }
}

/// Gas with structure on all scales, on two levels: fine groups beside each other and alone.
fn rough_gas() -> (Mesh, Vec<f64>) {
    let mesh = Mesh::new([2, 2, 2], true).with_level(vec![[1, 1, 1], [2, 1, 1], [2, 2, 1]]);
    let mut noise = Noise::new(3);
    let fluid = mesh.fill(|x| {
        let density = 2.0 + (0.4 * x[0]).sin() + 0.5 * (0.7 * x[1] * x[2]).cos() + 0.2 * noise.next();
        let velocity = [(0.3 * x[1]).sin() + 0.2 * noise.next(), 0.4 * noise.next(), -0.7];
        conserved(density, velocity, 1.0 + 0.5 * (0.5 * x[2]).sin() + 0.2 * noise.next(), GAMMA)
    });
    (mesh, fluid)
}

/// The values that a quantity's criterion looks at, and their scale, in a gathered block, by definition.
fn components(of: Quantity, block: &[f64; BLOCK_VALUES]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let eos = Eos::new(GAMMA);
    let cells: Vec<[f64; FIELDS]> =
        (0..BLOCK_VALUES / FIELDS).map(|e| std::array::from_fn(|f| block[f * (BLOCK_VALUES / FIELDS) + e])).collect();
    let each = |value: &dyn Fn(&[f64; FIELDS]) -> f64| cells.iter().map(value).collect::<Vec<f64>>();
    let thermal = each(&|u| pressure(u, &eos));
    let density = each(&|u| u[0]);
    match of {
        Quantity::Density => vec![(density.clone(), density)],
        Quantity::Pressure => vec![(thermal.clone(), thermal)],
        Quantity::Velocity => {
            let speed = each(&|u| (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]).sqrt() / u[0]);
            let sound = each(&|u| (GAMMA * pressure(u, &eos) / u[0]).sqrt());
            let scale: Vec<f64> = speed.iter().zip(&sound).map(|(v, c)| v + c).collect();
            (1..4).map(|f| (each(&|u| u[f] / u[0]), scale.clone())).collect()
        }
    }
}

const STEPS: [[i32; 3]; 3] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

/// The value in a block at a cell of the group moved by a step.
fn at(values: &[f64], c: usize, step: [i32; 3]) -> f64 {
    let [i, j, k] = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP].map(|x| (x + HYDRO_GHOSTS) as i32);
    values[block_cell(0, (i + step[0]) as usize, (j + step[1]) as usize, (k + step[2]) as usize)]
}

/// E of Löhner's estimator, squared, from its definition.
fn lohner(value: &[f64], scale: &[f64], c: usize, filter: f64) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    for p in STEPS {
        for q in STEPS {
            let moved = |s: i32, t: i32| std::array::from_fn(|a| s * p[a] + t * q[a]);
            let first = |t: i32| at(value, c, moved(1, t)) - at(value, c, moved(-1, t));
            let sum: f64 =
                [(1, 1), (1, -1), (-1, 1), (-1, -1)].map(|(s, t)| at(scale, c, moved(s, t)).abs()).iter().sum();
            above += (first(1) - first(-1)).powi(2);
            below += (first(1).abs() + first(-1).abs() + filter * sum).powi(2);
        }
    }
    above / below
}

/// Whether a cell of a component's values and scale meets a criterion.
type Met<'a> = dyn Fn(&[f64], &[f64], usize) -> bool + 'a;

/// On the fine level, whose ghost cells lie in groups beside it and in the coarser level, and on the root.
#[test]
fn gradients_and_lohner_agree_with_their_definitions() {
    let (mesh, fluid) = rough_gas();
    for (l, g) in [(0, 0), (1, 0), (1, 1), (1, 2)] {
        let mut block: Box<[f64; BLOCK_VALUES]> = vec![0.0; BLOCK_VALUES].into_boxed_slice().try_into().unwrap();
        gather(&mesh.tables(l), g, &fluid, None, &Eos::new(5.0 / 3.0), &mut CoarseCells::new(), &mut block);
        for of in [Quantity::Density, Quantity::Pressure, Quantity::Velocity] {
            let components = components(of, &block);
            let any = |met: &Met<'_>| {
                (0..GROUP_CELLS).map(|c| components.iter().any(|(v, s)| met(v, s, c))).collect::<Vec<bool>>()
            };
            let threshold = 0.11;
            let expected = any(&|value, scale, c| {
                let change = |step: [i32; 3]| (at(value, c, step) - at(value, c, step.map(|s| -s))).abs() / 2.0;
                STEPS.map(change).iter().any(|change| *change >= threshold * at(scale, c, [0; 3]))
            });
            let found = flagged(&mesh, l, g, &fluid, FlagCriterion::GradientAbove { of, threshold });
            assert_same(&found, &expected, &format!("gradient of {of:?}, level {l}, group {g}"));
            for (threshold, filter) in [(0.6, 0.01), (0.4, 0.1)] {
                let expected = any(&|value, scale, c| lohner(value, scale, c, filter) > threshold * threshold);
                let found = flagged(&mesh, l, g, &fluid, FlagCriterion::LohnerAbove { of, threshold, filter });
                assert_same(&found, &expected, &format!("Löhner of {of:?}, level {l}, group {g}"));
            }
        }
    }
}

/// A linear density is interpolated exactly across level boundaries, so its gradient is known everywhere.
#[test]
fn the_gradient_of_linear_data_is_the_same_beside_a_coarser_level() {
    let fine = vec![[2, 2, 2], [3, 2, 2], [3, 3, 2]];
    let mesh = Mesh::new([3, 3, 3], false).with_level(fine.clone());
    let density = |x: [f64; 3]| 100.0 + x[0] - 2.0 * x[1] + 0.5 * x[2];
    let fluid: Vec<f32> = mesh.fill(|x| conserved(density(x), [0.0; 3], 1.0, GAMMA));
    for (g, group) in fine.iter().enumerate() {
        let centre = |c: usize| {
            let x = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
            std::array::from_fn(|a| 0.5 * (f64::from(group[a]) * 16.0 + x[a] as f64 + 0.5))
        };
        // the steepest axis is y: a change of 2 · h = 1 across a cell; densities are multiples of 1/8, so none is near
        let limit = density(centre(cell(8, 8, 8))) + 0.05;
        let expected: Vec<bool> = (0..GROUP_CELLS).map(|c| density(centre(c)) < limit).collect();
        let criterion = FlagCriterion::GradientAbove { of: Quantity::Density, threshold: (1.0 / limit) as f32 };
        assert_same(&flagged(&mesh, 1, g, &fluid, criterion), &expected, &format!("group {g}"));
    }
}

/// λ_J = √(π c_s²/(Gρ)) of each cell over its width.
#[test]
fn jeans_lengths_are_compared_in_cells() {
    let (mesh, fluid) = rough_gas();
    for (l, g, cells) in [(0, 3, 45.0), (1, 1, 90.0)] {
        let slot = mesh.tables(l).slots[g] as usize;
        let gravity: FlagLevel<f64> = level(&mesh, l);
        let expected: Vec<bool> = (0..GROUP_CELLS)
            .map(|c| {
                let u: [f64; FIELDS] = std::array::from_fn(|f| fluid[slot * GROUP_VALUES + f * GROUP_CELLS + c]);
                let g_newton = gravity.four_pi_g / (4.0 * std::f64::consts::PI);
                let sound_squared = GAMMA * pressure(&u, &Eos::new(GAMMA)) / u[0];
                (std::f64::consts::PI * sound_squared / (g_newton * u[0])).sqrt() < cells * gravity.cell_width
            })
            .collect();
        let found = flagged(&mesh, l, g, &fluid, FlagCriterion::JeansCellsBelow(cells));
        assert_same(&found, &expected, &format!("level {l}"));
    }
}

/// Boxes against points throughout each cell, balls against the nearest point of each cell, for every periodic image.
#[test]
fn regions_are_what_their_points_say() {
    let cases = [
        Region { min: [3.0, 2.5, 0.0], max: [9.0, 4.5, 16.0], radius: 0.0 },
        Region { min: [-2.5, 3.1, -1.0], max: [2.5, 3.2, 5.0], radius: 0.0 },
        Region { min: [14.2, 4.0, 14.0], max: [18.0, 9.0, 17.5], radius: 0.0 },
        Region { min: [30.9, 8.0, 15.6], max: [30.9, 8.0, 15.6], radius: 2.7 },
        Region { min: [9.1, 8.1, 7.6], max: [9.1, 8.1, 7.6], radius: 0.05 },
    ];
    let length = [32.0, 16.0, 16.0];
    for (periodic, region) in [true, false].into_iter().flat_map(|periodic| cases.map(|region| (periodic, region))) {
        let mesh = Mesh::new([2, 1, 1], periodic);
        let fluid: Vec<f32> = mesh.fill(|_| [1.0; FIELDS]);
        let images: Vec<Region> = (0..27)
            .map(|n| [n % 3, n / 3 % 3, n / 9].map(|s| f64::from(s) - 1.0))
            .filter(|steps| periodic || *steps == [0.0; 3])
            .map(|steps| {
                let moved = |x: [f64; 3]| std::array::from_fn(|a| x[a] + steps[a] * length[a]);
                Region { min: moved(region.min), max: moved(region.max), ..region }
            })
            .collect();
        let holds = |x: [f64; 3]| images.iter().any(|r| (0..3).all(|a| (r.min[a]..r.max[a]).contains(&x[a])));
        let reaches = |low: [f64; 3]| {
            images.iter().any(|r| {
                let gap = |a: usize| r.min[a] - r.min[a].clamp(low[a], low[a] + 1.0);
                (0..3).map(|a| gap(a) * gap(a)).sum::<f64>() <= r.radius * r.radius
            })
        };
        let meets = |low: [f64; 3]| {
            let inner = |s: i32| 1e-6 + (1.0 - 2e-6) * f64::from(s) / 8.0;
            let point = |p: i32| [p % 9, p / 9 % 9, p / 81].map(inner);
            (0..9 * 9 * 9).map(point).any(|p| holds(std::array::from_fn(|a| low[a] + p[a])))
        };
        let mut found = Vec::new();
        let mut expected = Vec::new();
        for g in 0..2 {
            found.extend(flagged(&mesh, 0, g, &fluid, FlagCriterion::Inside(region)));
            expected.extend((0..GROUP_CELLS).map(|c| {
                let low = [g * GROUP + c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP].map(|n| n as f64);
                if region.radius > 0.0 { reaches(low) } else { meets(low) }
            }));
        }
        assert_same(&found, &expected, &format!("{region:?}, periodic: {periodic}"));
    }
}

/// Every patch and direction: does a cell of the patch there lie within the buffer of a flagged cell here?
#[test]
fn masks_agree_with_brute_force() {
    let mesh = Mesh::new([2, 1, 1], true);
    let mut noise = Noise::new(1);
    // a handful of flagged cells in each patch at most, none in some
    let fluid = mesh.fill::<f32>(|x| [1.0 + noise.next() * (1.0 + 0.01 * x[0].floor() / 32.0), 0., 0., 0., 1., 1.]);
    let threshold = 1.996;
    let criteria = FlagCriteria { met: FlagCriterion::DensityAbove(threshold).into(), level: level(&mesh, 0) };
    let device = Device::cpu(2).unwrap();
    let pool = Buffer::from_host(&device, fluid.clone()).unwrap();
    for buffer in [0, 1, 3, 8] {
        let mut masks = vec![u32::MAX; 2 * OCTANTS];
        flag(&device, &mesh.tables(0), &[[0; 3], [1, 0, 0]], Some(&pool), None, None, &criteria, buffer, &mut masks);
        assert!(masks.contains(&0) && masks.iter().any(|&mask| mask != 0), "the test needs both");
        for (n, &mask) in masks.iter().enumerate() {
            let origin = octant_origin(n % OCTANTS);
            let mut expected = 0;
            for c in 0..GROUP_CELLS {
                let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
                let here = (0..3).all(|a| (origin[a]..origin[a] + PATCH).contains(&at[a]));
                if !here || fluid[n / OCTANTS * GROUP_VALUES + c] <= threshold {
                    continue;
                }
                for d in 0..DIRECTIONS {
                    let step = [d % 3, d / 3 % 3, d / 9].map(|s| s as i32 - 1);
                    // the nearest cell of the patch there
                    let near = |a: usize| {
                        let x = at[a] as i32 - origin[a] as i32;
                        (x - x.clamp(8 * step[a], 8 * step[a] + 7)).unsigned_abs() as usize <= buffer
                    };
                    expected |= u32::from((0..3).all(near)) << d;
                }
            }
            assert_eq!(mask, expected, "buffer {buffer} patch {n}");
        }
    }
}

/// What all matter has beyond the gas, and nothing where there is no dark matter.
#[test]
fn dark_matter_is_what_matter_has_beyond_the_gas() {
    let (mesh, fluid) = rough_gas();
    let mut noise = Noise::new(5);
    let gas = |slot: usize, c: usize| fluid[slot * GROUP_VALUES + c];
    let slots = fluid.len() / GROUP_VALUES;
    let cells = (0..slots).flat_map(|slot| (0..GROUP_CELLS).map(move |c| (slot, c)));
    let matter: Vec<f64> = cells.map(|(slot, c)| gas(slot, c) + 4.0 * noise.next().abs()).collect();
    let criteria = FlagCriteria { met: FlagCriterion::DarkMatterAbove(2.0).into(), level: level(&mesh, 1) };
    let (tables, coordinate) = (mesh.tables(1), mesh.levels[1][1].map(|c| c as u32));
    let slot = tables.slots[1] as usize;
    for isa in Isa::available() {
        let rows = |matter| {
            let mut scratch = Scratch::for_criteria(&criteria);
            let rows = flagged_rows(isa, &tables, 1, coordinate, pools(Some(&fluid), matter), &criteria, &mut scratch);
            (0..GROUP_CELLS).map(|c| rows[c / GROUP] >> (c % GROUP) & 1 == 1).collect::<Vec<bool>>()
        };
        let expected: Vec<bool> =
            (0..GROUP_CELLS).map(|c| matter[slot * GROUP_CELLS + c] - gas(slot, c) > 2.0).collect();
        assert_same(&rows(Some(&matter)), &expected, "dark matter");
        assert!(!rows(None).contains(&true));
    }
}

/// Followed particles by their deposits, in whichever slot the group is.
#[test]
fn the_number_of_followed_particles_is_that_of_their_deposits() {
    let ((mesh, fluid), mut noise) = (rough_gas(), Noise::new(15));
    let weights: Vec<u64> =
        (0..mesh.group_count() * GROUP_CELLS).map(|_| (noise.next().abs() * 4.0 * WHOLE as f64) as u64).collect();
    let criteria =
        FlagCriteria { met: FlagCriterion::FollowedAbove(2.5 * WHOLE as f64).into(), level: level::<f64>(&mesh, 1) };
    let tables = mesh.tables(1);
    let slot = tables.slots[2] as usize;
    let expected: Vec<bool> =
        weights[slot * GROUP_CELLS..][..GROUP_CELLS].iter().map(|&w| w as f64 / WHOLE as f64 > 2.5).collect();
    for isa in Isa::available() {
        let mut scratch = Scratch::for_criteria(&criteria);
        let pools = Pools { followed: Some(&weights), ..pools(Some(&fluid), None) };
        let rows = flagged_rows(isa, &tables, 2, [0; 3], pools, &criteria, &mut scratch);
        let found: Vec<bool> = (0..GROUP_CELLS).map(|c| rows[c / GROUP] >> (c % GROUP) & 1 == 1).collect();
        assert_same(&found, &expected, "followed particles");
    }
}

/// Combinations flag the cells that their truth tables name, on every instruction set.
#[test]
fn combinations_follow_their_truth_tables() {
    let (mesh, fluid) = rough_gas();
    let criteria = [
        FlagCriterion::DensityAbove(2.3),
        FlagCriterion::JeansCellsBelow(36.0),
        FlagCriterion::GradientAbove { of: Quantity::Velocity, threshold: 0.2 },
    ];
    let alone = criteria.clone().map(|criterion| flagged(&mesh, 0, 0, &fluid, criterion));
    let [a, b, c] = criteria.map(Combination::from);
    let pair = |x: &Combination<f64>, y: &Combination<f64>| [x.clone(), y.clone()];
    let none = Combination::everywhere().complement();
    type Truth = fn(bool, bool, bool) -> bool;
    let cases: [(Combination<f64>, Truth); 8] = [
        (Combination::any(pair(&a, &b)).unwrap(), |a, b, _| a || b),
        (Combination::all(pair(&a, &b)).unwrap(), |a, b, _| a && b),
        (a.clone().complement(), |a, _, _| !a),
        (Combination::all([a.clone(), b.clone().complement(), c.clone()]).unwrap(), |a, b, c| a && !b && c),
        (Combination::any([Combination::all(pair(&a, &b)).unwrap().complement(), c.clone()]).unwrap(), |a, b, c| {
            !(a && b) || c
        }),
        (
            Combination::all([
                a.clone(),
                Combination::any([b.clone(), Combination::all(pair(&a, &c)).unwrap().complement()]).unwrap(),
            ])
            .unwrap(),
            |a, b, c| a && (b || !c),
        ),
        (Combination::all([Combination::everywhere(), c.clone().complement()]).unwrap(), |_, _, c| !c),
        (Combination::any([none, b.clone(), c.clone()]).unwrap(), |_, b, c| b || c),
    ];
    let mut seen = [0; 8];
    for (n, (met, truth)) in cases.into_iter().enumerate() {
        let criteria = FlagCriteria { met, level: level(&mesh, 0) };
        for isa in Isa::available() {
            let mut scratch = Scratch::for_criteria(&criteria);
            let tables = mesh.tables(0);
            let rows = flagged_rows(isa, &tables, 0, [0; 3], pools(Some(&fluid), None), &criteria, &mut scratch);
            for cell in 0..GROUP_CELLS {
                let [a, b, c] = [0, 1, 2].map(|n| alone[n][cell]);
                seen[usize::from(a) + 2 * usize::from(b) + 4 * usize::from(c)] += 1;
                assert_eq!(rows[cell / GROUP] >> (cell % GROUP) & 1 == 1, truth(a, b, c), "{n} {isa:?}: {a} {b} {c}");
            }
        }
    }
    assert!(seen.iter().all(|cells| *cells > 0), "the test needs every row of the table: {seen:?}");
}

/// Fields of all matter and of dark matter in programs, with gas, without it, and with gas alone.
#[test]
fn programs_see_all_matter() {
    let (mesh, fluid) = rough_gas();
    let mut noise = Noise::new(6);
    let gas_alone: Vec<f64> =
        fluid.chunks_exact(GROUP_VALUES).flat_map(|group| group[..GROUP_CELLS].to_vec()).collect();
    let matter: Vec<f64> = gas_alone.iter().map(|gas| gas + 4.0 * noise.next().abs()).collect();
    let tables = mesh.tables(0);
    let at = tables.slots[1] as usize * GROUP_CELLS;
    let above = |op: Op, limit: f64| {
        let mut b = program::ProgramBuilder::default();
        let (value, limit) = (b.push(op, &[]), b.constant(limit));
        let result = b.push(Op::Less, &[limit, value]);
        FlagCriteria { met: FlagCriterion::Where(b.finish(result).unwrap()).into(), level: level(&mesh, 0) }
    };
    let found = |op, limit, fluid: Option<&[f64]>, matter: Option<&[f64]>| {
        let criteria = above(op, limit);
        let mut scratch = Scratch::for_criteria(&criteria);
        let rows = flagged_rows(Isa::best(), &tables, 1, [1, 0, 0], pools(fluid, matter), &criteria, &mut scratch);
        (0..GROUP_CELLS).map(|c| rows[c / GROUP] >> (c % GROUP) & 1 == 1).collect::<Vec<bool>>()
    };
    let cells = |of: &dyn Fn(f64, f64) -> bool| {
        (at..at + GROUP_CELLS).map(|c| of(matter[c], gas_alone[c])).collect::<Vec<bool>>()
    };
    let both = (Some(&fluid[..]), Some(&matter[..]));
    assert_same(&found(Op::MatterDensity, 4.0, both.0, both.1), &cells(&|all, _| all > 4.0), "matter");
    assert_same(&found(Op::MatterOverdensity, 3.0, both.0, both.1), &cells(&|all, _| all / 1.25 > 3.0), "contrast");
    assert_same(&found(Op::DarkMatterDensity, 2.0, both.0, both.1), &cells(&|all, gas| all - gas > 2.0), "dark matter");
    assert_same(&found(Op::Density, 2.0, both.0, both.1), &cells(&|_, gas| gas > 2.0), "gas");
    assert_same(&found(Op::MatterDensity, 4.0, None, both.1), &cells(&|all, _| all > 4.0), "without gas");
    assert_same(&found(Op::DarkMatterDensity, 4.0, None, both.1), &cells(&|all, _| all > 4.0), "dark matter alone");
    assert_same(&found(Op::MatterDensity, 2.0, both.0, None), &cells(&|_, gas| gas > 2.0), "gas alone");
    assert!(!found(Op::DarkMatterDensity, 0.0, both.0, None).contains(&true));
}
