//! What ranks send each other about their groups: ghosts refreshed, slots sent.

use crate::error::SimError;
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::link_lists::{CellLinks, SlotLinks};
use bytemuck::Pod;
use comove_kernels::messages::{ExchangeTimes, MessageBuffers, MessageSizes, Peer, Units};
use comove_kernels::overflow::Overflow;
use comove_kernels::{Buffer, Device, Real};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The messages of one kind of exchange never overtake each other, so one tag serves all.
const TAG: u32 = 1;

/// A rank's messages about groups, and the room for them.
///
/// Exchanges are operations of all ranks, like those of [`Communicator`]. With one rank alone nothing is sent.
#[derive(Debug)]
pub struct GhostExchange {
    communicator: Arc<Communicator>,
    device: Device,
    buffers: Mutex<MessageBuffers>,
    /// What is sent whatever the tree.
    least: Vec<MessageSizes>,
}

impl GhostExchange {
    /// Of these ranks, without room for messages: collective.
    ///
    /// * `least`: by rank, what is sent whatever the tree
    ///
    /// # Errors
    /// [`SimError::Kernel`] where there is no room for a few bytes.
    pub fn new(device: &Device, communicator: &Arc<Communicator>, least: Vec<MessageSizes>) -> Result<Self, SimError> {
        let ranks = communicator.size();
        let mut buffers = collective_result(
            communicator,
            MessageBuffers::new(device, communicator.rank(), ranks).map_err(SimError::from),
        )?;
        if ranks > 1 {
            buffers.register_peers(&communicator.gather_all_of(&buffers.peer_info()));
        }
        Ok(Self { communicator: Arc::clone(communicator), device: device.clone(), buffers: Mutex::new(buffers), least })
    }

    /// Of a rank without others.
    ///
    /// # Errors
    /// As [`GhostExchange::new`].
    pub fn alone(device: &Device) -> Result<Self, SimError> {
        Self::new(device, &Arc::new(Communicator::alone()), vec![MessageSizes::default()])
    }

    /// Between them.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Sends boxes of own groups to ghost copies on other ranks, and receives those of this rank's ghosts: collective.
    ///
    /// * `pool`: `[slots, fields, 16, 16, 16]`
    pub fn exchange_cells<T: Real>(&self, links: &CellLinks, fields: usize, pool: &mut Buffer<T>) {
        self.exchange_cells_while(links, fields, pool, |_| ());
    }

    /// The same, with `meanwhile` done while messages are on their way: it may read and write everything but the cells that
    /// come.
    pub fn exchange_cells_while<T: Real>(
        &self,
        links: &CellLinks,
        fields: usize,
        pool: &mut Buffer<T>,
        mut meanwhile: impl FnMut(&mut Buffer<T>),
    ) {
        let units = |pieces| Units::Cells { fields, pieces };
        self.pack(&links.peers, units(&links.send), pool);
        self.carry::<T>(&links.peers, units(&links.send), || meanwhile(pool));
        self.unpack(&links.peers, units(&links.receive), pool);
    }

    /// Whether hosts carry some of these messages, which is worth working meanwhile. What GPUs send each other directly is
    /// there before they would have begun.
    pub fn is_carried(&self, links: &CellLinks) -> bool {
        let buffers = self.buffers();
        links.peers.iter().any(|peer| !buffers.reaches(peer.rank))
    }

    /// Sends whole slots of `values` values each, and receives them.
    pub fn exchange_slots<T: Real>(&self, links: &SlotLinks, values: usize, pool: &mut Buffer<T>) {
        self.send(&links.peers, Units::Rows { values, rows: &links.send }, pool);
        self.unpack(&links.peers, Units::Rows { values, rows: &links.receive }, pool);
    }

    /// Sends weights of boxes of cells, and adds those that come to the cells of their owners: collective.
    ///
    /// * `pool`: `[slots, 16, 16, 16]`; `overflow`: set where the sum of a cell exceeds 64 bits
    pub(crate) fn add_weights(&self, links: &CellLinks, (pool, overflow): (&mut Buffer<u64>, &mut Overflow)) {
        if links.peers.is_empty() {
            return;
        }
        self.buffers().pack_weights(&self.device, &links.peers, &links.send, pool);
        self.carry::<f64>(&links.peers, Units::Cells { fields: 1, pieces: &links.send }, || ());
        self.buffers().add_weights(&self.device, &links.peers, &links.receive, (pool, overflow));
    }

