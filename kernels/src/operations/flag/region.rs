//! A region of the box that is refined whatever the gas does.

use super::FlagLevel;
use crate::layout::GROUP;

/// All points within `radius` of the box from `min` to `max`: with radius 0 that box itself, with `min` = `max` a ball.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Region {
    /// Lower corner, code length.
    pub min: [f64; 3],
    /// Upper corner, code length.
    pub max: [f64; 3],
    /// Code length.
    pub radius: f64,
}

impl Region {
    /// For each cell of a group along one axis, the squared distance of its nearest point to the box along that axis;
    /// across a periodic boundary the nearest image counts. A cell that only touches a box of radius 0 is infinitely
    /// far away: it shares no volume with it.
    pub(super) fn distances<T>(&self, level: &FlagLevel<T>, coordinate: [u32; 3], axis: usize) -> [f64; GROUP] {
        let h = level.cell_width;
        let length = level.cells[axis] as f64 * h;
        let images = if level.periodic[axis] { -1..=1 } else { 0..=0 };
        std::array::from_fn(|i| {
            let lower = (f64::from(coordinate[axis]) * GROUP as f64 + i as f64) * h;
            let gap = |image: i32| {
                let shift = f64::from(image) * length;
                (self.min[axis] + shift - (lower + h)).max(lower - (self.max[axis] + shift))
            };
            let gap = images.clone().map(gap).fold(f64::INFINITY, f64::min);
            match gap {
                _ if gap < 0.0 => 0.0,
                _ if self.radius == 0.0 => f64::INFINITY,
                _ => gap * gap,
            }
        })
    }
}
