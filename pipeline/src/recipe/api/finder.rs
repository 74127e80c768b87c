//! How halos are found, as recipes and closures say it.

use crate::recipe::error::{Bound, Refusal};
use crate::recipe::options::{decode, decode_with, take};
use comove_analysis::AnalysisError;
use comove_analysis::halos::Finder;
use comove_analysis::halos::fof::FofOptions;
use comove_analysis::halos::peaks::HaloOptions;
use comove_ic::IcError;
use comove_sim::SimError;
use rhai::{EvalAltResult, Map};
use serde::{Deserialize, Serialize};

/// What a recipe says in `halos(RUN, #{ … })` on how halos are found; each way has options of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FinderChoice {
    /// Friends of friends of dark-matter particles (options `linking_length`, `min_particles`), or spheres around density
    /// peaks of all matter (`delta` to `samples`). By default the one whose options are given, else `"fof"` where there is
    /// dark matter and `"peaks"` where there is gas alone.
    pub finder: Option<FinderName>,
}

/// The name of [`FinderChoice`]'s option.
pub(crate) const FINDER_CHOICE: [&str; 1] = ["finder"];

/// A way to find halos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FinderName {
    /// Friends of friends.
    Fof,
    /// Density peaks.
    Peaks,
}

/// How halos are found, of the options that `function` is called with; `others` are decoded elsewhere.
pub(super) fn finder(function: &str, mut options: Map, others: &[&str]) -> Bound<Finder> {
    let FinderChoice { finder } = decode(function, take(&mut options, &FINDER_CHOICE))?;
    let [peaks, fof] = [names_of(&HaloOptions::default()), names_of(&FofOptions::default())];
    let is_given = |names: &[String]| names.iter().any(|name| options.contains_key(name.as_str()));
    let implied = || {
        let named = is_given(&peaks).then_some(FinderName::Peaks);
        named.or_else(|| is_given(&fof).then_some(FinderName::Fof))
    };
    let mut others = [&FINDER_CHOICE[..], others].concat();
    match finder.or_else(implied) {
        Some(FinderName::Fof) => {
            let options: FofOptions = decode_with(function, options, &others)?;
            options.check().map_err(|error| refused(function, &error))?;
            Ok(Finder::Fof(options))
        }
        Some(FinderName::Peaks) => {
            let options: HaloOptions = decode_with(function, options, &others)?;
            options.check().map_err(|error| refused(function, &error))?;
            Ok(Finder::Peaks(options))
        }
        None => {
            // only options that neither has can be left, and are refused
            others.extend(fof.iter().map(String::as_str));
            decode_with::<HaloOptions>(function, options, &others)?;
            Ok(Finder::Default)
        }
    }
}

/// The names of options.
fn names_of(options: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(options).expect("options are plain data");
    value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// An option of an initial condition or a problem that is refused.
pub(super) fn out_of_range(name: &str, error: &IcError) -> Box<EvalAltResult> {
    match error {
        IcError::Parameter { name: option, value, reason }
        | IcError::Sim(SimError::Parameter { name: option, value, reason }) => {
            Refusal::error(name, format!("{option} = {value}: {reason}"), option.rsplit('.').next())
        }
        other => Refusal::error(name, other, None),
    }
}

/// An option of an analysis that is refused.
pub(super) fn refused(name: &str, error: &AnalysisError) -> Box<EvalAltResult> {
    let key = match error {
        AnalysisError::UnknownField { .. } | AnalysisError::MissingField { .. } => Some("field"),
        AnalysisError::Option { name, .. } => Some(*name),
        _ => None,
    };
    Refusal::error(name, error, key)
}
