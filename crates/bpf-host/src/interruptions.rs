//! How often an interrupt, an NMI or a switch took each CPU from whoever ran there.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;

use event::{Cpu, Error, ErrorKind, Result};
use libbpf_rs::{Link, Object};
use memmap2::{Mmap, MmapOptions};

use crate::features::{self, Features};
use crate::object;

/// What a CPU's count takes in the map: a cache line.
const SLOT_BYTES: usize = 64;
/// Without these nothing would be counted that matters: to lack them is an error.
const NEEDED: [&str; 2] = ["irq_handler_entry", "sched_switch"];

/// Programs in the kernel that count while it lives.
#[derive(Debug)]
pub struct Interruptions {
    counts: Mmap,
    _links: Vec<Link>,
    _object: Object,
}

impl Interruptions {
    /// Loads and attaches them.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it.
    pub fn start() -> Result<Interruptions> {
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            return Err(Error::new(kind, "cannot count interruptions with BPF")
                .found(found)
                .fix(fix));
        }
        let cpus =
            libbpf_rs::num_possible_cpus().map_err(|error| object::explain("size", &error))?;
        let mut open = object::open(object::INTERRUPTIONS)?;
        object::size_arrays(&mut open, &["interruptions"], cpus as u32)?;
        let btf = features::vmlinux();
        let present = |name: &str| {
            let known = btf.as_ref().map(|btf| features::has_tracepoint(btf, name));
            NEEDED.contains(&name) || known == Some(true)
        };
        let object = object::load(open, present)?;
        let fd = object::map(&object, "interruptions")?.as_fd().as_raw_fd();
        // SAFETY: the length is the map's own, which nobody can shrink; the bytes change under us
        // and are therefore read as atomic words only.
        let counts = unsafe { MmapOptions::new().len(cpus * SLOT_BYTES).populate().map(fd) };
        Ok(Interruptions {
            counts: counts.map_err(|cause| Error::io("cannot map the counts", cause))?,
            _links: object::attach(&object, |_| true)?,
            _object: object,
        })
    }

    /// The count of a CPU, which changes while others read it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a CPU that this machine cannot have.
    pub fn of(&self, cpu: Cpu) -> Result<&AtomicU64> {
        let at = cpu.0 as usize * SLOT_BYTES;
        let bytes = self.counts.get(at..at + 8).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "no such CPU").found(format!("CPU {}", cpu.0))
        })?;
        // SAFETY: in bounds by the slice above, aligned because the mapping is page-aligned and
        // `at` a multiple of 64; an atomic may share memory with a writer in the kernel.
        Ok(unsafe { &*bytes.as_ptr().cast::<AtomicU64>() })
    }
}
