//! Records system calls: what is wanted of the events that were asked for, and a reader that writes
//! a stream for each CPU.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as StdInstant;

use abi::syscalls::{CALLS_MAX, RawCall, RawSyscall, SYSCALL_COMPAT, SYSCALL_EXIT};
use abi::syscalls::{WANTED_ENTRY, WANTED_EXIT};
use bpf_host::{SyscallConfig, SyscallWatch, UNKNOWN_CALL};
use ctf::writer::{PayloadWriter, StreamWriter};
use event::{Cpu, EventClass, Instant, Result};
use ftrace::EventName;

use super::batch::Batch;
use super::plan::{CallClasses, CallPlan};
use super::table;
use crate::clock;
use crate::progress::{FLUSH_PERIOD, POLL_PERIOD, Progress, Source};

/// The system of tracepoints that have an event for each call.
const SYSTEM: &str = "syscalls";

/// Which calls are recorded by BPF, and what becomes of them.
#[derive(Debug)]
pub(crate) struct Wanted {
    calls: Vec<RawCall>,
    classes: Vec<EventClass>,
    /// Of each number: the plan and the place of the class of its entry and its exit.
    plans: Vec<[Option<(CallPlan, u32)>; 2]>,
    /// The tracepoints in whose place they are recorded.
    pub events: BTreeSet<EventName>,
}

impl Wanted {
    /// From the tracepoints that were `selected` of those that are `available`; those that have a
    /// filter stay the kernel's. None when no call is left.
    pub fn of(
        selected: &[EventName],
        available: &[EventName],
        is_filtered: impl Fn(&EventName) -> bool,
    ) -> Option<Wanted> {
        let of_calls = |event: &&EventName| event.system == SYSTEM;
        let chosen: BTreeSet<_> = selected.iter().filter(of_calls).collect();
        let all = chosen.len() == available.iter().filter(of_calls).count();
        let bits = |name: &str| {
            let bit = |way: &str, bit: u8| {
                let event = EventName {
                    system: SYSTEM.to_owned(),
                    name: format!("sys_{way}_{name}"),
                };
                let is_chosen = chosen.contains(&event) && !is_filtered(&event);
                is_chosen.then_some((event, bit))
            };
            [bit("enter", WANTED_ENTRY), bit("exit", WANTED_EXIT)]
        };
        let mut wanted = Wanted {
            calls: vec![RawCall::default(); 2 * CALLS_MAX],
            classes: Vec::new(),
            plans: vec![[None, None]; 2 * CALLS_MAX],
            events: BTreeSet::new(),
        };
        for call in table::calls() {
            let mut both = 0;
            for (event, bit) in bits(call.name).into_iter().flatten() {
                both |= bit;
                wanted.events.insert(event);
            }
            if let Some(number) = number(&call) {
                wanted.add(number, both, || CallClasses::compile(&call, false));
            }
            // Programs of 32 bits have some calls that no others have: those come with all.
            let both = if all {
                WANTED_ENTRY | WANTED_EXIT
            } else {
                both
            };
            if let Some(number) = compat_number(&call) {
                let number = number + CALLS_MAX;
                wanted.add(number, both, || CallClasses::compile(&call, true));
            }
        }
        if wanted.events.is_empty() {
            return None;
        }
        let is_rest = chosen.iter().any(|event| !wanted.events.contains(event));
        if all && !is_rest {
            wanted.add_unknown();
        }
        Some(wanted)
    }

    fn add(&mut self, number: usize, both: u8, classes: impl FnOnce() -> CallClasses) {
        if both == 0 || number >= self.calls.len() {
            return;
        }
        let classes = classes();
        self.calls[number] = classes.wanted(both);
        let (entry, exit) = (self.teach(classes.entry), self.teach(classes.exit));
        self.plans[number] = [
            (both & WANTED_ENTRY != 0).then_some(entry),
            (both & WANTED_EXIT != 0).then_some(exit),
        ];
    }

    fn teach(&mut self, (plan, class): (CallPlan, EventClass)) -> (CallPlan, u32) {
        self.classes.push(class);
        (plan, self.classes.len() as u32 - 1)
    }

