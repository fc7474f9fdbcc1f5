//! The head of a trace.dat: what the file says of itself before any event.
//!
//! The layouts are those of trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use event::{Error, ErrorKind, Result};

use super::input::Input;
use super::options::{self, Buffer, Options};
use super::pack::Packing;
use super::sections;
use crate::bytes::Order;

/// What every trace.dat begins with.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// The version that introduced sections.
const SECTIONS_SINCE: u32 = 7;
/// Numbers of events have 16 bits.
const FORMATS_MAX: usize = 1 << 16;
/// Names of CPUs, as many as a kernel can be built for.
pub(super) const CPUS_MAX: u32 = 8192;
/// Length of the words `options  `, `latency  ` and `flyrecord`, with their zero byte.
const KIND_BYTES: u64 = 10;

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

/// Reads the head of the file behind `input`.
pub(super) fn read(mut input: Input<'_>) -> Result<Head> {
    input.literal(MAGIC, "mark of a trace.dat")?;
    let version = input.text("version")?;
    let version: u32 = version.parse().map_err(|_| input.corrupt("version"))?;
    if !(6..=7).contains(&version) {
        let error = Error::new(ErrorKind::Unsupported, "unknown version of a trace.dat");
        return Err(error
            .found(version.to_string())
            .fix("trace-cmd convert --file-version 7 -i FILE -o NEW"));
    }
    let order = match input.u8("byte order")? {
        0 => Order::Little,
        _ => Order::Big,
    };
    input.set_order(order);
    // The width of a long in user space; the kernel's stands in header_page.
    input.u8("width of a long")?;
    let mut head = Head {
        version,
        order,
        page_bytes: input.u32("size of a page")?,
        ..Head::default()
    };
    if version >= SECTIONS_SINCE {
        sections::read(&mut input, &mut head)?;
    } else {
        read_in_order(&mut input, &mut head)?;
    }
    Ok(head)
}

/// Version 6: one table after the other.
fn read_in_order(input: &mut Input<'_>, head: &mut Head) -> Result<()> {
    head.header_page = header_info(input)?;
    ftrace_formats(input, head)?;
    event_formats(input, head)?;
    let size = u64::from(input.u32("size of kallsyms")?);
    let at = input.at();
    head.kallsyms = (size > 0).then_some(Kallsyms::Bytes { at, size });
    input.skip(size, "kallsyms")?;
    let size = input.u32("size of the printk formats")?;
    head.printk_formats = text(input.take(u64::from(size), "printk formats")?);
    head.saved_cmdlines = saved_cmdlines(input)?;
    let cpus = input.u32("number of CPUs")?;
    head.options.cpus = cpus;
    let is_flyrecord = options_then_kind(input, &mut head.options)?;
    if !is_flyrecord {
        return Err(latency_text());
    }
    let mut top = Buffer {
        cpus: cpu_table(input, &head.options)?,
        ..Buffer::default()
    };
    if head.options.clock_follows {
        let size = input.u64("size of the trace clock")?;
        top.clock = options::chosen_clock(&text(input.take(size, "trace clock")?));
    }
    head.buffers.push(top);
    let others = std::mem::take(&mut head.options.buffers);
    for other in others {
        let read = buffer_in_order(input, &head.options, other);
        match read {
            Ok(buffer) => head.buffers.push(buffer),
            Err(error) => head.notes.push(format!("a buffer was left out: {error}")),
        }
    }
    Ok(())
}

fn buffer_in_order(input: &mut Input<'_>, top: &Options, buffer: Buffer) -> Result<Buffer> {
    input.seek(buffer.at);
    let mut own = Options {
        cpus: top.cpus,
        ..Options::default()
    };
    if !options_then_kind(input, &mut own)? {
        return Err(latency_text());
    }
    Ok(Buffer {
        cpus: cpu_table(input, &own)?,
        ..buffer
    })
}

/// Takes the options, if there are some, and says whether events follow, not text.
fn options_then_kind(input: &mut Input<'_>, options: &mut Options) -> Result<bool> {
    let mut kind = input.take(KIND_BYTES, "options")?;
    if kind.starts_with(b"options") {
        options.read_in_order(input)?;
        kind = input.take(KIND_BYTES, "kind of the events")?;
    }
    match kind.as_slice() {
        kind if kind.starts_with(b"flyrecord") => Ok(true),
        kind if kind.starts_with(b"latency") => Ok(false),
        _ => Err(input.corrupt("word 'flyrecord' or 'latency'")),
    }
}

pub(super) fn latency_text() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "this trace.dat holds a latency tracer's text",
    )
    .found("no events")
    .fix("trace-cmd report -i FILE > trace.txt, and open that")
}

fn cpu_table(input: &mut Input<'_>, options: &Options) -> Result<Vec<(u32, u64, u64)>> {
    if options.cpus > CPUS_MAX {
        return Err(input.corrupt(&format!("number of CPUs below {CPUS_MAX}")));
    }
    let mut cpus = Vec::new();
    for cpu in 0..options.cpus {
        let at = input.u64("place of a CPU's data")?;
        cpus.push((cpu, at, input.u64("size of a CPU's data")?));
    }
    Ok(cpus)
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

pub(super) fn saved_cmdlines(input: &mut Input<'_>) -> Result<String> {
    let size = input.u64("size of the saved command lines")?;
    Ok(text(input.take(size, "saved command lines")?))
}

pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
