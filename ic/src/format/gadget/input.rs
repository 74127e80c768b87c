//! A file of either container: HDF5, or the records of formats 1 and 2.

use super::quantity::Quantity;
use super::records::{Block, Records};
use crate::error::IcError;
use crate::format::hdf5_input::{Hdf5Input, Numbers};
use crate::format::is_hdf5;
use hdf5::Dataset;
use std::ops::Range;
use std::path::Path;

/// Group of HDF5 files that states what a file holds.
pub(super) const HEADER: &str = "Header";

/// An open file.
pub(super) enum Input {
    Hdf5(Hdf5Input),
    Records(Records),
}

/// Numbers of the particles of one type.
pub(super) struct Column<'i> {
    /// Name in messages.
    pub name: String,
    values: Values<'i>,
}

enum Values<'i> {
    Dataset(&'i Hdf5Input, Dataset),
    Block(&'i Records, Block),
}

impl Input {
    /// # Errors
    /// [`IcError::Io`], [`IcError::Hdf5`], [`IcError::Content`] for a file that is neither.
    pub(super) fn open(path: &Path) -> Result<Self, IcError> {
        Ok(if is_hdf5(path)? { Self::Hdf5(Hdf5Input::open(path)?) } else { Self::Records(Records::open(path)?) })
    }

    pub(super) fn content(&self, reason: impl Into<String>) -> IcError {
        match self {
            Self::Hdf5(input) => input.content(reason),
            Self::Records(records) => records.content(reason),
        }
    }

    /// Numbers that the file states about itself, and the name of the statement in messages.
    ///
    /// * `groups`: of HDF5, the first that has the attribute
    ///
    /// # Errors
    /// [`IcError::Content`] for an attribute that holds no numbers.
    pub(super) fn numbers(&self, groups: &[&str], name: &str) -> Result<Option<(String, Vec<f64>)>, IcError> {
        Ok(match self {
            Self::Hdf5(input) => {
                input.numbers(groups, name)?.map(|(group, values)| (self.statement(group, name), values))
            }
            Self::Records(records) => records.numbers(name).map(|values| (self.statement(HEADER, name), values)),
        })
    }

    /// Name of a statement in messages.
    pub(super) fn statement(&self, group: &str, name: &str) -> String {
        match self {
            Self::Hdf5(_) => format!("attribute \"{name}\" of /{group}"),
            Self::Records(_) => format!("\"{name}\" of the header"),
        }
    }

    /// Name of a type's mass in messages.
    pub(super) fn table_entry(&self, kind: usize) -> String {
        match self {
            Self::Hdf5(_) => format!("attribute \"MassTable\"[{kind}]"),
            Self::Records(_) => format!("\"MassTable\"[{kind}] of the header"),
        }
    }

    /// Name of a type's array in messages.
    pub(super) fn name(&self, quantity: Quantity, kind: usize) -> String {
        match self {
            Self::Hdf5(_) => format!("dataset \"PartType{kind}/{}\"", quantity.dataset()),
            Self::Records(_) => format!("block \"{}\" of type {kind}", quantity.block()),
        }
    }

    /// An array of a type.
    ///
    /// * `count`: particles of the type in this file
    ///
    /// # Errors
    /// [`IcError::Content`] for an array that is missing or of another type or length.
    pub(super) fn column(&self, quantity: Quantity, kind: usize, count: usize) -> Result<Column<'_>, IcError> {
        let values = match self {
            Self::Hdf5(input) => {
                let shape = [count, 3];
                let shape = &shape[..if quantity.width() == 3 { 2 } else { 1 }];
                let numbers = if quantity == Quantity::Ids { Numbers::Integers } else { Numbers::Floats };
                let dataset = input.dataset(&format!("PartType{kind}/{}", quantity.dataset()), shape, numbers)?;
                Values::Dataset(input, dataset)
            }
            Self::Records(records) => Values::Block(records, records.block(quantity, kind)?),
        };
        Ok(Column { name: self.name(quantity, kind), values })
    }
}

impl Column<'_> {
    /// Numbers of particles, those of one after the other.
    ///
    /// # Errors
    /// [`IcError::Hdf5`], [`IcError::Io`]; [`IcError::Content`] for a file that ends before.
    pub(super) fn reals(&self, rows: Range<usize>) -> Result<Vec<f64>, IcError> {
        match &self.values {
            Values::Dataset(input, dataset) => input.rows(dataset, rows),
            Values::Block(records, block) => records.reals(block, rows),
        }
    }

    /// Whole numbers of particles.
    ///
    /// # Errors
    /// As of [`Column::reals`].
    pub(super) fn integers(&self, rows: Range<usize>) -> Result<Vec<u64>, IcError> {
        match &self.values {
            Values::Dataset(input, dataset) => input.rows(dataset, rows),
            Values::Block(records, block) => records.integers(block, rows),
        }
    }
}
