//! Applications: their rings into a trace below `ust/`, beside the kernel's.

mod classes;
mod clock;
mod filter;
mod look;
mod process;
mod session;
mod wanted;

pub(crate) use look::write as write_rings;
pub use look::{LookSummary, Whose, look};
pub use process::UserProcess;
pub use session::{UserConfig, UserSummary};
pub(crate) use session::{UserRecorder, UserTarget, directories};
