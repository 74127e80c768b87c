//! The fields of a snapshot: names, units and rules, once for files, docs and plot labels.
//!
//! A [`FieldSet`] is a value: the conserved hydro fields and the dual-energy scalar, where a run has gas, and the passive
//! scalars of this one. Kernels of the gas know their six fields by number; whatever moves data takes numbers of fields
//! from here.

use crate::error::SimError;
use comove_kernels::layout::{DENSITY, ENERGY, ENTROPY, MOMENTUM};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Most passive scalars of a run.
pub const MAX_SCALARS: usize = 8;

/// The name of a density that follows from a scalar's: what is stored of `metals` is `metals_density`.
pub const DENSITY_SUFFIX: &str = "_density";

/// Where a field is stored in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the fluid array, at this index.
    Fluid(usize),
    /// In the array of passive scalars, at this index.
    Scalar(usize),
    /// In an array of its own.
    DarkMatter,
    /// In an array of its own.
    Potential,
}

/// The sign of a field in a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parity {
    /// The same in every mirror.
    Even,
    /// The other one in a mirror across this axis.
    Odd(usize),
}

/// What a patch that has children holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restriction {
    /// The mean of the eight finer cells.
    Mean,
    /// A solution of its own.
    Solved,
}

/// How new and ghost cells come from the coarser level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// Limited central slopes of the value, with the coarse cell as mean.
    Limited,
    /// Min-Mod limited slopes of the value over the density, with the coarse cell as mean.
    LimitedFraction,
    /// Follows from the fields beside it: of the energy, from the entropy scalar.
    Derived,
    /// A solution of its own.
    Solved,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Name in recipes, tables and plots.
    pub name: Cow<'static, str>,
    /// Dataset below `/GridData` in a snapshot.
    pub dataset: Cow<'static, str>,
    /// Where it is in memory.
    #[serde(skip)]
    pub storage: Storage,
    /// Code unit, as a plot label shows it.
    pub unit: Cow<'static, str>,
    /// Exponent of a in the factor from the code value to the proper one.
    pub a_exponent: f64,
    /// Exponent of h in the same factor; that of gas with γ = 5/3.
    pub h_exponent: f64,
    /// Under reflection.
    pub parity: Parity,
    /// To the coarser level.
    pub restriction: Restriction,
    /// From the coarser level.
    pub interpolation: Interpolation,
    /// What it is.
    pub meaning: Cow<'static, str>,
}

/// A conserved field of the gas: proper values are those in code units · a^`exponents[0]` h^`exponents[1]`.
const fn fluid(
    name: &'static str,
    dataset: &'static str,
    index: usize,
    unit: &'static str,
    [a_exponent, h_exponent]: [f64; 2],
    parity: Parity,
    meaning: &'static str,
) -> Field {
    Field {
        name: Cow::Borrowed(name),
        dataset: Cow::Borrowed(dataset),
        storage: Storage::Fluid(index),
        unit: Cow::Borrowed(unit),
        a_exponent,
        h_exponent,
        parity,
        restriction: Restriction::Mean,
        interpolation: if index == ENERGY { Interpolation::Derived } else { Interpolation::Limited },
        meaning: Cow::Borrowed(meaning),
    }
}

const MOMENTUM_UNIT: &str = "mean density · 100 km/s";

/// The fields of the gas, in file order: ρ ∝ a⁻³h², v ∝ a⁻¹, P ∝ a⁻⁵h².
const FLUID: [Field; 6] = [
    fluid("density", "Dens", DENSITY, "mean density", [-3.0, 2.0], Parity::Even, "comoving mass density"),
    fluid(
        "momentum_x",
        "MomX",
        MOMENTUM,
        MOMENTUM_UNIT,
        [-4.0, 2.0],
        Parity::Odd(0),
        "momentum density along x, ρ̃ a v_pec",
    ),
    fluid(
        "momentum_y",
        "MomY",
        MOMENTUM + 1,
        MOMENTUM_UNIT,
        [-4.0, 2.0],
        Parity::Odd(1),
        "momentum density along y, ρ̃ a v_pec",
    ),
    fluid(
        "momentum_z",
        "MomZ",
        MOMENTUM + 2,
        MOMENTUM_UNIT,
        [-4.0, 2.0],
        Parity::Odd(2),
        "momentum density along z, ρ̃ a v_pec",
    ),
    fluid(
        "energy",
        "Engy",
        ENERGY,
        "mean density · (100 km/s)²",
        [-5.0, 2.0],
        Parity::Even,
        "total energy density, kinetic included",
    ),
    fluid("entropy", "Entropy", ENTROPY, "code", [-3.0, 2.0 / 3.0], Parity::Even, "entropy scalar S = P/ρ^(γ−1)"),
];

