//! System calls with their contents: programs at their entry and exit, and a ring for each CPU.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};

use abi::raw;
use abi::syscalls::{CALLS_MAX, RawCall, RawSyscallCounters};
use event::{Cpu, Error, Result, Tid};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapType, Object, RingBuffer, RingBufferBuilder, libbpf_sys,
};

use crate::features::{self, Features};
use crate::statistics::{self, ProgramCost, RunTimeStatistics};
use crate::{kernel, object};

/// The program that learns who the recorder is.
const KNOW_RECORDER: &str = "know_recorder";
/// The program that says that not all tasks are meant.
const TRACK_SOME: &str = "track_some";
/// How the programs begin that follow those that are.
const TRACKERS: &str = "track_";
/// How the programs begin that are at the functions of two waits, in the place of all calls.
const WAITS: &str = "wait_";
/// Those of them for page faults that programs serve; not every kernel has these.
const FAULTS: &str = "wait_fault_";
/// The last place of each table is that of numbers that no table knows.
pub const UNKNOWN_CALL: usize = CALLS_MAX - 1;

/// What is asked of each call.
#[derive(Clone, Debug)]
pub struct SyscallConfig {
    /// By number; those of the other word size begin at [`CALLS_MAX`].
    pub calls: Vec<RawCall>,
    /// Calls of `futex` alone, with page faults that programs serve: nothing runs at other calls.
    pub waits: bool,
    /// Whether calls of this process are recorded too.
    pub own: bool,
    /// Only the calls of these tasks, and of all that descend from them; else those of all.
    pub tracked: Option<Vec<Tid>>,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// The CPUs that are recorded.
    pub cpus: Vec<Cpu>,
    /// Whether the run time of the programs is counted.
    pub with_cost: bool,
}

/// What was counted of one kind, on all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyscallCounters {
    /// Records for which a ring had no space.
    pub lost: u64,
    /// Entries and exits of this process's own calls.
    pub left_out: u64,
}

/// The bytes of records, by CPU, as they came.
type Received = Arc<Mutex<Vec<Vec<u8>>>>;

/// Running programs that record system calls. Dropping it detaches them.
pub struct SyscallWatch {
    // Dropped in this order: the programs are detached before their maps go.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    received: Received,
    object: Object,
    cpus: Vec<Cpu>,
    _statistics: Option<RunTimeStatistics>,
}

/// The ring of a CPU that is off: it may come, and hundreds more may have a place and never do.
pub(crate) const OFF_RING_BYTES: usize = 64 << 10;

// SAFETY: libbpf's ring buffer is bound to no thread, and its callbacks own an Arc<Mutex>.
unsafe impl Send for SyscallWatch {}

impl SyscallWatch {
    /// Loads and attaches the programs. When it returns, every later call is seen.
    ///
    /// # Errors
    /// [`event::ErrorKind::PermissionDenied`] and [`event::ErrorKind::Unsupported`] with the fact
    /// that explains it.
    pub fn start(config: &SyscallConfig) -> Result<SyscallWatch> {
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            let what = "cannot record the contents of system calls";
            return Err(Error::new(kind, what).found(found).fix(fix));
        }
        let btf = features::vmlinux();
        let btf = btf.filter(|btf| features::has_tracepoint(btf, "sys_enter"));
        let Some(btf) = btf else {
            let what = "cannot record the contents of system calls";
            return Err(Error::new(event::ErrorKind::Unsupported, what)
                .found("this kernel has no tracepoint sys_enter with types")
                .fix("rtscope doctor"));
        };
        let has_faults = features::has_function(&btf, "handle_userfault");
        let mut opened = object::open(object::SYSCALLS)?;
        object::size_arrays(&mut opened, &["rings"], kernel::cpus_max()?)?;
        let tracks = config.tracked.is_some();
        if !tracks {
            object::size_arrays(&mut opened, &["tracked"], 1)?;
        }
        let is_wanted = |name: &str| match name {
            KNOW_RECORDER | TRACK_SOME => true,
            name if name.starts_with(TRACKERS) => tracks,
            name if name.starts_with(FAULTS) => config.waits && has_faults,
            name => config.waits == name.starts_with(WAITS),
        };
        let object = object::load(opened, is_wanted)?;
        let calls = object::map(&object, "calls")?;
        for (key, call) in config.calls.iter().enumerate() {
            let key = (key as u32).to_ne_bytes();
            let written = calls.update(&key, raw::bytes(call), MapFlags::ANY);
            written.map_err(|error| object::explain("configure", &error))?;
        }
        let (ring, received) = open_rings(&object, config)?;
        if !config.own {
            run_once(&object, KNOW_RECORDER)?;
        }
        if let Some(tasks) = &config.tracked {
            run_once(&object, TRACK_SOME)?;
            track(&object::map(&object, "tracked")?, tasks)?;
        }
        Ok(SyscallWatch {
            links: object::attach(&object, |_| true)?,
            ring,
            received,
            object,
            cpus: config.cpus.clone(),
            _statistics: match config.with_cost {
                true => RunTimeStatistics::enable().ok(),
                false => None,
            },
        })
    }

    /// Takes what is in the rings: `use_records` gets each CPU's records, one behind the other as
    /// their ring had them.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take(&mut self, mut use_records: impl FnMut(Cpu, &[u8])) -> Result<()> {
        if let Err(error) = self.ring.consume()
            && error.kind() != libbpf_rs::ErrorKind::Interrupted
        {
            return Err(object::explain("read", &error));
        }
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        for (cpu, bytes) in self.cpus.iter().zip(received.iter_mut()) {
            use_records(*cpu, bytes);
            bytes.clear();
        }
        Ok(())
    }

    /// Who names more tasks to it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn tracker(&self) -> Result<CallTracker> {
        let map = object::map(&self.object, "tracked")?;
        let handle = MapHandle::try_from(&map);
        handle
            .map(CallTracker)
            .map_err(|error| object::explain("name tasks to", &error))
    }

    /// Detaches the programs; what they sent stays in the rings.
    pub fn stop(&mut self) {
        self.links.clear();
    }

    /// What was counted, on all CPUs.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn counters(&self) -> Result<SyscallCounters> {
        let counters = object::per_cpu::<RawSyscallCounters>(&self.object, "counters", 0)?;
        Ok(counters
            .iter()
            .fold(SyscallCounters::default(), |sum, of| SyscallCounters {
                lost: sum.lost + of.lost,
                left_out: sum.left_out + of.left_out,
            }))
    }

    /// What `cpu` lost so far.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn lost(&self, cpu: Cpu) -> Result<u64> {
        let counters = object::per_cpu::<RawSyscallCounters>(&self.object, "counters", 0)?;
        Ok(counters.get(cpu.0 as usize).map_or(0, |of| of.lost))
    }

    /// What the kernel says of each program's run time, when it was asked to count.
    pub fn costs(&self) -> Vec<ProgramCost> {
        statistics::program_costs(&self.object)
    }
}

