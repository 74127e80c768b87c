//! Spherical profiles around a centre, in logarithmic bins over leaf cells.
//!
//! A cell is deposited whole, at its centre, where it is small against its distance and lies within one bin or is small
//! against the bin; otherwise it is split into eight, up to `DEEPEST` times. The innermost bin starts at radius 0.
//!
//! By default a profile goes from the width of the central cell to three times the halo's radius; a halo with less has none.

use crate::cell_fields::Gas;
use crate::cells::{LeafCell, leaf_width_at};
use crate::error::AnalysisError;
use crate::halos::fof::FofHalo;
use crate::halos::peaks::Halo;
use crate::matter::OneFluid;
use crate::messages::{FIRST, broadcast};
use crate::part::{Part, alone};
use crate::placement::position_in_box;
use crate::sphere::{Sphere, norm};
use crate::spheres::{Look, joined, look_at, split};
use crate::table::{Record, Table, readable};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::{DENSITY, FIELDS};
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// How often a cell is halved at most.
const DEEPEST: u32 = 5;
/// A part that straddles an edge is deposited whole from this fraction of the bin's width down.
const SMALL: f64 = 0.1;

/// What a profile is taken around: of a halo that was found in either way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileCentre {
    /// The halo's number in its catalogue.
    pub id: usize,
    /// Its centre in comoving Mpc/h.
    pub position_mpc_h: [f64; 3],
    /// Its radius in comoving Mpc/h.
    pub radius_mpc_h: f64,
    /// Its mean velocity in km/s.
    pub velocity_km_s: [f64; 3],
}

impl From<&Halo> for ProfileCentre {
    fn from(halo: &Halo) -> Self {
        let Halo { id, position_mpc_h, radius_mpc_h, velocity_km_s, .. } = *halo;
        Self { id, position_mpc_h, radius_mpc_h, velocity_km_s }
    }
}

impl From<&FofHalo> for ProfileCentre {
    fn from(halo: &FofHalo) -> Self {
        let FofHalo { id, position_mpc_h, radius_mpc_h, velocity_km_s, .. } = *halo;
        Self { id, position_mpc_h, radius_mpc_h, velocity_km_s }
    }
}

/// What a profile spans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileOptions {
    /// Outer edge of the first bin in Mpc/h; by default one width of the central cell.
    pub r_min_mpc_h: Option<f64>,
    /// Outer edge of the last bin in Mpc/h; by default three times the halo's radius, at most half the box.
    pub r_max_mpc_h: Option<f64>,
    /// Bins per factor of ten in radius.
    pub bins_per_decade: usize,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { r_min_mpc_h: None, r_max_mpc_h: None, bins_per_decade: 10 }
    }
}

impl ProfileOptions {
    /// What can be refused without a snapshot.
    ///
    /// * `box_lengths`: if they are known
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for an option out of its range.
    pub fn check(&self, box_lengths: Option<[f64; 3]>) -> Result<(), AnalysisError> {
        let half_box = box_lengths.map_or(f64::INFINITY, half_of);
        let radii = [("r_min_mpc_h", self.r_min_mpc_h), ("r_max_mpc_h", self.r_max_mpc_h)];
        for (name, radius) in radii.into_iter().filter_map(|(name, radius)| Some((name, radius?))) {
            if !(radius > 0.0 && radius.is_finite()) {
                return Err(AnalysisError::option(name, radius, "must be positive"));
            }
            if radius > half_box * (1.0 + 1e-12) {
                return Err(AnalysisError::option(name, radius, format!("must be at most half the box, {half_box}")));
            }
        }
        if let (Some(r_min), Some(r_max)) = (self.r_min_mpc_h, self.r_max_mpc_h)
            && r_max <= r_min
        {
            return Err(AnalysisError::option("r_max_mpc_h", r_max, format!("must exceed r_min_mpc_h = {r_min}")));
        }
        if !(1..=100).contains(&self.bins_per_decade) {
            return Err(AnalysisError::option("bins_per_decade", self.bins_per_decade, "must lie between 1 and 100"));
        }
        Ok(())
    }
}

/// Half the shortest side of a box.
fn half_of(lengths: [f64; 3]) -> f64 {
    lengths.into_iter().fold(f64::INFINITY, f64::min) / 2.0
}

