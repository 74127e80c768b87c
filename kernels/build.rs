//! With the feature `cuda`: compiles every `src/**/*.cu` to a fat binary and makes the library that stands for the CUDA
//! driver's at link time (`driver/forward.c`).
//!
//! | variable | meaning |
//! |---|---|
//! | `NVCC` | the compiler; else `.tools/cuda` of the project (`scripts/setup --cuda`), else the one on the PATH or in /usr/local/cuda |
//! | `COMOVE_CUDA_ARCHITECTURES` | machine code to make, the last as PTX too; default `80 90`. `none` makes empty files, for a look at the Rust side alone |

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    for variable in ["NVCC", "COMOVE_CUDA_ARCHITECTURES"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    forward_driver(&out);
    compile_kernels(&out);
}

/// A static library of the driver's entry points, found before any shared one because it is the only one in its folder.
fn forward_driver(out: &Path) {
    println!("cargo:rerun-if-changed=driver/forward.c");
    let folder = out.join("driver");
    fs::create_dir_all(&folder).expect("the build folder can be written");
    cc::Build::new().file("driver/forward.c").cargo_metadata(false).out_dir(&folder).compile("cuda");
    println!("cargo:rustc-link-search=native={}", folder.display());
}

/// One fat binary for each `.cu`, and `modules.rs`, which embeds them.
fn compile_kernels(out: &Path) {
    let architectures = env::var("COMOVE_CUDA_ARCHITECTURES").unwrap_or_else(|_| "80 90".into());
    let nvcc = (architectures != "none").then(find_nvcc);
    let mut sources = Vec::new();
    find(Path::new("src"), &mut sources);
    sources.sort();
    let mut modules = Vec::new();
    let mut running: Vec<(String, std::process::Child)> = Vec::new();
    for source in sources.iter().filter(|path| path.extension().is_some_and(|e| e == "cu")) {
        // src/hydro_sweep/sweep.cu becomes hydro_sweep_sweep
        let name = source.with_extension("").to_string_lossy().replace("src/", "").replace('/', "_");
        let binary = out.join(format!("{name}.fatbin"));
        modules.push(format!("(\"{name}\", include_bytes!(r\"{}\")),", binary.display()));
        let Some(nvcc) = &nvcc else {
            fs::write(&binary, []).expect("the build folder can be written");
            continue;
        };
        let mut command = Command::new(nvcc);
        command.args(["-fatbin", "-std=c++17", "-O3", "-fmad=false", "-I", "src", "-o"]).arg(&binary).arg(source);
        command.args(["-Xptxas", "-v", "--expt-relaxed-constexpr"]);
        for architecture in architectures.split_whitespace() {
            command.arg(format!("-gencode=arch=compute_{architecture},code=sm_{architecture}"));
        }
        if let Some(last) = architectures.split_whitespace().last() {
            command.arg(format!("-gencode=arch=compute_{last},code=compute_{last}"));
        }
        let log = fs::File::create(out.join(format!("{name}.log"))).expect("the build folder can be written");
        command.stderr(log);
        let child = command.spawn().unwrap_or_else(|e| stop(&format!("{} cannot be started: {e}", nvcc.display())));
        running.push((name, child));
        let jobs: usize = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
        if running.len() >= jobs {
            finish(out, running.remove(0));
        }
    }
    for one in running {
        finish(out, one);
    }
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    let list = format!(
        "/// Every module's name and fat binary.\nstatic MODULES: &[(&str, &[u8])] = &[{}];\n",
        modules.join("\n")
    );
    fs::write(out.join("modules.rs"), list).expect("the build folder can be written");
}

fn finish(out: &Path, (name, mut child): (String, std::process::Child)) {
    if !child.wait().is_ok_and(|status| status.success()) {
        let log = fs::read_to_string(out.join(format!("{name}.log"))).unwrap_or_default();
        stop(&format!("nvcc failed on {name}:\n{log}"));
    }
}

/// Every `.cu` and `.cuh` below a folder.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|e| e == "cu" || e == "cuh") {
            found.push(path);
        }
    }
}

fn find_nvcc() -> PathBuf {
    if let Some(nvcc) = env::var_os("NVCC") {
        return nvcc.into();
    }
    let own = Path::new("../.tools/cuda/nvidia/cu13/bin/nvcc");
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("nvcc"));
    let usual = Path::new("/usr/local/cuda/bin/nvcc");
    std::iter::once(own.into())
        .chain(on_path)
        .chain(std::iter::once(usual.into()))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            stop("the feature cuda needs nvcc: run scripts/setup --cuda, or name one in the variable NVCC")
        })
}

fn stop(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