    /// Calls without a row in the table, and numbers that are no call's.
    fn add_unknown(&mut self) {
        for (first, compat) in [(0, false), (CALLS_MAX, true)] {
            let classes = CallClasses::unknown(compat);
            let both = WANTED_ENTRY | WANTED_EXIT;
            let (entry, exit) = (
                self.teach(classes.entry.clone()),
                self.teach(classes.exit.clone()),
            );
            for number in first..=first + UNKNOWN_CALL {
                if self.calls[number].wanted == 0 {
                    self.calls[number] = classes.wanted(both);
                    self.plans[number] = [Some(entry.clone()), Some(exit.clone())];
                }
            }
        }
    }

    /// The classes, each at its place.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    fn plan(&self, record: &RawSyscall) -> Option<&(CallPlan, u32)> {
        let number = usize::try_from(record.number).unwrap_or(UNKNOWN_CALL);
        let mut key = number.min(UNKNOWN_CALL);
        if record.flags & SYSCALL_COMPAT != 0 {
            key += CALLS_MAX;
        }
        let way = usize::from(record.flags & SYSCALL_EXIT != 0);
        self.plans.get(key)?[way].as_ref()
    }
}

/// The classes of all system calls that the table has.
pub fn system_call_classes() -> Vec<EventClass> {
    let native = table::calls().filter(|call| call.number.is_some());
    let native = native.map(|call| CallClasses::compile(&call, false));
    let compat = table::calls().filter(|call| call.compat_number.is_some());
    let compat = compat.map(|call| CallClasses::compile(&call, true));
    let unknown = [false, true].map(CallClasses::unknown);
    let all = native.chain(compat).chain(unknown);
    all.flat_map(|call| [call.entry.1, call.exit.1]).collect()
}

#[cfg(target_arch = "x86_64")]
fn number(call: &table::Call) -> Option<usize> {
    call.number.map(|number| number as usize)
}

/// Elsewhere the C library knows the numbers, by names of its own.
#[cfg(not(target_arch = "x86_64"))]
fn number(call: &table::Call) -> Option<usize> {
    let name = match call.name {
        "newfstat" => "fstat",
        "newuname" => "uname",
        "sendfile64" => "sendfile",
        "umount" => "umount2",
        other => other,
    };
    call.number?;
    bpf_host::trackers::call_number(name).map(|number| number as usize)
}

fn compat_number(call: &table::Call) -> Option<usize> {
    let number = call.compat_number.map(|number| number as usize);
    number.filter(|_| cfg!(target_arch = "x86_64"))
}

/// What was recorded of system calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallsSummary {
    /// Entries and exits that were written.
    pub events: u64,
    /// Those for which a ring had no space.
    pub lost: u64,
    /// Those of the recorder itself, which were left out.
    pub left_out: u64,
    /// Bytes of the streams.
    pub size_bytes: u64,
    /// What the programs cost in the traced tasks: how often they ran, and for how long in all.
    pub runs: u64,
    /// The same in nanoseconds; zero where the kernel was not asked to count.
    pub run_ns: u64,
    /// Why contents were not recorded, and the calls came by ftrace.
    pub refused: Option<String>,
}

/// A stream of one CPU.
#[derive(Debug)]
struct CallStream {
    cpu: Cpu,
    stream: StreamWriter,
    last_ns: u64,
    lost: u64,
}

/// Running programs and the streams that they fill.
pub struct SyscallRecorder {
    watch: SyscallWatch,
    wanted: Wanted,
    batch: Batch,
    streams: Vec<CallStream>,
    /// The number of the first class.
    first_class: u32,
    payload: PayloadWriter,
    events: u64,
}

impl SyscallRecorder {
    /// Starts the programs on `cpus`.
    ///
    /// # Errors
    /// When this kernel or these privileges do not allow it.
    pub(crate) fn start(
        wanted: Wanted,
        cpus: &[Cpu],
        buffer_bytes_per_cpu: usize,
        own: bool,
    ) -> Result<Self> {
        let config = SyscallConfig {
            calls: wanted.calls.clone(),
            own,
            buffer_bytes_per_cpu,
            cpus: cpus.to_vec(),
            // It costs every program of the machine; whoever wants to know switches it on.
            with_cost: false,
        };
        Ok(SyscallRecorder {
            watch: SyscallWatch::start(&config)?,
            wanted,
            batch: Batch::new(cpus),
            streams: Vec::new(),
            first_class: 0,
            payload: PayloadWriter::new(),
            events: 0,
        })
    }

