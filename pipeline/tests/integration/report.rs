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
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: CELLS, z: 49, seed: 1 });
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
                "href" => assert!(page.contains(&format!("id=\"{}\"", value[1..].trim_end_matches('"'))), "{value}"),
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
        ["figure img { display: block; width: 100%", ".scroll { overflow-x: auto", "pre { overflow-x: auto"]
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

#[test]
fn a_stopped_campaign_says_where_and_how_it_goes_on() {
    let place = Place::new();
    let mut child =
        place.command(&["run", "page.rhai", "-p", "z_end=10", "-p", "cells=32", "--threads", "1"]).spawn().unwrap();
    until("it steps", &mut child, || common::records_of_all(&place.path("")).len() >= 3);
    // seen from outside while it goes on
    place.ends(&["report", "page"], 0);
    let page = place.page();
    assert!(page.contains("Going on") && page.contains(&format!("process {}", child.id())), "{page}");
    std::fs::write(place.path("stop"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let page = place.page();
    let headline = between(&page, "<p class=\"headline\">", "</p>");
    let z: f64 = headline.strip_prefix("Stopped at z = ").unwrap_or_else(|| panic!("{headline}")).parse().unwrap();
    assert!((10.0..49.0).contains(&z), "{headline}");
    assert!(page.contains("Stopped by the file ") && page.contains("1 of 5 stages are done."), "{page}");
    assert!(
        page.contains(&format!("begun, saved at z = {z} (evolve-")) && page.contains("waits for The run"),
        "{page}"
    );
    assert!(unescaped(&page).contains(" --threads 1</pre>"), "the command goes on as it was begun: {page}");
    let text = place.follows(&page, "To go on");
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
    let text = place.follows(&page, "To go on with a changed recipe");
    assert_eq!(text.matches("done before").count(), 4, "{text}");
    assert!(place.page().contains("Finished"));
}
