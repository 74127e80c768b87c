//! Analyses of a run's outputs.

use super::call::Call;
use super::handles::{Analysis, NAME, Naming, Run};
use crate::campaign::Node;
use crate::campaign::deferred::Known;
use crate::moment::Moment;
use crate::recipe::error::{Bound, Refusal, plain};
use crate::recipe::options::{decode, decode_with, take};
use crate::recipe::reference::Function;
use crate::stage::compare::Compare;
use crate::stage::density_pdf::DensityPdfs;
use crate::stage::force_test::{ForceTest, MASSES};
use crate::stage::halos::{Halos, HalosAndProfiles, PROFILE_CHOICE, ProfileChoice};
use crate::stage::maps::{MapWithTable, Maps, STYLE, View};
use crate::stage::power_spectrum::PowerSpectra;
use crate::stage::refinement_ratio::RefinementRatios;
use crate::stage::{Selection, Stage};
use comove_analysis::AnalysisError;
use comove_analysis::halo_finder::HaloOptions;
use comove_analysis::map::MapOptions;
use rhai::{Array, Dynamic, Engine, EvalAltResult, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &[
            "refinement_ratio(run: Run) -> Analysis",
            "refinement_ratio(run: Run, options: Map) -> Analysis",
            "refinement_ratio(runs: Array) -> Analysis",
            "refinement_ratio(runs: Array, options: Map) -> Analysis",
        ],
        "Volume fraction and cells of every level at every output, of one run or several.",
    )
    .used_as("refinement_ratio(RUN) or refinement_ratio([RUN, …])")
    .with_options(&["Naming"]),
    Function::new(
        &["halos(run: Run) -> Analysis", "halos(run: Run, options: Map) -> Analysis"],
        "A catalogue of spherical-overdensity halos, and radial profiles of the heaviest.",
    )
    .used_as("halos(RUN, #{ … })")
    .with_options(&["Common", "HaloOptions", "ProfileChoice", "Naming"]),
    Function::new(
        &["power_spectrum(run: Run) -> Analysis", "power_spectrum(run: Run, options: Map) -> Analysis"],
        "P(k) of the density contrast on the uniform grid of a level.",
    )
    .used_as("power_spectrum(RUN, #{ … })")
    .with_options(&["Common", "PowerOptions", "Naming"]),
    Function::new(
        &["slice(run: Run) -> Analysis", "slice(run: Run, options: Map) -> Analysis"],
        "A field on a plane, as a picture and as a table of the leaf cells that it cuts: centre, width, level, \
         value.",
    )
    .used_as("slice(RUN, #{ … })")
    .with_options(&["Common", "MapOptions", "MapStyle", "Naming"]),
    Function::new(
        &["projection(run: Run) -> Analysis", "projection(run: Run, options: Map) -> Analysis"],
        "A field averaged along the line of sight, as a picture and as a table of its pixels, no more of them \
         than resolve the finest cells.",
    )
    .used_as("projection(RUN, #{ … })")
    .with_options(&["Common", "MapOptions", "MapStyle", "Naming"]),
    Function::new(
        &["density_pdf(run: Run) -> Analysis", "density_pdf(run: Run, options: Map) -> Analysis"],
        "How volume and mass are distributed over density.",
    )
    .used_as("density_pdf(RUN, #{ … })")
    .with_options(&["Common", "PdfOptions", "Naming"]),
    Function::new(
        &["compare(run: Run) -> Analysis", "compare(run: Run, options: Map) -> Analysis"],
        "Outputs against the solution of the problem that the run starts from, with a figure.",
    )
    .used_as("compare(RUN, #{ … }), where RUN starts from a problem")
    .with_options(&["Common", "Naming"]),
    Function::new(
        &["force_test(options: Map) -> Analysis"],
        "Forces between point masses on refined meshes over the root level's; no run.",
    )
    .used_as("force_test(#{ levels, pairs, … })")
    .with_options(&["PointMasses", "SolverOptions", "Naming"]),
];

/// What every analysis takes besides its own options.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Common {
    /// Which outputs: those at these redshifts, or all; by default the last.
    at_z: Option<Value>,
    /// The same in non-comoving coordinates: those at these times.
    at_t: Option<Value>,
}

/// The names of [`Common`]'s options, and that of a stage's name.
pub(super) const COMMON: [&str; 3] = ["at_z", "at_t", NAME];

