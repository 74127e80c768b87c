//! The reference of recipes: it is what the program says, and says all that a recipe may call.

use assert_cmd::cargo::cargo_bin;
use comove::testing::{PARTS, registered};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn made(arguments: &[&str]) -> String {
    let output = Command::new(cargo_bin("comove")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn checked_in_files_are_what_the_program_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (file, arguments) in [
        ("docs/recipes-reference.md", &["docs", "recipes"][..]),
        ("recipes/api.d.rhai", &["docs", "recipes", "--definitions"]),
    ] {
        let there = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(there == made(arguments), "{file} is out of date: comove {} > {file}", arguments.join(" "));
    }
}

/// `name` and the number of arguments of a signature `name(a: Type, b: Type) -> Type`.
fn call(signature: &str) -> (String, usize) {
    let (name, rest) = signature.split_once('(').unwrap();
    let arguments = rest.split_once(')').unwrap().0;
    (name.trim().to_owned(), arguments.split(", ").filter(|a| !a.is_empty()).count())
}

#[test]
fn every_function_is_documented_and_is_there() {
    // not for users: those that refuse, and the way to a value of a result, `PEAK.name`
    let hidden = |name: &str| ["sleep", "<", "<=", ">", ">="].contains(&name) || name.starts_with("index$");
    let there: BTreeSet<(String, usize)> = registered().iter().map(|s| call(s)).filter(|(n, _)| !hidden(n)).collect();
    let mut documented = BTreeSet::new();
    for part in PARTS {
        let methods = part.types.iter().flat_map(|kind| kind.methods);
        for function in part.functions.iter().chain(methods) {
            for signature in function.signatures {
                assert_eq!(call(signature).0, function.name);
                documented.insert(call(signature));
            }
        }
        let properties = part.types.iter().flat_map(|kind| kind.properties);
        documented.extend(properties.map(|(name, ..)| (format!("get${name}"), 1)));
    }
    let missing: Vec<_> = there.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&there).collect();
    assert!(missing.is_empty() && invented.is_empty(), "not documented: {missing:?}; not there: {invented:?}");
}

/// What the examples of docs/recipes.md take for granted, small.
const BEFORE: &str = "const COSMO = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n\
    const IC = ic_gaussian(COSMO, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 7, baryons_only: true });\n";
const RUN: &str = "const RUN = evolve(IC, #{ z_end: 44, outputs: #{ at_z: [46] } });\n";

/// The examples of a section: its indented lines, block by block.
fn examples(heading: &str) -> Vec<String> {
    let page = include_str!("../../../docs/recipes.md");
    let section = page.split(&format!("# {heading}\n")).nth(1).expect("the section is there");
    indented(section.split("\n##").next().unwrap())
}

/// The indented blocks of a text.
fn indented(text: &str) -> Vec<String> {
    let blocks = text.split("\n\n").filter(|block| block.starts_with("    "));
    blocks.map(|block| block.lines().map(|line| format!("{}\n", &line[4..])).collect()).collect()
}

/// The tutorial shows its recipe without comments.
#[test]
fn the_tutorial_shows_its_recipe() {
    let shown = indented(include_str!("../../../docs/tutorial.md"));
    let code: Vec<&str> = include_str!("../../../recipes/tutorial.rhai")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect();
    // blank lines part the blocks of the page
    let found: Vec<&str> = shown.iter().flat_map(|block| block.lines()).skip_while(|line| *line != code[0]).collect();
    assert_eq!(found[..code.len()], code);
}

/// So are those of scripts, in the page and in `comove script --help`.
#[test]
fn examples_of_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("comove")).current_dir(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let peak = "const PEAK = measure(\"peak\", RUN, |s| s.densest().density);\ncampaign(\"doc\", [PEAK])\n";
    std::fs::write(folder.path().join("doc.rhai"), format!("{BEFORE}{RUN}{peak}")).unwrap();
    run(&["run", "doc.rhai"]);
    let [page] = examples("Scripts").try_into().unwrap();
    let [help] = indented(&made(&["script", "--help"])).try_into().unwrap();
    for (name, script, left) in [("page", page, ["halos.csv", "peak.png"]), ("help", help, ["rms.csv", "rms.png"])] {
        std::fs::write(folder.path().join(format!("{name}.rhai")), script).unwrap();
        run(&["script", &format!("{name}.rhai"), "--campaign", "doc"]);
        left.iter()
            .for_each(|file| assert!(folder.path().join("doc/scripts").join(name).join(file).exists(), "{file}"));
    }
}

/// The examples of hooks and decisions are recipes that run, shrunk to a few steps.
#[test]
fn examples_of_hooks_and_decisions_run() {
    let [hooks] = examples("Hooks").try_into().unwrap();
    let decisions = examples("Decisions");
    assert_eq!(decisions.len(), 2);
    let (before, after) = (BEFORE.to_owned(), format!("{BEFORE}{RUN}"));
    let all = [(&before, &hooks), (&after, &decisions[0]), (&after, &decisions[1])];
    let left = [
        &["evolve/observed.jsonl"][..],
        &["measure-peak/result.json", "slice/"],
        &["measure-check/result.json", "slice/"],
    ];
    for ((before, example), left) in all.into_iter().zip(left) {
        let names = example.lines().filter_map(|line| line.strip_prefix("const ")?.split_whitespace().next());
        let names: Vec<&str> = names.collect();
        let recipe = format!(
            "{before}{}campaign(\"doc\", [{}])\n",
            example.replace("z_end: 0,", "z_end: 44,"),
            names.join(", ")
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("doc.rhai"), &recipe).unwrap();
        let output =
            Command::new(cargo_bin("comove")).current_dir(folder.path()).args(["run", "doc.rhai"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("WARN"), "{said}");
        let stages = std::fs::read_dir(folder.path().join("doc")).unwrap().map(|entry| entry.unwrap().path());
        let stages: Vec<_> = stages.filter(|path| path.is_dir()).collect();
        for file in left {
            let (stage, file) = file.split_once('/').unwrap();
            let of = |path: &&std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(stage);
            let found = stages.iter().filter(of).find(|path| path.join(file).exists());
            let found = found.unwrap_or_else(|| panic!("{stage}/{file} is missing: {said}"));
            assert!(
                !file.ends_with("jsonl") || std::fs::read_to_string(found.join(file)).unwrap().contains("on_output")
            );
        }
    }
}

/// Every option has a sentence, and every link of the pages leads somewhere.
#[test]
fn nothing_is_left_empty() {
    let page = made(&["docs", "recipes"]);
    for line in page.lines().filter(|line| {
        line.starts_with("| ")
            && !line.starts_with("| option")
            && !line.starts_with("| |")
            && !line.starts_with("| field")
            && !line.starts_with("| member")
    }) {
        let line = line.replace("\\|", "");
        assert!(!line.trim_end_matches('|').trim_end().ends_with('|'), "{line}");
    }
    let anchors: BTreeSet<String> = page.lines().filter_map(|l| l.strip_prefix('#')).map(anchor).collect();
    for link in page.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(anchors.contains(link), "#{link} is not among {anchors:?}");
    }
    assert!(page.contains("| **`z`** |") && page.contains("`checkpoints.every_minutes`") && page.contains("| `10` |"));
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_')
        .collect::<String>()
        .replace(' ', "-")
}
