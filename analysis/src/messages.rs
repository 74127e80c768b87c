//! Values between ranks. Every function is collective.

use bytemuck::Pod;
use comove_sim::parallel::Communicator;
pub(crate) use comove_sim::parallel::FIRST;

/// Values for each rank, for those from each.
pub(crate) fn exchange<T: Pod>(communicator: &Communicator, to: Vec<Vec<T>>) -> Vec<Vec<T>> {
    if communicator.size() == 1 {
        return to;
    }
    let to = to.into_iter().map(|values| bytemuck::cast_slice(&values).to_vec()).collect();
    communicator.exchange(to).iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect()
}

/// Every rank's values, by rank, for the first one.
pub(crate) fn gather<T: Pod>(communicator: &Communicator, own: Vec<T>) -> Option<Vec<Vec<T>>> {
    if communicator.size() == 1 {
        return Some(vec![own]);
    }
    let all = communicator.gather(FIRST, bytemuck::cast_slice(&own).to_vec())?;
    Some(all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect())
}

/// Every rank's values, by rank, for all.
pub(crate) fn gather_all<T: Pod>(communicator: &Communicator, own: &[T]) -> Vec<Vec<T>> {
    let all = communicator.gather_all(bytemuck::cast_slice(own));
    all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect()
}

/// The values of a rank, for all. What the others pass does not matter.
pub(crate) fn broadcast<T: Pod>(communicator: &Communicator, rank: usize, values: Vec<T>) -> Vec<T> {
    if communicator.size() == 1 {
        return values;
    }
    let values = communicator.broadcast(rank, bytemuck::cast_slice(&values).to_vec());
    bytemuck::pod_collect_to_vec(&values)
}

/// A number that the first rank has, for all.
pub(crate) fn number_of_first(communicator: &Communicator, number: Option<f64>) -> f64 {
    broadcast(communicator, FIRST, number.into_iter().collect())[0]
}
