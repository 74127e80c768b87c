//! Messages: what they hold, what unpacking restores and leaves alone, what is refused, and the halves that GPUs write to.

use super::*;
use crate::layout::{FIELDS, GROUP, cell};
use crate::testing::{Noise, with_gpu};

const SLOTS: usize = 9;

/// Two ranks on one device, with room for messages of so many bytes between them.
struct Two([MessageBuffers; 2]);

impl Two {
    /// * `direct`: as if they were on different GPUs
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    fn new(device: &Device, bytes: usize, direct: bool) -> Self {
        let mut mails = [0, 1].map(|rank| MessageBuffers::new(device, rank, 2).unwrap());
        let other = [0, 1].map(|rank: usize| {
            let needs = |to: usize| {
                if to == rank { MessageSizes::default() } else { MessageSizes { send: bytes, receive: bytes } }
            };
            [needs(0), needs(1)]
        });
        let peer_infos = |mails: &[MessageBuffers; 2]| mails.iter().map(MessageBuffers::peer_info).collect::<Vec<_>>();
        let all = peer_infos(&mails);
        mails.iter_mut().for_each(|mail| mail.register_peers(&all));
        #[cfg(feature = "cuda")]
        if direct {
            // two ranks of one process would not wait for each other's flags in earnest; here one thread does all in order
            for mail in &mut mails {
                let MessageBuffers::Cuda(buffers) = mail else { panic!("direct only on a GPU") };
                buffers.near = vec![true; 2];
            }
        }
        assert!(mails[0].lacks(&other[0]));
        mails.iter_mut().for_each(MessageBuffers::close);
        mails.iter_mut().zip(&other).for_each(|(mail, needs)| mail.make_room(needs).unwrap());
        let all = peer_infos(&mails);
        let reached: Vec<_> = mails.iter_mut().map(|mail| mail.open(&all)).collect();
        mails.iter_mut().zip(&other).for_each(|(mail, needs)| mail.finalize(needs, &reached).unwrap());
        assert!(mails.iter().zip(&other).all(|(mail, needs)| !mail.lacks(needs)));
        Self(mails)
    }

    /// Sends units of arrays both ways.
    fn exchange<T: Real>(&mut self, device: &Device, sent: [(&Buffer<T>, Units); 2], to: [(&mut Buffer<T>, Units); 2]) {
        let len = |units: &Units| match units {
            Units::Cells { pieces, .. } => pieces.cells,
            Units::Rows { rows, .. } => rows.list.len(),
        };
        let peers = [0, 1]
            .map(|rank: usize| [Peer { rank: 1 - rank, send: 0..len(&sent[rank].1), receive: 0..len(&to[rank].1) }]);
        let Self([first, second]) = self;
        first.pack(device, &peers[0], sent[0].1, sent[0].0);
        second.pack(device, &peers[1], sent[1].1, sent[1].0);
        let mut carried = [Vec::new(), Vec::new()];
        let idle = || ();
        first.carry::<T>(&peers[0], sent[0].1, idle, |sends, _, _| {
            carried[0] = sends.first().map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
        });
        second.carry::<T>(&peers[1], sent[1].1, idle, |sends, receives, _| {
            carried[1] = sends.first().map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
            receives.iter_mut().for_each(|(_, bytes)| bytes.copy_from_slice(&carried[0]));
        });
        first.carry::<T>(&peers[0], sent[0].1, idle, |_, receives, _| {
            receives.iter_mut().for_each(|(_, bytes)| bytes.copy_from_slice(&carried[1]));
        });
        let [(to_first, units_of_first), (to_second, units_of_second)] = to;
        first.unpack(device, &peers[0], units_of_first, to_first);
        second.unpack(device, &peers[1], units_of_second, to_second);
    }
}

