//! The page of a campaign that is finished, stopped, has failed, or goes on: what it says, and that any browser shows it.
//! `scripts/check-report` looks at it in a real one.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, until};
use std::path::PathBuf;
use std::process::Command;

const RECIPE: &str = r#"
const Z_END = param("z_end", 30.0, "where the run ends");
const CELLS = param("cells", 16, "per axis");
const BROKEN = param("broken", false, "whether the measurement fails");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: CELLS, z: 49, seed: 1, dark_matter: true });
const RUN = evolve(IC, #{ z_end: Z_END, max_level: 1, refine: density_above(1.4) });
const PEAK = measure("peak", RUN, |s| #{ density: s.densest().density, b: if BROKEN { 1 + "a".len + () } else { 0 } });
campaign("A <page> & more", [PEAK, slice(RUN, #{ pixels: 32 }), power_spectrum(RUN)])
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("it's a ").tempdir().unwrap();
        std::fs::write(folder.path().join("page.rhai"), RECIPE).unwrap();
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    fn ends(&self, arguments: &[&str], code: i32) -> String {
        said(&self.command(arguments).output().unwrap(), code)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("page").join(file)
    }

    fn page(&self) -> String {
        let page = std::fs::read_to_string(self.path("report.html")).unwrap();
        is_sound(&page);
        page
    }

    /// Does what the page says under `name`, as a reader would who copies it to a shell.
    fn follows(&self, page: &str, name: &str) -> String {
        let shown = between(page, &format!("<p>{name}:</p>\n<pre class=\"command\">"), "</pre>");
        let line = unescaped(shown);
        let folder = cargo_bin("comove").parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        said(&Command::new("sh").args(["-c", &line]).env("PATH", path).current_dir("/").output().unwrap(), 0)
    }
}

/// What stands between two texts.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let rest = page.split_once(before).unwrap_or_else(|| panic!("{before} is not there: {page}")).1;
    rest.split_once(after).unwrap().0
}

/// A text as a reader sees it.
fn unescaped(text: &str) -> String {
    let entities = [("&#x27;", "'"), ("&#x2f;", "/"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    let text = text.replace("<span>", "").replace("</span>", "");
    entities.iter().fold(text, |text, (entity, character)| text.replace(entity, character))
}

/// Pixels of a narrow phone.
const PHONE: f64 = 320.0;

/// Elements are closed in the order in which they were opened; nothing is fetched and nothing runs; nothing asks for more
/// width than a phone has; tables may scroll within their frame.
fn is_sound(page: &str) {
    let (mut open, mut rest) = (Vec::new(), page);
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        match tag.as_bytes()[0] {
            b'!' => {}
            b'/' => assert_eq!(open.pop(), Some(name), "</{name}> closes what was not opened last"),
            _ if ["meta", "img", "br", "hr"].contains(&name) => {}
            _ => open.push(name),
        }
        assert!(!["script", "link", "iframe", "object", "embed", "base", "form"].contains(&name), "<{tag}>");
        for (attribute, value) in tag.split(' ').filter_map(|part| part.split_once("=\"")) {
            match attribute {
                "src" => assert!(value.starts_with("data:image/png;base64,"), "{value}"),
                "href" => match value.trim_end_matches('"').strip_prefix('#') {
                    Some(place) => assert!(page.contains(&format!("id=\"{place}\"")), "{value}"),
                    // a file below the campaign's folder
                    None => assert!(!value.contains(':') && !value.starts_with('/'), "{value}"),
                },
                _ => {
                    assert!(!attribute.starts_with("on") && !["style", "width", "srcset"].contains(&attribute), "{tag}")
                }
            }
        }
        if name == "table" && tag.as_bytes()[0] != b'/' {
            let frame = page[..page.len() - after.len()].trim_end_matches(&format!("<{tag}>"));
            assert!(frame.trim_end().ends_with("<div class=\"scroll\">"), "a table without a frame: {tag}");
        }
    }
    assert_eq!(open, [""; 0], "left open");
    assert!(page.starts_with("<!doctype html>") && page.contains("name=\"viewport\" content=\"width=device-width"));
    let style = between(page, "<style>", "</style>");
    assert!(!style.contains("url(") && !style.contains("@import"));
    for declaration in style.split(['{', '}', ';']).map(str::trim) {
        let Some((property, value)) = declaration.split_once(':') else { continue };
        if ["width", "min-width"].contains(&property) {
            let unit = value.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let number: f64 = value.trim().trim_end_matches(unit).parse().unwrap();
            let pixels = match unit {
                "px" => number,
                "rem" | "em" => 16.0 * number,
                "%" => PHONE * number / 100.0,
                _ => panic!("{declaration}"),
            };
            assert!(pixels <= PHONE, "{declaration}");
        }
    }
    for contained in
        ["figure img { display: block; max-width: 100%", ".scroll { overflow-x: auto", "pre { overflow-x: auto"]
    {
        assert!(style.contains(contained), "{contained}");
    }
}

#[test]
fn a_finished_campaign_says_what_made_it() {
    let place = Place::new();
    let log = place.ends(&["run", "page.rhai", "-p", "z_end=40"], 0);
    let page = place.page();
    assert!(page.contains("<p class=\"headline\">Finished</p>") && page.contains("All 5 stages are done."), "{page}");
    assert!(page.contains("<h1>A &lt;page&gt; &amp; more</h1>") && !page.contains("class=\"command\""));
    let provenance = page.split_once("<h2>Provenance</h2>").unwrap().1;
    for fact in ["comove 0.", "processor", "instructions", "GiB", "HDF5", "rustc 1.", "-p z_end", "page.rhai"] {
        assert!(provenance.split_once("<details>").unwrap().0.contains(fact), "{fact}: {provenance}");
    }
    let folded = unescaped(provenance.split_once("<details>").unwrap().1);
    assert!(
        folded.contains("const BROKEN = param") && !page.split_once("<details>").unwrap().0.contains("const BROKEN")
    );
    // every file that a stage has left is there with the digest that it has
    let mut files = 0;
    for event in common::lines(&place.path("ledger.jsonl")) {
        for made in event["artefacts"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(event["snapshot"].as_object().map(|_| &event["snapshot"]))
        {
            let (file, digest) = (made["file"].as_str().unwrap(), made["digest"].as_str().unwrap());
            assert!(folded.contains(&format!("/{file}</td><td>{digest}</td>")), "{file}");
            files += 1;
        }
    }
    assert!(files > 10 && log.contains("report.html"), "{files} {log}");
}

/// Head, results in the order of the recipe's list, then accounting and provenance; the first picture before any table of a
/// run or of an initial condition.
#[test]
fn the_page_begins_with_what_was_simulated() {
    let place = Place::new();
    place.ends(&["run", "page.rhai", "-p", "z_end=40.25"], 0);
    let page = unescaped(&place.page());
    for fact in [
        "<dt>cosmology</dt><dd>Ωm\u{a0}0.3, ΩΛ\u{a0}0.7, Ωb\u{a0}0.045, h\u{a0}0.7, σ8\u{a0}0.9, ns\u{a0}1</dd>",
        "<dt>box</dt><dd>20 Mpc/h (28.57 Mpc), comoving, periodic</dd>",
        "<dt>redshift</dt><dd>49 to 40.25</dd>",
        "<dt>root grid</dt><dd>16³ cells, 1 refinement level</dd>",
        "<dt>finest cell</dt><dd>0.6250 Mpc/h, 32³ across the box</dd>",
        // (1 − 0.045/0.3)·0.3·2.775e11·20³/16³ is 1.382e11
        "<dt>species</dt><dd>dark matter and gas</dd>",
        "<dt>particle mass</dt><dd>1.382×10¹¹ M☉/h, 16³ particles</dd>",
        "<dt>numerics</dt><dd>PPM, single precision, one time step for all levels</dd>",
        "<dt>initial condition</dt><dd>16³ cells in 20 Mpc/h at z = 49 with dark matter, seed 1</dd>",
        "<dt>units</dt><dd>comoving Mpc/h,",
    ] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
    let order = [
        "<h1>",
        "<p class=\"headline\">",
        "<dl class=\"head\">",
        "<h2>Measured: peak</h2>",
        "<h2>Slice: density</h2>",
        "<img src=",
        "<h2>Power spectrum</h2>",
        "<h2>Accounting</h2>",
        "<h3>Stages</h3>",
        "<h3>Initial condition</h3>",
        "<h3>The run</h3>",
        "residual of the gas's energy balance",
        "Where the time went",
        "<h2>Provenance</h2>",
    ];
    let places = order.map(|part| page.find(part).unwrap_or_else(|| panic!("{part} is not there: {page}")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(!page.contains("<h2>The run") && page.contains("<figcaption>z = 40.25</figcaption>"), "{page}");
}

/// Runs that differ are told apart in a table, and what they share is said once.
#[test]
fn runs_that_differ_have_a_table() {
    let place = Place::new();
    let other = "dark_matter: true });\nconst OTHER = evolve(IC, #{ z_end: Z_END, name: \"uniform\" });";
    let two = RECIPE.replace("dark_matter: true });", other);
    std::fs::write(
        place.0.path().join("page.rhai"),
        two.replace("power_spectrum(RUN)]", "power_spectrum(RUN), OTHER]"),
    )
    .unwrap();
    place.ends(&["run", "page.rhai", "-p", "z_end=45"], 0);
    let page = unescaped(&place.page());
    let head = between(&page, "<dl class=\"head\">", "<nav>");
    assert!(head.contains("<dt>box</dt>") && !head.contains("<dt>finest cell</dt>"), "{head}");
    for entry in [
        "<th class=\"words\">root grid</th>",
        ">uniform</td>",
        "16³ cells, not refined",
        "16³ cells, 1 refinement level",
    ] {
        assert!(head.contains(entry), "{entry}: {head}");
    }
}

/// Every stage of the recipe with its state and files, which exist; columns of tables with unit and description.
#[test]
fn the_index_lists_stages_and_files() {
    let place = Place::new();
    let index = |place: &Place| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(place.path("index.json")).unwrap()).unwrap()
    };
    let stages = |index: &serde_json::Value| -> Vec<(String, String, usize)> {
        let one = |stage: &serde_json::Value| {
            let text = |key: &str| stage[key].as_str().unwrap().to_owned();
            (text("kind"), text("state"), stage["files"].as_array().unwrap().len())
        };
        index["stages"].as_array().unwrap().iter().map(one).collect()
    };
    place.ends(&["run", "page.rhai", "-p", "z_end=40.5", "--only", "ic_gaussian"], 0);
    let begun = index(&place);
    assert_eq!(begun["state"], "interrupted");
    let count = |state: &str| stages(&begun).iter().filter(|(_, of, _)| of == state).count();
    assert_eq!((count("done"), count("to do")), (1, 4), "{begun}");
    place.ends(&["run", "page.rhai", "-p", "z_end=40.5"], 0);
    let done = index(&place);
    assert_eq!((&done["state"], &done["campaign"]), (&"finished".into(), &"A <page> & more".into()));
    let kinds: Vec<String> = stages(&done).into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, ["measure", "slice", "power_spectrum", "ic_gaussian", "evolve"], "the recipe's order");
    for stage in done["stages"].as_array().unwrap() {
        let folder = place.path(stage["folder"].as_str().unwrap());
        assert_eq!(stage["state"], "done");
        for file in stage["files"].as_array().unwrap() {
            assert!(folder.join(file["file"].as_str().unwrap()).is_file(), "{file}");
        }
        if stage["kind"] != "ic_gaussian" {
            assert_eq!(stage["redshifts"], serde_json::json!([40.5]), "{stage}");
        }
    }
    let files = |kind: &str| {
        let all = done["stages"].as_array().unwrap().iter().flat_map(|stage| stage["files"].as_array().unwrap());
        all.filter(|file| file["kind"] == kind).count()
    };
    assert!(files("output") == 1 && files("checkpoint") > 0 && files("step records") == 1, "{done}");
    assert!(files("table") == 2 && files("figure") >= 2 && files("initial condition") == 1, "{done}");
    let power = &done["tables"]["power_spectrum"];
    assert_eq!((&power[0]["name"], &power[0]["unit"]), (&"k_h_mpc".into(), &"h/Mpc".into()));
    assert!(power.as_array().unwrap().len() == 6 && power[1]["description"].as_str().unwrap().contains("P(k)"));
}

#[test]
fn a_stopped_campaign_says_where_and_how_it_goes_on() {
    let place = Place::new();
    let mut child =
        place.command(&["run", "page.rhai", "-p", "z_end=10", "-p", "cells=32", "--threads", "1"]).spawn().unwrap();
    until("it steps", &mut child, || common::records_of_all(&place.path("")).len() >= 3);
    // seen from outside while it goes on
    place.ends(&["report", "page"], 0);
    let page = place.page();
    assert!(page.contains("Running") && page.contains(&format!("process {}", child.id())), "{page}");
    std::fs::write(place.path("stop"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let page = place.page();
    let headline = between(&page, "<p class=\"headline\">", "</p>");
    let z: f64 = headline.strip_prefix("Stopped at z = ").unwrap_or_else(|| panic!("{headline}")).parse().unwrap();
    assert!((10.0..49.0).contains(&z), "{headline}");
    assert!(page.contains("Stopped by the file ") && page.contains("1 of 5 stages are done."), "{page}");
    assert!(
        page.contains(&format!("unfinished, last snapshot at z = {z} (evolve-")) && page.contains("waits for The run"),
        "{page}"
    );
    // what the run has so far stands among the results, its cost below
    let order = [
        "<dl class=\"head\">",
        "<h2>The run</h2>",
        "<img src=",
        "<h2>Accounting</h2>",
        "<h3>The run</h3>",
        "After step",
    ];
    let places = order.map(|part| page.find(part).unwrap_or_else(|| panic!("{part} is not there: {page}")));
    assert!(places.is_sorted() && page.contains("Outputs written: none"), "{page}");
    let index = std::fs::read_to_string(place.path("index.json")).unwrap();
    assert!(index.contains("\"state\": \"interrupted\"") && index.contains("steps.jsonl"), "{index}");
    assert!(unescaped(&page).contains(" --threads 1</pre>"), "the command goes on as it was begun: {page}");
    let text = place.follows(&page, "To continue");
    assert!(text.contains("continuing from checkpoint_"), "{text}");
    assert!(place.page().contains("Finished"));
}

#[test]
fn a_failure_is_named_with_its_message() {
    let place = Place::new();
    place.ends(&["run", "page.rhai", "-p", "broken=true", "--keep-going", "--no-rehearsal"], 3);
    let page = place.page();
    assert!(page.contains("<p class=\"headline\">Failed at") || page.contains("<p class=\"headline\">Failed</p>"));
    assert!(
        page.contains("<h3>Measured: peak</h3>") && page.contains("page.rhai:8:") && page.contains("failed (measure-")
    );
    assert!(page.contains("4 of 5 stages are done.") && page.contains("<h2>Power spectrum</h2>"), "{page}");
    let changed = unescaped(between(&page, "with a changed recipe:", "</pre>"));
    assert!(changed.contains(" -p broken=true --dir "), "{changed}");
    std::fs::write(place.0.path().join("page.rhai"), RECIPE.replace("if BROKEN", "if false")).unwrap();
    let text = place.follows(&page, "To continue with a changed recipe");
    assert_eq!(text.matches("done before").count(), 4, "{text}");
    assert!(place.page().contains("Finished"));
}
