//! Units of a file: lengths, masses and velocities; the factors that explain a wrong one.

use super::header::{GROUPS, MPC_CM, SWIFT_LENGTH};
use super::input::{HEADER, Input};
use crate::error::IcError;
use crate::format::hdf5_input::SAME;
use crate::format::request::{LengthUnit, LoadFormat, LoadIc};
use comove_sim::{Units, VELOCITY_KM_S};

pub(super) const MSUN_G: f64 = 1.988_409_87e33;

/// Relative difference of mean densities that is accepted: constants of nature differ by less between programs.
const SAME_DENSITY: f64 = 2e-3;

/// Units of a file.
pub(super) struct FileUnits {
    /// `BoxSize`, in the unit of lengths.
    pub box_size: f64,
    /// Unit of lengths in Mpc/h.
    length_mpc_h: f64,
    pub length_name: String,
    /// The file states its unit of lengths.
    is_stated: bool,
    /// Unit of masses in M☉/h.
    mass_msun_h: f64,
    /// Code velocity of a velocity of 1.
    pub velocity: f64,
}

impl FileUnits {
    pub(super) fn read(input: &Input, ic: &LoadIc, format: LoadFormat) -> Result<Self, IcError> {
        let (h, a) = (ic.cosmology.h, 1.0 / (1.0 + ic.z));
        let one = |name: &str| Ok::<_, IcError>(input.numbers(&GROUPS, name)?.map(|(_, values)| values[0]));
        let box_size = box_size(input)?;
        if format == LoadFormat::Swift {
            let unit = |name: &str| {
                let missing =
                    || input.content(format!("attribute \"{name}\" of /Units is missing: expected a unit in cgs"));
                one(name)?.ok_or_else(missing)
            };
            let (length, mass) = (unit(SWIFT_LENGTH)?, unit("Unit mass in cgs (U_M)")?);
            let km_s = length / unit("Unit time in cgs (U_t)")? / 1e5;
            return Ok(Self {
                box_size,
                length_mpc_h: length / MPC_CM * h,
                is_stated: true,
                length_name: format!("units of {length:e} cm"),
                mass_msun_h: mass / MSUN_G * h,
                velocity: km_s * a / VELOCITY_KM_S,
            });
        }
        let stated = one("UnitLength_in_cm")?.map(|cm| cm / MPC_CM);
        let asked = ic.length_unit.map(LengthUnit::mpc_h);
        if let (Some(stated), Some(unit)) = (stated, ic.length_unit)
            && (stated / unit.mpc_h() - 1.0).abs() > 1e-3
        {
            return Err(input.content(format!(
                "attribute \"UnitLength_in_cm\" is {:e}, the recipe says length_unit: \"{}\": remove that option",
                stated * MPC_CM,
                unit.name()
            )));
        }
        let length_mpc_h = asked.or(stated).unwrap_or(1.0);
        // printed digits of the centimetres
        let nearest = LengthUnit::ALL.into_iter().find(|unit| (length_mpc_h / unit.mpc_h() - 1.0).abs() < 1e-4);
        Ok(Self {
            box_size,
            is_stated: stated.is_some(),
            length_mpc_h: nearest.map_or(length_mpc_h, LengthUnit::mpc_h),
            length_name: nearest
                .map_or_else(|| format!("units of {length_mpc_h:e} Mpc/h"), |unit| unit.written().into()),
            mass_msun_h: one("UnitMass_in_g")?.map_or(1e10, |g| g / MSUN_G),
            velocity: one("UnitVelocity_in_cm_per_s")?.unwrap_or(1e5) / 1e5 * a.sqrt() * a / VELOCITY_KM_S,
        })
    }

