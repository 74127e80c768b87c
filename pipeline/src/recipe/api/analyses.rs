//! Analyses of a run's outputs.

use super::call::Call;
use super::finder::{finder, out_of_range, refused};
use super::handles::{Analysis, NAME, Naming, Run, input_path, place_of, read_by, species_of};
use super::initial::check_power;
use crate::campaign::Node;
use crate::campaign::deferred::Known;
use crate::moment::Moment;
use crate::recipe::error::{Bound, Refusal, plain};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode, decode_with, take};
use crate::recipe::reference::Function;
use crate::stage::compare::Compare;
use crate::stage::density_pdf::{DensityPdfs, PdfOptions};
use crate::stage::force_test::{ForceTest, MASSES, SolverOptions};
use crate::stage::halos::{Halos, HalosAndProfiles, PROFILE_CHOICE, ProfileChoice};
use crate::stage::initial::InitialCondition;
use crate::stage::maps::{MapWithTable, Maps, STYLE, View};
use crate::stage::mass_function::{HALOS, MassFunctions, PREDICTION, PredictionOptions};
use crate::stage::power_spectrum::{LinearTheory, PowerSpectra};
use crate::stage::refinement_ratio::RefinementRatios;
use crate::stage::{Selection, Stage};
use comove_analysis::density_pdf;
use comove_analysis::halos::Finder;
use comove_analysis::halos::fof::FofOptions;
use comove_analysis::halos::mass_function::MassFunctionOptions;
use comove_analysis::halos::overdensity::MassDefinition;
use comove_analysis::halos::peaks::Reference;
use comove_analysis::halos::profile::ProfileOptions;
use comove_analysis::map::MapOptions;
use comove_analysis::power_spectrum::{PowerOptions, Species};
use comove_ic::PowerSource;
use comove_ic::problems::PointMasses;
use comove_sim::fields::FieldSet;
use comove_sim::{Coordinates, StartFacts};
use rhai::{Array, Dynamic, Engine, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

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
        "A catalogue of halos, of friends of friends or around density peaks, with masses, radii and gas fractions for \
         200m, 200c, 500c and the virial density (Bryan & Norman 1998), and radial profiles of the heaviest.",
    )
    .used_as("halos(RUN, #{ … })")
    .with_options(&["Common", "FinderChoice", "HaloOptions", "FofOptions", "ProfileChoice", "Naming"]),
    Function::new(
        &[
            "mass_function(halos: Analysis) -> Analysis",
            "mass_function(halos: Analysis, options: Map) -> Analysis",
            "mass_function(run: Run) -> Analysis",
            "mass_function(run: Run, options: Map) -> Analysis",
        ],
        "dn/dlnM of the catalogues of `halos`, beside Tinker et al. 2008 and Despali et al. 2016. Of a run it is that of its \
         friends-of-friends halos with default options, at the outputs of `at_z`.",
    )
    .used_as("mass_function(HALOS, #{ … }) or mass_function(RUN, #{ … })")
    .with_options(&["Common", "MassFunctionOptions", "PredictionOptions", "Naming"]),
    Function::new(
        &["power_spectrum(run: Run) -> Analysis", "power_spectrum(run: Run, options: Map) -> Analysis"],
        "P(k) of the density contrast on the uniform grid of a level; of all matter beside linear theory. That has the \
         spectrum of `ic_gaussian`, or after `ic_load` that of Eisenstein & Hu with the cosmology's `sigma8`, and grows as \
         D²; runs from other initial conditions have none.",
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
         than resolve the finest cells. Densities of dark matter and of all matter are of particles, each spread over a \
         cloud that reaches to its 32nd nearest particle along each axis, or over three leaf cells where those are wider.",
    )
    .used_as("projection(RUN, #{ … })")
    .with_options(&["Common", "MapOptions", "MapStyle", "Naming"]),
    Function::new(
        &["density_pdf(run: Run) -> Analysis", "density_pdf(run: Run, options: Map) -> Analysis"],
        "How volume and mass of the gas are distributed over its density. `histogram` of a snapshot has that of all matter.",
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
pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    let of_one =
        |context: NativeCallContext, run: Run, options| refinement_ratio(context, vec![Dynamic::from(run)], options);
    register_with_options!(engine, "refinement_ratio", of_one, context: NativeCallContext, run: Run);
    register_with_options!(engine, "refinement_ratio", refinement_ratio, context: NativeCallContext, runs: Array);
    with_options(engine, "halos", |name, mut options, outputs, run| {
        let choice: ProfileChoice = decode(name, take(&mut options, &PROFILE_CHOICE))?;
        let finder = finder(name, options, &[&PROFILE_CHOICE[..], &COMMON].concat())?;
        let ProfileChoice { profiles, profile } = choice;
        profile.check(box_of(&run.node)).map_err(|error| refused(name, &error))?;
        let species = species_of(&run.node);
        let refuse = |message: &str, option| Err(Refusal::error(name, message, Some(option)));
        match &finder {
            Finder::Fof(_) if species.is_some_and(|species| !species.dark_matter) => {
                return refuse(WITHOUT_PARTICLES, "finder");
            }
            Finder::Peaks(_) if species.is_some_and(|species| !species.gas) => {
                let message = "finder = \"peaks\": density peaks need gas, and the run has none; use finder: \"fof\"";
                return refuse(message, "finder");
            }
            Finder::Peaks(options) if options.reference == Reference::Critical && !is_comoving(&run.node) => {
                let message = "reference = \"critical\": needs comoving coordinates; use \"mean\"";
                return refuse(message, "reference");
            }
            _ => {}
        }
        Ok(Halos { outputs, options: HalosAndProfiles { finder, profiles, profile } })
    });
    let shared = session.clone();
    let of_halos =
        move |context: NativeCallContext, halos: Analysis, options| mass_function(&context, &shared, halos.0, options);
    register_with_options!(engine, "mass_function", of_halos, context: NativeCallContext, halos: Analysis);
    let shared = session.clone();
    let of_run = move |context: NativeCallContext, run: Run, mut options: Map| {
        let halos = friends_of_friends(&context, &run, take(&mut options, &COMMON[..2]))?;
        mass_function(&context, &shared, halos, options)
    };
    register_with_options!(engine, "mass_function", of_run, context: NativeCallContext, run: Run);
    for (name, view) in [("slice", View::Slice), ("projection", View::Projection)] {
        with_options(engine, name, move |name, mut options, outputs, run| {
            let style = decode(name, take(&mut options, &STYLE))?;
            if !has_gas(&run.node) && !options.contains_key("field") {
                options.insert("field".into(), "matter_density".into());
            }
            let options: MapOptions = decode_with(name, options, &[&STYLE[..], &COMMON].concat())?;
            let of_gas = || run.node.stage().as_run().and_then(|run| run.parameters.scalars.fields().ok());
            let fields = if has_gas(&run.node) { of_gas() } else { Some(FieldSet::without_gas()) };
            options.check(fields.as_ref(), box_of(&run.node)).map_err(|error| refused(name, &error))?;
            if options.field == "dark_matter_density" && !has_dark_matter(&run.node) {
                let message =
                    "field = \"dark_matter_density\": the run has no dark matter; set dark_matter: true in ic_gaussian";
                return Err(Refusal::error(name, message, Some("field")));
            }
            if options.field == "potential" && run.node.stage().as_run().is_some_and(|run| !run.parameters.gravity) {
                let message = "field = \"potential\": the run has no potential; set gravity: true";
                return Err(Refusal::error(name, message, Some("field")));
            }
            Ok(Maps { outputs, map: MapWithTable { view, options }, style })
        });
    }
    with_options(engine, "power_spectrum", |name, options, outputs, run| {
        let options: PowerOptions = decode_with(name, options, &COMMON)?;
        let (gas, dark_matter) = (has_gas(&run.node), has_dark_matter(&run.node));
        options.check(gas, dark_matter).map_err(|error| refused(name, &error))?;
        let finest = run.node.stage().as_run().map_or(u8::MAX, |run| run.parameters.max_level);
        let of_gas = gas && options.species != Species::DarkMatter;
        if of_gas && options.level > usize::from(finest) {
            let message = format!(
                "level = {}: must be at most the run's max_level = {finest}, the level of its finest gas cells",
                options.level
            );
            return Err(Refusal::error(name, message, Some("level")));
        }
        let linear = initial_of(&run.node).filter(|_| options.species == Species::Matter).map(LinearTheory::of);
        Ok(PowerSpectra { outputs, options, linear })
    });
    with_options(engine, "density_pdf", |name, options, outputs, run| {
        if !has_gas(&run.node) {
            let message = "needs gas, and the run has none; use snapshot.histogram(\"matter_density\") in measure";
            return Err(Refusal::error(name, message, None));
        }
        let options: PdfOptions = decode_with(name, options, &COMMON)?;
        density_pdf::check(options.bins_per_decade).map_err(|error| refused(name, &error))?;
        Ok(DensityPdfs { outputs, options })
    });
    register_with_options!(engine, "compare", compare, context: NativeCallContext, run: Run);
    engine.register_fn("force_test", |context: NativeCallContext, options: Map| -> Bound<Analysis> {
        let call = Call::new("force_test", Vec::new(), options)?;
        let make = |mut options: Map, _: &Known| {
            let masses: PointMasses = decode("force_test", take(&mut options, &MASSES))?;
            let options: SolverOptions = decode_with("force_test", options, &[&MASSES[..], &[NAME]].concat())?;
            masses.check(options.levels).map_err(|error| out_of_range("force_test", &error))?;
            Ok(Node::new(ForceTest { masses, options }, Vec::new()))
        };
        Ok(Analysis(call.stage(&context, make)?))
    });
}