const POTENTIAL: Field = Field {
    name: Cow::Borrowed("potential"),
    dataset: Cow::Borrowed("Pote"),
    storage: Storage::Potential,
    unit: Cow::Borrowed("(100 km/s)²"),
    a_exponent: -2.0,
    h_exponent: 0.0,
    parity: Parity::Even,
    restriction: Restriction::Solved,
    interpolation: Interpolation::Solved,
    meaning: Cow::Borrowed("peculiar potential a²φ"),
};

/// The density of dark matter, as the run's cells have it (cloud in cell); `ParDens` is GAMER's name.
const DARK_MATTER: Field = Field {
    name: Cow::Borrowed("dark_matter_density"),
    dataset: Cow::Borrowed("ParDens"),
    storage: Storage::DarkMatter,
    unit: Cow::Borrowed("mean density"),
    a_exponent: -3.0,
    h_exponent: 2.0,
    parity: Parity::Even,
    restriction: Restriction::Solved,
    interpolation: Interpolation::Solved,
    meaning: Cow::Borrowed("comoving mass density of dark matter"),
};

/// Names that a scalar cannot have: they mean something else in files or to yt.
const TAKEN: [&str; 9] = ["ParDens", "Dens", "MomX", "MomY", "MomZ", "Engy", "Entropy", "Pote", "Pres"];

/// The fields of a run or a snapshot. With gas that has no scalars it is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    has_no_gas: bool,
    scalars: Vec<String>,
}

impl FieldSet {
    /// The fields where there is no gas.
    pub fn without_gas() -> Self {
        Self { has_no_gas: true, scalars: Vec::new() }
    }

    /// Whether there is gas.
    pub fn has_gas(&self) -> bool {
        !self.has_no_gas
    }

    /// The fields of the gas, and passive scalars of these names.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for too many, a name twice, or one that no scalar can have.
    pub fn with_scalars<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Self, SimError> {
        let refuse = |value: &str, reason: String| {
            Err(SimError::Parameter { name: "scalars", value: format!("{value:?}"), reason })
        };
        let mut scalars: Vec<String> = Vec::new();
        for name in names {
            let name = name.as_ref();
            let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
            let is_word = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !starts || !is_word || name.len() > 32 {
                let what = "must be a name of up to 32 characters a–z, 0–9 and _ that begins with a letter";
                return refuse(name, what.into());
            }
            if name.ends_with(DENSITY_SUFFIX) {
                return refuse(name, format!("must not end in {DENSITY_SUFFIX}, the ending of densities of scalars"));
            }
            if ["matter", "dark_matter"].contains(&name) {
                return refuse(name, "is the name of a field of dark matter; choose another".into());
            }
            let known = FLUID.iter().chain([&DARK_MATTER, &POTENTIAL]).any(|field| field.name == name);
            if known || TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
                return refuse(name, "is the name of a field of the gas; choose another".into());
            }
            if scalars.iter().any(|other| other == name) {
                return refuse(name, "occurs twice; remove one".into());
            }
            scalars.push(name.into());
        }
        if scalars.len() > MAX_SCALARS {
            return refuse(&scalars.join(", "), format!("a run has at most {MAX_SCALARS} scalars"));
        }
        Ok(Self { has_no_gas: false, scalars })
    }

    /// Whether there is gas without scalars.
    pub fn is_hydro_alone(&self) -> bool {
        self.has_gas() && self.scalars.is_empty()
    }

    /// The names of the passive scalars, in the order of their array.
    pub fn scalars(&self) -> &[String] {
        &self.scalars
    }

    /// The place of a scalar in their array.
    pub fn scalar(&self, name: &str) -> Option<usize> {
        self.scalars.iter().position(|scalar| scalar == name)
    }

    /// The fields of the fluid array.
    pub fn fluid(&self) -> impl Iterator<Item = Field> + use<> {
        FLUID.into_iter().take(if self.has_gas() { FLUID.len() } else { 0 })
    }

    /// Every field in file order, dark matter and the potential last.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<'_> {
        let scalar = |(index, name): (usize, &String)| Field {
            name: format!("{name}{DENSITY_SUFFIX}").into(),
            dataset: name.clone().into(),
            storage: Storage::Scalar(index),
            meaning: format!("comoving density of {name}").into(),
            interpolation: Interpolation::LimitedFraction,
            ..FLUID[DENSITY].clone()
        };
        self.fluid().chain(self.scalars.iter().enumerate().map(scalar)).chain([DARK_MATTER, POTENTIAL])
    }

    /// The same, without dark matter and the potential where there is none.
    pub fn stored(&self, dark_matter: bool, potential: bool) -> impl Iterator<Item = Field> + use<'_> {
        self.fields().filter(move |field| match field.storage {
            Storage::DarkMatter => dark_matter,
            Storage::Potential => potential,
            Storage::Fluid(_) | Storage::Scalar(_) => true,
        })
    }
}

