//! Forces between particles in a periodic box that is refined around them, over Ewald's sums.

use comove_ic::problems::ewald::image_force;
use comove_sim::fields::FieldSet;
use comove_sim::kernels::Device;
use comove_sim::mesh::PERIODIC;
use comove_sim::{
    Coordinates, Criterion, HostParticles, HostState, Octree, RunParameters, Simulation, Snapshot, SnapshotHeader,
};
use std::f64::consts::{PI, TAU};

/// Accelerations of two particles of mass 1 at rest in a periodic unit box with a ball around its centre refined twice; G = 1.
fn accelerations(places: [[f64; 3]; 2]) -> [[f64; 3]; 2] {
    let state = HostState::without_fields(Octree::new([2; 3], PERIODIC));
    let header = SnapshotHeader { fields: FieldSet::without_gas(), ..SnapshotHeader::initial(Coordinates::Plain) };
    let mut snapshot = Snapshot { header, state };
    let mut particles = HostParticles { particle_mass: 1.0, ..HostParticles::default() };
    for (n, place) in places.iter().enumerate() {
        for axis in 0..3 {
            particles.position[axis].push(HostParticles::fraction(place[axis].rem_euclid(1.0), 1.0).unwrap());
            particles.velocity[axis].push(0.0);
        }
        particles.id.push(n as u64);
    }
    snapshot.header.dark_matter = Some(particles.header());
    snapshot.state.particles = Some(particles.in_file_order(&snapshot.state.tree));
    let parameters = RunParameters {
        coordinates: Coordinates::Plain,
        gravity: true,
        four_pi_g: 4.0 * PI,
        refine: vec![Criterion::InsideBall { center: [0.5; 3], radius: 0.1, level: 2 }],
        max_level: 2,
        ..RunParameters::default()
    };
    let mut simulation = Simulation::start(Device::cpu(2).expect("threads"), &snapshot, parameters).expect("start");
    let record = simulation.step().expect("step");
    assert_eq!(record.groups.len(), 3);
    let particles = simulation.checkpoint().expect("state").state.particles.expect("particles");
    let of = |id: u64| particles.id.iter().position(|&found| found == id).expect("there");
    [0, 1].map(|id| [0, 1, 2].map(|axis| f64::from(particles.velocity[axis][of(id)]) / record.dt))
}

/// Numbers in [0, 1), the same every time.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

/// One of them is in the ball, the other in any direction from it, on its level or a coarser one. Further away, where the force is
/// weaker than what a particle does to itself at a face of levels, pairs scatter (docs/notes/dark-matter.md).
#[test]
fn forces_are_ewalds_across_levels() {
    const FINEST: f64 = 1.0 / 128.0;
    let mut state = 1;
    for (distance, mean_within, scatter_within) in
        [(2.0, 0.1, 0.2), (4.0, 0.02, 0.06), (8.0, 0.02, 0.03), (16.0, 0.02, 0.03)]
    {
        let mut sums = [0.0; 3];
        let samples = 12;
        for _ in 0..samples {
            let z = 2.0 * random(&mut state) - 1.0;
            let (phi, across) = (TAU * random(&mut state), (1.0 - z * z).sqrt());
            let n = [across * phi.cos(), across * phi.sin(), z];
            let first = [(); 3].map(|()| 0.5 + 0.12 * (random(&mut state) - 0.5));
            let r = distance * FINEST;
            let second = [0, 1, 2].map(|axis| first[axis] + r * n[axis]);
            let images = image_force(n.map(|n| r * n));
            // on the second one; on the first it is the opposite
            let exact = [0, 1, 2].map(|axis| images[axis] - n[axis] / (r * r));
            let size = exact.iter().map(|f| f * f).sum::<f64>();
            let [a, b] = accelerations([first, second]);
            for (found, sign) in [(a, -1.0), (b, 1.0)] {
                let along = (0..3).map(|axis| sign * found[axis] * exact[axis]).sum::<f64>() / size - 1.0;
                let all = (0..3).map(|axis| (sign * found[axis] - exact[axis]).powi(2)).sum::<f64>() / size;
                sums = [sums[0] + along, sums[1] + along * along, sums[2] + all - along * along];
            }
        }
        let [mean, square, across] = sums.map(|sum| sum / f64::from(2 * samples));
        let scatter = (square - mean * mean).max(0.0).sqrt();
        println!("{distance} cells: mean {mean:+.4}, scatter {scatter:.4}, across {:.4}", across.max(0.0).sqrt());
        assert!(mean.abs() < mean_within && scatter < scatter_within, "{distance} cells: {mean} {scatter}");
    }
}
