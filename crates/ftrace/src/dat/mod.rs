//! trace-cmd's `trace.dat`, versions 6 and 7.
//!
//! The way of the data: `head` picks `in_order` (version 6) or `sections` (version 7, by
//! `options`), which read `tables` over `input`, decompressed by `pack`; then a [`Recording`].

mod head;
mod in_order;
mod input;
mod options;
pub(crate) mod pack;
mod sections;
mod tables;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use event::{Cpu, Error, Result};

use crate::recording::{Facts, Parts, Recording, Tables};
use crate::stream::{PageStream, Place, TimeScale};
use crate::{EventFormat, Formats, PageLayout};
use input::Input;
use options::Buffer;
pub(crate) use options::{Tsc, chosen_clock};
use pack::Packing;
use tables::{Head, Kallsyms};

/// What such recordings are called.
pub(crate) const FORMAT: &str = "trace.dat";

/// Whether a file that begins with `bytes` is a trace.dat.
pub fn is_trace_dat(bytes: &[u8]) -> bool {
    bytes.starts_with(head::MAGIC)
}

impl Recording {
    /// Opens the trace.dat at `path`.
    ///
    /// What can be left out is left out and named in [`Facts::notes`].
    ///
    /// # Errors
    /// [`event::ErrorKind::Corrupt`] and [`event::ErrorKind::Unsupported`] name the place in the
    /// file; otherwise what the operating system says.
    pub fn open_dat(path: &Path) -> Result<Recording> {
        let name = path.display().to_string();
        let file = File::open(path);
        let file = file.map_err(|cause| Error::io(format!("cannot open {name}"), cause))?;
        let mut head = head::read(Input::file(&file, &name)?)?;
        let (formats, broken_formats) = formats(&mut head)?;
        let file = Arc::new(file);
        let streams = streams(&file, &name, &mut head, &formats.layout)?;
        let kallsyms = head.kallsyms.map(|place| DatSymbols {
            file: Arc::clone(&file),
            name,
            place,
            order: head.order,
            packing: head.packing.unwrap_or(Packing::None),
        });
        Ok(Recording::new(Parts {
            facts: Facts {
                broken_formats,
                ..facts(&head)
            },
            formats,
            tables: Tables::parse(&head.saved_cmdlines, &head.printk_formats),
            streams,
            symbols: kallsyms.map(crate::recording::SymbolSource::Dat),
        }))
    }
}

/// The kernel's symbols inside of a trace.dat.
#[derive(Debug)]
pub(crate) struct DatSymbols {
    file: Arc<File>,
    name: String,
    place: Kallsyms,
    order: crate::bytes::Order,
    packing: Packing,
}

impl DatSymbols {
    /// Their text, as `/proc/kallsyms` gives it.
    pub fn text(&self) -> Result<String> {
        let mut input = Input::file(&self.file, &self.name)?;
        input.set_order(self.order);
        match self.place {
            Kallsyms::Section { at } => sections::kallsyms(&mut input, at, self.packing),
            Kallsyms::Bytes { at, size } => {
                input.seek(at);
                Ok(tables::text(input.take(size, "kallsyms")?))
            }
        }
    }
}

/// The formats that make sense; those that do not are counted.
fn formats(head: &mut Head) -> Result<(Formats, u64)> {
    let layout = PageLayout::parse(&head.header_page)?.with_order(head.order);
    let mut broken = 0u64;
    let mut events = Vec::with_capacity(head.formats.len());
    for (system, text) in std::mem::take(&mut head.formats) {
        match EventFormat::parse_for(&system, &text, layout.commit_size_bytes) {
            Ok(format) => events.push(format),
            Err(_) => broken += 1,
        }
    }
    if broken > 0 {
        let note = format!("{broken} formats of events could not be understood");
        head.notes.push(note);
    }
    Ok((Formats::new(layout, events), broken))
}

fn streams(
    file: &Arc<File>,
    name: &str,
    head: &mut Head,
    layout: &PageLayout,
) -> Result<Vec<PageStream>> {
    let mut input = Input::file(file, name)?;
    input.set_order(head.order);
    let packing = head.packing.unwrap_or(Packing::None);
    let mut streams = Vec::new();
    for buffer in std::mem::take(&mut head.buffers) {
        let is_packed = packing != Packing::None && sections::is_compressed(&mut input, buffer.at)?;
        let page_bytes = page_bytes(head, &buffer, layout);
        for (cpu, at, size) in &buffer.cpus {
            let place = Place {
                at: *at,
                size: *size,
            };
            let stream = PageStream::new(
                Arc::clone(file),
                stream_name(&buffer.name, *cpu),
                Cpu(*cpu),
                place,
                page_bytes,
            );
            let stream = stream.with_time(TimeScale {
                tsc: head.options.tsc,
                offset_ns: head.options.offset_ns,
            });
            streams.push(match is_packed {
                true => stream.packed(packing, head.order)?,
                false => stream,
            });
        }
        if head.options.clock.is_none() && buffer.name.is_empty() {
            head.options.clock = Some(buffer.clock);
        }
    }
    Ok(streams)
}

/// `cpu0`, or `INSTANCE/cpu0`.
fn stream_name(instance: &str, cpu: u32) -> String {
    match instance {
        "" => format!("cpu{cpu}"),
        instance => format!("{instance}/cpu{cpu}"),
    }
}

/// The size of a page: the buffer's word, else the file's, else the kernel's.
fn page_bytes(head: &Head, buffer: &Buffer, layout: &PageLayout) -> usize {
    let candidates = [buffer.page_bytes, Some(head.page_bytes)];
    let sound = |bytes: &u32| (256..=1 << 24).contains(bytes);
    let chosen = candidates.into_iter().flatten().find(sound);
    chosen.map_or(layout.page_size_bytes(), |bytes| bytes as usize)
}

fn facts(head: &Head) -> Facts {
    let options = &head.options;
    let mut environment = vec![
        ("domain".to_owned(), "kernel".to_owned()),
        ("tracer_name".to_owned(), "trace-cmd".to_owned()),
    ];
    let mut add = |name: &str, value: Option<&str>| {
        environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    };
    add("tracer_version", options.tracer_version.as_deref());
    // uname: system, host, release, machine.
    let mut words = options.uname.as_deref().unwrap_or_default().split(' ');
    add("sysname", words.next().filter(|word| !word.is_empty()));
    add("hostname", words.next());
    add("kernel_release", words.next());
    let clock = options.clock.clone().unwrap_or_default();
    Facts {
        format: FORMAT,
        version: if head.version == 6 { "6" } else { "7" },
        clock: match clock.as_str() {
            "" => "local".to_owned(),
            _ => clock,
        },
        wall_offset_ns: options.date_ns.unwrap_or(0),
        environment,
        notes: head.notes.iter().chain(&options.notes).cloned().collect(),
        // trace-cmd leaves CPUs without events out of its table.
        missing: Vec::new(),
        broken_formats: 0,
    }
}
