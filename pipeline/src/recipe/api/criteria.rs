//! Refinement criteria: each function gives the map that a run's parameters are decoded from.

use super::handles::Analysis;
use super::later::{Later, needs_of, refuse, substituted};
use crate::campaign::deferred::{Known, Measured};
use crate::recipe::error::{Bound, Refusal, plain};
use crate::recipe::expression::{Expression, NotKnown};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode, from_json};
use crate::recipe::reference::Function;
use comove_sim::Criterion;
use comove_sim::criterion::{Program, Quantity};
use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &["density_above(threshold: ?) -> Map"],
        "A cell is flagged where the density exceeds the threshold, in the mean matter density. A threshold is \
         a number for every level, a list with one entry per level (levels beyond it are not refined), or a \
         rule: `density_above(8)`, `density_above([8, 64])`, `density_above(|level| 8 ** (level + 1))`.",
    )
    .used_as("density_above(8), density_above([8, 64, 512]) or density_above(|level| 8 ** (level + 1))"),
    Function::new(
        &["overdensity_above(threshold: ?) -> Map"],
        "Where the density over the mean density of the box exceeds the threshold.",
    )
    .used_as("overdensity_above(8), with thresholds as in density_above"),
    Function::new(
        &["mass_above() -> Map", "mass_above(masses: ?) -> Map"],
        "Where a cell holds more mass than so many root cells do on average, 8 by default: cells of all levels then hold \
         similar masses (quasi-Lagrangian refinement). `mass_above(8)` is `overdensity_above(|level| 8.0 * 8.0 ** level)`.",
    )
    .used_as("mass_above() or mass_above(8), with thresholds as in density_above"),
    Function::new(
        &["particles_above(number: ?) -> Map"],
        "Where a cell holds more dark-matter particles than this: the mass of their clouds in the cell (density times volume) \
         over that of a particle, so not always a whole number. Of particles of several masses only the lightest count, so \
         that a zoom simulation refines its region alone. If `follow`, or the file of the initial condition, names particles, only \
         these count. Needs dark matter.",
    )
    .used_as("particles_above(8), with thresholds as in density_above"),
    Function::new(
        &["region_of_particles(level: ?) -> Map"],
        "Where a cell holds mass of particles that `particles_above` counts, on levels below `level`: follows the region of a zoom \
         simulation, or the particles that `follow` of `ic_gaussian` or `ic_load` names, also within `all`. Where all count, this \
         is every cell near a particle.",
    )
    .used_as("region_of_particles(2) or all([region_of_particles(5), overdensity_above(|level| 8 ** (level + 1))])"),
    Function::new(
        &["gradient_above(quantity: String, threshold: ?) -> Map"],
        "Where the change across the cell, |u₊ − u₋|/2 on its steepest axis, is at least the threshold times \
         its value; of `\"density\"`, `\"pressure\"` or `\"velocity\"` (each component, compared to |v| + c_s).",
    )
    .used_as("gradient_above(\"density\", 0.03), of \"density\", \"pressure\" or \"velocity\""),
    Function::new(
        &[
            "lohner_above(quantity: String, threshold: ?) -> Map",
            "lohner_above(quantity: String, threshold: ?, options: Map) -> Map",
        ],
        "Where Löhner's estimator (second over first differences, between 0 and 1) exceeds the threshold; of \
         the same quantities.",
    )
    .used_as("lohner_above(\"density\", 0.8) or lohner_above(\"pressure\", 0.8, #{ filter: 0.01 })")
    .with_options(&["LohnerOptions"]),
    Function::new(
        &["jeans_cells_below(cells: ?) -> Map"],
        "Where the Jeans length c_s √(π/(Gρ)) is shorter than so many cells.",
    )
    .used_as("jeans_cells_below(4), with thresholds as in density_above"),
    Function::new(
        &["region(options: Map) -> Map"],
        "Where the cell has volume in a box or a ball, through periodic faces too.",
    )
    .used_as("region(#{ min: [x, y, z], max: [x, y, z], level: 2 }) or region(#{ center, radius, level })")
    .with_options(&["BoxOptions", "BallOptions"]),
    Function::new(
        &["refine_where(expression: Fn) -> Map"],
        "Where the expression holds: a closure of a cell, compiled once to a program. \
         [Recipes](recipes.md#expressions) lists what it may use.",
    )
    .used_as("refine_where(|c| c.density > 8 && c.div_v < 0)"),
    Function::new(
        &["all(criteria: Array) -> Map"],
        "Where one cell meets all criteria of the list. On levels beyond the thresholds or the `level` of one of them no \
         cell does.",
    )
    .used_as("all([region(#{ center, radius, level }), particles_above(8)])"),
    Function::new(
        &["any(criteria: Array) -> Map"],
        "Where a cell meets at least one criterion of the list, as in the list of `refine`: for use within `all` and `not`.",
    )
    .used_as("any([overdensity_above(8), jeans_cells_below(4)])"),
    Function::new(
        &["not(criterion: Map) -> Map"],
        "Where a cell does not meet the criterion. A criterion is met nowhere on levels beyond its thresholds or its `level`: \
         `not` of it is met everywhere there, and refines all cells of these levels up to `max_level`. Raised thresholds \
         (`max_cells`, `threshold_factor`) are lowered within `not`, so that less is refined.",
    )
    .used_as("not(region(#{ center, radius, level }))"),
];

