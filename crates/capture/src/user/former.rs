//! What recorders of before left in rings: it is there for `snapshot` and `recover`, and no part of
//! what is recorded now.

use std::path::Path;

use event::{Error, ErrorKind};
use ring::{Liveness, Mode, RingFile};

use super::recorders::Recorders;
use super::session::Shared;

/// Whether a process that ended before the recording began left only what a flight recorder kept,
/// or what one that was killed had still to read.
pub(super) fn is_past(file: &RingFile, shared: &Shared, recorders: &Recorders) -> bool {
    let is_flight = |set: u32| {
        let mode = file.mode_of(set);
        mode.is_ok_and(|mode| mode == Mode::Overwrite) && file.holds_something(set).unwrap_or(true)
    };
    let sets = if file.layout().has_sets() {
        file.layout().sets()
    } else {
        1
    };
    file.layout().begin_ns < shared.wanted.begin_ns
        && ((0..sets).any(is_flight) || is_unread(file, recorders))
        && file.liveness() == Liveness::Dead
}

/// Whether a recorder that was killed had still to read something in it.
pub(super) fn is_unread(file: &RingFile, recorders: &Recorders) -> bool {
    let unread = file.is_left_unread(&|id| recorders.is_live(id));
    unread.unwrap_or(false)
}

/// What is said of `count` processes whose rings, in `folder`, hold such events.
pub(super) fn left_unread(count: usize, folder: &Path) -> Error {
    let what = "what recorders that were killed had not read";
    let folder = folder.display();
    Error::new(ErrorKind::Unsupported, what)
        .found(format!("events or losses of {count} processes in {folder}"))
        .fix("rtscope recover, when those processes have ended")
}
