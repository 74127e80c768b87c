//! Gas of nested meshes beside that of the coarser mesh in the same place: one universe, in one unit.

use super::causes::{explained, of_velocities};
use super::{Examination, Subject, Verdict, shown};
use crate::uniform_mesh::{NestedGas, UniformMesh};
use bytemuck::{Pod, Zeroable};
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Ratio of mean densities in one place without a remark: a mesh lacks the small waves of the finer one.
const DENSITY: f64 = 1.1;

/// The same, beyond which densities have another unit.
const GROSS_DENSITY: f64 = 1.5;

/// Density contrast over that of the coarser mesh without a remark. Meshes of MUSIC share long waves alone: 0.44 to 0.57 with cells of
/// 3 and 1.6 Mpc/h, and 0.36 one cell beside their place, so that an offset of some cells alone is found.
const CONTRAST: RangeInclusive<f64> = 0.3..=1.5;

/// Velocity over that of the coarser mesh without a remark; its waves are longer than those of the contrast.
const VELOCITY: RangeInclusive<f64> = 0.7..=1.4;

/// Contrast over that of the coarser mesh below which they are not of one realisation in its place.
const UNRELATED: f64 = 0.15;

/// Mean square contrast below which a mesh has no waves to compare.
const SMOOTH: f64 = 1e-12;

/// Compares the gas of each nested mesh with that of the next coarser one. Collective; each rank holds
/// the planes of a nested mesh that lie in its planes of the first mesh.
///
/// * `share`: mean density of the gas
/// * `rate`: ṽ over the displacement of the growing mode
pub(super) fn nested_gas(
    examination: &mut Examination,
    communicator: &Communicator,
    mesh: &UniformMesh,
    subject: &Subject<'_>,
    (share, rate): (f64, f64),
) {
    for (n, nest) in mesh.nests.iter().enumerate() {
        let coarser = |cell: [usize; 3]| match n.checked_sub(1) {
            Some(n) => (
                &mesh.nests[n].gas,
                mesh.nests[n].index(cell).expect("each nested mesh lies inside the next coarser one"),
            ),
            None => (mesh, mesh.index(cell)),
        };
        let Sums { densities: [fine, coarse], contrasts, velocities, cells } =
            Sums::of(communicator, nest, share, &coarser);
        let slope = |[product, square]: [f64; 2]| product / square;
        let which = format!("nested mesh {} over the mesh around it", n + 1);

        let (density, one) = (fine / coarse, format!("gas of nested mesh {} has", n + 1));
        let finding = examination.add(format!("mean density of gas, {which}"), shown(density), "1");
        let is_within = |ratio: f64| (1.0 / ratio..=ratio).contains(&density);
        if !is_within(DENSITY) {
            let verdict = if is_within(GROSS_DENSITY) { Verdict::Suspicious } else { Verdict::Wrong };
            let times = shown(density);
            finding.judge(
                verdict,
                format!("{one} {times} times the density of the mesh around it: write both in one unit"),
            );
        }

        if contrasts[1] > SMOOTH * cells {
            let slope = slope(contrasts);
            let finding = examination.add(format!("density contrast of gas, {which}"), shown(slope), "1");
            let text = format!("{one} {} times the density contrast of the mesh around it", shown(slope));
            if slope < UNRELATED {
                let cause = "check its first cell, and that both meshes are of one realisation";
                finding.judge(Verdict::Wrong, format!("{text}: {cause}"));
            } else if !CONTRAST.contains(&slope) {
                finding.judge(Verdict::Suspicious, text);
            }
        }

        if velocities[1] > 0.0 {
            let slope = slope(velocities);
            let finding = examination.add(format!("velocity of gas, {which}"), shown(slope), "1");
            if !VELOCITY.contains(&slope) {
                let cause = explained(slope, &of_velocities(subject, rate), 0.05);
                let cause = cause.unwrap_or_else(|| "write both in one unit".into());
                let times = shown(slope);
                finding
                    .judge(Verdict::Wrong, format!("{one} {times} times the velocity of the mesh around it: {cause}"));
            }
        }
    }
}

/// Sums over the cells of a nested mesh and the coarser cells that these are in.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Sums {
    /// Of the finer mesh, and of the coarser one.
    densities: [f64; 2],
    /// Density contrasts: of the finer mesh times that of the coarser one, and this squared.
    contrasts: [f64; 2],
    /// Velocities: of the finer mesh times that of the coarser one, and this squared.
    velocities: [f64; 2],
    /// Number of cells.
    cells: f64,
}

impl Sums {
    /// Of all ranks, with bits that do not depend on their number: planes are whole, and added in their order. Collective.
    ///
    /// * `share`: mean density of the gas
    /// * `coarser`: the coarser mesh and the offset there of one of its cells
    fn of<'m>(
        communicator: &Communicator,
        nest: &NestedGas,
        share: f64,
        coarser: &(dyn Fn([usize; 3]) -> (&'m UniformMesh, usize) + Sync),
    ) -> Self {
        let plane = nest.gas.cells[0] * nest.gas.cells[1];
        let of_cell = |index: usize| {
            let (coarse, at) = coarser(nest.cell(index).map(|i| i / 2));
            let of = |mesh: &UniformMesh, n: usize| {
                (mesh.density[n], mesh.momentum.each_ref().map(|v| v[n] / mesh.density[n]))
            };
            let ((fine, v), (coarse, u)) = (of(&nest.gas, index), of(coarse, at));
            let [delta, around] = [fine, coarse].map(|density| density / share - 1.0);
            let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
            Self {
                densities: [fine, coarse],
                contrasts: [delta * around, around * around],
                velocities: [dot(v, u), dot(u, u)],
                cells: 1.0,
            }
        };
        let of_plane = |k: usize| (k * plane..(k + 1) * plane).map(of_cell).fold(Self::default(), Self::plus);
        let own: Vec<Self> = (0..nest.gas.planes.len()).into_par_iter().map(of_plane).collect();
        let of_ranks = communicator.gather_all(bytemuck::cast_slice(&own));
        let planes = of_ranks.iter().flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, Self>(bytes));
        planes.fold(Self::default(), Self::plus)
    }