    /// The classes of its events.
    pub(crate) fn classes(&self) -> &[EventClass] {
        self.wanted.classes()
    }

    /// Writes to `streams`, whose class `first_class` is the first of these classes; they cover
    /// what comes from `begin` on.
    ///
    /// # Errors
    /// When a stream cannot be written.
    pub(crate) fn write_to(
        &mut self,
        streams: Vec<(Cpu, StreamWriter)>,
        first_class: u32,
        begin: Instant,
    ) -> Result<()> {
        self.first_class = first_class;
        for (cpu, mut stream) in streams {
            stream.covers(begin)?;
            self.streams.push(CallStream {
                cpu,
                stream,
                last_ns: begin.as_ns().max(0) as u64,
                lost: 0,
            });
        }
        Ok(())
    }

    /// Empties the rings now and then until `drained` is raised, and then a last time.
    ///
    /// # Errors
    /// When a stream cannot be written, or the system refuses.
    pub(crate) fn read_until(
        mut self,
        drained: &AtomicBool,
        (progress, source): (&Progress, Source),
    ) -> Result<CallsSummary> {
        let mut flushed = StdInstant::now();
        loop {
            let is_last = drained.load(Ordering::Acquire);
            if is_last {
                self.watch.stop();
            }
            let (begin, begin_at) = (StdInstant::now(), clock::monotonic());
            self.empty(is_last)?;
            if is_last {
                progress.over(source)?;
                return self.finish();
            }
            if flushed.elapsed() >= FLUSH_PERIOD {
                flushed = StdInstant::now();
                for stream in &mut self.streams {
                    stream.stream.gap()?;
                }
                let held = self.batch.first_held();
                progress.reached(source, held.map_or(begin_at, |held| held.min(begin_at)))?;
            }
            std::thread::sleep(POLL_PERIOD.saturating_sub(begin.elapsed()));
        }
    }

    fn empty(&mut self, is_last: bool) -> Result<()> {
        let SyscallRecorder {
            watch,
            wanted,
            batch,
            streams,
            first_class,
            payload,
            events,
        } = self;
        watch.take(|cpu, bytes| batch.add(cpu, bytes))?;
        batch.drain(clock::monotonic(), is_last, |cpu, record, contents| {
            let Some(to) = streams.iter_mut().find(|stream| stream.cpu == cpu) else {
                return Ok(());
            };
            let Some((plan, class)) = wanted.plan(record) else {
                return Ok(());
            };
            *events += 1;
            payload.clear();
            plan.run(record, contents, payload);
            to.write(*first_class + class, record, payload.bytes())
        })
    }

    fn finish(self) -> Result<CallsSummary> {
        let counters = self.watch.counters()?;
        let costs = self.watch.costs();
        let mut summary = CallsSummary {
            events: self.events,
            lost: counters.lost,
            left_out: counters.left_out,
            runs: costs.iter().map(|cost| cost.calls).sum(),
            run_ns: costs.iter().map(|cost| cost.run_ns).sum(),
            ..CallsSummary::default()
        };
        let end = clock::monotonic();
        for mut stream in self.streams {
            // What was lost behind the last record.
            stream.lost(self.watch.lost(stream.cpu)?)?;
            stream
                .stream
                .covers(end.max(Instant::from_ns(stream.last_ns as i64)))?;
            summary.size_bytes += stream.stream.finish()?.size_bytes;
        }
        Ok(summary)
    }
}

impl CallStream {
    fn write(&mut self, class: u32, record: &RawSyscall, payload: &[u8]) -> Result<()> {
        self.lost(record.lost)?;
        self.last_ns = self.last_ns.max(record.time_ns);
        let time = Instant::from_ns(self.last_ns as i64);
        self.stream.event(class, time, payload)
    }

    fn lost(&mut self, total: u64) -> Result<()> {
        if total > self.lost {
            self.lost = total;
            self.stream.discarded(total)?;
        }
        Ok(())
    }
}