/// A shell of a profile. In non-comoving coordinates all values are in code units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// Inner edge in comoving Mpc/h.
    pub r_inner_mpc_h: f64,
    /// Outer edge in comoving Mpc/h.
    pub r_outer_mpc_h: f64,
    /// Mass-weighted mean radius in comoving Mpc/h.
    pub r_mpc_h: f64,
    /// Density of all matter in the mean density.
    pub density: f64,
    /// Mass-weighted temperature of the gas in K, if there is some.
    pub temperature_k: Option<f64>,
    /// Mass-weighted peculiar radial velocity of the gas in km/s, relative to the halo's mean velocity.
    pub radial_velocity_km_s: Option<f64>,
    /// Mass-weighted radial velocity of the gas in km/s with the Hubble flow a H r.
    pub radial_velocity_with_hubble_km_s: Option<f64>,
    /// Mass within the outer edge in Msun/h.
    pub enclosed_mass_msun_h: f64,
    /// Leaf cells with their centres in the shell.
    pub cells: usize,
}

/// A profile around a halo's centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaloProfile {
    /// Redshift.
    pub redshift: f64,
    /// The halo's number in its catalogue.
    pub halo: usize,
    /// Its centre in Mpc/h.
    pub centre_mpc_h: [f64; 3],
    /// Its radius in Mpc/h.
    pub radius_mpc_h: f64,
    /// Its mean velocity in km/s, which radial velocities are relative to.
    pub bulk_velocity_km_s: [f64; 3],
    /// From the centre outwards.
    pub shells: Vec<Shell>,
}

/// A halo without a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithoutProfile {
    /// The halo's number in its catalogue.
    pub halo: usize,
    /// Why the mesh around it allows none.
    pub reason: String,
}

/// Profiles of the halos that can have one, and the other halos.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HaloProfiles {
    /// Profiles in the order of the halos.
    pub profiles: Vec<HaloProfile>,
    /// Halos without one.
    pub without: Vec<WithoutProfile>,
}

/// The profile of a halo.
///
/// # Errors
/// [`AnalysisError::Option`] for options out of their range, or a halo that the mesh around it allows no profile.
pub fn halo_profile(
    snapshot: &Snapshot,
    halo: &ProfileCentre,
    options: &ProfileOptions,
) -> Result<HaloProfile, AnalysisError> {
    halo_profile_in(snapshot, &OneFluid::new(snapshot), halo, options)
}

/// The same where all matter of the snapshot is at hand.
///
/// # Errors
/// As [`halo_profile`].
pub fn halo_profile_in(
    snapshot: &Snapshot,
    matter: &OneFluid,
    halo: &ProfileCentre,
    options: &ProfileOptions,
) -> Result<HaloProfile, AnalysisError> {
    let (lengths, periodic) = (snapshot.box_lengths(), snapshot.state.tree.periodic());
    position_in_box("position_mpc_h", halo.position_mpc_h, lengths, periodic)?;
    let halos = std::slice::from_ref(halo);
    let HaloProfiles { mut profiles, mut without } =
        alone(snapshot, |communicator, part| halo_profiles_by(communicator, part, matter, halos, options))?;
    let refused =
        |WithoutProfile { halo, reason }| AnalysisError::option("halo", halo, format!("no profile: {reason}"));
    without.pop().map_or_else(|| Ok(profiles.remove(0)), |without| Err(refused(without)))
}

/// The profiles of halos of a snapshot in parts, on the first rank: collective.
///
/// * `halos`: what the others give does not matter
///
/// # Errors
/// [`AnalysisError::Option`] for options out of their range, on all ranks.
pub fn halo_profiles_by(
    communicator: &Communicator,
    part: &Part,
    matter: &OneFluid,
    halos: &[ProfileCentre],
    options: &ProfileOptions,
) -> Result<Option<HaloProfiles>, AnalysisError> {
    options.check(Some(part.snapshot.box_lengths()))?;
    let part = &matter.part(part);
    let gas = Gas::by(communicator, part);
    let leads = communicator.rank() == FIRST;
    let mut found = HaloProfiles::default();
    let mut centres = Vec::new();
    for halo in halos.iter().filter(|_| leads) {
        match edges(part, halo, options) {
            Ok(edges) => centres.push((halo, edges)),
            Err(reason) => found.without.push(WithoutProfile { halo: halo.id, reason }),
        }
    }
    let centred = |(halo, edges): &(&ProfileCentre, Vec<f64>)| {
        let place = halo.position_mpc_h.into_iter().chain(halo.velocity_km_s);
        place.chain(edges.iter().copied()).collect::<Vec<f64>>()
    };
    let shells = broadcast(communicator, FIRST, joined(centres.iter().map(centred).collect()));
    let shells: Vec<Shells> = split(&shells).into_iter().map(Shells::of).collect();
    let spheres: Vec<Sphere> = shells.iter().map(Shells::sphere).collect();
    let sums = look_at(communicator, part, &spheres, &Deposit { gas: &gas, shells: &shells });
    let profile = |((halo, edges), sums): (&(&ProfileCentre, Vec<f64>), &Vec<f64>)| profile(part, halo, edges, sums);
    found.profiles = centres.iter().zip(&sums).map(profile).collect();
    Ok(leads.then_some(found))
}

