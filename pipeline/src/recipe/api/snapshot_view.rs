//! What a `measure` closure sees of a snapshot: redshift, fields as arrays, the densest cell, halos, profiles, totals.

use super::field_view::{FieldView, grid_limit_mib};
use super::finder::finder;
use crate::recipe::error::{Bound, Cause, Refusal, plain};
use crate::recipe::options::{decode, decode_with, from_json, take};
use crate::recipe::reference::{Function, Member, Needs, Type};
use comove_analysis::AnalysisError;
use comove_analysis::cell_fields::{Gas, field_of};
use comove_analysis::cells;
use comove_analysis::covering_grid::grid_within;
use comove_analysis::halos::Catalogue;
use comove_analysis::halos::profile::{ProfileCentre, ProfileOptions, halo_profile_in};
use comove_analysis::lagrangian::{LagrangianOptions, lagrangian_region};
use comove_analysis::map::{self, MapOptions};
use comove_analysis::matter::{self, OneFluid, Totals};
use comove_analysis::particles::{self, ParticleOptions};
use comove_analysis::placement::position_in_box;
use comove_analysis::power_spectrum::{PowerOptions, power_spectrum_within};
use comove_analysis::region::{HistogramOptions, RegionOptions, histogram, statistics};
use comove_kernels::memory;
use comove_sim::parallel::Communicator;
use comove_sim::records::Sums;
use comove_sim::{Coordinates, Snapshot, SnapshotHeader};
use ndarray::Array3;
use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString, Map};
use serde::Serialize;
use std::sync::{Arc, OnceLock};

const MASS: Member = Member::new("mass", "float", "mass").in_unit("code mass");
const MOMENTUM: Member = Member::new("momentum", "Array", "momentum along x, y, z").in_unit("code momentum");
const KINETIC: Member = Member::new("kinetic", "float", "kinetic energy").in_unit("code energy");
const ENERGY: Member = Member::new("energy", "float", "kinetic and thermal energy").in_unit("code energy");

/// The unit of a field, which the reference lists.
const OF_FIELD: &str = "the field's unit";

