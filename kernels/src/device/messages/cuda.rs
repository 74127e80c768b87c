//! Messages of a GPU: memory that other GPUs write to, page-locked memory for the host to carry the rest.

use super::{ExchangeTimes, MessageSizes, Peer, PeerInfo, Piece, Pieces, Units};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Staging};
use crate::device::cuda::peers::{Opened, PeerMemory};
use crate::device::cuda::{CudaDevice, launch};
use crate::device::error::KernelError;
use crate::device::overflow::Overflow;
use crate::real::Real;

/// Threads of a block; as many peers as it waits for at once.
const THREADS: u32 = 256;
const MOST_PEERS: usize = 64;
/// Bytes before the halves of a part, of which its flag takes the first eight; halves start at multiples.
const FLAG_BYTES: usize = 256;

// as in messages.cu
const _: () = assert!(size_of::<Piece>() == 16 && size_of::<Peers>() == 8 * 225 && MOST_PEERS <= THREADS as usize);

/// The `Peers` of `messages.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Peers {
    count: u32,
    starts: [u32; MOST_PEERS + 1],
    bases: [u64; MOST_PEERS],
    flags: [u64; MOST_PEERS],
    serials: [u64; MOST_PEERS],
}

/// Words of the `Progress` of `messages.cu`, and where its sums are: nanoseconds exchanging and waiting.
const PROGRESS: usize = 4;
const SUMS: usize = 2;

/// How messages of another rank come and go.
#[derive(Debug, Default)]
enum Route {
    /// There are none.
    #[default]
    Closed,
    /// From GPU to GPU.
    Device(Reach),
    /// By the hosts: what is sent, and what comes.
    Host([Staging; 2]),
}

/// A rank that this one reaches, and that reaches this one.
#[derive(Debug)]
struct Reach {
    /// This rank's part of its memory, and its part of this one's.
    to: Part,
    from: Part,
    /// Messages so far.
    serial: u64,
    _opened: Opened,
}

/// Room for the messages of one rank in another's memory: a flag, and two halves.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    half: u64,
}

impl Part {
    fn bytes(half: usize) -> usize {
        FLAG_BYTES + 2 * half
    }

    fn message(self, serial: u64) -> u64 {
        self.start + FLAG_BYTES as u64 + serial % 2 * self.half
    }
}

/// The messages of a rank on a GPU.
#[derive(Debug)]
pub struct PeerBuffers {
    device: CudaDevice,
    rank: usize,
    progress: Array<u64>,
    /// What other GPUs write to.
    memory: Option<PeerMemory>,
    /// Their parts of it, by rank.
    parts: Vec<Option<Part>>,
    routes: Vec<Route>,
    /// Ranks with GPUs that this one may reach.
    pub(super) near: Vec<bool>,
    room: Vec<MessageSizes>,
}

impl PeerBuffers {
    pub(super) fn new(device: &CudaDevice, rank: usize, ranks: usize) -> Result<Self, KernelError> {
        Ok(Self {
            device: device.clone(),
            rank,
            progress: Array::zeros(device, PROGRESS)?,
            memory: None,
            parts: vec![None; ranks],
            routes: (0..ranks).map(|_| Route::Closed).collect(),
            near: vec![false; ranks],
            room: vec![MessageSizes::default(); ranks],
        })
    }

    /// * `N`: what the array has, as many bytes as `T`
    pub(super) fn pack<T: Real, N: Copy + Default + Send + Sync>(
        &mut self,
        peers: &[Peer],
        units: Units,
        array: &Buffer<N>,
    ) {
        let unit = units.values() * T::BYTES;
        for peer in peers {
            let (rank, bytes) = (peer.rank, peer.send.len() * unit);
            let room = match &mut self.routes[rank] {
                Route::Device(reach) => {
                    reach.serial += 1;
                    reach.to.half as usize
                }
                Route::Host([sent, _]) => sent.bytes(),
                Route::Closed => 0,
            };
            assert!(bytes <= room, "{bytes} bytes for rank {rank}, where there is room for {room}");
        }
        let (device, progress) = (&self.device, self.progress.pointer());
        for peers in peers.chunks(MOST_PEERS) {
            let peers = self.peers(peers, unit, true);
            // SAFETY: the parameters are the kernels'; the array has what the units name, checked by the caller, and
            // there is room for the message of each peer, as was just checked.
            match units {
                Units::Cells { fields, pieces } => unsafe {
                    let (list, count) = (pieces.list.on(device), pieces.list.len() as u32);
                    launch!(device, T, "pack_pieces", (pieces.list.len() * fields).max(1), THREADS, 0;
                        fields as i32, array.pointer(), list, count, peers, progress);
                },
                Units::Rows { values, rows } => unsafe {
                    let (list, count) = (rows.list.on(device), rows.list.len() as u32);
                    launch!(device, T, "pack_rows", rows.list.len().max(1), THREADS, 0;
                        values as i32, array.pointer(), list, count, peers, progress);
                },
            }
        }
    }

