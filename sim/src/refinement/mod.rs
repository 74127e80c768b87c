//! Refinement: criteria, flags, and the tree that follows.
//!
//! With `max_cells` the tree is kept within a number of cells. Where more are asked for, the thresholds of the finest
//! level are raised by the smallest factor of a fixed ladder with which they are not exceeded; if even without that level
//! there would be too many, it is left out, and the next coarser one is the finest. So level by level what is coarser
//! comes first, and on the finest what the criteria ask for most. That depends on the state and the number alone: not on
//! the device, nor on what is free there, nor on regrids before. In a combination thresholds within `not` are divided by the
//! factor, so that a larger one always refines no more; regions and expressions have no threshold.

pub mod criterion;
mod wanted;

use crate::clock::Clock;
use crate::dark_matter::{DarkMatter, DarkMatterHeader};
use crate::error::SimError;
use crate::mesh::{Octree, clip, nest_above};
use crate::parameters::RunParameters;
use crate::records::CellBudgetAdjustment;
pub use crate::refinement::wanted::flagged_children;
use crate::refinement::wanted::wanted_share;
use crate::state::State;
use crate::step::diagnostics::StepDiagnostics;
use crate::step::leaf_sums::{LeafSums, leaf_sums_from};
use crate::step::physics::Physics;
use comove_kernels::flag::{Combination, FlagCriteria, FlagLevel, flag};
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use comove_kernels::{Buffer, Device, Eos, LevelTopology, Real};
use criterion::{Criterion, ParticleCount};
use std::time::Instant;

/// Thresholds are raised by 2^(n/16), n up to 512.
const RUNGS_PER_OCTAVE: f64 = 16.0;
const RUNGS: u32 = 512;

/// The coarsest level from `from` on, of those that may be refined or are, that has taken `regrid_every` steps since the
/// levels finer than it were decided, or whose gas might leave its `flag_buffer` in the next one.
pub fn due<T: Real>(state: &State<T>, parameters: &RunParameters, from: usize) -> Option<usize> {
    // a run that is steered to fewer levels than it has loses the others
    let refined = usize::from(parameters.max_level).max(state.level_count() - 1).min(state.level_count());
    let memory = &state.regrid;
    let next = f64::from(parameters.step_plan().sweeps()) * memory.courant_number;
    // a step that fits exactly fits
    let room = (1.0 + 1e-9) * f64::from(parameters.flag_buffer);
    let is_due =
        |&level: &usize| memory.steps_since[level] >= parameters.regrid_every || memory.travelled[level] + next > room;
    (from..refined).find(is_due)
}

/// Decides anew on the levels finer than `level`, which must be at the time of all of them, and on who owns their groups. The
/// sums over the leaves of `level` and finer ones afterwards, if the tree changed.
///
/// * `clock`, `mean_density`: what criteria may look at: the time of these levels, the box mean.
/// * `sums`: those sums before, if they are known
///
/// # Errors
/// As [`State::adopt_tree`].
pub fn regrid<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    (clock, mean_density): (&Clock, f64),
    level: usize,
    sums: Option<LeafSums>,
    diagnostics: &mut StepDiagnostics,
) -> Result<Option<LeafSums>, SimError> {
    let _phase = tracing::trace_span!(target: crate::PHASE, "regrid").entered();
    let started = Instant::now();
    state.regrid.steps_since[level..].fill(0);
    state.regrid.travelled[level..].fill(0.0);
    prepare(state, &physics.parameters, level)?;
    let wanted = wanted(state, &RefinementContext::of(state, &physics.parameters, clock, mean_density), level);
    let mut after = None;
    if state.exchange.communicator.any(wanted.tree != state.mesh.tree) {
        let before = sums.unwrap_or_else(|| leaf_sums_from(state, level));
        state.adopt_tree(wanted.tree, level, &physics.eos)?;
        let sums = leaf_sums_from(state, level);
        diagnostics.add_regrid(sums.sums.energy - before.sums.energy);
        after = Some(sums);
    } else {
        state.rebalance(level, &physics.eos)?;
    }
    state.regrid.raised = wanted.raised;
    diagnostics.timing.regrid += started.elapsed().as_secs_f64();
    Ok(after)
}

