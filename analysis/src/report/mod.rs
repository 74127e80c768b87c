//! A campaign as one HTML page that needs nothing beside it: images are embedded, no script, no network.

use crate::error::AnalysisError;
use crate::table::{Table, write_file};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Value;
use minijinja::{Environment, context};
use std::path::Path;

/// Contents of a report, in the order of the page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the campaign.
    pub title: String,
    /// Progress of the campaign.
    pub state: State,
    /// Names and values of what all runs share: cosmology, box, levels, species, resolution, units.
    pub head: Vec<(String, String)>,
    /// A row per run with the properties in which runs differ; no rows where there are none.
    pub runs: Table,
    /// Results, in reading order.
    pub sections: Vec<Section>,
    /// All stages, in the order in which they run; folded up where nothing is left to do.
    pub stages: Vec<StageLine>,
    /// Cost and conservation, stage by stage.
    pub accounts: Vec<Section>,
    /// Names and values: program, device, machine.
    pub provenance: Vec<(String, String)>,
    /// Names and digests of everything the results rest on; shown folded up.
    pub digests: Vec<(String, String)>,
    /// The recipe as it was run; shown folded up.
    pub recipe_text: String,
}

/// A stage in the list of all stages.
#[derive(Clone, Debug, Default)]
pub struct StageLine {
    /// Name.
    pub name: String,
    /// Status and folder.
    pub state: String,
    /// Seconds from its latest start to its end.
    pub seconds: Option<f64>,
}

/// How far a campaign is, and what can be done about it.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its kind, by which it is coloured.
    pub kind: StateKind,
    /// In a few words.
    pub headline: String,
    /// In a sentence or two; may be empty.
    pub text: String,
    /// Names of the stages that failed, and what they said.
    pub failures: Vec<(String, String)>,
    /// What commands are for, and the commands.
    pub commands: Vec<(String, String)>,
}

/// Kinds of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateKind {
    /// Everything is done.
    #[default]
    Finished,
    /// Something is left to do, and nothing is being done.
    Stopped,
    /// Something has failed.
    Failed,
    /// Somebody works on it.
    Running,
}

impl StateKind {
    /// Its class in the page.
    fn class(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Running => "running",
        }
    }
}

/// A part of a report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// Paragraphs, separated by empty lines; plain text.
    pub text: String,
    /// Tables with their captions.
    pub tables: Vec<(String, Table)>,
    /// Pictures.
    pub images: Vec<Image>,
}

/// A picture of a report.
#[derive(Clone, Debug)]
pub struct Image {
    /// What it shows.
    pub caption: String,
    /// A PNG file.
    pub png: Vec<u8>,
    /// Other formats of the picture: name and path from the report's folder.
    pub links: Vec<(String, String)>,
}

impl Image {
    /// Whether the picture takes the width of the page, and does not share it with another one.
    fn is_wide(&self) -> bool {
        // the header of a PNG file begins with the width
        let width = self.png.get(16..20).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
        width.is_some_and(|width| width > WIDE)
    }
}

/// Rows of a table that a page shows; the rest is in the CSV file.
const ROWS: usize = 40;

/// Rows beyond which a table is folded up.
const OPEN_ROWS: usize = 15;

/// Sections beyond which the list of them is folded up.
const LISTED_SECTIONS: usize = 12;

/// Stages beyond which the cost of each is folded up.
const OPEN_ACCOUNTS: usize = 4;

/// Runs beyond which the table of their differences is folded up.
const OPEN_RUNS: usize = 4;

/// Pixels beyond which a picture takes the width of the page.
const WIDE: u32 = 1300;

const TEMPLATE: &str = include_str!("report.html");