pub(crate) const SNAPSHOT: Type = Type {
    name: "Snapshot",
    text: "What a closure sees of an output. Lengths are in comoving Mpc/h, in non-comoving coordinates in code units.",
    properties: &[
        ("redshift", "float", "redshift, in comoving coordinates"),
        ("a", "float", "scale factor, in comoving coordinates"),
        ("t", "float", "code time since the start"),
        ("step", "int", "root steps taken"),
        ("box_mpc_h", "float", "box length along x, in comoving coordinates"),
        ("box", "float", "box length along x in code units"),
        ("levels", "int", "levels that there are"),
    ],
    methods: &[
        Function::new(
            &["densest(snapshot: Snapshot) -> Map"],
            "The leaf cell with the largest density of all matter.",
        )
        .giving(&[
            Member::new("position", "Array", "its centre").in_unit("code length"),
            Member::new("density", "float", "density of all matter").in_unit("code density"),
            Member::new("level", "int", "its level"),
        ]),
        Function::new(
            &["totals(snapshot: Snapshot) -> Map"],
            "Sums of all matter, and those of each species as `gas` and `dark_matter`: of gas over the leaf cells, of dark \
             matter over the particles.",
        )
        .giving(&[
            MASS,
            MOMENTUM,
            KINETIC,
            ENERGY,
            Member::new("gas", "Map", "of the gas").needing(Needs::Gas).with(&[MASS, MOMENTUM, KINETIC, ENERGY]),
            Member::new("dark_matter", "Map", "of dark matter")
                .needing(Needs::DarkMatter)
                .with(&[MASS, MOMENTUM, KINETIC, ENERGY]),
        ]),
        Function::new(
            &["halos(snapshot: Snapshot) -> Array", "halos(snapshot: Snapshot, options: Map) -> Array"],
            "A list of maps, the heaviest halo first, with the [members](#halos_json) of `halos[]`: `id`, `position_mpc_h`, `radius_mpc_h`, `mass_msun_h`, \
             `velocity_km_s`, `overdensities` (by `\"200m\"`, `\"200c\"`, `\"500c\"`, `\"vir\"`: a map with `mass_msun_h`, \
             `radius_mpc_h`, `gas_fraction`, or `()`), …; of density peaks `peak_density`, `temperature_k`, of friends of \
             friends `particles`, `dispersion_km_s`, …. Friends of friends where there is dark matter, unless the options say \
             otherwise.",
        )
        .with_options(&["FinderChoice", "HaloOptions", "FofOptions"]),
        Function::new(
            &[
                "profile(snapshot: Snapshot, halo: Map) -> Array",
                "profile(snapshot: Snapshot, halo: Map, options: Map) -> Array",
            ],
            "A list of shells around one of the halos with the [members](#profile_json) of `shells[]`: `r_mpc_h`, `density`, `temperature_k`, \
             `radial_velocity_km_s`, `enclosed_mass_msun_h`, ….",
        )
        .with_options(&["ProfileOptions"]),
        Function::new(
            &[
                "field(snapshot: Snapshot, name: String) -> Field",
                "field(snapshot: Snapshot, name: String, level: int) -> Field",
            ],
            "A field on the uniform grid of a level (0), finer cells averaged. It may take a quarter of the \
             memory that is free.",
        ),
        Function::new(
            &["value(snapshot: Snapshot, name: String, position: Array) -> float"],
            "A field in the leaf cell at a position `[x, y, z]` in the box; the upper face of a periodic axis is its lower \
             one. Of a position beyond a periodic face `x % box` is in the box.",
        ),
        Function::new(
            &[
                "statistics(snapshot: Snapshot, name: String) -> Map",
                "statistics(snapshot: Snapshot, name: String, options: Map) -> Map",
            ],
            "A field over the leaf cells of a region. `mass` is that of the matter which the field describes: of all matter for `matter_density` and \
             `potential`, of dark matter for `dark_matter_density`, else of the gas. Mean and variance of temperatures, \
             velocities, Mach numbers and mass fractions are by mass of the gas, of other fields by volume.",
        )
        .giving(&[
            Member::new("cells", "int", "leaf cells"),
            Member::new("volume", "float", "their volume").in_unit("code volume"),
            MASS,
            Member::new("min", "float", "the least value").in_unit(OF_FIELD),
            Member::new("max", "float", "the largest value").in_unit(OF_FIELD),
            Member::new("mean", "float", "the mean value").in_unit(OF_FIELD),
            Member::new("variance", "float", "the mean square of the difference from it").in_unit("square of the field's unit"),
        ])
        .with_options(&["RegionOptions"]),
        Function::new(
            &[
                "histogram(snapshot: Snapshot, name: String) -> Array",
                "histogram(snapshot: Snapshot, name: String, options: Map) -> Array",
            ],
            "How cells, volume and mass of a region are distributed over the values of a field: a list of `#{ \
             low, high, cells, volume, mass }`, the edges of the bins in the [field's unit](#fields), the others as of \
             `statistics`.",
        )
        .with_options(&["RegionOptions", "HistogramOptions"]),
        Function::new(
            &["particles(snapshot: Snapshot) -> Array", "particles(snapshot: Snapshot, options: Map) -> Array"],
            "The dark-matter particles of a region by identity, a list of `#{ id, position, velocity, mass }`: comoving \
             positions in Mpc/h, peculiar velocities in km/s, masses in Msun/h, in non-comoving coordinates in code units.",
        )
        .with_options(&["RegionOptions", "ParticleOptions"]),
        Function::new(
            &[
                "lagrangian_region(snapshot: Snapshot, particles: Array) -> Map",
                "lagrangian_region(snapshot: Snapshot, particles: Array, options: Map) -> Map",
            ],
            "The smallest box that holds the places of particles at the start of the run, for `zoom` of `ic_gaussian`: from a list of \
             entries of `particles` (all of them: with a larger `most`) or of identities. Only in runs from `ic_gaussian`, where identities are numbers of a lattice.",
        )
        .giving(&[
            Member::new("center", "Array", "its centre").in_unit("Mpc/h"),
            Member::new("extent", "Array", "its lengths along x, y, z").in_unit("Mpc/h"),
        ])
        .with_options(&["LagrangianOptions"]),
        Function::new(
            &["slice(snapshot: Snapshot) -> Field", "slice(snapshot: Snapshot, options: Map) -> Field"],
            "The pixels of a slice, `at(i, j, 0)` from the lower left.",
        )
        .with_options(&["MapOptions"]),
        Function::new(
            &["projection(snapshot: Snapshot) -> Field", "projection(snapshot: Snapshot, options: Map) -> Field"],
            "The pixels of a projection, as those of a slice.",
        )
        .with_options(&["MapOptions"]),
        Function::new(
            &["power_spectrum(snapshot: Snapshot) -> Map", "power_spectrum(snapshot: Snapshot, options: Map) -> Map"],
            "P(k), a map with the [members](#power_spectrum_json) of `power_spectrum_*.json`: `#{ k_nyquist_h_mpc, bins, … }`, \
             a bin being `#{ k_h_mpc, power_mpc3_h3, modes, shot_noise_mpc3_h3 }`.",
        )
        .with_options(&["PowerOptions"]),
    ],
    members: &[],
};

