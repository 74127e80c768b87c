//! Flags of a GPU against those of the processor.

use super::program::ProgramBuilder;
use super::program::{Op, Value};
use super::*;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::point::particle::WHOLE;
use crate::testing::{Mesh, Noise, conserved, with_gpu};

/// Criteria of every kind that flag few cells, some or many with rising `strictness` from 0 to 7.
fn criteria<T: Real>(strictness: usize) -> Vec<FlagCriterion<T>> {
    let n = strictness as f64;
    let mut all = vec![
        FlagCriterion::DensityAbove(T::from_f64(2.0 + 0.35 * n)),
        FlagCriterion::DarkMatterAbove(T::from_f64(0.4 + 0.2 * n)),
        FlagCriterion::FollowedAbove(T::from_f64((0.5 + 0.2 * n) * WHOLE as f64)),
        FlagCriterion::JeansCellsBelow(40.0 - 4.0 * n),
        FlagCriterion::Inside(Region { min: [3.0 + n, 2.5, -1.0], max: [9.0, 4.5 + n, 16.0 - n], radius: 0.0 }),
        FlagCriterion::Inside(Region { min: [0.3, 2.0 * n, 31.5], max: [0.3, 2.0 * n, 31.5], radius: 1.7 }),
    ];
    for of in [Quantity::Density, Quantity::Pressure, Quantity::Velocity] {
        all.push(FlagCriterion::GradientAbove { of, threshold: T::from_f64(0.05 + 0.04 * n) });
        all.push(FlagCriterion::LohnerAbove { of, threshold: T::from_f64(0.3 + 0.08 * n), filter: T::from_f64(0.02) });
    }
    // div_v > n/10 && x < 20, and a density above a power of the pressure
    let mut b = ProgramBuilder::default();
    let divergence = b.push(Op::DivergenceOfVelocity, &[]);
    let limit = b.constant(0.1 * n);
    let expanding = b.push(Op::Less, &[limit, divergence]);
    let x = b.push(Op::PositionX, &[]);
    let twenty = b.constant(20.0);
    let left = b.push(Op::Less, &[x, twenty]);
    let both = b.push(Op::And, &[expanding, left]);
    all.push(FlagCriterion::Where(b.finish(both).unwrap()));
    let mut b = ProgramBuilder::default();
    let pressure = b.push(Op::Pressure, &[]);
    let exponent = b.constant(0.7 + 0.1 * n);
    let power = b.push(Op::Power, &[pressure, exponent]);
    let density = b.push(Op::Density, &[]);
    let above = b.push(Op::Subtract, &[density, power]);
    all.push(FlagCriterion::Where(b.finish(above).unwrap()));
    // dark matter against its share of all matter
    let mut b = ProgramBuilder::default();
    let dark = b.push(Op::DarkMatterDensity, &[]);
    let contrast = b.push(Op::MatterOverdensity, &[]);
    let share = b.constant(0.1 * n);
    let share = b.push(Op::Multiply, &[contrast, share]);
    let dark = b.push(Op::Less, &[share, dark]);
    all.push(FlagCriterion::Where(b.finish(dark).unwrap()));
    all
}

/// Each criterion alone, all joined by any, and nested combinations of all kinds, the criteria in another order in each.
fn combinations<T: Real>(criteria: &[FlagCriterion<T>]) -> Vec<Combination<T>> {
    let one = |n: usize| Combination::from(criteria[n % criteria.len()].clone());
    let mut all: Vec<Combination<T>> = (0..criteria.len()).map(one).collect();
    all.extend(Combination::any((0..criteria.len()).map(one)));
    all.push(Combination::everywhere());
    for n in 0..criteria.len() {
        let either = Combination::any([one(n + 3), one(n + 5).complement()]).unwrap();
        let both = Combination::all([one(n), either.clone(), one(n + 7)]).unwrap();
        all.push(both.clone());
        all.push(
            Combination::any([one(n + 1), Combination::all([either.complement(), both.complement()]).unwrap()])
                .unwrap(),
        );
    }
    all
}