/// Finds what criteria read of matter on level `from` and finer ones, which are at one time: collective.
///
/// # Errors
/// [`SimError::CellMass`].
pub(crate) fn prepare<T: Real>(state: &mut State<T>, parameters: &RunParameters, from: usize) -> Result<(), SimError> {
    let levels = from..state.level_count();
    // if refinement does not follow all particles criteria use deposits, otherwise the density; solves find cells of too much mass
    let has_others = state.dark_matter.as_ref().is_some_and(|matter| matter.header().unit_of_followed().is_some());
    let only_counts =
        has_others && parameters.gravity && parameters.refine.iter().all(Criterion::only_counts_particles);
    if !only_counts {
        state.find_matter_density(levels.clone());
    }
    if has_others && parameters.refine.iter().any(Criterion::counts_particles) {
        state.count_followed(levels);
    }
    state.check_cell_masses()
}

/// The tree that criteria ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The tree.
    pub tree: Octree,
    /// What was done to keep it within `max_cells`.
    pub raised: Option<CellBudgetAdjustment>,
}

/// Flags `from` and all finer levels, for which `prepare` has found what criteria read, and derives the tree they ask for,
/// within `max_cells`.
pub fn wanted<T: Real>(state: &State<T>, context: &RefinementContext<'_, T>, from: usize) -> Wanted {
    // what is coarser stays as it is, also where a run is steered to fewer levels
    let max_level = usize::from(context.parameters.max_level).max(from);
    let flagged = |level: usize, factor: f64| match level {
        level if level < from => Vec::new(),
        level => context.masks(
            &state.device,
            &state.mesh.tree,
            (level, level),
            &state.mesh.tables[level],
            state.gas.as_ref().map(|gas| &gas.fluid.values),
            state.dark_matter.as_ref().map(DarkMatter::density),
            state.dark_matter.as_ref().map(DarkMatter::weights),
            factor,
        ),
    };
    let mut masks: Vec<Vec<u32>> = (0..state.level_count().min(max_level)).map(|level| flagged(level, 1.0)).collect();
    let tree_of = |masks: &[Vec<u32>]| match state.exchange.share.is_alone() {
        true => state.device.install(|| wanted_tree(&state.mesh.tree, masks, max_level, from)),
        false => wanted_share(
            &state.exchange.communicator,
            &state.exchange.share.owners,
            &state.mesh.tree,
            masks,
            max_level,
            from,
        ),
    };
    let most = context.parameters.max_cells.unwrap_or(u64::MAX);
    let fits = |tree: &Octree| {
        let mut groups = [tree.group_count() as u64];
        state.exchange.communicator.sum(&mut groups);
        groups[0] * GROUP_CELLS as u64 <= most
    };

    let all = tree_of(&masks);
    if fits(&all) || all.level_count() == from + 1 {
        return Wanted { tree: all, raised: None };
    }
    // the finest level without which the tree fits: its thresholds are raised
    let (level, mut tree) = (from + 1..all.level_count())
        .rev()
        .map(|level| (level, tree_of(&masks[..level - 1])))
        .find(|(level, tree)| fits(tree) || *level == from + 1)
        .expect("some level is refined");
    masks.truncate(level);
    let factor = |rung: u32| (f64::from(rung) / RUNGS_PER_OCTAVE).exp2();
    let (mut too_low, mut enough) = (0, RUNGS);
    while enough - too_low > 1 {
        let rung = too_low.midpoint(enough);
        masks[level - 1] = flagged(level - 1, factor(rung));
        let raised = tree_of(&masks);
        if fits(&raised) {
            (enough, tree) = (rung, raised);
        } else {
            too_low = rung;
        }
    }
    let raised = CellBudgetAdjustment { level: level as u8, factor: (enough < RUNGS).then(|| factor(enough)) };
    Wanted { tree, raised: Some(raised) }
}

/// What criteria have to know besides the gas: the same for all levels.
pub struct RefinementContext<'a, T> {
    /// Criteria, flag buffer, and 4πG in non-comoving coordinates.
    pub parameters: &'a RunParameters,
    /// Scale factor and 4πG.
    pub clock: &'a Clock,
    /// Box mean of the density, code units.
    pub mean_density: f64,
    /// The gas's share of it; the rest is dark matter.
    pub gas_share: f64,
    /// Numbers and masses of particles, where there is dark matter.
    pub dark_matter: Option<DarkMatterHeader>,
    /// Cell width of the root level, code length.
    pub root_cell_width: f64,
    /// The gas.
    pub eos: Eos<T>,
}

