//! An HDF5 file that is read: attributes and datasets of expected types and shapes.

use super::plain_values::{PlainValues, Value};
use crate::error::IcError;
use comove_sim::filters;
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Container, Dataset, File, Group, Hyperslab, LinkType, SliceOrIndex};
use ndarray::IxDyn;
use rayon::prelude::*;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open file.
pub(super) struct Hdf5Input {
    pub path: PathBuf,
    pub file: File,
    /// Its handle for reads without HDF5.
    plain: std::fs::File,
}

/// Largest depth of nested groups in a file whose values are read without HDF5.
const DEEPEST: usize = 8;

/// Particles that are read or written at a time.
pub(super) const AT_A_TIME: usize = 1 << 20;

/// Relative difference at which two statements of a number contradict each other: that of six printed digits.
pub(super) const SAME: f64 = 1e-6;

/// Ranges of at most [`AT_A_TIME`] rows, one after the other.
pub(super) fn pieces(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(AT_A_TIME).map(move |first| first..rows.end.min(first + AT_A_TIME))
}

/// Appends rows of values, after a conversion by all threads, to columns.
///
/// # Errors
/// The position of the first value without a conversion.
pub(super) fn convert<A: Sync, B: Send, const N: usize>(
    values: &[A],
    columns: [&mut Vec<B>; N],
    conversion: impl Fn(&A) -> Option<B> + Sync,
) -> Result<(), usize> {
    if let Some(n) = values.par_iter().position_first(|value| conversion(value).is_none()) {
        return Err(n);
    }
    for (n, column) in columns.into_iter().enumerate() {
        column.par_extend(values.par_chunks_exact(N).map(|row| conversion(&row[n]).expect("checked above")));
    }
    Ok(())
}

/// Kind of the numbers of a dataset.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    Floats,
    Integers,
}

impl Hdf5Input {
    /// # Errors
    /// [`IcError::Io`] for a file that is not there, [`IcError::Hdf5`].
    pub(super) fn open(path: &Path) -> Result<Self, IcError> {
        let plain = std::fs::File::open(path).map_err(|source| IcError::Io { path: path.into(), source })?;
        // No locks: another program may have the file open, and parallel file systems may have none.
        let file = File::with_options().with_fapl(|fapl| fapl.file_locking(false)).open(path);
        let file = file.map_err(|source| match truncated(&source.to_string()) {
            Some(reason) => IcError::Content { path: path.into(), reason },
            None => IcError::Hdf5 { path: path.into(), source },
        })?;
        let is_the_same = |now: Metadata, before: Metadata| (now.dev(), now.ino()) == (before.dev(), before.ino());
        let now = std::fs::metadata(path).and_then(|now| Ok(is_the_same(now, plain.metadata()?)));
        match now {
            Ok(true) => Ok(Self { path: path.into(), file, plain }),
            Ok(false) => Err(IcError::Content {
                path: path.into(),
                reason: "the file was replaced while it was opened; try again".into(),
            }),
            Err(source) => Err(IcError::Io { path: path.into(), source }),
        }
    }

    /// True if HDF5 need not decode any dataset: all are contiguous and unfiltered, with numbers of this machine.
    pub(super) fn is_plain(&self) -> bool {
        self.file.as_group().is_ok_and(|root| self.is_plain_in(&root, DEEPEST))
    }

    fn is_plain_in(&self, group: &Group, depth: usize) -> bool {
        let mut all = true;
        let visited = group.iter_visit_default(|name, link| {
            // other links may lead to other files
            all &= link.link_type == LinkType::Hard
                && match group.dataset(name) {
                    Ok(dataset) => dataset.size() == 0 || self.plain_values(&dataset).is_some(),
                    Err(_) => depth > 0 && group.group(name).is_ok_and(|group| self.is_plain_in(&group, depth - 1)),
                };
            Ok(())
        });
        all && visited.is_ok()
    }

    /// Where the values are, if they can be read without HDF5; not of a link to another file.
    fn plain_values(&self, dataset: &Dataset) -> Option<PlainValues> {
        PlainValues::of(dataset).filter(|_| dataset.filename() == self.file.filename())
    }

    pub(super) fn content(&self, reason: impl Into<String>) -> IcError {
        IcError::Content { path: self.path.clone(), reason: reason.into() }
    }

