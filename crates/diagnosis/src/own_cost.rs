//! What a watch itself takes: a hit is written on the CPU of its task, right after its end.

use event::Cpu;

use crate::model::Model;
use crate::naming::{Key, Piece};
use crate::quota::split_at;
use crate::term::Reason;

/// Charges the pieces from `first` on to the hits that were written meanwhile.
pub(crate) fn charge(model: &Model, cpu: Option<Cpu>, pieces: &mut Vec<Piece>, first: usize) {
    let hits = model.evidence.hits.iter();
    for hit in hits.filter(|hit| Some(hit.cpu()) == cpu) {
        let (begin_ns, end_ns) = (hit.end.as_ns(), (hit.end + hit.cost).as_ns());
        let begun = pieces.get(first).map(|piece| piece.begin_ns);
        let ended = pieces.last().map(|piece| piece.end_ns);
        let overlaps = begun < Some(end_ns) && Some(begin_ns) < ended;
        if begin_ns >= end_ns || !overlaps {
            continue;
        }
        split_at(pieces, first, begin_ns);
        split_at(pieces, first, end_ns);
        for piece in &mut pieces[first..] {
            let inside = begin_ns <= piece.begin_ns && piece.end_ns <= end_ns;
            let is_known = !matches!(
                piece.key,
                Key::Unexplained(Reason::LostEvents | Reason::SwitchNotRecorded)
            );
            if inside && is_known {
                piece.key = Key::OwnCost;
            }
        }
    }
}
