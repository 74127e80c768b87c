//! Tables and plots in a closure's result: `#{ table: #{ columns, rows }, plot: #{ curves, … } }`.

use super::section::Section;
use super::work::Work;
use crate::error::PipelineError;
use crate::recipe::Cause;
use crate::recipe::options::one_or_several;
use comove_analysis::Figure;
use comove_analysis::figure::lines::{Curve, LegendPlace, Mark, Panel, Ratio, Style, line_figure_of_size};
use comove_analysis::figure::{CURVES, Dash, FigureSize};
use comove_analysis::table::{Entry, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be written and drawn of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawn {
    tables: Vec<DrawnTable>,
    plots: Vec<Plot>,
}

/// What a closure says in `table: #{ … }`, or in a list of such maps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawnTable {
    /// Names its file.
    #[serde(default = "table_name")]
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub caption: String,
    /// Column names, units included.
    pub columns: Vec<String>,
    /// Rows: a list of numbers and texts each; `()` leaves an entry empty.
    pub rows: Vec<Vec<Value>>,
}

/// What a closure says in `plot: #{ … }`, or in a list of such maps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    /// Names its file.
    #[serde(default = "plot_name")]
    pub name: String,
    /// Its title; by default its name, `""` for none.
    #[serde(default)]
    pub title: Option<String>,
    /// What the lower axis shows, with the unit.
    #[serde(default)]
    pub x_label: String,
    /// What the left axis shows, with the unit.
    #[serde(default)]
    pub y_label: String,
    /// Which axes are logarithmic: `"none"`, `"x"`, `"y"` or `"xy"`.
    #[serde(default)]
    pub log: Logarithmic,
    /// Whether the lower axis runs from large to small, as 1 + z does in time.
    #[serde(default)]
    pub x_reversed: bool,
    /// Ends of the lower axis, `[low, high]`; by default those of the curves. Curves are cut there.
    #[serde(default)]
    pub x_range: Option<[f64; 2]>,
    /// Ends of the left axis, `[low, high]`; by default those of the curves between the ends of the lower axis.
    #[serde(default)]
    pub y_range: Option<[f64; 2]>,
    /// Corner of the legend; `"auto"` is the corner where it covers the least.
    #[serde(default)]
    pub legend: LegendPlace,
    /// Width in print: a journal column of 86 mm or a page of 178 mm.
    #[serde(default = "plot_size")]
    pub size: FigureSize,
    /// Number of a curve, from 0 on: ratios of all curves to it are drawn below.
    #[serde(default)]
    pub ratio_to: Option<usize>,
    /// Label of the ratios.
    #[serde(default)]
    pub ratio_label: String,
    /// Ends of the axis of the ratios, `[low, high]`; by default those of the ratios.
    #[serde(default)]
    pub ratio_range: Option<[f64; 2]>,
    /// The curves.
    pub curves: Vec<PlotCurve>,
    /// Vertical marks, `#{ x, label }`.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// A curve of a plot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlotCurve {
    /// Its name in the legend; without one it is not listed.
    #[serde(default)]
    pub name: String,
    /// Points `[x, y]`; `()` in place of a number interrupts the curve.
    pub points: Vec<[Option<f64>; 2]>,
    /// How it is drawn: `"line"`, `"marked"` or `"points"`.
    #[serde(default)]
    pub style: Style,
    /// Half heights of error bars, one a point.
    #[serde(default)]
    pub bars: Vec<f64>,
    /// Band behind the curve: `[low, high]` for each point.
    #[serde(default)]
    pub band: Vec<[f64; 2]>,
    /// Number of its colour, 0 to 6; by default the curve's number, modulo 7.
    #[serde(default)]
    pub color: Option<usize>,
    /// Its dashes; by default solid, and from the eighth curve on dashes that tell curves of one colour apart.
    #[serde(default)]
    pub dash: Option<Dash>,
}

/// Logarithmic axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Logarithmic {
    /// Neither.
    #[default]
    None,
    /// The lower one.
    X,
    /// The left one.
    Y,
    /// Both.
    Xy,
}

/// The names of a result that hold what is drawn.
const TABLE: &str = "table";
const PLOT: &str = "plot";

/// Rows of a table that the report shows.
const SHOWN: usize = 40;

fn table_name() -> String {
    TABLE.into()
}

fn plot_name() -> String {
    PLOT.into()
}

fn plot_size() -> FigureSize {
    FigureSize::Column
}

