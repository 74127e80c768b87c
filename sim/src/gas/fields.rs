//! The table of fields: names, units and meaning, once for snapshots, docs and plot labels.

use comove_kernels::layout::{DENSITY, ENERGY, ENTROPY, MOMENTUM};

/// A field of the state.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in recipes, tables and plots.
    pub name: &'static str,
    /// Dataset below `/GridData` in a snapshot.
    pub dataset: &'static str,
    /// Index in the fluid array; `None` for the potential.
    pub index: Option<usize>,
    /// Code unit, as a plot label shows it.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

/// Every stored field, in file order.
pub const FIELDS: [Field; 7] = [
    Field {
        name: "density",
        dataset: "Dens",
        index: Some(DENSITY),
        unit: "mean density",
        meaning: "comoving mass density",
    },
    Field {
        name: "momentum_x",
        dataset: "MomX",
        index: Some(MOMENTUM),
        unit: "mean density · 100 km/s",
        meaning: "momentum density along x, ρ̃ a v_pec",
    },
    Field {
        name: "momentum_y",
        dataset: "MomY",
        index: Some(MOMENTUM + 1),
        unit: "mean density · 100 km/s",
        meaning: "momentum density along y, ρ̃ a v_pec",
    },
    Field {
        name: "momentum_z",
        dataset: "MomZ",
        index: Some(MOMENTUM + 2),
        unit: "mean density · 100 km/s",
        meaning: "momentum density along z, ρ̃ a v_pec",
    },
    Field {
        name: "energy",
        dataset: "Engy",
        index: Some(ENERGY),
        unit: "mean density · (100 km/s)²",
        meaning: "total energy density, kinetic included",
    },
    Field {
        name: "entropy",
        dataset: "Entropy",
        index: Some(ENTROPY),
        unit: "code",
        meaning: "entropy scalar S = P/ρ^(γ−1)",
    },
    Field {
        name: "potential", dataset: "Pote", index: None, unit: "(100 km/s)²", meaning: "peculiar potential a²φ"
    },
];

/// The field of that name.
pub fn by_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}
