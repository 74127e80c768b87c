//! Centres of groups by shrinking spheres (Power et al. 2003, MNRAS 338, 14).

use crate::particle_grid::ParticleGrid;
use crate::sphere::norm;

/// What a sphere's radius is multiplied by for the next one.
const SHRINK: f64 = 0.95;
/// The last sphere holds this share of the group,
const SHARE: f64 = 0.01;
/// and at least so many particles.
const LEAST: usize = 16;

/// The centre of a group in code length: spheres about the centre of mass of what the one before holds shrink until they
/// hold 1% of the particles, or 16.
pub(super) fn shrinking_sphere(grid: &ParticleGrid, group: &[u32]) -> [f64; 3] {
    let anchor = group[0] as usize;
    let mut offsets: Vec<[f64; 3]> = group.iter().map(|&particle| grid.separation(anchor, particle as usize)).collect();
    let from = |x: [f64; 3], centre: [f64; 3]| norm([x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]]);
    let mean = |inside: &mut dyn Iterator<Item = &[f64; 3]>| {
        let (mut sum, mut count) = ([0.0; 3], 0);
        for x in inside {
            (0..3).for_each(|a| sum[a] += x[a]);
            count += 1;
        }
        (sum.map(|s| s / count as f64), count)
    };
    let (mut centre, mut count) = mean(&mut offsets.iter());
    let mut radius = offsets.iter().map(|&x| from(x, centre)).fold(0.0, f64::max);
    let enough = LEAST.max((SHARE * group.len() as f64) as usize);
    while count > enough && radius > 0.0 {
        radius *= SHRINK;
        let (next, inside) = mean(&mut offsets.iter().filter(|&&x| from(x, centre) <= radius));
        if inside < enough {
            break;
        }
        (centre, count) = (next, inside);
        // what is two radii away plays no further part
        offsets.retain(|&x| from(x, centre) <= 2.0 * radius);
    }
    let lengths = grid.box_lengths();
    let anchor = grid.position(anchor);
    std::array::from_fn(|a| (anchor[a] + centre[a]).rem_euclid(lengths[a]))
}
