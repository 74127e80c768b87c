//! Boundary conditions at the six faces of the box, for the gas and for its gravity.

use crate::error::SimError;
use comove_kernels::layout::{DENSITY, ENERGY, ENTROPY, FACES, FIELDS, MOMENTUM};
use comove_kernels::{Eos, FaceBoundary};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The boundary condition at one face of the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The other side of the box.
    #[default]
    Periodic,
    /// Copies of the outermost cell.
    Outflow,
    /// The mirror image of the cells inside: a wall.
    Reflecting,
    /// Gas in a given state.
    Fixed(FixedGas),
}

/// Gas that never changes, in code units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedGas {
    /// Mass density.
    pub density: f64,
    /// Velocity along x, y, z.
    pub velocity: [f64; 3],
    /// Pressure.
    pub pressure: f64,
}

impl FixedGas {
    /// Conserved values, `[6]`, of gas with a ratio of specific heats.
    pub fn conserved(&self, gamma: f64) -> [f64; FIELDS] {
        let mut values = [0.0; FIELDS];
        values[DENSITY] = self.density;
        for axis in 0..3 {
            values[MOMENTUM + axis] = self.density * self.velocity[axis];
        }
        let kinetic = 0.5 * self.density * self.velocity.iter().map(|v| v * v).sum::<f64>();
        values[ENERGY] = kinetic + self.pressure / (gamma - 1.0);
        values[ENTROPY] = Eos::<f64>::new(gamma).entropy(self.density, self.pressure);
        values
    }

    /// Its fastest signal along an axis, max |v| + c_s, for gas with a ratio of specific heats.
    pub fn signal_speed(&self, gamma: f64) -> f64 {
        let fastest = self.velocity.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        fastest + (gamma * self.pressure / self.density).sqrt()
    }
}

/// The boundary conditions at the faces of the box; periodic in pairs.
///
/// In a recipe: one for all faces (`"outflow"`), or by axis `#{ x: "periodic", y: ["reflecting", "outflow"] }`, for
/// both faces or the lower and the upper one; axes left out are periodic. It is written as one for all faces where they
/// agree, else by axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Boundaries {
    /// −x, +x, −y, +y, −z, +z.
    pub faces: [Boundary; FACES],
}

impl Boundaries {
    /// The same on all faces.
    pub const fn all(boundary: Boundary) -> Self {
        Self { faces: [boundary; FACES] }
    }

    /// Along which axes the box is periodic.
    pub fn periodic(&self) -> [bool; 3] {
        [0, 1, 2]
            .map(|axis| self.faces[2 * axis] == Boundary::Periodic && self.faces[2 * axis + 1] == Boundary::Periodic)
    }

    /// The faces as the kernels see them, for gas with a ratio of specific heats. Periodic ones say nothing there.
    pub fn for_kernels(&self, gamma: f64) -> [FaceBoundary; FACES] {
        self.faces.map(|face| match face {
            Boundary::Periodic | Boundary::Outflow => FaceBoundary::Outflow,
            Boundary::Reflecting => FaceBoundary::Reflecting,
            Boundary::Fixed(gas) => FaceBoundary::Fixed(gas.conserved(gamma)),
        })
    }

    /// The faces with fixed gas beyond them, and that gas.
    pub fn fixed(&self) -> impl Iterator<Item = (usize, &FixedGas)> {
        self.faces.iter().enumerate().filter_map(|(face, boundary)| match boundary {
            Boundary::Fixed(gas) => Some((face, gas)),
            _ => None,
        })
    }

    /// Checks that periodic faces come in pairs and that fixed gas can exist.
    ///
    /// # Errors
    /// [`SimError::Parameter`].
    pub fn check(&self) -> Result<(), SimError> {
        for (pair, axis) in self.faces.chunks_exact(2).zip(["x", "y", "z"]) {
            let periodic = |face: &Boundary| *face == Boundary::Periodic;
            let reason = format!("along {axis} one face is periodic and the other is not: make both periodic or none");
            SimError::require("boundary", self, periodic(&pair[0]) == periodic(&pair[1]), reason)?;
        }
        for (_, gas) in self.fixed() {
            let positive = gas.density > 0.0 && gas.pressure > 0.0;
            let finite = gas.velocity.iter().chain([&gas.density, &gas.pressure]).all(|value| value.is_finite());
            let reason = "fixed gas needs a positive density and pressure, and finite numbers";
            SimError::require("boundary", self, positive && finite, reason)?;
        }
        Ok(())
    }
}

impl fmt::Display for Boundaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?.replace('"', ""))
    }
}

impl Serialize for Boundaries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.faces.iter().all(|face| *face == self.faces[0]) {
            return self.faces[0].serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(3))?;
        for (axis, pair) in ["x", "y", "z"].iter().zip(self.faces.chunks_exact(2)) {
            if pair[0] == pair[1] {
                map.serialize_entry(axis, &pair[0])?;
            } else {
                map.serialize_entry(axis, pair)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Boundaries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoundariesVisitor)
    }
}

struct BoundariesVisitor;

impl<'de> Visitor<'de> for BoundariesVisitor {
    type Value = Boundaries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boundary for all faces, or a map of them by axis x, y, z")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Boundaries, E> {
        named(name).map(Boundaries::all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Boundaries, A::Error> {
        let mut boundaries = Boundaries::default();
        while let Some(key) = map.next_key::<String>()? {
            let axis = match key.as_str() {
                "x" => 0,
                "y" => 1,
                "z" => 2,
                "fixed" => {
                    boundaries = Boundaries::all(Boundary::Fixed(map.next_value()?));
                    continue;
                }
                _ => return Err(A::Error::unknown_field(&key, &["x", "y", "z", "fixed"])),
            };
            let Pair(pair) = map.next_value()?;
            boundaries.faces[2 * axis..][..2].copy_from_slice(&pair);
        }
        Ok(boundaries)
    }
}

/// The two faces across one axis.
struct Pair([Boundary; 2]);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairVisitor)
    }
}

struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boundary, or a list of two for the lower and the upper face")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Pair, E> {
        named(name).map(|boundary| Pair([boundary; 2]))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pair, A::Error> {
        Boundary::deserialize(MapAccessDeserializer::new(map)).map(|boundary| Pair([boundary; 2]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pair, A::Error> {
        let mut next = |n| list.next_element()?.ok_or_else(|| A::Error::invalid_length(n, &self));
        let pair = Pair([next(0)?, next(1)?]);
        match list.next_element::<Boundary>()? {
            None => Ok(pair),
            Some(_) => Err(A::Error::invalid_length(3, &self)),
        }
    }
}

/// The boundary of that name.
fn named<E: Error>(name: &str) -> Result<Boundary, E> {
    Boundary::deserialize(StrDeserializer::new(name))
}

/// What the potential does far away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GravityBoundary {
    /// It repeats itself with the box; the mean density does not attract.
    #[default]
    Periodic,
    /// It vanishes at infinity: there is no mass outside the box.
    Isolated,
}

impl GravityBoundary {
    /// Checks that the gas has boundaries of the same kind.
    ///
    /// # Errors
    /// [`SimError::Parameter`] that says what to set.
    pub(crate) fn check(self, gas: &Boundaries) -> Result<(), SimError> {
        let periodic = gas.periodic();
        match self {
            Self::Periodic => {
                let reason = "gravity is periodic and needs a box that is periodic along all axes: set boundary: \
                              \"periodic\", or gravity_boundary: \"isolated\" (no axis periodic), or gravity: false";
                SimError::require("boundary", gas, periodic == [true; 3], reason)
            }
            Self::Isolated => {
                let reason = "isolated gravity needs a box that is not periodic along any axis: set boundary: \
                              \"outflow\", \"reflecting\" or fixed on all faces, or gravity_boundary: \"periodic\"";
                SimError::require("boundary", gas, periodic == [false; 3], reason)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<Boundaries, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn recipes_say_it_in_short() {
        use Boundary::{Outflow, Periodic, Reflecting};
        let gas = json!({ "density": 1, "velocity": [3, 0, 0.5], "pressure": 2 });
        let fixed = Boundary::Fixed(FixedGas { density: 1.0, velocity: [3.0, 0.0, 0.5], pressure: 2.0 });
        for (value, faces) in [
            (json!("outflow"), [Outflow; 6]),
            (json!({ "fixed": gas }), [fixed; 6]),
            (json!({}), [Periodic; 6]),
            (json!({ "y": "reflecting" }), [Periodic, Periodic, Reflecting, Reflecting, Periodic, Periodic]),
            (
                json!({ "x": [{ "fixed": gas }, "outflow"], "y": "periodic", "z": { "fixed": gas } }),
                [fixed, Outflow, Periodic, Periodic, fixed, fixed],
            ),
        ] {
            let boundaries = read(value).unwrap();
            assert_eq!(boundaries.faces, faces);
            // the form that is written reads the same, and is written again the same
            let written = serde_json::to_value(boundaries).unwrap();
            assert_eq!(read(written.clone()).unwrap(), boundaries);
            assert_eq!(serde_json::to_value(read(written.clone()).unwrap()).unwrap(), written);
        }
        assert_eq!(serde_json::to_value(Boundaries::all(Outflow)).unwrap(), json!("outflow"));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |value: Value| read(value).unwrap_err();
        assert!(error(json!("outlfow")).contains("unknown variant `outlfow`"));
        assert!(error(json!({ "w": "outflow" })).contains("unknown field `w`"));
        assert!(error(json!({ "x": ["outflow"] })).contains("a list of two"));
        assert!(error(json!({ "x": ["outflow", "outflow", "outflow"] })).contains("a list of two"));
        assert!(error(json!(3)).contains("a boundary for all faces"));
        assert!(error(json!({ "x": { "fixed": { "density": 1, "pressure": 1 } } })).contains("velocity"));

        let check = |value: Value| read(value).unwrap().check().map_err(|error| error.to_string());
        let half = check(json!({ "z": ["periodic", "outflow"] })).unwrap_err();
        assert!(half.starts_with("boundary = {x:periodic,y:periodic,z:[periodic,outflow]}: along z"), "{half}");
        let cold = json!({ "fixed": { "density": 1, "velocity": [0, 0, 0], "pressure": 0 } });
        assert!(check(cold).unwrap_err().contains("positive density and pressure"));
    }

    #[test]
    fn gas_and_gravity_agree() {
        let mixed = read(json!({ "x": "outflow" })).unwrap();
        let closed = Boundaries::all(Boundary::Reflecting);
        for (gravity, gas, fits) in [
            (GravityBoundary::Periodic, Boundaries::default(), true),
            (GravityBoundary::Periodic, mixed, false),
            (GravityBoundary::Isolated, mixed, false),
            (GravityBoundary::Isolated, closed, true),
            (GravityBoundary::Isolated, Boundaries::default(), false),
        ] {
            assert_eq!(gravity.check(&gas).is_ok(), fits, "{gravity:?} {gas}");
        }
    }
}
