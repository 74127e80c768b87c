//! Filters of HDF5 datasets: compression that this program may lack.

use hdf5::Dataset;
use hdf5::filters::Filter;

/// The largest factor by which a dataset in a file may be smaller than in memory: that of gzip.
pub(crate) const LARGEST_COMPRESSION: u64 = 1032;

/// Names of registered filters (https://github.com/HDFGroup/hdf5_plugins, docs/RegisteredFilterPlugins.md).
const REGISTERED: [(i32, &str); 9] = [
    (305, "LZO"),
    (307, "bzip2"),
    (32000, "LZF"),
    (32001, "Blosc"),
    (32004, "LZ4"),
    (32008, "bitshuffle"),
    (32013, "ZFP"),
    (32015, "Zstandard"),
    (32026, "Blosc2"),
];

/// The reason why a dataset cannot be read, if one of its filters is not in this program.
pub fn unreadable(dataset: &Dataset) -> Option<String> {
    let filter = dataset.filters().into_iter().find(|filter| !filter.is_available())?;
    let name = match &filter {
        Filter::Deflate(_) => "gzip".into(),
        Filter::SZip(..) => "SZIP".into(),
        other => {
            let known = REGISTERED.iter().find(|(id, _)| *id == other.id());
            known.map_or_else(|| format!("HDF5 filter {}", other.id()), |(_, name)| (*name).into())
        }
    };
    let name_of_dataset = dataset.name();
    Some(format!(
        "dataset \"{}\" is compressed with {name}, which this program cannot read; write it without compression or \
                       with gzip (h5repack -f NONE in.h5 out.h5)",
        name_of_dataset.trim_start_matches('/')
    ))
}
