//! What a script sees of its campaign: the constant `CAMPAIGN`.

use super::failure::failure;
use super::run_view::{Called, RunView};
use crate::recipe::error::{Bound, Refusal, nearest};
use crate::recipe::reference::{Function, Type};
use crate::stage::combine::{data_of, left_in};
use crate::stage::{Input, StageResult};
use crate::terminal::progress::Progress;
use rhai::{Array, Dynamic, Engine, ImmutableString, Map};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const NAME: &str = "CAMPAIGN";

pub(crate) const CAMPAIGN: Type = Type {
    name: "CampaignFolder",
    text: "The constant `CAMPAIGN` of a script (`comove script`): what the campaign has left so far. Besides what is listed \
           here a script may call `param`, `cosmology`, and what snapshots and fields have; functions that make stages \
           are for recipes.",
    properties: &[
        ("name", "String", "its name"),
        ("folder", "String", "its folder, as the command line says it"),
        ("parameters", "Map", "the parameters of its recipe, as it was run"),
        ("runs", "Array", "its runs, in the order of `comove plan`: see [CampaignRun](#campaignrun)"),
        ("analyses", "Array", "the names of its measurements and analyses"),
    ],
    methods: &[
        Function::new(
            &["run(campaign: CampaignFolder, name: String) -> CampaignRun"],
            "The run that `name` names: its name, number, folder or kind, as `comove plan` shows them. One that the \
             recipe does not have (any more) goes by its folder.",
        ),
        Function::new(
            &["result(campaign: CampaignFolder, name: String) -> Map"],
            "What a measurement or an analysis has found, as a closure of `combine` sees it: `result` and `z` (or \
             `t`) of the last output, and `all`, the list of such maps of every output. It goes by the same names as \
             a run, a measurement also by its own: `result(\"peak\")`.",
        ),
    ],
    members: &[],
};

/// A campaign in a script; copies share it.
#[derive(Clone, Debug)]
pub(crate) struct CampaignView(pub Arc<KeptCampaign>);

/// What there is of a campaign.
#[derive(Debug)]
pub(crate) struct KeptCampaign {
    pub name: String,
    pub folder: PathBuf,
    pub parameters: Map,
    /// Its runs, in the order of `plan`.
    pub runs: Vec<RunView>,
    /// Its measurements and analyses, in the same order.
    pub analyses: Vec<KeptAnalysis>,
    /// Runs and analyses that lie in its folder and that its recipe does not have.
    pub others: (Vec<RunView>, Vec<KeptAnalysis>),
    /// Where checking files is shown.
    pub progress: Progress,
}

#[derive(Clone, Debug)]
pub(crate) struct KeptAnalysis {
    pub called: Called,
    /// What its folder is called, before the digits.
    pub label: String,
    /// What it has left, or why there is nothing.
    pub left: Result<StageResult, String>,
}

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<CampaignView>("campaign")
        .register_get("name", |campaign: &mut CampaignView| campaign.0.name.clone())
        .register_get("folder", |campaign: &mut CampaignView| campaign.0.folder.display().to_string())
        .register_get("parameters", |campaign: &mut CampaignView| campaign.0.parameters.clone())
        .register_get("runs", |campaign: &mut CampaignView| {
            campaign.0.runs.iter().cloned().map(Dynamic::from).collect::<Array>()
        })
        .register_get("analyses", |campaign: &mut CampaignView| {
            campaign.0.analyses.iter().map(|analysis| Dynamic::from(analysis.called.name.clone())).collect::<Array>()
        })
        .register_fn("run", run)
        .register_fn("result", result);
}

fn run(campaign: &mut CampaignView, name: ImmutableString) -> Bound<RunView> {
    let campaign = &campaign.0;
    let refuse = |message| Refusal::error("run", message, None);
    find("run", &campaign.runs, &campaign.others.0, RunView::called, &name).cloned().map_err(|message| {
        let is_analysis = campaign.analyses.iter().any(|analysis| analysis.called.is(&name));
        refuse(if is_analysis { format!("\"{name}\" is not a run; use CAMPAIGN.result(\"{name}\")") } else { message })
    })
}

fn result(campaign: &mut CampaignView, name: ImmutableString) -> Bound<Map> {
    let campaign = &campaign.0;
    let refuse = |message| Refusal::error("result", message, None);
    let (analyses, others) = (&campaign.analyses, &campaign.others.1);
    let found = find("measurement or analysis", analyses, others, |one| &one.called, &name).map_err(|message| {
        let is_run = campaign.runs.iter().any(|run| run.called().is(&name));
        refuse(if is_run { format!("\"{name}\" is a run; use CAMPAIGN.run(\"{name}\")") } else { message })
    })?;
    let left = found.left.as_ref().map_err(|hindrance| {
        let others: Vec<&str> =
            others.iter().filter(|o| o.label == found.label).map(|o| o.called.name.as_str()).collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; use {}, which another recipe or version made, by that name", others.join(", "))
        };
        refuse(format!("\"{}\" is not done{hindrance}{others}", found.called.name))
    })?;
    let files = data_of(left);
    let read = || {
        files.iter().try_for_each(|file: &Input| file.check(&campaign.progress))?;
        left_in(&files)
    };
    read().map_err(|error| failure("result", &error))
}

/// The one that a name names: of the recipe's, or else one of the others by its folder.
fn find<'a, T>(
    what: &str,
    all: &'a [T],
    others: &'a [T],
    called: impl Fn(&T) -> &Called,
    name: &str,
) -> Result<&'a T, String> {
    let found: Vec<&T> = all.iter().filter(|one| called(one).is(name)).collect();
    let quoted = |all: &[&T]| all.iter().map(|one| format!("\"{}\"", called(one).name)).collect::<Vec<_>>().join(", ");
    match (found.as_slice(), others.iter().find(|one| called(one).is(name))) {
        (&[one], _) | (&[], Some(one)) => Ok(one),
        (&[], None) => {
            let known = all.iter().chain(others).flat_map(|one| &called(one).names).map(String::as_str);
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if all.is_empty() => "the campaign has none".into(),
                None => format!("there are {}", quoted(&all.iter().collect::<Vec<_>>())),
            };
            Err(format!("no {what} is called \"{name}\", {hint}"))
        }
        (several, _) => Err(format!("\"{name}\" names {} of them: {}", several.len(), quoted(several))),
    }
}