/// Levels for which a closure is asked for its threshold or a single number is repeated.
const LEVELS: i64 = 16;

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine.register_fn("density_above", |context: NativeCallContext, threshold: Dynamic| {
        of_thresholds(&context, threshold, |thresholds| criterion(&Criterion::DensityAbove { thresholds }))
    });
    engine.register_fn("overdensity_above", |context: NativeCallContext, threshold: Dynamic| {
        of_thresholds(&context, threshold, |thresholds| criterion(&Criterion::OverdensityAbove { thresholds }))
    });
    engine.register_fn("mass_above", |context: NativeCallContext| mass_above(&context, 8.0.into()));
    engine.register_fn("mass_above", |context: NativeCallContext, masses: Dynamic| mass_above(&context, masses));
    engine.register_fn("particles_above", |context: NativeCallContext, number: Dynamic| {
        of_thresholds(&context, number, |thresholds| criterion(&Criterion::ParticlesAbove { thresholds }))
    });
    engine
        .register_fn("region_of_particles", |level: Dynamic| Later::or_now(level, |level| region_of_particles(&level)));
    engine.register_fn("jeans_cells_below", |context: NativeCallContext, cells: Dynamic| {
        of_thresholds(&context, cells, |thresholds| criterion(&Criterion::JeansCellsBelow { thresholds }))
    });
    engine.register_fn("gradient_above", |context: NativeCallContext, of: ImmutableString, threshold: Dynamic| {
        let of = quantity(&context, &of)?;
        of_thresholds(&context, threshold, move |thresholds| criterion(&Criterion::GradientAbove { of, thresholds }))
    });
    let lohner = |context: NativeCallContext, of: ImmutableString, threshold, options| {
        lohner_above(&context, &of, threshold, options)
    };
    register_with_options!(
        engine, "lohner_above", lohner,
        context: NativeCallContext, of: ImmutableString, threshold: Dynamic
    );
    engine.register_fn("region", |options: Map| Later::or_now(options.into(), |options| region(options.cast())));
    let shared = session.clone();
    engine.register_fn("refine_where", move |context: NativeCallContext, closure: FnPtr| {
        refine_where(&shared, &context, &closure)
    });
    for name in ["all", "any"] {
        engine.register_fn(name, move |criteria: Array| {
            criteria.iter().enumerate().try_for_each(|(n, one)| {
                is_criterion(one).map_err(|what| {
                    Refusal::error(name, format!("entry {} of the list is {what}, not a criterion", n + 1), None)
                })
            })?;
            if criteria.is_empty() {
                return Err(Refusal::error(name, "the list is empty; give at least one criterion", None));
            }
            joined(name, criteria.into())
        });
    }
    engine.register_fn("not", |criterion: Dynamic| {
        is_criterion(&criterion)
            .map_err(|what| Refusal::error("not", format!("the argument is {what}, not a criterion"), None))?;
        joined("not", criterion)
    });
}

