//! Perfetto's trace format, for its UI and its trace processor.
//!
//! Scheduler, interrupt and softirq events are ftrace events of Perfetto, so that it makes slices,
//! wake-up flows and interrupt tracks of them. System calls are slices on their threads' tracks,
//! events of applications points on tracks below their threads, all other events of the kernel
//! points on a track for each CPU. A loss is a point on its CPU's track and the mark that Perfetto
//! has for it.
//!
//! Times are on the trace's clock, which is called BOOTTIME there, because that is what Perfetto
//! takes ftrace's times for; a snapshot of clocks places it on the wall.

mod annotate;
mod classes;
mod proto;
mod tracks;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use event::{ClassId, Cpu, Duration, Instant, Result};
use prost::Message;
use trace::{EventView, Lost};

use self::classes::{Class, Ftrace, Role, text};
use self::proto::{
    Clock, ClockSnapshot, DebugAnnotation, FtraceEvent, FtraceEventBundle, ProcessTree, SystemInfo,
    TracePacket, TrackEvent, TreeThread, Utsname, clock, kind,
};
use self::tracks::{Thread, Track, Tracks};
use crate::output::Output;
use crate::sink::{Sink, cause_word};

/// All packets come from one writer.
const SEQUENCE: u32 = 1;
/// Events of a CPU are written in bundles of so many.
const BUNDLE_EVENTS: usize = 512;

/// A trace of Perfetto that is being written.
pub(crate) struct Perfetto<'t> {
    trace: &'t trace::Trace,
    output: Output,
    classes: Vec<Class>,
    cpus: BTreeMap<u32, CpuState>,
    tracks: Tracks,
    /// Threads inside of a system call.
    in_call: HashMap<i32, u64>,
    /// To add to each instant, so that none is before the clock's origin.
    shift: Duration,
}

#[derive(Default)]
struct CpuState {
    bundle: Vec<FtraceEvent>,
    has_lost: bool,
    /// The thread that runs, once a switch said so.
    running: Option<i32>,
}

impl<'t> Perfetto<'t> {
    pub fn create(trace: &'t trace::Trace, path: &Path) -> Result<Self> {
        let begin = trace
            .range()
            .map_or(Instant::default(), |range| range.begin);
        let classes = trace.classes().iter();
        let mut perfetto = Perfetto {
            trace,
            output: Output::create(path)?,
            classes: classes.map(|class| Class::new(class, trace)).collect(),
            cpus: BTreeMap::new(),
            tracks: Tracks::default(),
            in_call: HashMap::new(),
            shift: Instant::default().since(begin.min(Instant::default())),
        };
        perfetto.head(begin)?;
        Ok(perfetto)
    }

    /// Clocks and machine.
    fn head(&mut self, begin: Instant) -> Result<()> {
        let now = (begin.max(Instant::default()) + self.shift).as_ns();
        let wall = self.trace.wall_ns(begin.max(Instant::default()));
        let read = |clock_id, ns: i64| Clock {
            clock_id: Some(clock_id),
            timestamp: Some(ns.max(0) as u64),
        };
        let clocks = vec![
            read(clock::BOOTTIME, now),
            read(clock::MONOTONIC, now),
            read(clock::REALTIME, wall),
        ];
        let environment = &self.trace.info().environment;
        let entry = |name: &str| environment.get(name).cloned();
        let utsname = Utsname {
            sysname: entry("sysname"),
            version: entry("kernel_version"),
            release: entry("kernel_release"),
            machine: entry("machine").or_else(|| entry("architecture")),
        };
        self.packet(TracePacket {
            timestamp: Some(now.max(0) as u64),
            clock_snapshot: Some(ClockSnapshot { clocks }),
            ..TracePacket::default()
        })?;
        self.packet(TracePacket {
            system_info: Some(SystemInfo {
                utsname: Some(utsname),
            }),
            ..TracePacket::default()
        })
    }

