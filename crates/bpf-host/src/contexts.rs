//! Contexts of the kernel's events that ftrace does not note: one program at each of their
//! tracepoints, and a ring for each CPU.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use abi::contexts::{COUNTERS, RawContext, RawContextConfig};
use abi::contexts::{WANTED_HOST, WANTED_TASK};
use event::{Cpu, Error, ErrorKind, Result};
use libbpf_rs::{Link, MapCore, MapFlags, Object, RingBuffer, RingBufferBuilder};

use crate::features::Features;
use crate::syscalls::{OFF_RING_BYTES, make_ring, ring_bytes};
use crate::{kernel, object, perf};

/// What is read at which events.
#[derive(Clone, Debug)]
pub struct ContextConfig {
    /// The groups of values (`abi::contexts::WANTED_…`).
    pub wanted: u32,
    /// What each CPU counts.
    pub counters: Vec<Counter>,
    /// The tracepoints of the events, as the kernel calls them.
    pub tracepoints: Vec<ContextPlace>,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// The CPUs that are recorded.
    pub cpus: Vec<Cpu>,
}

/// A tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPlace {
    /// As the kernel calls it.
    pub name: String,
    /// Whether it is met in interrupts alone, also in one of another tracepoint.
    pub in_interrupt: bool,
}

/// A counter of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As it was asked for.
    pub name: String,
    /// The kind of `perf_event_open`.
    pub kind: u32,
    /// And its number.
    pub config: u64,
}

/// The program that may interrupt the other.
const IN_INTERRUPT: &str = "at_interrupt";

/// The programs at their events. Dropping it detaches it.
pub struct ContextWatch {
    links: Vec<Link>,
    _object: Object,
    _counters: Vec<OwnedFd>,
    rings: Vec<ContextRing>,
}

impl ContextWatch {
    /// Loads and attaches the program. To be called before the events are switched on: it has to
    /// run before the kernel writes them.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it; what the machine says of a counter that it does not have.
    pub fn start(config: &ContextConfig) -> Result<ContextWatch> {
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            let what = "cannot read contexts at the kernel's events";
            return Err(Error::new(kind, what).found(found).fix(fix));
        }
        let cpus = kernel::cpus_max()?;
        let counters = open_counters(config, cpus as usize)?;
        let mut opened = object::open(object::CONTEXTS)?;
        object::size_arrays(&mut opened, &["rings"], cpus)?;
        object::size_arrays(&mut opened, &["counted"], cpus * COUNTERS as u32)?;
        let raw = RawContextConfig {
            wanted: config.wanted,
            counters: config.counters.len() as u32,
            cpus,
            bytes: record_bytes(config) as u32,
        };
        object::configure(&mut opened, &raw)?;
        let object = object::load(opened, |_| true)?;
        let counted = object::map(&object, "counted")?;
        for (key, fd) in &counters {
            let put = counted.update(
                &key.to_ne_bytes(),
                &fd.as_raw_fd().to_ne_bytes(),
                MapFlags::ANY,
            );
            put.map_err(|error| object::explain("give counters to", &error))?;
        }
        let rings = open_rings(&object, config)?;
        Ok(ContextWatch {
            links: attach(&object, &config.tracepoints)?,
            _object: object,
            _counters: counters.into_iter().map(|(_, fd)| fd).collect(),
            rings,
        })
    }

    /// Gives the ring of `cpu` away, once.
    pub fn ring(&mut self, cpu: Cpu) -> Option<ContextRing> {
        let place = self.rings.iter().position(|ring| ring.cpu == cpu)?;
        Some(self.rings.swap_remove(place))
    }
}

impl std::fmt::Debug for ContextWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "ContextWatch at {} tracepoints",
            self.links.len()
        )
    }
}

/// Of a record what is wanted: all up to the last.
fn record_bytes(config: &ContextConfig) -> usize {
    match (config.wanted & WANTED_HOST != 0, config.counters.len()) {
        (true, _) => size_of::<RawContext>(),
        (false, 0) if config.wanted & !WANTED_TASK == 0 => {
            std::mem::offset_of!(RawContext, ids)
        }
        (false, counters) => std::mem::offset_of!(RawContext, counters) + 8 * counters,
    }
}

