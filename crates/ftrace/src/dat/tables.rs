//! What a trace.dat's head holds, in both versions: its tables.

use event::{Error, ErrorKind, Result};

use super::input::Input;
use super::options::{Buffer, Options};
use super::pack::Packing;
use crate::bytes::Order;

/// Numbers of events have 16 bits.
const FORMATS_MAX: usize = 1 << 16;

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub version: u32,
    pub order: Order,
    pub page_bytes: u32,
    pub packing: Option<Packing>,
    /// `events/header_page`.
    pub header_page: String,
    /// Systems and texts of format files.
    pub formats: Vec<(String, String)>,
    /// Where the kernel's symbols are.
    pub kallsyms: Option<Kallsyms>,
    pub printk_formats: String,
    pub saved_cmdlines: String,
    pub options: Options,
    pub buffers: Vec<Buffer>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Where the kernel's symbols are; they are many, and few need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kallsyms {
    Bytes { at: u64, size: u64 },
    Section { at: u64 },
}

/// The refusal of a file that has no events.
pub(super) fn latency_text() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "this trace.dat holds a latency tracer's text",
    )
    .found("no events")
    .fix("trace-cmd report -i FILE > trace.txt, and open that")
}

/// `header_page` and `header_event`; only the first says anything that is needed.
pub(super) fn header_info(input: &mut Input<'_>) -> Result<String> {
    input.literal(b"header_page\0", "table 'header_page'")?;
    let size = input.u64("size of header_page")?;
    let header_page = text(input.take(size, "header_page")?);
    input.literal(b"header_event\0", "table 'header_event'")?;
    let size = input.u64("size of header_event")?;
    input.skip(size, "header_event")?;
    Ok(header_page)
}

/// Formats of the tracers' own events.
pub(super) fn ftrace_formats(input: &mut Input<'_>, head: &mut Head) -> Result<()> {
    let count = input.u32("number of ftrace's formats")?;
    formats(input, head, "ftrace", count)
}

/// Formats of the tracepoints, system by system.
pub(super) fn event_formats(input: &mut Input<'_>, head: &mut Head) -> Result<()> {
    for _ in 0..input.u32("number of systems")? {
        let system = input.text("name of a system")?;
        let count = input.u32("number of events")?;
        formats(input, head, &system, count)?;
    }
    Ok(())
}

fn formats(input: &mut Input<'_>, head: &mut Head, system: &str, count: u32) -> Result<()> {
    for _ in 0..count {
        if head.formats.len() >= FORMATS_MAX {
            return Err(input.corrupt("end of the formats: there are more than numbers of events"));
        }
        let size = input.u64("size of a format")?;
        let format = text(input.take(size, "format")?);
        head.formats.push((system.to_owned(), format));
    }
    Ok(())
}

/// Names of tasks.
pub(super) fn saved_cmdlines(input: &mut Input<'_>) -> Result<String> {
    let size = input.u64("size of the saved command lines")?;
    Ok(text(input.take(size, "saved command lines")?))
}

/// Bytes that should be UTF-8.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