/// The profile of a halo from the sums of its shells, as [`Deposit`] has them.
fn profile(part: &Part, halo: &ProfileCentre, edges: &[f64], sums: &[f64]) -> HaloProfile {
    let header = part.header();
    let units = header.units();
    // proper Hubble flow per comoving Mpc/h: a²E in code velocities, times 100 km/s/a
    let hubble = header.cosmology.map_or(0.0, |c| c.hubble_flow(header.a) * units.velocity_km_s(header.a));
    let has_gas = header.fields.has_gas();
    let mut enclosed = 0.0;
    let sums = sums.chunks_exact(Sums::NUMBERS).map(Sums::of);
    let shells = sums.zip(edges.windows(2)).map(|(sum, edge)| {
        let shell_volume = 4.0 / 3.0 * PI * (edge[1].powi(3) - edge[0].powi(3));
        enclosed += sum.mass / sum.volume * shell_volume * units.mass_msun_h();
        let radial_velocity_km_s = has_gas.then(|| sum.radial / sum.mass);
        let r_mpc_h = sum.radius / sum.mass;
        Shell {
            r_inner_mpc_h: edge[0],
            r_outer_mpc_h: edge[1],
            r_mpc_h,
            density: sum.mass / sum.volume,
            temperature_k: has_gas.then(|| sum.heat / sum.mass),
            radial_velocity_km_s,
            radial_velocity_with_hubble_km_s: radial_velocity_km_s.map(|velocity| velocity + hubble * r_mpc_h),
            enclosed_mass_msun_h: enclosed,
            cells: sum.cells as usize,
        }
    });
    HaloProfile {
        redshift: header.redshift(),
        halo: halo.id,
        centre_mpc_h: halo.position_mpc_h,
        radius_mpc_h: halo.radius_mpc_h,
        bulk_velocity_km_s: halo.velocity_km_s,
        shells: shells.collect(),
    }
}

/// Shells around a centre, and the velocity that theirs are relative to.
struct Shells {
    centre: [f64; 3],
    bulk_velocity_km_s: [f64; 3],
    edges: Vec<f64>,
}

impl Shells {
    /// From the numbers one after the other.
    fn of(numbers: &[f64]) -> Self {
        let [centre, bulk_velocity_km_s] = [0, 3].map(|first| std::array::from_fn(|a| numbers[first + a]));
        Self { centre, bulk_velocity_km_s, edges: numbers[6..].to_vec() }
    }

    fn sphere(&self) -> Sphere {
        Sphere { centre: self.centre, radius: self.edges[self.edges.len() - 1] }
    }
}

/// Deposits the cells of spheres in their shells.
struct Deposit<'a> {
    gas: &'a Gas,
    shells: &'a [Shells],
}

impl Look for Deposit<'_> {
    type Sums = Vec<Sums>;
    const FIELDS: usize = FIELDS;

    fn start(&self, n: usize) -> Vec<Sums> {
        vec![Sums::default(); self.shells[n].edges.len() - 1]
    }

    fn add(&self, n: usize, sums: &mut Vec<Sums>, cell: &LeafCell, offset: [f64; 3]) {
        let Shells { bulk_velocity_km_s, edges, .. } = &self.shells[n];
        if let Some(bin) = bin_of(edges, norm(offset)) {
            sums[bin].cells += 1.0;
        }
        let state = CellState::new(self.gas, cell, bulk_velocity_km_s);
        deposit(edges, sums, &state, offset, cell.width, DEEPEST);
    }

    fn finish(&self, _: usize, sums: Vec<Sums>) -> Vec<f64> {
        sums.iter().flat_map(Sums::numbers).collect()
    }
}

