//! The figure of an initial condition: slices of the density contrast, P(k) over linear theory, velocities beside densities.

use super::lines::{Curve, LegendPlace, Panel, Ratio, Style, line_figure};
use super::map::{MapStyle, map_figure_of};
use super::{CURVES, Dash, Figure, FigureSize};
use crate::cell_fields::labelled;
use crate::error::AnalysisError;
use crate::map::{Axis, Map};

/// Field of a slice.
const FIELD: &str = "overdensity";

/// A species of an initial condition.
#[derive(Clone, Debug)]
pub struct Species {
    /// Its name.
    pub name: String,
    /// Cells of the slice along x and y.
    pub cells: [usize; 2],
    /// Density contrast in the slice, x fastest.
    pub slice: Vec<f64>,
    /// Wave numbers in h/Mpc.
    pub k_h_mpc: Vec<f64>,
    /// P(k) in (Mpc/h)³.
    pub power_mpc3_h3: Vec<f64>,
    /// P(k) of linear theory in (Mpc/h)³.
    pub linear_mpc3_h3: Vec<f64>,
    /// δ and θ of cells.
    pub scatter: Vec<[f64; 2]>,
}

/// Slices of all species, P(k) over linear theory, and θ over δ.
///
/// * `box_mpc_h`: length of the box along x
///
/// # Errors
/// [`AnalysisError::Figure`] for a slice without cells.
pub fn initial_condition_figure(redshift: f64, box_mpc_h: f64, species: &[Species]) -> Result<Figure, AnalysisError> {
    let most = species.iter().flat_map(|one| &one.slice).fold(0.0f64, |most, delta| most.max(delta.abs()));
    let range = (most > 0.0).then(|| round_up(most)).map(|most| [-most, most]);
    let style = MapStyle { size: Some(FigureSize::Column), range, ..MapStyle::default() };
    let slices = species.iter().map(|one| {
        let mut field = labelled(FIELD);
        field.meaning = format!("density contrast of {}", one.name).into();
        map_figure_of(&slice(redshift, box_mpc_h, one), &style, &field)
    });
    let mut figures = slices.collect::<Result<Vec<Figure>, AnalysisError>>()?;
    figures.push(line_figure("θ = −∇·v/(aHf) of cells, and the growing mode", &[scatter(species)], 1));
    figures.push(line_figure("P(k) and linear theory", &[spectra(species)], 1));
    Ok(Figure::grid("Initial condition", figures, 2))
}

/// The next of 1, 2 and 5 times a power of ten, whose ends colour bars label.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|round| *round >= value).unwrap_or(10.0 * power)
}

fn slice(redshift: f64, box_mpc_h: f64, species: &Species) -> Map {
    let [nx, ny] = species.cells;
    let height = box_mpc_h * ny as f64 / nx.max(1) as f64;
    Map {
        redshift: Some(redshift),
        field: FIELD.into(),
        symbol: format!("δ({})", species.name),
        unit: String::new(),
        axis: Axis::Z,
        horizontal_mpc_h: [0.0, box_mpc_h],
        vertical_mpc_h: [0.0, height],
        depth_mpc_h: [0.5 * height; 2],
        values: species.slice.chunks(nx.max(1)).map(<[f64]>::to_vec).collect(),
        patches: Vec::new(),
        cells: Vec::new(),
    }
}

fn spectra(species: &[Species]) -> Panel {
    let points = |k: &[f64], power: &[f64]| k.iter().zip(power).map(|(k, p)| [*k, *p]).collect::<Vec<_>>();
    let linear = species.first().map(|one| Curve {
        name: "linear theory".into(),
        points: points(&one.k_h_mpc, &one.linear_mpc3_h3),
        color: Some(CURVES.len() - 1),
        dash: Some(Dash::Dashed),
        ..Curve::default()
    });
    let found = species.iter().enumerate().map(|(n, one)| Curve {
        name: one.name.clone(),
        points: points(&one.k_h_mpc, &one.power_mpc3_h3),
        color: Some(n),
        ..Curve::default()
    });
    Panel {
        x_label: "k [h/Mpc]".into(),
        y_label: "P(k) [(Mpc/h)³]".into(),
        x_logarithmic: true,
        y_logarithmic: true,
        curves: linear.into_iter().chain(found).collect(),
        ratio: Some(Ratio { to: 0, label: "over linear".into(), range: Some([0.0, 2.0]) }),
        ..Panel::default()
    }
}

fn scatter(species: &[Species]) -> Panel {
    let all = species.iter().flat_map(|one| &one.scatter).flatten();
    let most = all.filter(|value| value.is_finite()).fold(0.0f64, |most, value| most.max(value.abs()));
    let most = if most > 0.0 { 1.05 * most } else { 1.0 };
    let points = species.iter().enumerate().map(|(n, one)| Curve {
        name: one.name.clone(),
        points: one.scatter.clone(),
        style: Style::Points,
        color: Some(n),
        ..Curve::default()
    });
    let growing = Curve {
        name: "θ = δ".into(),
        points: vec![[-most, -most], [most, most]],
        color: Some(CURVES.len() - 1),
        dash: Some(Dash::Dashed),
        ..Curve::default()
    };
    Panel {
        x_label: "δ".into(),
        y_label: "θ".into(),
        x_range: Some([-most, most]),
        y_range: Some([-most, most]),
        curves: points.chain([growing]).collect(),
        legend: LegendPlace::UpperLeft,
        ..Panel::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_hold_all_species() {
        let species = |name: &str| Species {
            name: name.into(),
            cells: [4, 2],
            slice: (0..8).map(|n| 0.1 * f64::from(n) - 0.3).collect(),
            k_h_mpc: vec![0.1, 0.2, 0.4],
            power_mpc3_h3: vec![10.0, 5.0, 2.0],
            linear_mpc3_h3: vec![9.0, 5.5, 2.0],
            scatter: vec![[0.1, 0.1], [-0.1, -0.12]],
        };
        let one = initial_condition_figure(49.0, 20.0, &[species("gas")]).unwrap();
        let two = initial_condition_figure(49.0, 20.0, &[species("gas"), species("dark matter")]).unwrap();
        // two figures in a row
        assert!(one.size[0] == two.size[0] && one.shapes.len() < two.shapes.len(), "{:?} {:?}", one.size, two.size);
        let svg = two.svg().unwrap();
        assert!(svg.contains("δ(gas)") && svg.contains("δ(dark matter)") && svg.contains("linear theory"), "{svg}");
        assert!(svg.contains(">0.5<") && round_up(0.2) == 0.2 && round_up(7.0) == 10.0, "ends of the colour bars");
        let empty = Species { cells: [0, 0], slice: Vec::new(), ..species("gas") };
        assert!(initial_condition_figure(49.0, 20.0, &[empty]).is_err());
    }
}
