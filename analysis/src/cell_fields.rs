//! The table of cell fields: what slices, profiles, grids and tables can show, with names and units.
//!
//! Stored fields keep the names of `comove_sim::fields`; derived ones are computed here, cell by cell. Where cells are
//! averaged (uniform grids, projections) a field says how: by volume, or by mass so that the mean of a velocity is the
//! velocity of the mean.
//!
//! Each passive scalar of a run gives two: its mass fraction by its name, and its density as `<name>_density`.

use crate::cells::{LeafCell, mean_density_by};
use crate::error::AnalysisError;
use crate::part::Part;
use comove_sim::fields::{DENSITY_SUFFIX, FieldSet};
use comove_sim::kernels::layout::{DENSITY, ENERGY, ENTROPY, MOMENTUM};
use comove_sim::kernels::point::dual_energy;
use comove_sim::kernels::point::eos::Eos;
use comove_sim::parallel::Communicator;
use comove_sim::{Snapshot, SnapshotHeader};
use std::borrow::Cow;

/// How a field is averaged over cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// Σ f V / Σ V.
    Volume,
    /// Σ f ρ V / Σ ρ V, ρ being the density of the field's [`Component`].
    Mass,
}

/// The matter that a field describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Gas.
    Gas,
    /// Dark matter.
    DarkMatter,
    /// All matter.
    Matter,
}

/// A field of a snapshot.
#[derive(Clone, Debug)]
pub struct CellField {
    /// Name in recipes and file names.
    pub name: Cow<'static, str>,
    /// Symbol in plot labels.
    pub symbol: Cow<'static, str>,
    /// Unit in plot labels; empty for pure numbers.
    pub unit: &'static str,
    /// What it is.
    pub meaning: Cow<'static, str>,
    /// How it is averaged.
    pub average: Average,
    /// Whether it is positive and spans decades, so that pictures use a logarithmic scale.
    pub logarithmic: bool,
    value: Value,
}

/// Where a field's value comes from.
#[derive(Clone, Copy, Debug)]
enum Value {
    Of(fn(&Gas, &LeafCell) -> f64),
    /// The density of a scalar.
    Scalar(usize),
    /// Its mass fraction.
    Fraction(usize),
}

/// What turns a snapshot's code values into other quantities: the gas law and the factors of its epoch.
#[derive(Clone, Copy, Debug)]
pub struct Gas {
    eos: Eos<f64>,
    velocity_km_s: f64,
    temperature_k: f64,
    mean_density: f64,
}

impl Gas {
    /// The gas of a snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self::by(&Communicator::alone(), &snapshot.into())
    }

    /// The gas of a snapshot in parts, on all ranks: collective.
    pub fn by(communicator: &Communicator, part: &Part) -> Self {
        let header = part.header();
        let units = header.units();
        let eos = Eos { eta: header.eta, ..Eos::new(header.gamma) };
        Self {
            eos,
            velocity_km_s: units.velocity_km_s(header.a),
            temperature_k: units.temperature_k(header.a, header.mean_molecular_weight),
            mean_density: mean_density_by(communicator, part),
        }
    }

    /// Density over the mean density of the box, minus 1.
    pub fn overdensity(&self, cell: &LeafCell) -> f64 {
        cell.fluid[DENSITY] / self.mean_density - 1.0
    }

    /// Pressure in code units: from the entropy scalar, without it (`dual_energy: false`) from the energy.
    pub fn pressure(&self, cell: &LeafCell) -> f64 {
        dual_energy::pressure(&cell.fluid, &self.eos)
    }

    /// Temperature in K: T = μ m_H P/(k_B ρ).
    pub fn temperature_k(&self, cell: &LeafCell) -> f64 {
        self.temperature_k * self.pressure(cell) / cell.fluid[DENSITY]
    }

    /// Proper peculiar velocity along an axis in km/s.
    pub fn velocity_km_s(&self, cell: &LeafCell, axis: usize) -> f64 {
        self.velocity_km_s * cell.fluid[MOMENTUM + axis] / cell.fluid[DENSITY]
    }

    /// Proper peculiar speed in km/s.
    pub fn speed_km_s(&self, cell: &LeafCell) -> f64 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.velocity_km_s(cell, axis));
        (x * x + y * y + z * z).sqrt()
    }

    /// Proper speed of sound in km/s: c² = γ P/ρ.
    pub fn sound_speed_km_s(&self, cell: &LeafCell) -> f64 {
        self.velocity_km_s * (self.eos.gamma * self.pressure(cell) / cell.fluid[DENSITY]).sqrt()
    }

    /// The mean density of the box in code units.
    pub fn mean_density(&self) -> f64 {
        self.mean_density
    }
}

