//! The layering of crates and of modules within them (ARCHITECTURE.md): pipeline → ic, analysis → sim → kernels; ic and analysis never see each
//! other.

use cargo_metadata::MetadataCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What each crate may depend on.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("comove-kernels", &[]),
    ("comove-sim", &["comove-kernels"]),
    ("comove-ic", &["comove-sim", "comove-kernels"]),
    ("comove-analysis", &["comove-sim", "comove-kernels"]),
    ("comove", &["comove-ic", "comove-analysis", "comove-sim", "comove-kernels"]),
];

/// Third-party crates that only one of ours may name: the terminal, scripts and signals belong to the pipeline.
const PIPELINE_ONLY: [&str; 5] = ["rhai", "clap", "indicatif", "signal-hook", "tracing-subscriber"];

#[test]
fn crates_depend_only_on_those_further_right() {
    let metadata = MetadataCommand::new().no_deps().other_options(["--offline".into()]).exec().unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let names: Vec<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    for name in allowed.keys() {
        assert!(names.contains(name), "{name} is not in the workspace");
    }
    for package in &metadata.packages {
        let name = package.name.as_str();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} has no place in the layering"));
        for dependency in &package.dependencies {
            let other = dependency.name.as_str();
            assert!(!names.contains(&other) || may.contains(&other), "{name} may not depend on {other}");
            assert!(name == "comove" || !PIPELINE_ONLY.contains(&other), "{name} may not depend on {other}");
        }
    }
}

/// Modules of this crate that may not name others, or third-party crates.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    ("campaign", &["crate::command", "crate::cli", "crate::recipe::api", "clap", "indicatif"]),
    ("stage", &["crate::command", "crate::recipe::engine", "crate::recipe::docs", "clap", "indicatif"]),
    ("executor", &["crate::command", "crate::recipe::api", "rhai", "clap", "indicatif"]),
    ("ledger", &["crate::command", "crate::recipe", "rhai", "clap", "indicatif"]),
];

/// The module at the root of a library.
const ROOT: &str = "lib";

/// A module's product code.
#[derive(Debug, Default, PartialEq)]
struct Module {
    /// Paths in it.
    paths: BTreeSet<String>,
    /// Re-exports by name, with their paths.
    exports: BTreeMap<String, String>,
}

/// The modules of a crate by their paths.
fn modules(source: &Path) -> BTreeMap<String, Module> {
    let mut modules = BTreeMap::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                let path = entry.strip_prefix(source).unwrap().with_extension("");
                let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
                let name = names.strip_suffix(&["mod"]).unwrap_or(&names).join("::");
                modules.insert(name.clone(), imports(&name, &std::fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    modules
}

/// What a module names, as absolute paths: `use` items, braces expanded, and paths within its code.
fn imports(module: &str, text: &str) -> Module {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let bare = |line: &str| line.split("//").next().unwrap().split('"').step_by(2).collect::<String>();
    let code = product.lines().map(bare).collect::<Vec<_>>().join(" ");
    let mut found = Module::default();
    for item in code.split(';') {
        let item = format!(" {item}");
        let (body, used) = item.split_once(" use ").unwrap_or((&item, ""));
        let mut paths = Vec::new();
        expand(&used.replace(" as ", "=").replace(' ', ""), "", &mut paths);
        paths.retain(|path| !path.is_empty());
        let is_public =
            ["pub", "pub(crate)", "pub(super)"].iter().any(|visibility| body.trim_end().ends_with(visibility));
        if is_public {
            // others are macros
            for path in paths.iter().filter(|path| path.contains("::")) {
                let of_child = format!("self::{path}");
                let whole = if path.contains("crate::") || path.contains("super::") { path } else { &of_child };
                let name = path.rsplit(['=', ':']).next().unwrap().to_owned();
                found.exports.insert(name, absolute(module, whole.split('=').next().unwrap()));
            }
        }
        let names = body.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
        paths.extend(names.filter(|name| name.starts_with("super::") || name.starts_with("crate::")).map(String::from));
        found.paths.extend(paths.iter().map(|path| absolute(module, path.split('=').next().unwrap())));
    }
    found
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn expand(item: &str, before: &str, paths: &mut Vec<String>) {
    let Some((head, inner)) = item.split_once('{') else {
        return paths.push(format!("{before}{item}"));
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                if at > start {
                    expand(&inner[start..at], &format!("{before}{head}"), paths);
                }
                start = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// A path as from the root of the crate.
fn absolute(module: &str, path: &str) -> String {
    let mut here: Vec<&str> = module.split("::").filter(|name| *name != ROOT).collect();
    let mut rest = path;
    while let Some(above) = rest.strip_prefix("super::") {
        here.pop();
        rest = above;
    }
    match rest.strip_prefix("self::") {
        None if rest.len() == path.len() => path.to_owned(),
        inner => format!("crate::{}::{}", here.join("::"), inner.unwrap_or(rest)).replace("::::", "::"),
    }
}

/// The modules that one reaches by imports.
fn reached<'m>(edges: &BTreeMap<&'m str, BTreeSet<&'m str>>, from: &'m str) -> BTreeSet<&'m str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(edges[next].iter().filter(|other| seen.insert(**other)));
    }
    seen
}

/// The module of the item at a path of the crate.
fn definition<'m>(modules: &'m BTreeMap<String, Module>, path: &str) -> Option<&'m str> {
    let path = path.strip_prefix("crate::")?;
    let mut module = path;
    while !modules.contains_key(module) {
        module = module.rsplit_once("::").map_or(ROOT, |(outer, _)| outer);
    }
    let (name, found) = modules.get_key_value(module)?;
    let inner = path.strip_prefix(module).unwrap_or(path).trim_start_matches("::").split("::").next()?;
    found.exports.get(inner).and_then(|path| definition(modules, path)).or(Some(name))
}

