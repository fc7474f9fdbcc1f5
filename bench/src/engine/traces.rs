//! The traces that are read: a recording of the kernel, a user's with two integers, a large one,
//! one of trace-cmd.
//!
//! They are made once and kept in the cache directory, outside of any tree; small runs make small
//! ones that go away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use ctf::writer::{ClockMeta, HeaderKind, PayloadWriter, StreamMeta, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer};
use tempfile::TempDir;

use super::dat;
use crate::child;
use crate::load::{self, Load};
use crate::options::Options;

const KERNEL_EVENTS: f64 = 20e6;
const USER_EVENTS: u64 = 10_000_000;
/// 20 bytes each: 2 GB.
const LARGE_EVENTS: u64 = 100_000_000;
const SMALL_EVENTS: u64 = 100_000;
/// One event of so many is the rare one.
const RARE_EVERY: u64 = 10_000;
const CPUS: u32 = 4;
/// The longest recording.
const SECONDS_MAX: f64 = 900.0;
/// Few threads that wake each other switch more often than many.
const GROUPS: u32 = 2;
const FDS: u32 = 2;
/// A busy machine records less in the same time: again, for longer.
const ATTEMPTS: usize = 4;
const DAT_RING_BYTES: usize = 64 << 20;
const DAT_SECONDS: f64 = 10.0;

/// Where they are.
pub struct Traces {
    pub kernel: PathBuf,
    pub user: PathBuf,
    pub large: PathBuf,
    /// A file of trace-cmd's; none where that is not installed.
    pub dat: Option<PathBuf>,
    kernel_events: f64,
    user_events: u64,
    /// Small ones go away with it.
    _folder: Option<TempDir>,
}

impl Traces {
    /// Finds them, or makes them.
    pub fn ready(options: &Options) -> Result<Traces> {
        let (folder, dir) = match options.small || options.events.is_some() {
            true => {
                let folder = tempfile::tempdir()?;
                let dir = folder.path().to_owned();
                (Some(folder), dir)
            }
            false => (None, cache_dir()?),
        };
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let events = |usual| options.events.unwrap_or(options.pick(usual, SMALL_EVENTS));
        let (user_events, large_events) = (events(USER_EVENTS), events(LARGE_EVENTS));
        let user = made(&dir, "user", |dir| write_user(dir, user_events))?;
        let large = made(&dir, "large", |dir| write_user(dir, large_events))?;
        let kernel = made(&dir, "kernel", |dir| record(options, dir))?;
        let seconds = options.pick(DAT_SECONDS, 0.1);
        let dat = match child::exists("trace-cmd") {
            true => {
                let make = |dir: &Path| dat::record(dir, DAT_RING_BYTES, seconds);
                Some(dat::file(&made(&dir, "dat", make)?))
            }
            false => None,
        };
        let kernel_events = fs::read_to_string(kernel.with_extension("events"))?;
        Ok(Traces {
            kernel_events: kernel_events.trim().parse()?,
            kernel,
            user,
            large,
            dat,
            user_events,
            _folder: folder,
        })
    }

    /// What they are, in a sentence.
    pub fn setting(&self) -> String {
        format!(
            "Kernel: {:.0} events of `rtscope record` under hackbench; user: {} events of two \
             integers in {CPUS} streams, one of {RARE_EVERY} rare; trace.dat: what `trace-cmd \
             restore` packs of rings of our own; made here and kept in the cache directory.",
            self.kernel_events, self.user_events
        )
    }
}

fn cache_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = base
        .or_else(home)
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("rtscope/bench"))
}

/// The trace `name`, made under another name first, so that it is there whole or not at all.
fn made(dir: &Path, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let path = dir.join(name);
    if path.exists() {
        return Ok(path);
    }
    eprintln!("making the trace '{name}'");
    let unfinished = dir.join(format!("{name}.unfinished"));
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => make(&unfinished)?,
    }
    let events = unfinished.with_extension("unfinished.events");
    if events.exists() {
        fs::rename(&events, path.with_extension("events"))?;
    }
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Records as long as it takes, by the rate of the recording before.
fn record(options: &Options, dir: &Path) -> Result<()> {
    load::require()?;
    let wanted = options
        .events
        .map_or(options.pick(KERNEL_EVENTS, 1.0), |n| n as f64);
    let mut seconds = 1.0;
    let mut events = record_for(options, dir, seconds)?;
    for _ in 0..ATTEMPTS {
        if events >= wanted {
            break;
        }
        eprintln!("  {events:.0} events in {seconds:.0} s, once more for {wanted:.0}");
        fs::remove_dir_all(dir)?;
        seconds = (seconds * wanted * 1.1 / events.max(1.0)).clamp(1.0, SECONDS_MAX);
        events = record_for(options, dir, seconds)?;
    }
    fs::write(
        dir.with_extension("unfinished.events"),
        format!("{events}\n"),
    )?;
    Ok(())
}

fn record_for(options: &Options, dir: &Path, seconds: f64) -> Result<f64> {
    let load = Load::start(GROUPS, FDS)?;
    let mut command = Command::new(&options.rtscope);
    command
        .args(["record", "--buffer=64M", "--output"])
        .arg(dir);
    let said = child::output(command.arg(format!("--duration={seconds:.0}s")))?;
    drop(load);
    let words = said.strip_prefix("recorded ");
    let count = words.and_then(|words| words.split(' ').next()?.parse().ok());
    count.with_context(|| format!("record said: {said}"))
}

/// Two integers an event, in several streams.
fn write_user(dir: &Path, events: u64) -> Result<()> {
    let integer = |name: &str, size_bits| {
        Field::payload(name, FieldType::Integer(Integer::le(size_bits, false)))
    };
    let class = |id, name: &str| EventClass {
        id: ClassId(id),
        name: name.to_owned(),
        stream: 0,
        fields: [integer("i", 64), integer("duration_ns", 64)].into(),
    };
    let meta = TraceMeta {
        environment: vec![("hostname".to_owned(), "bench".into())],
        uuid: [3; 16],
        clocks: vec![ClockMeta::monotonic(1_700_000_000_000_000_000)],
        streams: vec![StreamMeta {
            name: "app".to_owned(),
            header: HeaderKind::Compact,
            classes: vec![class(0, "app:loop"), class(1, "app:rare")],
            ..StreamMeta::default()
        }],
        ..TraceMeta::default()
    };
    let mut trace = TraceWriter::create(dir, &meta)?;
    for cpu in 0..CPUS {
        let mut stream = trace.stream(0, Cpu(cpu))?;
        let mut payload = PayloadWriter::new();
        eprintln!("  stream {} of {CPUS}", cpu + 1);
        for number in (u64::from(cpu)..events).step_by(CPUS as usize) {
            // Streams take turns, not always the same ones.
            let jitter_ns = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
            let time = Instant::from_ns((number * 300 + jitter_ns) as i64);
            payload.clear().u64(number).u64(jitter_ns);
            let class = u32::from(number.is_multiple_of(RARE_EVERY));
            stream.event(class, time, payload.bytes())?;
        }
        stream.finish()?;
    }
    Ok(())
}
