//! Records system calls: what is wanted of the events that were asked for, and a reader that writes
//! a stream for each CPU.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as StdInstant;

use abi::syscalls::{CALLS_MAX, RawCall, RawSyscall};
use abi::syscalls::{SYSCALL_COMPAT, SYSCALL_EXIT, SYSCALL_FAULT};
use abi::syscalls::{WANTED_ENTRY, WANTED_EXIT};
use bpf_host::{CallTracker, SyscallConfig, SyscallWatch, UNKNOWN_CALL};
use ctf::writer::{PayloadWriter, StreamWriter};
use event::{Cpu, EventClass, Instant, Result, Tid};
use ftrace::EventName;

use super::batch::Batch;
use super::contexts::CallContexts;
use super::plan::{CallClasses, CallPlan};
use super::summary::CallsSummary;
use super::table;
use crate::channels::RingId;
use crate::clock;
use crate::kernel_ctf::KernelContexts;
use crate::progress::{POLL_PERIOD, Progress, Source};
use crate::turn::{Ended, Turns};

/// The system of tracepoints that have an event for each call.
const SYSTEM: &str = "syscalls";

/// Which calls are recorded by BPF, and what becomes of them.
#[derive(Debug)]
pub(crate) struct Wanted {
    calls: Vec<RawCall>,
    classes: Vec<EventClass>,
    /// Of each number: the plan and the place of the class of its entry and its exit.
    plans: Vec<[Option<(CallPlan, u32)>; 2]>,
    /// Of a page fault that a program serves, where waits alone are recorded.
    faults: [Option<(CallPlan, u32)>; 2],
    /// The tracepoints in whose place they are recorded.
    pub events: BTreeSet<EventName>,
}

/// The call in which threads wait for locks of their programs.
const FUTEX: &str = "futex";

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
        let mut wanted = Wanted::nothing();
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

    /// The waits that a recording of the scheduler tells from the wait for the next work: calls of
    /// `futex`, and page faults that programs serve.
    pub fn waits() -> Wanted {
        let mut wanted = Wanted::nothing();
        let futex = table::calls().find(|call| call.name == FUTEX);
        if let Some((number, call)) = futex.and_then(|call| Some((number(&call)?, call))) {
            let compile = || CallClasses::compile(&call, false);
            wanted.add(number, WANTED_ENTRY | WANTED_EXIT, compile);
        }
        let faults = CallClasses::faults();
        wanted.faults = [faults.entry, faults.exit].map(|one| Some(wanted.teach(one)));
        wanted
    }

    fn nothing() -> Wanted {
        Wanted {
            calls: vec![RawCall::default(); 2 * CALLS_MAX],
            classes: Vec::new(),
            plans: vec![[None, None]; 2 * CALLS_MAX],
            faults: [None, None],
            events: BTreeSet::new(),
        }
    }

    /// Whether these are waits alone.
    fn are_waits(&self) -> bool {
        self.faults[0].is_some()
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
        let way = usize::from(record.flags & SYSCALL_EXIT != 0);
        if record.flags & SYSCALL_FAULT != 0 {
            return self.faults[way].as_ref();
        }
        let number = usize::try_from(record.number).unwrap_or(UNKNOWN_CALL);
        let mut key = number.min(UNKNOWN_CALL);
        if record.flags & SYSCALL_COMPAT != 0 {
            key += CALLS_MAX;
        }
        self.plans.get(key)?[way].as_ref()
    }
}

