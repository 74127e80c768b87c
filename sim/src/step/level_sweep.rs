//! One hydro sweep of one level, with the redo at first order around cells that it cannot advance.

use crate::gas::Gas;
use crate::gas::conserved_fields::{ConservedFields, earlier_fluid};
use crate::mesh::Key;
use crate::parallel::ghost_exchange::{GhostExchange, from_peers};
use crate::parallel::links::{InteriorBoundary, LevelLinks};
use crate::parallel::share::Share;
use crate::source::Span;
use crate::state::{HAS_GAS, State};
use crate::step::diagnostics::{Pending, StepDiagnostics};
use crate::step::physics::Physics;
use crate::step::plan::Direction;
use comove_kernels::Deferred;
use comove_kernels::ghosts::EarlierFluid;
use comove_kernels::hydro_sweep::{SweepOutput, SweepParameters, SweepTargets, hydro_sweep};
use comove_kernels::layout::{DIRECTIONS, FIELDS, offset};
use comove_kernels::messages::Peer;
use comove_kernels::scalars::ScalarSweep;
use comove_kernels::troubled_cells::{MARK_ROWS, groups_to_redo};
use comove_kernels::{Buffer, Device, DeviceTable, Eos, GroupReport, LevelTopology, Real, TroubledCells};
use std::ops::Range;

/// Redos of one sweep at most. A redo cures the cells that it was made for, so a second one is for cells that the first
/// has spoilt; what is left after the last is floored.
const REDOS: usize = 8;

/// What the ghosts of a level hold before it is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ghosts {
    /// Their groups' present state.
    Fresh,
    /// An earlier one.
    Stale,
}

/// Sweeps the groups of a level over the `dt` of a span: from the fluid's `values` to their slots of `next`, the fluxes
/// through the planes that flux correction needs to `fluxes`. Where cells would have to be floored or are not finite, their
/// groups and those beside them are swept again from the same state, with first-order fluxes around these cells.
///
/// * `coarse`: the part of the coarser level's step that has passed, where that level is ahead; its new state must be
///   in `values`.
/// * `ghosts`: of the level
///
/// # Panics
/// Without gas.
pub(crate) fn sweep_level<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    Span { clock, a, dt }: Span<'_>,
    direction: Direction,
    coarse: Option<f64>,
    ghosts: Ghosts,
    diagnostics: &mut StepDiagnostics,
) {
    let width = state.cell_width(level);
    let expansion = width * clock.hubble_flow(a);
    let parameters = SweepParameters {
        scheme: physics.parameters.scheme,
        dt_over_dx: T::from_f64(dt / width),
        axes: direction.axes(physics.parameters.sweep_order.axes()),
        eos: Eos { expansion_squared: T::from_f64(expansion * expansion), ..physics.eos },
    };
    let SweepOutput { marked, mut reports } = match ghosts {
        Ghosts::Fresh => state.sweep(level, coarse, SweepTargets::All, &parameters, diagnostics),
        Ghosts::Stale => state.refresh_and_sweep(level, coarse, &parameters, diagnostics),
    };
    diagnostics.collect(state);
    if physics.parameters.first_order_redo && state.exchange.communicator.any(marked.wait() != [0]) {
        reports = Deferred::ready(redo(state, level, coarse, &parameters, reports.wait(), diagnostics));
    }
    diagnostics.defer(level, Pending::Sweep { reports, last: direction == Direction::Backward });
}

/// Redoes what a sweep with these reports has marked; the reports afterwards.
fn redo<T: Real>(
    state: &mut State<T>,
    level: usize,
    coarse: Option<f64>,
    parameters: &SweepParameters<T>,
    mut reports: Vec<GroupReport>,
    diagnostics: &mut StepDiagnostics,
) -> Vec<GroupReport> {
    for redo in 0..REDOS {
        // of the sweep itself it is known that some rank has marked something
        let first = redo == 0;
        if !first && !state.exchange.communicator.any(reports.iter().any(|report| report.marked > 0)) {
            break;
        }
        let beside = state.share_marks(level, &reports, first);
        state.gas_mut().troubled.accept();
        let groups = groups_to_redo(&state.mesh.tables[level], &mut reports, beside);
        let redone = state.sweep(level, coarse, SweepTargets::Redo(&groups), parameters, diagnostics).reports.wait();
        for (&group, report) in groups.iter().zip(redone) {
            reports[group as usize] = report;
        }
    }
    reports
}