    /// Compares the length of the box with the recipe's.
    pub(super) fn check_box(&self, input: &Input, ic: &LoadIc) -> Result<(), IcError> {
        let (h, a) = (ic.cosmology.h, 1.0 / (1.0 + ic.z));
        let (found, expected) = (box_size(input)?, ic.box_mpc_h);
        if ic.cells.iter().any(|n| *n != ic.cells[0]) {
            let reason = format!(
                "the box is cubic, the recipe says root = {:?}: expected one number of cells along all axes",
                ic.cells
            );
            return Err(input.content(reason));
        }
        let ratio = found * self.length_mpc_h / expected;
        if (ratio - 1.0).abs() <= SAME {
            return Ok(());
        }
        let unit_is = |why| if self.is_stated { "correct the unit of length in the file" } else { why };
        let causes = [
            (1e3, unit_is("lengths look like kpc/h, set length_unit: \"kpc_h\"")),
            (1e-3, unit_is("lengths look like Mpc/h, set length_unit: \"mpc_h\"")),
            (1.0 / h, "lengths look like Mpc without h, multiply them by h"),
            (1e3 / h, "lengths look like kpc without h, multiply them by h and set length_unit: \"kpc_h\""),
            (h, "lengths look multiplied by h twice"),
            (a, "lengths look proper, divide them by a"),
        ];
        let why = cause(ratio, &causes, 1e-4).unwrap_or("change box_mpc_h or the file");
        let unit = &self.length_name;
        Err(input.content(format!(
            "{} is {found} {unit}, the recipe says box_mpc_h = {expected}: {} times, {why}",
            input.statement(HEADER, "BoxSize"),
            shown(ratio)
        )))
    }

    /// Compares the mass of all particles with that of all matter.
    ///
    /// * `mass`: mean mass of a particle
    /// * `of`: the statement or array that has it
    pub(super) fn check_density(
        &self,
        input: &Input,
        ic: &LoadIc,
        (mass, of): (f64, &str),
        total: u64,
    ) -> Result<(), IcError> {
        let (cosmology, h) = (&ic.cosmology, ic.cosmology.h);
        let all = Units::new(Some(*cosmology)).mass_msun_h() * ic.box_mpc_h.powi(3);
        let expected = all / total as f64 / self.mass_msun_h;
        let ratio = mass / expected;
        if (ratio - 1.0).abs() <= SAME_DENSITY {
            return Ok(());
        }
        let causes = [
            (1e10, "masses look like M☉/h in place of 10¹⁰ M☉/h"),
            (1e-10, "masses look divided by 10¹⁰ twice"),
            (1e10 / h, "masses look like M☉ in place of 10¹⁰ M☉/h"),
            (1.0 / h, "masses look like 10¹⁰ M☉ without h, multiply them by h"),
            (h, "masses look multiplied by h twice"),
            (1e-9, "masses look like those of lengths in kpc/h"),
            (1e9, "masses look like those of lengths in Mpc/h"),
            (1.0 - cosmology.baryon_fraction(), "particles have omega_m - omega_b, give them all of omega_m"),
            (
                cosmology.omega_m / cosmology.omega_cb(),
                "masses include neutrinos, which are smooth here: leave theirs out",
            ),
        ];
        let why = cause(ratio, &causes, SAME_DENSITY).unwrap_or("check the number of particles and the unit of mass");
        let name = if cosmology.has_neutrinos() { "omega_cb" } else { "omega_m" };
        Err(input.content(format!(
            "{of} is {mass:.6e}, expected {expected:.6e} for {total} particles with the mean density of {name} = {}: {} times, \
             {why}",
            cosmology.omega_cb(),
            shown(ratio)
        )))
    }
}

/// The one length of a box.
fn box_size(input: &Input) -> Result<f64, IcError> {
    let found = input.numbers(&GROUPS, "BoxSize")?.map(|(_, values)| values);
    let statement = input.statement(HEADER, "BoxSize");
    let lengths =
        found.ok_or_else(|| input.content(format!("{statement} is missing: expected the length of the box")))?;
    match lengths[..] {
        [first, ..] if first > 0.0 && lengths.iter().all(|length| *length == first) => Ok(first),
        _ => Err(input.content(format!("{statement} is {lengths:?}: expected one positive length of a cubic box"))),
    }
}

/// A ratio in six digits.
fn shown(ratio: f64) -> String {
    if (1e-4..1e5).contains(&ratio) { format!("{ratio:.6}") } else { format!("{ratio:.5e}") }
}

/// The text of the factor that a ratio is.
fn cause<'c>(ratio: f64, causes: &[(f64, &'c str)], tolerance: f64) -> Option<&'c str> {
    causes.iter().find(|(factor, _)| (ratio / factor - 1.0).abs() <= tolerance).map(|(_, why)| *why)
}