const KM_S: &str = "km/s";

/// Every field that all snapshots have.
pub static CELL_FIELDS: [CellField; 18] = [
    field("density", "ρ", "mean density", "comoving mass density of the gas", Average::Volume, true, |_, c| {
        c.fluid[DENSITY]
    }),
    field("overdensity", "δ", "", "gas density over its mean, minus 1", Average::Volume, false, Gas::overdensity),
    field("temperature", "T", "K", "gas temperature", Average::Mass, true, Gas::temperature_k),
    field("pressure", "P", "code units", "supercomoving pressure", Average::Volume, true, Gas::pressure),
    field("speed", "|v|", KM_S, "proper peculiar speed of the gas", Average::Mass, true, Gas::speed_km_s),
    field(
        "velocity_x",
        "x velocity",
        KM_S,
        "proper peculiar velocity of the gas along x",
        Average::Mass,
        false,
        |g, c| g.velocity_km_s(c, 0),
    ),
    field(
        "velocity_y",
        "y velocity",
        KM_S,
        "proper peculiar velocity of the gas along y",
        Average::Mass,
        false,
        |g, c| g.velocity_km_s(c, 1),
    ),
    field(
        "velocity_z",
        "z velocity",
        KM_S,
        "proper peculiar velocity of the gas along z",
        Average::Mass,
        false,
        |g, c| g.velocity_km_s(c, 2),
    ),
    field("sound_speed", "cₛ", KM_S, "proper speed of sound", Average::Mass, true, Gas::sound_speed_km_s),
    field("mach", "Mach number", "", "peculiar speed over speed of sound", Average::Mass, true, |g, c| {
        g.speed_km_s(c) / g.sound_speed_km_s(c)
    }),
    field(
        "momentum_x",
        "x momentum",
        "code units",
        "momentum density of the gas along x",
        Average::Volume,
        false,
        |_, c| c.fluid[MOMENTUM],
    ),
    field(
        "momentum_y",
        "y momentum",
        "code units",
        "momentum density of the gas along y",
        Average::Volume,
        false,
        |_, c| c.fluid[MOMENTUM + 1],
    ),
    field(
        "momentum_z",
        "z momentum",
        "code units",
        "momentum density of the gas along z",
        Average::Volume,
        false,
        |_, c| c.fluid[MOMENTUM + 2],
    ),
    field(
        "energy",
        "E",
        "code units",
        "total energy density of the gas, kinetic included",
        Average::Volume,
        true,
        |_, c| c.fluid[ENERGY],
    ),
    field("entropy", "S", "code units", "entropy scalar P/ρ^(γ−1)", Average::Volume, true, |_, c| c.fluid[ENTROPY]),
    field(
        "dark_matter_density",
        "ρ(dark matter)",
        "mean density",
        "comoving density of dark matter",
        Average::Volume,
        true,
        |_, c| c.dark_matter,
    ),
    field(
        "matter_density",
        "ρ(matter)",
        "mean density",
        "comoving density of gas and dark matter",
        Average::Volume,
        true,
        |_, c| c.matter_density(),
    ),
    field("potential", "φ", "(100 km/s)²", "peculiar potential a²φ", Average::Volume, false, |_, c| c.potential),
];

