//! Reading: every dataset verified, block by block; the octree rebuilt from the patches' corners.

use super::contents::{self, Document};
use super::digest::{Stored, digest};
use super::gamer::{self, TreeReader};
use super::info::{InputPara, KeyInfo, Makefile};
use super::source::{Rows, Source};
use super::{Snapshot, SnapshotHeader, particles};
use crate::dark_matter::HostParticles;
use crate::error::SimError;
use crate::gas::fields::Field;
use crate::io::blocks::{Blocks, GROUPS};
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::owners::Owners;
use crate::parameters::Precision;
use comove_kernels::layout::{GROUP_CELLS, OCTANTS, PATCH};
use std::ops::Range;
use std::path::Path;

/// A snapshot in a file that is open: header and octree are read, the fields are still to be read and to be verified.
pub struct StoredSnapshot {
    /// What it says of itself.
    pub header: SnapshotHeader,
    pub(super) tree: Octree,
    source: Source,
    document: Document,
}

impl StoredSnapshot {
    /// Opens a file, and reads and verifies everything but its fields.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn open(path: &Path) -> Result<Self, SimError> {
        Self::open_as(path, path)
    }

    /// Opens the file at `path`, which errors call `name`.
    fn open_as(path: &Path, name: &Path) -> Result<Self, SimError> {
        let source = Source::open(path, name)?;
        let (document, header) = header(&source)?;
        let tree = tree(&source, &document)?;
        info(&source)?;
        Ok(Self { header, tree, source, document })
    }

    /// Opens a file of whose octree it reads the box alone.
    pub(super) fn open_without_tree(path: &Path) -> Result<Self, SimError> {
        let source = Source::open(path, path)?;
        let (document, header) = header(&source)?;
        let levels = vec![Vec::new(); document.tree.groups.len()];
        let tree = Octree::share(document.tree.root_groups, document.tree.periodic, levels);
        Ok(Self { header, tree, source, document })
    }

    /// The groups that are read of it.
    pub fn tree(&self) -> &Octree {
        &self.tree
    }

    /// Leaves out the groups of levels above `finest`; the patches they refined hold their means. Returns how many they
    /// are.
    pub fn drop_finer(&mut self, finest: u8) -> usize {
        let groups = self.tree.group_count();
        self.tree = self.tree.without_finer(finest);
        groups - self.tree.group_count()
    }

    /// Reads the fields, while `report` is told the fraction that is read.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read(&self, report: &dyn Fn(f64)) -> Result<Snapshot, SimError> {
        let potential = vec![0.0; if self.document.potential { self.tree.group_count() * GROUP_CELLS } else { 0 }];
        let mut state = HostState { potential, ..HostState::zeros_of(self.tree.clone(), &self.header.fields) };
        state.dark_matter =
            vec![0.0; if self.document.dark_matter { self.tree.group_count() * GROUP_CELLS } else { 0 }];
        let alone = Communicator::alone();
        let whole = Some((&self.tree, self.groups_of_file()));
        let blocks = Blocks::of_whole(&alone, &self.tree, whole, &Owners::alone(), GROUPS);
        self.distribute(&alone, &blocks, &self.document.stored_fields(), report, &mut state)?;
        state.particles = self.particles()?;
        Ok(Snapshot { header: self.header.clone(), state })
    }

    /// Reads the dark matter; none where there is none.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn particles(&self) -> Result<Option<HostParticles>, SimError> {
        let Some(stated) = self.header.dark_matter else { return Ok(None) };
        let particles = particles::read(&self.source, stated, self.header.box_lengths(&self.tree))?;
        let dropped = self.tree.group_count() < self.groups_of_file();
        Ok(Some(if dropped { particles.in_file_order(&self.tree) } else { particles }))
    }

    /// Reads the dark matter of some groups without verifying digests; none where there is none.
    ///
    /// * `groups`: ranges in key order, rising
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub(super) fn particles_of_groups(&self, groups: &[Range<usize>]) -> Result<Option<HostParticles>, SimError> {
        let Some(stated) = self.header.dark_matter else { return Ok(None) };
        let rows: Vec<_> = groups.iter().map(|groups| groups.start * OCTANTS..groups.end * OCTANTS).collect();
        let patches = self.groups_of_file() * OCTANTS;
        let lengths = self.header.box_lengths(&self.tree);
        particles::read_of_patches(&self.source, stated, lengths, patches, &rows).map(Some)
    }

    /// Groups of the file, also those that are left out.
    pub(crate) fn groups_of_file(&self) -> usize {
        self.document.tree.group_count()
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        self.source.path()
    }

    /// Precision of the fields.
    pub(super) fn precision(&self) -> Precision {
        self.document.snapshot.precision
    }

    /// The fields that it holds, in file order.
    pub(super) fn stored_fields(&self) -> Vec<Field> {
        self.document.stored_fields()
    }

    /// Whether it holds a potential.
    pub(super) fn has_potential(&self) -> bool {
        self.document.potential
    }

    /// Whether it holds the density of dark matter.
    pub(super) fn has_dark_matter(&self) -> bool {
        self.document.dark_matter
    }

    /// The datasets of these fields, and then those of the others.
    pub(super) fn datasets(&self, fields: &[Field]) -> Vec<String> {
        let is_one = |other: &Field| fields.iter().any(|field| field.dataset == other.dataset);
        let stored = self.document.stored_fields();
        let others = stored.iter().filter(|other| !is_one(other));
        let others = others.map(contents::dataset).chain(self.document.pressure());
        fields.iter().map(contents::dataset).chain(others).collect()
    }

    /// Verifies all fields.
    fn verify(&self) -> Result<(), SimError> {
        self.datasets(&[]).iter().try_for_each(|name| match self.precision() {
            Precision::Single => self.rows::<f32>(name)?.verify(GROUPS * OCTANTS),
            Precision::Double => self.rows::<f64>(name)?.verify(GROUPS * OCTANTS),
        })?;
        match self.header.dark_matter {
            Some(stated) => particles::verify(&self.source, stated, self.groups_of_file() * OCTANTS),
            None => Ok(()),
        }
    }

    /// A field's dataset, row by row.
    pub(super) fn rows<T: Stored>(&self, name: &str) -> Result<Rows<'_, T>, SimError> {
        self.source.rows(name, &[self.groups_of_file() * OCTANTS, PATCH, PATCH, PATCH])
    }
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
    let stored = document.stored_fields();
    let fields = stored.iter().map(contents::dataset);
    let particles = document.particle_columns().into_iter().map(String::from);
    for name in [contents::RESTART, contents::CORNER].into_iter().map(String::from).chain(fields).chain(particles) {
        let digest = source.digest(&name)?;
        parts.push((name, digest));
    }
    let text: String = parts.iter().map(|(name, digest)| format!("{name} {digest}\n")).collect();
    Ok(digest(text.as_bytes()))
}