/// The kernel's number of each counter on each CPU that is on, and the counter.
fn open_counters(config: &ContextConfig, cpus: usize) -> Result<Vec<(u32, OwnedFd)>> {
    let mut open = Vec::new();
    for (place, counter) in config.counters.iter().enumerate() {
        for cpu in 0..cpus {
            let opened = perf::open((counter.kind, counter.config), 0, cpu);
            let opened = opened.map_err(|cause| no_counter(counter, cause))?;
            open.extend(opened.map(|fd| ((place * cpus + cpu) as u32, fd)));
        }
    }
    Ok(open)
}

fn no_counter(counter: &Counter, cause: std::io::Error) -> Error {
    Error::io("this machine lets nobody read that counter", cause)
        .found(counter.name.clone())
        .fix(
            "take one that the kernel counts itself, as perf:cpu:page-faults, or record on a \
             machine where 'perf stat -a true' counts it",
        )
}

/// Attaches to all of these tracepoints that there are.
fn attach(object: &Object, tracepoints: &[ContextPlace]) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let of_interrupts = program.name() == IN_INTERRUPT;
        let own = tracepoints
            .iter()
            .filter(|place| place.in_interrupt == of_interrupts);
        // An event without a tracepoint of its name has none of these contexts.
        links.extend(own.filter_map(|place| program.attach_raw_tracepoint(&place.name).ok()));
    }
    let names: Vec<&str> = tracepoints.iter().map(|place| &*place.name).collect();
    match links.is_empty() {
        false => Ok(links),
        true => Err(Error::new(
            ErrorKind::Unsupported,
            "none of the events has a tracepoint at which contexts can be read",
        )
        .found(names.join(" "))
        .fix("add --events sched, or ask for other contexts: tid, pid, preemptible")),
    }
}

fn open_rings(object: &Object, config: &ContextConfig) -> Result<Vec<ContextRing>> {
    let refused = |error| object::explain("make the rings of", &error);
    let table = object::map(object, "rings")?;
    let on = kernel::cpus_on();
    let mut rings = Vec::new();
    for cpu in &config.cpus {
        let is_off = !on.is_empty() && !on.contains(cpu);
        let bytes = match is_off {
            true => config.buffer_bytes_per_cpu.min(OFF_RING_BYTES),
            false => config.buffer_bytes_per_cpu,
        };
        let map = make_ring(bytes)
            .map_err(|error| refused(error).fix("ask for a smaller buffer, as in --buffer 256K"))?;
        let fd = map.as_fd().as_raw_fd();
        let put = table.update(&cpu.0.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY);
        put.map_err(refused)?;
        let received: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&received);
        let mut builder = RingBufferBuilder::new();
        let keep = move |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(bytes);
            0
        };
        builder.add(&map, keep).map_err(refused)?;
        rings.push(ContextRing {
            ring: builder.build().map_err(refused)?,
            cpu: *cpu,
            record_bytes: record_bytes(config),
            ring_bytes: ring_bytes(bytes) as usize,
            received,
        });
    }
    Ok(rings)
}

/// One CPU's records.
pub struct ContextRing {
    ring: RingBuffer<'static>,
    cpu: Cpu,
    record_bytes: usize,
    ring_bytes: usize,
    received: Arc<Mutex<Vec<u8>>>,
}

/// What the kernel's ring has before each record (`BPF_RINGBUF_HDR_SZ`).
const RECORD_HEADER_BYTES: usize = 8;

// SAFETY: libbpf's ring buffer is bound to no thread, and its callback owns an Arc<Mutex>.
unsafe impl Send for ContextRing {}

impl ContextRing {
    /// How long each record is.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Takes what is in the ring: `use_records` gets it, one record behind the other, and whether
    /// there was no room for another.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take(&mut self, use_records: impl FnOnce(&[u8], bool)) -> Result<()> {
        if let Err(error) = self.ring.consume()
            && error.kind() != libbpf_rs::ErrorKind::Interrupted
        {
            return Err(object::explain("read", &error));
        }
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let records = received.len() / self.record_bytes;
        let each = self.record_bytes.next_multiple_of(8) + RECORD_HEADER_BYTES;
        let is_full = (records + 1) * each > self.ring_bytes;
        use_records(&received, is_full);
        received.clear();
        Ok(())
    }
}

impl std::fmt::Debug for ContextRing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ContextRing of {}", self.cpu)
    }
}
