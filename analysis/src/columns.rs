//! Units and descriptions of the columns of tables that analyses write.

/// Units by the ends of column names, the longest first.
pub const UNITS: [(&str, &str); 8] = [
    ("_mpc3_h3", "(Mpc/h)³"),
    ("_h3_mpc3", "(h/Mpc)³"),
    ("_msun_h", "M☉/h"),
    ("_h_mpc", "h/Mpc"),
    ("_mpc_h", "Mpc/h"),
    ("_km_s", "km/s"),
    ("_gyr", "Gyr"),
    ("_k", "K"),
];

/// Unit and description of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnNote {
    /// Empty for a number without a dimension. Lengths are comoving, velocities peculiar.
    pub unit: String,
    /// In a phrase.
    pub description: String,
}

/// The note on a column of a table: `table` is the first part of the file's name, as `halos` of `halos_z0.csv`. `None` for
/// columns of a recipe's own tables and for the pixels of a projection.
pub fn note(table: &str, column: &str) -> Option<ColumnNote> {
    let of_table = match table {
        "halos" => halos(column),
        "profile" => profile(column).map(Into::into),
        "density_pdf" => density_pdf(column).map(Into::into),
        "mass_function" => mass_function(column).map(Into::into),
        "power_spectrum" => power_spectrum(column).map(Into::into),
        "compare" => comparison(column),
        "force_test" => force_test(column).map(Into::into),
        _ if table.starts_with("refinement_ratio") => refinement_ratio(column).map(Into::into),
        _ if table.starts_with("slice_") => slice(column),
        _ if table.starts_with("projection_") => projection(column),
        _ => None,
    };
    // the field of a slice has its unit in brackets
    let bracketed = column.split_once(" [").and_then(|(_, unit)| unit.strip_suffix(']'));
    let by_name = || {
        let quantity = column.split('_').next().unwrap_or(column);
        Some(match (table, quantity) {
            _ if ["density_mean", "peak_density_mean"].contains(&column) => "mean matter density",
            ("compare", "position") => "code length",
            ("compare", "density") => "code density",
            ("compare", "velocity") => "code velocity",
            ("compare", "pressure") => "code pressure",
            ("force_test", "separation") => "finest cells",
            (table, "time") if table.starts_with("refinement_ratio") => "code time",
            _ => return None,
        })
    };
    let unit = unit_by_end(column).or_else(by_name).or(bracketed).unwrap_or_default().to_owned();
    of_table.map(|description: String| ColumnNote { unit, description })
}

/// The unit that the end of a name states.
pub fn unit_by_end(name: &str) -> Option<&'static str> {
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit)
}

fn halos(column: &str) -> Option<String> {
    let fixed = match column {
        "id" => "rank of the halo by mass, from 0",
        "x_mpc_h" | "y_mpc_h" | "z_mpc_h" => "position of the centre",
        "particles" => "linked dark-matter particles",
        "mass_msun_h" => {
            "mass of all matter: particles times Ωm/(Ωm − Ωb) (friends of friends), or within the radius (density peaks)"
        }
        "radius_mpc_h" => "R200m (friends of friends), or the radius of the finder's overdensity (density peaks)",
        "vx_km_s" | "vy_km_s" | "vz_km_s" => "mean peculiar velocity, mass-weighted",
        "dispersion_km_s" => "1-D velocity dispersion of the linked particles",
        "peak_density_mean" => "density of the central cell",
        "temperature_k" => "mass-weighted mean temperature of the gas",
        "cells" => "leaf cells whose centres are within the radius",
        "sub_peaks" => "peaks within the radius that started no halo of their own",
        "overlaps" => "other halos whose spheres meet this one",
        "parent" => "id of the heaviest heavier halo that contains the centre; empty if none does",
        "gas_fraction" => "mass of the gas in that of all matter within the radius",
        "concentration_200c" => "R200c over the scale radius of the best NFW profile; empty if not resolved",
        "heavy_distance_mpc_h" => {
            "distance of the centre from the nearest particle heavier than the lightest ones; empty beyond half the box"
        }
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(fixed.into());
    }
    let parts = [
        ("mass_", "_msun_h", "mass of all matter within the radius"),
        ("radius_", "_mpc_h", "radius of the sphere"),
        ("gas_fraction_", "", "mass of the gas in that of all matter within the sphere"),
        (
            "heavy_fraction_",
            "",
            "mass of particles heavier than the lightest ones in that of the dark matter within the sphere",
        ),
        ("dispersion_", "_km_s", "1-D velocity dispersion of the dark matter within the sphere"),
    ];
    let definition = |(begin, end, text): &(&str, &str, &str)| {
        let name = column.strip_prefix(begin)?.strip_suffix(end)?;
        ["200m", "200c", "500c", "vir"]
            .contains(&name)
            .then(|| format!("{text}, overdensity {name}; empty if not reached"))
    };
    parts.iter().find_map(definition)
}

fn profile(column: &str) -> Option<&'static str> {
    Some(match column {
        "r_inner_mpc_h" | "r_outer_mpc_h" => "inner and outer radius of the shell",
        "r_mpc_h" => "mass-weighted mean radius of the shell",
        "density_mean" => "mean density of all matter",
        "temperature_k" => "mass-weighted mean temperature of the gas",
        "radial_velocity_km_s" => "mass-weighted radial peculiar velocity of the gas, relative to the halo",
        "radial_velocity_with_hubble_km_s" => "radial velocity of the gas plus the Hubble flow",
        "enclosed_mass_msun_h" => "mass of all matter within the outer radius",
        "cells" => "leaf cells with their centres in the shell",
        _ => return None,
    })
}

