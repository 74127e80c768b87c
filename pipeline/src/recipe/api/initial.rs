//! `ic_gaussian`, `ic_load` and `ic_report`.

use super::call::Call;
use super::failure::failure;
use super::finder::out_of_range;
use super::handles::{Analysis, Initial, NAME, Naming, input_path, name_of, place_of};
use super::later::{needs_of_any, substituted};
use crate::campaign::Node;
use crate::campaign::deferred::Known;
use crate::error::PipelineError;
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode_with, refusal};
use crate::recipe::reference::Function;
use crate::recipe::source::Place;
use crate::stage::ic::{GaussianOptions, InitialCondition, LoadOptions, TITLE, shown, zoom_bytes};
use crate::stage::ic_report::IcReport;
use comove_ic::gaussian_ic::{NEEDS_DARK_MATTER, NEEDS_NO_ZOOM, NEEDS_PARTICLES, all_baryons};
use comove_ic::load_ic::FOR_GAS_ALONE;
use comove_ic::{GaussianIc, IcError, LinearPower, LoadFormat, NoiseFile, PowerSource, SpeciesRatios, SpeciesTransfer};
use comove_kernels::memory;
use comove_sim::Cosmology;
use rhai::{Dynamic, Engine, EvalAltResult, ImmutableString, Map, NativeCallContext};
use std::path::Path;
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &["ic_gaussian(cosmology: Cosmology, options: Map) -> InitialCondition"],
        "A Gaussian random field with the velocities of the growing mode.",
    )
    .used_as("ic_gaussian(COSMOLOGY, #{ box_mpc_h, cells, z, seed, … })")
    .with_options(&["GaussianOptions", "Naming"]),
    Function::new(
        &["ic_load(cosmology: Cosmology, file: String, options: Map) -> InitialCondition"],
        "A uniform mesh or particles from a file, named relative to the recipe's folder, from several whose first is `name.0.hdf5` or \
         `name.0`, or from a folder of GRAFIC or Enzo files. Box, redshift and cosmology that the file states must be the recipe's.",
    )
    .used_as("ic_load(COSMOLOGY, \"file\", #{ box_mpc_h, cells, z, … })")
    .with_options(&["LoadOptions", "Naming"]),
    Function::new(
        &[
            "ic_report(initial: InitialCondition) -> Analysis",
            "ic_report(initial: InitialCondition, options: Map) -> Analysis",
        ],
        "An initial condition of `ic_gaussian` or `ic_load` beside linear theory: a table of findings with the mistakes that would \
         explain them, and a figure of density, P(k) and velocities.",
    )
    .used_as("ic_report(IC)")
    .with_options(&["Naming"]),
];

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    register_with_options!(engine, "ic_report", report, context: NativeCallContext, initial: Initial);
    let shared = session.clone();
    let gaussian = move |context: NativeCallContext, cosmology: Cosmology, options: Map| -> Bound<Initial> {
        let (shared, place) = (shared.clone(), place_of(&context));
        later_or_now("ic_gaussian", &context, options, move |options| {
            let mut options: GaussianOptions = decode_with("ic_gaussian", options, &[NAME])?;
            if let PowerSource::CambTransfer(path) | PowerSource::CambPower(path) = &mut options.power {
                *path = input_path("ic_gaussian", &shared, &path.to_string_lossy())?;
            }
            if !(options.gas || options.dark_matter) {
                let message = "gas: false without dark matter is an empty universe; set dark_matter: true";
                return Err(Refusal::error("ic_gaussian", message, Some("gas")));
            }
            if options.baryons_only && (options.dark_matter || !options.gas) {
                let message = "baryons_only: true excludes dark matter; remove it, or dark_matter and gas";
                return Err(Refusal::error("ic_gaussian", message, Some("baryons_only")));
            }
            if let Some(source) = &mut options.species_transfer {
                if !(options.gas && options.dark_matter || cosmology.has_neutrinos()) {
                    let message = format!("species_transfer: {NEEDS_DARK_MATTER}");
                    return Err(Refusal::error("ic_gaussian", message, Some("species_transfer")));
                }
                let path = source.file_mut();
                *path = input_path("ic_gaussian", &shared, &path.to_string_lossy())?;
            }
            check_follow("ic_gaussian", options.follow.as_deref())?;
            if options.zoom.is_some() && !options.dark_matter {
                return Err(Refusal::error("ic_gaussian", format!("zoom: {NEEDS_PARTICLES}"), Some("zoom")));
            }
            if let Some(zoom) = options.zoom {
                zoom.check(options.cells.0, options.box_mpc_h).map_err(|error| out_of_range("ic_gaussian", &error))?;
            }
            check_noise(&shared, &mut options)?;
            check_power("ic_gaussian", &shared, place, &options.power, &cosmology)?;
            if let Some(source) = options.species_transfer.as_ref().filter(|source| source.file().exists()) {
                SpeciesRatios::new(source, &cosmology, options.z).map_err(|error| unusable("ic_gaussian", error))?;
            }
            check_tables_of_neutrinos(&options, &cosmology)?;
            if !(options.dark_matter || options.baryons_only)
                && let Some(warning) = all_baryons(&cosmology, TELL)
            {
                shared.warn("ic_gaussian", place, warning);
            }
            let (ic, root) = options.build(cosmology);
            if let InitialCondition::Gaussian(ic @ GaussianIc { zoom: Some(zoom), .. }) = &ic {
                warn_of_memory(&shared, place, zoom_bytes(ic, zoom), zoom.finest(ic.cells));
                let (outside, all) = (ic.outside_zoom(), ic.follow.len());
                if (1..all).contains(&outside) {
                    let text = "have no particle of the finest lattice, and are not followed: enlarge extent of zoom";
                    shared.warn("ic_gaussian", place, format!("follow: {outside} of {all} places {text}"));
                }
            }
            handle("ic_gaussian", ic, root)
        })
    };
    engine.register_fn("ic_gaussian", gaussian);
    let shared = session.clone();
    let load = move |context: NativeCallContext,
                     cosmology: Cosmology,
                     file: ImmutableString,
                     options: Map|
          -> Bound<Initial> {
        let path = input_path("ic_load", &shared, &file)?;
        let (shared, place) = (shared.clone(), place_of(&context));
        later_or_now("ic_load", &context, options, move |options| {
            let options: LoadOptions = decode_with("ic_load", options, &[NAME])?;
            check_follow("ic_load", options.follow.as_deref())?;
            // what a file of comove_ic holds is known when it is read
            let is_of_gas = matches!(options.format, Some(LoadFormat::UmIc { .. })) && !options.baryons_only;
            if let Some(warning) = all_baryons(&cosmology, FOR_GAS_ALONE).filter(|_| is_of_gas) {
                shared.warn("ic_load", place, warning);
            }
            let contents = options.contents(&path).map_err(|error| failure("ic_load", &error))?;
            if options.follow.is_some() && contents.is_some_and(|contents| contents.particles == 0) {
                let message = format!("follow: {} holds no dark matter; remove follow", path.display());
                return Err(Refusal::error("ic_load", message, Some("follow")));
            }
            let built = options.build(cosmology, path.clone(), contents);
            let missing = |name: &str| refusal("ic_load", ".", &format!("missing field `{name}`"), &[NAME]);
            let (ic, root) = built.map_err(missing)?;
            handle("ic_load", ic, root)
        })
    };
    engine.register_fn("ic_load", load);
}

