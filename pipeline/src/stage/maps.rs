//! `slice` and `projection`: a field on a rectangle, as a picture and as a table.

use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use comove_analysis::figure::map::{MapStyle, map_figure};
use comove_analysis::map::projection::resolving_pixels;
use comove_analysis::map::{MapOptions, projection, slice};
use comove_analysis::table::Record;
use serde_json::{Value, json};

/// Pictures of the selected outputs.
#[derive(Clone, Debug)]
pub struct Maps {
    /// Slice or projection.
    pub view: View,
    /// Which outputs.
    pub outputs: Selection,
    /// What is shown.
    pub options: MapOptions,
    /// How it is coloured.
    pub style: MapStyle,
}

/// The names of [`MapStyle`]'s options in a recipe.
pub const STYLE: [&str; 2] = ["range", "logarithmic"];

/// How a field in space becomes one on a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Cut through the centre.
    Slice,
    /// Averaged along the line of sight.
    Projection,
}

impl Stage for Maps {
    fn kind(&self) -> &'static str {
        match self.view {
            View::Slice => "slice",
            View::Projection => "projection",
        }
    }

    fn title(&self) -> String {
        let view = match self.view {
            View::Slice => "Slice",
            View::Projection => "Projection",
        };
        format!("{view}: {}", self.options.field)
    }

    fn describe(&self) -> String {
        let axis = format!("{:?}", self.options.axis).to_lowercase();
        let patches = if self.options.patches { ", with the patches" } else { "" };
        format!("{} along {axis}{patches}", self.options.field)
    }

    fn parameters(&self) -> Value {
        json!({ "map": self.options, "style": self.style })
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        self.outputs.of(input)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section = Section::default();
        let (mut files, mut figures) = (Vec::new(), Vec::new());
        let options = &self.options;
        for input in work.looking_at(&work.inputs[0]) {
            let snapshot = work.snapshots.read(input)?;
            let map = match self.view {
                View::Slice => slice(&snapshot, options)?,
                View::Projection => projection(&snapshot, options)?,
            };
            let name = format!("{}_{}_{}", self.kind(), self.options.field, input.shown().tag());
            let table = match self.view {
                View::Slice => map.table(),
                View::Projection => match resolving_pixels(&snapshot, options)? {
                    pixels if pixels == options.pixels => map.table(),
                    pixels => projection(&snapshot, &MapOptions { pixels, ..options.clone() })?.table(),
                },
            };
            files.push(work.write(&format!("{name}.csv"), table.to_csv().as_bytes())?);
            figures.push((name, map_figure(&map, &self.style)?));
        }
        files.extend(work.write_figures(&figures, &mut section)?);
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}
