//! Ghosts refreshed: packed on the device, sent, unpacked.

use super::communicator::Communicator;
use super::links::{CellLinks, Peer, SlotLinks};
use bytemuck::Pod;
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
    let received = from_peers(communicator, &links.peers, fields, &message.into_host());
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
    let received = received(communicator, device, links, values, pool)?;
    put(device, links, values, received, pool)
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
    let received = received(communicator, device, links, values, from)?;
    put(device, links, values, received, to)
}

/// What comes for slots from peers, who are sent theirs.
fn received<T: Real>(
    communicator: &Communicator,
    device: &Device,
    links: &SlotLinks,
    values: usize,
    from: &Buffer<T>,
) -> Result<Vec<T>, KernelError> {
    if links.peers.is_empty() {
        return Ok(Vec::new());
    }
    let mut message = Buffer::zeros(device, links.send.len() * values)?;
    copy_slots(device, values, from, &links.send, &mut message, &(0..links.send.len() as u32).collect());
    Ok(from_peers(communicator, &links.peers, values, &message.into_host()))
}

/// Fills the slots that something came for.
fn put<T: Real>(
    device: &Device,
    links: &SlotLinks,
    values: usize,
    received: Vec<T>,
    pool: &mut Buffer<T>,
) -> Result<(), KernelError> {
    if received.is_empty() {
        return Ok(());
    }
    let places = (0..links.receive.len() as u32).collect();
    copy_slots(device, values, &Buffer::from_host(device, received)?, &places, pool, &links.receive);
    Ok(())
}

/// Behind the last unit that is sent and the last that is received.
fn ends(peers: &[Peer]) -> [usize; 2] {
    peers.last().map_or([0; 2], |last| [last.send.end, last.receive.end])
}

/// Sends every peer its part of a message, a unit of which is so many values; what they send, one after the other.
pub fn from_peers<N: Pod>(communicator: &Communicator, peers: &[Peer], unit: usize, message: &[N]) -> Vec<N> {
    let [_, receive] = ends(peers);
    let mut received = vec![N::zeroed(); receive * unit];
    let mut rest = received.as_mut_slice();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for peer in peers {
        if !peer.send.is_empty() {
            let part = &message[peer.send.start * unit..peer.send.end * unit];
            sends.push((peer.rank, bytemuck::cast_slice(part)));
        }
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(peer.receive.len() * unit);
        rest = behind;
        if !part.is_empty() {
            receives.push((peer.rank, bytemuck::cast_slice_mut(part)));
        }
    }
    communicator.communicate(TAG, &sends, &mut receives, || ());
    received
}
