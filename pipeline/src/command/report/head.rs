//! The head of the report: cosmology, box, levels, species, resolution and units of the runs.

use crate::campaign::CampaignResolver;
use crate::moment::Moment;
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::ic::shown as cells_shown;
use crate::stage::initial::{InitialCondition, InitialFacts, SpeciesPresent};
use comove_analysis::Table;
use comove_analysis::table::readable;
use comove_kernels::Scheme;
use comove_sim::{Coordinates, Cosmology, Octree, RunParameters, Snapshot, SnapshotHeader, TimeSteps, Units};

/// Properties of one run, by name, in the order of the page.
type Properties = Vec<(&'static str, String)>;

/// Properties that all runs share, and a table of the others with a row per run; empty where there is nothing to tell apart.
pub(super) fn head(resolver: &CampaignResolver<'_>) -> (Vec<(String, String)>, Table) {
    let mut runs: Vec<(&str, Properties)> = resolver
        .listed_order()
        .into_iter()
        .filter_map(|n| Some((resolver.name(n), of_run(resolver, n, resolver.stage(n).as_run()?))))
        .collect();
    if runs.is_empty() {
        let others = resolver.listed_order().into_iter();
        runs = others.filter_map(|n| Some((resolver.name(n), of_other(resolver, n)?))).collect();
    }
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|(_, run)| run) {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    let value = |run: &Properties, name: &str| {
        run.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let is_shared = |name: &&str| runs.iter().all(|(_, run)| value(run, name) == value(&runs[0].1, name));
    let (shared, different): (Vec<_>, Vec<_>) = names.into_iter().partition(is_shared);
    let facts = shared.into_iter().map(|name| (name.to_owned(), value(&runs[0].1, name))).collect();
    let mut table = Table::new(std::iter::once("run").chain(different.iter().copied()));
    if !different.is_empty() {
        for (run, properties) in &runs {
            let values = different.iter().map(|name| value(properties, name));
            table.push(std::iter::once((*run).to_owned()).chain(values).map(Into::into).collect());
        }
    }
    (facts, table)
}

/// Box and matter of a starting state.
struct Start {
    cosmology: Option<Cosmology>,
    /// Along x, code length.
    box_length: f64,
    root: [usize; 3],
    moment: Moment,
    species: Option<SpeciesPresent>,
    particles: u64,
    /// Number of particles if all had the mass of the lightest; `None` before masses are read.
    if_lightest: Option<u64>,
}

impl Start {
    /// * `written`: header of a state that the run has written
    fn of_initial(facts: &InitialFacts, initial: Option<&InitialCondition>, written: Option<&SnapshotHeader>) -> Self {
        let is_of_one_mass = initial.is_some_and(|initial| initial.off_lattice().is_none());
        let dark_matter = written.and_then(|header| header.dark_matter);
        let if_lightest = dark_matter.map(|dark_matter| dark_matter.number_if_lightest());
        let species = SpeciesPresent { gas: facts.gas, dark_matter: facts.particles > 0 };
        Self {
            cosmology: Some(facts.cosmology),
            box_length: facts.box_mpc_h,
            root: facts.root,
            moment: Moment::Redshift(facts.z),
            species: facts.species_known.then_some(species),
            particles: facts.particles,
            if_lightest: if_lightest.or_else(|| is_of_one_mass.then_some(facts.particles)),
        }
    }

    fn of_snapshot((header, tree): &(SnapshotHeader, Octree)) -> Self {
        let particles = header.dark_matter.as_ref().map_or(0, |dark_matter| dark_matter.particles);
        Self {
            cosmology: header.cosmology,
            box_length: header.box_length,
            root: tree.cells(0),
            moment: Moment::of(header).rounded(),
            species: Some(SpeciesPresent { gas: header.fields.has_gas(), dark_matter: particles > 0 }),
            particles,
            if_lightest: header.dark_matter.map(|dark_matter| dark_matter.number_if_lightest()),
        }
    }

    /// Properties of a run from here, or of the state alone.
    fn properties(&self, end: Option<Moment>, levels: u8, parameters: Option<&RunParameters>) -> Properties {
        let mut all = Properties::new();
        let unit = if self.cosmology.is_some() { " Mpc/h" } else { "" };
        if let Some(cosmology) = &self.cosmology {
            all.push(("cosmology", of_cosmology(cosmology)));
        }
        all.push(("box", self.of_box(unit, parameters)));
        let time = if self.cosmology.is_some() { "redshift" } else { "time" };
        let from = self.moment.rounded().value();
        all.push((time, end.map_or(from.to_string(), |end| format!("{from} to {}", end.rounded().value()))));
        let refined = match levels {
            0 => "not refined".into(),
            1 => "1 refinement level".into(),
            n => format!("{n} refinement levels"),
        };
        all.push(("root grid", format!("{} cells, {refined}", cells_shown(self.root))));
        let finest = self.root.map(|n| n << levels);
        let width = readable(self.box_length / finest[0] as f64);
        all.push(("finest cell", format!("{width}{unit}, {} across the box", cells_shown(finest))));
        if let Some(species) = self.species {
            let names = [(species.dark_matter, "dark matter"), (species.gas, "gas")];
            let names: Vec<&str> = names.into_iter().filter(|(there, _)| *there).map(|(_, name)| name).collect();
            all.push(("species", names.join(" and ")));
            if species.dark_matter {
                all.push(("particle mass", self.of_particles(species.gas)));
            }
        }
        if let Some(parameters) = parameters {
            all.push(("numerics", numerics(parameters, self.species.is_none_or(|species| species.gas))));
        }
        let units = match (self.cosmology, parameters) {
            (Some(_), _) => {
                "comoving Mpc/h, M☉/h, km/s (peculiar), K; densities in the mean density of all matter".to_owned()
            }
            (None, Some(run)) if run.gravity => format!("code units with 4πG = {}", plain(run.four_pi_g)),
            (None, _) => "code units".into(),
        };
        all.push(("units", units));
        all
    }

    /// Lengths of the box along its axes, code length.
    fn lengths(&self) -> [f64; 3] {
        self.root.map(|n| self.box_length * n as f64 / self.root[0] as f64)
    }

    fn of_box(&self, unit: &str, parameters: Option<&RunParameters>) -> String {
        let [x, y, z] = self.lengths().map(plain);
        let lengths = if x == y && y == z { x } else { format!("{x} × {y} × {z}") };
        let proper = self.cosmology.map(|c| format!(" ({} Mpc), comoving", readable(self.box_length / c.h)));
        let faces = parameters.map(|run| match run.boundary.periodic() {
            [true, true, true] => ", periodic".to_owned(),
            [false, false, false] => ", not periodic".into(),
            axes => {
                let axes = axes.iter().zip(["x", "y", "z"]).filter(|(periodic, _)| **periodic);
                format!(", periodic along {}", axes.map(|(_, name)| name).collect::<Vec<_>>().join(" and "))
            }
        });
        format!("{lengths}{unit}{}{}", proper.unwrap_or_default(), faces.unwrap_or_default())
    }

    /// Mass of the lightest particles and number of all: beside gas they have what omega_b leaves of all matter.
    fn of_particles(&self, gas: bool) -> String {
        let volume = self.lengths().iter().product::<f64>();
        let share = self.cosmology.filter(|_| gas).map_or(1.0, |c| 1.0 - c.baryon_fraction());
        let unit = if self.cosmology.is_some() { " M☉/h" } else { "" };
        let side = (self.particles as f64).cbrt().round() as usize;
        let number =
            if (side as u64).pow(3) == self.particles { format!("{side}³") } else { self.particles.to_string() };
        let Some(if_lightest) = self.if_lightest else { return format!("{number} particles") };
        let mass = share * volume / if_lightest as f64 * Units::new(self.cosmology).mass_msun_h();
        let lightest = if if_lightest > self.particles { " (the lightest)" } else { "" };
        format!("{}{unit}{lightest}, {number} particles", readable(mass))
    }
}

fn of_run(resolver: &CampaignResolver<'_>, n: usize, run: &Evolve) -> Properties {
    let initial = resolver.reads(n).first().filter(|&&input| resolver.stage(input).as_initial().is_some());
    let start = match &run.origin {
        Origin::Initial(facts) => {
            let file = resolver.result(n).and_then(|result| Some(result.folder.join(&result.snapshots.last()?.file)));
            let written = file.and_then(|file| Snapshot::read_header(&file).ok());
            let initial = initial.and_then(|&input| resolver.stage(input).as_initial());
            Some(Start::of_initial(facts, initial, written.as_ref()))
        }
        Origin::Formula(formula) => Some(Start {
            cosmology: formula.setup.cosmology,
            box_length: formula.setup.box_length,
            root: formula.setup.root,
            moment: formula.start(),
            species: Some(SpeciesPresent::GAS),
            particles: 0,
            if_lightest: None,
        }),
        Origin::Saved { .. } => {
            let inputs = resolver.resolved(n).and_then(|resolved| resolved.inputs.first()?.first());
            inputs.and_then(|input| Some(Start::of_snapshot(&Snapshot::read_tree(&input.path).ok()?)))
        }
    };
    let parameters = &run.parameters;
    let mut all = start.map(|start| start.properties(Some(run.end), parameters.max_level, Some(parameters)));
    // what the run starts from tells runs of different seeds apart
    if let (Some(all), Some(&input)) = (&mut all, initial) {
        all.push(("initial condition", resolver.stage(input).describe()));
    }
    all.unwrap_or_default()
}

/// Properties of a snapshot from elsewhere or of an initial condition, in a campaign without runs.
fn of_other(resolver: &CampaignResolver<'_>, n: usize) -> Option<Properties> {
    if let Some(initial) = resolver.stage(n).as_initial() {
        return Some(
            Start::of_initial(&initial.facts(initial.mesh_cells()).ok()?, Some(initial), None)
                .properties(None, 0, None),
        );
    }
    let result = resolver.result(n).filter(|_| resolver.resolved(n).is_none())?;
    let file = result.snapshots.last()?;
    let read = Snapshot::read_tree(&result.folder.join(&file.file)).ok()?;
    let levels = read.1.level_count().saturating_sub(1) as u8;
    Some(Start::of_snapshot(&read).properties(None, levels, None))
}

fn of_cosmology(cosmology: &Cosmology) -> String {
    let Cosmology { h, omega_m, omega_b, omega_lambda, omega_r, m_nu_ev, w0, wa, sigma8, n_s, .. } = *cosmology;
    let always = [("Ωm", omega_m), ("ΩΛ", omega_lambda), ("Ωb", omega_b), ("h", h), ("σ8", sigma8), ("ns", n_s)];
    let unusual = [("Ωr", omega_r, 0.0), ("Σmν/eV", m_nu_ev, 0.0), ("w0", w0, -1.0), ("wa", wa, 0.0)];
    let unusual = unusual.into_iter().filter(|(_, value, usual)| value != usual).map(|(name, value, _)| (name, value));
    always
        .into_iter()
        .chain(unusual)
        .map(|(name, value)| format!("{name}\u{a0}{}", plain(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn numerics(run: &RunParameters, gas: bool) -> String {
    let scheme = match run.scheme {
        Scheme::Ppm => "PPM, ",
        Scheme::Plm => "PLM, ",
        Scheme::RelaxingTvd => "relaxing TVD, ",
        Scheme::Hll => "first order (HLL), ",
    };
    let steps = match run.time_steps {
        TimeSteps::Uniform => "one time step for all levels",
        TimeSteps::Individual => "individual time steps (subcycling)",
    };
    let coordinates = if run.coordinates == Coordinates::Comoving { "" } else { ", non-comoving" };
    let precision = format!("{:?}", run.precision).to_lowercase();
    format!("{}{precision} precision, {steps}{coordinates}", if gas { scheme } else { "" })
}

/// A parameter as the recipe has it: at most six decimals, without trailing zeros.
fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        return readable(value);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
