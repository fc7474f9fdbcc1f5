//! Version 6 of trace.dat: one table after the other.

use event::Result;

use super::input::Input;
use super::options::{self, Buffer, Options};
use super::tables::{
    Head, Kallsyms, event_formats, ftrace_formats, header_info, latency_text, saved_cmdlines, text,
};
use crate::limits::CPUS_MAX;

/// Length of the words `options  `, `latency  ` and `flyrecord`, with their zero byte.
const KIND_BYTES: u64 = 10;

/// Reads what follows the size of a page.
pub(super) fn read(input: &mut Input<'_>, head: &mut Head) -> Result<()> {
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