/// Reads everything of the file at `path`, which errors call `name`, and keeps nothing.
pub(super) fn verify(path: &Path, name: &Path) -> Result<(), SimError> {
    StoredSnapshot::open_as(path, name)?.verify()
}

/// The document of `/Comove/header`, of a format and with values that this program knows.
fn document(source: &Source) -> Result<Document, SimError> {
    let format = source.format()?;
    if format == 0 || format > contents::FORMAT {
        let known = contents::FORMAT;
        return Err(source
            .not(format!("it has format {format}, and this program reads formats up to {known}; use a newer comove")));
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
    let mut corners = source.rows(contents::CORNER, &[patches, 3])?;
    let mut reader = TreeReader::new(&document.tree);
    // what is wrong is said of what was written, and no longer read then
    let mut taken = Ok(());
    for _ in (0..document.tree.group_count()).step_by(GROUPS) {
        let corners = corners.next(GROUPS * OCTANTS)?;
        taken = taken.and_then(|()| reader.take(&corners));
    }
    let tree = taken.and_then(|()| reader.tree());
    let tree = tree.map_err(|reason| source.not(format!("{}: {reason}", contents::CORNER)))?;

    let keys: Vec<Key> = tree.keys().collect();
    let mut sons = source.rows::<i32>(contents::SON, &[patches])?;
    let mut same = true;
    for keys in keys.chunks(GROUPS) {
        same &= sons.next(GROUPS * OCTANTS)? == gamer::sons(&tree, keys.iter().copied());
    }
    match same {
        true => Ok(tree),
        false => Err(source.not(format!("{} and {} disagree", contents::SON, contents::CORNER))),
    }
}

/// Verifies the digests of `/Info`, which holds nothing that the header does not.
fn info(source: &Source) -> Result<(), SimError> {
    source.compound::<KeyInfo>(contents::KEY_INFO)?;
    source.compound::<Makefile>(contents::MAKEFILE)?;
    source.compound::<InputPara>(contents::INPUT_PARA)?;
    Ok(())
}
