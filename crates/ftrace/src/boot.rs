//! The instance that the kernel's command line made while it started (`trace_instance=`), and how
//! far its clock is from ours.

use std::fs::OpenOptions;
use std::io::Write;

use event::{Error, ErrorKind, Result};

use crate::{EventName, Instance, Page, Tracefs};

/// How the instance is called.
pub const BOOT_INSTANCE: &str = "rtscope_boot";
/// So often both clocks are read.
const READINGS: usize = 5;
/// Clocks that count nanoseconds.
const IN_NANOSECONDS: &[&str] = &["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
/// The clock of our traces.
const MONOTONIC: &str = "mono";

/// The ring of a boot: it is removed when this is dropped, where the kernel lets it go.
#[derive(Debug)]
pub struct BootRing {
    instance: Instance,
    /// The events that it may hold: those that are switched on, and of an earlier boot, which had
    /// words of its own, all.
    pub events: Vec<EventName>,
    /// Its clock, by the kernel's name.
    pub clock: String,
    /// Whether it lies in reserved memory and holds what an earlier boot wrote.
    pub is_of_earlier_boot: bool,
}

impl BootRing {
    /// Finds it and keeps new events out; none where this boot made none.
    ///
    /// # Errors
    /// When tracefs refuses; [`ErrorKind::Unsupported`] when its times are no nanoseconds.
    pub fn find(tracefs: &Tracefs) -> Result<Option<BootRing>> {
        if !tracefs.has(&format!("instances/{BOOT_INSTANCE}")) {
            return Ok(None);
        }
        let instance = Instance::made_by_others(tracefs, BOOT_INSTANCE)?;
        let mut ring = BootRing {
            events: Vec::new(),
            clock: String::new(),
            is_of_earlier_boot: false,
            instance,
        };
        if let Err(error) = ring.look(tracefs) {
            ring.keep();
            return Err(error);
        }
        Ok(Some(ring))
    }

    fn look(&mut self, tracefs: &Tracefs) -> Result<()> {
        let was_on = self.instance.is_running()?;
        self.instance.stop()?;
        let events = self.instance.read("set_event")?;
        self.events = events.lines().filter_map(EventName::parse).collect();
        self.events.sort();
        let clocks = self.instance.read("trace_clock")?;
        let clock = chosen(&clocks).unwrap_or_default();
        if !IN_NANOSECONDS.contains(&clock) {
            let what = "the boot's ring has a clock that counts no nanoseconds";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!("'{clock}' in trace_clock"))
                .fix("boot with the words that 'rtscope record --at-boot' prints"));
        }
        self.clock = clock.to_owned();
        // Only rings in reserved memory have this file.
        let said = self.instance.read("last_boot_info").unwrap_or_default();
        let words = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        self.is_of_earlier_boot = has_moved(&said) || !was_on && begins_off(&words);
        if self.is_of_earlier_boot {
            self.events = tracefs.available_events()?;
        }
        Ok(())
    }

    /// Its rings, to be read.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Leaves it where it is.
    pub fn keep(self) {
        self.instance.leave();
    }

    /// Removes it; whether it is gone. In reserved memory it stays, and is off.
    pub fn remove(self) -> bool {
        let path = self.instance.path().to_owned();
        drop(self.instance);
        !path.exists()
    }
}

/// What `clock` is behind CLOCK_MONOTONIC, in nanoseconds; `monotonic_ns` reads that. Asked of an
/// instance of our own, which is gone afterwards.
///
/// # Errors
/// When tracefs refuses.
pub fn behind_monotonic_ns(
    tracefs: &Tracefs,
    clock: &str,
    monotonic_ns: impl Fn() -> i64,
) -> Result<i64> {
    if clock == MONOTONIC {
        return Ok(0);
    }
    let instance = Instance::create(tracefs)?;
    instance.write("trace_clock", clock)?;
    instance.start()?;
    let marker = instance.path().join("trace_marker");
    let failed = |error| Error::io(format!("cannot write to {}", marker.display()), error);
    let mut file = OpenOptions::new()
        .write(true)
        .open(&marker)
        .map_err(failed)?;
    let mut readings = Vec::with_capacity(READINGS);
    for _ in 0..READINGS {
        let before = monotonic_ns();
        file.write_all(b"rtscope\n").map_err(failed)?;
        readings.push((before, monotonic_ns()));
    }
    instance.stop()?;
    let mut times = marker_times(tracefs, &instance)?;
    times.sort_unstable();
    tightest(&readings, &times).ok_or_else(|| {
        Error::new(ErrorKind::Io, "cannot compare the boot's clock with ours")
            .found(format!("{} of {READINGS} marks in '{clock}'", times.len()))
            .fix("rtscope doctor")
    })
}

