//! Messages: what they hold, what unpacking restores and leaves alone, and what is refused.

use super::*;
use crate::layout::{FIELDS, cell};
use crate::testing::{Noise, with_gpu};

const SLOTS: usize = 9;

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
    (pieces, end + 1)
}

/// A value for every place of an array, all different.
fn numbered<T: Real>(len: usize, first: f64) -> Vec<T> {
    (0..len).map(|n| T::of(first + n as f64)).collect()
}

fn messages_hold_pieces_and_nothing_else<T: Real>(device: &Device, fields: usize) {
    let (pieces, cells) = shapes();
    let table: Table<Piece> = pieces.clone().into();
    let pool = numbered::<T>(SLOTS * fields * GROUP_CELLS, 1.0);
    let empty = T::of(-7.0);
    let mut message = Buffer::from_host(device, vec![empty; cells * fields]).unwrap();
    pack(device, fields, &Buffer::from_host(device, pool.clone()).unwrap(), &table, &mut message);

    // what they are by definition
    let mut expected = vec![empty; cells * fields];
    let mut restored = vec![empty; pool.len()];
    for piece in &pieces {
        let mut to = piece.at as usize * fields;
        for f in 0..fields {
            for k in piece.first[2]..piece.first[2] + piece.cells[2] {
                for j in piece.first[1]..piece.first[1] + piece.cells[1] {
                    for i in piece.first[0]..piece.first[0] + piece.cells[0] {
                        let cell = cell(usize::from(i), usize::from(j), usize::from(k));
                        let from = (piece.slot as usize * fields + f) * GROUP_CELLS + cell;
                        (expected[to], restored[from]) = (pool[from], pool[from]);
                        to += 1;
                    }
                }
            }
        }
        assert_eq!(to, piece.end() * fields);
    }
    assert!(message.to_host() == expected, "{fields} fields packed");

    let mut other = Buffer::from_host(device, vec![empty; pool.len()]).unwrap();
    // the order of pieces is the message's only where one is packed
    let reversed: Table<Piece> = pieces.into_iter().rev().collect();
    unpack(device, fields, &message, &reversed, &mut other);
    assert!(other.to_host() == restored, "{fields} fields unpacked");

    // no pieces, no message
    let (none, mut nothing) = (Table::default(), Buffer::zeros(device, 0).unwrap());
    pack(device, fields, &other, &none, &mut nothing);
    unpack(device, fields, &nothing, &none, &mut other);
    assert!(other.to_host() == restored);
}

#[test]
fn a_message_restores_its_pieces_and_nothing_else() {
    let device = Device::cpu(2).unwrap();
    for fields in [1, 2, FIELDS] {
        messages_hold_pieces_and_nothing_else::<f32>(&device, fields);
        messages_hold_pieces_and_nothing_else::<f64>(&device, fields);
    }
}

#[test]
fn a_gpu_packs_and_unpacks_the_same() {
    with_gpu(|gpu| {
        for fields in [1, FIELDS] {
            messages_hold_pieces_and_nothing_else::<f32>(gpu, fields);
            messages_hold_pieces_and_nothing_else::<f64>(gpu, fields);
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
    let pieces = vec![Piece::whole(0, 0), Piece::whole(0, GROUP_CELLS as u32)].into();
    let mut message = Buffer::zeros(&device, 2 * GROUP_CELLS).unwrap();
    pack(&device, 1, &Buffer::from_host(&device, pool.clone()).unwrap(), &pieces, &mut message);
    assert_eq!(bits(message.host()), bits(&[pool.clone(), pool].concat()));
}

/// Packs the pieces to a message of `cells` cells, or unpacks them from it: a pool of two slots.
fn attempt(unpacks: bool, pieces: Vec<Piece>, cells: usize) {
    let device = Device::cpu(1).unwrap();
    let room = |len| Buffer::<f32>::zeros(&device, len).unwrap();
    let (mut pool, mut message) = (room(2 * 2 * GROUP_CELLS), room(2 * cells));
    if unpacks {
        unpack(&device, 2, &message, &pieces.into(), &mut pool);
    } else {
        pack(&device, 2, &pool, &pieces.into(), &mut message);
    }
}

#[test]
#[should_panic(expected = "piece 1: slot 2 of a pool of 2")]
fn a_slot_beyond_the_pool_is_refused() {
    attempt(false, vec![Piece::patch(1, 0, 0), Piece::patch(2, 0, 512)], 1024);
}

#[test]
#[should_panic(expected = "piece 0 is not part of a group")]
fn a_piece_beyond_its_group_is_refused() {
    attempt(true, vec![Piece { slot: 0, first: [0, 14, 0], cells: [16, 3, 16], at: 0 }], 1024);
}

#[test]
#[should_panic(expected = "piece 1 ends at cell 1024 of a message of 1023")]
fn a_piece_beyond_the_message_is_refused() {
    attempt(true, vec![Piece::patch(1, 0, 0), Piece::patch(0, 0, 512)], 1023);
}

#[test]
#[should_panic(expected = "piece 1 of a message begins at 511, before cell 512")]
fn pieces_that_overlap_in_a_message_are_refused() {
    attempt(false, vec![Piece::patch(1, 0, 0), Piece::patch(1, 1, 511)], 1024);
}

#[test]
#[should_panic(expected = "pieces of slot 1 overlap")]
fn cells_that_are_unpacked_twice_are_refused() {
    let first = Piece { slot: 1, first: [5, 7, 7], cells: [4, 1, 1], at: 512 };
    attempt(true, vec![first, Piece::patch(1, 1, 0)], 1024);
}

#[test]
#[should_panic(expected = "the pieces of slot 1 are not together")]
fn pieces_of_a_slot_with_others_between_are_refused() {
    attempt(true, vec![Piece::patch(1, 0, 0), Piece::patch(0, 0, 512), Piece::patch(1, 1, 512)], 1024);
}

#[test]
fn neighbouring_pieces_do_not_overlap() {
    let first = Piece { slot: 1, first: [4, 7, 7], cells: [4, 1, 1], at: 512 };
    attempt(true, vec![first, Piece::patch(1, 1, 0)], 1024);
}
