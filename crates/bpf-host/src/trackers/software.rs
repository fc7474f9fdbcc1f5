//! The kernel's software events, for moments that have no tracepoint.

use std::os::fd::{AsRawFd, OwnedFd};

use event::{Error, ErrorKind, Result};
use libbpf_rs::{Link, Object};

use crate::{object, perf};

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
    perf::open((perf::SOFTWARE, event), 1, cpu).map_err(|cause| {
        Error::io("cannot open a software event", cause)
            .found(format!("event {event} on CPU {cpu}"))
            .fix("sysctl kernel.perf_event_paranoid=2, or run it as root")
    })
}
