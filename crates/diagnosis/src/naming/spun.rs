//! What a task spun for a lock is no work of its own: the kernel tells of its wait, or a watch's
//! looks found it spinning.

use super::{Key, Piece};
use crate::at_work;
use crate::model::{Model, Timeline};
use crate::phases::{Doing, Phase};
use crate::quota;
use crate::term::Reason;

/// Gives their names to the pieces from `first` on in which the task of a phase spun.
pub(super) fn settle(
    model: &Model,
    phase: &Phase,
    timeline: &Timeline,
    (pieces, first): (&mut Vec<Piece>, usize),
) {
    let Doing::Running { tid } = phase.doing else {
        return;
    };
    told(timeline, pieces, first);
    for span in at_work::spun(model, tid, (phase.begin_ns, phase.end_ns)) {
        spins_in(span, pieces, first);
    }
}

/// As far as the kernel tells of its wait for a lock.
fn told(timeline: &Timeline, pieces: &mut Vec<Piece>, first: usize) {
    let begin_ns = pieces.get(first).map_or(i64::MAX, |piece| piece.begin_ns);
    let end_ns = pieces.last().map_or(i64::MIN, |piece| piece.end_ns);
    let waits = &timeline.contended;
    let place = waits.partition_point(|lock| lock.begin_ns < begin_ns);
    let within = waits[place..].iter();
    for lock in within.take_while(|lock| lock.begin_ns < end_ns) {
        let begun = pieces[first..].iter().find(|piece| {
            let here = piece.begin_ns <= lock.begin_ns && lock.begin_ns < piece.end_ns;
            here && matches!(piece.key, Key::Ran(_))
        });
        let Some(end_ns) = begun.map(|piece| piece.end_ns.min(lock.end_ns)) else {
            continue;
        };
        spins_in((lock.begin_ns, end_ns), pieces, first);
    }
}

/// What a task seemed to work in a stretch, it spun.
fn spins_in((begin_ns, end_ns): (i64, i64), pieces: &mut Vec<Piece>, first: usize) {
    quota::split_at(pieces, first, begin_ns);
    quota::split_at(pieces, first, end_ns);
    for piece in &mut pieces[first..] {
        let within = begin_ns <= piece.begin_ns && piece.end_ns <= end_ns;
        if within && matches!(piece.key, Key::Ran(_)) {
            piece.key = Key::Unexplained(Reason::SpunForLock);
        }
    }
}