/// In a header: every field with its rules, for readers that know other sets.
impl Serialize for FieldSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // dark matter has an entry of its own in a header
        serializer.collect_seq(self.fields().filter(|field| field.storage != Storage::DarkMatter))
    }
}

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Described {
            dataset: String,
        }
        let datasets: Vec<Described> = Vec::deserialize(deserializer)?;
        if !datasets.iter().any(|field| field.dataset == FLUID[DENSITY].dataset) {
            return Ok(Self::without_gas());
        }
        let others = |field: &Described| {
            !FLUID.iter().chain([&DARK_MATTER, &POTENTIAL]).any(|known| known.dataset == field.dataset)
        };
        let scalars = datasets.into_iter().filter(others).map(|field| field.dataset);
        Self::with_scalars(scalars).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header's list comes back, and the storage of each field with it.
    #[test]
    fn a_set_comes_back_from_its_header() {
        let set = FieldSet::with_scalars(["metals", "dye"]).unwrap();
        let json = serde_json::to_value(&set).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 9);
        assert_eq!(json[6]["dataset"], "metals");
        assert_eq!(json[6]["interpolation"], "limited_fraction");
        assert_eq!(json[2]["parity"]["odd"], 1);
        let back: FieldSet = serde_json::from_value(json).unwrap();
        assert_eq!(back, set);
        let storage: Vec<Storage> = back.stored(false, false).map(|field| field.storage).skip(5).collect();
        assert_eq!(storage, [Storage::Fluid(5), Storage::Scalar(0), Storage::Scalar(1)]);
        assert!(FieldSet::default().is_hydro_alone() && FieldSet::default().fields().count() == 8);
        let without: FieldSet = serde_json::from_value(serde_json::to_value(FieldSet::without_gas()).unwrap()).unwrap();
        let fields: Vec<Field> = without.stored(true, true).collect();
        assert_eq!((without.has_gas(), fields), (false, vec![DARK_MATTER, POTENTIAL]));
    }

    #[test]
    fn names_that_no_scalar_can_have_are_refused() {
        for (names, says) in [
            (&["Metals"][..], "begins with a letter"),
            (&["2nd"], "begins with a letter"),
            (&["a b"], "a–z"),
            (&["density"], "a field of the gas"),
            (&["pres"], "a field of the gas"),
            (&["matter"], "a field of dark matter"),
            (&["metals_density"], "must not end in"),
            (&["dye", "dye"], "twice"),
            (&["a", "b", "c", "d", "e", "f", "g", "h", "i"], "at most 8"),
        ] {
            let error = FieldSet::with_scalars(names).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("scalars"), "{error}");
        }
    }
}