impl<'a, T: Real> RefinementContext<'a, T> {
    /// Of a state at the time of `clock` with this mean density.
    pub fn of(state: &State<T>, parameters: &'a RunParameters, clock: &'a Clock, mean_density: f64) -> Self {
        let dark_matter = state.dark_matter.as_ref().map(DarkMatter::header);
        let mass = dark_matter.map_or(0.0, |dark_matter| dark_matter.mass());
        let gas_share = 1.0 - mass / (state.volume() * mean_density);
        let root_cell_width = state.root_cell_width;
        Self { parameters, clock, mean_density, gas_share, dark_matter, root_cell_width, eos: parameters.eos() }
    }

    /// What flags cells of level `level` of a tree; `None` where nothing can.
    ///
    /// `place`: the level's number in `tree`, a complete level standing as the root of a tree of its own; `factor`:
    /// by how much thresholds are raised.
    fn criteria(&self, tree: &Octree, level: usize, place: usize, factor: f64) -> Option<FlagCriteria<T>> {
        let clock = self.clock;
        let level = FlagLevel {
            level,
            cells: tree.cells(place),
            periodic: tree.periodic(),
            cell_width: self.root_cell_width / f64::from(1u32 << level),
            a: clock.a,
            four_pi_g: clock.four_pi_g(clock.a, self.parameters.four_pi_g),
            mean_density: self.mean_density,
            mean_gas_density: self.mean_density * self.gas_share,
            eos: self.eos,
        };
        let particles = self.dark_matter.map(|dark_matter| {
            let all = ParticleCount::OfMass(dark_matter.particle_mass);
            dark_matter.unit_of_followed().map_or(all, ParticleCount::Followed)
        });
        let criteria = self.parameters.refine.iter();
        let met = Combination::any(criteria.filter_map(|one| one.on(&level, particles, factor)))?;
        Some(FlagCriteria { met, level })
    }

    /// The masks of the patches of level `level`, which is level `place` of `tree` (see [`comove_kernels::flag::flag`]);
    /// all zero where nothing can flag.
    ///
    /// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`, where there is gas
    /// * `matter`: density of gas and dark matter, `[slots, 16, 16, 16]`, where there is any
    /// * `followed`: deposits of the particles that refinement follows, `[slots, 16, 16, 16]`, where criteria count them
    /// * `factor`: by how much thresholds are raised
    pub fn masks(
        &self,
        device: &Device,
        tree: &Octree,
        (level, place): (usize, usize),
        tables: &LevelTopology,
        fluid: Option<&Buffer<T>>,
        matter: Option<&Buffer<T>>,
        followed: Option<&Buffer<u64>>,
        factor: f64,
    ) -> Vec<u32> {
        let mut masks = vec![0; tables.len() * OCTANTS];
        if let Some(criteria) = self.criteria(tree, level, place, factor) {
            let coordinates: Vec<[u32; 3]> = tree.level(place).iter().map(|key| key.coordinate).collect();
            let buffer = self.parameters.flag_buffer as usize;
            flag(device, tables, &coordinates, fluid, matter, followed, &criteria, buffer, &mut masks);
        }
        masks
    }
}

/// The tree that flags ask for: the children of flagged and buffer patches, and what proper nesting needs around them.
/// Flagged fine data is never dropped, because nesting adds coarse groups instead of removing fine ones; but the levels
/// up to `kept` stay as they are, and what does not nest in them has to wait for their own turn.
///
/// * `masks`: per level, per group and octant, as [`comove_kernels::flag::flag`] gives them; levels below `kept` and
///   from `max_level` on are ignored.
pub fn wanted_tree(tree: &Octree, masks: &[Vec<u32>], max_level: usize, kept: usize) -> Octree {
    let mut wanted = vec![Vec::new(); max_level + 1];
    for level in kept..max_level.min(masks.len()) {
        wanted[level + 1] = flagged_children(tree, level, &masks[level]);
    }
    let mut wanted = nest_above(kept, tree.root_groups(), tree.periodic(), wanted);
    clip(tree, kept, &mut wanted);
    tree.with_finer(wanted.into_iter().skip(1))
}
