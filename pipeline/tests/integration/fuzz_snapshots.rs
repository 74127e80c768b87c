//! Snapshot files that are damaged in every way, half of them with digests that are right again, so that what is read is
//! what was changed: each is refused by name or read, whatever HDF5 makes of it.
//! `COMOVE_FUZZ=10000 cargo test --release --locked -p comove --test integration fuzz_snapshots -- --nocapture` tries ten
//! thousand; by default it is a few hundred. Of ten thousand 2055 can be read, and 426 campaigns work with what these hold;
//! that takes a quarter of an hour on two busy cores.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::fuzz::{CUT_SHORT, Dice, Ended, in_parallel, limited, mutated, print, run, tokens, wanted};
use comove_sim::{SimError, Snapshot};
use hdf5::types::{FixedAscii, VarLenUnicode};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// A run in either coordinates and precision, with a refined level and all that a restart needs.
const RECIPE: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5 });
const COMOVING = evolve(IC, #{ z_end: 48, max_level: 1, refine: density_above(1.45) });
const GAS = ic_function(#{ box: 1, root: 16, gamma: 1.4 }, |x, y, z| #{ density: if x + y + z < 0.7 { 4 } else { 1 }, pressure: 1 });
const PLAIN = evolve(GAS, #{ t_end: 0.01, max_level: 1, refine: density_above(2), precision: "double", gravity: false });
campaign("base", [COMOVING, PLAIN])
"#;

/// Files of a batch, which one process reads.
const BATCH: u64 = 50;
/// For a process that reads a file of some hundred kB, or a batch of them.
const LIMIT: Duration = Duration::from_secs(60);
/// The trial of such a file ends before.
const TRIAL: Duration = Duration::from_secs(120);
/// Where the reading process is told which files it is to read.
const FILES: &str = "COMOVE_FUZZ_FILES";

/// Checkpoints and outputs of [`RECIPE`].
fn valid(folder: &Path) -> Vec<PathBuf> {
    fs::write(folder.join("base.rhai"), RECIPE).unwrap();
    let mut command = limited(&cargo_bin("comove"));
    let (ended, said) = run(command.current_dir(folder).args(["run", "base.rhai"]), Duration::from_secs(120));
    assert_eq!(ended, Ended::With(0), "{said}");
    let stages = fs::read_dir(folder.join("base")).unwrap().map(|entry| entry.unwrap().path());
    let files = stages.filter(|path| path.is_dir()).flat_map(|stage| fs::read_dir(stage).unwrap());
    let files = files.map(|entry| entry.unwrap().path());
    let mut snapshots: Vec<PathBuf> = files.filter(|path| Snapshot::verify(path).is_ok()).collect();
    snapshots.sort();
    assert_eq!(snapshots.len(), 4, "{snapshots:?}");
    snapshots
}

/// Bytes changed anywhere, without regard to what they mean.
fn damage(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    // most of it where the structure lies: superblock, trees, symbols, names, and the headers of datasets
    let marks: Vec<usize> = (0..bytes.len() - 6)
        .filter(|&n| [&b"TREE"[..], b"SNOD", b"HEAP", b"blake3"].iter().any(|mark| bytes[n..].starts_with(mark)))
        .collect();
    let place = |dice: &mut Dice| match dice.below(4) {
        0 => dice.below(bytes.len()),
        1 => dice.below(2048),
        _ => (*dice.pick::<usize>(&marks) + dice.below(512)).saturating_sub(256).min(bytes.len() - 1),
    };
    let (at, to) = (place(dice), place(dice));
    let flipped: Vec<usize> = (0..1 + dice.below(8)).map(|_| place(dice)).collect();
    let length = (1 << dice.below(13)).min(bytes.len() - at);
    match dice.below(8) {
        0..=2 => flipped.into_iter().for_each(|at| bytes[at] ^= 1 << dice.below(8)),
        3 => bytes[at] = *dice.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        4 => bytes.truncate(at),
        5 => bytes[at..at + length].fill(*dice.pick(&[0, 0xff])),
        6 => {
            let from = dice.below(other.len() - length.min(other.len()) + 1);
            let length = length.min(other.len());
            bytes.splice(at..at + length.min(bytes.len() - at), other[from..from + length].iter().copied());
        }
        _ => {
            let piece = bytes[at..at + length].to_vec();
            bytes.splice(to..to, piece);
        }
    }
}

/// Gives a dataset the digest of these bytes.
fn label(dataset: &hdf5::Dataset, bytes: &[u8]) -> hdf5::Result<()> {
    let digest = FixedAscii::<64>::from_ascii(&blake3::hash(bytes).to_hex().to_string()).unwrap();
    match dataset.attr("blake3") {
        Ok(attribute) => attribute.write_scalar(&digest),
        Err(_) => dataset.new_attr::<FixedAscii<64>>().create("blake3")?.write_scalar(&digest),
    }
}

/// Changes the numbers of a dataset.
fn renumber<T: hdf5::H5Type + Copy>(
    dataset: &hdf5::Dataset,
    odd: &[T],
    bytes: fn(&T) -> Vec<u8>,
    dice: &mut Dice,
) -> hdf5::Result<()> {
    if dataset.size() > 1 << 20 {
        return Ok(()); // it was made so large before
    }
    let mut values = dataset.read_raw::<T>()?;
    for _ in 0..1 + dice.below(3) {
        let (at, from) = (dice.below(values.len()), dice.below(values.len()));
        match dice.below(8) {
            0 => values[at] = values[from],
            1 => values.swap(at, from),
            2 => values.fill(*dice.pick(odd)),
            3 => values.rotate_left(from),
            _ => values[at] = *dice.pick(odd),
        }
    }
    dataset.write_raw(&values)?;
    label(dataset, &values.iter().flat_map(bytes).collect::<Vec<_>>())
}

/// Puts another array in the place of a dataset.
fn replace<T: hdf5::H5Type + Clone>(file: &hdf5::File, name: &str, shape: &[usize], value: T) -> hdf5::Result<()> {
    file.unlink(name)?;
    let dataset = file.new_dataset::<T>().shape(shape).create(name)?;
    let count: usize = shape.iter().product();
    if count < 1 << 20 {
        dataset.write_raw(&vec![value; count])?;
    }
    label(&dataset, &vec![0; count.min(1 << 20) * size_of::<T>()])
}

/// Changes what a file says, by way of HDF5, with digests that are right again.
fn rewrite(path: &Path, names: &[String], other: &[Vec<String>], dice: &mut Dice) -> hdf5::Result<()> {
    let file = hdf5::File::open_rw(path)?;
    let texts: Vec<&String> = names.iter().filter(|name| name.starts_with("Comove/")).collect();
    let name = dice.pick(names).clone();
    let outcome = match dice.below(12) {
        0..=4 => {
            let name = *dice.pick(&texts);
            let dataset = file.dataset(name)?;
            if dataset.size() > 1 << 20 {
                return file.close(); // it was made so large before
            }
            let text = String::from_utf8_lossy(&dataset.read_raw::<u8>()?).into_owned();
            let changed = match dice.below(3) {
                0 => mutated(&tokens(&text), dice.pick::<Vec<String>>(other), dice),
                _ => with_other_values(&tokens(&text), dice),
            };
            let mut bytes = changed.into_bytes();
            if dice.below(20) == 0 {
                bytes.push(0xff);
            }
            file.unlink(name)?;
            let dataset = file.new_dataset_builder().with_data(&bytes).create(name.as_str())?;
            label(&dataset, &bytes)
        }
        5 | 6 if name.starts_with("Tree/") || dice.below(2) == 0 => {
            let name = *dice.pick(&["Tree/Corner", "Tree/Son"]);
            let odd = [0, -1, 1, 8, i32::MAX, i32::MIN, 1 << 15, 1 << 18];
            renumber(&file.dataset(name)?, &odd, |x| x.to_le_bytes().into(), dice)
        }
        5..=7 => {
            let fields: Vec<&String> = names.iter().filter(|name| name.starts_with("GridData/")).collect();
            let field: &str = dice.pick::<&String>(&fields);
            let dataset = file.dataset(field)?;
            let odd = [f64::NAN, f64::INFINITY, -f64::INFINITY, 0.0, -1.0, 1e38, -1e38, 1e-40, 5.0];
            if dataset.dtype()?.size() == 4 {
                renumber(&dataset, &odd.map(|x| x as f32), |x| x.to_le_bytes().into(), dice)
            } else {
                renumber(&dataset, &odd, |x| x.to_le_bytes().into(), dice)
            }
        }
        8 => {
            let shape = dataset_shape(&file, &name, dice)?;
            match dice.below(5) {
                0 => replace(&file, &name, &shape, 1u8),
                1 => replace(&file, &name, &shape, 1i32),
                2 => replace(&file, &name, &shape, 1.0f32),
                3 => replace(&file, &name, &shape, 1.0f64),
                _ => replace(&file, &name, &shape, "x".parse::<VarLenUnicode>().unwrap()),
            }
        }
        9 => {
            let dataset = file.dataset(&name)?;
            dataset.delete_attr("blake3")?;
            match dice.below(4) {
                0 => Ok(()),
                1 => dataset.new_attr::<u32>().create("blake3")?.write_scalar(&7),
                2 => dataset.new_attr::<FixedAscii<64>>().shape(3).create("blake3").map(drop),
                _ => {
                    let text: VarLenUnicode = "digest".parse().unwrap();
                    dataset.new_attr::<VarLenUnicode>().create("blake3")?.write_scalar(&text)
                }
            }
        }
        10 => {
            let group = file.group("Comove")?;
            group.delete_attr("format_version")?;
            match dice.below(5) {
                0 => Ok(()),
                1 => group.new_attr::<u32>().create("format_version")?.write_scalar(dice.pick(&[0, 1, 3, u32::MAX])),
                2 => group.new_attr::<i64>().create("format_version")?.write_scalar(dice.pick(&[-1, 2, i64::MAX])),
                3 => group.new_attr::<u32>().shape(1 << 12).create("format_version").map(drop),
                _ => {
                    let text: VarLenUnicode = "2".parse().unwrap();
                    group.new_attr::<VarLenUnicode>().create("format_version")?.write_scalar(&text)
                }
            }
        }
        _ => {
            file.unlink(&name)?;
            let to = dice.pick(names).clone();
            match dice.below(5) {
                0 => Ok(()),
                1 => file.create_group(&name).map(drop),
                2 => file.link_soft(&format!("/{name}"), &name), // itself
                3 if to != name => file.link_hard(&to, &name),
                _ => file.link_soft(&format!("/{to}"), &name),
            }
        }
    };
    outcome.and(file.close())
}

/// A JSON text with other values in the places of one or two.
fn with_other_values(text: &[String], dice: &mut Dice) -> String {
    const VALUES: &str = "0 -1 1 0.5 -0.0 1e308 -1e308 1e-320 1e16 18446744073709551615 -9223372036854775808 4294967296 \
                          null true [] \"periodic\"";
    let values: Vec<&str> = VALUES.split(' ').collect();
    let mut tokens = text.to_vec();
    let is_value = |n: usize| {
        let is_key = text.get(n + 1).is_some_and(|next| next == ":");
        !is_key && text[n].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '"')
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|&n| is_value(n)).collect();
    for _ in 0..1 + dice.below(2) {
        if !places.is_empty() {
            tokens[*dice.pick::<usize>(&places)] = (*dice.pick::<&str>(&values)).to_owned();
        }
    }
    tokens.concat()
}

/// A shape like that of a dataset, or one that no file holds.
fn dataset_shape(file: &hdf5::File, name: &str, dice: &mut Dice) -> hdf5::Result<Vec<usize>> {
    let mut shape = file.dataset(name)?.shape();
    match dice.below(6) {
        0 => shape.push(1),
        1 => _ = shape.pop(),
        2 => shape = vec![1 << 40],
        3 => shape.iter_mut().for_each(|n| *n = 0),
        4 => shape.iter_mut().for_each(|n| *n += 1),
        _ => {}
    }
    Ok(shape)
}

/// What the reader says of a file, without the numbers.
fn verdict(path: &Path) -> String {
    let outcome = Snapshot::read(path).map(drop);
    let parts = [
        Snapshot::read_header(path).map(drop),
        Snapshot::read_tree(path).map(drop),
        Snapshot::digests(path).map(drop),
        Snapshot::content_digest(path).map(drop),
        Snapshot::verify(path),
    ];
    if outcome.is_ok() {
        parts.into_iter().for_each(|part| part.expect("what can be read can be read in part"));
    }
    match outcome {
        Ok(()) => "read".into(),
        Err(SimError::Damaged { dataset, .. }) => format!("Damaged: {dataset}"),
        Err(SimError::NotASnapshot { reason, .. }) => {
            let plain = reason.replace(|c: char| c.is_ascii_digit(), "");
            let plain = if plain.contains(" at line ") {
                // serde's many words for what is no JSON, or lacks something
                let (place, words) = plain.split_once(": ").unwrap();
                format!("{place}: {}", words.split([' ', '`']).next().unwrap())
            } else {
                plain
            };
            let words: Vec<&str> = plain.split_whitespace().take(5).collect();
            format!("NotASnapshot: {}", words.join(" "))
        }
        Err(other) => panic!("{}: not for a reader to say: {other}", path.display()),
    }
}

/// Has a process read files, one line each.
fn read_by_child(folder: &Path, files: &[u64]) -> (Ended, Vec<String>) {
    let names: Vec<String> = files.iter().map(|n| folder.join(format!("{n}.h5")).display().to_string()).collect();
    let mut command = limited(&std::env::current_exe().unwrap());
    command
        .args(["--exact", "fuzz_snapshots::damaged_snapshots_are_refused_or_read", "--nocapture"])
        .env(FILES, names.join(":"));
    let (ended, said) = run(&mut command, LIMIT);
    if ended == Ended::With(101) {
        eprintln!("{said}");
    }
    let lines = said.lines().filter_map(|line| line.strip_prefix("verdict "));
    (ended, lines.map(str::to_owned).collect())
}

/// What became of the files.
#[derive(Default)]
struct Outcomes {
    damaged: BTreeMap<String, u64>,
    rewritten: BTreeMap<String, u64>,
    commands: BTreeMap<String, u64>,
    bugs: Vec<String>,
}

#[test]
fn damaged_snapshots_are_refused_or_read() {
    if let Ok(files) = std::env::var(FILES) {
        files.split(':').for_each(|file| println!("verdict {}", verdict(Path::new(file))));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let bases = valid(place.path());
    let contents: Vec<Vec<u8>> = bases.iter().map(|path| fs::read(path).unwrap()).collect();
    let names: Vec<String> = Snapshot::digests(&bases[0]).unwrap().into_iter().map(|(name, _)| name).collect();
    let headers: Vec<Vec<String>> = bases
        .iter()
        .map(|path| tokens(&serde_json::to_string(&Snapshot::read_header(path).unwrap()).unwrap()))
        .collect();
    let outcomes = Mutex::new(Outcomes::default());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz_snapshots");
    let count = wanted();
    in_parallel(count.div_ceil(BATCH), |batch| {
        let folder = tempfile::tempdir_in(place.path()).unwrap();
        let numbers: Vec<u64> = (batch * BATCH..((batch + 1) * BATCH).min(count)).collect();
        for &n in &numbers {
            let (mut dice, path) = (Dice(n), folder.path().join(format!("{n}.h5")));
            let mut bytes = dice.pick(&contents).clone();
            if n % 2 == 0 {
                let other: &Vec<u8> = dice.pick(&contents);
                damage(&mut bytes, other, &mut dice);
                fs::write(&path, bytes).unwrap();
            } else {
                fs::write(&path, bytes).unwrap();
                for _ in 0..1 + dice.below(2) {
                    // the second change may find what the first has left unfit for it
                    let _ = rewrite(&path, &names, &headers, &mut dice);
                }
            }
        }
        let (ended, mut lines) = read_by_child(folder.path(), &numbers);
        if ended != Ended::With(0) || lines.len() != numbers.len() {
            lines = numbers.iter().map(|&n| alone(folder.path(), n, &kept, &outcomes)).collect();
        }
        for (&n, line) in numbers.iter().zip(&lines) {
            if line == "read" {
                look_at(folder.path(), n, &kept, &outcomes);
            }
            let mut outcomes = outcomes.lock().unwrap();
            let half = if n % 2 == 0 { &mut outcomes.damaged } else { &mut outcomes.rewritten };
            *half.entry(line.clone()).or_default() += 1;
        }
    });
    let Outcomes { damaged, rewritten, commands, bugs } = outcomes.into_inner().unwrap();
    print("bytes changed", &damaged);
    print("changed with digests that are right", &rewritten);
    print("what the program said of some of them", &commands);
    assert!(bugs.is_empty(), "{} bugs; the files are in {}:\n{}", bugs.len(), kept.display(), bugs.join("\n"));
    // a changed byte is found by its digest; with the right one the reader itself has to look
    let by_digest = |counts: &BTreeMap<String, u64>| {
        let all: u64 = counts.values().sum();
        let found: u64 = counts.iter().filter(|(what, _)| what.starts_with("Damaged")).map(|(_, count)| count).sum();
        found as f64 / all as f64
    };
    assert!(
        by_digest(&damaged) > 0.4 && by_digest(&rewritten) < 0.2,
        "{} {}",
        by_digest(&damaged),
        by_digest(&rewritten)
    );
    for name in names.iter().filter(|_| count >= 5000) {
        assert!(damaged.contains_key(&format!("Damaged: {name}")), "no damage of {name} was found");
        assert!(rewritten.keys().any(|what| what.starts_with("Not") && what.contains(name)), "no change of {name}");
    }
}

/// What a process says of one file, of a batch that did not end well. HDF5 may crash or hang on it, but then the program says
/// so; the reader itself may not.
fn alone(folder: &Path, n: u64, kept: &Path, outcomes: &Mutex<Outcomes>) -> String {
    let (ended, mut lines) = read_by_child(folder, &[n]);
    let bug = |what: String| {
        keep(folder, n, kept);
        outcomes.lock().unwrap().bugs.push(format!("{n}: {what}"));
    };
    match ended {
        Ended::With(0) => return lines.pop().expect("one line a file"),
        Ended::With(_) => bug(format!("the reader {ended:?}")),
        Ended::BySignal(_) | Ended::NotInTime => {
            keep(folder, n, kept);
            let mut command = limited(&cargo_bin("comove"));
            let (ended, said) = run(command.arg("inspect").arg(folder.join(format!("{n}.h5"))), TRIAL);
            *outcomes.lock().unwrap().commands.entry(format!("inspect of a crash: {ended:?}")).or_default() += 1;
            if ended != Ended::With(4) {
                bug(format!("inspect {ended:?} {said}"));
            }
        }
    }
    format!("{ended:?}")
}

/// Lets the program show a file that can be read, and now and then work with it.
fn look_at(folder: &Path, n: u64, kept: &Path, outcomes: &Mutex<Outcomes>) {
    let file = folder.join(format!("{n}.h5"));
    let look = |what: &str, command: &mut Command, limit: Duration, fine: &[i32]| {
        let (ended, said) = run(command, limit);
        let fits = matches!(ended, Ended::With(code) if fine.contains(&code));
        let mut outcomes = outcomes.lock().unwrap();
        *outcomes.commands.entry(format!("{what}: {ended:?}")).or_default() += 1;
        if !fits {
            keep(folder, n, kept);
            outcomes.bugs.push(format!("{n}: {what} {ended:?} {said}"));
        }
        said
    };
    look("inspect", limited(&cargo_bin("comove")).arg("inspect").arg(&file), TRIAL, &[0]);
    if n % 8 != 1 {
        return;
    }
    let header = Snapshot::read_header(&file).unwrap();
    let end = match header.cosmology {
        Some(_) => format!("z_end: {}", header.redshift() - 0.01),
        None => format!("t_end: {}, gravity: false", header.time + 0.001),
    };
    let recipe = format!(
        "const S = from_snapshot(\"{n}.h5\");\nconst RUN = evolve(S, #{{ {end}, branch: true, gamma: {:?}, max_level: 2, \
         refine: density_above(2) }});\ncampaign(\"f\", [slice(S), projection(S), density_pdf(S), power_spectrum(S), \
         halos(S), refinement_ratio(S), measure(\"m\", S, |s| s.densest()), RUN])",
        header.gamma
    );
    let name = format!("{n}.rhai");
    fs::write(folder.join(&name), recipe).unwrap();
    let campaign = |walltime, limit| {
        let mut command = limited(&cargo_bin("comove"));
        let command = command.current_dir(folder).args(["run", &name, "--keep-going", "--walltime", walltime]);
        look("campaign", command, limit, &[0, 3, 4, 7, 8, 9, 75])
    };
    if campaign("10s", LIMIT).contains(CUT_SHORT) && campaign("100s", 3 * LIMIT).contains(CUT_SHORT) {
        keep(folder, n, kept);
        outcomes.lock().unwrap().bugs.push(format!("{n}: a stage hangs"));
    }
}

/// Keeps a file that shows a bug.
fn keep(folder: &Path, n: u64, kept: &Path) {
    fs::create_dir_all(kept).unwrap();
    fs::copy(folder.join(format!("{n}.h5")), kept.join(format!("{n}.h5"))).unwrap();
}