/// Sends pieces of one pool to another, as ranks do that share a device.
pub(crate) fn deliver<T: Real>(
    device: &Device,
    fields: usize,
    from: &Buffer<T>,
    to: &mut Buffer<T>,
    pieces: Vec<Piece>,
) {
    let cells = pieces.iter().map(Piece::end).max().unwrap_or(0);
    let mut two = Two::new(device, (cells * fields * T::BYTES).max(1), false);
    let [out, into] = [Pieces::to_pack(pieces.clone()), Pieces::to_unpack(pieces)];
    let none = Pieces::default();
    let units = |pieces| Units::Cells { fields, pieces };
    let mut nothing = Buffer::zeros(device, 0).unwrap();
    let other = Buffer::zeros(device, 0).unwrap();
    two.exchange(
        device,
        [(from, units(&out)), (&other, units(&none))],
        [(&mut nothing, units(&none)), (to, units(&into))],
    );
}

/// Pieces of every shape that ghosts have, with gaps between some of them in the message; the message's length in cells.
fn shapes() -> (Vec<Piece>, usize) {
    let mut pieces = vec![
        Piece::whole(3, 0),
        Piece::patch(0, 5, 0),
        Piece::patch(0, 1, 0),
        Piece::patch(0, 7, 0),
        Piece { slot: 8, first: [13, 0, 0], cells: [3, 16, 16], at: 0 },
        Piece { slot: 1, first: [0, 0, 0], cells: [16, 3, 16], at: 0 },
        Piece { slot: 7, first: [0, 0, 12], cells: [16, 16, 4], at: 0 },
        Piece { slot: 2, first: [15, 15, 15], cells: [1, 1, 1], at: 0 },
        Piece { slot: 5, first: [4, 9, 2], cells: [7, 2, 11], at: 0 },
        Piece { slot: 6, first: [1, 2, 16], cells: [2, 3, 0], at: 0 },
    ];
    let mut end = 0;
    for (n, piece) in pieces.iter_mut().enumerate() {
        piece.at = (end + 5 * (n % 3)) as u32;
        end = piece.end();
    }
    (pieces, end)
}

/// A value for every place of an array, all different.
fn numbered<T: Real>(len: usize, first: f64) -> Vec<T> {
    (0..len).map(|n| T::from_f64(first + n as f64)).collect()
}

/// Three exchanges of the same ranks, so that both halves are used, and one of them again: pieces one way, then both ways,
/// then nothing but a flag back.
fn pieces_arrive_and_nothing_else_changes<T: Real>(device: &Device, fields: usize, direct: bool) {
    let (pieces, cells) = shapes();
    let mut two = Two::new(device, cells * fields * T::BYTES, direct);
    let (out, none) = (Pieces::to_pack(pieces.clone()), Pieces::default());
    // the order of pieces is the message's only where one is packed
    let into = Pieces::to_unpack(pieces.iter().rev().copied().collect());
    let units = |pieces| Units::Cells { fields, pieces };
    let empty = T::from_f64(-7.0);
    let len = SLOTS * fields * GROUP_CELLS;
    for (round, both) in [false, true, false].into_iter().enumerate() {
        let pools = [0, 1].map(|rank| numbered::<T>(len, (1 + rank + 2 * round) as f64 * 1e6));
        let sent = [0, 1].map(|rank: usize| Buffer::from_host(device, pools[rank].clone()).unwrap());
        let mut other = [0; 2].map(|_| Buffer::from_host(device, vec![empty; len]).unwrap());
        let [first, second] = &mut other;
        let (back_out, back_into) = if both { (&out, &into) } else { (&none, &none) };
        two.exchange(
            device,
            [(&sent[0], units(&out)), (&sent[1], units(back_out))],
            [(first, units(back_into)), (second, units(&into))],
        );
        for (rank, from) in [(1, 0), (0, 1)] {
            let mut expected = vec![empty; len];
            for piece in pieces.iter().filter(|_| both || rank == 1) {
                for f in 0..fields {
                    for k in piece.first[2]..piece.first[2] + piece.cells[2] {
                        for j in piece.first[1]..piece.first[1] + piece.cells[1] {
                            for i in piece.first[0]..piece.first[0] + piece.cells[0] {
                                let cell = cell(usize::from(i), usize::from(j), usize::from(k));
                                let at = (piece.slot as usize * fields + f) * GROUP_CELLS + cell;
                                expected[at] = pools[from][at];
                            }
                        }
                    }
                }
            }
            assert!(other[rank].to_host() == expected, "round {round}, rank {rank}, {fields} fields");
        }
    }
}

