//! The kernel's state, fed one event at a time: CPUs, threads, files, requests. It tells a
//! [`Sink`] what changed, so that many questions can be asked in one pass.
//!
//! # Design constraints
//! - What is kept is bounded by the threads and files that were seen, not by the events.
//! - Fields are bound once; an event that no question needs costs a look into a table.
//! - Every generation of LTTng's names is understood, see [`bind`].

mod bind;
mod change;
mod devices;
mod irq;
mod process;
mod sched;
mod statedump;
mod syscalls;
mod tid_map;

use std::collections::HashMap;
use std::sync::Arc;

use trace::{EventView, Trace};

use bind::{Binding, Known};
use devices::Disks;
use process::Processes;

pub(crate) use change::{Block, Change, Sink};
pub(crate) use process::{Comm, FileKind, ProcId, Process};
pub(crate) use syscalls::{Operation, Request};

/// The kernel can be built for fewer; bounds what a hostile trace makes us keep.
const CPUS_MAX: u32 = 8192;

/// A CPU.
#[derive(Debug, Default)]
struct CpuState {
    /// An event spoke of it.
    seen: bool,
    /// The task on it, none while it idles or nothing is known.
    current: Option<ProcId>,
    /// The interrupt handler that runs: its number and when it began.
    irq: Option<(i64, i64)>,
    softirqs: irq::Softirqs,
}

/// The state.
#[derive(Debug)]
pub(crate) struct Kernel {
    binding: Binding,
    /// Nanoseconds of the wall clock.
    now_ns: i64,
    cpus: Vec<CpuState>,
    processes: Processes,
    disks: Disks,
    pages: u64,
    /// The owner of each table of files, by its address (LTTng 2.12 and later).
    tables: HashMap<u64, i32>,
    unknown: Arc<str>,
}

impl Kernel {
    /// Nothing is known yet.
    pub fn new(trace: &Trace) -> Kernel {
        Kernel {
            binding: Binding::new(trace),
            now_ns: 0,
            cpus: Vec::new(),
            processes: Processes::default(),
            disks: Disks::default(),
            pages: 0,
            tables: HashMap::new(),
            unknown: "unknown".into(),
        }
    }

    /// When the last event was, in nanoseconds of the wall clock.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// A thread.
    #[inline]
    pub fn process(&self, id: ProcId) -> &Process {
        self.processes.get(id)
    }

    /// The thread of this id.
    pub fn find(&self, tid: i32) -> Option<ProcId> {
        self.processes.find(tid)
    }

    /// The name of a system call.
    pub fn call_name(&self, call: u32) -> &str {
        self.binding
            .calls
            .get(call as usize)
            .map_or("", String::as_str)
    }

    /// How many CPUs events spoke of.
    pub fn cpus_seen(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.seen).count()
    }

    /// The name of what nobody saw opened.
    pub fn unknown_name(&self) -> Arc<str> {
        self.unknown.clone()
    }

    /// The state of a CPU, which is seen from now on.
    fn cpu(&mut self, cpu: u32) -> Option<&mut CpuState> {
        if cpu >= CPUS_MAX {
            return None;
        }
        let place = cpu as usize;
        if self.cpus.len() <= place {
            self.cpus.resize_with(place + 1, CpuState::default);
        }
        self.cpus[place].seen = true;
        Some(&mut self.cpus[place])
    }

    /// The task on a CPU.
    #[inline]
    fn current(&self, cpu: u32) -> Option<ProcId> {
        self.cpus.get(cpu as usize)?.current
    }

    /// Takes in an event of the instant `now_ns` of the wall clock.
    #[inline]
    pub fn event<S: Sink>(&mut self, event: &EventView<'_>, now_ns: i64, sink: &mut S) {
        self.now_ns = now_ns;
        let Some(bound) = self.binding.get(event.class()) else {
            return;
        };
        let cpu = match bound.cpu {
            Some(field) => Some(event.u64(field) as u32),
            None => event.cpu().map(|cpu| cpu.0),
        };
        // What happened on no CPU that we know of happened to nobody.
        let Some(cpu) = cpu.filter(|cpu| *cpu < CPUS_MAX) else {
            return;
        };
        match bound.known {
            Known::CallEntry {
                call,
                file_call,
                connect,
                pid,
            } => {
                if let Some(pid) = pid {
                    self.group_of_context(cpu, event.i64(pid) as i32);
                }
                if let Some(fields) = connect {
                    self.connect(event, cpu, fields, sink);
                }
                self.call_entry(event, cpu, call, file_call, sink);
            }
            Known::CallExit { ret } => {
                let value = |(ret, signed)| match (event.i64(ret), signed) {
                    (ret, false) if ret < 0 => i64::MAX,
                    (ret, _) => ret,
                };
                self.call_exit(cpu, ret.map(value), sink);
            }
            Known::IrqEntry { .. }
            | Known::IrqExit { .. }
            | Known::SoftirqRaise { .. }
            | Known::SoftirqEntry { .. }
            | Known::SoftirqExit { .. } => self.interrupt(event, cpu, bound.known, sink),
            Known::DumpProcess { .. } | Known::DumpFile { .. } | Known::DumpDisk { .. } => {
                self.state_dump(event, bound.known, sink)
            }
            Known::BlockRemap { .. }
            | Known::BlockMerge { .. }
            | Known::BlockIssue { .. }
            | Known::BlockComplete { .. } => self.block(event, bound.known, sink),
            Known::Sent { name, len } => {
                let (interface, bytes) = (event.text(name), event.u64(len));
                sink.change(self, &Change::Sent { interface, bytes });
                self.packet_left(cpu);
            }
            Known::Received { name, len } => {
                let (interface, bytes) = (event.text(name), event.u64(len));
                sink.change(self, &Change::Received { interface, bytes });
            }
            Known::PageAlloc | Known::PageFree => self.page(cpu, bound.known, sink),
            known => self.scheduling(event, cpu, known, sink),
        }
    }
}