/// The modules of a crate that import each other in a circle, each circle once. What a module takes from its own children does
/// not count.
fn circles(modules: &BTreeMap<String, Module>) -> BTreeSet<BTreeSet<&str>> {
    let edges: BTreeMap<&str, BTreeSet<&str>> = modules
        .iter()
        .map(|(name, Module { paths, .. })| {
            let is_child = |other: &&str| other.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"));
            let others = paths.iter().filter_map(|path| definition(modules, path));
            (name.as_str(), others.filter(|other| !is_child(other)).collect())
        })
        .collect();
    let all: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|name| (*name, reached(&edges, name))).collect();
    let circle = |name: &&str| {
        let circle: BTreeSet<&str> = all[name].iter().copied().filter(|other| all[other].contains(name)).collect();
        (circle.len() > 1).then_some(circle)
    };
    edges.keys().filter_map(circle).collect()
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    for name in ["kernels", "sim", "ic", "analysis", "pipeline"] {
        let modules = modules(&root.join(name).join("src"));
        assert!(modules.len() > 20, "{name} has {} modules", modules.len());
        let circles = circles(&modules);
        all.extend(circles.iter().map(|circle| format!("{name}: {circle:?}")));
    }
    assert!(all.is_empty(), "circles of modules: {all:#?}");
}

#[test]
fn campaigns_know_no_recipe_functions_and_no_terminal() {
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for (part, forbidden) in FORBIDDEN {
        let within = modules.iter().filter(|(name, _)| *name == part || name.starts_with(&format!("{part}::")));
        for (name, module) in within {
            let named = module
                .paths
                .iter()
                .find(|path| forbidden.iter().any(|f| *path == f || path.starts_with(&format!("{f}::"))));
            assert_eq!(named, None, "{name} may not name it");
        }
    }
}

#[test]
fn imports_are_read() {
    let text = "use super::a::{B, c::{D, self}};\nuse crate::x::Y; // use crate::no;\nuse std::fs;\nfn f() { super::g::h(Y) }\n";
    let found = imports("m::n", text);
    let expected =
        ["crate::m::a::B", "crate::m::a::c::D", "crate::m::a::c::self", "crate::m::g::h", "crate::x::Y", "std::fs"];
    assert_eq!(found.paths, expected.into_iter().map(String::from).collect());
    assert_eq!(imports("m", "pub(crate) use n::{A, B};\n").exports["B"], "crate::m::n::B");
    let module = |name: &str, text: &str| (name.to_owned(), imports(name, text));
    let ring = BTreeMap::from([
        module("a", "use crate::b::C;"),
        module("b", "fn f(c: crate::c::C) {}"),
        module("c", "use crate::e::A;"),
        module("d", "use crate::a::B;"),
        module("e", "pub use crate::a::A;"),
        module("lib", ""),
    ]);
    assert_eq!(circles(&ring), BTreeSet::from([BTreeSet::from(["a", "b", "c"])]));
}