    pub(super) fn failed(&self, source: hdf5::Error) -> IcError {
        IcError::Hdf5 { path: self.path.clone(), source }
    }

    /// Numbers of an attribute, in the first of these groups that has it, and the group's name.
    ///
    /// # Errors
    /// [`IcError::Content`] for one that holds no numbers.
    pub(super) fn numbers<'g>(&self, groups: &[&'g str], name: &str) -> Result<Option<(&'g str, Vec<f64>)>, IcError> {
        for &group in groups {
            let Ok(found) = self.file.group(group) else { continue };
            if !found.attr_names().map_err(|source| self.failed(source))?.iter().any(|n| n == name) {
                continue;
            }
            let unusable =
                |found: &str| self.content(format!("attribute \"{name}\" of /{group} is {found}: expected numbers"));
            let attribute = found.attr(name).map_err(|_| unusable("damaged"))?;
            let values = numbers_of(&attribute).map_err(|found| unusable(&found))?;
            return Ok(Some((group, values)));
        }
        Ok(None)
    }

    /// A dataset of this shape.
    ///
    /// # Errors
    /// [`IcError::Content`] for one that is missing, compressed with an unknown filter, or of other type or shape.
    pub(super) fn dataset(&self, name: &str, shape: &[usize], numbers: Numbers) -> Result<Dataset, IcError> {
        let kind = match numbers {
            Numbers::Floats => "floats of 32 or 64 bits",
            Numbers::Integers => "whole numbers",
        };
        let missing = || self.content(format!("dataset \"{name}\" is missing: expected {kind} of shape {shape:?}"));
        let dataset = self.file.dataset(name).map_err(|_| missing())?;
        let found = dataset.shape();
        if found != shape {
            let reason = format!("dataset \"{name}\" has shape {found:?}, expected {shape:?} as the header says");
            return Err(self.content(reason));
        }
        if dataset.storage_size() == 0 && dataset.size() > 0 {
            return Err(self.content(format!("dataset \"{name}\" of shape {shape:?} holds no values in the file")));
        }
        if let Some(reason) = filters::unreadable(&dataset) {
            return Err(self.content(reason));
        }
        let is_right = |found: &TypeDescriptor| match numbers {
            Numbers::Floats => matches!(found, TypeDescriptor::Float(_)),
            Numbers::Integers => matches!(found, TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_)),
        };
        match described(&dataset) {
            Some(found) if is_right(&found) => Ok(dataset),
            Some(found) => Err(self.content(format!("dataset \"{name}\" holds {found}; expected {kind}"))),
            None => Err(self.content(format!("dataset \"{name}\" holds values of an unknown type; expected {kind}"))),
        }
    }

    /// Values of a dataset, if all are smaller than a limit.
    ///
    /// * `cell`: of a value
    ///
    /// # Errors
    /// [`IcError::Content`] with the first that is not.
    pub(super) fn below(
        &self,
        limit: f64,
        name: &str,
        values: Vec<f64>,
        cell: impl Fn(usize) -> [usize; 3],
    ) -> Result<Vec<f64>, IcError> {
        match values.iter().position(|value| value.is_nan() || value.abs() >= limit) {
            Some(n) => {
                let (value, cell) = (values[n], cell(n));
                let reason =
                    format!("dataset \"{name}\" has {value:e} in cell {cell:?} (from 0): expected less than {limit:e}");
                Err(self.content(reason))
            }
            None => Ok(values),
        }
    }

    /// Rows of a dataset, one after the other: values with these indices along the first axis, and all along others.
    ///
    /// # Errors
    /// [`IcError::Hdf5`], [`IcError::Io`]; [`IcError::Content`] for a file that ends before.
    pub(super) fn rows<T: Value>(&self, dataset: &Dataset, rows: Range<usize>) -> Result<Vec<T>, IcError> {
        let width: usize = dataset.shape().iter().skip(1).product();
        let range = rows.start * width..rows.end * width;
        if let Some(values) = self.plain_values(dataset).and_then(|plain| plain.read(&self.plain, range)) {
            return values.map_err(|source| match source.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    let name = dataset.name();
                    let reason =
                        format!("the file ends within dataset \"{}\"; copy it again", name.trim_start_matches('/'));
                    self.content(reason)
                }
                _ => IcError::Io { path: self.path.clone(), source },
            });
        }
        let first = std::iter::once(SliceOrIndex::from(rows));
        let others = (1..dataset.ndim()).map(|_| SliceOrIndex::from(..));
        let chosen = Hyperslab::from(first.chain(others).collect::<Vec<_>>());
        let values = dataset.read_slice::<T, _, IxDyn>(chosen).map_err(|source| self.failed(source))?;
        Ok(values.into_raw_vec_and_offset().0)
    }
}