/// Bin edges: 0, r_min, then evenly in log r up to r_max; or why there are none.
fn edges(part: &Part, halo: &ProfileCentre, options: &ProfileOptions) -> Result<Vec<f64>, String> {
    let lengths = part.snapshot.box_lengths();
    let centre = position_in_box("position_mpc_h", halo.position_mpc_h, lengths, part.tree.periodic());
    let width = leaf_width_at(part, centre.map_err(|error| error.to_string())?);
    let r_min = options.r_min_mpc_h.unwrap_or(width);
    let r_max = options.r_max_mpc_h.unwrap_or((3.0 * halo.radius_mpc_h).min(half_of(lengths)));
    let cell = format!("the width of its central cell, {} Mpc/h", readable(width));
    if r_min < width / 8.0 {
        return Err(format!("r_min_mpc_h = {r_min} is less than an eighth of {cell}"));
    }
    if r_max <= r_min {
        let inner = options.r_min_mpc_h.map_or(cell, |r_min| format!("r_min_mpc_h = {r_min}"));
        let outer = match options.r_max_mpc_h {
            Some(r_max) => format!("r_max_mpc_h = {r_max} does"),
            None => format!("three times its radius, {} Mpc/h, do", readable(r_max)),
        };
        return Err(format!("{outer} not exceed {inner}"));
    }
    let decades = (r_max / r_min).log10();
    let bins = (decades * options.bins_per_decade as f64).round().max(1.0) as usize;
    let outer = (0..=bins).map(|n| r_min * (r_max / r_min).powf(n as f64 / bins as f64));
    Ok(std::iter::once(0.0).chain(outer).collect())
}

/// What a shell collects.
#[derive(Clone, Copy, Default)]
struct Sums {
    volume: f64,
    mass: f64,
    radius: f64,
    radial: f64,
    heat: f64,
    /// Leaf cells by their centres.
    cells: f64,
}

impl Sums {
    const NUMBERS: usize = 6;

    fn numbers(&self) -> [f64; Self::NUMBERS] {
        [self.volume, self.mass, self.radius, self.radial, self.heat, self.cells]
    }

    fn of(numbers: &[f64]) -> Self {
        let &[volume, mass, radius, radial, heat, cells] = numbers else { unreachable!("that many numbers") };
        Self { volume, mass, radius, radial, heat, cells }
    }
}

/// A cell's values, computed once for all its parts.
struct CellState {
    density: f64,
    velocity_km_s: [f64; 3],
    temperature_k: f64,
}

impl CellState {
    fn new(gas: &Gas, cell: &LeafCell, bulk_velocity_km_s: &[f64; 3]) -> Self {
        Self {
            density: cell.fluid[DENSITY],
            velocity_km_s: std::array::from_fn(|a| gas.velocity_km_s(cell, a) - bulk_velocity_km_s[a]),
            temperature_k: gas.temperature_k(cell),
        }
    }
}

fn bin_of(edges: &[f64], r: f64) -> Option<usize> {
    let bin = edges.partition_point(|&edge| edge <= r);
    (bin < edges.len()).then(|| bin - 1)
}

/// Adds a cube at `offset` from the centre, or its eight parts.
fn deposit(edges: &[f64], sums: &mut [Sums], state: &CellState, offset: [f64; 3], width: f64, depth: u32) {
    let nearest = norm(offset.map(|d| (d.abs() - 0.5 * width).max(0.0)));
    let farthest = norm(offset.map(|d| d.abs() + 0.5 * width));
    let r = norm(offset);
    if nearest >= edges[edges.len() - 1] {
        return;
    }
    // judged by the bins on both sides of an edge, so that parts on either side of it are split alike and no volume
    // moves across it on average
    let bin_width = |r: f64| {
        let upper = edges.partition_point(|&edge| edge <= r).min(edges.len() - 1);
        edges[upper] - edges[upper - 1]
    };
    let small = width < SMALL * bin_width(nearest).min(bin_width(farthest));
    let whole = small || bin_of(edges, nearest) == bin_of(edges, farthest);
    if depth > 0 && !(whole && width < 0.5 * r) {
        let quarter = 0.25 * width;
        for o in 0..8 {
            let side = |bit: usize| if o >> bit & 1 == 1 { quarter } else { -quarter };
            let part = [offset[0] + side(0), offset[1] + side(1), offset[2] + side(2)];
            deposit(edges, sums, state, part, 0.5 * width, depth - 1);
        }
        return;
    }
    let Some(bin) = bin_of(edges, r) else { return };
    let volume = width * width * width;
    let mass = state.density * volume;
    let along: f64 = (0..3).map(|a| state.velocity_km_s[a] * offset[a]).sum();
    let sum = &mut sums[bin];
    sum.volume += volume;
    sum.mass += mass;
    sum.radius += mass * r;
    sum.radial += if r > 0.0 { mass * along / r } else { 0.0 };
    sum.heat += mass * state.temperature_k;
}