/// What is said where there are no particles to link.
const WITHOUT_PARTICLES: &str = "finder = \"fof\": friends of friends need dark matter, and the run has none; set \
                                                 dark_matter: true in ic_gaussian, or use finder: \"peaks\" for \
                                                 density peaks of the gas";

/// The mesh that a run or what is made of it begins with, if it is known.
fn initial_of(node: &Node) -> Option<&InitialCondition> {
    node.stage().as_initial().or_else(|| read_by(node).iter().find_map(initial_of))
}

/// Whether a run has gas, as far as that is known.
fn has_gas(node: &Node) -> bool {
    species_of(node).is_none_or(|species| species.gas)
}

/// Whether a run has dark matter, as far as that is known.
fn has_dark_matter(node: &Node) -> bool {
    species_of(node).is_none_or(|species| species.dark_matter)
}

/// Box lengths of a run, if they are known.
fn box_of(node: &Node) -> Option<[f64; 3]> {
    start_of(node).map(|start| start.box_lengths)
}

/// The starting state of a run, if it is known.
fn start_of(node: &Node) -> Option<StartFacts> {
    node.stage().as_run().and_then(|run| run.origin.facts())
}

/// Whether a run is in comoving coordinates, as far as that is known.
fn is_comoving(node: &Node) -> bool {
    node.stage().as_run().is_none_or(|run| run.parameters.coordinates == Coordinates::Comoving)
}

