//! The linear spectrum beside massive neutrinos, whose growth depends on the wave number: two CAMB transfer tables of one run, at
//! the initial redshift and today (docs/equations.md, *Initial conditions*).

use super::species_transfer::{SpeciesRatios, SpeciesTransfer};
use super::spline::LogSpline;
use super::{LinearPower, PowerSource};
use crate::error::IcError;
use comove_sim::Cosmology;

/// Difference between the growth of the tables at 1 h/Mpc and that of the run: the late fall of the baryons and radiation that
/// the recipe leaves out make 0.03 from z = 99.
const GROWTH: f64 = 0.1;

/// Wave number in h/Mpc at which the growth of the tables is compared, well inside the free streaming of neutrinos.
const COMPARED: f64 = 1.0;

impl LinearPower {
    /// The spectrum of the matter in the box, which its growth factor scales back to the start: without massive neutrinos that
    /// of [`LinearPower::new`]. With them it is P_cb(k, z) D²(1)/D²(z), P_cb(k, z) = P_m(k, 0) (T_cb(k, z)/T_m(k, 0))², where
    /// P_m(k, 0) has the cosmology's σ8.
    ///
    /// # Errors
    /// Those of [`LinearPower::new`], [`SpeciesRatios::new`] and [`check_tables`]; [`IcError::Content`] for tables of two runs or of
    /// another redshift.
    pub fn of_box(
        source: &PowerSource,
        species: Option<&SpeciesTransfer>,
        cosmology: &Cosmology,
        z: f64,
    ) -> Result<Self, IcError> {
        check_tables(source, species, cosmology)?;
        let today = Self::new(source, cosmology)?;
        let Some(species) = species.filter(|_| cosmology.has_neutrinos()) else { return Ok(today) };
        let ratios = SpeciesRatios::new(species, cosmology, z)?;
        let growth = cosmology.growth_factor(1.0 / (1.0 + z));
        check_growth(&today, &ratios, cosmology, growth).map_err(|reason| {
            let reason = format!("{reason}; make both tables by one run of CAMB, at z = {z} and 0");
            IcError::Content { path: species.file().into(), reason }
        })?;
        let power = |&(k, transfer): &(f64, f64)| (k, k.powf(cosmology.n_s) * (transfer / growth).powi(2));
        let points: Vec<(f64, f64)> = ratios.transfer().iter().map(power).collect();
        let LinearPower { amplitude, remarks, .. } = today;
        Ok(Self { amplitude, remarks, ..Self::of_table(LogSpline::new(&points), cosmology.n_s) })
    }

    /// T(k) of a table of Δ/k², in its unit.
    fn transfer(&self, k: f64, n_s: f64) -> f64 {
        (self.shape.at(k) / k.powf(n_s)).sqrt()
    }
}

/// Compares the growth of the tables at one wave number with that of the run.
fn check_growth(today: &LinearPower, ratios: &SpeciesRatios, cosmology: &Cosmology, growth: f64) -> Result<(), String> {
    let distance = |k: f64| (k / COMPARED).ln().abs();
    let nearest = ratios.transfer().iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    let (k, transfer) = *nearest.expect("a table has rows");
    // neutrinos do not cluster there
    let all = today.transfer(k, cosmology.n_s) / (1.0 - cosmology.neutrino_fraction(1.0));
    let found = transfer / all;
    if (found / growth - 1.0).abs() <= GROWTH {
        return Ok(());
    }
    Err(format!(
        "cold dark matter and baryons have {found:.4e} of their contrast today at k = {k:.3} h/Mpc, and the recipe's cosmology \
         gives {growth:.4e}"
    ))
}

