//! A recording of ftrace's rings, wherever it was found: its classes, its tables, its pages.

use std::collections::{BTreeSet, HashMap};

use event::{ClassId, Cpu, EventClass, Result};

use crate::dat::DatSymbols;
use crate::limits::CPUS_MAX;
use crate::lttng::{self, Reading};
use crate::stream::PageStream;
use crate::{Formats, PageLayout};

/// Bytes of pages that all streams of one recording hold in memory at once.
const BUFFERS_BYTES_MAX: usize = 128 << 20;
/// Streams of one recording: the CPUs of all its instances. The rest is left out.
const STREAMS_MAX: usize = 1 << 14;

/// What is known of a recording besides its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `trace.dat`, `ftrace pages`.
    pub format: &'static str,
    /// The format's version; empty when it has none.
    pub version: &'static str,
    /// ftrace's name of the clock: `mono`, `local`, …
    pub clock: String,
    /// Wall clock (since 1970, UTC) minus the trace's; zero when nobody says.
    pub wall_offset_ns: i64,
    /// Facts of the machine and the tracer under LTTng's names.
    pub environment: Vec<(String, String)>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// CPUs whose pages should be there and are not.
    pub missing: Vec<Cpu>,
    /// Formats of events that could not be understood.
    pub broken_formats: u64,
}

/// The CPUs that lie between others and are not among them.
pub(crate) fn left_out(cpus: &[Cpu]) -> Vec<Cpu> {
    let cpus: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.0).collect();
    let last = cpus.last().copied().unwrap_or(0).min(CPUS_MAX);
    let missing = (0..last).filter(|cpu| !cpus.contains(cpu));
    missing.map(Cpu).collect()
}

/// Names of tasks, and texts that records point to.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    tasks: HashMap<i32, Box<str>>,
    printk: HashMap<u64, Box<str>>,
}

impl Tables {
    /// From `saved_cmdlines` and `printk_formats`; lines that make no sense are left out.
    pub fn parse(saved_cmdlines: &str, printk_formats: &str) -> Self {
        let task = |line: &str| {
            let (tid, name) = line.trim_start().split_once(' ')?;
            Some((tid.parse().ok()?, name.trim_end().into()))
        };
        // `0xffffffffbb2d4220 : "CPU_ON"`
        let format = |line: &str| {
            let (address, text) = line.split_once(" : ")?;
            let address = address.trim().strip_prefix("0x")?;
            let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            Some((u64::from_str_radix(address, 16).ok()?, unescaped(text)))
        };
        Tables {
            tasks: saved_cmdlines.lines().filter_map(task).collect(),
            printk: printk_formats.lines().filter_map(format).collect(),
        }
    }

    /// The name of a task, as far as the recorder kept it.
    pub fn task(&self, tid: i32) -> &str {
        match tid {
            0 => "<idle>",
            _ => self.tasks.get(&tid).map_or("<...>", |name| name),
        }
    }

    /// The text at an address of the kernel.
    pub fn text(&self, address: u64) -> Option<&str> {
        self.printk.get(&address).map(|text| &**text)
    }
}

/// A text as C writes it between quotes.
fn unescaped(text: &str) -> Box<str> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (letter, false) => plain.push(letter),
        }
    }
    plain.into()
}

/// Where the kernel's symbols are.
#[derive(Debug)]
pub(crate) enum SymbolSource {
    Dat(DatSymbols),
    Text(std::path::PathBuf),
}

/// What a recording is made of.
pub(crate) struct Parts {
    pub facts: Facts,
    pub formats: Formats,
    pub tables: Tables,
    pub streams: Vec<PageStream>,
    pub symbols: Option<SymbolSource>,
}

/// An open recording.
#[derive(Debug)]
pub struct Recording {
    facts: Facts,
    layout: PageLayout,
    classes: Vec<EventClass>,
    pub(crate) readings: Vec<Reading>,
    /// From the kernel's event number to the index of its class.
    by_id: Vec<Option<u32>>,
    pub(crate) tables: Tables,
    streams: Vec<PageStream>,
    symbols: Option<SymbolSource>,
}

impl Recording {
    pub(crate) fn new(parts: Parts) -> Recording {
        let Parts {
            mut facts,
            formats,
            tables,
            mut streams,
            symbols,
        } = parts;
        if streams.len() > STREAMS_MAX {
            let left_out = streams.len() - STREAMS_MAX;
            facts
                .notes
                .push(format!("{left_out} streams were left out"));
            streams.truncate(STREAMS_MAX);
        }
        let share = BUFFERS_BYTES_MAX / streams.len().max(1);
        streams
            .iter_mut()
            .for_each(|stream| stream.limit_buffer(share));
        let mut by_id = Vec::new();
        let (mut classes, mut readings) = (Vec::new(), Vec::new());
        for (format, (plan, class)) in formats.iter().zip(lttng::compile(&formats)) {
            let (reading, class) = Reading::new(format, &plan, class);
            let id = usize::from(format.id);
            by_id.resize(by_id.len().max(id + 1), None);
            by_id[id] = Some(class.id.0);
            classes.push(class);
            readings.push(reading);
        }
        Recording {
            facts,
            layout: formats.layout,
            classes,
            readings,
            by_id,
            tables,
            streams,
            symbols,
        }
    }

    /// What is known of it besides its events.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Its event classes, under LTTng's names; a [`ClassId`] is an index into this list.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    /// The pages of each CPU of each instance.
    pub fn streams(&self) -> &[PageStream] {
        &self.streams
    }

    /// The text of `/proc/kallsyms`; empty when the recording has none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn kallsyms(&self) -> Result<String> {
        match &self.symbols {
            None => Ok(String::new()),
            Some(SymbolSource::Dat(dat)) => dat.text(),
            Some(SymbolSource::Text(path)) => crate::directory::text(path),
        }
    }

    pub(crate) fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Whether it may have events that no format tells of: trace-cmd keeps the formats of all that
    /// it records, in a directory some may be left out.
    pub(crate) fn has_strangers(&self) -> bool {
        self.facts.format != crate::dat::FORMAT || self.facts.broken_formats > 0
    }

    /// The class of the kernel's event number.
    #[inline]
    pub(crate) fn class_of(&self, id: u16) -> Option<ClassId> {
        let class = self.by_id.get(usize::from(id)).copied().flatten();
        class.map(ClassId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_between_others_are_left_out() {
        let check = |cpus: &[u32], expect: &[u32]| {
            let cpus: Vec<Cpu> = cpus.iter().copied().map(Cpu).collect();
            let expect: Vec<Cpu> = expect.iter().copied().map(Cpu).collect();
            assert_eq!(left_out(&cpus), expect);
        };
        check(&[0, 1, 2], &[]);
        check(&[3, 1], &[0, 2]);
        check(&[], &[]);
    }

    #[test]
    fn tables_keep_what_makes_sense() {
        let tables = Tables::parse(
            "12 irq/9 a b\nnonsense\n 7 x\n",
            "0xff20 : \"CPU \\\"%s\\\"\\n\"\n0xzz : \"no\"\nnone\n",
        );
        assert_eq!(tables.task(12), "irq/9 a b");
        assert_eq!((tables.task(7), tables.task(0)), ("x", "<idle>"));
        assert_eq!(tables.task(99), "<...>");
        assert_eq!(tables.text(0xff20), Some("CPU \"%s\"\n"));
        assert_eq!(tables.text(1), None);
    }
}