fn rows_arrive_and_no_others_change<T: Real>(device: &Device, direct: bool) {
    const VALUES: usize = 37;
    let (out, into) = (Rows::to_pack(vec![4, 0, 4, 2]), Rows::to_unpack(vec![1, 5, 0, 3]));
    let mut two = Two::new(device, 4 * VALUES * T::BYTES, direct);
    let units = |rows| Units::Rows { values: VALUES, rows };
    let array = numbered::<T>(5 * VALUES, 1.0);
    let sent = Buffer::from_host(device, array.clone()).unwrap();
    let mut other = [0; 2].map(|_| Buffer::from_host(device, vec![T::from_f64(-7.0); 6 * VALUES]).unwrap());
    let [first, second] = &mut other;
    two.exchange(device, [(&sent, units(&out)); 2], [(first, units(&into)), (second, units(&into))]);
    for other in &other {
        let found = other.to_host();
        for (row, from) in [(1, Some(4)), (5, Some(0)), (0, Some(4)), (3, Some(2)), (2, None), (4, None)] {
            let expected =
                from.map_or(vec![T::from_f64(-7.0); VALUES], |from: usize| array[from * VALUES..][..VALUES].to_vec());
            assert_eq!(found[row * VALUES..][..VALUES], expected, "row {row}");
        }
    }
}

/// Weights of overlapping boxes of cells are added to what is there, twice, and a sum beyond 64 bits is noted.
fn weights_are_added(device: &Device, direct: bool) {
    let weights: Vec<u64> = (0..3 * GROUP_CELLS as u64).map(|n| n * n % 8191).collect();
    let pieces = vec![
        Piece { slot: 2, first: [1, 2, 3], cells: [4, 5, 6], at: 0 },
        Piece { slot: 0, first: [0, 0, 15], cells: [16, 16, 1], at: 120 },
        Piece { slot: 2, first: [3, 3, 4], cells: [2, 1, 1], at: 376 },
    ];
    let (out, into, none) = (Pieces::to_pack(pieces.clone()), Pieces::to_add(pieces), Pieces::default());
    let Two([mut first, mut second]) = Two::new(device, 378 * size_of::<u64>(), direct);
    let to_second = [Peer { rank: 1, send: 0..378, receive: 0..0 }];
    let to_first = [Peer { rank: 0, send: 0..0, receive: 0..378 }];
    let sent = Buffer::from_host(device, weights.clone()).unwrap();
    let mut overflow = Overflow::none(device, u128::MAX).unwrap();
    let mut send = |pool: &mut Buffer<u64>, overflow: &mut Overflow| {
        first.pack_weights(device, &to_second, &out, &sent);
        second.pack_weights(device, &to_first, &none, &sent);
        let mut carried = Vec::new();
        let [units_out, units_none] = [&out, &none].map(|pieces| Units::Cells { fields: 1, pieces });
        first.carry::<f64>(&to_second, units_out, || (), |sends, _, _| carried = sends[0].1.to_vec());
        second.carry::<f64>(&to_first, units_none, || (), |_, receives, _| receives[0].1.copy_from_slice(&carried));
        first.add_weights(device, &to_second, &none, (&mut Buffer::zeros(device, 0).unwrap(), &mut *overflow));
        second.add_weights(device, &to_first, &into, (pool, overflow));
    };
    let mut pool = Buffer::from_host(device, vec![5; 3 * GROUP_CELLS]).unwrap();
    (0..2).for_each(|_| send(&mut pool, &mut overflow));
    assert_eq!(overflow.cell(), None);
    let found = pool.to_host();
    let at = |slot: usize, i: usize, j: usize, k: usize| slot * GROUP_CELLS + cell(i, j, k);
    for (cell, times) in [(at(2, 1, 2, 3), 2), (at(2, 3, 3, 4), 4), (at(0, 9, 9, 15), 2), (at(1, 5, 5, 5), 0)] {
        assert_eq!(found[cell], 5 + times * weights[cell], "{cell}");
    }
    let mut full = Buffer::from_host(device, vec![u64::MAX; 3 * GROUP_CELLS]).unwrap();
    send(&mut full, &mut overflow);
    assert_eq!(overflow.cell(), Some(at(2, 4, 6, 8)));
}