impl Report {
    /// The page.
    pub fn html(&self) -> Result<String, AnalysisError> {
        let sections: Vec<Value> = self.sections.iter().map(|section| section_values(section, OPEN_ROWS)).collect();
        let accounts: Vec<Value> = self.accounts.iter().map(|section| section_values(section, ROWS)).collect();
        let runs = (!self.runs.rows.is_empty()).then(|| table_values("Runs", &self.runs, OPEN_RUNS));
        let mut environment = Environment::new();
        let page = environment.add_template("report.html", TEMPLATE).and_then(|()| {
            environment.get_template("report.html")?.render(context! {
                title => self.title.as_str(),
                recipe => self.recipe_text.as_str(),
                state => self.state.values(),
                head => pairs(&self.head),
                runs => runs,
                many_sections => sections.len() > LISTED_SECTIONS,
                sections => sections,
                stages => self.stages.iter().map(stage_values).collect::<Vec<_>>(),
                folded_accounts => accounts.len() > OPEN_ACCOUNTS,
                accounts => accounts,
                provenance => pairs(&self.provenance),
                digests => pairs(&self.digests),
            })
        });
        page.map_err(|source| AnalysisError::Report { title: self.title.clone(), source })
    }

    /// Writes the page.
    pub fn write(&self, path: &Path) -> Result<(), AnalysisError> {
        write_file(path, self.html()?.as_bytes())
    }
}

impl State {
    /// What the template shows of it.
    fn values(&self) -> Value {
        context! {
            class => self.kind.class(),
            open => self.kind != StateKind::Finished,
            headline => self.headline.as_str(),
            text => self.text.as_str(),
            failures => self.failures.iter().map(failure).collect::<Vec<_>>(),
            commands => self.commands.iter().map(command).collect::<Vec<_>>(),
        }
    }
}

/// A failure for the template: its first line, and those below it, which may be the place in a recipe.
fn failure((name, message): &(String, String)) -> Value {
    let (first, below) = message.trim_end().split_once('\n').unwrap_or((message, ""));
    context! { name => name.as_str(), first => first, below => below }
}

/// A command for the template, word by word: a line breaks between words.
fn command((name, line): &(String, String)) -> Value {
    context! { name => name.as_str(), words => line.split(' ').map(String::from).collect::<Vec<_>>() }
}

/// Names and values for the template.
fn pairs(pairs: &[(String, String)]) -> Vec<Value> {
    pairs.iter().map(|(name, value)| context! { name => name.as_str(), value => value.as_str() }).collect()
}

/// A stage for the template.
fn stage_values(stage: &StageLine) -> Value {
    let time = stage.seconds.map_or("–".into(), |seconds| format!("{seconds:.1}"));
    context! { name => stage.name.as_str(), state => stage.state.as_str(), time => time }
}

/// A section for the template; tables of more than `open_rows` rows are folded up.
fn section_values(section: &Section, open_rows: usize) -> Value {
    let paragraphs = section.text.split("\n\n").map(str::trim).filter(|p| !p.is_empty());
    let tables = section.tables.iter().map(|(caption, table)| table_values(caption, table, open_rows));
    let image = |image: &Image| {
        context! {
            caption => image.caption.as_str(),
            png => STANDARD.encode(&image.png),
            wide => image.is_wide(),
            links => pairs(&image.links),
        }
    };
    context! {
        heading => section.heading.as_str(),
        paragraphs => paragraphs.map(String::from).collect::<Vec<_>>(),
        tables => tables.collect::<Vec<_>>(),
        images => section.images.iter().map(image).collect::<Vec<_>>(),
    }
}

/// A table for the template, folded up beyond `open_rows` rows.
fn table_values(caption: &str, table: &Table, open_rows: usize) -> Value {
    let rows: Vec<Vec<String>> = table.rounded().into_iter().take(ROWS).collect();
    let column = |(n, name): (usize, &String)| {
        context! { name => name.as_str(), is_text => !rows.iter().all(|row| is_number(&row[n])) }
    };
    context! {
        caption => caption,
        columns => table.columns.iter().enumerate().map(column).collect::<Vec<_>>(),
        rows => rows,
        folded => table.rows.len() > open_rows,
        left_out => table.rows.len().saturating_sub(ROWS),
    }
}

