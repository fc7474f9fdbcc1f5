//! Applications: their rings into a trace below `ust/`, beside the kernel's.

mod classes;
mod clock;
mod filter;
mod process;
mod session;
mod wanted;

pub use process::UserProcess;
pub use session::{UserConfig, UserSummary};
pub(crate) use session::{UserRecorder, UserTarget};