/// Whether a name becomes a file's or a folder's as it is.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl Drawn {
    /// Whether what a result has under this name is drawn.
    pub(crate) fn holds(name: &str) -> bool {
        name == TABLE || name == PLOT
    }

    /// What is to be drawn of a result.
    pub(crate) fn of(result: &Value) -> Result<Self, (Cause, String)> {
        let of_text = |message| (Cause::Text, message);
        let tables: Vec<DrawnTable> = one_or_several(result.get(TABLE), TABLE).map_err(of_text)?;
        let plots: Vec<Plot> = one_or_several(result.get(PLOT), PLOT).map_err(of_text)?;
        if let Some((name, wanted)) = misnamed(result) {
            return Err(of_text(format!(
                "{name}: is not drawn; the member for it is {wanted}, one map or a list of maps"
            )));
        }
        let wrong = tables.iter().try_for_each(DrawnTable::check).map_err(|wrong| format!("{TABLE}.{wrong}"));
        wrong.map_err(of_text)?;
        let wrong = plots.iter().try_for_each(Plot::check_text).map_err(|wrong| format!("{PLOT}.{wrong}"));
        wrong.map_err(of_text)?;
        // points may be missing from other data
        let wrong = plots.iter().try_for_each(Plot::check_data).map_err(|wrong| format!("{PLOT}.{wrong}"));
        wrong.map_err(|message| (Cause::Data, message))?;
        for names in [tables.iter().map(|t| &t.name).collect::<Vec<_>>(), plots.iter().map(|p| &p.name).collect()] {
            let twice = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name));
            if let Some((_, name)) = twice {
                return Err(of_text(format!("two are named \"{name}\"; use different names")));
            }
        }
        Ok(Self { tables, plots })
    }

    /// Writes the tables as CSV and the plots as PNG, SVG and PDF, `tag` at the end of their names, and shows them in the section.
    pub(crate) fn write(
        &self,
        tag: &str,
        work: &Work<'_>,
        section: &mut Section,
    ) -> Result<Vec<String>, PipelineError> {
        let mut files = Vec::new();
        for drawn in &self.tables {
            let mut table = drawn.table();
            let file = work.write(&format!("{}{tag}.csv", drawn.name), table.to_csv().as_bytes())?;
            let mut caption = if drawn.caption.is_empty() { drawn.name.clone() } else { drawn.caption.clone() };
            if table.rows.len() > SHOWN {
                caption += &format!(" (the first {SHOWN} of {} rows; all are in {file})", table.rows.len());
                table.rows.truncate(SHOWN);
            }
            section.record(caption, &table);
            files.push(file);
        }
        for plot in &self.plots {
            files.extend(work.write_figure(&format!("{}{tag}", plot.name), &plot.figure(), section)?);
        }
        Ok(files)
    }
}

/// A member of a result that has the form of a plot or of tables and not their name, and the right name.
fn misnamed(result: &Value) -> Option<(&str, &'static str)> {
    let forms = [("curves", PLOT), ("columns", TABLE)];
    result.as_object()?.iter().filter(|(name, _)| !Drawn::holds(name)).find_map(|(name, value)| {
        let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let (_, wanted) =
            forms.into_iter().find(|(form, wanted)| first.get(form).is_some() && name.starts_with(wanted))?;
        Some((name.as_str(), wanted))
    })
}

impl DrawnTable {
    /// Whether it can be written.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if self.columns.is_empty() {
            return Err("columns: the list is empty".into());
        }
        for (n, row) in self.rows.iter().enumerate() {
            let (entries, columns) = (row.len(), self.columns.len());
            if entries != columns {
                return Err(format!("rows[{n}]: {entries} entries in a table of {columns} columns"));
            }
            if let Some(entry) = row.iter().find(|entry| entry.is_object() || entry.is_array()) {
                return Err(format!("rows[{n}]: {entry} is neither a number nor a text"));
            }
        }
        Ok(())
    }

    /// It as a table to be written.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(self.columns.iter().cloned());
        self.rows.iter().for_each(|row| table.push(row.iter().map(entry).collect()));
        table
    }
}

fn entry(value: &Value) -> Entry {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Entry::Integer(whole),
            None => Entry::Real(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Entry::Text(text.clone()),
        Value::Null => Entry::Text(String::new()),
        other => Entry::Text(other.to_string()),
    }
}

