//! Ghosts refreshed: packed on the device, sent, unpacked.

use super::communicator::Communicator;
use super::links::{CellLinks, Peer, SlotLinks};
use comove_kernels::pieces::{pack, unpack};
use comove_kernels::slots::copy_slots;
use comove_kernels::{Buffer, Device, KernelError, Real};

/// The messages of one kind of exchange never overtake each other, so one tag serves all.
const TAG: u32 = 1;

/// Sends boxes of own groups to ghost copies on other ranks, and receives those of this rank's ghosts: collective.
///
/// * `pool`: `[slots, fields, 16, 16, 16]`
///
/// # Errors
/// [`KernelError::OutOfMemory`] where there is no room for a message.
pub fn exchange_cells<T: Real>(
    communicator: &Communicator,
    device: &Device,
    links: &CellLinks,
    fields: usize,
    pool: &mut Buffer<T>,
) -> Result<(), KernelError> {
    if links.peers.is_empty() {
        return Ok(());
    }
    let [send, _] = ends(&links.peers);
    let mut message = Buffer::zeros(device, send * fields)?;
    pack(device, fields, pool, &links.send, &mut message);
    let received = communicate(communicator, &links.peers, fields, message);
    unpack(device, fields, &Buffer::from_host(device, received)?, &links.receive, pool);
    Ok(())
}

/// The same with whole slots of `values` values each.
///
/// # Errors
/// [`KernelError::OutOfMemory`] where there is no room for a message.
pub fn exchange_slots<T: Real>(
    communicator: &Communicator,
    device: &Device,
    links: &SlotLinks,
    values: usize,
    pool: &mut Buffer<T>,
) -> Result<(), KernelError> {
    if links.peers.is_empty() {
        return Ok(());
    }
    let received = received(communicator, device, links, values, pool)?;
    let places = (0..links.receive.len() as u32).collect();
    copy_slots(device, values, &Buffer::from_host(device, received)?, &places, pool, &links.receive);
    Ok(())
}

/// The same from one pool to another.
///
/// # Errors
/// [`KernelError::OutOfMemory`] where there is no room for a message.
pub fn send_slots<T: Real>(
    communicator: &Communicator,
    device: &Device,
    links: &SlotLinks,
    values: usize,
    from: &Buffer<T>,
    to: &mut Buffer<T>,
) -> Result<(), KernelError> {
    if links.peers.is_empty() {
        return Ok(());
    }
    let received = received(communicator, device, links, values, from)?;
    let places = (0..links.receive.len() as u32).collect();
    copy_slots(device, values, &Buffer::from_host(device, received)?, &places, to, &links.receive);
    Ok(())
}

/// What comes for slots from peers, who are sent theirs.
fn received<T: Real>(
    communicator: &Communicator,
    device: &Device,
    links: &SlotLinks,
    values: usize,
    from: &Buffer<T>,
) -> Result<Vec<T>, KernelError> {
    let mut message = Buffer::zeros(device, links.send.len() * values)?;
    copy_slots(device, values, from, &links.send, &mut message, &(0..links.send.len() as u32).collect());
    Ok(communicate(communicator, &links.peers, values, message))
}

/// Behind the last unit that is sent and the last that is received.
fn ends(peers: &[Peer]) -> [usize; 2] {
    peers.last().map_or([0; 2], |last| [last.send.end, last.receive.end])
}

/// Sends every peer its part of a message, a unit of which is so many values; what they send, one after the other.
fn communicate<T: Real>(communicator: &Communicator, peers: &[Peer], unit: usize, message: Buffer<T>) -> Vec<T> {
    let message = message.to_host();
    bytemuck::pod_collect_to_vec(&bytes_from_peers(
        communicator,
        peers,
        unit * T::BYTES,
        bytemuck::cast_slice(&message),
    ))
}

/// The same of bytes.
pub fn bytes_from_peers(communicator: &Communicator, peers: &[Peer], unit: usize, message: &[u8]) -> Vec<u8> {
    let part = |peer: &Peer| message[peer.send.start * unit..peer.send.end * unit].to_vec();
    let sends = peers.iter().filter(|peer| !peer.send.is_empty()).map(|peer| (peer.rank, part(peer))).collect();
    let receives = peers.iter().filter(|peer| !peer.receive.is_empty());
    let receives: Vec<(usize, usize)> = receives.map(|peer| (peer.rank, peer.receive.len() * unit)).collect();
    communicator.communicate(TAG, sends, &receives, || ()).0.concat()
}