    fn packet(&mut self, packet: TracePacket) -> Result<()> {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..packet
        };
        let trace = proto::Trace {
            packet: vec![packet],
        };
        self.output.write(&trace.encode_to_vec())
    }

    fn ns(&self, instant: Instant) -> u64 {
        (instant + self.shift).as_ns().max(0) as u64
    }

    /// Writes an event on a track, and the track's description before its first.
    fn track_event(&mut self, track: &Track, time: u64, event: TrackEvent) -> Result<()> {
        let mut new = Vec::new();
        let number = self.tracks.number(track, &mut new);
        for descriptor in new {
            self.packet(TracePacket {
                track_descriptor: Some(descriptor),
                ..TracePacket::default()
            })?;
        }
        self.packet(TracePacket {
            timestamp: Some(time),
            track_event: Some(TrackEvent {
                track_uuid: Some(number),
                ..event
            }),
            ..TracePacket::default()
        })
    }

    fn ftrace(&mut self, cpu: u32, event: FtraceEvent) -> Result<()> {
        let state = self.cpus.entry(cpu).or_default();
        state.bundle.push(event);
        match state.bundle.len() < BUNDLE_EVENTS {
            true => Ok(()),
            false => self.flush(cpu),
        }
    }

    fn flush(&mut self, cpu: u32) -> Result<()> {
        let Some(state) = self.cpus.get_mut(&cpu) else {
            return Ok(());
        };
        let bundle = FtraceEventBundle {
            cpu: Some(cpu),
            event: std::mem::take(&mut state.bundle),
            lost_events: std::mem::take(&mut state.has_lost).then_some(true),
        };
        if bundle.event.is_empty() && bundle.lost_events.is_none() {
            return Ok(());
        }
        self.packet(TracePacket {
            ftrace_events: Some(bundle),
            ..TracePacket::default()
        })
    }

    fn running(&self, cpu: Option<Cpu>) -> Option<i32> {
        self.cpus.get(&cpu?.0)?.running
    }

    /// The thread that a user event is of: by its own fields, else the one that runs on its CPU.
    fn user_track(&mut self, id: ClassId, provider: &str, event: &EventView<'_>) -> Track {
        let fields = &self.classes[id.0 as usize].thread;
        let said = fields.tid.map(|tid| event.i64(tid) as i32);
        let pid = fields.pid.map(|pid| event.i64(pid) as i32);
        let name = fields.name.map(|name| text(event, name));
        let running = || self.running(event.cpu()).filter(|tid| *tid != 0);
        let Some(tid) = said.or_else(running) else {
            return Track::UserOnCpu(event.cpu(), provider.to_owned());
        };
        if said.is_some() {
            self.tracks
                .threads
                .entry(tid)
                .or_insert(Thread { pid, name });
        }
        Track::User(tid, provider.to_owned())
    }

    fn syscall(&mut self, call: Option<&str>, id: ClassId, event: &EventView<'_>) -> Result<()> {
        let time = self.ns(event.time());
        let said = self.classes[id.0 as usize].thread.tid;
        let said = said.map(|tid| event.i64(tid) as i32);
        let Some(tid) = said.or(self.running(event.cpu())) else {
            // Before the first switch nobody knows who calls: it stays an event of the CPU.
            return self.instant(&Track::Cpu(event.cpu()), id, event, "syscall");
        };
        let track = Track::Thread(tid);
        if self.in_call.remove(&tid).is_some() {
            let end = TrackEvent {
                kind: Some(kind::SLICE_END),
                debug_annotations: match call {
                    None => annotate::fields(&self.trace.classes()[id.0 as usize], event),
                    Some(_) => Vec::new(),
                },
                ..TrackEvent::default()
            };
            self.track_event(&track, time, end)?;
        } else if call.is_none() {
            // Its entry is not in the trace.
            return self.instant(&track, id, event, "syscall");
        }
        let Some(call) = call else { return Ok(()) };
        self.in_call.insert(tid, time);
        let begin = TrackEvent {
            kind: Some(kind::SLICE_BEGIN),
            name: Some(call.to_owned()),
            categories: vec!["syscall".to_owned()],
            debug_annotations: annotate::fields(&self.trace.classes()[id.0 as usize], event),
            ..TrackEvent::default()
        };
        self.track_event(&track, time, begin)
    }

    /// A point in time with all of an event's fields.
    fn instant(
        &mut self,
        track: &Track,
        id: ClassId,
        event: &EventView<'_>,
        category: &str,
    ) -> Result<()> {
        let class = &self.trace.classes()[id.0 as usize];
        let point = TrackEvent {
            kind: Some(kind::INSTANT),
            name: Some(class.name.clone()),
            categories: vec![category.to_owned()],
            debug_annotations: annotate::fields(class, event),
            ..TrackEvent::default()
        };
        self.track_event(track, self.ns(event.time()), point)
    }

    /// Names a thread and its process, from a state dump.
    fn process(&mut self, tid: i32, pid: i32, name: Option<String>) -> Result<()> {
        let thread = Thread {
            pid: Some(pid),
            name: name.clone(),
        };
        self.tracks.threads.insert(tid, thread);
        let threads = vec![TreeThread {
            tid: Some(tid),
            name,
            tgid: Some(pid),
        }];
        self.packet(TracePacket {
            process_tree: Some(ProcessTree { threads }),
            ..TracePacket::default()
        })
    }
}