    fn plus(self, other: Self) -> Self {
        let add = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Self {
            densities: add(self.densities, other.densities),
            contrasts: add(self.contrasts, other.contrasts),
            velocities: add(self.velocities, other.velocities),
            cells: self.cells + other.cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examine;
    use crate::format::{Part, comove_ic};
    use crate::{GaussianIc, Identities, LinearPower, LoadFormat, PowerSource, Zoom, silent};
    use comove_sim::Cosmology;
    use comove_sim::parallel::on_ranks;

    fn zoom() -> GaussianIc {
        GaussianIc {
            cosmology: Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0),
            box_mpc_h: 32.0,
            cells: [16; 3],
            z: 49.0,
            seed: 3,
            noise: None,
            power: PowerSource::EisensteinHu,
            fixed_amplitude: false,
            inverted: false,
            f_nl: 0.0,
            lpt_order: 2,
            gas: true,
            dark_matter: true,
            species_transfer: None,
            zoom: Some(Zoom { center: [30.0, 5.0, 12.0], extent: [6.0, 4.0, 3.0], levels: 2, padding: 2 }),
            follow: Identities::default(),
            temperature_k: None,
            mean_molecular_weight: 1.22,
            gamma: 5.0 / 3.0,
        }
    }

    /// Changes a mesh, and returns what all ranks find on nested meshes: quantity, verdict and sentence.
    fn said(ranks: usize, change: impl Fn(&mut UniformMesh) + Sync) -> Vec<(String, Verdict, String)> {
        let ic = zoom();
        let power = LinearPower::new(&ic.power, &ic.cosmology).unwrap();
        let subject = Subject {
            cosmology: &ic.cosmology,
            power: &power,
            amplitude_is_known: true,
            a: 0.02,
            box_mpc_h: ic.box_mpc_h,
            format: LoadFormat::ComoveIc,
            temperature_k: None,
            mean_molecular_weight: ic.mean_molecular_weight,
            gamma: ic.gamma,
        };
        let mut mesh = ic.generate(&Communicator::alone(), &silent).unwrap();
        change(&mut mesh);
        let (folder, cells) = (tempfile::tempdir().unwrap(), ic.cells);
        let Cosmology { h, omega_m, omega_lambda, omega_b, .. } = ic.cosmology;
        let GaussianIc { box_mpc_h, mean_molecular_weight, gamma, .. } = ic;
        let header =
            comove_ic::Header { a: 0.02, box_mpc_h, h, omega_m, omega_lambda, omega_b, mean_molecular_weight, gamma };
        let path = folder.path().join("zoom.h5");
        comove_ic::write(&path, &Communicator::alone(), &mesh, &header).unwrap();
        let all = on_ranks(ranks, |communicator| {
            let part = Part::even(cells, communicator.rank(), communicator.size());
            let mesh = comove_ic::read(&path, cells, part, &header).unwrap();
            let findings = examine(&communicator, &mesh, &subject, false).findings;
            let nested = findings.into_iter().filter(|finding| finding.quantity.contains("nested mesh"));
            nested.map(|f| (format!("{} = {}", f.quantity, f.found), f.verdict, f.sentence)).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|said| *said == all[0]));
        all[0].clone()
    }

    #[test]
    fn nested_meshes_of_one_universe_are_good() {
        let alone = said(1, |_| {});
        assert!(alone.len() == 6 && alone.iter().all(|(_, verdict, _)| *verdict == Verdict::Good), "{alone:#?}");
        assert_eq!(said(3, |_| {}), alone);
    }

    #[test]
    fn mistakes_of_one_mesh_are_named() {
        let wrong = |change: &(dyn Fn(&mut UniformMesh) + Sync)| {
            let said = said(1, change).into_iter().filter(|(_, verdict, _)| *verdict == Verdict::Wrong);
            said.map(|(_, _, sentence)| sentence).collect::<Vec<String>>().join("; ")
        };
        let scaled = |n: usize, factor: f64, velocity: f64| {
            move |mesh: &mut UniformMesh| {
                let gas = &mut mesh.nests[n].gas;
                gas.density.iter_mut().chain(&mut gas.internal_energy).for_each(|value| *value *= factor);
                gas.momentum.iter_mut().flatten().for_each(|value| *value *= factor * velocity);
            }
        };
        let found = wrong(&scaled(1, 1.0 / 0.15, 1.0));
        assert!(found.starts_with("gas of nested mesh 2 has 6.6") && found.contains("times the density of"), "{found}");
        let found = wrong(&scaled(0, 1.0, 50.0));
        assert!(found.contains("gas of nested mesh 1 has") && found.contains("v_pec in 100 km/s"), "{found}");
        // the finest mesh, eight of its cells further along x
        let found = wrong(&|mesh| {
            let gas = &mut mesh.nests[1].gas;
            let row = gas.cells[0];
            gas.density.chunks_mut(row).for_each(|row| row.rotate_right(8));
        });
        assert!(found.contains("gas of nested mesh 2") && found.contains("check its first cell"), "{found}");
    }
}