/// Registers them, each with and without options.
pub(crate) fn register(engine: &mut Engine) {
    let of_one =
        |context: NativeCallContext, run: Run, options| refinement_ratio(context, vec![Dynamic::from(run)], options);
    register_with_options!(engine, "refinement_ratio", of_one, context: NativeCallContext, run: Run);
    register_with_options!(engine, "refinement_ratio", refinement_ratio, context: NativeCallContext, runs: Array);
    with_options(engine, "halos", |name, mut options, outputs, _| {
        let choice: ProfileChoice = decode(name, take(&mut options, &PROFILE_CHOICE))?;
        let finder: HaloOptions = decode_with(name, options, &[&PROFILE_CHOICE[..], &COMMON].concat())?;
        finder.check().map_err(|error| refused(name, &error))?;
        let ProfileChoice { profiles, profile } = choice;
        Ok(Halos { outputs, options: HalosAndProfiles { finder, profiles, profile } })
    });
    for (name, view) in [("slice", View::Slice), ("projection", View::Projection)] {
        with_options(engine, name, move |name, mut options, outputs, run| {
            let style = decode(name, take(&mut options, &STYLE))?;
            let options: MapOptions = decode_with(name, options, &[&STYLE[..], &COMMON].concat())?;
            let fields = run.node.stage().as_run().and_then(|run| run.parameters.scalars.fields().ok());
            options.check(fields.as_ref()).map_err(|error| refused(name, &error))?;
            Ok(Maps { outputs, map: MapWithTable { view, options }, style })
        });
    }
    with_options(engine, "power_spectrum", |name, options, outputs, _| {
        Ok(PowerSpectra { outputs, options: decode_with(name, options, &COMMON)? })
    });
    with_options(engine, "density_pdf", |name, options, outputs, _| {
        Ok(DensityPdfs { outputs, options: decode_with(name, options, &COMMON)? })
    });
    register_with_options!(engine, "compare", compare, context: NativeCallContext, run: Run);
    engine.register_fn("force_test", |context: NativeCallContext, options: Map| -> Bound<Analysis> {
        let call = Call::new("force_test", Vec::new(), options)?;
        let make = |mut options: Map, _: &Known| {
            let masses = decode("force_test", take(&mut options, &MASSES))?;
            let options = decode_with("force_test", options, &[&MASSES[..], &[NAME]].concat())?;
            Ok(Node::new(ForceTest { masses, options }, Vec::new()))
        };
        Ok(Analysis(call.stage(&context, make)?))
    });
}

/// An option of an analysis that is refused.
fn refused(name: &str, error: &AnalysisError) -> Box<EvalAltResult> {
    let key = match error {
        AnalysisError::UnknownField { .. } => Some("field"),
        AnalysisError::Option { name, .. } => Some(*name),
        _ => None,
    };
    Refusal::error(name, error, key)
}

fn refinement_ratio(context: NativeCallContext<'_>, runs: Array, options: Map) -> Bound<Analysis> {
    let runs = runs.into_iter().map(|value| {
        let what = plain(value.type_name());
        let run = value.try_cast::<Run>();
        run.map(|r| r.node)
            .ok_or_else(|| Refusal::error("refinement_ratio", format!("the list holds {what}, not a run"), None))
    });
    let runs = runs.collect::<Bound<Vec<_>>>()?;
    let call = Call::new("refinement_ratio", runs.clone(), options)?;
    let node = call.stage(&context, move |options, _| {
        decode_with::<Naming>("refinement_ratio", options, &[])?;
        Ok(Node::new(RefinementRatios, runs.clone()))
    })?;
    Ok(Analysis(node))
}

fn compare(context: NativeCallContext<'_>, run: Run, options: Map) -> Bound<Analysis> {
    if run.node.decision().is_some() {
        let message = "options of the run are known later, and with them its solution: call compare in then(…)";
        return Err(Refusal::error("compare", message, None));
    }
    let call = Call::new("compare", vec![run.node.clone()], options)?;
    Ok(Analysis(call.stage(&context, move |options, _| compared(&run, options))?))
}

fn compared(run: &Run, mut options: Map) -> Bound<Node> {
    let outputs = selection("compare", run, &mut options)?;
    if !options.is_empty() {
        decode_with::<Common>("compare", options, &[NAME])?;
    }
    let problem = run.problem.clone().ok_or_else(|| {
        let message = "the run has no solution to compare with: it does not start from problem(\"name\", #{ … })";
        Refusal::error("compare", message, None)
    })?;
    let parameters = run.node.stage().parameters()["run"].clone();
    Ok(Node::new(Compare { outputs, problem, run: parameters }, vec![run.node.clone()]))
}

/// Registers `name(RUN)` and `name(RUN, #{ … })`.
fn with_options<S: Stage + 'static>(
    engine: &mut Engine,
    name: &'static str,
    build: impl Fn(&str, Map, Selection, &Run) -> Bound<S> + Clone + Send + Sync + 'static,
) {
    let make = move |context: NativeCallContext, run: Run, options: Map| -> Bound<Analysis> {
        let call = Call::new(name, vec![run.node.clone()], options)?;
        let build = build.clone();
        let node = call.stage(&context, move |mut options, _| {
            let outputs = selection(name, &run, &mut options)?;
            Ok(Node::new(build(name, options, outputs, &run)?, vec![run.node.clone()]))
        })?;
        Ok(Analysis(node))
    };
    register_with_options!(engine, name, make, context: NativeCallContext, run: Run);
}

/// Takes `at_z` or `at_t` out of the options and checks it against the run's outputs.
pub(super) fn selection(name: &str, run: &Run, options: &mut Map) -> Bound<Selection> {
    let common: Common = decode(name, take(options, &COMMON))?;
    let refuse = |key: &str, message: String| Refusal::error(name, format!("{key}: {message}"), Some(key));
    let (key, selection) = match (&common.at_z, &common.at_t) {
        (None, None) => return Ok(Selection::Last),
        (Some(value), None) => ("at_z", Selection::decode(value, Moment::Redshift)),
        (None, Some(value)) => ("at_t", Selection::decode(value, Moment::Time)),
        (Some(_), Some(_)) => return Err(refuse("at_t", "there is an at_z too; a run counts one of them".into())),
    };
    let selection = selection.map_err(|message| refuse(key, message))?;
    if let (Selection::At(moments), Some(outputs)) = (&selection, &run.outputs)
        && let Some(moment) = moments.iter().find(|moment| !outputs.contains(moment))
    {
        let there: Vec<String> = outputs.iter().map(|moment| moment.value().to_string()).collect();
        let message = format!("{} is not among the run's outputs ({})", moment.value(), there.join(", "));
        return Err(refuse(key, message));
    }
    Ok(selection)
}