fn marker_times(tracefs: &Tracefs, instance: &Instance) -> Result<Vec<u64>> {
    let layout = tracefs.page_layout()?;
    let mut bytes = vec![0; layout.page_size_bytes()];
    let mut times = Vec::new();
    for cpu in instance.cpus() {
        let mut pipe = instance.open_pipe(*cpu, &layout)?;
        while pipe.read_page(&mut bytes)? {
            if let Ok(page) = Page::parse(&layout, &bytes) {
                times.extend(page.events().flatten().map(|event| event.time_ns));
            }
        }
    }
    Ok(times)
}

/// The distance by the mark whose two readings of our clock lie closest together.
fn tightest(readings: &[(i64, i64)], times: &[u64]) -> Option<i64> {
    let pairs = readings.iter().zip(times);
    let best = pairs.min_by_key(|((before, after), _)| after - before);
    let ((before, after), time) = best.filter(|_| readings.len() == times.len())?;
    Some(before + (after - before) / 2 - *time as i64)
}

/// The clock in brackets.
fn chosen(clocks: &str) -> Option<&str> {
    let (_, rest) = clocks.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// Whether this boot's words made the ring and kept new events out of it: what it holds is older.
fn begins_off(command_line: &str) -> bool {
    let rings = command_line
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("trace_instance="));
    let mut flags = rings.filter_map(|ring| {
        let name = ring.split([',', '@']).next()?;
        name.strip_prefix(BOOT_INSTANCE)?.strip_prefix('^')
    });
    flags.any(|flags| flags.split('^').any(|flag| flag == "traceoff"))
}

/// The kernel says by how much its code moved since the ring was written. Nothing moved: this boot
/// wrote it, or one whose code lay in the same place.
fn has_moved(said: &str) -> bool {
    let distance = |line: &str| -> Option<u64> {
        // "text delta: -268435456", or since 6.15 "39000000 [kernel]" in hexadecimal.
        let word = match line.split_once("delta:") {
            Some((_, number)) => number,
            None => line.strip_suffix("[kernel]")?,
        };
        u64::from_str_radix(word.trim().trim_start_matches('-'), 16).ok()
    };
    said.lines().filter_map(distance).any(|moved| moved != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_in_brackets_is_the_one_in_use() {
        assert_eq!(chosen("[local] global counter mono\n"), Some("local"));
        assert_eq!(chosen("local global [mono] boot"), Some("mono"));
        assert_eq!(chosen("local"), None);
    }

    #[test]
    fn a_ring_is_of_an_earlier_boot_where_the_kernels_code_has_moved_since() {
        let check = |said: &str, expect| assert_eq!(has_moved(said), expect, "{said}");
        check("", false);
        check("# Current\n", false);
        check("text delta:\t0\ndata delta:\t0\n", false);
        check("text delta:\t-268435456\ndata delta:\t-268435456\n", true);
        check("39000000\t[kernel]\n", true);
    }

    #[test]
    fn a_ring_that_this_boot_kept_off_is_told_by_the_words() {
        let check = |words: &str, expect| assert_eq!(begins_off(words), expect, "{words}");
        check(
            "quiet trace_instance=rtscope_boot^traceoff@rtscope,sched_switch",
            true,
        );
        check("trace_instance=rtscope_boot^traceoff@rtscope", true);
        check(
            "trace_instance=rtscope_boot^traceprintk^traceoff,irq:*",
            true,
        );
        check("trace_instance=rtscope_boot@rtscope,sched_switch", false);
        check(
            "trace_instance=other^traceoff trace_instance=rtscope_boot",
            false,
        );
        check("trace_instance=rtscope_bootless^traceoff", false);
        check("", false);
    }

    #[test]
    fn the_distance_is_that_of_the_reading_which_took_least() {
        let readings = [(100, 140), (200, 210), (300, 900)];
        assert_eq!(tightest(&readings, &[20, 105, 200]), Some(100));
        assert_eq!(tightest(&readings, &[20, 105]), None);
        assert_eq!(tightest(&[(5, 7)], &[10]), Some(-4));
        assert_eq!(tightest(&[], &[]), None);
    }
}
