//! `comove export`: input of other codes, and refusals. Other readers look at the files in `scripts/tests/test_export.py`.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use std::fs;
use std::path::Path;
use std::process::Command;

const RECIPE: &str = "
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const FOLLOW = if param(\"follow\", false, \"three particles alone\") { #{ follow: [1, 2, 3] } } else { #{} };
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5, gas: false, dark_matter: true } + FOLLOW);
const ENDS = if param(\"two\", false, \"two runs\") { [9, 4] } else { [9] };
const RUNS = ENDS.map(|z| evolve(IC, #{ z_end: z, max_level: 2, refine: particles_above(8) }));
campaign(\"export\", RUNS)
";

fn comove(folder: &Path, arguments: &[&str], code: i32) -> String {
    said(&Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap(), code)
}

/// Every code gets its files, whose parameter file states options with and without a counterpart.
#[test]
fn a_deck_states_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("r.rhai"), RECIPE).unwrap();
    for (code, file, line, files) in [
        ("gadget", "param.txt", "BoxSize                           20000", ["ics.hdf5", "outputs.txt"]),
        (
            "swift",
            "swift.yml",
            "dt_max:                          0.01  # evolve.max_delta_a",
            ["ics.hdf5", "outputs.txt"],
        ),
        ("gamer", "Input__Parameter", "MAX_LEVEL                2  ", ["PAR_IC", "Input__Flag_ParMassCell"]),
        ("ramses", "ramses.nml", "m_refine=8,8  ! evolve.refine", ["ics/ic_deltab", "ics/ic_poscz"]),
    ] {
        let done = comove(folder, &["export", "r.rhai", "--for", code], 0);
        assert!(done.contains(&format!("r_{code}: ")) && done.contains("4096 particles"), "{done}");
        let made = folder.join(format!("r_{code}"));
        let text = fs::read_to_string(made.join(file)).unwrap();
        assert!(text.contains(line) && text.contains("  evolve.sheet_passes: "), "{text}");
        // of no effect, or with a counterpart
        assert!(
            !text.contains("cosmology.sigma8")
                && !text.contains("evolve.courant")
                && !text.contains("  evolve.max_level:"),
            "{text}"
        );
        assert!(files.iter().all(|name| made.join(name).is_file()), "{files:?}");
    }
    // files of an earlier export go, others stay
    let made = folder.join("r_gamer");
    ["UM_IC", "notes"].iter().for_each(|name| fs::write(made.join(name), "old").unwrap());
    comove(folder, &["export", "r.rhai", "--for", "gamer", "--overwrite"], 0);
    assert!(!made.join("UM_IC").exists() && made.join("notes").exists() && made.join("PAR_IC").exists());
    let flags = fs::read_to_string(made.join("Input__Flag_ParMassCell")).unwrap();
    // a level that may be refined each: hardly more than eight particles of (20/16)³
    assert_eq!(flags.lines().count(), 3, "{flags}");
    assert!(flags.lines().nth(1).unwrap().contains(" 1.56250156"), "{flags}");
}

/// Codes get the particles that they have without `follow`, which is said at the top; criteria that count all are not made of it.
#[test]
fn what_refinement_follows_is_not_carried_over() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("r.rhai"), RECIPE).unwrap();
    for (code, file, ic, counts) in [
        ("gadget", "param.txt", "ics.hdf5", None),
        ("swift", "swift.yml", "ics.hdf5", None),
        ("gamer", "Input__Parameter", "PAR_IC", Some("OPT__FLAG_PAR_MASS_CELL  1")),
        ("ramses", "ramses.nml", "ics/ic_poscx", Some("m_refine=")),
        ("enzo", "enzo.par", "ParticleDisplacements_x", Some("MinimumOverDensityForRefinement")),
        ("nyx", "inputs", "ics.nyx", None),
    ] {
        let made = |name: &str, options: &[&str]| {
            let arguments = [&["export", "r.rhai", name, "--for", code], options].concat();
            let done = comove(folder, &arguments, 0);
            assert!(done.contains("4096 particles"), "{done}");
            let text = fs::read_to_string(folder.join(name).join(file)).unwrap();
            (fs::read(folder.join(name).join(ic)).unwrap(), text)
        };
        let (all, text) = made(&format!("all_{code}"), &[]);
        assert!(!text.contains("ic.follow") && counts.is_none_or(|line| text.contains(line)), "{code}: {text}");
        let (some, text) = made(&format!("some_{code}"), &["-p", "follow=true"]);
        assert!(
            text.contains("ic.follow: 3 identities") && counts.is_none_or(|line| !text.contains(line)),
            "{code}: {text}"
        );
        assert!(all == some, "{code}");
    }
}

#[test]
fn mistakes_name_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("r.rhai"), RECIPE).unwrap();
    fs::write(folder.join("x.h5"), "not HDF5").unwrap();
    fs::write(folder.join("there.hdf5"), "mine").unwrap();
    fs::write(folder.join("sedov.rhai"), "campaign(\"s\", [evolve(problem(\"sedov\"), #{ t_end: 0.01 })])").unwrap();
    for (arguments, code, sentence) in [
        (["x.h5", "--format", "hdf4"].as_slice(), 2, "[possible values: gadget, npy, vtkhdf, grafic]"),
        (&["r.rhai", "--for", "arepo"], 2, "[possible values: gadget, swift, gamer, ramses, enzo, nyx]"),
        (&["r.rhai", "--format", "gadget"], 2, "r.rhai: a recipe; --format needs a snapshot: use --for, or"),
        (&["x.h5", "--for", "gamer"], 2, "x.h5: not a .rhai file; --for needs a recipe: use --format"),
        (&["x.h5", "--format", "gadget", "--level", "1"], 2, "--level: has no effect with --format gadget; remove it"),
        (&["x.h5", "there.hdf5", "--format", "gadget"], 2, "there.hdf5: exists; give another name, or --overwrite"),
        (&["x.h5", "there.hdf5", "--format", "npy"], 2, "there.hdf5: is a file; expected a folder"),
        (&["x.h5", ".", "--format", "vtkhdf"], 2, ".: is a folder; expected a file"),
        (&["x.h5", "x.h5", "--format", "gadget", "--overwrite"], 2, "x.h5: is or contains the source "),
        (&["x.h5", "--format", "gadget"], 4, "x.h5: "),
        (&["y.h5", "--format", "gadget"], 6, "y.h5: No such file"),
        (&["r.rhai", "--for", "swift", "-p", "two=true"], 2, "r.rhai: has 2 runs; choose one with --stage: 2 ("),
        (&["r.rhai", "--for", "swift", "--stage", "1"], 2, "--stage 1: is no run; name a stage of kind evolve"),
        (&["r.rhai", "--for", "swift", "--stage", "7"], 2, "no stage \"7\""),
        (&["sedov.rhai", "--for", "swift"], 4, "starts from a formula; expected ic_gaussian or ic_load"),
    ] {
        let said = comove(folder, &[&["export"], arguments].concat(), code);
        assert!(said.contains(sentence), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_to_string(folder.join("there.hdf5")).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 4, "no file is left");
}
