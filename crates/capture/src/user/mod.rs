//! Applications: their rings into a trace below `ust/`, beside the kernel's.

mod app_contexts;
mod classes;
mod clock;
mod contexts;
mod filter;
mod finder;
mod forgotten;
mod former;
mod lane;
mod list;
mod look;
mod map;
mod metadata;
mod place;
mod places;
mod proc;
mod process;
mod recorders;
mod refusals;
mod room;
mod scribe;
mod session;
mod wanted;
mod written;

pub use forgotten::left_by_killed_recorders;
pub(crate) use forgotten::{switch_off, switch_off_left_by};
pub use list::{Listed, list};
pub(crate) use look::{Held, look_at, write as write_rings};
pub use look::{LookSummary, Whose, look};
pub(crate) use map::{loaded_code, loaded_objects};
pub(crate) use places::{directories, is_named, make_way, own};
pub use process::UserProcess;
pub use room::RING_BYTES_USUAL;
pub(crate) use session::{PARTS, UserFigures, UserRecorder, UserTarget, UserTurn};
pub use session::{UserConfig, UserSummary};
pub use wanted::LOG_LEVELS;