/// The stage that finds a run's halos by friends of friends with default options.
fn friends_of_friends(context: &NativeCallContext<'_>, run: &Run, options: Map) -> Bound<Node> {
    const NAME: &str = "mass_function";
    if species_of(&run.node).is_some_and(|species| !species.dark_matter) {
        let message = format!("{WITHOUT_PARTICLES} in halos(RUN, #{{ … }}), which mass_function takes too");
        return Err(Refusal::error(NAME, message, None));
    }
    let call = Call::new(HALOS, vec![run.node.clone()], options)?;
    let run = run.clone();
    call.stage(context, move |mut options, _| {
        let outputs = selection(NAME, &run, &mut options)?;
        let finder = Finder::Fof(FofOptions::default());
        let options = HalosAndProfiles { finder, profiles: 0, profile: ProfileOptions::default() };
        Ok(Node::new(Halos { outputs, options }, vec![run.node.clone()]))
    })
}

fn mass_function(
    context: &NativeCallContext<'_>,
    session: &Arc<Session>,
    halos: Node,
    options: Map,
) -> Bound<Analysis> {
    const FUNCTION: &str = "mass_function";
    if halos.stage().kind() != HALOS {
        let message = format!("needs halos(RUN, #{{ … }}) or a run, not {}", halos.stage().kind());
        return Err(Refusal::error(FUNCTION, message, None));
    }
    if !halos.inputs().iter().all(is_comoving) {
        let message = "the run has non-comoving coordinates, and the mass function needs a cosmology";
        return Err(Refusal::error(FUNCTION, message, None));
    }
    let call = Call::new(FUNCTION, vec![halos.clone()], options)?;
    let (session, place) = (session.clone(), place_of(context));
    let node = call.stage(context, move |mut options, _| {
        let PredictionOptions { mut power } = decode(FUNCTION, take(&mut options, &PREDICTION))?;
        if let Some(PowerSource::CambTransfer(path) | PowerSource::CambPower(path)) = &mut power {
            *path = input_path(FUNCTION, &session, &path.to_string_lossy())?;
        }
        let cosmology = initial_of(&halos).map(|initial| match initial {
            InitialCondition::Gaussian(ic) => ic.cosmology,
            InitialCondition::Load(ic, _) => ic.cosmology,
        });
        if let (Some(power), Some(cosmology)) = (&power, &cosmology) {
            if cosmology.has_neutrinos() {
                let message = format!(
                    "power = {}: with m_nu_ev predictions take the tables of ic_gaussian; remove power",
                    power.name()
                );
                return Err(Refusal::error(FUNCTION, message, Some("power")));
            }
            check_power(FUNCTION, &session, place, power, cosmology)?;
        }
        let options: MassFunctionOptions = decode_with(FUNCTION, options, &[&PREDICTION[..], &[NAME]].concat())?;
        options.check().map_err(|error| refused(FUNCTION, &error))?;
        let is_of_peaks = match &halos.stage().parameters()["finder"] {
            Value::String(_) => species_of(&halos).is_some_and(|species| !species.dark_matter),
            finder => finder.get("peaks").is_some(),
        };
        if options.definition == MassDefinition::Fof && is_of_peaks {
            let message =
                "definition = \"fof\": needs friends-of-friends halos, and these are density peaks; set finder: \
                                     \"fof\" in halos";
            return Err(Refusal::error(FUNCTION, message, Some("definition")));
        }
        let of_run = || match initial_of(&halos)? {
            InitialCondition::Gaussian(ic) => Some(ic.power.clone()),
            InitialCondition::Load(..) => None,
        };
        let power = power.or_else(of_run).unwrap_or_default();
        let start = initial_of(&halos).and_then(|initial| LinearTheory::of(initial).start);
        Ok(Node::new(MassFunctions { options, power, start }, vec![halos.clone()]))
    })?;
    Ok(Analysis(node))
}

