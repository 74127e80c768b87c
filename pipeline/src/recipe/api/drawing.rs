//! `table` and `plot`: what a script writes.

use super::failure::failure;
use crate::error::PipelineError;
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::interpreter::Session;
use crate::recipe::options::decode;
use crate::recipe::reference::Function;
use crate::stage::drawn::{DrawnTable, Plot};
use crate::stage::work::write_file;
use crate::terminal::streams::print;
use comove_analysis::Figure;
use rhai::{Engine, ImmutableString, Map};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &["table(name: String, table: Map)"],
        "Writes `name.csv` into the script's folder and prints its path. The map is that of `table` in \
         [Results](#results), without its name.",
    )
    .used_as("table(\"name\", #{ columns: […], rows: [[…], …] })"),
    Function::new(
        &["plot(name: String, plot: Map)"],
        "Writes `name.png`, `name.svg` and `name.pdf` into the script's folder and prints the path of the first. The map is that of `plot` in \
         [Results](#results), without its name.",
    )
    .used_as("plot(\"name\", #{ curves: [#{ points: [[x, y], …] }] })"),
];

struct Drawing {
    session: Arc<Session>,
    folder: PathBuf,
    written: Mutex<BTreeSet<String>>,
}

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>, folder: &Path) {
    let drawing = Drawing { session: Arc::clone(session), folder: folder.into(), written: Mutex::default() };
    let for_tables = Arc::new(drawing);
    let for_plots = Arc::clone(&for_tables);
    engine
        .register_fn("table", move |name: ImmutableString, table: Map| -> Bound<()> {
            let table: DrawnTable = named("table", &name, table)?;
            table.check().map_err(|wrong| Refusal::error("table", wrong, None))?;
            for_tables.write("table", format!("{name}.csv"), |path| write_file(path, table.table().to_csv().as_bytes()))
        })
        .register_fn("plot", move |name: ImmutableString, plot: Map| -> Bound<()> {
            let plot: Plot = named("plot", &name, plot)?;
            plot.check().map_err(|wrong| Refusal::error("plot", wrong, None))?;
            let [png, ..] = Figure::files(&name);
            let folder = for_plots.folder.clone();
            for_plots.write("plot", png, |_| Ok(plot.figure().write(&folder, &name)?))
        });
}

/// A table or a plot with its name, which is no option here.
fn named<T: DeserializeOwned>(function: &str, name: &ImmutableString, mut options: Map) -> Bound<T> {
    if options.contains_key("name") {
        let message = format!("the first argument must be the name: {function}(\"name\", #{{ … }})");
        return Err(Refusal::error(function, message, Some("name")));
    }
    options.insert("name".into(), name.clone().into());
    decode(function, options)
}

impl Drawing {
    /// Writes a file and prints its path.
    fn write(&self, function: &str, file: String, write: impl FnOnce(&Path) -> Result<(), PipelineError>) -> Bound<()> {
        let refuse = |message: String| Refusal::error(function, message, None);
        // a parameter that is given and not declared would have been meant for what is written
        let undeclared = self.session.parameters.lock().expect("no binding panics").check();
        let before = |message| refuse(format!("{message}; declare parameters before the first table and plot"));
        undeclared.map_err(before)?;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.insert(file.clone()) {
            return Err(refuse(format!("this script has already written {file}; use another name")));
        }
        let path = self.folder.join(file);
        let folder = std::fs::create_dir_all(&self.folder).map_err(PipelineError::io(&self.folder));
        let printed = || print(&path.display().to_string());
        folder.and_then(|()| write(&path)).and_then(|()| printed()).map_err(|error| failure(function, &error))
    }
}
