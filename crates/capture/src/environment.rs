//! The `env` block of our traces: what LTTng says of a kernel trace, and who wrote this one.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::ptr;

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
/// kernel that is locked down refuses that to everybody, also where debugfs is not mounted.
fn debugfs() -> &'static str {
    let is_mounted = Path::new("/sys/kernel/debug").join(KNOB).exists();
    let folder = match is_mounted {
        true => None,
        false => debugfs_apart().ok(),
    };
    let path = match &folder {
        Some(folder) => format!("/proc/self/fd/{}/{KNOB}", folder.as_raw_fd()),
        None => format!("/sys/kernel/debug/{KNOB}"),
    };
    match OpenOptions::new().write(true).open(path) {
        Ok(_) if is_mounted => "allowed",
        Ok(_) => "unmounted",
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => "refused",
        Err(_) => "unknown",
    }
}

/// A file that all kernels with knobs of the scheduler in debugfs have, and that opening does not
/// change.
const KNOB: &str = "sched/features";

/// A debugfs that is mounted nowhere: nobody else sees it.
fn debugfs_apart() -> io::Result<OwnedFd> {
    let opened = |result: libc::c_long| match result {
        0.. => {
            // SAFETY: the kernel has just made it, for us alone.
            Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
        }
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the name is a text that ends with a zero byte.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, c"debugfs".as_ptr(), CLOSE_ON_EXEC) };
    let context = opened(context)?;
    let (key, value) = (ptr::null::<u8>(), ptr::null::<u8>());
    let number = context.as_raw_fd();
    // SAFETY: this command takes no key and no value.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, number, CREATE, key, value, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it takes numbers alone.
    opened(unsafe { libc::syscall(libc::SYS_fsmount, number, CLOSE_ON_EXEC, 0) })
}

/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC` of `include/uapi/linux/mount.h`.
const CLOSE_ON_EXEC: u32 = 1;
/// `FSCONFIG_CMD_CREATE` there.
const CREATE: u32 = 6;

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
