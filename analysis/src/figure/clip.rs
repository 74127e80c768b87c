//! Curves and areas cut at a frame, in the figure's coordinates: programs that read the files see no coordinates outside.

/// Rounding tolerance at the frame in points.
const TOLERANCE: f64 = 1e-6;

/// A rectangle that cuts what is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    pub low: [f64; 2],
    pub high: [f64; 2],
}

impl Clip {
    /// Whether a point is inside.
    pub(super) fn holds(&self, point: [f64; 2]) -> bool {
        (0..2).all(|a| (self.low[a] - TOLERANCE..=self.high[a] + TOLERANCE).contains(&point[a]))
    }

    /// The pieces of a polyline inside; a point that is not finite interrupts it (Liang & Barsky 1984).
    pub(super) fn polyline(&self, points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
        let mut pieces: Vec<Vec<[f64; 2]>> = Vec::new();
        // whether the last piece ends at the end of the last segment
        let mut is_open = false;
        for pair in points.windows(2) {
            let [from, to] = [pair[0], pair[1]];
            let Some([start, end]) = self.segment(from, to) else {
                is_open = false;
                continue;
            };
            let at = |t: f64| match t {
                0.0 => from,
                1.0 => to,
                t => std::array::from_fn(|a| (from[a] + t * (to[a] - from[a])).clamp(self.low[a], self.high[a])),
            };
            match pieces.last_mut() {
                Some(piece) if is_open && start == 0.0 => piece.push(at(end)),
                _ => pieces.push(vec![at(start), at(end)]),
            }
            is_open = end == 1.0;
        }
        pieces
    }

    /// Parameters of the ends of the part of a segment that is inside.
    fn segment(&self, from: [f64; 2], to: [f64; 2]) -> Option<[f64; 2]> {
        if !from.iter().chain(&to).all(|c| c.is_finite()) {
            return None;
        }
        let (mut start, mut end) = (0.0f64, 1.0f64);
        for a in 0..2 {
            let step = to[a] - from[a];
            for (distance, rate) in
                [(from[a] - self.low[a] + TOLERANCE, -step), (self.high[a] - from[a] + TOLERANCE, step)]
            {
                if rate == 0.0 {
                    if distance < 0.0 {
                        return None;
                    }
                } else if rate < 0.0 {
                    start = start.max(distance / rate);
                } else {
                    end = end.min(distance / rate);
                }
            }
        }
        (start <= end).then_some([start, end])
    }

    /// The part of a polygon inside (Sutherland & Hodgman 1974); empty if there is none.
    pub(super) fn polygon(&self, corners: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let mut corners = corners.to_vec();
        for a in 0..2 {
            for (bound, sign) in [(self.low[a], 1.0), (self.high[a], -1.0)] {
                let mut kept = Vec::with_capacity(corners.len() + 4);
                for (n, &to) in corners.iter().enumerate() {
                    let from = corners[(n + corners.len() - 1) % corners.len()];
                    let inside = |p: [f64; 2]| sign * (p[a] - bound) >= 0.0;
                    if inside(from) != inside(to) {
                        let t = (bound - from[a]) / (to[a] - from[a]);
                        let mut cut: [f64; 2] = std::array::from_fn(|b| from[b] + t * (to[b] - from[b]));
                        cut[a] = bound;
                        kept.push(cut);
                    }
                    if inside(to) {
                        kept.push(to);
                    }
                }
                corners = kept;
            }
        }
        corners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Clip = Clip { low: [0.0; 2], high: [1.0; 2] };

    #[test]
    fn polylines_are_cut_at_the_frame() {
        let pieces = UNIT.polyline(&[[0.5, -1.0], [0.5, 0.5], [0.75, 0.5], [0.75, 3.0], [0.25, 3.0], [0.25, 0.5]]);
        assert_eq!(pieces.len(), 2);
        let expected = [vec![[0.5, 0.0], [0.5, 0.5], [0.75, 0.5], [0.75, 1.0]], vec![[0.25, 1.0], [0.25, 0.5]]];
        for (found, expected) in pieces.iter().flatten().zip(expected.iter().flatten()) {
            assert!((0..2).all(|a| (found[a] - expected[a]).abs() < 1e-5), "{pieces:?}");
        }
        assert!(UNIT.polyline(&[[-1.0, 0.5], [0.5, 1e9]]).is_empty());
        assert_eq!(UNIT.polyline(&[[0.1, 0.1], [0.2, 0.2], [f64::NAN, 0.3], [0.4, 0.4], [0.5, 0.5]]).len(), 2);
    }

    #[test]
    fn polygons_are_cut_at_the_frame() {
        let area = |corners: &[[f64; 2]]| {
            let next = |n: usize| corners[(n + 1) % corners.len()];
            0.5 * (0..corners.len()).map(|n| corners[n][0] * next(n)[1] - next(n)[0] * corners[n][1]).sum::<f64>()
        };
        let cut = UNIT.polygon(&[[-1.0, 0.25], [2.0, 0.25], [2.0, 9.0], [-1.0, 9.0]]);
        assert!((area(&cut) - 0.75).abs() < 1e-12 && cut.iter().all(|&p| UNIT.holds(p)), "{cut:?}");
        assert!(UNIT.polygon(&[[2.0, 2.0], [3.0, 2.0], [3.0, 3.0]]).is_empty());
    }
}