    /// [`GhostExchange::exchange_slots`] from one pool to another.
    pub fn send_slots<T: Real>(&self, links: &SlotLinks, values: usize, from: &Buffer<T>, to: &mut Buffer<T>) {
        self.send(&links.peers, Units::Rows { values, rows: &links.send }, from);
        self.unpack(&links.peers, Units::Rows { values, rows: &links.receive }, to);
    }

    /// Packs and has carried, with nothing to do meanwhile.
    fn send<T: Real>(&self, peers: &[Peer], units: Units, array: &Buffer<T>) {
        self.pack(peers, units, array);
        self.carry::<T>(peers, units, || ());
    }

    fn pack<T: Real>(&self, peers: &[Peer], units: Units, array: &Buffer<T>) {
        if !peers.is_empty() {
            self.buffers().pack(&self.device, peers, units, array);
        }
    }

    /// Has carried what devices do not send each other, with `meanwhile` done once.
    fn carry<T: Real>(&self, peers: &[Peer], units: Units, mut meanwhile: impl FnMut()) {
        if peers.is_empty() {
            return meanwhile();
        }
        let mut buffers = self.buffers();
        buffers.carry::<T>(peers, units, meanwhile, |sends, receives, meanwhile| {
            self.communicator.communicate(TAG, sends, receives, meanwhile);
        });
        let unit = units.values() * T::BYTES;
        for peer in peers.iter().filter(|peer| buffers.reaches(peer.rank)) {
            self.communicator.count_message(peer.send.len() * unit);
        }
    }

    fn unpack<T: Real>(&self, peers: &[Peer], units: Units, array: &mut Buffer<T>) {
        if !peers.is_empty() {
            self.buffers().unpack(&self.device, peers, units, array);
        }
    }

    /// Bytes of the device that messages have.
    pub fn bytes(&self) -> usize {
        self.buffers().bytes()
    }

    /// Bytes that they will have once there is room for these.
    ///
    /// * `needs`: by rank
    pub fn bytes_for(&self, needs: &[MessageSizes]) -> usize {
        let buffers = self.buffers();
        let needs = self.with_least(needs);
        if buffers.lacks(&needs) { buffers.bytes_for(&roomy(&needs)) } else { buffers.bytes() }
    }

    /// Makes room for messages of these lengths, if there is not: collective, and nothing may be on its way.
    ///
    /// * `needs`: by rank
    ///
    /// # Errors
    /// [`SimError::Kernel`] or [`SimError::OnRank`] where some rank has no room, on all of them.
    pub fn fit(&self, needs: &[MessageSizes]) -> Result<(), SimError> {
        let communicator = &*self.communicator;
        let mut buffers = self.buffers();
        let needs = self.with_least(needs);
        if !communicator.any(buffers.lacks(&needs)) {
            return Ok(());
        }
        let needs = roomy(&needs);
        self.leave(&mut buffers);
        collective_result(communicator, buffers.make_room(&needs).map_err(SimError::from))?;
        let peers = communicator.gather_all_of(&buffers.peer_info());
        let reached = buffers.open(&peers);
        let finalized = buffers.finalize(&needs, &communicator.gather_all_of(&reached));
        collective_result(communicator, finalized.map_err(SimError::from))
    }

    /// What is enough for these and for what is sent whatever the tree.
    fn with_least(&self, needs: &[MessageSizes]) -> Vec<MessageSizes> {
        needs.iter().zip(&self.least).map(|(need, least)| need.or(*least)).collect()
    }

    /// Lets go of the other ranks: collective. After it nothing is sent.
    pub fn close(&self) {
        self.leave(&mut self.buffers());
    }

    /// No rank writes to this one's memory any more, nor will.
    fn leave(&self, buffers: &mut MessageBuffers) {
        buffers.close();
        self.communicator.any(false);
    }

    /// What devices have spent in exchanges since this was last asked.
    pub fn take_times(&self) -> ExchangeTimes {
        self.buffers().take_times()
    }

    fn buffers(&self) -> MutexGuard<'_, MessageBuffers> {
        // whoever panics with it ends all ranks
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An eighth more than is needed, so that there is room after the next regrids too.
fn roomy(needs: &[MessageSizes]) -> Vec<MessageSizes> {
    let more = |bytes: usize| bytes + bytes / 8;
    needs.iter().map(|need| MessageSizes { send: more(need.send), receive: more(need.receive) }).collect()
}

/// Sends every peer its part of a message on the host, a unit of which is so many values; what they send, one after the
/// other.
pub(crate) fn from_peers<N: Pod>(communicator: &Communicator, peers: &[Peer], unit: usize, message: &[N]) -> Vec<N> {
    let receive = peers.last().map_or(0, |last| last.receive.end);
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
