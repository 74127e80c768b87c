//! The root's Poisson solve by all ranks: sources to the ranks of their layers, modes between these, potentials back.

use super::communicator::Communicator;
use super::exchange::{from_peers, send_slots};
use super::links::{Peer, SlotLinks, links_of_slots};
use super::owners::Owners;
use crate::octree::{Key, Octree};
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::slots::copy_slots;
use comove_kernels::{Buffer, Device, KernelError, PoissonSource, Real, RootShare, Table, root_source};

/// Plans, and who sends what to whom.
#[derive(Debug)]
pub struct SharedRoot {
    share: RootShare,
    /// Own root groups, as places in key order, to places in layers.
    to_layers: SlotLinks,
    /// The other way round.
    from_layers: SlotLinks,
    /// Places in key order and in layers of groups that stay on this rank.
    staying: [Table<u32>; 2],
    /// Blocks of modes to send and to receive, before the transforms along z.
    blocks: Vec<Peer>,
    own_groups: usize,
    layer_groups: usize,
}

impl SharedRoot {
    /// For a root level whose groups belong to these owners.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        root: [u32; 3],
        isolated: bool,
    ) -> Result<Self, KernelError> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let groups = root.map(|n| n as usize);
        let share = RootShare::new(device, groups, isolated, rank, ranks)?;
        let layers: Vec<_> = (0..ranks).map(|rank| RootShare::layers(groups, rank, ranks)).collect();
        let place_in_layers = |key: Key, rank: usize| {
            let [x, y, z] = key.coordinate.map(|c| c as usize);
            (((z - layers[rank].start) * groups[1] + y) * groups[0] + x) as u32
        };
        let keys = Octree::new(root, [true; 3]);
        let (mut send, mut receive, mut staying, mut own_groups) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for key in keys.keys() {
            let owner = owners.of(key);
            let layer = layers.iter().position(|layers| layers.contains(&(key.coordinate[2] as usize)));
            let layer = layer.expect("every layer belongs to a rank");
            match (owner == rank, layer == rank) {
                (true, true) => staying.push((own_groups, place_in_layers(key, rank))),
                (true, false) => send.push((layer as u32, own_groups)),
                (false, true) => receive.push((owner as u32, place_in_layers(key, rank))),
                (false, false) => {}
            }
            own_groups += u32::from(owner == rank);
        }
        // both sides in key order, by rank
        send.sort_by_key(|(rank, _)| *rank);
        receive.sort_by_key(|(rank, _)| *rank);
        let mut blocks = Vec::new();
        let mut ends = [0; 2];
        for peer in 0..ranks {
            let lengths = [share.block_values(rank, peer), share.block_values(peer, rank)];
            let [sent, received] = ends;
            ends = [sent + lengths[0], received + lengths[1]];
            blocks.push(Peer { rank: peer, send: sent..ends[0], receive: received..ends[1] });
        }
        let [own, in_layers] = [0, 1].map(|side| {
            let place = |&(own, layer): &(u32, u32)| if side == 0 { own } else { layer };
            staying.iter().map(place).collect::<Table<u32>>()
        });
        let layer_groups = layers[rank].len() * groups[0] * groups[1];
        Ok(Self {
            share,
            to_layers: links_of_slots(&send, &receive),
            from_layers: links_of_slots(&receive, &send),
            staying: [own, in_layers],
            blocks,
            own_groups: own_groups as usize,
            layer_groups,
        })
    }

    /// Bytes of work space.
    pub fn bytes(&self) -> usize {
        self.share.bytes()
    }

    /// Bytes that a solve takes for itself: sources, potentials and modes.
    pub fn working_bytes(&self) -> usize {
        let groups = 2 * (self.own_groups + self.layer_groups) * GROUP_CELLS;
        let modes = 2 * (self.share.sent_values() + self.share.received_values());
        self.share.working_bytes() + (groups + modes) * size_of::<f64>()
    }

    /// Solves ∇²φ = source ([`comove_kernels::RootPoisson::solve`]) in the own root groups: collective.
    ///
    /// * `slots`: of the own root groups, in key order
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] where there is no room for messages.
    pub fn solve<T: Real>(
        &mut self,
        communicator: &Communicator,
        device: &Device,
        slots: &Table<u32>,
        source: &PoissonSource<T>,
        h: f64,
        potential: &mut Buffer<T>,
    ) -> Result<(), KernelError> {
        assert_eq!(slots.len(), self.own_groups, "one slot for each own root group");
        let [own, in_layers] = &self.staying;
        let mut values = Buffer::zeros(device, self.own_groups * GROUP_CELLS)?;
        root_source(device, slots, source, &mut values);
        let mut layers = Buffer::zeros(device, self.layer_groups * GROUP_CELLS)?;
        copy_slots(device, GROUP_CELLS, &values, own, &mut layers, in_layers);
        send_slots(communicator, device, &self.to_layers, GROUP_CELLS, &values, &mut layers)?;

        let mut blocks = Buffer::zeros(device, self.share.sent_values())?;
        self.share.forward(device, &layers, &mut blocks);
        let mut columns = Buffer::from_host(device, self.transpose(communicator, &blocks, false))?;
        self.share.solve_columns(device, &mut columns, h);
        let mut blocks = Buffer::from_host(device, self.transpose(communicator, &columns, true))?;

        let mut layers = Buffer::<T>::zeros(device, self.layer_groups * GROUP_CELLS)?;
        self.share.backward(device, &mut blocks, &mut layers);
        let mut values = Buffer::<T>::zeros(device, self.own_groups * GROUP_CELLS)?;
        copy_slots(device, GROUP_CELLS, &layers, in_layers, &mut values, own);
        send_slots(communicator, device, &self.from_layers, GROUP_CELLS, &layers, &mut values)?;
        let places: Table<u32> = (0..self.own_groups as u32).collect();
        copy_slots(device, GROUP_CELLS, &values, &places, potential, slots);
        Ok(())
    }

    /// Sends blocks to where they are transformed along z, or back.
    fn transpose(&self, communicator: &Communicator, blocks: &Buffer<f64>, back: bool) -> Vec<f64> {
        let turned = |peer: &Peer| match back {
            false => peer.clone(),
            true => Peer { rank: peer.rank, send: peer.receive.clone(), receive: peer.send.clone() },
        };
        let peers: Vec<Peer> = self.blocks.iter().map(turned).collect();
        let values = blocks.to_host();
        let (own, others): (Vec<Peer>, Vec<Peer>) = peers.iter().cloned().partition(|p| p.rank == communicator.rank());
        let came = from_peers(communicator, &others, 1, &values);
        let mut came: &[f64] = &came;
        let mut all = Vec::with_capacity(peers.last().map_or(0, |last| last.receive.end));
        for peer in &peers {
            if peer.rank == communicator.rank() {
                all.extend_from_slice(&values[own[0].send.clone()]);
            } else {
                let (block, rest) = came.split_at(peer.receive.len());
                came = rest;
                all.extend_from_slice(block);
            }
        }
        all
    }
}
