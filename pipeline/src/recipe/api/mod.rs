//! The functions a recipe may call. Each is described beside its registration ([`super::docs`]) and fails through
//! [`Refusal`].
//!
//! | module | functions |
//! |---|---|
//! | [`background`] | `cosmology` |
//! | [`initial`] | `ic_gaussian`, `ic_load` |
//! | [`formula`] | `problem`, `ic_function` |
//! | [`runs`], [`hooks`] | `evolve`, `from_snapshot`; the closures of a run |
//! | [`criteria`] | `density_above`, `gradient_above`, `refine_where` and the other refinement criteria |
//! | [`analyses`] | `refinement_ratio`, `halos`, `mass_function`, `power_spectrum`, `slice`, `projection`, `density_pdf`, `compare`; `force_test` |
//! | [`closures`] | `measure`, `combine`, `then` |
//! | [`handles`] | handles of stages, and what functions share that take them |
//! | [`later`], [`call`] | options that are values of results, and stages that wait for them |
//! | [`snapshot_view`], [`field_view`], [`run_view`] | what their closures see, and scripts |
//! | [`campaign_view`], [`drawing`] | what only scripts see and do: `CAMPAIGN`; `table`, `plot` |
//!
//! `param` and `campaign` are here.
//!
//! All take their arguments by value: a binding never changes a constant of the recipe.

/// Registers a function that takes options, last or before a closure, and the same without any.
macro_rules! register_with_options {
    (
        $engine:expr, $name:expr, $function:expr,
        $($argument:ident: $kind:ty),+ $(; $last:ident: $last_kind:ty)?
    ) => {{
        let with = $function;
        let without = with.clone();
        $engine.register_fn($name, move |$($argument: $kind,)+ $($last: $last_kind)?| {
            without($($argument,)+ Map::new(), $($last)?)
        });
        $engine.register_fn($name, move |$($argument: $kind,)+ options: Map, $($last: $last_kind)?| {
            with($($argument,)+ options, $($last)?)
        });
    }};
}

pub(crate) mod analyses;
pub(crate) mod background;
mod call;
pub(crate) mod campaign_view;
pub(crate) mod closures;
pub(crate) mod criteria;
pub(crate) mod drawing;
mod failure;
pub(crate) mod field_view;
pub(crate) mod finder;
pub(crate) mod formula;
pub(crate) mod handles;
pub(crate) mod hooks;
pub(crate) mod initial;
pub(crate) mod later;
pub(crate) mod run_view;
pub(crate) mod runs;
pub(crate) mod snapshot_view;

use crate::campaign::Campaign;
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::interpreter::Session;
use crate::recipe::options::decode;
use crate::recipe::reference::Function;
use handles::{Analysis, Further, Initial, Run, stages_of};
use rhai::{Array, Dynamic, Engine, ImmutableString, Map};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

/// That which declares parameters.
pub(crate) const PARAMETERS: &[Function] = &[Function::new(
    &["param(name: String, default: ?, help: String) -> ?"],
    "Declares what `-p name=value` sets. Its type is the default's: a whole number, a real number, `true` \
     or `false`, or a text.",
)
.used_as("param(\"name\", default, \"what it is for\")")];

/// That which a recipe ends with.
pub(crate) const FUNCTIONS: &[Function] = &[Function::new(
    &[
        "campaign(name: String, stages: Array) -> Campaign",
        "campaign(name: String, stages: Array, options: Map) -> Campaign",
    ],
    "The campaign: the last line of a recipe. Its stages are runs and analyses, also in lists; what they \
     need comes by itself.",
)
.used_as("campaign(\"name\", [STAGES]) or campaign(\"name\", [STAGES], #{ attempts: 2 })")
.with_options(&["CampaignOptions"])];

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine
        .register_type_with_name::<Initial>("initial condition")
        .register_type_with_name::<Run>("run")
        .register_type_with_name::<Analysis>("analysis")
        .register_type_with_name::<Further>("decision")
        .register_type_with_name::<Campaign>("campaign");
    register_param(engine, session);
    background::register(engine);
    initial::register(engine, session);
    formula::register(engine, session);
    runs::register(engine, session);
    criteria::register(engine, session);
    analyses::register(engine, session);
    closures::register(engine, session);
    snapshot_view::register(engine);
    field_view::register(engine);
    run_view::register(engine);
    register_with_options!(engine, "campaign", campaign, name: ImmutableString, stages: Array);
}

/// Registers everything that scripts have: what looks, and makes no stages. What they write goes to `folder`.
pub(crate) fn register_for_scripts(engine: &mut Engine, session: &Arc<Session>, folder: &Path) {
    register_param(engine, session);
    background::register(engine);
    snapshot_view::register(engine);
    field_view::register(engine);
    run_view::register(engine);
    run_view::register_kept(engine);
    campaign_view::register(engine);
    drawing::register(engine, session, folder);
}

fn register_param(engine: &mut Engine, session: &Arc<Session>) {
    let shared = session.clone();
    let declare = move |name: ImmutableString, default: Dynamic, help: ImmutableString| -> Bound<Dynamic> {
        let mut parameters = shared.parameters.lock().expect("no binding panics");
        parameters.declare(&name, &default, &help).map_err(|message| Refusal::error("param", message, None))
    };
    engine.register_fn("param", declare);
}

/// How a campaign is run: outside all fingerprints.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CampaignOptions {
    /// How often a stage is tried that fails for what may pass: the system, the device, memory.
    attempts: NonZeroU32,
}

impl Default for CampaignOptions {
    fn default() -> Self {
        Self { attempts: NonZeroU32::MIN }
    }
}

fn campaign(name: ImmutableString, stages: Array, options: Map) -> Bound<Campaign> {
    later::refuse("campaign", &options)?;
    let CampaignOptions { attempts } = decode("campaign", options)?;
    Ok(Campaign { attempts: attempts.get(), ..Campaign::new(name.as_str(), &stages_of("campaign", &stages)?) })
}
