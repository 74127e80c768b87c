//! The `/Info` compounds: what yt reads of sizes, times and units. Field names are the file's.
//!
//! yt merges the compounds into one dictionary, so no name occurs in two of them.

use super::digest::Stored;
use super::gamer::{LEVELS, TreeShape, cell_scale};
use super::header::SnapshotHeader;
use crate::parameters::{Coordinates, Precision};
use comove_kernels::layout::{GROUP, OCTANTS, PATCH};
use hdf5::H5Type;

/// Version of GAMER's format that the layout follows. Not raised with GAMER's own: see the units of the epoch in
/// `docs/snapshot-format.md`.
const GAMER_FORMAT: i32 = 2475;
/// GAMER's number for hydrodynamics.
const HYDRO: i32 = 1;

/// A compound of the file and its byte form.
macro_rules! compound {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        #[derive(Clone, Copy, Debug, PartialEq, H5Type)]
        #[repr(C)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        impl Stored for $name {
            const BYTES: usize = 0 $(+ <$type as Stored>::BYTES)*;
            fn put(&self, bytes: &mut [u8]) {
                let rest = bytes;
                $(
                    let (bytes, rest) = rest.split_at_mut(<$type as Stored>::BYTES);
                    self.$field.put(bytes);
                )*
                debug_assert!(rest.is_empty());
            }
        }
    };
}

compound! {
    /// `/Info/KeyInfo`: sizes and time. `Time` is the scale factor when comoving.
    KeyInfo {
        FormatVersion: i32,
        Model: i32,
        Float8: i32,
        NLevel: i32,
        PatchSize: i32,
        NX0: [i32; 3],
        NPatch: [i32; LEVELS],
        CellScale: [i32; LEVELS],
        BoxSize: [f64; 3],
        Time: [f64; LEVELS],
        Step: i64,
    }
}

compound! {
    /// `/Info/Makefile`: whether coordinates are comoving.
    Makefile {
        Comoving: i32,
    }
}

compound! {
    /// `/Info/InputPara`: units in cgs and gas constants. `Unit_L`, `Unit_M`, `Unit_T` are the units of the epoch, the
    /// others those of a = 1.
    InputPara {
        Unit_L: f64,
        Unit_M: f64,
        Unit_T: f64,
        Unit_L_Comoving: f64,
        Unit_M_Comoving: f64,
        Unit_T_Comoving: f64,
        OmegaM0: f64,
        Hubble0: f64,
        Gamma: f64,
        MolecularWeight: f64,
        Opt__Unit: i32,
        Opt__BC_Flu: [i32; 6],
    }
}

/// Sizes and time of a snapshot.
pub(super) fn key_info(header: &SnapshotHeader, tree: &TreeShape) -> KeyInfo {
    let cells = tree.root_groups.map(|n| n as i32 * GROUP as i32);
    let time = match header.coordinates {
        Coordinates::Comoving => header.a,
        Coordinates::Plain => header.time,
    };
    KeyInfo {
        FormatVersion: GAMER_FORMAT,
        Model: HYDRO,
        Float8: i32::from(header.precision == Precision::Double),
        NLevel: LEVELS as i32,
        PatchSize: PATCH as i32,
        NX0: cells,
        NPatch: std::array::from_fn(|level| tree.groups.get(level).map_or(0, |n| (n * OCTANTS) as i32)),
        CellScale: std::array::from_fn(cell_scale),
        BoxSize: cells.map(|n| header.box_length * (f64::from(n) / f64::from(cells[0]))),
        Time: [time; LEVELS],
        Step: header.step as i64,
    }
}

/// Whether the coordinates of a snapshot are comoving.
pub(super) fn makefile(header: &SnapshotHeader) -> Makefile {
    Makefile { Comoving: i32::from(header.coordinates == Coordinates::Comoving) }
}

/// Units and gas constants of a snapshot.
pub(super) fn input_para(header: &SnapshotHeader, tree: &TreeShape) -> InputPara {
    let units = header.units();
    InputPara {
        Unit_L: units.length_cm(header.a),
        Unit_M: units.mass_g(),
        Unit_T: units.time_s(header.a),
        Unit_L_Comoving: units.length_cm(1.0),
        Unit_M_Comoving: units.mass_g(),
        Unit_T_Comoving: units.time_s(1.0),
        OmegaM0: header.cosmology.map_or(0.0, |c| c.omega_m),
        Hubble0: header.cosmology.map_or(0.0, |c| c.h),
        Gamma: header.gamma,
        MolecularWeight: header.mean_molecular_weight,
        Opt__Unit: 1,
        // GAMER's 1 is periodic, 2 outflow; readers ask for periodicity alone
        Opt__BC_Flu: std::array::from_fn(|face| if tree.periodic[face / 2] { 1 } else { 2 }),
    }
}
