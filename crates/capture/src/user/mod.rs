//! Applications: their rings into a trace below `ust/`, beside the kernel's.

mod classes;
mod clock;
mod contexts;
mod filter;
mod forgotten;
mod lane;
mod look;
mod map;
mod metadata;
mod place;
mod places;
mod proc;
mod process;
mod refusals;
mod scribe;
mod session;
mod wanted;
mod written;

pub use forgotten::left_by_killed_recorders;
pub(crate) use forgotten::switch_off;
pub(crate) use look::write as write_rings;
pub use look::{LookSummary, Whose, look};
pub(crate) use places::{directories, make_way};
pub use process::UserProcess;
pub(crate) use session::{PARTS, UserRecorder, UserTarget};
pub use session::{UserConfig, UserSummary};
