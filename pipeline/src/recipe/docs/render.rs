//! The reference as Markdown, and as definitions that editors read.

use super::options::{Row, table};
use super::records::{self, KINDS};
use super::{Callers, Function, Member, Needs, PARTS, Type};
use crate::recipe::api::campaign_view::{self, CAMPAIGN};
use comove_analysis::cell_fields::CELL_FIELDS;
use comove_ic::problems;

pub(crate) fn markdown() -> String {
    let mut page = String::from(
        "# What a recipe may say\n\n\
         This page is made from the program's source by `comove docs recipes`; [Recipes](recipes.md) explains how the \
         parts work together. Options in bold must be given. A real number may be written as a whole one.\n",
    );
    for part in PARTS {
        page += &format!("\n## {}\n", part.heading);
        part.functions.iter().for_each(|f| page += &function(f, "###"));
        part.types.iter().for_each(|t| page += &type_of(t));
        match part.heading {
            "Starts from a formula" => page += &problem_tables(),
            "Analyses" => page += &field_table(),
            _ => {}
        }
    }
    page + record_tables().as_str()
}

/// The members of the records that stages write.
fn record_tables() -> String {
    let mut text = String::from(
        "\n## Files of records\n\nMembers of the records that stages write as JSON, with their units ([code \
         units](equations.md#variables-and-units)). `[]` stands for an entry of a list, `*` for any name. A member that a \
         run does not have is left out or null. In non-comoving coordinates lengths, masses and velocities are in code \
         units. `columns.tsv` in a stage's folder has these lines for the files there, and those for the columns of \
         tables.\n",
    );
    for kind in KINDS {
        let line =
            |row: &records::Row| format!("| `{}` | {} | {} |\n", row.name, row.unit, row.text.replace('|', "\\|"));
        let rows: String = records::rows(kind).iter().map(line).collect();
        text += &format!("\n### `{}`\n\n{}\n\n| member | unit | |\n|---|---|---|\n{rows}", kind.file, kind.text);
    }
    text
}

fn function(function: &Function, level: &str) -> String {
    let mut text = format!("\n{level} `{}`\n", function.name);
    if !function.signatures.is_empty() {
        text +=
            &format!("\n{}\n", function.signatures.iter().map(|s| format!("    {s}")).collect::<Vec<_>>().join("\n"));
    }
    text += &format!("\n{}\n", function.text);
    if !function.gives.is_empty() {
        let lines: String = function.gives.iter().map(|given| member(given, "")).collect();
        text += &format!("\n| member | value | |\n|---|---|---|\n{lines}");
    }
    let rows: Vec<Row> = function.options.iter().flat_map(|name| table(name).1).collect();
    text.push_str(&option_table(&rows));
    text
}

fn option_table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |row: &Row| {
        let name = if row.default.is_none() { format!("**`{}`**", row.name) } else { format!("`{}`", row.name) };
        let default = row.default.as_ref().filter(|d| !d.is_empty()).map_or(String::new(), |d| format!("`{d}`"));
        let cells = [name, row.written.clone(), default, row.text.clone()].map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    };
    format!("\n| option | value | default | |\n|---|---|---|---|\n{}", rows.iter().map(line).collect::<String>())
}

fn type_of(kind: &Type) -> String {
    let mut text = format!("\n### {}\n\n{}\n", kind.name, kind.text);
    let property = |(name, value, what): &(&str, &str, &str)| format!("| `{name}` | {value} | {what} |\n");
    // methods that need no more than a line
    let is_short = |method: &&Function| method.options.is_empty() && method.gives.is_empty();
    let (short, long): (Vec<_>, Vec<_>) = kind.methods.iter().partition(is_short);
    let lines = kind.properties.iter().map(property).chain(kind.members.iter().map(|one| member(one, "")));
    let lines: String = lines.chain(short.into_iter().map(method)).collect();
    if !lines.is_empty() {
        text += &format!("\n| | value | |\n|---|---|---|\n{lines}");
    }
    long.into_iter().for_each(|method| text += &function(method, "####"));
    text
}