/// The reason why HDF5 refuses a file that is too short, if its message says so.
fn truncated(message: &str) -> Option<String> {
    let number =
        |name: &str| message.split_once(name)?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok();
    let (found, expected) = (number("truncated file: eof = ")?, number("stored_eof = ")?);
    Some(format!("the file is truncated: {found} bytes, expected {expected}; copy it again"))
}

/// The type of stored values; `None` for one that this program does not know.
pub(super) fn described(container: &Container) -> Option<TypeDescriptor> {
    container.dtype().and_then(|dtype| dtype.to_descriptor()).ok()
}

pub(super) fn is_number(found: &TypeDescriptor) -> bool {
    matches!(found, TypeDescriptor::Float(_) | TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_))
}

/// A number, as a scalar or as a list of one.
///
/// # Errors
/// The type and shape of what is no number.
pub(super) fn number_of(attribute: &Container) -> Result<f64, String> {
    let values = numbers_of(attribute)?;
    if let [value] = values[..] { Ok(value) } else { Err(kind_of(attribute)) }
}

/// Most numbers of an attribute.
const MOST: usize = 64;

/// Numbers, as a scalar or as a list.
///
/// # Errors
/// The type and shape of what are no numbers.
pub(super) fn numbers_of(attribute: &Container) -> Result<Vec<f64>, String> {
    if !(1..=MOST).contains(&attribute.size()) || !described(attribute).is_some_and(|found| is_number(&found)) {
        return Err(kind_of(attribute));
    }
    attribute.read_raw::<f64>().map_err(|_| kind_of(attribute))
}

fn kind_of(attribute: &Container) -> String {
    let shape = attribute.shape();
    let kind = described(attribute).map_or_else(|| "of an unknown type".into(), |found| format!("of type {found}"));
    if shape.is_empty() { kind } else { format!("{kind} and shape {shape:?}") }
}

/// A text of variable or fixed length.
pub(super) fn text_of(attribute: &Container) -> Option<String> {
    match described(attribute)? {
        TypeDescriptor::VarLenUnicode => attribute.read_scalar::<VarLenUnicode>().ok().map(|text| text.to_string()),
        TypeDescriptor::VarLenAscii => attribute.read_scalar::<VarLenAscii>().ok().map(|text| text.to_string()),
        TypeDescriptor::FixedAscii(_) => attribute.read_scalar::<FixedAscii<64>>().ok().map(|text| text.to_string()),
        TypeDescriptor::FixedUnicode(_) => {
            attribute.read_scalar::<FixedUnicode<64>>().ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that are plain, but for what is added.
    #[test]
    fn what_hdf5_must_decode_is_not_plain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let is_plain = |add: &dyn Fn(&File, &Group)| {
            let file = File::create(&path).unwrap();
            let group = file.create_group("PartType1").unwrap();
            group.new_dataset_builder().with_data(&[1.0f32, 2.0]).create("Masses").unwrap();
            file.new_dataset_builder().with_data(&[1u64, 2]).create("id").unwrap();
            add(&file, &group);
            drop(group);
            file.close().unwrap();
            Hdf5Input::open(&path).unwrap().is_plain()
        };
        assert!(is_plain(&|_, _| ()));
        assert!(is_plain(&|_, group| drop(group.new_dataset::<f64>().shape(0).create("empty").unwrap())));
        assert!(!is_plain(&|_, group| {
            group.new_dataset::<f64>().chunk(2).shape(4).create("chunks").unwrap().write_raw(&[0.0; 4]).unwrap();
        }));
        assert!(!is_plain(&|file, _| file.link_soft("/PartType1/Masses", "soft").unwrap()));
        assert!(!is_plain(&|file, _| file.link_external("other.h5", "/PartType1/Masses", "elsewhere").unwrap()));
        let nested = |depth: usize| is_plain(&|file, _| drop(file.create_group(&vec!["in"; depth].join("/")).unwrap()));
        assert!(nested(DEEPEST) && !nested(DEEPEST + 1));
    }
}