const fn field(
    name: &'static str,
    symbol: &'static str,
    unit: &'static str,
    meaning: &'static str,
    average: Average,
    logarithmic: bool,
    value: fn(&Gas, &LeafCell) -> f64,
) -> CellField {
    CellField {
        name: Cow::Borrowed(name),
        symbol: Cow::Borrowed(symbol),
        unit,
        meaning: Cow::Borrowed(meaning),
        average,
        logarithmic,
        value: Value::Of(value),
    }
}

impl CellField {
    /// Its value in a cell.
    pub fn value(&self, gas: &Gas, cell: &LeafCell) -> f64 {
        match self.value {
            Value::Of(value) => value(gas, cell),
            Value::Scalar(n) => cell.scalars[n],
            Value::Fraction(n) => cell.scalars[n] / cell.fluid[DENSITY],
        }
    }

    /// The matter that it describes.
    pub fn component(&self) -> Component {
        match &*self.name {
            "dark_matter_density" => Component::DarkMatter,
            "matter_density" | "potential" => Component::Matter,
            _ => Component::Gas,
        }
    }

    /// The density of its component in a cell, code units.
    pub fn density(&self, cell: &LeafCell) -> f64 {
        match self.component() {
            Component::Gas => cell.fluid[DENSITY],
            Component::DarkMatter => cell.dark_matter,
            Component::Matter => cell.matter_density(),
        }
    }

    /// The field without its particles: the gas's density, or zero.
    pub(crate) fn without_particles(&self) -> Self {
        let value = match self.component() {
            Component::DarkMatter => Value::Of(|_, _| 0.0),
            _ => Value::Of(|_, cell| cell.fluid[DENSITY]),
        };
        Self { value, ..self.clone() }
    }

    /// Whether it is a density to which particles contribute.
    pub(crate) fn is_density_of_particles(&self) -> bool {
        ["dark_matter_density", "matter_density"].contains(&&*self.name)
    }
}

/// Symbol and unit for an axis: `T [K]`.
pub(crate) fn label(symbol: &str, unit: &str) -> String {
    if unit.is_empty() { symbol.into() } else { format!("{symbol} [{unit}]") }
}

/// The symbol of a field in a snapshot: ρ and δ of gas name their species where there is dark matter too.
pub(crate) fn symbol_in(field: &CellField, header: &SnapshotHeader) -> String {
    let of_species = header.dark_matter.is_some() && ["density", "overdensity"].contains(&&*field.name);
    if of_species { format!("{}(gas)", field.symbol) } else { field.symbol.to_string() }
}

/// The mass fraction of a scalar and its density.
fn of_scalar(n: usize, name: &str) -> [CellField; 2] {
    let field = |name: String, symbol: String, unit, meaning: String, average, value| CellField {
        name: name.into(),
        symbol: symbol.into(),
        unit,
        meaning: meaning.into(),
        average,
        logarithmic: false,
        value,
    };
    let of_mass = format!("mass fraction of {name}");
    let fraction = field(name.into(), name.into(), "", of_mass, Average::Mass, Value::Fraction(n));
    let (density, symbol) = (format!("{name}{DENSITY_SUFFIX}"), format!("ρ({name})"));
    let meaning = format!("comoving density of {name}");
    [fraction, field(density, symbol, "mean density", meaning, Average::Volume, Value::Scalar(n))]
}

/// The field of that name in snapshots with these fields.
///
/// # Errors
/// [`AnalysisError::UnknownField`], listing every name; [`AnalysisError::MissingField`] of gas where there is none.
pub fn field_by_name(name: &str, fields: &FieldSet) -> Result<CellField, AnalysisError> {
    let scalars: Vec<CellField> =
        fields.scalars().iter().enumerate().flat_map(|(n, name)| of_scalar(n, name)).collect();
    let all = || CELL_FIELDS.iter().chain(&scalars);
    let known = CELL_FIELDS.iter().find(|field| field.name == name);
    if !fields.has_gas()
        && let Some(field @ CellField { name: Cow::Borrowed(name), .. }) = known
        && field.component() == Component::Gas
    {
        let reason = "it holds no gas; use dark_matter_density, matter_density or potential";
        return Err(AnalysisError::MissingField { name, reason });
    }
    all().find(|field| field.name == name).cloned().ok_or_else(|| AnalysisError::UnknownField {
        name: name.into(),
        known: all().map(|field| &*field.name).collect::<Vec<_>>().join(", "),
    })
}

