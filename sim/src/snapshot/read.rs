//! Reading: every dataset verified, the octree rebuilt from the patches' corners.

use super::contents::{self, Document};
use super::digest::{Stored, digest};
use super::gamer;
use super::info::{InputPara, KeyInfo, Makefile};
use super::source::Source;
use super::{Snapshot, SnapshotHeader};
use crate::error::SimError;
use crate::fields::Field;
use crate::host_state::HostState;
use crate::octree::Octree;
use crate::parameters::Precision;
use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH};
use std::path::Path;

/// Reads a snapshot; see [`Snapshot::read_reporting`].
pub(super) fn read(path: &Path, report: &dyn Fn(f64)) -> Result<Snapshot, SimError> {
    let source = Source::open(path, path)?;
    let (document, header) = header(&source)?;
    let tree = tree(&source, &document)?;
    info(&source)?;
    let potential = vec![0.0; if document.potential { tree.group_count() * GROUP_CELLS } else { 0 }];
    let mut state = HostState { potential, ..HostState::zeros(tree) };
    match header.precision {
        Precision::Single => fields::<f32>(&source, &document, report, |field, rows| take(&mut state, field, rows))?,
        Precision::Double => fields::<f64>(&source, &document, report, |field, rows| take(&mut state, field, rows))?,
    }
    Ok(Snapshot { header, state })
}

/// Reads the header; see [`Snapshot::read_header`].
pub(super) fn read_header(path: &Path) -> Result<SnapshotHeader, SimError> {
    Ok(header(&Source::open(path, path)?)?.1)
}

/// Reads the header and the octree; see [`Snapshot::read_tree`].
pub(super) fn read_tree(path: &Path) -> Result<(SnapshotHeader, Octree), SimError> {
    let source = Source::open(path, path)?;
    let (document, header) = header(&source)?;
    Ok((header, tree(&source, &document)?))
}

/// The stored digests; see [`Snapshot::digests`].
pub(super) fn digests(path: &Path) -> Result<Vec<(String, String)>, SimError> {
    let source = Source::open(path, path)?;
    let names = document(&source)?.datasets();
    names.into_iter().map(|name| source.digest(&name).map(|digest| (name, digest))).collect()
}

/// The digest of what the file shows; see [`Snapshot::content_digest`].
pub(super) fn content_digest(path: &Path) -> Result<String, SimError> {
    let source = Source::open(path, path)?;
    let document = document(&source)?;
    let header = serde_json::to_vec(&(&document.tree, &document.snapshot)).expect("numbers and names");
    let mut parts = vec![("header".to_owned(), digest(&header))];
    let fields = contents::stored_fields(document.potential).map(contents::dataset);
    for name in [contents::RESTART, contents::CORNER].into_iter().map(String::from).chain(fields) {
        let digest = source.digest(&name)?;
        parts.push((name, digest));
    }
    let text: String = parts.iter().map(|(name, digest)| format!("{name} {digest}\n")).collect();
    Ok(digest(text.as_bytes()))
}

/// Reads everything of the file at `path`, which errors call `name`, and keeps nothing.
pub(super) fn verify(path: &Path, name: &Path) -> Result<(), SimError> {
    let source = Source::open(path, name)?;
    let (document, header) = header(&source)?;
    tree(&source, &document)?;
    info(&source)?;
    match header.precision {
        Precision::Single => fields::<f32>(&source, &document, &|_| (), |_, _| ()),
        Precision::Double => fields::<f64>(&source, &document, &|_| (), |_, _| ()),
    }
}

/// The document of `/Comove/header`, of a format and with values that this program knows.
fn document(source: &Source) -> Result<Document, SimError> {
    let format = source.format()?;
    if format == 0 || format > contents::FORMAT {
        let known = contents::FORMAT;
        return Err(source.not(format!("it has format {format}, this program reads up to {known}; use a newer one")));
    }
    let document: Document = source.json(contents::HEADER)?;
    let checked = document.tree.check().and_then(|()| document.snapshot.check());
    checked.map_err(|error| source.not(format!("{}: {error}", contents::HEADER)))?;
    Ok(document)
}

/// The document and the header, complete.
fn header(source: &Source) -> Result<(Document, SnapshotHeader), SimError> {
    let document = document(source)?;
    let header = SnapshotHeader {
        recipe: source.text(contents::RECIPE)?,
        restart: source.json(contents::RESTART)?,
        provenance: source.json(contents::PROVENANCE)?,
        ..document.snapshot.clone()
    };
    Ok((document, header))
}

/// The octree of `/Tree`.
fn tree(source: &Source, document: &Document) -> Result<Octree, SimError> {
    let patches = document.tree.group_count() * OCTANTS;
    let corners = source.array(contents::CORNER, &[patches, 3])?;
    let tree = gamer::tree(&document.tree, &corners)
        .map_err(|reason| source.not(format!("{}: {reason}", contents::CORNER)))?;
    if source.array::<i32>(contents::SON, &[patches])? != gamer::sons(&tree) {
        return Err(source.not(format!("{} and {} disagree", contents::SON, contents::CORNER)));
    }
    Ok(tree)
}

/// Verifies the digests of `/Info`, which holds nothing that the header does not.
fn info(source: &Source) -> Result<(), SimError> {
    source.compound::<KeyInfo>(contents::KEY_INFO)?;
    source.compound::<Makefile>(contents::MAKEFILE)?;
    source.compound::<InputPara>(contents::INPUT_PARA)?;
    Ok(())
}

/// Hands on each field in file order, `[patches, 8, 8, 8]`, verified. The derived pressure is verified and not handed
/// on. `report` is told the fraction that is read.
fn fields<T: Stored + Default>(
    source: &Source,
    document: &Document,
    report: &dyn Fn(f64),
    mut take: impl FnMut(&Field, &[T]),
) -> Result<(), SimError> {
    let shape = [document.tree.group_count() * OCTANTS, PATCH, PATCH, PATCH];
    // one field after the other takes this place: fresh memory costs as much as the copy
    let mut rows = Vec::new();
    let all = contents::stored_fields(document.potential).count() + 1;
    for (n, field) in contents::stored_fields(document.potential).enumerate() {
        report(n as f64 / all as f64);
        source.array_into(&contents::dataset(field), &shape, &mut rows)?;
        take(field, &rows);
    }
    source.array_into(contents::PRESSURE, &shape, &mut rows)
}

/// Puts a field into the state.
fn take<T: Stored + Into<f64>>(state: &mut HostState, field: &Field, rows: &[T]) {
    match field.index {
        Some(index) => gamer::from_patches(rows, &mut state.fluid, GROUP_VALUES, index * GROUP_CELLS),
        None => gamer::from_patches(rows, &mut state.potential, GROUP_CELLS, 0),
    }
}