#[test]
fn a_message_restores_its_units_and_nothing_else() {
    let device = Device::cpu(2).unwrap();
    for fields in [1, 2, FIELDS] {
        pieces_arrive_and_nothing_else_changes::<f32>(&device, fields, false);
        pieces_arrive_and_nothing_else_changes::<f64>(&device, fields, false);
    }
    rows_arrive_and_no_others_change::<f32>(&device, false);
    rows_arrive_and_no_others_change::<f64>(&device, false);
    weights_are_added(&device, false);
}

/// By the host, and as if the ranks' GPUs reached each other.
#[test]
fn a_gpu_packs_and_unpacks_the_same() {
    with_gpu(|gpu| {
        for direct in [false, true] {
            for fields in [1, FIELDS] {
                pieces_arrive_and_nothing_else_changes::<f32>(gpu, fields, direct);
                pieces_arrive_and_nothing_else_changes::<f64>(gpu, fields, direct);
            }
            rows_arrive_and_no_others_change::<f32>(gpu, direct);
            rows_arrive_and_no_others_change::<f64>(gpu, direct);
            weights_are_added(gpu, direct);
        }
    });
}

/// Ranks that reach each other have nothing carried, and know what their devices did.
#[test]
fn gpus_that_reach_each_other_need_no_host() {
    with_gpu(|gpu| {
        for direct in [false, true] {
            let Two(mut mails) = Two::new(gpu, 1 << 16, direct);
            assert_eq!(
                mails.each_ref().map(|mail| (mail.reaches(0), mail.reaches(1))),
                [(false, direct), (direct, false)]
            );
            let pieces = Pieces::to_pack(vec![Piece::whole(0, 0)]);
            let units = Units::Cells { fields: 1, pieces: &pieces };
            let pool = Buffer::<f32>::zeros(gpu, GROUP_CELLS).unwrap();
            let peers = [1, 0].map(|rank| [Peer { rank, send: 0..GROUP_CELLS, receive: 0..GROUP_CELLS }]);
            for (mail, peers) in mails.iter_mut().zip(&peers) {
                mail.pack(gpu, peers, units, &pool);
                let mut carried = false;
                mail.carry::<f32>(peers, units, || (), |_, _, _| carried = true);
                assert_eq!(carried, !direct);
            }
            assert_eq!(mails[0].bytes() > 0, direct);
        }
    });
}

#[test]
fn a_group_goes_to_several_ranks_bit_by_bit() {
    let device = Device::cpu(2).unwrap();
    let mut noise = Noise::new(8);
    let mut pool: Vec<f32> = (0..GROUP_CELLS).map(|_| noise.next() as f32).collect();
    (pool[0], pool[1], pool[2]) = (-0.0, f32::from_bits(0x7fa0_0001), f32::from_bits(1));
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let pieces = Pieces::to_pack(vec![Piece::whole(0, 0), Piece::whole(0, GROUP_CELLS as u32)]);
    let part = |n: usize| n * GROUP_CELLS..(n + 1) * GROUP_CELLS;
    let peers = [1, 2].map(|rank| Peer { rank, send: part(rank - 1), receive: 0..0 });
    let mut mail = MessageBuffers::new(&device, 0, 3).unwrap();
    mail.make_room(&[
        MessageSizes::default(),
        MessageSizes { send: 4 * GROUP_CELLS, receive: 0 },
        MessageSizes { send: 4 * GROUP_CELLS, receive: 0 },
    ])
    .unwrap();
    let units = Units::Cells { fields: 1, pieces: &pieces };
    mail.pack(&device, &peers, units, &Buffer::from_host(&device, pool.clone()).unwrap());
    let mut seen = 0;
    let idle = || ();
    mail.carry::<f32>(&peers, units, idle, |sends, _, _| {
        for (rank, bytes) in sends {
            assert_eq!(bits(&bytemuck::pod_collect_to_vec::<u8, f32>(bytes)), bits(&pool), "rank {rank}");
            seen += 1;
        }
    });
    assert_eq!(seen, 2);
}

