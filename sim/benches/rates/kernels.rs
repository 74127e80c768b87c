//! Every kernel for itself, in single precision, on so many groups that the GPU is full.

use crate::meshes::{lone_children, refined, speeds, state, sweep};
use crate::{Bench, Work};
use comove_sim::kernels::face_relaxation::{Relaxation, relax_faces, start_faces};
use comove_sim::kernels::group_poisson::FACE_GRADIENTS;
use comove_sim::kernels::hydro_sweep::SweepTargets;
use comove_sim::kernels::layout::{FLUX_PLANE_VALUES, GROUP_CELLS, GROUP_VALUES, PATCH};
use comove_sim::kernels::potential_ghosts::GHOST_CELLS;
use comove_sim::kernels::prolong::prolong;
use comove_sim::kernels::reflux::reflux;
use comove_sim::kernels::restrict::restrict;
use comove_sim::kernels::slots::{add_slots, clear_slots, copy_slots};
use comove_sim::kernels::state_hash::state_hash;
use comove_sim::kernels::totals::{GroupTotals, totals};
use comove_sim::kernels::{
    Buffer, DensitySource, Device, Eos, GhostOrigin, Parity, PoissonSource, RootPoisson, SineTables, gravity_kick,
    group_poisson, mass_sheet,
};

pub(crate) fn all(bench: &mut Bench) {
    complete(bench, if bench.smoke { 8 } else { 4096 });
    lone(bench, if bench.smoke { 8 } else { 4096 });
    root(bench, if bench.smoke { 1 } else { 8 }, false);
}

fn work<'a>(operation: &'a str, mesh: &'a str, unit: &'a str, items: usize) -> Work<'a> {
    Work { part: "kernels", operation, mesh, precision: "single", unit, items }
}

/// On a complete refined level.
fn complete(bench: &mut Bench, groups: usize) {
    let mut state = state::<f32>(&bench.device, &refined(groups), true, true);
    let (device, scheme) = (bench.device.clone(), bench.scheme);
    let eos = Eos::new(5.0 / 3.0);
    let h = state.cell_width(1);
    let of = |operation| work(operation, "uniform", "group", groups);

    bench.measure(of("sweep x y z"), || {
        sweep((&mut state, scheme), 1, [0, 1, 2], None, SweepTargets::All, 0.05).reports.wait()
    });
    bench.measure(of("sweep z y x"), || {
        sweep((&mut state, scheme), 1, [2, 1, 0], None, SweepTargets::All, 0.05).reports.wait()
    });
    let every: Vec<u32> = (0..groups as u32).collect();
    bench.measure(of("redo of a sweep"), || {
        sweep((&mut state, scheme), 1, [0, 1, 2], None, SweepTargets::Redo(&every), 0.05).reports.wait()
    });
    bench.measure(of("signal speed"), || speeds(&state, 1).wait());
    let comove_sim::State { mesh, gas: Some(gas), gravity: Some(gravity), .. } = &mut state else { unreachable!() };
    let potential = &mut gravity.potential.current;

    let room = |values: usize| Buffer::<f32>::zeros(&device, values).expect("room");
    let slots = gas.fluid.values.len() / GROUP_VALUES;
    let [mut ghosts, mut own] = [(); 2].map(|()| room(groups * GHOST_CELLS));
    let [mut gradients, mut sheet] = [FACE_GRADIENTS, GROUP_CELLS].map(|n| room(slots * n));
    let error = room(slots * PATCH.pow(3));
    let sine = SineTables::new();
    let source = PoissonSource::Density(DensitySource::of_fluid(&gas.fluid.values, 1.0, 1.0));
    let tables = &mesh.tables[1];
    bench.measure(of("group solve at faces, ghosts from the coarser level"), || {
        let origin = GhostOrigin::Coarse;
        start_faces(&device, tables, origin, None, &sine, &source, h, &mut ghosts, &mut own, potential);
    });
    // both halves, so that every group is relaxed once
    bench.measure(of("relaxation"), || {
        for parity in [Parity::Even, Parity::Odd] {
            let neighbours_corrected = parity == Parity::Odd;
            let relaxation = Relaxation { factor: 1.1, error: &error, neighbours_corrected };
            relax_faces(&device, tables, tables.half(parity), &relaxation, &sine, &own, &mut ghosts, potential);
        }
    });
    bench.measure(of("group solve"), || {
        group_poisson(&device, tables, &sine, &source, &ghosts, h, potential, Some(&mut gradients));
    });

    let coarse = &mesh.tables[0];
    bench.measure(work("mass sheet", "all patches refined", "group", coarse.len()), || {
        mass_sheet(&device, coarse, 2.0 * h, potential, &gradients, &mut sheet);
    });
    bench.measure(work("mass sheet", "no patch refined", "group", groups), || {
        mass_sheet(&device, &mesh.tables[1], h, potential, &gradients, &mut sheet);
    });

    bench.measure(of("kick"), || {
        let (tables, fluid) = (&mesh.tables[1], &mut gas.fluid.values);
        gravity_kick(&device, tables, potential, None, fluid, h, 1e-9, &eos).wait();
    });
    bench.measure(of("restriction"), || restrict(&device, &mesh.tables[0], &mut gas.fluid.values, &eos));
    let new: Vec<usize> = (0..groups).collect();
    bench.measure(of("prolongation"), || prolong(&device, &mesh.tables[1], &new, &mut gas.fluid.values, &eos));

    let mut sums = vec![GroupTotals::default(); groups];
    bench.measure(of("totals"), || totals(&device, &mesh.tables[1], &gas.fluid.values, &mut sums));
    let mut hashes = vec![0; groups];
    bench.measure(of("hash"), || state_hash(&device, &mesh.tables[1], GROUP_VALUES, &gas.fluid.values, &mut hashes));
    let slots = &mesh.tables[1].slots;
    bench.measure(of("slots copied"), || {
        copy_slots(&device, GROUP_VALUES, &gas.fluid.values, slots, &mut gas.fluid.next, slots);
    });
}

