//! The options of a trace.dat: clocks, buffers, facts of the machine.

use event::Result;

use super::input::Input;
use crate::limits::CPUS_MAX;

/// From ticks of the time stamp counter to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tsc {
    pub mult: u32,
    pub shift: u32,
}

/// One buffer: the events of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Its instance's name; empty for the top one.
    pub name: String,
    pub clock: String,
    /// Where it begins.
    pub at: u64,
    /// Bytes of a page, when it says so.
    pub page_bytes: Option<u32>,
    /// CPU, place and size of its data.
    pub cpus: Vec<(u32, u64, u64)>,
}

/// What the options say.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub cpus: u32,
    /// Wall clock minus the trace's, in nanoseconds.
    pub date_ns: Option<i64>,
    /// To add to every time, in nanoseconds.
    pub offset_ns: i64,
    pub tsc: Option<Tsc>,
    /// The clock's name stands behind the table of CPUs (version 6).
    pub clock_follows: bool,
    /// What the option says of the clock, when it does (version 7).
    pub clock: Option<String>,
    pub uname: Option<String>,
    pub tracer_version: Option<String>,
    /// Bytes of the file that the tracer says it lost, and why, CPU by CPU.
    pub buffers: Vec<Buffer>,
    /// Where tables are (version 7): id and place.
    pub tables: Vec<(u16, u64)>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Ids of options (trace-cmd.dat.v7(5)).
const DONE: u16 = 0;
const DATE: u16 = 1;
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const OFFSET: u16 = 7;
const CPUCOUNT: u16 = 8;
const VERSION: u16 = 9;
const TIME_SHIFT: u16 = 12;
const GUEST: u16 = 13;
const TSC2NSEC: u16 = 14;
pub(super) const HEADER_INFO: u16 = 16;
pub(super) const FTRACE_EVENTS: u16 = 17;
pub(super) const EVENT_FORMATS: u16 = 18;
pub(super) const KALLSYMS: u16 = 19;
pub(super) const PRINTK: u16 = 20;
pub(super) const CMDLINES: u16 = 21;
const BUFFER_TEXT: u16 = 22;
/// Buffers of one file; nobody records more instances.
const BUFFERS_MAX: usize = 1024;
/// Notes of one file.
const NOTES_MAX: usize = 16;

impl Options {
    /// Reads the options of version 6, up to and with the one that ends them.
    pub fn read_in_order(&mut self, input: &mut Input<'_>) -> Result<()> {
        loop {
            let id = input.u16("option")?;
            if id == DONE {
                return Ok(());
            }
            let size = input.u32("size of an option")?;
            let data = input.take(u64::from(size), "option")?;
            let mut data = input.inside(&data);
            self.option(id, &mut data, false)?;
        }
    }

    /// Reads the options of one section of version 7; returns where the next one is.
    pub fn read_section(&mut self, input: &mut Input<'_>) -> Result<Option<u64>> {
        loop {
            let id = input.u16("option")?;
            let size = input.u32("size of an option")?;
            let data = input.take(u64::from(size), "option")?;
            let mut data = input.inside(&data);
            if id == DONE {
                let next = data.u64("place of the next options")?;
                return Ok((next != 0).then_some(next));
            }
            self.option(id, &mut data, true)?;
        }
    }

    fn option(&mut self, id: u16, data: &mut Input<'_>, sections: bool) -> Result<()> {
        match id {
            DATE => self.date_ns = number(&whole_text(data)?).map(|us| us.saturating_mul(1000)),
            OFFSET => {
                let offset_ns = number(&whole_text(data)?).unwrap_or(0);
                self.offset_ns = self.offset_ns.saturating_add(offset_ns);
            }
            BUFFER if self.buffers.len() < BUFFERS_MAX => {
                let buffer = buffer(data, sections)?;
                self.buffers.push(buffer);
            }
            TRACECLOCK if sections => self.clock = Some(chosen_clock(&whole_text(data)?)),
            TRACECLOCK => self.clock_follows = true,
            UNAME => self.uname = Some(whole_text(data)?),
            VERSION => self.tracer_version = Some(whole_text(data)?),
            CPUCOUNT => self.cpus = data.u32("number of CPUs")?,
            TSC2NSEC => {
                let (mult, shift) = (data.u32("multiplier")?, data.u32("shift")?);
                self.tsc = (mult != 0 && shift < 64).then_some(Tsc { mult, shift });
            }
            TIME_SHIFT => self.note("times of a guest are not moved to its host's clock"),
            GUEST => self.note("the guests of this host are not opened with it"),
            BUFFER_TEXT => self.note("a latency tracer's text is not read"),
            HEADER_INFO..=CMDLINES => {
                let place = data.u64("place of a table")?;
                self.tables.push((id, place));
            }
            // Statistics, hooks, memory maps and session ids say nothing about events.
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        if self.notes.len() < NOTES_MAX && !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// A text option: up to its zero byte, or all of it.
fn whole_text(data: &mut Input<'_>) -> Result<String> {
    let bytes = data.take(data.left(), "text")?;
    let text = String::from_utf8_lossy(crate::bytes::until_zero(&bytes));
    Ok(text.trim().to_owned())
}

/// A number as C's `strtoll` reads it: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse::<i64>().ok()?,
    };
    Some(sign * value)
}

/// `local global [mono]` → `mono`; a name alone is itself.
pub(crate) fn chosen_clock(text: &str) -> String {
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen
        .map_or(text, |(clock, _)| clock)
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .to_owned()
}

fn buffer(data: &mut Input<'_>, sections: bool) -> Result<Buffer> {
    let mut buffer = Buffer {
        at: data.u64("place of a buffer")?,
        name: data.text("name of a buffer")?,
        ..Buffer::default()
    };
    if !sections {
        return Ok(buffer);
    }
    buffer.clock = data.text("clock of a buffer")?;
    // Early writers of version 7 leave the size of a page out.
    let mut count = data.u32("number of CPUs")?;
    if data.left() != u64::from(count) * 20 {
        buffer.page_bytes = Some(count);
        count = data.u32("number of CPUs")?;
    }
    if count > CPUS_MAX {
        return Err(data.corrupt(&format!("number of CPUs below {CPUS_MAX}")));
    }
    for _ in 0..count {
        let cpu = data.u32("CPU")?;
        let at = data.u64("place of a CPU's data")?;
        let size = data.u64("size of a CPU's data")?;
        buffer.cpus.push((cpu, at, size));
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_clocks_are_read_as_trace_cmd_writes_them() {
        let check = |text: &str, expect| assert_eq!(number(text), expect, "{text}");
        check("0x1f", Some(31));
        check("-0x10", Some(-16));
        check("42", Some(42));
        check("", None);
        check("9223372036854775808", None);
        assert_eq!(chosen_clock("local global [mono] boot\n"), "mono");
        assert_eq!(chosen_clock("mono\0"), "mono");
        assert_eq!(chosen_clock("]["), "][");
    }
}