const REGION: [&str; 4] = ["min", "max", "center", "radius"];

/// A snapshot in a closure; copies share the data.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotView(Arc<Snapshot>, Arc<OnceLock<OneFluid>>);

impl SnapshotView {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(snapshot, Arc::default())
    }

    /// All its matter, which is put together once.
    fn matter(&self) -> &OneFluid {
        self.1.get_or_init(|| OneFluid::new(&self.0))
    }
}

/// Registers the type with its properties and methods.
pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<SnapshotView>("snapshot")
        .register_get("redshift", |s: &mut SnapshotView| comoving(s, "redshift").map(|header| header.redshift()))
        .register_get("a", |s: &mut SnapshotView| comoving(s, "a").map(|header| header.a))
        .register_get("t", |s: &mut SnapshotView| s.0.header.time)
        .register_get("step", |s: &mut SnapshotView| s.0.header.step as i64)
        .register_get("box_mpc_h", |s: &mut SnapshotView| comoving(s, "box_mpc_h").map(|header| header.box_length))
        .register_get("box", |s: &mut SnapshotView| s.0.header.box_length)
        .register_get("levels", |s: &mut SnapshotView| s.0.state.tree.level_count() as i64)
        .register_fn("densest", |s: &mut SnapshotView| densest(&s.0))
        .register_fn("totals", |s: &mut SnapshotView| totals(&s.0))
        .register_fn("field", |s: &mut SnapshotView, name: ImmutableString| field(&s.0, &name, 0))
        .register_fn("field", |s: &mut SnapshotView, name: ImmutableString, level: i64| field(&s.0, &name, level))
        .register_fn("value", value);
    register_with_options!(engine, "halos", halos, s: &mut SnapshotView);
    register_with_options!(engine, "profile", profile, s: &mut SnapshotView, halo: Map);
    register_with_options!(engine, "statistics", over, s: &mut SnapshotView, name: ImmutableString);
    register_with_options!(engine, "histogram", distribution, s: &mut SnapshotView, name: ImmutableString);
    register_with_options!(engine, "particles", particles, s: &mut SnapshotView);
    register_with_options!(engine, "lagrangian_region", region_at_the_start, s: &mut SnapshotView, particles: Array);
    register_with_options!(engine, "power_spectrum", power, s: &mut SnapshotView);
    for (name, make) in [("slice", map::slice as MapFunction), ("projection", map::projection)] {
        let of = move |s: &mut SnapshotView, options| pixels(name, make, &s.0, options);
        register_with_options!(engine, name, of, s: &mut SnapshotView);
    }
}

