//! Lists of what is sent to other ranks and received from them.

use comove_kernels::messages::{MessageSizes, Peer, Pieces, Rows};

/// Boxes of cells that are sent to ghost copies. Peers' ranges count cells.
#[derive(Clone, Debug, Default)]
pub struct CellLinks {
    /// From own groups.
    pub send: Pieces,
    /// Into ghosts.
    pub receive: Pieces,
    /// In the order of their ranks.
    pub peers: Vec<Peer>,
}

/// Whole slots of a pool that are sent to ghost copies. Peers' ranges count slots.
#[derive(Clone, Debug, Default)]
pub struct SlotLinks {
    /// Slots to send; one may be sent to several ranks.
    pub send: Rows,
    /// Slots to fill.
    pub receive: Rows,
    /// In the order of their ranks.
    pub peers: Vec<Peer>,
}

/// Raises what is needed for messages by those of an exchange whose units take so many bytes.
///
/// * `needs`: by rank
pub(crate) fn need(needs: &mut [MessageSizes], peers: &[Peer], unit: usize) {
    for peer in peers {
        let need = MessageSizes { send: peer.send.len() * unit, receive: peer.receive.len() * unit };
        needs[peer.rank] = needs[peer.rank].or(need);
    }
}

/// Peers of two lists in the order of ranks, each entry of which takes so many units.
pub(crate) fn peers(send: &[(u32, usize)], receive: &[(u32, usize)]) -> Vec<Peer> {
    let mut ranks: Vec<u32> = send.iter().chain(receive).map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut ends = [0; 2];
    let of = |rank: u32| {
        let [send, receive] = [send, receive].map(|list| {
            let of_rank = list.iter().filter(|entry| entry.0 == rank);
            of_rank.map(|entry| entry.1).sum::<usize>()
        });
        let starts = ends;
        ends = [ends[0] + send, ends[1] + receive];
        Peer { rank: rank as usize, send: starts[0]..ends[0], receive: starts[1]..ends[1] }
    };
    ranks.into_iter().map(of).collect()
}

/// The links of lists of ranks and slots that both sides have in one order.
pub(crate) fn links_of_slots(send: &[(u32, u32)], receive: &[(u32, u32)]) -> SlotLinks {
    let units = |list: &[(u32, u32)]| list.iter().map(|(rank, _)| (*rank, 1)).collect::<Vec<(u32, usize)>>();
    let slots = |list: &[(u32, u32)]| list.iter().map(|(_, slot)| *slot).collect::<Vec<_>>();
    SlotLinks {
        send: Rows::to_pack(slots(send)),
        receive: Rows::to_unpack(slots(receive)),
        peers: peers(&units(send), &units(receive)),
    }
}
