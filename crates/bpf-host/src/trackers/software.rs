//! The kernel's software events, for moments that have no tracepoint.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use event::{Error, ErrorKind, Result};
use libbpf_rs::{Link, Object};

use crate::object;

/// `struct perf_event_attr` as its first version had it (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;

/// Has `program` run at each such event, on all CPUs that are on.
pub(super) fn attach(object: &Object, program: &str, event: u64) -> Result<Vec<Link>> {
    let mut programs = object.progs_mut();
    let program = programs.find(|of| of.name() == program).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the BPF object has no such program").found(program)
    })?;
    let mut links = Vec::new();
    for cpu in 0..libbpf_rs::num_possible_cpus().unwrap_or(1) {
        let Some(fd) = open(event, cpu)? else {
            continue;
        };
        let link = program.attach_perf_event(fd.as_raw_fd());
        links.push(link.map_err(|error| object::explain("attach", &error))?);
        // The link closes the event with itself.
        std::mem::forget(fd);
    }
    Ok(links)
}

/// The event on one CPU; none when the CPU is off.
fn open(event: u64, cpu: usize) -> Result<Option<OwnedFd>> {
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        sample_period: 1,
        ..Attributes::default()
    };
    let (every_task, no_group) = (-1, -1);
    // SAFETY: the structure is as long as it says and lives for the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_task,
            cpu as libc::c_int,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd >= 0 {
        // SAFETY: the descriptor is new and ours.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as i32) }));
    }
    let cause = std::io::Error::last_os_error();
    match cause.raw_os_error() {
        Some(libc::ENODEV) => Ok(None),
        _ => Err(Error::io("cannot open a software event", cause)
            .found(format!("event {event} on CPU {cpu}"))
            .fix("sysctl kernel.perf_event_paranoid=2, or run it as root")),
    }
}
