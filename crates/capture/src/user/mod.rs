//! Applications: their rings into a trace below `ust/`, beside the kernel's.

mod classes;
mod clock;
mod process;
mod session;

pub use process::UserProcess;
pub use session::{UserConfig, UserSummary};
pub(crate) use session::{UserRecorder, UserTarget};