fn level_of<T: Real>(mesh: &Mesh, level: usize) -> FlagLevel<T> {
    FlagLevel {
        level,
        cells: mesh.root.map(|n| (n as usize * GROUP) << level),
        periodic: mesh.periodic,
        cell_width: 0.5f64.powi(level as i32),
        a: 0.25,
        four_pi_g: 0.01,
        mean_density: 1.25,
        mean_gas_density: 1.0,
        eos: Eos::new(5.0 / 3.0),
    }
}

/// Smooth gas with noise, so that thresholds part its cells.
fn gas<T: Real>(mesh: &Mesh, noise: &mut Noise) -> Vec<T> {
    mesh.fill(|x| {
        let density = 2.0 + (0.4 * x[0]).sin() + 0.5 * (0.7 * x[1] * x[2]).cos() + 0.2 * noise.next();
        let velocity = [(0.3 * x[1]).sin() + 0.2 * noise.next(), 0.4 * noise.next(), -0.7];
        conserved(density, velocity, 1.0 + 0.5 * (0.5 * x[2]).sin() + 0.2 * noise.next(), 5.0 / 3.0)
    })
}

/// Combinations of criteria with several thresholds and buffers.
fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let mut noise = Noise::new(14);
    let (mut set, mut clear) = (0, 0);
    for case in 0..2 {
        let mesh = Mesh::random(&mut noise, 2);
        let fluid: Vec<T> = gas(&mesh, &mut noise);
        let pools = [&cpu, gpu].map(|device| Buffer::from_host(device, fluid.clone()).unwrap());
        // with dark matter in one case
        let gas = fluid.chunks_exact(GROUP_VALUES).flat_map(|group| &group[..GROUP_CELLS]);
        let matter: Vec<T> = gas.map(|gas| *gas + T::from_f64(noise.next().abs() * 2.0)).collect();
        let matter = [&cpu, gpu].map(|device| (case == 1).then(|| Buffer::from_host(device, matter.clone()).unwrap()));
        let followed: Vec<u64> =
            (0..mesh.group_count() * GROUP_CELLS).map(|_| (noise.next().abs() * 2.0 * WHOLE as f64) as u64).collect();
        let followed = [&cpu, gpu].map(|device| Buffer::from_host(device, followed.clone()).unwrap());
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let coordinates: Vec<[u32; 3]> = mesh.levels[level].iter().map(|c| c.map(|c| c as u32)).collect();
            for (strictness, buffer) in [[(1, 0), (5, 3)], [(3, 1), (7, 8)]][case] {
                for met in combinations(&criteria::<T>(strictness)) {
                    let criteria = FlagCriteria { met, level: level_of(&mesh, level) };
                    let [expected, found] = [(&cpu, 0), (gpu, 1)].map(|(device, n)| {
                        let mut masks = vec![u32::MAX; tables.len() * OCTANTS];
                        let matter = matter[n].as_ref();
                        let (fluid, followed) = (Some(&pools[n]), Some(&followed[n]));
                        flag(device, &tables, &coordinates, fluid, matter, followed, &criteria, buffer, &mut masks);
                        masks
                    });
                    set += expected.iter().filter(|mask| **mask != 0).count();
                    clear += expected.iter().filter(|mask| **mask == 0).count();
                    for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        assert!(
                            found == expected,
                            "case {case} level {level} group {} patch {} buffer {buffer}: GPU {found:027b}, \
                             CPU {expected:027b}, {:?}",
                            n / OCTANTS,
                            n % OCTANTS,
                            criteria.met,
                        );
                    }
                }
            }
        }
    }
    assert!(set > 1000 && clear > 1000, "the test needs both: {set} {clear}");
}

#[test]
fn a_gpu_flags_the_same_patches() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}

