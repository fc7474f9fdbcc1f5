//! Version 7 of trace.dat: sections that options point to.

use std::collections::BTreeSet;

use event::Result;

use super::input::Input;
use super::options;
use super::pack::Packing;
use super::tables::{self, Head, Kallsyms};

/// The section's bytes are compressed.
const COMPRESSED: u16 = 1;
/// The id of a section of options.
const OPTIONS: u16 = 0;
/// No section is larger, not even the symbols of a kernel with many modules.
const SECTION_BYTES_MAX: u32 = 64 << 20;
/// Sections of options; each may name one more.
const OPTION_SECTIONS_MAX: usize = 1024;

/// Reads what follows the size of a page.
pub(super) fn read(input: &mut Input<'_>, head: &mut Head) -> Result<()> {
    let packing = Packing::named(&input.text("name of the compression")?)?;
    head.packing = Some(packing);
    input.text("version of the compression")?;
    let mut next = Some(input.u64("place of the options")?);
    let mut seen = BTreeSet::new();
    while let Some(at) = next {
        if !seen.insert(at) || seen.len() > OPTION_SECTIONS_MAX {
            return Err(input.corrupt("end of the options: they lead around in a circle"));
        }
        let bytes = section(input, at, OPTIONS, packing)?;
        next = head.options.read_section(&mut input.inside(&bytes))?;
    }
    head.buffers = std::mem::take(&mut head.options.buffers);
    if head.buffers.is_empty() && !head.options.notes.is_empty() {
        return Err(tables::latency_text());
    }
    for (id, at) in std::mem::take(&mut head.options.tables) {
        table(input, head, id, at, packing)?;
    }
    Ok(())
}

fn table(input: &mut Input<'_>, head: &mut Head, id: u16, at: u64, packing: Packing) -> Result<()> {
    if id == options::KALLSYMS {
        head.kallsyms = Some(Kallsyms::Section { at });
        return Ok(());
    }
    let bytes = section(input, at, id, packing)?;
    let mut input = input.inside(&bytes);
    match id {
        options::HEADER_INFO => head.header_page = tables::header_info(&mut input)?,
        options::FTRACE_EVENTS => tables::ftrace_formats(&mut input, head)?,
        options::EVENT_FORMATS => tables::event_formats(&mut input, head)?,
        options::PRINTK => head.printk_formats = sized_text(&mut input)?,
        options::CMDLINES => head.saved_cmdlines = tables::saved_cmdlines(&mut input)?,
        _ => {}
    }
    Ok(())
}

/// Four bytes of size, then a text.
fn sized_text(input: &mut Input<'_>) -> Result<String> {
    let size = input.u32("size of a table")?;
    Ok(tables::text(input.take(u64::from(size), "table")?))
}

/// The symbols of the section at `at`.
pub(super) fn kallsyms(input: &mut Input<'_>, at: u64, packing: Packing) -> Result<String> {
    let bytes = section(input, at, options::KALLSYMS, packing)?;
    sized_text(&mut input.inside(&bytes))
}

/// Whether the data of the section at `at` is compressed.
pub(super) fn is_compressed(input: &mut Input<'_>, at: u64) -> Result<bool> {
    input.seek(at);
    input.u16("id of a section")?;
    Ok(input.u16("flags of a section")? & COMPRESSED != 0)
}

/// The bytes of the section at `at`, which should be an `id`, decompressed.
fn section(input: &mut Input<'_>, at: u64, id: u16, packing: Packing) -> Result<Vec<u8>> {
    input.seek(at);
    let found = input.u16("id of a section")?;
    if found != id {
        return Err(input.corrupt(&format!("section {id}, found section {found},")));
    }
    let flags = input.u16("flags of a section")?;
    input.u32("description of a section")?;
    let size = input.u64("size of a section")?;
    if flags & COMPRESSED == 0 {
        return input.take(size, "section");
    }
    let packed = input.u32("size of compressed bytes")?;
    let size = input.u32("size of decompressed bytes")?;
    if size > SECTION_BYTES_MAX {
        return Err(input.corrupt(&format!("section below {SECTION_BYTES_MAX} bytes")));
    }
    let packed = input.take(u64::from(packed), "compressed bytes")?;
    let mut bytes = Vec::new();
    let unpacked = packing.unpack(&packed, size as usize, &mut bytes);
    unpacked.map_err(|reason| input.corrupt(&reason))?;
    Ok(bytes)
}
