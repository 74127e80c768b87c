//! The clock: scale factor and code time, and how a step is placed on them.

use crate::cosmology::Cosmology;
use serde::{Deserialize, Serialize};

/// Where a run stands in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Scale factor; in non-comoving coordinates it stays 1.
    pub a: f64,
    /// Code time since the start of the run.
    pub time: f64,
    cosmology: Option<Cosmology>,
}

/// A root step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Δt, code time.
    pub dt: f64,
    /// Scale factor at the kick, in the middle.
    pub a_mid: f64,
    /// The clock at the end.
    pub end: Clock,
}

impl Clock {
    /// The background; none in non-comoving coordinates.
    pub fn cosmology(&self) -> Option<&Cosmology> {
        self.cosmology.as_ref()
    }

    /// A clock at scale factor `a` of a cosmology, or one that shows plain time.
    pub fn new(a: f64, time: f64, cosmology: Option<Cosmology>) -> Self {
        Self { a, time, cosmology }
    }

    /// What users set a run's end and outputs in: the scale factor, or the time in non-comoving coordinates.
    pub fn now(&self) -> f64 {
        if self.cosmology.is_some() { self.a } else { self.time }
    }

    /// Redshift 1/a − 1; `None` in non-comoving coordinates.
    pub fn redshift(&self) -> Option<f64> {
        self.cosmology.map(|_| 1.0 / self.a - 1.0)
    }

    /// The step over `dt`.
    pub fn interval(&self, dt: f64) -> Interval {
        let end = Self { a: self.scale_factor_after(dt), time: self.time + dt, ..*self };
        Interval { dt, a_mid: self.scale_factor_after(0.5 * dt), end }
    }

    /// The scale factor when code time has gone on by `time`.
    pub fn scale_factor_after(&self, time: f64) -> f64 {
        self.cosmology.map_or(1.0, |c| c.scale_factor_after(self.a, time))
    }

    /// The step that ends exactly at `target` (see [`Clock::now`]).
    pub fn interval_to(&self, target: f64) -> Interval {
        match self.cosmology {
            Some(c) => {
                let mut interval = self.interval(c.code_time(self.a, target));
                interval.end.a = target;
                interval
            }
            None => {
                let mut interval = self.interval(target - self.time);
                interval.end.time = target;
                interval
            }
        }
    }

    /// Δt in which a grows by the factor 1 + `max_delta_a`; no limit in non-comoving coordinates.
    pub fn expansion_limit(&self, max_delta_a: f64) -> f64 {
        self.cosmology.map_or(f64::INFINITY, |c| c.code_time(self.a, self.a * (1.0 + max_delta_a)))
    }

    /// Code velocity at which places a code length apart move apart with the expansion at scale factor `a`.
    pub fn hubble_flow(&self, a: f64) -> f64 {
        self.cosmology.map_or(0.0, |c| c.hubble_flow(a))
    }

    /// 4πG at scale factor `a`: of the cosmology, else the given constant.
    pub fn four_pi_g(&self, a: f64, plain: f64) -> f64 {
        self.cosmology.map_or(plain, |c| c.four_pi_g(a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipped_and_unclipped_steps_agree() {
        let clock = Clock::new(0.1, 0.0, Some(Cosmology::flat(0.7, 0.3, 0.04, 0.8, 1.0)));
        let step = clock.interval(0.02);
        assert!(step.a_mid > clock.a && step.end.a > step.a_mid);
        let clipped = clock.interval_to(step.end.a);
        assert!((clipped.dt / step.dt - 1.0).abs() < 1e-11);
        assert_eq!(clipped.end.a, step.end.a);
        let limit = clock.expansion_limit(0.01);
        assert!((clock.interval(limit).end.a / 0.101 - 1.0).abs() < 1e-12);
    }
}