/// Whether a shown entry is a number, or the dash that stands for none: such columns are flush right, words flush left.
fn is_number(shown: &str) -> bool {
    let plain: String = shown.chars().map(|c| if c == '−' { '-' } else { c }).collect();
    let mantissa = plain.split_once("×10").map_or(plain.as_str(), |(mantissa, _)| mantissa);
    shown == "–" || mantissa.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let mut table = Table::new(["mass_msun_h", "name"]);
        (0..50).for_each(|n| table.push(vec![(1.5e13 / f64::from(n + 1)).into(), "a<b".into()]));
        let figure = crate::figure::lines::line_figure("An <empty> figure", &[Default::default()], 1);
        Report {
            title: "Quickstart & more".into(),
            recipe_text: "const X = 1 < 2; // </pre>".into(),
            sections: vec![Section {
                heading: "Halos".into(),
                text: "One.\n\nTwo.".into(),
                tables: vec![("The heaviest".into(), table)],
                images: vec![Image {
                    caption: figure.title.clone(),
                    png: figure.png().unwrap(),
                    links: vec![("SVG".into(), "slice-1/a%20b.svg".into())],
                }],
            }],
            head: vec![("box".into(), "50 Mpc/h".into())],
            runs: {
                let mut runs = Table::new(["run", "root grid"]);
                [1, 2].iter().for_each(|n| runs.push(vec![format!("seed {n}").into(), "32³".into()]));
                runs
            },
            stages: vec![StageLine { name: "The run".into(), state: "done".into(), seconds: Some(12.34) }],
            accounts: vec![Section { heading: "The run's cost".into(), ..Section::default() }],
            state: State {
                kind: StateKind::Failed,
                headline: "Failed at z = 3".into(),
                failures: vec![("Peak <1>".into(), "a.rhai:1:2: no\n  1 | x\n    | ^".into())],
                commands: vec![("To continue".into(), "comove resume '/a & b'".into())],
                ..State::default()
            },
            provenance: vec![("program".into(), "comove 0.1.0".into())],
            digests: vec![("evolve-abcdef/output_z0.h5".into(), "0123456789abcdef".repeat(4))],
        }
    }

    /// State, head, results, cost and provenance follow one another.
    #[test]
    fn results_come_before_their_cost() {
        let page = sample().html().unwrap();
        let parts = [
            "<h1>",
            "<p class=\"headline\">",
            "<dt>box</dt><dd>50 Mpc&#x2f;h</dd>",
            "seed 2",
            "<h2>Halos</h2>",
            "<img",
            "<h2>Accounting</h2>",
            "<td>12.3</td>",
            "The run&#x27;s cost</h3>",
            "<h2>Provenance</h2>",
            "BLAKE3",
            "const X",
        ];
        let places = parts.map(|part| page.find(part).unwrap_or_else(|| panic!("{part} is not there: {page}")));
        assert!(places.is_sorted(), "{places:?}");
    }

    /// Everything is on the page, escaped, and nothing is fetched from elsewhere.
    #[test]
    fn a_page_stands_alone() {
        let page = sample().html().unwrap();
        assert!(page.contains("<th>mass_msun_h</th>") && page.contains("<th class=\"words\">name</th>"), "{page}");
        assert!(page.contains("<td>1.500×10¹³</td><td class=\"words\">a&lt;b</td>"));
        for part in ["Quickstart &amp; more", "<p>One.</p>", "<p>Two.</p>", "1.500×10¹³", "a&lt;b", "10 more rows"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("data:image/png;base64,iVBORw0KGgo") && page.contains("An &lt;empty&gt; figure"));
        for part in [
            "class=\"state failed\"",
            "Peak &lt;1&gt;",
            "<p>a.rhai:1:2: no</p>",
            "    | ^</pre>",
            "<span>resume</span> <span>&#x27;&#x2f;a</span> <span>&amp;</span> <span>b&#x27;</span></pre>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.matches("</pre>").count() == 3 && !page.contains("http") && !page.contains("<script"));
        // two runs, fifty halos of which forty are shown, a stage, a fact and a digest
        assert_eq!(page.matches("<tr>").count(), (1 + 2) + (1 + 40) + (1 + 1) + 1 + 1);
        assert!(page.contains("<a href=\"slice-1/a%20b.svg\">SVG</a>"), "{page}");
        if let Some(folder) = std::env::var_os("COMOVE_GALLERY") {
            sample().write(&Path::new(&folder).join("report.html")).unwrap();
        }
    }
}
