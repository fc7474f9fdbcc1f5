//! Evidence: what the in-kernel watch sends, what a snapshot holds, what is printed.
//!
//! One vocabulary for all three, so that the same hit reads the same everywhere. The values of its
//! enumerations and the encoding in a snapshot are those of `docs/format/evidence.md`.

mod blocked;
mod hit;
mod late;
mod section;
mod stack;

pub use blocked::{Blocked, BlockedOn, Throttled};
pub use hit::{EndKind, Hit, Step, StepKind, TaskRef, irq};
pub use late::LateOne;
pub use section::{Evidence, LateTimer, Mode, PreemptionModel, PreemptionOff};
pub use stack::{Frame, Stack, unnamed};