/// How many of these groups have marks.
fn marked_of(reaches: &[u32]) -> usize {
    reaches.iter().filter(|reach| **reach != 0).count()
}

/// The slots of those of some groups that have marks, if any has.
fn slots_of_marked(slots: &[u32], reaches: &[u32]) -> Option<DeviceTable<u32>> {
    let marked = slots.iter().zip(reaches).filter(|(_, reach)| **reach != 0);
    let marked: Vec<u32> = marked.map(|(&slot, _)| slot).collect();
    (!marked.is_empty()).then(|| marked.into())
}

/// Whether a level shared by ranks has so many groups that the time of its sweeps, of so many launches each, tells how fast
/// a device is. By the mean of the ranks, so that a slow one's few groups go on being measured.
fn fills_devices(device: &Device, share: &Share, level: usize, launches: usize) -> bool {
    !share.is_alone() && share.groups[level] >= launches * share.owners.ranks() * device.saturating_group_count()
}

/// The next so many of what is counted.
fn next(counted: &mut usize, more: usize) -> Range<usize> {
    *counted += more;
    *counted - more..*counted
}

impl<T: Real> State<T> {
    /// Sends other ranks the marks that a sweep of a level has found in what they have ghosts of, and takes theirs; the own
    /// groups that see those. Few groups have any, so ranks first say which.
    ///
    /// * `first`: whether ghosts may still hold what was found in an earlier sweep
    fn share_marks(&mut self, level: usize, reports: &[GroupReport], first: bool) -> Vec<usize> {
        let Some(links) = self.exchange.links(level) else { return Vec::new() };
        let gas = self.gas.as_mut().expect(HAS_GAS);
        let (send, receive, peers) = (links.beside.send.list(), links.beside.receive.list(), &links.beside.peers);
        let reach = |&group: &u32| match &reports[group as usize] {
            report if report.marked > 0 => report.marks_reach,
            _ => 0,
        };
        let reaches: Vec<u32> = links.beside_groups.iter().map(reach).collect();
        let theirs = from_peers(&self.exchange.communicator, peers, 1, &reaches);
        if first && !receive.is_empty() {
            gas.troubled.clear_found(&self.device, receive);
        }
        let [mut sent, mut received] = [0; 2];
        let marked = |peer: &Peer| Peer {
            rank: peer.rank,
            send: next(&mut sent, marked_of(&reaches[peer.send.clone()])),
            receive: next(&mut received, marked_of(&theirs[peer.receive.clone()])),
        };
        let peers: Vec<Peer> = peers.iter().map(marked).collect();
        let rows = slots_of_marked(send, &reaches).map(|slots| gas.troubled.found_of(&self.device, &slots));
        let rows = from_peers(&self.exchange.communicator, &peers, MARK_ROWS, &rows.unwrap_or_default());
        if let Some(slots) = slots_of_marked(receive, &theirs) {
            gas.troubled.set_found(&self.device, &slots, &rows);
        }
        let seen = |(&key, reach): (&Key, u32)| {
            let tree = &self.mesh.tree;
            let directions = (0..DIRECTIONS).filter(move |d| reach >> d & 1 == 1);
            directions.filter_map(move |d| tree.neighbour(key, offset(d))).filter_map(|key| tree.find(key))
        };
        links.beside_keys.iter().zip(theirs).flat_map(seen).collect()
    }

    /// Sweeps groups of a level from the fluid's `values` to `next`: [`hydro_sweep`] on the state's arrays.
    ///
    /// * `coarse`: the part of the coarser level's step that has passed, where that level is ahead
    pub fn sweep(
        &mut self,
        level: usize,
        coarse: Option<f64>,
        which: SweepTargets,
        parameters: &SweepParameters<T>,
        diagnostics: &mut StepDiagnostics,
    ) -> SweepOutput {
        let (fluid, mut sweeping, _) = self.sweeping(level, coarse, diagnostics);
        sweeping.sweep(fluid, which, parameters)
    }

