//! ftrace from user space: tracefs instances of our own, `format` files, ring-buffer pages.
//!
//! # How to use it
//! [`Tracefs::find`], then [`Instance::create`] and its setters; read sub-buffers with a
//! [`PagePipe`] per CPU and walk them with [`Page::parse`] and [`Page::events`].
//!
//! # Design constraints
//! - The global instance, and instances of others, are never touched: all writes go below an
//!   [`Instance`] that this process made, and it is removed on drop. A [`BootRing`] is the one that
//!   the kernel's command line made for us.
//! - [`Page`] and [`EventFormat`] are pure over bytes and text: hostile input is an error or a
//!   [`PageDamage`], never a panic.
//! - Nobody sleeps on a pipe here. A sleeping reader makes the traced CPU send it a wake-up; our
//!   readers look at the pipes now and then from a housekeeping CPU.

mod boot;
mod bytes;
mod dat;
mod decl;
mod directory;
mod dynamic;
mod format;
mod formats;
mod functions;
mod header;
mod instance;
mod leftovers;
mod limits;
pub mod lttng;
mod page;
mod perfetto;
mod pipe;
mod reader;
mod recording;
mod select;
mod stats;
mod stream;
mod task_names;
mod text;
mod tracefs;
mod whole_page;

pub use boot::{BOOT_INSTANCE, BootRing, behind_monotonic_ns};
pub use bytes::Order;
pub use dat::is_trace_dat;
pub use directory::is_page_directory;
pub use dynamic::DynamicEvents;
pub use format::{EventFormat, FormatField, Kind, Scalar};
pub use formats::Formats;
pub use functions::Tracer;
pub use header::PageLayout;
pub use instance::{Instance, StackKinds, Switch};
pub use leftovers::Leftover;
pub use lttng::RecordRef;
pub use page::{Page, PageDamage, PageEvents, RawEvent};
pub use perfetto::{PerfettoReader, PerfettoRecording, is_perfetto};
pub use pipe::{PagePipe, Spliced, Splicer};
pub use reader::{Halt, Hole, Loss, PageReader};
pub use recording::{Facts, Recording};
pub use select::EventName;
pub use stats::CpuStatistics;
pub use stream::PageStream;
pub use text::{TextEvent, TextReader, TextRecording, is_ftrace_text};
pub use tracefs::Tracefs;