fn refinement_ratio(context: NativeCallContext<'_>, runs: Array, options: Map) -> Bound<Analysis> {
    let runs = runs.into_iter().map(|value| {
        let what = plain(value.type_name());
        let run = value.try_cast::<Run>();
        run.map(|r| r.node)
            .ok_or_else(|| Refusal::error("refinement_ratio", format!("the list holds {what}, not a run"), None))
    });
    let runs = runs.collect::<Bound<Vec<_>>>()?;
    if runs.is_empty() {
        return Err(Refusal::error("refinement_ratio", "the list is empty; give at least one run", None));
    }
    let call = Call::new("refinement_ratio", runs.clone(), options)?;
    let node = call.stage(&context, move |options, _| {
        decode_with::<Naming>("refinement_ratio", options, &[])?;
        Ok(Node::new(RefinementRatios, runs.clone()))
    })?;
    Ok(Analysis(node))
}

fn compare(context: NativeCallContext<'_>, run: Run, options: Map) -> Bound<Analysis> {
    if run.node.decision().is_some() {
        let message = "the solution depends on options of the run that are not known yet; call compare in then(…)";
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
        let message = "the run has no solution to compare with; start it from problem(\"name\", #{ … })";
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
        (Some(_), Some(_)) => return Err(refuse("at_t", "at_z and at_t exclude each other; remove one".into())),
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