/// The header of a comoving snapshot, which alone has the property `name`.
fn comoving<'a>(view: &'a SnapshotView, name: &str) -> Bound<&'a SnapshotHeader> {
    let header = &view.0.header;
    match header.coordinates {
        Coordinates::Comoving => Ok(header),
        Coordinates::Plain => {
            let message = "the snapshot has non-comoving coordinates; use t and box";
            Err(Refusal::because(Cause::Fields, name, message, None))
        }
    }
}

/// An analysis of a snapshot that is refused.
fn failed(function: &str, error: &AnalysisError) -> Box<EvalAltResult> {
    let cause = match error {
        AnalysisError::UnknownField { .. } | AnalysisError::MissingField { .. } => Cause::Fields,
        _ => Cause::Data,
    };
    Refusal::because(cause, function, error, None)
}

fn densest(snapshot: &Snapshot) -> Bound<Map> {
    // an initial condition has particles without their density in cells
    field_of(snapshot, "matter_density").map_err(|error| failed("densest", &error))?;
    let cell = cells::densest(snapshot);
    Ok(Map::from([
        ("position".into(), cell.position.map(Dynamic::from).to_vec().into()),
        ("density".into(), cell.matter_density().into()),
        ("level".into(), (cell.level as i64).into()),
    ]))
}

fn totals(snapshot: &Snapshot) -> Map {
    let map = |sums: &Sums| -> Map { from_json(&serde_json::to_value(sums).expect("numbers")).cast() };
    let Totals { matter: all, gas, dark_matter } = matter::totals(snapshot);
    let mut totals = map(&all);
    for (name, sums) in [("gas", gas), ("dark_matter", dark_matter)] {
        totals.extend(sums.map(|sums| (name.into(), map(&sums).into())));
    }
    totals
}

fn halos(view: &mut SnapshotView, options: Map) -> Bound<Array> {
    let finder = finder("halos", options, &[])?;
    let found = finder.find(&Communicator::alone(), &(&*view.0).into(), view.matter());
    let found = found.map_err(|error| failed("halos", &error))?;
    Ok(match found.expect("one process has all halos") {
        Catalogue::Fof(found) => found.halos.iter().map(dynamic).collect(),
        Catalogue::Peaks(found) => found.halos.iter().map(dynamic).collect(),
    })
}

fn profile(view: &mut SnapshotView, halo: Map, options: Map) -> Bound<Array> {
    let halo: ProfileCentre = decode("profile", halo)?;
    let options: ProfileOptions = decode("profile", options)?;
    let profile = halo_profile_in(&view.0, view.matter(), &halo, &options).map_err(|e| failed("profile", &e))?;
    Ok(profile.shells.iter().map(dynamic).collect())
}

fn field(snapshot: &Snapshot, name: &str, level: i64) -> Bound<FieldView> {
    let level = usize::try_from(level)
        .map_err(|_| Refusal::error("field", format!("level {level}: must not be negative"), None))?;
    let values =
        grid_within(snapshot, name, level, grid_limit_mib(memory::available())).map_err(|e| failed("field", &e))?;
    Ok(FieldView(Arc::new(values)))
}

/// The value of a field in the leaf cell at a position.
fn value(view: &mut SnapshotView, name: ImmutableString, position: Array) -> Bound<f64> {
    let refuse = |error: &dyn std::fmt::Display| Refusal::error("value", error, None);
    let field = field_of(&view.0, &name).map_err(|e| failed("value", &e))?;
    let number = |value: &Dynamic| value.as_float().or_else(|_| value.as_int().map(|n| n as f64)).ok();
    let position: Option<Vec<f64>> = position.iter().map(|entry| number(entry).filter(|n| n.is_finite())).collect();
    let position = position.and_then(|p| <[f64; 3]>::try_from(p).ok());
    let position = position.ok_or_else(|| refuse(&"the position must be a list of three finite numbers"))?;
    let (lengths, periodic) = (view.0.box_lengths(), view.0.state.tree.periodic());
    let position = position_in_box("position", position, lengths, periodic).map_err(|e| refuse(&e))?;
    Ok(field.value(&Gas::new(&view.0), &cells::leaf_at(&view.0, position)))
}

