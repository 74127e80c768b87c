//! `ic_gaussian` and `ic_load`.

use super::{Bound, Initial, NAME, input_path, name_of};
use crate::campaign::Node;
use crate::recipe::docs::Function;
use crate::recipe::engine::Session;
use crate::recipe::error::Refusal;
use crate::recipe::options::decode_with;
use crate::stage::ic::{GaussianOptions, InitialCondition, LoadOptions};
use comove_ic::PowerSource;
use comove_sim::Cosmology;
use rhai::{Engine, ImmutableString, Map};
use std::sync::Arc;

/// Both.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "ic_gaussian",
        signatures: &["ic_gaussian(cosmology: Cosmology, options: Map) -> InitialCondition"],
        usage: "ic_gaussian(COSMOLOGY, #{ box_mpc_h, cells, z, seed, … })",
        text: "A Gaussian random field with the velocities of the growing mode.",
        options: &["GaussianOptions", "Naming"],
    },
    Function {
        name: "ic_load",
        signatures: &["ic_load(cosmology: Cosmology, file: String, options: Map) -> InitialCondition"],
        usage: "ic_load(COSMOLOGY, \"file\", #{ box_mpc_h, cells, z, format, … })",
        text: "A uniform mesh from a file, named relative to the recipe's folder.",
        options: &["LoadOptions", "Naming"],
    },
];

/// Registers both.
pub fn register(engine: &mut Engine, session: &Arc<Session>) {
    let shared = session.clone();
    engine.register_fn("ic_gaussian", move |cosmology: Cosmology, mut options: Map| -> Bound<Initial> {
        let name = name_of("ic_gaussian", &mut options)?;
        let mut options: GaussianOptions = decode_with("ic_gaussian", options, &[NAME])?;
        if let PowerSource::CambTransfer(path) | PowerSource::CambPower(path) = &mut options.power {
            *path = input_path(&shared, &path.to_string_lossy());
        }
        let (ic, root) = options.build(cosmology);
        handle("ic_gaussian", ic, root, name)
    });
    let shared = session.clone();
    let load = move |cosmology: Cosmology, file: ImmutableString, mut options: Map| -> Bound<Initial> {
        let name = name_of("ic_load", &mut options)?;
        let options: LoadOptions = decode_with("ic_load", options, &[NAME])?;
        let (ic, root) = options.build(cosmology, input_path(&shared, &file));
        handle("ic_load", ic, root, name)
    };
    engine.register_fn("ic_load", load);
}

fn handle(function: &str, ic: InitialCondition, root: [usize; 3], name: Option<String>) -> Bound<Initial> {
    let facts = ic.facts(root).map_err(|message| Refusal::error(function, message, Some("root")))?;
    let refuse = |key: &str, message: String| Err(Refusal::error(function, message, Some(key)));
    if facts.box_mpc_h <= 0.0 {
        return refuse("box_mpc_h", format!("box_mpc_h = {}: must be positive", facts.box_mpc_h));
    }
    if facts.z <= 0.0 {
        return refuse("z", format!("z = {}: must be positive", facts.z));
    }
    Ok(Initial::Mesh { node: Node::named(ic, Vec::new(), name), facts })
}