impl Plot {
    /// What is wrong with it whatever the data are.
    fn check_text(&self) -> Result<(), String> {
        check_name(&self.name)?;
        for (n, curve) in self.curves.iter().enumerate() {
            if let Some(color) = curve.color.filter(|color| *color >= CURVES.len()) {
                return Err(format!("curves[{n}].color: {color} is not one of 0 to {}", CURVES.len() - 1));
            }
        }
        if self.ratio_to.is_none() && (self.ratio_range.is_some() || !self.ratio_label.is_empty()) {
            return Err("ratio_to: missing; give the number of the reference curve, counted from 0".into());
        }
        Ok(())
    }

    /// Whether it can be drawn.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_text().and_then(|()| self.check_data())
    }

    /// What is wrong with it where some data are missing, besides [`Plot::check_text`].
    fn check_data(&self) -> Result<(), String> {
        for (n, curve) in self.curves.iter().enumerate() {
            let (bars, points) = (curve.bars.len(), curve.points.len());
            if bars != 0 && bars != points {
                return Err(format!("curves[{n}].bars: {bars} error bars for {points} points"));
            }
            if let Some(bar) = curve.bars.iter().find(|bar| **bar < 0.0) {
                return Err(format!("curves[{n}].bars: {bar} is negative; give the half height"));
            }
            let (bands, points) = (curve.band.len(), curve.points.len());
            if bands != 0 && bands != points {
                return Err(format!("curves[{n}].band: {bands} pairs [low, high] for {points} points"));
            }
        }
        let (x_log, y_log) = self.logarithmic();
        let ranges = [
            ("x_range", self.x_range, x_log),
            ("y_range", self.y_range, y_log),
            ("ratio_range", self.ratio_range, false),
        ];
        for (name, range, log) in ranges {
            let Some([low, high]) = range else { continue };
            if low >= high || log && low <= 0.0 {
                let positive = if log { ", positive along a logarithmic axis" } else { "" };
                return Err(format!(
                    "{name}: [{low}, {high}] is not a range; give [low, high] with low < high{positive}"
                ));
            }
        }
        if let Some(n) = self.ratio_to.filter(|n| *n >= self.curves.len()) {
            let last = self.curves.len().saturating_sub(1);
            return Err(format!("ratio_to: no curve {n}; give a number from 0 to {last}"));
        }
        let shows = |value: Option<f64>, log: bool| value.is_some_and(|v| !log || v > 0.0);
        if !self.curves.iter().flat_map(|c| &c.points).any(|[x, y]| shows(*x, x_log) && shows(*y, y_log)) {
            let positive = if x_log || y_log { ", positive along logarithmic axes" } else { "" };
            return Err(format!("curves: no point to draw; give points: [[x, y], …]{positive}"));
        }
        Ok(())
    }

    /// It as a figure.
    pub(crate) fn figure(&self) -> Figure {
        let title = self.title.as_ref().unwrap_or(&self.name);
        line_figure_of_size(title, &[self.panel()], 1, self.size)
    }

    fn logarithmic(&self) -> (bool, bool) {
        let xy = self.log == Logarithmic::Xy;
        (xy || self.log == Logarithmic::X, xy || self.log == Logarithmic::Y)
    }

    fn panel(&self) -> Panel {
        let (x_logarithmic, y_logarithmic) = self.logarithmic();
        let curve = |curve: &PlotCurve| Curve {
            name: curve.name.clone(),
            points: curve.points.iter().map(|point| point.map(|v| v.unwrap_or(f64::NAN))).collect(),
            style: curve.style,
            bars: curve.bars.clone(),
            band: curve.band.clone(),
            color: curve.color,
            dash: curve.dash,
        };
        let ratio = |to| Ratio { to, label: self.ratio_label.clone(), range: self.ratio_range };
        Panel {
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
            x_logarithmic,
            y_logarithmic,
            x_reversed: self.x_reversed,
            x_range: self.x_range,
            y_range: self.y_range,
            legend: self.legend,
            ratio: self.ratio_to.map(ratio),
            curves: self.curves.iter().map(curve).collect(),
            marks: self.marks.clone(),
            ..Panel::default()
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let wrong = || format!("name: \"{name}\" becomes a file name; use only letters, digits, - and _");
    is_file_name(name).then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_and_plots_are_checked() {
        let refused = |result: Value| Drawn::of(&result).unwrap_err().1;
        let plot = |more: Value| {
            let mut plot = json!({ "curves": [{ "points": [[1, 2], [null, 3]] }] });
            plot.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "plot": plot, "other": 1 })
        };
        assert!(Drawn::of(&plot(json!({ "log": "x", "title": "T" }))).is_ok());
        assert!(Drawn::of(&json!(3)).unwrap().plots.is_empty());
        assert!(refused(plot(json!({ "x_lable": "k" }))).contains("did you mean \"x_label\"?"));
        assert!(refused(plot(json!({ "log": "z" }))).contains("plot.log: \"z\" is not one of"));
        assert!(refused(plot(json!({ "name": "../x" }))).contains("\"../x\" becomes a file name"));
        assert!(refused(plot(json!({ "curves": [] }))).contains("no point to draw"));
        assert!(refused(plot(json!({ "curves": [{ "points": [[0, 1]] }], "log": "x" }))).contains("positive"));
        assert!(refused(plot(json!({ "curves": [{ "points": [[1, 1]], "bars": [1, 2] }] }))).contains("2 error bars"));
        assert!(refused(plot(json!({ "curves": [{ "points": [[1, 1]], "bars": [-1] }] }))).contains("-1 is negative"));
        let two = |more: Value| plot(json!({ "curves": [{ "points": [[1, 1]] }, more] }));
        assert!(Drawn::of(&two(json!({ "points": [[1, 2]], "band": [[1, 3]], "color": 6, "dash": "dotted" }))).is_ok());
        assert!(
            refused(two(json!({ "points": [[1, 2]], "band": [[1, 3], [1, 3]] }))).contains("curves[1].band: 2 pairs")
        );
        assert!(
            refused(two(json!({ "points": [[1, 2]], "color": 7 }))).contains("curves[1].color: 7 is not one of 0 to 6")
        );
        assert!(
            refused(two(json!({ "points": [[1, 2]], "dash": "long" }))).contains("\"solid\", \"dashed\", \"dotted\"")
        );
        let all = json!({ "x_range": [1, 3], "y_range": [-1, 1], "legend": "none", "size": "page", "ratio_to": 0 });
        assert!(Drawn::of(&plot(all)).is_ok());
        assert!(refused(plot(json!({ "x_range": [3, 1] }))).contains("plot.x_range: [3, 1] is not a range"));
        assert!(refused(plot(json!({ "y_range": [0, 1], "log": "y" }))).contains("positive along a logarithmic axis"));
        assert!(refused(plot(json!({ "legend": "top" }))).contains("\"upper_right\", \"upper_left\""));
        assert!(
            refused(plot(json!({ "size": "a4" }))).contains("plot.size: \"a4\" is not one of \"column\", \"page\"")
        );
        assert!(
            refused(plot(json!({ "ratio_to": 1 }))).contains("plot.ratio_to: no curve 1; give a number from 0 to 0")
        );
        assert!(refused(plot(json!({ "ratio_range": [0, 2] }))).contains("plot.ratio_to: missing"));
        let row = |row: Value| json!({ "table": { "columns": ["a", "b"], "rows": [[1, 2], row] } });
        assert!(refused(row(json!([1]))).contains("table.rows[1]: 1 entries in a table of 2 columns"));
        assert!(refused(row(json!([1, [2]]))).contains("[2] is neither a number"));
        let color = two(json!({ "points": [[1, 2]], "color": 7 }));
        assert!(matches!(Drawn::of(&color), Err((Cause::Text, _))), "a rehearsal finds it");
        let curves = json!([{ "points": [[1, 1]] }]);
        assert!(
            refused(json!({ "plots": { "curves": curves } }))
                .contains("plots: is not drawn; the member for it is plot")
        );
        assert!(refused(json!({ "tables": [{ "columns": ["a"] }] })).contains("the member for it is table"));
        assert!(Drawn::of(&json!({ "plots": 3, "k": { "curves": 1 } })).is_ok());
        let titled = |plot: Value| Drawn::of(&plot).unwrap().plots[0].figure().title().to_owned();
        assert_eq!([plot(json!({})), plot(json!({ "title": "" }))].map(titled), ["plot", ""]);
        let twice = json!({ "table": [{ "columns": ["a"], "rows": [] }, { "columns": ["a"], "rows": [] }] });
        assert!(refused(twice).contains("two are named \"table\""));
    }

    #[test]
    fn a_table_is_written_as_it_was_given() {
        let result = json!({ "table": { "columns": ["name", "n", "x"], "rows": [["a", 3, 0.1], [null, 4, 1e-30]] } });
        let csv = Drawn::of(&result).unwrap().tables[0].table().to_csv();
        assert_eq!(csv, "name,n,x\na,3,0.1\n,4,1e-30\n");
    }
}