/// The classes of all system calls that the table has.
pub fn system_call_classes() -> Vec<EventClass> {
    let native = table::calls().filter(|call| call.number.is_some());
    let native = native.map(|call| CallClasses::compile(&call, false));
    let compat = table::calls().filter(|call| call.compat_number.is_some());
    let compat = compat.map(|call| CallClasses::compile(&call, true));
    let others = [false, true].map(CallClasses::unknown).into_iter();
    let others = others.chain([CallClasses::faults()]);
    let all = native.chain(compat).chain(others);
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

/// A stream of one CPU.
#[derive(Debug)]
struct CallStream {
    cpu: Cpu,
    stream: StreamWriter,
    last_ns: u64,
    lost: u64,
    /// Those of them that streams before this one have.
    lost_before: u64,
    /// The stream that takes over, and from when on.
    next: Option<(Instant, StreamWriter)>,
}

/// Running programs and the streams that they fill.
pub struct SyscallRecorder {
    watch: SyscallWatch,
    contexts: CallContexts,
    /// What stands before an event's own fields.
    carried: Vec<u8>,
    wanted: Wanted,
    batch: Batch,
    streams: Vec<CallStream>,
    /// The number of the first class.
    first_class: u32,
    payload: PayloadWriter,
    /// What the streams of now got, and those before them.
    written: CallsSummary,
    /// All that were written so far.
    events: u64,
}

impl SyscallRecorder {
    /// Starts the programs on `cpus`.
    ///
    /// # Errors
    /// When this kernel or these privileges do not allow it.
    pub(crate) fn start(
        mut wanted: Wanted,
        contexts: &KernelContexts,
        (cpus, buffer_bytes_per_cpu): (&[Cpu], usize),
        (own, tracked): (bool, Option<Vec<Tid>>),
    ) -> Result<Self> {
        // Nobody asked for the calls that tell waits.
        let none = KernelContexts::default();
        let contexts = if wanted.are_waits() { &none } else { contexts };
        let contexts = CallContexts::start(contexts, cpus, buffer_bytes_per_cpu)?;
        contexts.add_to(&mut wanted.classes);
        let config = SyscallConfig {
            calls: wanted.calls.clone(),
            waits: wanted.are_waits(),
            own,
            tracked,
            buffer_bytes_per_cpu,
            cpus: cpus.to_vec(),
            // It costs every program of the machine; whoever wants to know switches it on.
            with_cost: false,
        };
        Ok(SyscallRecorder {
            watch: SyscallWatch::start(&config)?,
            contexts,
            carried: Vec::new(),
            wanted,
            batch: Batch::new(cpus),
            streams: Vec::new(),
            first_class: 0,
            payload: PayloadWriter::new(),
            written: CallsSummary::default(),
            events: 0,
        })
    }

    /// Who names more tasks whose calls are meant.
    pub(crate) fn tracker(&self) -> Result<CallTracker> {
        self.watch.tracker()
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
        streams: Vec<(RingId, StreamWriter)>,
        first_class: u32,
        begin: Instant,
    ) -> Result<()> {
        self.first_class = first_class;
        for (ring, mut stream) in streams {
            stream.covers(begin)?;
            self.streams.push(CallStream {
                cpu: ring.cpu,
                stream,
                last_ns: begin.as_ns().max(0) as u64,
                lost: 0,
                lost_before: 0,
                next: None,
            });
        }
        Ok(())
    }

    /// Empties the rings now and then until `drained` is raised, and then a last time; gives what
    /// the streams got that it writes to then.
    ///
    /// # Errors
    /// When a stream cannot be written, or the system refuses.
    pub(crate) fn read_until(
        mut self,
        drained: &AtomicBool,
        mut progress: (Arc<Progress>, Source),
        turns: Option<Turns<'_>>,
    ) -> Result<CallsSummary> {
        let mut flushed = StdInstant::now();
        let mut turning = None;
        loop {
            let is_last = drained.load(Ordering::Acquire);
            if is_last {
                self.watch.stop();
            }
            if let Some(turn) = turns.as_ref().and_then(|turns| turns.asked.try_recv().ok()) {
                turning = Some(turn.progress);
                self.turn_to(turn.at, turn.streams);
            }
            let (begin, begin_at) = (StdInstant::now(), clock::monotonic());
            self.empty(is_last)?;
            if let Some(turns) = &turns {
                let lost = self.streams.iter().map(|stream| stream.lost);
                turns.fills.note_calls(self.events, lost.sum());
            }
            let held = self.batch.first_held();
            let whole_until = held.map_or(begin_at, |held| held.min(begin_at));
            if let (Some(new), Some(turns)) = (&turning, &turns)
                && let Some(ended) = self.turned(whole_until)?
            {
                progress.0.over(progress.1)?;
                progress = new.clone();
                turning = None;
                // Whoever asked may have given up, and then the recording ends.
                let _ = turns.ended.send(Ended::Calls(ended));
            }
            if is_last {
                progress.0.over(progress.1)?;
                return self.finish();
            }
            if flushed.elapsed() >= progress.0.flush_period() {
                flushed = StdInstant::now();
                for stream in &mut self.streams {
                    stream.stream.gap()?;
                }
                progress.0.reached(progress.1, whole_until)?;
            }
            std::thread::sleep(POLL_PERIOD.saturating_sub(begin.elapsed()));
        }
    }

    /// What happens from `at` on goes to `streams`.
    fn turn_to(&mut self, at: Instant, streams: Vec<(RingId, StreamWriter)>) {
        for (ring, stream) in streams {
            if let Some(own) = self.streams.iter_mut().find(|own| own.cpu == ring.cpu) {
                own.next = Some((at, stream));
            }
        }
    }

    /// Ends the turn, when all of before it was read: gives what the streams before it got.
    fn turned(&mut self, whole_until: Instant) -> Result<Option<CallsSummary>> {
        let waits = |stream: &CallStream| {
            let next = stream.next.as_ref();
            next.is_some_and(|(at, _)| *at > whole_until)
        };
        if self.streams.iter().any(waits) {
            return Ok(None);
        }
        for stream in &mut self.streams {
            stream.turn(&mut self.written)?;
        }
        Ok(Some(std::mem::take(&mut self.written)))
    }

    fn empty(&mut self, is_last: bool) -> Result<()> {
        let SyscallRecorder {
            watch,
            contexts,
            carried,
            wanted,
            batch,
            streams,
            first_class,
            payload,
            written,
            events,
        } = self;
        watch.take(|cpu, bytes| batch.add(cpu, bytes))?;
        contexts.take()?;
        batch.drain(clock::monotonic(), is_last, |cpu, record, contents| {
            let Some(to) = streams.iter_mut().find(|stream| stream.cpu == cpu) else {
                return Ok(());
            };
            let Some((plan, class)) = wanted.plan(record) else {
                return Ok(());
            };
            *events += 1;
            carried.clear();
            contexts.write(cpu, record, carried)?;
            payload.clear().raw(carried);
            plan.run(record, contents, payload);
            to.write(*first_class + class, record, payload.bytes(), written)
        })
    }

    fn finish(self) -> Result<CallsSummary> {
        let counters = self.watch.counters()?;
        let costs = self.watch.costs();
        let mut summary = CallsSummary {
            // Nobody asked for calls.
            left_out: match self.wanted.are_waits() {
                true => 0,
                false => counters.left_out,
            },
            unread: self.contexts.unread,
            runs: costs.iter().map(|cost| cost.calls).sum(),
            run_ns: costs.iter().map(|cost| cost.run_ns).sum(),
            ..self.written
        };
        let end = clock::monotonic();
        for mut stream in self.streams {
            // What was lost behind the last record.
            stream.lost(self.watch.lost(stream.cpu)?)?;
            stream.end(end, &mut summary)?;
        }
        Ok(summary)
    }
}

impl CallStream {
    fn write(
        &mut self,
        class: u32,
        record: &RawSyscall,
        payload: &[u8],
        written: &mut CallsSummary,
    ) -> Result<()> {
        // What was lost lies before this record, and belongs to what was before the turn.
        self.lost(record.lost)?;
        let time = Instant::from_ns(record.time_ns as i64);
        if self.next.as_ref().is_some_and(|(at, _)| *at <= time) {
            self.turn(written)?;
        }
        self.last_ns = self.last_ns.max(record.time_ns);
        let time = Instant::from_ns(self.last_ns as i64);
        self.stream.event(class, time, payload)
    }

    fn lost(&mut self, total: u64) -> Result<()> {
        if total > self.lost {
            self.lost = total;
            self.stream.discarded(total - self.lost_before)?;
        }
        Ok(())
    }

    /// Ends the stream, and begins the next one, when there is one.
    fn turn(&mut self, written: &mut CallsSummary) -> Result<()> {
        let Some((at, stream)) = self.next.take() else {
            return Ok(());
        };
        let ended = std::mem::replace(&mut self.stream, stream);
        let ended = CallStream {
            cpu: self.cpu,
            stream: ended,
            next: None,
            ..*self
        };
        ended.end(at, written)?;
        self.lost_before = self.lost;
        self.last_ns = self.last_ns.max(at.as_ns().max(0) as u64);
        self.stream.covers(Instant::from_ns(self.last_ns as i64))
    }

    /// Ends the stream, which covers all until `end`, and counts what it got.
    fn end(mut self, end: Instant, written: &mut CallsSummary) -> Result<()> {
        self.stream
            .covers(end.max(Instant::from_ns(self.last_ns as i64)))?;
        let totals = self.stream.finish()?;
        written.events += totals.events;
        written.lost += totals.discarded;
        written.size_bytes += totals.size_bytes;
        Ok(())
    }
}
