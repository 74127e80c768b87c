//! What closures of a run see of a root step: the members of its record in `steps.jsonl` that are the same on every machine.

use super::reference::{Member, Needs};

const fn member(name: &'static str, value: &'static str, text: &'static str) -> Member {
    Member::new(name, value, text)
}

const MASS: Member = member("mass", "float", "mass").in_unit("code mass");
const MOMENTUM: Member = member("momentum", "Array", "momentum along x, y, z").in_unit("code momentum");
const KINETIC: Member = member("kinetic", "float", "kinetic energy").in_unit("code energy");

/// Members of a step.
pub(crate) const STEP_MEMBERS: &[Member] =
    &[
        member("step", "int", "number of the step, from 1"),
        member("a", "float", "scale factor at its end"),
        member("z", "float", "redshift at its end").needing(Needs::Comoving),
        member("time", "float", "time at its end").in_unit("code time"),
        member("dt", "float", "Δt").in_unit("code time"),
        member(
            "limit",
            "Map",
            "what set Δt: `limit.by` is `\"courant\"`, `\"inflow\"`, `\"acceleration\"`, `\"particle\"`, `\"source\"`, \
         `\"expansion\"` or `\"steered\"`",
        ),
        member("gas_dt", "float", "Δt that the gas alone would have allowed; left out where it stood still")
            .in_unit("code time")
            .needing(Needs::Gas),
        member("groups", "Array", "groups of each level"),
        member("volume_fractions", "Array", "fraction of the box that each level covers"),
        member("level_steps", "Array", "steps of each level in this one of the root"),
        member("cell_updates", "int", "cells of each level times its steps"),
        member("density_min", "float", "smallest density of all matter in a leaf cell").in_unit("code density"),
        member("density_max", "float", "largest density of all matter in a leaf cell").in_unit("code density"),
        member("sums", "Map", "conserved sums of all matter").with(&[
            MASS,
            MOMENTUM,
            KINETIC,
            member("energy", "float", "kinetic and thermal energy").in_unit("code energy"),
        ]),
        member("gas", "Map", "sums and extreme densities of the gas").needing(Needs::Gas).with(&[
            MASS,
            MOMENTUM,
            KINETIC,
            member("energy", "float", "kinetic and thermal energy").in_unit("code energy"),
            member("density_min", "float", "smallest density of the gas in a leaf cell").in_unit("code density"),
            member("density_max", "float", "largest density of the gas in a leaf cell").in_unit("code density"),
        ]),
        member("dark_matter", "Map", "particles of each level and sums of dark matter")
            .needing(Needs::DarkMatter)
            .with(&[member("particles", "Array", "particles of each level"), MASS, MOMENTUM, KINETIC]),
        member("potential", "Map", "potential energy of all matter, and the scale factor at which it was solved")
            .needing(Needs::Gravity)
            .with(&[
                member("a", "float", "scale factor"),
                member("energy", "float", "potential energy").in_unit("code energy"),
            ]),
        member("ledger", "Map", "energy and mass that the gas has gained besides fluxes, since the start of the run")
            .needing(Needs::Gas)
            .with(&[
                member("gravity_work", "float", "work of gravity").in_unit("code energy"),
                member("sources", "Map", "energy from each source, by its option").in_unit("code energy"),
                member("entropy_energy", "float", "energy from the entropy scalar").in_unit("code energy"),
                member("floor_energy", "float", "energy from floors").in_unit("code energy"),
                member("floor_mass", "float", "mass from floors").in_unit("code mass"),
                member("regrid_energy", "float", "energy from regrids").in_unit("code energy"),
                member("redone_cells", "int", "cells redone with first-order fluxes"),
                member("retries", "int", "retries of steps"),
                member("floored_cells", "int", "cells floored"),
            ]),
        member(
            "energy_residual",
            "float",
            "residual of the gas's energy ledger over the largest kinetic energy of the gas",
        )
        .needing(Needs::Gas),
        member("mass_drift", "float", "relative drift of the gas's mass").needing(Needs::Gas),
        member("cold_fraction", "float", "fraction of leaf cells whose pressure comes from the entropy scalar")
            .needing(Needs::Gas),
        member("ladder", "Map", "repairs of the gas in this step").needing(Needs::Gas).with(&[
            member("negative_fraction", "float", "fraction of leaf cells with less total than kinetic energy"),
            member("redone_cells", "int", "cells redone with first-order fluxes"),
            member("redone_faces", "int", "faces with first-order fluxes"),
            member("first_redone", "Map", "the first of these cells, or `()`"),
            member("retries", "int", "retries of the step"),
            member("floored_cells", "int", "cells floored"),
            member("floored_in_sweeps", "int", "of these in sweeps"),
            member("first_floored", "Map", "the first of these cells, or `()`"),
            member("courant_number", "float", "largest Courant number after a sweep of individual steps"),
        ]),
        member("regridded", "bool", "whether the tree has changed"),
        member("raised", "Map", "what `max_cells` did to the tree, or `()`"),
        member("steering", "Map", "what the run was steered by, or `()`"),
    ];
