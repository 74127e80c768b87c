//! The linear spectrum beside massive neutrinos, whose growth depends on the wave number: two CAMB transfer tables of one run, at
//! the initial redshift and today (docs/equations.md, *Initial conditions*).

use super::species_transfer::{SpeciesRatios, SpeciesTransfer};
use super::spline::LogSpline;
use super::{LinearPower, PowerSource, Shape};
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