/// On groups whose faces all lie between coarse and fine.
fn lone(bench: &mut Bench, groups: usize) {
    let mut state = state::<f32>(&bench.device, &lone_children(groups), true, false);
    let (device, scheme) = (bench.device.clone(), bench.scheme);
    let all = "all ghost cells interpolated";
    bench.measure(work("sweep x y z", all, "group", groups), || {
        sweep((&mut state, scheme), 1, [0, 1, 2], None, SweepTargets::All, 0.05).reports.wait()
    });
    bench.measure(work("sweep x y z, between times", all, "group", groups), || {
        sweep((&mut state, scheme), 1, [0, 1, 2], Some(0.25), SweepTargets::All, 0.05).reports.wait();
    });
    let comove_sim::State { mesh, gas: Some(gas), .. } = &mut state else { unreachable!() };
    let (faces, eos) = (mesh.flux.reflux[0].faces.len(), Eos::new(5.0 / 3.0));
    bench.measure(work("flux correction", all, "face", faces), || {
        let (tables, fluid) = (&mesh.flux.reflux[0], &mut gas.fluid.values);
        reflux(&device, tables, fluid, &gas.fluid.fluxes, 1e-9, 0.5, &eos).wait();
    });
    let planes = &mesh.flux.written[1];
    bench.measure(work("flux planes summed", all, "plane", planes.len()), || {
        add_slots(&device, FLUX_PLANE_VALUES, &gas.fluid.fluxes, &mut gas.fluid.flux_sums, planes);
    });
    bench.measure(work("flux planes cleared", all, "plane", planes.len()), || {
        clear_slots(&device, FLUX_PLANE_VALUES, &mut gas.fluid.flux_sums, planes);
    });
}

/// Transforms of a root of so many groups a side.
fn planned(device: &Device, side: usize, isolated: bool) -> RootPoisson {
    let plan = if isolated { RootPoisson::isolated } else { RootPoisson::new };
    plan(device, [side; 3]).expect("room")
}

/// How long a root takes to plan, and to solve.
pub(crate) fn root_from_plans(bench: &mut Bench, side: usize, isolated: bool) {
    let device = bench.device.clone();
    let name = if isolated { "isolated root planned" } else { "root planned" };
    bench.measure(work(name, "uniform", "group", side * side * side), || planned(&device, side, isolated));
    root(bench, side, isolated);
}

fn root(bench: &mut Bench, side: usize, isolated: bool) {
    let tree = comove_sim::Octree::new([side as u32; 3], comove_sim::mesh::PERIODIC);
    let state = state::<f32>(&bench.device, &tree, false, false);
    let device = bench.device.clone();
    let mut solver = planned(&device, side, isolated);
    let slots = state.mesh.tables[0].slots.clone();
    let mut potential =
        Buffer::zeros(&device, state.gas().fluid.values.len() / GROUP_VALUES * GROUP_CELLS).expect("room");
    let name = if isolated { "isolated root solve" } else { "root solve" };
    bench.measure(work(name, "uniform", "group", side * side * side), || {
        let source = PoissonSource::Density(DensitySource::of_fluid(&state.gas().fluid.values, 1.0, 1.0));
        solver.solve::<f32>(&device, &slots, &source, 0.1, &mut potential);
    });
}