/// Packs the pieces to a message of `cells` cells from a pool of two slots with two fields.
fn attempt(pieces: Vec<Piece>, cells: usize) {
    let device = Device::cpu(1).unwrap();
    let mut mail = MessageBuffers::new(&device, 0, 2).unwrap();
    mail.make_room(&[MessageSizes::default(), MessageSizes { send: 4 * 2 * cells, receive: 0 }]).unwrap();
    let pool = Buffer::<f32>::zeros(&device, 2 * 2 * GROUP_CELLS).unwrap();
    let pieces = Pieces::to_pack(pieces);
    let peers = [Peer { rank: 1, send: 0..1024, receive: 0..0 }];
    mail.pack(&device, &peers, Units::Cells { fields: 2, pieces: &pieces }, &pool);
}

#[test]
#[should_panic(expected = "slot 3 is beyond an array of 16384 values")]
fn a_slot_beyond_the_pool_is_refused() {
    attempt(vec![Piece::patch(1, 0, 0), Piece::patch(2, 0, 512)], 1024);
}

#[test]
#[should_panic(expected = "piece 0 is not part of a group")]
fn a_piece_beyond_its_group_is_refused() {
    attempt(vec![Piece { slot: 0, first: [0, 14, 0], cells: [16, 3, 16], at: 0 }], 1024);
}

#[test]
#[should_panic(expected = "unit 1025 is beyond a message of 1024")]
fn a_piece_beyond_the_message_is_refused() {
    attempt(vec![Piece::patch(1, 0, 0), Piece::patch(0, 0, 513)], 2048);
}

#[test]
#[should_panic(expected = "2048 values in a message with room for 2046")]
fn a_message_without_room_is_refused() {
    attempt(vec![Piece::patch(1, 0, 0), Piece::patch(0, 0, 512)], 1023);
}

/// What is enough to send is not enough to receive.
#[test]
fn room_is_needed_on_both_sides() {
    let device = Device::cpu(1).unwrap();
    let mut mail = MessageBuffers::new(&device, 0, 2).unwrap();
    let needs = |send, receive| [MessageSizes::default(), MessageSizes { send, receive }];
    mail.make_room(&needs(800, 80)).unwrap();
    assert!(!mail.lacks(&needs(800, 80)) && !mail.lacks(&needs(8, 80)));
    assert!(mail.lacks(&needs(80, 88)) && mail.lacks(&needs(808, 8)));
}

#[test]
#[should_panic(expected = "piece 1 of a message begins at 511, before cell 512")]
fn pieces_that_overlap_in_a_message_are_refused() {
    attempt(vec![Piece::patch(1, 0, 0), Piece::patch(1, 1, 511)], 1024);
}

#[test]
#[should_panic(expected = "pieces of slot 1 overlap")]
fn cells_that_are_unpacked_twice_are_refused() {
    let first = Piece { slot: 1, first: [5, 7, 7], cells: [4, 1, 1], at: 512 };
    Pieces::to_unpack(vec![first, Piece::patch(1, 1, 0)]);
}

#[test]
#[should_panic(expected = "the pieces of slot 1 are not together")]
fn a_slot_that_comes_twice_is_refused() {
    Pieces::to_unpack(vec![Piece::patch(1, 0, 0), Piece::patch(0, 0, 512), Piece::patch(1, 1, 1024)]);
}

#[test]
#[should_panic(expected = "row 2 is filled twice")]
fn a_row_that_comes_twice_is_refused() {
    Rows::to_unpack(vec![2, 0, 2]);
}

#[test]
fn whole_groups_and_patches_are_boxes() {
    assert_eq!(Piece::whole(3, 7), Piece { slot: 3, first: [0; 3], cells: [GROUP as u8; 3], at: 7 });
    assert_eq!(Piece::patch(3, 5, 7), Piece { slot: 3, first: [8, 0, 8], cells: [8; 3], at: 7 });
}
