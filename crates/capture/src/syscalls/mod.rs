//! System calls with their contents: paths, addresses, heads of buffers, times, names of flags and
//! of errors. BPF reads them at the entry and the exit; here they become events as LTTng has them.
//!
//! What each call carries is data: `calls.tsv`, `flags.tsv` and `errors.tsv`.

mod address;
mod batch;
mod bytes;
mod contexts;
mod in_kernel;
mod names;
mod plan;
mod recorder;
mod summary;
mod table;

pub(crate) use in_kernel::InKernel;
pub use recorder::system_call_classes;
pub(crate) use recorder::{SyscallRecorder, Wanted};
pub use summary::CallsSummary;