    /// Waits until what the host has to carry is packed, and has it carried; the GPU goes on with what `meanwhile` launches.
    pub(super) fn carry(
        &mut self,
        peers: &[Peer],
        unit: usize,
        meanwhile: impl FnOnce(),
        carry: impl FnOnce(&[(usize, &[u8])], &mut [(usize, &mut [u8])]),
    ) {
        let is_carried = |peer: &&Peer| matches!(self.routes[peer.rank], Route::Host(_));
        let carried: Vec<&Peer> = peers.iter().filter(is_carried).collect();
        let packed = (!carried.is_empty()).then(|| self.device.event());
        meanwhile();
        let Some(packed) = packed else { return };
        packed.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (rank, route) in self.routes.iter_mut().enumerate() {
            let Some(peer) = carried.iter().find(|peer| peer.rank == rank) else { continue };
            let Route::Host([sent, received]) = route else { continue };
            if !peer.send.is_empty() {
                sends.push((rank, &sent.as_slice()[..peer.send.len() * unit]));
            }
            if !peer.receive.is_empty() {
                receives.push((rank, &mut received.as_mut_slice()[..peer.receive.len() * unit]));
            }
        }
        carry(&sends, &mut receives);
    }

    pub(super) fn unpack<T: Real>(&mut self, peers: &[Peer], units: Units, array: &mut Buffer<T>) {
        let (device, progress) = (&self.device, self.progress.pointer());
        for peers in peers.chunks(MOST_PEERS) {
            let peers = self.peers(peers, units.values() * T::BYTES, false);
            // SAFETY: the parameters are the kernels'; the array has what the units name, none twice, and the messages
            // hold these units, checked by the caller and when the lists were made.
            match units {
                Units::Cells { fields, pieces } => unsafe {
                    launch!(device, T, "unpack_pieces", pieces.list.len() * fields + 1, THREADS, 0;
                        fields as i32, pieces.list.on(device), array.pointer(), peers, progress);
                },
                Units::Rows { values, rows } => unsafe {
                    launch!(device, T, "unpack_rows", rows.list.len() + 1, THREADS, 0;
                        values as i32, rows.list.on(device), array.pointer(), peers, progress);
                },
            }
        }
    }

    pub(super) fn add_weights(&mut self, peers: &[Peer], pieces: &Pieces, pool: &mut Buffer<u64>, overflow: &Overflow) {
        let (device, progress) = (&self.device, self.progress.pointer());
        for peers in peers.chunks(MOST_PEERS) {
            let peers = self.peers(peers, size_of::<u64>(), false);
            // SAFETY: as above; a cell that several pieces name is added to atomically.
            unsafe {
                launch!(device, f64, "add_weights", pieces.list.len() + 1, THREADS, 0;
                    pieces.list.on(device), pool.pointer(), overflow.pointer(), peers, progress);
            }
        }
    }

    /// Where the messages for some peers go to, or where those from them come.
    fn peers(&self, peers: &[Peer], unit: usize, sends: bool) -> Peers {
        let mut all = Peers {
            count: peers.len() as u32,
            starts: [0; MOST_PEERS + 1],
            bases: [0; MOST_PEERS],
            flags: [0; MOST_PEERS],
            serials: [0; MOST_PEERS],
        };
        for (n, peer) in peers.iter().enumerate() {
            let units = if sends { &peer.send } else { &peer.receive };
            let message = match &self.routes[peer.rank] {
                Route::Device(reach) => {
                    let part = if sends { reach.to } else { reach.from };
                    (all.flags[n], all.serials[n]) = (part.start, reach.serial);
                    part.message(reach.serial)
                }
                Route::Host(both) => both[usize::from(!sends)].address(),
                Route::Closed => 0,
            };
            all.bases[n] = message.wrapping_sub((units.start * unit) as u64);
            (all.starts[n], all.starts[n + 1]) = (units.start as u32, units.end as u32);
        }
        all
    }

    pub(super) fn reaches(&self, rank: usize) -> bool {
        matches!(self.routes[rank], Route::Device(_))
    }

    pub(super) fn take_times(&mut self) -> ExchangeTimes {
        let words = self.progress.to_host();
        self.progress.clear(SUMS);
        let [exchanging, waiting] = [0, 1].map(|n| words[SUMS + n] as f64 * 1e-9);
        ExchangeTimes { exchanging, waiting }
    }

