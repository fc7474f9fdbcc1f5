//! `rtscope record --at-boot` and `--import-boot`: what the kernel records while it starts.

use std::fmt::Write as _;

use capture::capabilities;
use capture::{BootSummary, BootWords, EventSelection};
use diagnosis::quoted;
use event::{Error, ErrorKind, Result};
use ftrace::Tracefs;
use host::capabilities::Verb;

use crate::exit::{Outcome, print};
use crate::flags::{BootMemory, Record};
use crate::options::RecordOptions;

/// Runs one of them; none where neither was asked for.
pub(super) fn run(typed: &Record) -> Option<Result<Outcome>> {
    match (typed.at_boot, typed.import_boot) {
        (Some(memory), _) => Some(words(typed, memory)),
        (None, true) => Some(import(typed)),
        (None, false) => None,
    }
}

/// Prints the words for the kernel's command line; what to do with them goes to stderr.
fn words(typed: &Record, memory: BootMemory) -> Result<Outcome> {
    let options = RecordOptions::new(typed)?;
    if !options.probes.is_empty() || !options.filters.is_empty() {
        let what = "the kernel's command line takes no filters and no probes";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found("--at-boot, and an event file with some")
            .fix("name events alone: rtscope record --at-boot --events sched,irq"));
    }
    let tracefs = Tracefs::find()?;
    let available = tracefs.available_events()?;
    let selected = EventSelection::new(&options.events).resolve(&available)?;
    let words = BootWords {
        events: &selected.events,
        available: &available,
        functions: &options.functions,
        buffer_bytes_per_cpu: options.buffer_bytes,
        cpus: tracefs.cpu_count()?,
        memory: memory.into(),
    };
    let text = words.text()?;
    print(&format!("{text}\n"))?;
    note_text!("{}", remarks(memory, !options.functions.is_empty()));
    Ok(Outcome::Fine)
}

fn remarks(memory: BootMemory, has_functions: bool) -> String {
    let mut text = String::from(
        "add this line to the kernel's command line (GRUB: GRUB_CMDLINE_LINUX in \
         /etc/default/grub, then update-grub) and boot; a kernel of 6.3 or later knows it\n\
         next:  sudo rtscope record --import-boot -o boot\n",
    );
    // Writing to a String cannot fail, here and below.
    if memory == BootMemory::Persistent {
        let _ = writeln!(
            text,
            "the ring outlives a crash on 6.12 or later, with nokaslr where memory is not found \
             again: boot then with rtscope_boot^traceoff, so that it is not written over"
        );
    }
    if has_functions {
        let _ = writeln!(
            text,
            "functions go to the kernel's own buffer, which rtscope leaves alone: \
             sudo trace-cmd extract -o functions.dat; rtscope report flamegraph functions.dat"
        );
    }
    text
}

/// Makes a trace of the ring.
fn import(typed: &Record) -> Result<Outcome> {
    let options = RecordOptions::new(typed)?;
    let capabilities = capabilities::gather();
    capabilities.require(Verb::Record)?;
    let line = capture::own_command_line();
    let summary = capture::import_boot(&options.output, &capabilities, &line)?;
    print(&ending(&summary))?;
    Ok(Outcome::Fine)
}

fn ending(summary: &BootSummary) -> String {
    let path = summary.path.display();
    let seconds = |instant: event::Instant| instant.as_ns() as f64 / 1e9;
    let (begin, end) = (summary.window.begin, summary.window.end);
    let mut text = format!(
        "imported {} events of {}, from {:.6} s to {:.6} s on {} CPUs, {} lost: {path}\n",
        summary.events(),
        match summary.is_of_earlier_boot {
            true => "an earlier boot",
            false => "this boot",
        },
        seconds(begin),
        seconds(end),
        summary.cpus.len(),
        summary.lost(),
    );
    for cpu in summary.cpus.iter().filter(|cpu| cpu.discarded > 0) {
        let first = cpu.window.map_or(end, |window| window.begin);
        let _ = writeln!(
            text,
            "{}: {} events were overwritten before {:.6} s; a larger --buffer keeps them",
            cpu.cpu,
            cpu.discarded,
            seconds(first),
        );
    }
    let damaged: u64 = summary.cpus.iter().map(|cpu| cpu.damaged_pages).sum();
    if damaged > 0 {
        let _ = writeln!(text, "{damaged} pages could not be read to their end");
    }
    text += match summary.is_removed {
        true => "the ring is gone; its words on the kernel's command line would make it again\n",
        false => "the ring is empty and off; it goes with its words on the kernel's command line\n",
    };
    let typed = quoted(&path.to_string());
    let _ = writeln!(text, "next:  rtscope diagnose {typed}");
    text
}
