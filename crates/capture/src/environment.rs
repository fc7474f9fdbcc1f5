//! The `env` block of our traces: what LTTng says of a kernel trace, and who wrote this one.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};

use ctf::writer::EnvValue;
use event::Cpu;
use ftrace::EventName;
use host::capabilities::Capabilities;
use trace::{FILTERED_EVENTS, RECORDED_CPUS, TRACKED_TASKS};

use crate::track::Track;

/// LTTng's version whose names and values we write.
pub(crate) const TRACER_VERSION: [(&str, i64); 3] = [
    ("tracer_major", 2),
    ("tracer_minor", 13),
    ("tracer_patchlevel", 23),
];

/// The entries, in LTTng's order, then ours. `command_line` is how rtscope was called.
pub(crate) fn environment(
    trace_name: &str,
    command_line: &str,
    capabilities: &Capabilities,
) -> Vec<(String, EnvValue)> {
    let kernel = |file: &str| EnvValue::Text(kernel_fact(file));
    let text = |text: &str| EnvValue::Text(text.to_owned());
    let mut entries = vec![
        ("hostname", EnvValue::Text(hostname())),
        ("domain", text("kernel")),
        ("sysname", text("Linux")),
        ("kernel_release", kernel("osrelease")),
        ("kernel_version", kernel("version")),
        ("tracer_name", text("lttng-modules")),
    ];
    entries.extend(TRACER_VERSION.map(|(name, number)| (name, EnvValue::Integer(number))));
    entries.extend([
        ("trace_buffering_scheme", text("global")),
        ("trace_name", text(trace_name)),
        ("rtscope_version", text(env!("CARGO_PKG_VERSION"))),
        ("rtscope_command_line", text(command_line)),
        (
            "rtscope_preemption_model",
            text(capabilities.scheduler.preemption.name()),
        ),
        (
            "rtscope_virtualised",
            EnvValue::Integer(i64::from(capabilities.machine.virtualised)),
        ),
        ("rtscope_steal", text(capabilities.machine.steal.name())),
        ("rtscope_debugfs", text(debugfs())),
        ("rtscope_autogroup", text(autogroup())),
        (
            "clocksource",
            text(
                capabilities
                    .machine
                    .clocksource
                    .as_deref()
                    .unwrap_or("unknown"),
            ),
        ),
    ]);
    if let Some(exit_us) = capabilities.machine.idle_exit_us_max {
        entries.push((
            "rtscope_idle_exit_max_ns",
            EnvValue::Integer(exit_us * 1_000),
        ));
    }
    entries
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What was asked for: of which CPUs, with which filters, whose events alone.
pub(crate) fn asked(
    cpus: &[Cpu],
    (filters, track): (&[(EventName, String)], Option<&Track>),
) -> impl Iterator<Item = (String, EnvValue)> {
    let cpus = [recorded(cpus)].into_iter();
    cpus.chain(filtered(filters)).chain(tracked(track))
}

/// Says which CPUs have a stream of the kernel's events: a copy that lacks one is seen to.
pub(crate) fn recorded(cpus: &[Cpu]) -> (String, EnvValue) {
    (RECORDED_CPUS.to_owned(), EnvValue::Text(Cpu::list(cpus)))
}

/// Names the events of which filters left some out, as the trace names them; nothing without a
/// filter. A reader then knows that the kernel did not hide them.
pub(crate) fn filtered(filters: &[(EventName, String)]) -> Option<(String, EnvValue)> {
    let names: BTreeSet<String> = filters
        .iter()
        .map(|(event, _)| ftrace::lttng::name(event))
        .collect();
    let list = Vec::from_iter(names).join(",");
    (!list.is_empty()).then(|| (FILTERED_EVENTS.to_owned(), EnvValue::Text(list)))
}

/// Says whose events alone were recorded; nothing where everybody's were.
pub(crate) fn tracked(track: Option<&Track>) -> Option<(String, EnvValue)> {
    let words = track?.words.join(", ");
    Some((TRACKED_TASKS.to_owned(), EnvValue::Text(words)))
}

/// Whether the scheduler's knobs in debugfs may be turned: opened for writing, and not written. A
/// kernel that is locked down refuses that to everybody.
fn debugfs() -> &'static str {
    let knob = OpenOptions::new()
        .write(true)
        .open("/sys/kernel/debug/sched/preempt");
    match knob {
        Ok(_) => "allowed",
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => "refused",
        Err(_) => "unknown",
    }
}

/// Whether the kernel shares a CPU by sessions: then nice values say nothing between two of them.
fn autogroup() -> &'static str {
    let said = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    match said.as_deref().map(str::trim) {
        Ok("1") => "on",
        // A kernel that has no such file does not do it.
        Ok(_) => "off",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "off",
        Err(_) => "unknown",
    }
}

/// The name of this machine.
pub(crate) fn hostname() -> String {
    kernel_fact("hostname")
}

/// A line of `/proc/sys/kernel`; empty when it cannot be read.
fn kernel_fact(file: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default();
    text.trim().to_owned()
}

/// The command line of this process, words with blanks in quotes.
pub fn own_command_line() -> String {
    let quoted = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        if word.is_empty() || word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word
        }
    };
    std::env::args_os()
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}