fn over(view: &mut SnapshotView, name: ImmutableString, region: Map) -> Bound<Dynamic> {
    let region: RegionOptions = decode("statistics", region)?;
    let found = statistics(&view.0, &name, &region).map_err(|e| failed("statistics", &e))?;
    Ok(dynamic(&found))
}

fn distribution(view: &mut SnapshotView, name: ImmutableString, mut options: Map) -> Bound<Array> {
    let region: RegionOptions = decode("histogram", take(&mut options, &REGION))?;
    let options: HistogramOptions = decode_with("histogram", options, &REGION)?;
    let bins = histogram(&view.0, &name, &region, &options).map_err(|e| failed("histogram", &e))?;
    Ok(bins.iter().map(dynamic).collect())
}

fn particles(view: &mut SnapshotView, mut options: Map) -> Bound<Array> {
    let region: RegionOptions = decode("particles", take(&mut options, &REGION))?;
    let options: ParticleOptions = decode_with("particles", options, &REGION)?;
    let found = particles::particles(&view.0, &region, &options).map_err(|e| failed("particles", &e))?;
    Ok(found.iter().map(dynamic).collect())
}

fn region_at_the_start(view: &mut SnapshotView, particles: Array, options: Map) -> Bound<Dynamic> {
    const FUNCTION: &str = "lagrangian_region";
    let options: LagrangianOptions = decode(FUNCTION, options)?;
    let id = |(n, entry): (usize, &Dynamic)| {
        let of_entry = || entry.read_lock::<Map>().and_then(|map| map.get("id")?.as_int().ok());
        let id = entry.as_int().ok().or_else(of_entry).and_then(|id| u64::try_from(id).ok());
        id.ok_or_else(|| {
            let found = plain(entry.type_name());
            let message = format!("particles[{n}] is {found}; give entries of snapshot.particles(…) or their ids");
            Refusal::because(Cause::Text, FUNCTION, message, None)
        })
    };
    let ids = particles.iter().enumerate().map(id).collect::<Bound<Vec<u64>>>()?;
    let found = lagrangian_region(&view.0, &ids, &options).map_err(|e| failed(FUNCTION, &e))?;
    Ok(dynamic(&found))
}

fn power(view: &mut SnapshotView, options: Map) -> Bound<Dynamic> {
    let options: PowerOptions = decode("power_spectrum", options)?;
    // the transform takes as much again as the grid
    let limit_mib = grid_limit_mib(memory::available()) / 2;
    let spectrum = power_spectrum_within(&view.0, &options, limit_mib).map_err(|e| failed("power_spectrum", &e))?;
    Ok(dynamic(&spectrum))
}

/// A slice or a projection.
type MapFunction = fn(&Snapshot, &MapOptions) -> Result<map::Map, AnalysisError>;

/// The pixels of a map as a grid of one cell along the line of sight.
fn pixels(name: &str, make: MapFunction, snapshot: &Snapshot, options: Map) -> Bound<FieldView> {
    let options: MapOptions = decode(name, options)?;
    let map = make(snapshot, &options).map_err(|e| failed(name, &e))?;
    let [nx, ny] = map.pixels();
    let values = map.values.into_iter().flatten().collect();
    Ok(FieldView(Arc::new(Array3::from_shape_vec([1, ny, nx], values).expect("as many values as pixels"))))
}

fn dynamic(value: &impl Serialize) -> Dynamic {
    from_json(&serde_json::to_value(value).expect("results are plain data"))
}