impl Sink for Perfetto<'_> {
    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        let id = event.class();
        let Some(class) = self.classes.get(id.0 as usize) else {
            return Ok(());
        };
        match (&class.role, event.cpu()) {
            (Role::Ftrace(ftrace), Some(cpu)) => {
                let running = self.running(Some(cpu));
                let converted = ftrace.event(event, self.ns(event.time()), running);
                if let Ftrace::Switch { next, .. } = ftrace {
                    let next = next.tid(event);
                    self.cpus.entry(cpu.0).or_default().running = Some(next);
                }
                self.ftrace(cpu.0, converted)
            }
            (Role::SyscallEntry(call), _) => {
                let call = call.clone();
                self.syscall(Some(&call), id, event)
            }
            (Role::SyscallExit, _) => self.syscall(None, id, event),
            (Role::User(provider), _) => {
                let provider = provider.clone();
                let track = self.user_track(id, &provider, event);
                self.instant(&track, id, event, "user")
            }
            (Role::Process { tid, pid, name }, _) => {
                let (tid, pid) = (event.i64(*tid) as i32, event.i64(*pid) as i32);
                let name = name.map(|name| text(event, name));
                self.process(tid, pid, name)?;
                self.instant(&Track::Cpu(event.cpu()), id, event, "kernel")
            }
            (Role::Kernel | Role::Ftrace(_), cpu) => {
                self.instant(&Track::Cpu(cpu), id, event, "kernel")
            }
        }
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        if let Some(cpu) = lost.cpu {
            let state = self.cpus.entry(cpu.0).or_default();
            state.has_lost = true;
            // Who runs after a hole nobody knows until the next switch.
            state.running = None;
        }
        let count = lost
            .count
            .map_or("events".to_owned(), |count| format!("{count} events"));
        let note = |name: &str, value: i64| DebugAnnotation {
            name: Some(name.to_owned()),
            int_value: Some(value),
            ..DebugAnnotation::default()
        };
        let point = TrackEvent {
            kind: Some(kind::INSTANT),
            name: Some(format!("lost: {count} ({})", cause_word(lost.cause))),
            categories: vec!["loss".to_owned()],
            debug_annotations: vec![
                note("begin_ns", lost.range.begin.as_ns()),
                note("end_ns", lost.range.end.as_ns()),
            ],
            ..TrackEvent::default()
        };
        let time = self.ns(lost.range.begin);
        self.track_event(&Track::Cpu(lost.cpu), time, point)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.flush(cpu))?;
        self.output.finish()
    }
}

#[cfg(test)]
mod tests {
    use event::TimeRange;
    use testkit::{SyntheticTrace, Task};
    use trace::Item;

    use super::*;

    /// What Perfetto is told of a trace.
    fn converted(trace: &trace::Trace) -> proto::Trace {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.pftrace");
        let mut sink = Box::new(Perfetto::create(trace, &path).unwrap());
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().unwrap() {
            match item {
                Item::Event(event) => sink.event(&event).unwrap(),
                Item::Lost(lost) => sink.lost(&lost).unwrap(),
                Item::Damage(damage) => sink.damage(&damage).unwrap(),
            }
        }
        sink.finish().unwrap();
        proto::Trace::decode(&std::fs::read(&path).unwrap()[..]).unwrap()
    }

    #[test]
    fn scheduler_and_interrupts_are_ftrace_events_and_calls_are_slices_of_their_thread() {
        let victim = Task::rt(100, "victim", 60);
        let trace = SyntheticTrace::new()
            .at(10)
            .run(victim)
            .after(1)
            .event("syscall_entry_read", &[])
            .after(1)
            .irq(24, "snd")
            .after(1)
            .irq_end(24)
            .after(1)
            .event("syscall_exit_read", &[])
            .lost(20, 30)
            .build();
        let packets = converted(&trace).packet;
        let bundles = packets.iter().filter_map(|p| p.ftrace_events.as_ref());
        let ftrace: Vec<&FtraceEvent> = bundles.flat_map(|bundle| &bundle.event).collect();
        let switch = ftrace.iter().find_map(|e| e.sched_switch.as_ref()).unwrap();
        assert_eq!((switch.next_pid, switch.next_prio), (Some(100), Some(39)));
        let irqs = ftrace.iter().filter(|e| e.irq_handler_entry.is_some());
        assert_eq!(irqs.count(), 1);
        let events = packets.iter().filter_map(|p| p.track_event.as_ref());
        let kinds: Vec<(Option<i32>, Option<&str>)> =
            events.map(|e| (e.kind, e.name.as_deref())).collect();
        assert_eq!(
            kinds,
            [
                (Some(kind::SLICE_BEGIN), Some("read")),
                (Some(kind::SLICE_END), None),
                (Some(kind::INSTANT), Some("lost: 1 events (discarded)")),
            ]
        );
        let tracks = packets.iter().filter_map(|p| p.track_descriptor.as_ref());
        let threads: Vec<i64> = tracks.filter_map(|t| t.thread.as_ref()?.tid).collect();
        assert_eq!(threads, [100]);
    }
}