/// Every operation of programs: a patch is flagged where what `op` gives for one of its cells is, in units of its last
/// place, a multiple of 3. Each cell has numbers of its own, so eight cells in a group are looked at a time.
#[test]
fn a_gpu_computes_the_same_numbers() {
    with_gpu(|gpu| {
        let cpu = Device::cpu(2).unwrap();
        let mesh = Mesh::new([2, 2, 2], true);
        let mut noise = Noise::new(16);
        let special = [0.0, -1.0, 2.0, f64::INFINITY, f64::NAN, -1e300, 1e-310, 0.3];
        let mut n = 0;
        let fluid: Vec<f64> = mesh.fill(|_| {
            n += 1;
            std::array::from_fn(|f| if (n + f) % 9 == 0 { special[(n / 9 + f) % 8] } else { 20.0 * noise.next() })
        });
        let coordinates: Vec<[u32; 3]> = mesh.levels[0].iter().map(|c| c.map(|c| c as u32)).collect();
        let tables = mesh.tables(0);
        let pools = [&cpu, gpu].map(|device| Buffer::from_host(device, fluid.clone()).unwrap());
        for op in Op::ALL.into_iter().filter(|op| *op != Op::Constant) {
            let mut set = 0;
            for look in 0..8 {
                let mut b = ProgramBuilder::default();
                let fields = [Op::Density, Op::Energy, Op::Entropy].map(|field| b.push(field, &[]));
                let value = b.push(op, &fields[..op.operands()]);
                let last_places = if look % 2 == 0 { low_bits(&mut b, value) } else { value };
                let here = one_cell_of_each_patch(&mut b, look);
                let result = b.push(Op::Multiply, &[here, last_places]);
                let program = FlagCriterion::Where(b.finish(result).unwrap());
                let criteria = FlagCriteria { met: program.into(), level: level_of::<f64>(&mesh, 0) };
                let [expected, found] = [(&cpu, &pools[0]), (gpu, &pools[1])].map(|(device, pool)| {
                    let mut masks = vec![0; tables.len() * OCTANTS];
                    flag(device, &tables, &coordinates, Some(pool), None, None, &criteria, 0, &mut masks);
                    masks
                });
                assert_eq!(found, expected, "{op:?}, look {look}");
                set += expected.iter().filter(|mask| **mask != 0).count();
            }
            assert!(set > 0, "{op:?} flags something");
        }
    });
}

/// Above zero where the digits of x far behind its leading one leave 1 when divided by 3.
fn low_bits(b: &mut ProgramBuilder, x: Value) -> Value {
    let size = b.push(Op::Absolute, &[x]);
    let places = b.constant(2f64.powi(50));
    let three = b.constant(3.0);
    let scaled = b.push(Op::Multiply, &[size, places]);
    let rest = b.push(Op::Remainder, &[scaled, three]);
    let two = b.constant(2.0);
    b.push(Op::Less, &[rest, two])
}

/// 1 in one cell of each patch, another for each `look`.
fn one_cell_of_each_patch(b: &mut ProgramBuilder, look: usize) -> Value {
    let here = [Op::PositionX, Op::PositionY, Op::PositionZ].map(|position| {
        let position = b.push(position, &[]);
        let patch = b.constant(8.0);
        let place = b.push(Op::Remainder, &[position, patch]);
        let wanted = b.constant(((3 * look + 5 * (look / 2)) % 8) as f64 + 0.5);
        b.push(Op::Equal, &[place, wanted])
    });
    let plane = b.push(Op::And, &[here[0], here[1]]);
    b.push(Op::And, &[plane, here[2]])
}

/// The kernel numbers the operations as the host does.
#[test]
fn operations_have_the_same_numbers_on_a_gpu() {
    let twin = include_str!("program/program.cuh");
    let list = twin.split("enum class Op : uint8_t {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    assert_eq!(names, Op::ALL.map(|op| format!("{op:?}")));
    assert!(Op::ALL.iter().enumerate().all(|(n, op)| *op as usize == n));
}
