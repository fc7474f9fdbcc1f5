//! Reader of the rings that traced processes share with recorders
//! (`probe/include/rtscope/layout.h`).
//!
//! [`Layout`], [`Table`] and [`Records`] are pure over bytes; [`RingFile`] and [`Directory`] are
//! the thin layer that gets the bytes.
//!
//! # Design constraints
//! - A traced process may be hostile: every offset and length is bounded before it is used, what is
//!   mapped is guarded (a truncated file would kill us) and copied before it is believed, and what
//!   it says harms its own events at most.
//! - Every event that was offered is a record, a counted loss, or a counted malformed stretch.

mod described;
mod description;
mod directory;
mod file;
mod layout;
mod made;
mod mapping;
mod memory;
mod objects;
mod owned;
mod records;
mod switches;
mod table;
mod window;

pub use description::{EventDescription, FieldDescription, FieldKind, Note, Number};
pub use directory::{Announced, Directory, RECORDERS_MAX, RecorderLock, Seen, WithoutRings};
pub use file::{Liveness, RingFile};
pub use layout::{ClockKind, Layout, Mode};
pub use objects::{LoadedObject, objects};
pub use records::{Alike, Record, Records};
pub use switches::{FilterPlace, Switch};
pub use table::{Table, TableProblem};
pub use window::{Window, overwritten_before, readable};

/// The causes of losses, in the order of their counters.
pub const LOSS_NAMES: [&str; abi::rings::LOSSES] = [
    "ring full",
    "aborted too often",
    "thread without rseq",
    "all rings in use",
    "larger than a sub-buffer",
    "no ring on its CPU",
];

/// Events that one ring lost, by cause, in the order of [`LOSS_NAMES`].
pub type Losses = [u64; abi::rings::LOSSES];