    pub(super) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, PeerMemory::bytes)
    }

    pub(super) fn bytes_for(&self, needs: &[MessageSizes]) -> usize {
        self.halves(needs).into_iter().flatten().map(Part::bytes).sum()
    }

    pub(super) fn lacks(&self, needs: &[MessageSizes]) -> bool {
        needs.iter().zip(&self.room).any(|(need, room)| need.send > room.send || need.receive > room.receive)
    }

    /// Bytes of the halves that ranks write to which may reach this one.
    fn halves(&self, needs: &[MessageSizes]) -> Vec<Option<usize>> {
        let half = |(rank, need): (usize, &MessageSizes)| {
            let wanted = self.near[rank] && *need != MessageSizes::default();
            wanted.then(|| need.receive.next_multiple_of(FLAG_BYTES))
        };
        needs.iter().enumerate().map(half).collect()
    }

    pub(super) fn register_peers(&mut self, peer_infos: &[Option<PeerInfo>]) {
        let peer_infos: Vec<Option<&PeerInfo>> = peer_infos.iter().map(Option::as_ref).collect();
        let own = peer_infos[self.rank].expect("the own info");
        // a kernel that waits keeps the GPU from other ranks that have it, whose messages it may be waiting for; and what
        // one thread asks of the driver may keep others of its process from launching anything
        let sharers = |info: &PeerInfo| {
            let same = |other: &&&PeerInfo| other.machine == info.machine && other.bus == info.bus;
            peer_infos.iter().flatten().filter(same).count()
        };
        // a way round peer access that does not do what the driver says
        let allowed = std::env::var_os("COMOVE_NO_PEER_ACCESS").is_none();
        let near = |info: &Option<&PeerInfo>| {
            info.is_some_and(|info| {
                let apart = info.process != own.process && info.bus != own.bus;
                allowed && info.machine == own.machine && apart && sharers(info) == 1 && sharers(own) == 1
            })
        };
        self.near = peer_infos.iter().map(near).collect();
    }

    pub(super) fn close(&mut self) {
        self.device.synchronize();
        self.routes.fill_with(Route::default);
    }

    pub(super) fn make_room(&mut self, needs: &[MessageSizes]) -> Result<(), KernelError> {
        self.memory = None;
        self.parts.fill(None);
        self.room.fill(MessageSizes::default());
        let halves = self.halves(needs);
        let bytes = self.bytes_for(needs);
        if bytes == 0 {
            return Ok(());
        }
        let memory = PeerMemory::new(&self.device, bytes)?;
        let mut start = memory.start();
        for (part, half) in self.parts.iter_mut().zip(halves) {
            *part = half.map(|half| Part { start, half: half as u64 });
            start += half.map_or(0, Part::bytes) as u64;
        }
        self.memory = Some(memory);
        Ok(())
    }

    pub(super) fn peer_info(&self) -> PeerInfo {
        let start = self.memory.as_ref().map_or(0, PeerMemory::start);
        let part = |(rank, part): (usize, &Option<Part>)| part.map(|part| (rank, part.start - start, part.half));
        PeerInfo {
            machine: crate::device::cuda::peers::machine(),
            process: std::process::id(),
            bus: self.device.bus(),
            memory: self.memory.as_ref().map(|memory| (start, memory.handle())),
            parts: self.parts.iter().enumerate().filter_map(part).collect(),
        }
    }

    pub(super) fn open(&mut self, peer_infos: &[Option<PeerInfo>]) -> Vec<usize> {
        let mut reached = Vec::new();
        for (rank, info) in peer_infos.iter().enumerate() {
            let (Some(info), Some(from)) = (info, self.parts[rank]) else { continue };
            let part = info.parts.iter().find(|(of, ..)| *of == self.rank);
            let (Some((start, handle)), Some((_, offset, half))) = (&info.memory, part) else { continue };
            let opened = match info.process == std::process::id() {
                // in tests alone
                true => Some(Opened::own(*start)),
                false => Opened::of_process(&self.device, handle),
            };
            match opened {
                Some(opened) => {
                    let to = Part { start: opened.start() + offset, half: *half };
                    self.routes[rank] = Route::Device(Reach { to, from, serial: 0, _opened: opened });
                    reached.push(rank);
                }
                None => self.near[rank] = false,
            }
        }
        reached
    }

    pub(super) fn finalize(&mut self, needs: &[MessageSizes], reached: &[Vec<usize>]) -> Result<(), KernelError> {
        for (rank, need) in needs.iter().enumerate() {
            if self.reaches(rank) && !reached[rank].contains(&self.rank) {
                (self.routes[rank], self.near[rank]) = (Route::Closed, false);
            }
            if !self.reaches(rank) && *need != MessageSizes::default() {
                self.device.activate();
                let memory = |bytes: usize| Staging::with_room(&self.device, bytes.max(1));
                self.routes[rank] = Route::Host([memory(need.send)?, memory(need.receive)?]);
            }
        }
        self.room = needs.to_vec();
        Ok(())
    }
}
