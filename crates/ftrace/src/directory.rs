//! A directory with what tracefs showed: raw pages of each CPU, formats, tables.
//!
//! `per_cpu/cpuN/trace_pipe_raw` and `events/*/*/format`, as `cp -r` of an instance leaves them;
//! `events/header_page`, `saved_cmdlines`, `printk_formats`, `trace_clock`, `kallsyms` and `uname`
//! when they are there.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use event::{Cpu, Error, ErrorKind, Result};

use crate::recording::{Facts, Parts, Recording, SymbolSource, Tables, left_out};
use crate::stream::{PageStream, Place};
use crate::{CpuStatistics, EventFormat, Formats, PageLayout};

/// No text of tracefs is larger, not even the symbols of a kernel with many modules.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Formats of a kernel; numbers of events have 16 bits.
const FORMATS_MAX: usize = 1 << 16;

/// Whether a directory holds raw pages and what they mean.
pub fn is_page_directory(path: &Path) -> bool {
    path.join("per_cpu").is_dir() && path.join("events").is_dir()
}

impl Formats {
    /// Those that a directory of raw pages has, with the layout of these.
    ///
    /// # Errors
    /// When a file cannot be read, or what it says of the pages makes no sense.
    pub fn read_saved(path: &Path) -> Result<Formats> {
        let header = text(&path.join("events/header_page"))
            .map_err(|error| error.fix("copy the whole folder that rtscope record --raw wrote"))?;
        let layout = PageLayout::parse(&header)?;
        formats(&path.join("events"), layout, &mut Vec::new())
    }
}

impl Recording {
    /// Opens a directory of raw pages.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it has no pages or no formats; otherwise what the operating
    /// system says.
    pub fn open_directory(path: &Path) -> Result<Recording> {
        let optional = |name: &str| text(&path.join(name)).unwrap_or_default();
        let mut notes = Vec::new();
        let layout = match path.join("events/header_page") {
            header if header.exists() => PageLayout::parse(&text(&header)?)?,
            _ => {
                notes.push("no events/header_page: pages of a 64-bit kernel assumed".to_owned());
                PageLayout::LP64
            }
        };
        let formats = formats(&path.join("events"), layout, &mut notes)?;
        let (streams, missing) = streams(&path.join("per_cpu"), &layout)?;
        if formats.iter().next().is_none() || streams.is_empty() {
            let found = match streams.len() {
                0 => "no file per_cpu/cpuN/trace_pipe_raw",
                _ => "no file events/SYSTEM/EVENT/format",
            };
            let what = format!("{} is no recording of ftrace", path.display());
            return Err(Error::new(ErrorKind::NotFound, what)
                .found(found)
                .fix("copy events/ and per_cpu/*/trace_pipe_raw of the instance"));
        }
        let kallsyms = path.join("kallsyms");
        let symbols = kallsyms.is_file().then_some(SymbolSource::Text(kallsyms));
        let clock = crate::dat::chosen_clock(&optional("trace_clock"));
        Ok(Recording::new(Parts {
            facts: Facts {
                format: "ftrace pages",
                version: "",
                clock: match clock.as_str() {
                    "" => "local".to_owned(),
                    _ => clock,
                },
                wall_offset_ns: 0,
                environment: environment(&optional("uname")),
                notes,
                missing,
                broken_formats: 0,
            },
            formats,
            tables: Tables::parse(&optional("saved_cmdlines"), &optional("printk_formats")),
            streams,
            symbols,
        }))
    }
}

/// Facts under LTTng's names, as far as `uname -a` tells them.
fn environment(uname: &str) -> Vec<(String, String)> {
    let mut words = uname.split_ascii_whitespace();
    let names = ["sysname", "hostname", "kernel_release"];
    let told = names
        .into_iter()
        .map_while(|name| Some((name, words.next()?)));
    let fixed = [("domain", "kernel"), ("tracer_name", "ftrace")];
    let all = fixed.into_iter().chain(told);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A text file, up to what such a file can have.
pub(crate) fn text(path: &Path) -> Result<String> {
    let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(TEXT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The directories inside of one, in the order of their names, also those that links lead to.
fn directories(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn formats(events: &Path, layout: PageLayout, notes: &mut Vec<String>) -> Result<Formats> {
    let mut formats = Vec::new();
    let mut broken = 0u64;
    for (system, path) in directories(events)? {
        for (_, path) in directories(&path)? {
            let path = path.join("format");
            if formats.len() >= FORMATS_MAX || !path.is_file() {
                continue;
            }
            match EventFormat::parse_for(&system, &text(&path)?, layout.commit_size_bytes) {
                Ok(format) => formats.push(format),
                Err(_) => broken += 1,
            }
        }
    }
    if broken > 0 {
        notes.push(format!(
            "{broken} formats of events could not be understood"
        ));
    }
    Ok(Formats::new(layout, formats))
}

/// The pages of each CPU, and the CPUs whose pages should be there and are not.
fn streams(per_cpu: &Path, layout: &PageLayout) -> Result<(Vec<PageStream>, Vec<Cpu>)> {
    let (mut streams, mut missing) = (Vec::new(), Vec::new());
    for (name, dir) in directories(per_cpu)? {
        let number = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
        let Some(cpu) = number.map(Cpu) else {
            continue;
        };
        let path = dir.join("trace_pipe_raw");
        if !path.is_file() {
            missing.push(cpu);
            continue;
        }
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        let file = File::open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if size == 0 && !was_silent(&dir, cpu) {
            missing.push(cpu);
        }
        let place = Place { at: 0, size };
        let page_bytes = layout.page_size_bytes();
        let name = format!("per_cpu/{name}/trace_pipe_raw");
        streams.push(PageStream::new(
            Arc::new(file),
            name,
            cpu,
            place,
            page_bytes,
        ));
    }
    streams.sort_by_key(PageStream::cpu);
    // Where no file has anything, none is missing anything.
    if streams.iter().all(|stream| stream.size_bytes() == 0) {
        missing.clear();
    }
    let mut known: Vec<Cpu> = streams.iter().map(PageStream::cpu).collect();
    known.extend(&missing);
    missing.extend(left_out(&known));
    missing.sort_unstable();
    Ok((streams, missing))
}

/// Whether the kernel's counters, kept beside the pages, say that a CPU never had an event.
fn was_silent(dir: &Path, cpu: Cpu) -> bool {
    let text = fs::read_to_string(dir.join("stats"));
    text.is_ok_and(|text| {
        let counted = CpuStatistics::parse(cpu, &text);
        text.contains("entries:") && counted.offered() == 0
    })
}
