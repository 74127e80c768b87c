//! Rates of a device, a GPU above all: `cargo bench -p comove-sim --features cuda --bench rates`, or the program that this
//! builds carried to a machine with a GPU.
//!
//!     rates [--device NAME] [--threads N] [--scheme NAME] [--json FILE] [--smoke] [PART …]
//!
//! | part | what is measured |
//! |---|---|
//! | `launches` | a step's hydro and a level's Poisson solve by the number of groups, in both precisions |
//! | `launches=N` | the same for N groups |
//! | `meshes` | a step's hydro by how much of its ghost cells is interpolated |
//! | `kernels` | every kernel for itself, on many groups; with `COMOVE_CUDA_PROFILE` set, its own time too |
//! | `root=N`, `isolated=N` | a root of N groups a side: its transforms planned, and a solve |
//! | `steps=N:FILE` | N root steps of `recipes/lcdm_100mpc.rhai` from one of its outputs |
//! | `mesh=FILE` | a step's hydro on the octree of a snapshot |
//!
//! Without parts, the first three. Times are medians of repetitions, launches and what the host waits for included;
//! `--smoke` takes the smallest cases once. `--json` adds what is found to a file, a line each.

mod kernels;
mod launches;
mod meshes;
mod steps;

use comove_sim::kernels::layout::GROUP_CELLS;
use comove_sim::kernels::{Device, Scheme};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

/// The device, and where the results go.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) smoke: bool,
    /// Of the sweeps.
    pub(crate) scheme: Scheme,
    json: Option<File>,
}

/// What was done, and to what.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Work<'a> {
    pub(crate) part: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) mesh: &'a str,
    pub(crate) precision: &'a str,
    /// What there are so many of: groups, mostly.
    pub(crate) unit: &'a str,
    pub(crate) items: usize,
}

/// A measured rate.
#[derive(Serialize)]
struct Rate<'a> {
    #[serde(flatten)]
    work: Work<'a>,
    /// Of the whole operation, as the host sees it.
    seconds: f64,
    /// Of its kernels alone, by name; empty unless they are timed.
    kernels: BTreeMap<String, f64>,
}

impl Bench {
    /// Measures one operation and tells.
    pub(crate) fn measure<R>(&mut self, work: Work, mut operation: impl FnMut() -> R) {
        let (untimed, timed) = if self.smoke { (0, 1) } else { (2, 9) };
        (0..untimed).for_each(|_| drop(operation()));
        let before = self.device.kernel_times();
        let mut times: Vec<f64> = (0..timed)
            .map(|_| {
                self.device.wait();
                let started = Instant::now();
                drop(operation());
                self.device.wait();
                started.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let seconds = times[times.len() / 2];
        let mut kernels = BTreeMap::new();
        for (kernel, time) in self.device.kernel_times() {
            let milliseconds = time.milliseconds - before.get(&kernel).map_or(0.0, |then| then.milliseconds);
            if milliseconds > 0.0 {
                kernels.insert(kernel, 1e-3 * milliseconds / f64::from(timed));
            }
        }
        let Work { operation, mesh, precision, unit, items, .. } = work;
        let what = [operation, mesh, precision].join(", ");
        let each = 1e9 * seconds / items as f64;
        let rate = match unit {
            "group" => format!("{:.3e} cells/s", (items * GROUP_CELLS) as f64 / seconds),
            _ => String::new(),
        };
        println!("{what:<64} {items:>8} {:>10.4} ms {each:>10.1} ns a {unit:<5} {rate}", 1e3 * seconds);
        self.write(&Rate { work, seconds, kernels });
    }

    /// Adds a line to the JSON file.
    pub(crate) fn write(&mut self, record: &impl Serialize) {
        if let Some(file) = &mut self.json {
            let line = serde_json::to_string(record).expect("numbers and names");
            writeln!(file, "{line}").expect("the file takes a line");
        }
    }
}

fn main() {
    let (mut name, mut threads, mut json, mut smoke, mut parts) = ("cuda:0".to_owned(), 0, None, false, Vec::new());
    let mut scheme = Scheme::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} wants a value"));
        match argument.as_str() {
            "--device" => name = value(),
            "--threads" => threads = value().parse().expect("a number of threads"),
            "--scheme" => scheme = serde_json::from_value(value().into()).expect("the name of a scheme"),
            "--json" => json = Some(value()),
            "--smoke" => smoke = true,
            // cargo says so
            "--bench" => {}
            _ => parts.push(argument),
        }
    }
    let device = match Device::from_name(&name, threads) {
        Ok(device) => device,
        Err(reason) => return println!("{reason}"),
    };
    let open =
        |name: String| File::options().create(true).append(true).open(&name).unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("{}", device.name());
    let mut bench = Bench { device, smoke, scheme, json: json.map(open) };
    if parts.is_empty() {
        parts = ["launches", "meshes", "kernels"].map(str::to_owned).to_vec();
    }
    for part in &parts {
        match (part.as_str(), part.split_once('=')) {
            ("launches", _) => launches::all(&mut bench),
            (_, Some(("launches", groups))) => launches::of(&mut bench, groups.parse().expect("a number of groups")),
            ("meshes", _) => meshes::all(&mut bench),
            ("kernels", _) => kernels::all(&mut bench),
            (_, Some((kind @ ("root" | "isolated"), side))) => {
                let side = side.parse().expect("a number of groups");
                kernels::root_from_plans(&mut bench, side, kind == "isolated");
            }
            (_, Some(("mesh", file))) => meshes::of_snapshot(&mut bench, file),
            (_, Some(("steps", from))) => steps::all(&mut bench, from),
            _ => panic!(
                "no part {part}: launches, meshes, kernels, launches=N, root=N, isolated=N, mesh=FILE or steps=N:FILE"
            ),
        }
    }
}