/// Lines of a table for a member and the members of its value; `within` is the path of the member that has it, with its
/// point.
fn member(member: &Member, within: &str) -> String {
    let Member { name, value, unit, text, needs, members } = member;
    let path = format!("{within}{name}");
    let needs = match needs {
        Needs::Nothing => "",
        Needs::Gas => "; with gas",
        Needs::DarkMatter => "; with dark matter",
        Needs::Gravity => "; with gravity",
        Needs::Comoving => "; in comoving coordinates",
    };
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let inner: String = members.iter().map(|one| self::member(one, &format!("{path}."))).collect();
    format!("| `{path}` | {value}{unit} | {text}{needs} |\n{inner}")
}

/// A method as a line of its type's table: how it is called on a value, what it gives, what that is.
fn method(method: &Function) -> String {
    let call = |signature: &&str| {
        let arguments =
            signature.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
        let names = arguments.split(", ").skip(1).map(|argument| argument.split(':').next().unwrap_or(argument));
        format!("`{}({})`", method.name, names.collect::<Vec<_>>().join(", "))
    };
    let calls = method.signatures.iter().map(call).collect::<Vec<_>>().join(", ");
    let gives = method.signatures.first().and_then(|s| s.split_once("-> ")).map_or("", |(_, gives)| gives);
    format!("| {calls} | {gives} | {} |\n", method.text.replace('|', "\\|"))
}

fn problem_tables() -> String {
    let one = |name: &&str| {
        let structure: String = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        let (what, rows) = table(&structure);
        format!("\n#### `problem(\"{name}\", #{{ … }})`\n\n{what}\n{}", option_table(&rows))
    };
    problems::NAMES.iter().map(one).collect()
}

fn field_table() -> String {
    let line = |f: &comove_analysis::cell_fields::CellField| format!("| `{}` | {} | {} |\n", f.name, f.unit, f.meaning);
    let rows: String = CELL_FIELDS.iter().map(line).collect();
    format!(
        "\n### Fields\n\nWhat `field` of a slice or a projection, and `field(\"name\")` of a snapshot, may be.\n\n\
         | field | unit | |\n|---|---|---|\n{rows}\nOf a run with passive scalars also each scalar's name, its \
         mass fraction, and `NAME_density`.\n"
    )
}

/// The functions and types as definitions, for editors that know Rhai.
pub(crate) fn definitions() -> String {
    let mut text = String::from(
        "// What a recipe may say, for editors that know Rhai: made from the program's source by\n\
         // `comove docs recipes --definitions`.\n\nmodule static;\n",
    );
    for part in PARTS {
        text += &format!("\n// {}\n", part.heading);
        if part.callers == Callers::Scripts {
            text += &format!(
                "\n/// What the campaign has left so far.\nconst {}: {};\n",
                campaign_view::NAME,
                CAMPAIGN.name
            );
        }
        part.functions.iter().for_each(|function| text += &definition(function));
        for kind in part.types {
            for (name, value, what) in kind.properties {
                text += &format!("\n/// {what}\nfn get {name}(of: {}) -> {value};\n", kind.name);
            }
            kind.methods.iter().for_each(|method| text += &definition(method));
        }
    }
    text
}

/// A text with its links to headings of the page as plain words.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](#");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        if let Some(open) = text.rfind('[') {
            text.remove(open);
        }
        text + part.split_once(')').map_or("", |(_, rest)| rest)
    })
}

fn definition(function: &Function) -> String {
    let option = |row: Row| {
        let default = match &row.default {
            None => ", required".to_owned(),
            Some(default) if default.is_empty() => String::new(),
            Some(default) => format!(", by default `{default}`"),
        };
        format!("* `{}` ({}{default}): {}", row.name, row.written, row.text)
    };
    let options: Vec<String> = function.options.iter().flat_map(|name| table(name).1).map(option).collect();
    let member = |Member { name, value, unit, text, .. }: &Member| {
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        format!("* `{name}` ({value}{unit}): {text}")
    };
    let members: Vec<String> = function.gives.iter().map(member).collect();
    let one = |signature: &&str| {
        let text = without_links(function.text);
        let mut comment: Vec<&str> = text.lines().collect();
        comment.extend(members.iter().map(String::as_str));
        if signature.contains("options: Map") && !options.is_empty() {
            comment.push("");
            comment.extend(options.iter().map(String::as_str));
        }
        let comment: String = comment.iter().map(|line| format!("/// {line}").trim_end().to_owned() + "\n").collect();
        format!("\n{comment}fn {signature};\n")
    };
    function.signatures.iter().map(one).collect()
}
