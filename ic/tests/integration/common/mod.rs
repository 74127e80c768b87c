//! What tests of files share.

use comove_ic::{GaussianIc, LoadFormat, LoadIc};
use std::path::Path;

/// The initial condition of a file that holds what another generates.
pub(crate) fn load(ic: GaussianIc, path: &Path, format: LoadFormat) -> LoadIc {
    LoadIc {
        path: path.into(),
        format: Some(format),
        length_unit: None,
        cosmology: ic.cosmology,
        box_mpc_h: ic.box_mpc_h,
        cells: ic.cells,
        z: ic.z,
        temperature_k: None,
        mean_molecular_weight: ic.mean_molecular_weight,
        gamma: ic.gamma,
        baryons_only: false,
        follow: comove_ic::Identities::default(),
        trust: None,
    }
}
