//! `slice` and `projection`: a field on a rectangle, as a picture and as a table.

use super::analysis::Analysis;
use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use comove_analysis::figure::map::{MapStyle, map_figure};
use comove_analysis::map::projection::resolving_pixels;
use comove_analysis::map::{Map, MapOptions, projection_by, slice_by};
use comove_analysis::table::Record;
use comove_analysis::{AnalysisError, Part};
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Maps {
    pub outputs: Selection,
    /// What is shown.
    pub map: MapWithTable,
    /// How it is coloured.
    pub style: MapStyle,
}

/// The names of [`MapStyle`]'s options in a recipe.
pub(crate) const STYLE: [&str; 3] = ["range", "logarithmic", "size"];

/// How a field in space becomes one on a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum View {
    /// Cut through the centre.
    Slice,
    /// Averaged along the line of sight.
    Projection,
}

/// A map, and the one that its table holds if that needs fewer pixels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MapWithTable {
    pub view: View,
    pub options: MapOptions,
}

impl Analysis for MapWithTable {
    type Found = (Map, Option<Map>);

    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<Self::Found>, AnalysisError> {
        let options = &self.options;
        if self.view == View::Slice {
            return Ok(slice_by(communicator, part, options)?.map(|map| (map, None)));
        }
        let map = projection_by(communicator, part, options)?;
        let Some(pixels) = resolving_pixels(part, options)? else {
            return Ok(map.map(|map| (map, None)));
        };
        let of_table = projection_by(communicator, part, &MapOptions { pixels: Some(pixels), ..options.clone() })?;
        Ok(map.map(|map| (map, of_table)))
    }
}

impl Stage for Maps {
    fn kind(&self) -> &'static str {
        match self.map.view {
            View::Slice => "slice",
            View::Projection => "projection",
        }
    }

    fn title(&self) -> String {
        let view = match self.map.view {
            View::Slice => "Slice",
            View::Projection => "Projection",
        };
        format!("{view}: {}", self.map.options.field)
    }

    fn describe(&self) -> String {
        let axis = format!("{:?}", self.map.options.axis).to_lowercase();
        let patches = if self.map.options.patches { ", with the patches" } else { "" };
        format!("{} along {axis}{patches}", self.map.options.field)
    }

    fn results_version(&self) -> u32 {
        2
    }

    fn parameters(&self) -> Value {
        let mut style = json!(self.style);
        if self.style.size.is_none() {
            // absent before figures had sizes
            style.as_object_mut().expect("a map of options").remove("size");
        }
        json!({ "map": self.map.options, "style": style })
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section = Section::default();
        let (mut files, mut figures) = (Vec::new(), Vec::new());
        for input in work.looking_at(&work.inputs[0]) {
            let (map, of_table) = work.find(input, &self.map)?;
            let name = format!("{}_{}_{}", self.kind(), self.map.options.field, work.shown(input).tag());
            let table = of_table.as_ref().unwrap_or(&map).table();
            files.push(work.write(&format!("{name}.csv"), table.to_csv().as_bytes())?);
            figures.push((name, map_figure(&map, &self.style)?));
        }
        files.extend(work.write_figures(&figures, &mut section)?);
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}
