//! The root's Poisson solve by all ranks: sources to the ranks of their layers, modes between these, potentials back.

use crate::mesh::{Key, Octree};
use crate::parallel::ghost_exchange::GhostExchange;
use crate::parallel::link_lists::{SlotLinks, links_of_slots, need};
use crate::parallel::owners::Owners;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::messages::MessageSizes;
use comove_kernels::slots::copy_slots;
use comove_kernels::{Buffer, Device, DeviceTable, KernelError, PoissonSource, Real, RootShare, root_source};
use std::ops::Range;

/// Plans, who sends what to whom, and what is sent.
#[derive(Debug)]
pub(crate) struct SharedRoot<T> {
    share: RootShare,
    /// Own root groups, as places in key order, to places in layers.
    to_layers: SlotLinks,
    /// The other way round.
    from_layers: SlotLinks,
    /// MortonMap in key order and in layers of groups that stay on this rank.
    staying: [DeviceTable<u32>; 2],
    /// Slabs of modes, from those that this rank's planes have to those that its bands have.
    to_columns: SlotLinks,
    /// The other way round.
    from_columns: SlotLinks,
    /// The slabs on both sides that stay on this rank.
    staying_slabs: [DeviceTable<u32>; 2],
    /// 0, 1, … for the own groups.
    in_order: DeviceTable<u32>,
    /// Sources of the own groups, and of those in layers.
    sources: [Buffer<f64>; 2],
    /// Modes of planes, and of bands.
    modes: [Buffer<f64>; 2],
    /// Potentials of the own groups, and of those in layers.
    potentials: [Buffer<T>; 2],
}

impl<T: Real> SharedRoot<T> {
    /// For a root level whose groups belong to these owners, and this rank among so many.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn new(
        device: &Device,
        (rank, ranks): (usize, usize),
        owners: &Owners,
        root: [u32; 3],
        isolated: bool,
    ) -> Result<Self, KernelError> {
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
        let (own, in_layers): (Vec<u32>, Vec<u32>) = staying.into_iter().unzip();

        let slab = share.slab_values();
        let [sent, received] = [false, true].map(|comes| {
            let values =
                |peer: usize| if comes { share.block_values(peer, rank) } else { share.block_values(rank, peer) };
            let ends = (0..ranks).scan(0, |end, peer| {
                let start = *end;
                *end += (values(peer) / slab) as u32;
                Some(start..*end)
            });
            ends.collect::<Vec<Range<u32>>>()
        });
        let of_others = |blocks: &[Range<u32>]| {
            let others = blocks.iter().enumerate().filter(|(peer, _)| *peer != rank);
            others.flat_map(|(peer, slabs)| slabs.clone().map(move |slab| (peer as u32, slab))).collect::<Vec<_>>()
        };
        let slabs = [of_others(&sent), of_others(&received)];
        let values = |groups: usize| groups * GROUP_CELLS;
        let (own_groups, layer_groups) = (own_groups as usize, layers[rank].len() * groups[0] * groups[1]);
        let modes = [share.sent_values(), share.received_values()];
        Ok(Self {
            share,
            to_layers: links_of_slots(&send, &receive),
            from_layers: links_of_slots(&receive, &send),
            staying: [own.into(), in_layers.into()],
            to_columns: links_of_slots(&slabs[0], &slabs[1]),
            from_columns: links_of_slots(&slabs[1], &slabs[0]),
            staying_slabs: [sent, received].map(|blocks| blocks[rank].clone().collect()),
            in_order: (0..own_groups as u32).collect(),
            sources: [Buffer::zeros(device, values(own_groups))?, Buffer::zeros(device, values(layer_groups))?],
            modes: [Buffer::zeros(device, modes[0])?, Buffer::zeros(device, modes[1])?],
            potentials: [Buffer::zeros(device, values(own_groups))?, Buffer::zeros(device, values(layer_groups))?],
        })
    }

    /// See [`comove_kernels::RootPoisson::serve_particles`].
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn serve_particles(&mut self, share: f64) -> Result<(), KernelError> {
        self.share.serve_particles(share)
    }

    /// Bytes of work space.
    pub(crate) fn bytes(&self) -> usize {
        let double = self.sources.iter().chain(&self.modes).map(Buffer::len).sum::<usize>() * size_of::<f64>();
        self.share.bytes() + double + self.potentials.iter().map(Buffer::len).sum::<usize>() * T::BYTES
    }

    /// The same of a root of so many groups on a rank that owns its even part of them.
    pub(crate) fn bytes_for(
        device: &Device,
        groups: [usize; 3],
        isolated: bool,
        (rank, ranks): (usize, usize),
    ) -> usize {
        let in_layers = RootShare::layers(groups, rank, ranks).len() * groups[0] * groups[1];
        let own = groups.iter().product::<usize>().div_ceil(ranks);
        // about as many modes on each side as there are cells in the layers, padded
        let modes = 2 * in_layers * if isolated { 4 } else { 1 };
        let double = (own + in_layers + modes) * size_of::<f64>();
        RootShare::bytes_for(device, groups, isolated, rank, ranks)
            + (double + (own + in_layers) * T::BYTES) * GROUP_CELLS
    }

    /// Bytes that a solve takes for itself.
    pub(crate) fn working_bytes(&self) -> usize {
        self.share.working_bytes()
    }

    /// Bytes of the longest messages to each of so many ranks and from it.
    pub(crate) fn needs(&self, ranks: usize) -> Vec<MessageSizes> {
        let mut needs = vec![MessageSizes::default(); ranks];
        need(&mut needs, &self.to_layers.peers, GROUP_CELLS * size_of::<f64>());
        need(&mut needs, &self.from_layers.peers, GROUP_CELLS * T::BYTES);
        for links in [&self.to_columns, &self.from_columns] {
            need(&mut needs, &links.peers, self.share.slab_values() * size_of::<f64>());
        }
        needs
    }

    /// Solves ∇²φ = source ([`comove_kernels::RootPoisson::solve`]) in the own root groups: collective.
    ///
    /// * `slots`: of the own root groups, in key order
    pub(crate) fn solve(
        &mut self,
        ghost_exchange: &GhostExchange,
        device: &Device,
        slots: &DeviceTable<u32>,
        source: &PoissonSource<T>,
        h: f64,
        potential: &mut Buffer<T>,
    ) {
        let Self { share, staying: [own, in_layers], in_order, .. } = self;
        assert_eq!(slots.len(), in_order.len(), "one slot for each own root group");
        let [values, layers] = &mut self.sources;
        root_source(device, slots, source, values);
        copy_slots(device, GROUP_CELLS, values, own, layers, in_layers);
        ghost_exchange.send_slots(&self.to_layers, GROUP_CELLS, values, layers);

        let ([planes, columns], [of_planes, of_columns]) = (&mut self.modes, &self.staying_slabs);
        let slab = share.slab_values();
        share.forward(device, layers, planes);
        copy_slots(device, slab, planes, of_planes, columns, of_columns);
        ghost_exchange.send_slots(&self.to_columns, slab, planes, columns);
        share.solve_columns(device, columns, h);
        copy_slots(device, slab, columns, of_columns, planes, of_planes);
        ghost_exchange.send_slots(&self.from_columns, slab, columns, planes);

        let [values, layers] = &mut self.potentials;
        share.backward(device, planes, layers);
        copy_slots(device, GROUP_CELLS, layers, in_layers, values, own);
        ghost_exchange.send_slots(&self.from_layers, GROUP_CELLS, layers, values);
        copy_slots(device, GROUP_CELLS, values, in_order, potential, slots);
    }
}
