//! Errors of a recipe: file, line, column, what is wrong, the line itself and a caret.

use super::source::{Place, Source};
use rhai::{Dynamic, EvalAltResult, Position};

/// The origin of an error in a recipe: decides whether a rehearsal on toy data stops the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The recipe's text: the error occurs with any data.
    Text,
    /// A member that a value lacks: members differ between species.
    Members,
    /// The fields or outputs of a run.
    Fields,
    /// The value of an option: the text's where it is written there, else that of the data.
    Option,
    /// Computed values: other data may give no error.
    Data,
}

/// What is wrong with a recipe, and where.
#[derive(Debug, thiserror::Error)]
pub struct RecipeError {
    /// The recipe's file name.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The line concerned.
    pub line: String,
    /// Whether a closure has taken longer than it may.
    pub is_late: bool,
    /// The exit code: another than a wrong recipe's where a function has failed for what is not the recipe's affair.
    pub exit_code: u8,
    /// Its origin.
    pub cause: Cause,
}

impl std::fmt::Display for RecipeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { line, column } = self.place;
        writeln!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
        writeln!(f, "{line:>5} | {}", self.line)?;
        write!(f, "      | {}^", " ".repeat(column.saturating_sub(1)))
    }
}

/// What a binding says when it refuses its arguments; carried through Rhai as the value of a run-time error.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// `function: what is wrong`.
    pub message: String,
    /// The option concerned: the caret goes below it.
    pub key: Option<String>,
    /// The exit code of [`RecipeError`].
    pub(super) exit_code: u8,
    /// The cause of [`RecipeError`].
    pub(super) cause: Cause,
}

/// The exit code that says that a recipe or a script is wrong.
pub(super) const WRONG: u8 = 3;

impl Refusal {
    /// The error that a binding returns; Rhai adds the position of the call.
    pub(crate) fn error(function: &str, message: impl std::fmt::Display, key: Option<&str>) -> Box<EvalAltResult> {
        Self::because(Cause::Option, function, message, key)
    }

    /// The same with a cause other than computed values.
    pub(crate) fn because(
        cause: Cause,
        function: &str,
        message: impl std::fmt::Display,
        key: Option<&str>,
    ) -> Box<EvalAltResult> {
        let message = format!("{function}: {message}");
        let refusal = Self { message, key: key.map(Into::into), exit_code: WRONG, cause };
        Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(refusal), Position::NONE))
    }

    /// The same where something else has failed, whose exit code stays.
    pub(crate) fn caused_by(function: &str, error: impl std::fmt::Display, exit_code: u8) -> Box<EvalAltResult> {
        let message = format!("{function}: {error}");
        let refusal = Self { message, key: None, exit_code, cause: Cause::Data };
        Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(refusal), Position::NONE))
    }

    /// The same for a token inside an argument, where the caret goes.
    pub(crate) fn error_at(function: &str, message: impl std::fmt::Display, position: Position) -> Box<EvalAltResult> {
        let message = format!("{function}: {message}");
        let refusal = Self { message, key: None, exit_code: WRONG, cause: Cause::Text };
        Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(refusal), position))
    }
}

impl RecipeError {
    /// An error at a place.
    pub fn at(source: &Source, place: Place, message: impl Into<String>) -> Box<Self> {
        let line = source.line(place.line).to_owned();
        let (is_late, exit_code, cause) = (false, WRONG, Cause::Text);
        Box::new(Self { file: source.name(), place, message: message.into(), line, is_late, exit_code, cause })
    }

    /// The same error with another cause.
    #[must_use]
    pub(crate) fn because(self, cause: Cause) -> Box<Self> {
        Box::new(Self { cause, ..self })
    }
}

pub(super) fn place(position: Position) -> Option<Place> {
    position.line().map(|line| Place { line, column: position.position().unwrap_or(1) })
}

/// What a function of a recipe returns.
pub(crate) type Bound<T> = Result<T, Box<EvalAltResult>>;

/// A Rhai type in a recipe's words, with its article.
pub(crate) fn plain(type_name: &str) -> String {
    let word = match type_name {
        "()" | "" => return "nothing".into(),
        "i64" => "whole number",
        "f64" => "real number",
        "bool" => "truth value",
        "string" | "&str | ImmutableString | String" => "text",
        "array" => "list",
        "Fn" => "closure",
        // a value's own type, where the engine has not given its name
        _ if type_name.ends_with("::Initial") => "initial condition",
        _ if type_name.ends_with("::Run") => "run",
        _ if type_name.ends_with("::Analysis") => "analysis",
        other => other.rsplit("::").next().unwrap_or(other),
    };
    format!("{} {word}", if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" })
}

/// Which of the known names was meant by one that there is not, else, after `there`, all of them.
pub(crate) fn hint(name: &str, known: &[&str], there: &str) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("{there} {}", known.join(", ")),
    }
}

/// The candidate nearest to `name`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