/// Refuses a list of no particles, which a selection may have left.
fn check_follow(function: &str, follow: Option<&[u64]>) -> Bound<()> {
    match follow {
        Some([]) => {
            let message = "follow: the list is empty, and refinement would follow nothing; give ids, or remove follow";
            Err(Refusal::error(function, message, Some("follow")))
        }
        _ => Ok(()),
    }
}

/// Checks where the noise comes from and the order of perturbation theory; makes the path of a file absolute and, where the file
/// is there, reads its header.
fn check_noise(session: &Session, options: &mut GaussianOptions) -> Bound<()> {
    const FUNCTION: &str = "ic_gaussian";
    let refuse = |option: &'static str, message: &str| Err(Refusal::error(FUNCTION, message, Some(option)));
    if options.lpt_order.is_some() && !options.dark_matter {
        let message = "lpt_order: needs dark matter, because gas alone has linear velocities; set dark_matter: true, or remove \
                       lpt_order";
        return refuse("lpt_order", message);
    }
    let Some(path) = &mut options.noise else {
        if options.noise_sign.is_some() {
            return refuse("noise_sign", "noise_sign: needs noise; set it, or remove noise_sign");
        }
        return match options.seed {
            Some(_) => Ok(()),
            None => Err(refusal(FUNCTION, ".", "missing field `seed`", &[NAME])),
        };
    };
    if options.seed.is_some() {
        return refuse("noise", "noise and seed exclude each other; remove one");
    }
    if options.zoom.is_some() {
        return refuse("noise", &format!("noise: {NEEDS_NO_ZOOM}"));
    }
    *path = input_path(FUNCTION, session, &path.to_string_lossy())?;
    if path.exists() {
        let noise = NoiseFile { path: path.clone(), sign: options.noise_sign };
        noise.check(options.cells.0).map_err(|error| unusable(FUNCTION, error))?;
    }
    Ok(())
}

