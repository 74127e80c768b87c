//! Every dependency may be used under a licence that the project accepts.

use spdx::Expression;

/// Permissive licences, and those of data (fonts, Unicode tables) that come with crates.
const ACCEPTED: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "CC0-1.0",
    "Unicode-3.0",
    "BSL-1.0",
    "0BSD",
];

/// Packages whose licence is accepted by name, and why.
const BY_NAME: [(&str, &str); 2] = [
    ("hdf5-metno-src", "carries the HDF5 library, whose licence file is BSD-3-Clause in all but name"),
    ("smartstring", "MPL-2.0, which asks for changes to its own files only; rhai depends on it"),
];

#[test]
fn dependencies_have_accepted_licences() {
    let metadata = cargo_metadata::MetadataCommand::new().exec().expect("cargo metadata");
    let accepted: Vec<spdx::Licensee> =
        ACCEPTED.iter().map(|l| spdx::Licensee::parse(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect();
    let mut refused = Vec::new();
    let named = |name: &str| BY_NAME.iter().any(|(package, _)| *package == name);
    for package in metadata.packages.iter().filter(|package| !named(&package.name)) {
        let Some(licence) = &package.license else {
            refused.push(format!("{}: no licence given", package.name));
            continue;
        };
        let licence = licence.replace('/', " OR ");
        let expression = Expression::parse(&licence).unwrap_or_else(|e| panic!("{}: {e}", package.name));
        if !expression.evaluate(|required| accepted.iter().any(|l| l.satisfies(required))) {
            refused.push(format!("{}: {licence}", package.name));
        }
    }
    assert!(metadata.packages.len() > 50, "the test must see the dependencies");
    assert!(refused.is_empty(), "licences to look at:\n{}", refused.join("\n"));
}
