//! Events of the kernel's performance counters.

use std::os::fd::{FromRawFd, OwnedFd};

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

pub(crate) const SOFTWARE: u32 = 1;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;

/// The event of this kind and number on one CPU, of all tasks; none when the CPU is off.
/// `sample_period`: how many of them are a sample; 0 where they are counted alone.
pub(crate) fn open(
    (kind, config): (u32, u64),
    sample_period: u64,
    cpu: usize,
) -> std::io::Result<Option<OwnedFd>> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period,
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
        _ => Err(cause),
    }
}