/// The stage that examines an initial condition, now or once it is known.
fn report(context: NativeCallContext, initial: Initial, options: Map) -> Bound<Analysis> {
    const FUNCTION: &str = "ic_report";
    let (inputs, needs) = match &initial {
        Initial::Mesh { node, .. } => (vec![node.clone()], Vec::new()),
        Initial::Later { node: Some(node), needs, .. } => (vec![node.clone()], needs.clone()),
        Initial::Formula(_) | Initial::Later { .. } => {
            let message = "needs a mesh or particles of ic_gaussian or ic_load, and this is a formula";
            return Err(Refusal::error(FUNCTION, message, None));
        }
    };
    let call = Call { needs, ..Call::new(FUNCTION, inputs.clone(), options)? };
    let node = call.stage(&context, move |options, known| {
        if !options.is_empty() {
            decode_with::<Naming>(FUNCTION, options, &[])?;
        }
        let made = match &initial {
            Initial::Later { make, .. } => make(known)?,
            initial => initial.clone(),
        };
        let Initial::Mesh { node, .. } = made else { unreachable!("formulae are refused") };
        let ic = node.stage().as_initial().expect("a mesh is one").clone();
        Ok(Node::new(IcReport { ic }, inputs.clone()))
    })?;
    Ok(Analysis(node))
}

/// Warns of a zoom whose finest mesh does not fit into the memory that is free.
///
/// * `needed`: bytes that it takes
fn warn_of_memory(session: &Session, place: Place, needed: f64, finest: [usize; 3]) {
    if let Some(free) = memory::available().filter(|free| *free < needed) {
        let (mesh, needed, free) = (shown(finest), needed / memory::GIB, free / memory::GIB);
        let warning = format!(
            "zoom: the finest mesh has {mesh} cells and takes {needed:.1} GiB of memory, {free:.1} GiB are free: reduce levels or \
             cells, or run on several nodes (MPI), which share it"
        );
        session.warn("ic_gaussian", place, warning);
    }
}

/// What to do about gas that has all of omega_m.
const TELL: &str = "set dark_matter: true, with gas: false for dark matter alone, or baryons_only: true for gas with \
                    the mass of all matter";

/// Reads a table of the linear spectrum, if it is there, and warns of what it seems to hold instead.
pub(super) fn check_power(
    function: &str,
    session: &Session,
    place: Place,
    source: &PowerSource,
    cosmology: &Cosmology,
) -> Bound<()> {
    if source.file().is_some_and(Path::exists) {
        let power = LinearPower::new(source, cosmology).map_err(|error| unusable(function, error))?;
        power.remarks().iter().for_each(|remark| session.warn(function, place, remark));
    }
    Ok(())
}

/// Reads the two tables beside massive neutrinos, if both are there.
fn check_tables_of_neutrinos(options: &GaussianOptions, cosmology: &Cosmology) -> Bound<()> {
    let species = options.species_transfer.as_ref();
    let files = [options.power.file(), species.map(SpeciesTransfer::file)];
    if cosmology.has_neutrinos() && files.into_iter().all(|file| file.is_some_and(Path::exists)) {
        LinearPower::of_box(&options.power, species, cosmology, options.z)
            .map_err(|error| unusable("ic_gaussian", error))?;
    }
    Ok(())
}

fn unusable(function: &str, error: IcError) -> Box<EvalAltResult> {
    failure(function, &PipelineError::Ic(error))
}

/// The mesh that `make` makes of the options, now or once they are known.
fn later_or_now(
    function: &'static str,
    context: &NativeCallContext<'_>,
    mut options: Map,
    make: impl Fn(Map) -> Bound<Initial> + Send + Sync + 'static,
) -> Bound<Initial> {
    let name = name_of(function, &mut options)?;
    let needs = needs_of_any(&options);
    if needs.is_empty() {
        return Ok(match make(options)? {
            Initial::Mesh { node, facts } => Initial::Mesh { node: node.named(name), facts },
            other => other,
        });
    }
    let make = Arc::new(make);
    let (shared, map) = (Arc::clone(&make), Dynamic::from(options.clone()));
    let call = Call { name, title: TITLE.into(), ..Call::new(function, Vec::new(), options)? };
    let node = call.stage(context, move |options, _| match shared(options)? {
        Initial::Mesh { node, .. } => Ok(node),
        _ => unreachable!("{function} makes meshes"),
    })?;
    let make = move |known: &Known| make(substituted(&map, known)?.cast());
    Ok(Initial::Later { node: Some(node), needs, make: Arc::new(make) })
}

fn handle(function: &str, ic: InitialCondition, root: [usize; 3]) -> Bound<Initial> {
    let facts = ic.facts(root).map_err(|message| Refusal::error(function, message, Some("root")))?;
    let refuse = |key: &str, message: String| Err(Refusal::error(function, message, Some(key)));
    if facts.box_mpc_h <= 0.0 {
        return refuse("box_mpc_h", format!("box_mpc_h = {}: must be positive", facts.box_mpc_h));
    }
    if facts.z <= 0.0 {
        return refuse("z", format!("z = {}: must be positive", facts.z));
    }
    let checked = match &ic {
        InitialCondition::Gaussian(ic) => ic.check(),
        InitialCondition::Load(ic, _) => ic.check(),
    };
    checked.map_err(|error| out_of_range(function, &error))?;
    Ok(Initial::Mesh { node: Node::new(ic, Vec::new()), facts })
}