/// The field of that name for labels, of a snapshot that is not at hand: what no snapshot has but by a scalar is one's.
pub(crate) fn labelled(name: &str) -> CellField {
    let scalar = || match name.strip_suffix(DENSITY_SUFFIX) {
        Some(scalar) => of_scalar(0, scalar)[1].clone(),
        None => of_scalar(0, name)[0].clone(),
    };
    CELL_FIELDS.iter().find(|field| field.name == name).cloned().unwrap_or_else(scalar)
}

/// The field of that name, if the snapshot holds what it needs.
///
/// # Errors
/// [`AnalysisError::UnknownField`]; [`AnalysisError::MissingField`] for a potential that was not solved.
pub fn field_of(snapshot: &Snapshot, name: &str) -> Result<CellField, AnalysisError> {
    field_by(&Communicator::alone(), &snapshot.into(), name)
}

/// The same of a snapshot in parts: collective.
pub fn field_by(communicator: &Communicator, part: &Part, name: &str) -> Result<CellField, AnalysisError> {
    let field = field_by_name(name, &part.header().fields)?;
    // a rank may have no cells
    if field.name == "potential" && !communicator.any(!part.snapshot.state.potential.is_empty()) {
        let reason = "it holds no potential; set gravity: true, or use an output instead of the initial condition";
        return Err(AnalysisError::MissingField { name: "potential", reason });
    }
    let has_particles = part.header().dark_matter.is_some();
    if (field.is_density_of_particles() && has_particles || field.name == "dark_matter_density")
        && !communicator.any(!part.snapshot.state.dark_matter.is_empty())
    {
        let reason = "it holds no density of dark matter; set dark_matter: true in ic_gaussian, or use an output \
                      instead of the initial condition";
        return Err(AnalysisError::MissingField { name: "dark_matter_density", reason });
    }
    Ok(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn a_misspelt_field_lists_the_names() {
        let message =
            field_by_name("temprature", &FieldSet::with_scalars(["metals"]).unwrap()).unwrap_err().to_string();
        assert!(
            message.contains("temprature")
                && message.contains("temperature")
                && message.contains("potential, metals, metals_density")
        );
    }

    /// Closed forms at a = 0.5: v = 100 km/s·2, T = μ m_H (200 km/s)² P/(k_B ρ). The entropy scalar decides, if there is one.
    #[test]
    fn derived_quantities_in_closed_form() {
        let snapshot = Fixture::uniform(2.0).build();
        let gas = Gas::new(&snapshot);
        let mut cell = crate::cells::leaf_at(&snapshot, [0.1, 0.1, 0.1]);
        cell.fluid = [4.0, 12.0, 0.0, 0.0, 18.0 + 3.0, 4f64.powf(-2.0 / 3.0)];
        let value = |name| field_by_name(name, &FieldSet::default()).unwrap().value(&gas, &cell);
        assert!((value("overdensity") - 1.0).abs() < 1e-13);
        assert!((value("velocity_x") - 600.0).abs() < 1e-12);
        assert!((value("pressure") - 1.0).abs() < 1e-14, "S ρ^(2/3)");
        let kelvin = 0.6 * 1.673_557_5e-24 * (2e7f64).powi(2) / 1.380_649e-16 / 4.0;
        assert!((value("temperature") / kelvin - 1.0).abs() < 1e-12);
        assert!((value("mach") - 600.0 / (200.0 * (5.0f64 / 3.0 / 4.0).sqrt())).abs() < 1e-12);
        let without_scalar = Gas { eos: Eos { eta: 0.0, ..gas.eos }, ..gas };
        let by_energy = field_by_name("pressure", &FieldSet::default()).unwrap().value(&without_scalar, &cell);
        assert!((by_energy - 2.0).abs() < 1e-14, "γ − 1 = 2/3 of 3");
    }
}