/// Checks that a model with massive neutrinos has the two tables of CAMB; others need none.
///
/// # Errors
/// [`IcError::Parameter`] naming the option that is missing or of another kind.
pub fn check_tables(
    source: &PowerSource,
    species: Option<&SpeciesTransfer>,
    cosmology: &Cosmology,
) -> Result<(), IcError> {
    let refuse = |name, value: &str, remedy: &str| {
        let reason = format!("m_nu_ev = {} needs {remedy}", cosmology.m_nu_ev);
        Err(IcError::Parameter { name, value: value.into(), reason })
    };
    match (source, species) {
        _ if !cosmology.has_neutrinos() => Ok(()),
        (PowerSource::CambTransfer(_), Some(SpeciesTransfer::Camb(_))) => Ok(()),
        (PowerSource::CambTransfer(_), other) => refuse(
            "species_transfer",
            other.map_or("()", SpeciesTransfer::name),
            "the CAMB table at the initial redshift of the run that made that of power; set species_transfer: #{ camb: … }",
        ),
        (other, _) => {
            let remedy =
                "a CAMB transfer table at z = 0, whose column 7 is all matter; set power: #{ camb_transfer: … }";
            refuse("power", other.name(), remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_power::species_transfer::Species;
    use crate::restrict::take_dark_matter;
    use crate::uniform_mesh::UniformMesh;
    use crate::{GaussianIc, silent};
    use comove_sim::Units;
    use comove_sim::parallel::Communicator;
    use std::f64::consts::TAU;
    use std::path::{Path, PathBuf};

    const Z: f64 = 49.0;

    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
    }

    fn today() -> PowerSource {
        PowerSource::CambTransfer(data("camb_neutrinos_transfer_z0.dat"))
    }

    fn at_start() -> SpeciesTransfer {
        SpeciesTransfer::Camb(data("camb_neutrinos_transfer_z49.dat"))
    }

    /// The cosmology of the tables.
    fn cosmology() -> Cosmology {
        let omega_r = 5.046_888_424e-5;
        let flat = Cosmology::flat(0.7, 0.3, 0.045, 0.778764, 0.96);
        Cosmology { omega_r, omega_lambda: 0.7 - omega_r, m_nu_ev: 0.3, ..flat }
    }

    fn ic() -> GaussianIc {
        GaussianIc {
            cosmology: cosmology(),
            box_mpc_h: 25.0,
            cells: [16; 3],
            z: Z,
            seed: 5,
            noise: None,
            power: today(),
            fixed_amplitude: true,
            inverted: false,
            f_nl: 0.0,
            lpt_order: 2,
            gas: true,
            dark_matter: true,
            species_transfer: Some(at_start()),
            zoom: None,
            follow: crate::Identities::default(),
            temperature_k: None,
            mean_molecular_weight: 1.22,
            gamma: 5.0 / 3.0,
        }
    }

    /// Against CAMB 2.0.5 (parameters in the tables' headers, A_s = 2.1·10⁻⁹): `get_linear_matter_power_spectrum` of delta_nonu at
    /// z = 49. Scaled back with one factor from today, the spectrum of all matter misses it by the growth of each scale.
    #[test]
    fn the_spectrum_at_the_start_is_that_of_camb() {
        let cosmology = cosmology();
        let power = LinearPower::of_box(&today(), Some(&at_start()), &cosmology, Z).unwrap();
        let all = LinearPower::new(&today(), &cosmology).unwrap();
        let back = cosmology.growth_factor(0.02).powi(2);
        for (k, expected) in [
            (0.003, 7.336711),
            (0.02, 17.33574),
            (0.0512, 8.658707),
            (0.113, 3.312189),
            (0.31, 0.5810764),
            (1.3, 0.02506283),
            (7.7, 2.962466e-4),
        ] {
            let [found, one_factor] = [power.at(k) * back, all.at(k) * back].map(|p| p / expected);
            println!("k = {k}: {found:.5}, by one factor {one_factor:.5}");
            assert!((found - 1.0).abs() < 2e-3, "k = {k}: {found}");
        }
        let by_one_factor = |k: f64| all.at(k) / power.at(k);
        assert!(by_one_factor(0.003) / by_one_factor(1.3) > 1.08, "growth depends on the scale");
        assert!(power.remarks().is_empty(), "{:?}", power.remarks());
    }

    /// Growth rates of the tables' velocities against the logarithmic derivative of CAMB's delta_nonu between z = 50 and 48.
    #[test]
    fn velocities_grow_by_scale() {
        let ratios = SpeciesRatios::new(&at_start(), &cosmology(), Z).unwrap();
        let of_run = cosmology().growth(0.02).1;
        let rates = [
            (0.02, 0.982974),
            (0.0512, 0.980923),
            (0.113, 0.980518),
            (0.31, 0.980407),
            (1.3, 0.980377),
            (7.7, 0.98036),
        ];
        for (k, expected) in rates {
            let found = of_run * ratios.velocity(Species::Both, k);
            println!("k = {k}: f = {found:.5}, CAMB {expected:.5}, run {of_run:.5}");
            assert!((found / expected - 1.0).abs() < 2e-3, "k = {k}: {found} {expected}");
        }
    }

    /// The first mode of a field, but for its phase.
    fn size(mesh: &UniformMesh, values: &dyn Fn(usize) -> f64) -> f64 {
        let [re, im] = (0..mesh.cell_count()).fold([0.0; 2], |[re, im], index| {
            let (sin, cos) = (TAU * mesh.cell(index)[0] as f64 / mesh.cells[0] as f64).sin_cos();
            [re + values(index) * cos, im - values(index) * sin]
        });
        re.hypot(im)
    }

    /// A mode has the amplitude of P_cb, and the velocity of its growth rate; gas and dark matter together have that of one fluid.
    /// The lattices of gas, dark matter and both are of one universe.
    #[test]
    fn species_move_as_their_tables() {
        // the mode of the box is a row of the table
        let ratios = SpeciesRatios::new(&at_start(), &cosmology(), Z).unwrap();
        let k = ratios.transfer().iter().map(|(k, _)| *k).find(|k| *k > 0.05).unwrap();
        let small = Cosmology { sigma8: 1e-4, ..cosmology() };
        let both = GaussianIc { cosmology: small, box_mpc_h: TAU / k, ..ic() };
        let make = |ic: &GaussianIc| ic.generate(&Communicator::alone(), &silent).unwrap();
        let (two, alone) = (make(&both), make(&GaussianIc { gas: false, ..both.clone() }));
        let gas_alone = make(&GaussianIc { dark_matter: false, ..both.clone() });
        let power = both.linear_power().unwrap().at(k) * small.growth_factor(0.02).powi(2);
        let density = |mesh: &UniformMesh| size(mesh, &|i| mesh.density[i]);
        let wind = |mesh: &UniformMesh| size(mesh, &|i| mesh.momentum[0][i] / mesh.density[i]);
        let displacement = |mesh: &UniformMesh| size(mesh, &|i| mesh.lattice().unwrap().displacement[0][i]);
        let stream = |mesh: &UniformMesh| size(mesh, &|i| mesh.lattice().unwrap().velocity[0][i]);
        let close = |found: f64, expected: f64, what: &str| {
            assert!((found / expected - 1.0).abs() < 1e-4, "{what}: {found} {expected}");
        };
        // |Σ δ e^(−ikx)| = N √(P/V)
        let cells = gas_alone.cell_count() as f64;
        close(density(&gas_alone) / cells, (power / (TAU / k).powi(3)).sqrt(), "δ");
        close(displacement(&alone) * k, density(&gas_alone), "δ of displacements");
        let rate = small.hubble_flow(0.02) * small.growth(0.02).1 * ratios.velocity(Species::Both, k);
        close(wind(&gas_alone) * k, rate * density(&gas_alone), "velocity of gas alone");
        close(stream(&alone) * k, rate * density(&gas_alone), "velocity of dark matter alone");
        let share = small.baryon_fraction();
        close(density(&two) + (1.0 - share) * displacement(&two) * k, density(&gas_alone), "δ of both");
        close(share * wind(&two) + (1.0 - share) * stream(&two), stream(&alone), "velocity of both");
        assert!(density(&two) / share < 0.99 * displacement(&two) * k, "gas is less clustered");
    }

    /// Gas and particles have the mass of Ω_cb ρ_c, 2.775·10¹¹ M☉/h (h/Mpc)³ for Ω = 1.
    #[test]
    fn the_box_holds_cold_dark_matter_and_baryons() {
        let alone = Communicator::alone();
        let mut mesh = ic().generate(&alone, &silent).unwrap();
        let cosmology = cosmology();
        let dark = take_dark_matter(&alone, &mut mesh, true, 25.0 / 16.0, Some(&cosmology)).unwrap().unwrap();
        let msun_h = Units::new(Some(cosmology)).mass_msun_h();
        let critical = 2.775366e11 * 25f64.powi(3);
        let particles = dark.particle_mass * 4096.0 * msun_h / critical;
        let gas = mesh.density.iter().sum::<f64>() * (25f64 / 16.0).powi(3) * msun_h / critical;
        assert!((gas / 0.045 - 1.0).abs() < 1e-4, "{gas}");
        assert!((particles / (0.255 - cosmology.omega_nu()) - 1.0).abs() < 1e-4, "{particles}");
    }

    #[test]
    fn unusable_tables_say_why() {
        let says = |found: String, parts: &[&str]| {
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        };
        let check = |ic: GaussianIc| ic.check().unwrap_err().to_string();
        says(check(GaussianIc { species_transfer: None, ..ic() }), &["species_transfer", "m_nu_ev = 0.3", "#{ camb:"]);
        let fit = GaussianIc { power: PowerSource::EisensteinHu, ..ic() };
        says(check(fit), &["power = eisenstein_hu", "m_nu_ev = 0.3", "camb_transfer"]);
        let class = SpeciesTransfer::Class("tk.dat".into());
        says(check(GaussianIc { species_transfer: Some(class), ..ic() }), &["species_transfer = class", "#{ camb:"]);
        says(check(GaussianIc { f_nl: 10.0, ..ic() }), &["f_nl = 10", "m_nu_ev"]);
        let without = Cosmology { m_nu_ev: 0.0, ..cosmology() };
        says(check(GaussianIc { cosmology: without, gas: false, ..ic() }), &["species_transfer", "remove"]);

        let of_box = |power: PowerSource, species: SpeciesTransfer, cosmology: &Cosmology, z: f64| {
            LinearPower::of_box(&power, Some(&species), cosmology, z).unwrap_err().to_string()
        };
        let lighter = Cosmology { m_nu_ev: 0.15, ..cosmology() };
        says(of_box(today(), at_start(), &lighter, Z), &["m_nu_ev = 0.15", "line ", "recipe's cosmology"]);
        says(of_box(today(), at_start(), &cosmology(), 39.0), &["z = 49", "z = 39"]);
        let start_as_today = PowerSource::CambTransfer(data("camb_neutrinos_transfer_z49.dat"));
        says(
            of_box(start_as_today, at_start(), &cosmology(), Z),
            &["contrast today", "one run of CAMB, at z = 49 and 0"],
        );
        let massless = SpeciesTransfer::Camb(data("camb_transfer_z99.dat"));
        says(of_box(today(), massless, &cosmology(), 99.0), &["of all matter", "m_nu_ev = 0.3 gives 0.025"]);
        let fit = LinearPower::new(&PowerSource::EisensteinHu, &cosmology()).unwrap_err().to_string();
        says(fit, &["no massive neutrinos", "m_nu_ev is 0.3", "CAMB"]);
    }
}
