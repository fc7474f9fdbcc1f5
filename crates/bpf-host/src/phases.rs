//! Where the latency of measuring threads goes: what the kernel saw of each one's last wake-up.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use abi::raw;
use event::{Error, ErrorKind, Result, Tid};
use libbpf_rs::{Link, MapCore, MapFlags, Object};
use memmap2::{Mmap, MmapOptions};

use crate::features::Features;
use crate::object;
use crate::statistics::{self, ProgramCost, RunTimeStatistics};

const SLOT_BYTES: usize = size_of::<raw::Phases>();

/// The instants of a thread's last wake-up on CLOCK_MONOTONIC, in nanoseconds; 0: not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Its timer's function began.
    pub entry_ns: i64,
    /// It came on a run queue.
    pub wakeup_ns: i64,
    /// It was scheduled in.
    pub switch_ns: i64,
}

/// Programs in the kernel that note these instants while it lives.
#[derive(Debug)]
pub struct PhaseProbe {
    slots: Mmap,
    _links: Vec<Link>,
    object: Object,
    _statistics: Option<RunTimeStatistics>,
}

impl PhaseProbe {
    /// Loads and attaches them; no thread is followed yet.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it.
    pub fn start() -> Result<PhaseProbe> {
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            return Err(Error::new(kind, "cannot split latencies with BPF")
                .found(found)
                .fix(fix));
        }
        let object = object::load(object::open(object::PHASES)?, |_| true)?;
        let fd = object::map(&object, "phases")?.as_fd().as_raw_fd();
        // SAFETY: the length is the map's own, which nobody can shrink; the bytes change under us
        // and are therefore read as atomic words only.
        let slots = unsafe {
            MmapOptions::new()
                .len(raw::PHASE_THREADS_MAX * SLOT_BYTES)
                .populate()
                .map(fd)
        };
        let slots = slots.map_err(|cause| Error::io("cannot map the phases", cause))?;
        Ok(PhaseProbe {
            slots,
            _links: object::attach(&object, |_| true)?,
            object,
            _statistics: RunTimeStatistics::enable().ok(),
        })
    }

    /// Gives a thread the slot `number`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when there are more threads than slots; what the kernel refused.
    pub fn follow(&self, number: usize, tid: Tid) -> Result<()> {
        if number >= raw::PHASE_THREADS_MAX {
            let what = "phases are kept for so many threads only";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("thread {number}"))
                .fix(format!("measure with {} threads", raw::PHASE_THREADS_MAX)));
        }
        let value = (number as u32).to_ne_bytes();
        object::map(&self.object, "threads")?
            .update(&tid.0.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|error| object::explain("configure", &error))
    }

    /// What the slot `number` holds; no system call.
    pub fn last(&self, number: usize) -> Stamps {
        let at = number * SLOT_BYTES;
        let word = |offset: usize| self.word(at + offset).load(Ordering::Relaxed) as i64;
        Stamps {
            entry_ns: word(std::mem::offset_of!(raw::Phases, entry_ns)),
            wakeup_ns: word(std::mem::offset_of!(raw::Phases, wakeup_ns)),
            switch_ns: word(std::mem::offset_of!(raw::Phases, switch_ns)),
        }
    }

    /// What the programs cost since the start, by the kernel's own measuring; all zero where that
    /// is not allowed.
    pub fn costs(&self) -> Vec<ProgramCost> {
        statistics::program_costs(&self.object)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let bytes = &self.slots[at..at + 8];
        // SAFETY: in bounds by the slice above, aligned because the mapping is page-aligned and
        // `at` a multiple of 8; an atomic may share memory with a writer in the kernel.
        unsafe { &*bytes.as_ptr().cast::<AtomicU64>() }
    }
}