    /// Brings the level's ghosts up to date and sweeps it: groups that read none of them while these are on their way.
    fn refresh_and_sweep(
        &mut self,
        level: usize,
        coarse: Option<f64>,
        parameters: &SweepParameters<T>,
        diagnostics: &mut StepDiagnostics,
    ) -> SweepOutput {
        // two launches leave the device with little to do at the end of each
        let fills_devices = fills_devices(&self.device, &self.exchange.share, level, 2);
        for scalars in self.gas.iter_mut().flat_map(|gas| &mut gas.scalars) {
            scalars.refresh(&self.exchange, level, |links| &links.sweep);
        }
        let (fluid, mut sweeping, ranks) = self.sweeping(level, coarse, diagnostics);
        let Some((ghost_exchange, links)) =
            ranks.filter(|(ghost_exchange, links)| ghost_exchange.is_carried(&links.sweep))
        else {
            self.gas.as_mut().expect(HAS_GAS).fluid.refresh(&self.exchange, level, |links| &links.sweep);
            return self.sweep(level, coarse, SweepTargets::All, parameters, diagnostics);
        };
        sweeping.measured = sweeping.measured.filter(|_| fills_devices);
        let InteriorBoundary { inner, outer } = &links.edges(sweeping.tables).sweep;
        let mut first = None;
        ghost_exchange.exchange_cells_while(&links.sweep, FIELDS, fluid, |fluid| {
            first = Some(sweeping.sweep(fluid, SweepTargets::Subset(inner), parameters));
        });
        let second = sweeping.sweep(fluid, SweepTargets::Subset(outer), parameters);
        first.expect("done meanwhile").joined(second, inner)
    }

    /// The fluid and what else sweeps of a level have to do with; and the other ranks, if there are any.
    fn sweeping<'a>(
        &'a mut self,
        level: usize,
        coarse: Option<f64>,
        diagnostics: &'a mut StepDiagnostics,
    ) -> (&'a mut Buffer<T>, Sweeping<'a, T>, Option<(&'a GhostExchange, &'a LevelLinks)>) {
        let Self { device, mesh, gas, exchange, .. } = self;
        let Gas { fluid, scalars, troubled } = gas.as_mut().expect(HAS_GAS);
        let ConservedFields { values, next, fluxes, earlier, .. } = fluid;
        let sweeping = Sweeping {
            device,
            tables: &mesh.tables[level],
            flux_slots: &mesh.flux.slots[level],
            earlier: coarse.map(|passed| earlier_fluid(earlier, mesh, passed)),
            next,
            fluxes,
            troubled,
            scalars: scalars.as_mut().map(swept_scalars),
            measured: fills_devices(device, &exchange.share, level, 1).then_some((diagnostics, level)),
        };
        (values, sweeping, exchange.links(level).map(|links| (&exchange.ghosts, links)))
    }
}

/// The scalars that a sweep carries along.
fn swept_scalars<T>(scalars: &mut ConservedFields<T>) -> ScalarSweep<'_, T> {
    let ConservedFields { count, values, next, fluxes, earlier, .. } = scalars;
    ScalarSweep { count: *count, before: values, earlier, after: next, fluxes }
}

/// What sweeps of a level have to do with besides the fluid.
struct Sweeping<'a, T> {
    device: &'a Device,
    tables: &'a LevelTopology,
    flux_slots: &'a DeviceTable<u32>,
    earlier: Option<EarlierFluid<'a, T>>,
    next: &'a mut Buffer<T>,
    fluxes: &'a mut Buffer<T>,
    troubled: &'a mut TroubledCells,
    scalars: Option<ScalarSweep<'a, T>>,
    /// Where the time goes down that sweeps of the level take, if its groups fill the device.
    measured: Option<(&'a mut StepDiagnostics, usize)>,
}

impl<T: Real> Sweeping<'_, T> {
    fn sweep(&mut self, fluid: &Buffer<T>, which: SweepTargets, parameters: &SweepParameters<T>) -> SweepOutput {
        let Self { device, tables, flux_slots, earlier, next, fluxes, troubled, scalars, measured } = self;
        let groups = match which {
            SweepTargets::All => tables.len(),
            SweepTargets::Subset(list) => list.len(),
            // once more
            SweepTargets::Redo(_) => 0,
        };
        let started = measured.is_some().then(|| device.now());
        let (earlier, scalars) = (earlier.as_ref(), scalars.as_mut());
        let swept =
            hydro_sweep(device, tables, flux_slots, fluid, earlier, next, fluxes, troubled, scalars, which, parameters);
        if let (Some((diagnostics, level)), Some(started)) = (measured, started) {
            diagnostics.measure(*level, groups, started, device.now());
        }
        swept
    }
}