impl Record for HaloProfile {
    fn table(&self) -> Table {
        Table::of(
            &self.shells,
            &[
                ("r_inner_mpc_h", |s| s.r_inner_mpc_h.into()),
                ("r_outer_mpc_h", |s| s.r_outer_mpc_h.into()),
                ("r_mpc_h", |s| s.r_mpc_h.into()),
                ("density_mean", |s| s.density.into()),
                ("temperature_k", |s| s.temperature_k.into()),
                ("radial_velocity_km_s", |s| s.radial_velocity_km_s.into()),
                ("radial_velocity_with_hubble_km_s", |s| s.radial_velocity_with_hubble_km_s.into()),
                ("enclosed_mass_msun_h", |s| s.enclosed_mass_msun_h.into()),
                ("cells", |s| s.cells.into()),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::sum_over_leaves;
    use crate::fixture::{self, Fixture, gas};
    use crate::halos::peaks::{HaloOptions, find_halos};
    use crate::sphere::visit_sphere;

    /// ρ = 0.5 + r0²/(r² + c²), v_r = −10 r in code units, P = ρ: density, enclosed mass, temperature and both radial
    /// velocities in closed form.
    #[test]
    fn analytic_profile_on_a_refined_tree() {
        const CORE: f64 = 0.02;
        let centre = [0.503, 0.497, 0.498];
        let mut fixture = Fixture::new(move |x| {
            let d = fixture::separation(x, centre, 1.0);
            let density = 0.5 + 0.81 / (fixture::norm(d).powi(2) + CORE * CORE);
            gas(density, d.map(|d| 1.0 - 10.0 * d), density)
        });
        (fixture.max_level, fixture.samples) = (2, 3);
        fixture.refine = Box::new(|_, x, half| fixture::norm(fixture::separation(x, [0.5; 3], 1.0)) < 3.0 * half);
        let snapshot = fixture.build();
        let mut halo = find_halos(&snapshot, &HaloOptions::default()).unwrap().halos.remove(0);
        (halo.position_mpc_h, halo.velocity_km_s) = (centre, [200.0; 3]);
        let options = ProfileOptions { r_min_mpc_h: Some(0.04), r_max_mpc_h: Some(0.4), bins_per_decade: 6 };
        let profile = halo_profile(&snapshot, &(&halo).into(), &options).unwrap();
        assert_eq!(profile.shells.len(), 7);
        let kelvin = snapshot.header.units().temperature_k(0.5, 0.6);
        for shell in &profile.shells {
            let (r1, r2) = (shell.r_inner_mpc_h, shell.r_outer_mpc_h);
            let mass = |r: f64| 4.0 * PI * (0.5 * r.powi(3) / 3.0 + 0.81 * (r - CORE * (r / CORE).atan()));
            let density = (mass(r2) - mass(r1)) / (4.0 / 3.0 * PI * (r2.powi(3) - r1.powi(3)));
            // a cell holds the mean of ρ over its width h: an error of order (h/r)²/4 in the shell, 1.5% at r = 4 h
            assert!((shell.density / density - 1.0).abs() < 0.015, "{shell:?} {density}");
            let enclosed = mass(r2) * snapshot.header.units().mass_msun_h();
            assert!((shell.enclosed_mass_msun_h / enclosed - 1.0).abs() < 0.015, "{shell:?} {enclosed:e}");
            // P = ρ everywhere; the velocity spread inside a cell, (10 h)²/12 = 0.8% at h = 1/32, counts as heat
            assert!((shell.temperature_k.unwrap() / kelvin - 1.0).abs() < 8e-3, "{shell:?} {kelvin}");
            let infall = -10.0 * shell.r_mpc_h * 200.0;
            assert!((shell.radial_velocity_km_s.unwrap() / infall - 1.0).abs() < 0.015, "{shell:?} {infall}");
            let e = (0.3f64 * 8.0 + 0.7).sqrt();
            let hubble = shell.radial_velocity_with_hubble_km_s.unwrap() - shell.radial_velocity_km_s.unwrap();
            assert!((hubble - 0.5 * 100.0 * e * shell.r_mpc_h).abs() < 1e-9, "a H r, r in Mpc/h");
        }
    }

    /// Shells against a search over every leaf cell, split into 16³.
    #[test]
    fn agrees_with_brute_force_over_the_leaf_list() {
        let snapshot = Fixture::blob().build();
        let options = HaloOptions { delta: 20.0, ..HaloOptions::default() };
        let halo = find_halos(&snapshot, &options).unwrap().halos.remove(0);
        let options = ProfileOptions { r_max_mpc_h: Some(0.2), bins_per_decade: 8, ..ProfileOptions::default() };
        let profile = halo_profile(&snapshot, &(&halo).into(), &options).unwrap();
        for shell in &profile.shells {
            let [mass, volume] = sum_over_leaves(&snapshot, |cell| {
                let mut inside = 0;
                let reach = crate::sphere::separation(&snapshot, halo.position_mpc_h, cell.position);
                let (nearest, farthest) = (norm(reach) - cell.width, norm(reach) + cell.width);
                if nearest < shell.r_outer_mpc_h && farthest > shell.r_inner_mpc_h {
                    for s in 0..16 * 16 * 16 {
                        let sub = [s % 16, s / 16 % 16, s / 256];
                        let d = std::array::from_fn(|a| reach[a] + ((sub[a] as f64 + 0.5) / 16.0 - 0.5) * cell.width);
                        let r = norm(d);
                        inside += u64::from(r >= shell.r_inner_mpc_h && r < shell.r_outer_mpc_h);
                    }
                }
                let part = inside as f64 / 4096.0;
                [part * cell.fluid[DENSITY] * cell.volume(), part * cell.volume()]
            });
            assert!((shell.density / (mass / volume) - 1.0).abs() < 5e-3, "{shell:?} {}", mass / volume);
        }
        let centres: usize = profile.shells.iter().map(|s| s.cells).sum();
        let mut expected = 0;
        visit_sphere(&snapshot, halo.position_mpc_h, 0.2, |_, d| expected += usize::from(norm(d) < 0.2));
        assert_eq!(centres, expected);
    }

    #[test]
    fn ranges_are_checked() {
        let snapshot = Fixture::blob().build();
        let options = HaloOptions { delta: 20.0, ..HaloOptions::default() };
        let halo = find_halos(&snapshot, &options).unwrap().halos.remove(0);
        for (r_min, r_max) in [(Some(1e-6), None), (Some(0.1), Some(0.05)), (None, Some(0.6))] {
            let options = ProfileOptions { r_min_mpc_h: r_min, r_max_mpc_h: r_max, ..ProfileOptions::default() };
            assert!(matches!(halo_profile(&snapshot, &(&halo).into(), &options), Err(AnalysisError::Option { .. })));
        }
    }

    /// Halos that the mesh resolves have profiles, whatever the others are; the reason names no option that nobody set.
    #[test]
    fn halos_narrower_than_a_cell_are_left_out() {
        let snapshot = Fixture::blob().build();
        let options = HaloOptions { delta: 20.0, ..HaloOptions::default() };
        let halo = ProfileCentre::from(&find_halos(&snapshot, &options).unwrap().halos.remove(0));
        let tiny = ProfileCentre { id: 1, radius_mpc_h: 0.0015, ..halo.clone() };
        let of = |options: &ProfileOptions| {
            let halos = [tiny.clone(), halo.clone()];
            let matter = OneFluid::new(&snapshot);
            alone(&snapshot, |communicator, part| halo_profiles_by(communicator, part, &matter, &halos, options))
        };
        let found = of(&ProfileOptions::default()).unwrap();
        assert_eq!(found.profiles, [halo_profile(&snapshot, &halo, &ProfileOptions::default()).unwrap()]);
        let reason =
            "three times its radius, 0.004500 Mpc/h, do not exceed the width of its central cell, 0.007812 Mpc/h";
        assert_eq!(found.without, [WithoutProfile { halo: 1, reason: reason.into() }]);
        let refused = halo_profile(&snapshot, &tiny, &ProfileOptions::default()).unwrap_err().to_string();
        assert_eq!(refused, format!("halo = 1: no profile: {reason}"));
        let found = of(&ProfileOptions { r_min_mpc_h: Some(0.002), ..ProfileOptions::default() }).unwrap();
        assert_eq!((found.profiles.len(), found.without.len()), (2, 0));
        let found = of(&ProfileOptions { r_min_mpc_h: Some(0.01), ..ProfileOptions::default() }).unwrap();
        assert!(found.without[0].reason.ends_with("do not exceed r_min_mpc_h = 0.01"), "{found:?}");
    }
}