/// Makes a ring for each recorded CPU and puts it into the table.
fn open_rings(object: &Object, config: &SyscallConfig) -> Result<(RingBuffer<'static>, Received)> {
    let refused = |error| object::explain("make the rings of", &error);
    let table = object::map(object, "rings")?;
    let received: Received = Arc::new(Mutex::new(vec![Vec::new(); config.cpus.len()]));
    let mut builder = RingBufferBuilder::new();
    let mut rings = Vec::new();
    let on = kernel::cpus_on();
    for cpu in &config.cpus {
        let is_off = !on.is_empty() && !on.contains(cpu);
        let bytes = match is_off {
            true => config.buffer_bytes_per_cpu.min(OFF_RING_BYTES),
            false => config.buffer_bytes_per_cpu,
        };
        let ring = make_ring(bytes)
            .map_err(|error| refused(error).fix("ask for a smaller buffer, as in --buffer 256K"))?;
        let fd = ring.as_fd().as_raw_fd();
        let put = table.update(&cpu.0.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY);
        put.map_err(refused)?;
        rings.push(ring);
    }
    for (place, ring) in rings.iter().enumerate() {
        let kept = Arc::clone(&received);
        let keep = move |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(of_cpu) = kept.get_mut(place) {
                of_cpu.extend_from_slice(bytes);
            }
            0
        };
        builder.add(ring, keep).map_err(refused)?;
    }
    // libbpf maps the rings; the table holds them from here on.
    Ok((builder.build().map_err(refused)?, received))
}

/// A ring of so many bytes, or a little more.
pub(crate) fn make_ring(bytes: usize) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    MapHandle::create(
        MapType::RingBuf,
        Some("rtscope_ring"),
        0,
        0,
        ring_bytes(bytes),
        &options,
    )
}

/// As large as a ring is that is to have so many bytes.
pub(crate) fn ring_bytes(bytes: usize) -> u32 {
    bytes.clamp(4096, 1 << 30).next_power_of_two() as u32
}

/// Names tasks whose calls are recorded.
fn track(map: &impl MapCore, tasks: &[Tid]) -> Result<()> {
    for task in tasks {
        let written = map.update(&task.0.to_ne_bytes(), &[1], MapFlags::ANY);
        written.map_err(|error| object::explain("name tasks to", &error))?;
    }
    Ok(())
}

/// Names tasks to programs that run, from any thread.
pub struct CallTracker(MapHandle);

impl CallTracker {
    /// Their calls, and those of all that descend from them, are recorded from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn track(&self, tasks: &[Tid]) -> Result<()> {
        track(&self.0, tasks)
    }

    /// Those of these no more; who descends from them stays.
    pub fn leave(&self, tasks: &[Tid]) {
        for task in tasks {
            // It may have ended.
            let _ = self.0.delete(&task.0.to_ne_bytes());
        }
    }
}

/// Runs a program of the object that lets the others know something: by this process, by the
/// kernel's own numbers.
fn run_once(object: &Object, name: &str) -> Result<()> {
    let mut loaded = object.progs();
    let Some(program) = loaded.find(|program| program.name() == name) else {
        return Ok(());
    };
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ..Default::default()
    };
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: the options live for the call.
    match unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut options) } {
        0 => Ok(()),
        _ => Err(Error::io(
            "cannot tell the BPF programs whose calls are meant",
            std::io::Error::last_os_error(),
        )
        .fix("rtscope record --self, without --track")),
    }
}