/// Whether a value is a criterion, now or once values of results are known; if not, its kind.
fn is_criterion(value: &Dynamic) -> Result<(), String> {
    let is = value.is::<Later>() || value.is_map() && decode::<Criterion>("", value.clone().cast()).is_ok();
    if is { Ok(()) } else { Err(plain(value.type_name())) }
}

/// The combination of this name of criteria, now or once values of results are known.
fn joined(name: &'static str, criteria: Dynamic) -> Bound<Dynamic> {
    Later::or_now(criteria, move |criteria| Ok(Map::from([(name.into(), criteria)]).into()))
}

/// The criterion of an expression, now or once the values of results that its closure has captured are known.
fn refine_where(session: &Session, context: &NativeCallContext<'_>, closure: &FnPtr) -> Bound<Dynamic> {
    const NAME: &str = "refine_where";
    let Some(expression) = Expression::of(context, NAME, closure) else {
        let message = "the expression must be a closure of one cell, as in |c| c.density > 8";
        return Err(Refusal::error(NAME, message, None));
    };
    let text = match session.place_of(closure) {
        Some(place) => session.source.closure_line(place).unwrap_or_default(),
        None => session.source.function_text(closure.fn_name()),
    };
    let make = move |expression: &Expression| -> Bound<Dynamic> {
        let program = expression.compile()?.expect("all its values are known");
        let source = match expression.shown_values() {
            values if values.is_empty() => text.clone(),
            values => format!("{text}, {values}"),
        };
        let lines: Vec<String> = Program(program).into();
        Ok(from_json(&json!({ "where": { "program": lines, "source": source } })))
    };
    match needs_of_closure(&expression) {
        needs if needs.is_empty() => make(&expression),
        needs => {
            checked(&expression).compile()?;
            Ok(Later::value(needs, move |known| make(&with_known(&expression, known)?)))
        }
    }
}

/// The values of results that a closure has captured, of measurements all they have found.
fn needs_of_closure(expression: &Expression) -> Vec<Measured> {
    expression
        .captured()
        .iter()
        .flat_map(|value| whole(value).map_or_else(|| needs_of(value), |all| vec![all]))
        .collect()
}

/// All that a measurement finds, if the value is one.
fn whole(value: &Dynamic) -> Option<Measured> {
    let node = value.read_lock::<Analysis>()?.0.clone();
    ["measure", "combine"].contains(&node.stage().kind()).then_some(Measured { node, path: Vec::new() })
}

/// An expression in which the values of results are not known yet.
fn checked(expression: &Expression) -> Expression {
    let later = |value: &Dynamic| whole(value).is_some() || !needs_of(value).is_empty();
    let captured = expression.captured().iter();
    expression.with(captured.map(|value| if later(value) { Dynamic::from(NotKnown) } else { value.clone() }).collect())
}

/// An expression with the values of results in place.
fn with_known(expression: &Expression, known: &Known) -> Bound<Expression> {
    let value = |value: &Dynamic| match whole(value) {
        Some(all) => Ok(from_json(known.of(&all))),
        None => substituted(value, known),
    };
    Ok(expression.with(expression.captured().iter().map(value).collect::<Bound<_>>()?))
}

/// The criterion as the map that [`comove_sim::RunParameters`] decodes.
fn criterion(criterion: &Criterion) -> Bound<Dynamic> {
    Ok(from_json(&serde_json::to_value(criterion).expect("numbers and names")))
}

/// A criterion of thresholds per level: a number for all of them, a list, or a closure of the level, which is called now.
fn of_thresholds(
    context: &NativeCallContext<'_>,
    given: Dynamic,
    make: impl Fn(Vec<f64>) -> Bound<Dynamic> + Send + Sync + 'static,
) -> Bound<Dynamic> {
    let function = context.fn_name().to_owned();
    let given = match given.clone().try_cast::<FnPtr>() {
        Some(rule) => {
            let expression = Expression::of(context, &function, &rule);
            let needs = expression.as_ref().map_or(Vec::new(), needs_of_closure);
            if let Some(expression) = expression.filter(|_| !needs.is_empty()) {
                checked(&expression).at_level(0)?;
                return Ok(Later::value(needs, move |known| {
                    let rule = with_known(&expression, known)?;
                    let at = |level| -> Bound<Dynamic> {
                        Ok(rule.at_level(level)?.expect("all its values are known").into())
                    };
                    make(thresholds(&function, &(0..LEVELS).map(at).collect::<Bound<Array>>()?.into())?)
                }));
            }
            let at = |level: i64| rule.call_within_context::<Dynamic>(context, (level,));
            (0..LEVELS).map(at).collect::<Bound<Array>>()?.into()
        }
        None => given,
    };
    Later::or_now(given, move |given| make(thresholds(&function, &given)?))
}