fn density_pdf(column: &str) -> Option<&'static str> {
    Some(match column {
        "log10_density_mean" => "decimal logarithm of the density over the mean, centre of the bin",
        "volume_pdf_per_dex" => "fraction of the volume per factor of ten in density",
        "mass_pdf_per_dex" => "fraction of the mass per factor of ten in density",
        "cells" => "leaf cells in the bin",
        _ => return None,
    })
}

fn mass_function(column: &str) -> Option<&'static str> {
    Some(match column {
        "low_msun_h" | "high_msun_h" => "edge of the bin",
        "centre_msun_h" => "middle of the bin in log M, for the abscissa of the predictions",
        "mass_msun_h" => "mean mass of the halos; of an empty bin its middle in log M",
        "halos" => "halos in the bin",
        "dn_dlnm_h3_mpc3" => "dn/dlnM, comoving",
        "error_h3_mpc3" => "Poisson error of dn/dlnM",
        "tinker08_h3_mpc3" => "prediction of Tinker et al. 2008, mean over the bin",
        "despali16_h3_mpc3" => "prediction of Despali et al. 2016, mean over the bin",
        _ => return None,
    })
}

fn power_spectrum(column: &str) -> Option<&'static str> {
    Some(match column {
        "k_h_mpc" => "mean wave number of the modes in the bin",
        "power_mpc3_h3" => "P(k) of the density contrast",
        "modes" => "modes in the bin",
        "k_nyquist_h_mpc" => "Nyquist wave number of the grid",
        "shot_noise_mpc3_h3" => {
            "mean Poisson noise of the particles in the bin, as the grid shows it: contained in P(k) unless \
             subtract_shot_noise is set, but for particles still near their lattice; 0 for gas and for the cross spectrum"
        }
        "linear_mpc3_h3" => "P(k) of linear theory at the mean wave number and the redshift",
        _ => return None,
    })
}

fn refinement_ratio(column: &str) -> Option<&'static str> {
    Some(match column {
        "redshift" => "redshift of the output; NaN in non-comoving coordinates",
        "a" => "scale factor; 1 in non-comoving coordinates",
        "time" => "code time since the start of the run",
        "step" => "root steps taken",
        "level" => "refinement level, root 0",
        "volume_fraction" => "fraction of the box that the level covers, refined further or not",
        "leaf_volume_fraction" => "fraction of the box in cells of this level that are not refined",
        "cells" => "cells of the level",
        "leaf_cells" => "cells of the level that are not refined",
        _ => return None,
    })
}

fn force_test(column: &str) -> Option<&'static str> {
    Some(match column {
        "separation_finest_cells" => "separation of the point masses in cells of the finest level, centre of the bin",
        "forces" => "forces in the bin",
        "pull_over_root_mean" => {
            "force of the other mass over that of the root level alone at the same separation in its cells, mean"
        }
        "pull_over_root_rms" => "scatter of that ratio",
        "felt_over_root_mean" => "the same ratio with the force of a mass on itself, mean",
        "felt_over_root_rms" => "scatter of that ratio",
        _ => return None,
    })
}

fn comparison(column: &str) -> Option<String> {
    match column {
        "position" => return Some("position along the path; of a shell its mean radius".into()),
        "level" => return Some("refinement level of the cell; mean by volume in a shell".into()),
        _ => {}
    }
    let ends = [
        ("_exact", "of the solution"),
        ("_scatter", "standard deviation in a shell (0 for a cell)"),
        ("", "of the run"),
    ];
    let (name, of) = ends.iter().find_map(|(end, text)| Some((column.strip_suffix(end)?, text)))?;
    crate::comparison::QUANTITIES.contains(&name).then(|| format!("{name}: {of}"))
}

fn slice(column: &str) -> Option<String> {
    Some(match column {
        "x_mpc_h" | "y_mpc_h" | "z_mpc_h" => "centre of the cell".into(),
        "width_mpc_h" => "width of the cell".into(),
        "level" => "refinement level of the cell".into(),
        field => format!("{} of the cell", field.split(" [").next().unwrap_or(field)),
    })
}

/// The first column of a projection; the names of the others are positions.
fn projection(column: &str) -> Option<String> {
    let (up, right) = column.split_once(" \\ ")?;
    Some(format!("{up} of the row of pixels; the names of the other columns are {right}, their entries the field"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_units_and_descriptions() {
        let unit = |table: &str, column: &str| note(table, column).map(|note| note.unit);
        for (table, column, expected) in [
            ("halos", "mass_200c_msun_h", "M☉/h"),
            ("halos", "gas_fraction_vir", ""),
            ("power_spectrum", "power_mpc3_h3", "(Mpc/h)³"),
            ("mass_function", "dn_dlnm_h3_mpc3", "(h/Mpc)³"),
            ("profile", "density_mean", "mean matter density"),
            ("slice_density", "density [mean density]", "mean density"),
            ("compare", "pressure_scatter", "code pressure"),
            ("force_test", "separation_finest_cells", "finest cells"),
            ("refinement_ratio", "time", "code time"),
            ("refinement_ratio_run2", "leaf_cells", ""),
        ] {
            assert_eq!(unit(table, column).as_deref(), Some(expected), "{column} of {table}");
        }
        for (table, column) in [("halos", "mass_300x_msun_h"), ("mine", "mass_msun_h"), ("projection_density", "0.5")] {
            assert_eq!(note(table, column), None, "{column} of {table}");
        }
    }
}