fn thresholds(function: &str, given: &Dynamic) -> Bound<Vec<f64>> {
    let number = |value: &Dynamic| {
        value.as_float().or_else(|_| value.as_int().map(|whole| whole as f64)).map_err(|found| {
            Refusal::error(function, format!("a threshold is {}, expected a number", plain(found)), None)
        })
    };
    let thresholds = if let Some(list) = given.read_lock::<Array>() {
        list.iter().map(number).collect::<Bound<_>>()?
    } else {
        vec![number(given)?; LEVELS as usize]
    };
    match thresholds.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
        Some(bad) => Err(Refusal::error(function, format!("a threshold of {bad}: must be positive"), None)),
        None => Ok(thresholds),
    }
}

/// The mass of a cell in the mean of root cells is its overdensity over 8^ℓ.
fn mass_above(context: &NativeCallContext<'_>, masses: Dynamic) -> Bound<Dynamic> {
    of_thresholds(context, masses, |masses| {
        let of_level = |(level, mass): (usize, f64)| mass * 8f64.powi(level as i32);
        let thresholds = masses.into_iter().enumerate().map(of_level).collect();
        criterion(&Criterion::OverdensityAbove { thresholds })
    })
}

fn quantity(context: &NativeCallContext<'_>, name: &str) -> Bound<Quantity> {
    match name {
        "density" => Ok(Quantity::Density),
        "pressure" => Ok(Quantity::Pressure),
        "velocity" => Ok(Quantity::Velocity),
        other => {
            let message = format!("\"{other}\" is not one of \"density\", \"pressure\", \"velocity\"");
            Err(Refusal::error(context.fn_name(), message, None))
        }
    }
}

/// What a recipe says after the threshold of `lohner_above`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LohnerOptions {
    /// Weight of the filter against ripples.
    filter: f64,
}

impl Default for LohnerOptions {
    fn default() -> Self {
        Self { filter: 0.01 }
    }
}

fn lohner_above(context: &NativeCallContext<'_>, of: &str, threshold: Dynamic, options: Map) -> Bound<Dynamic> {
    let of = quantity(context, of)?;
    refuse(context.fn_name(), &options)?;
    let LohnerOptions { filter } = decode(context.fn_name(), options)?;
    of_thresholds(context, threshold, move |thresholds| criterion(&Criterion::LohnerAbove { of, thresholds, filter }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxOptions {
    /// Of a box: its lower corner in Mpc/h, in non-comoving coordinates in code units.
    min: [f64; 3],
    /// Its upper corner.
    max: [f64; 3],
    /// Levels below this one are refined.
    level: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BallOptions {
    /// Of a ball: its centre.
    center: [f64; 3],
    /// Its radius.
    radius: f64,
    /// Levels below this one are refined.
    level: u8,
}

fn region_of_particles(level: &Dynamic) -> Bound<Dynamic> {
    match level.as_int() {
        Ok(levels @ 1..=LEVELS) => criterion(&Criterion::ParticlesAbove { thresholds: vec![0.0; levels as usize] }),
        _ => {
            let message = format!("level is {level}; expected a whole number from 1 to {LEVELS}");
            Err(Refusal::error("region_of_particles", message, None))
        }
    }
}

fn region(options: Map) -> Bound<Dynamic> {
    if options.contains_key("center") || options.contains_key("radius") {
        let BallOptions { center, radius, level } = decode("region", options)?;
        criterion(&Criterion::InsideBall { center, radius, level })
    } else {
        let BoxOptions { min, max, level } = decode("region", options)?;
        criterion(&Criterion::InsideBox { min, max, level })
    }
}
