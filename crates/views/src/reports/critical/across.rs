//! The critical path across hosts: where a packet woke the thread, the path goes on in the thread
//! that sent it, on the sender's host and by its clock.

use std::collections::HashMap;
use std::rc::Rc;

use event::Result;
use trace::{EventView, Trace};

use super::history::Place;
use super::limits::{NODES_MAX, STEPS_MAX, what_text};
use super::path::{Follower, Step, What};
use super::recorder::Recorder;
use crate::hosts::{Crossing, HostId, Hosts, PacketKey, Packets, Seen};
use crate::reports::columns::{
    DURATION, ERROR_AT_MOST, FROM_TO, SHARE, THREAD, TIMES, TOTAL, WHAT,
};
use crate::reports::cputop::share;
use crate::reports::options::ReportOptions;
use crate::reports::ordered::Ordered;
use crate::reports::sched::process_cell;
use crate::reports::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, Follow, Kernel, ProcId, Shared, Sink, Waker};

const HOST: Column = Column::new("host", "Host", Kind::Text);
pub(super) const SUMS: TableClass = TableClass {
    name: "host_sums",
    title: "What the critical path across hosts consists of",
    columns: &[HOST, THREAD, WHAT, TOTAL, SHARE, TIMES],
};
pub(super) const STEPS: TableClass = TableClass {
    name: "host_steps",
    title: "The critical path across hosts, on the clock of the host of the thread asked for",
    columns: &[FROM_TO, DURATION, HOST, THREAD, WHAT, ERROR_AT_MOST],
};

/// The softirq that takes packets in.
const NET_RX: i64 = 3;
/// So often a path may go from host to host inside one wait.
const HOPS_MAX: usize = 64;
/// Wake-ups and senders that are kept at most; where more are, the path ends at the packet.
const NOTES_MAX: usize = 2_000_000;

/// Several hosts, each with a kernel of its own.
pub(in crate::reports) struct Across {
    options: Rc<ReportOptions>,
    hosts: Vec<Host>,
    packets: Packets,
}

struct Host {
    kernel: Kernel,
    watch: Watch,
}

/// What a host's threads did, and which packets they sent and were woken by.
struct Watch {
    recorder: Option<Recorder>,
    begin_ns: i64,
    cpu: u32,
    /// The last packet that the softirq which runs on a CPU took in.
    taken_in: HashMap<u32, PacketKey>,
    /// By the thread that woke, and when.
    arrivals: HashMap<(u32, i64), PacketKey>,
    /// Who sent it, and the last change of that thread until then.
    senders: HashMap<PacketKey, (ProcId, Option<Place>)>,
}

/// A piece of the path, on the clock of the target's host.
#[derive(Debug)]
struct Leg {
    host: HostId,
    begin_ns: i64,
    end_ns: i64,
    what: LegWhat,
    error_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LegWhat {
    Did(ProcId, What),
    /// A packet was on its way from this host; none: any.
    OnItsWay(HostId, Option<PacketKey>),
}

/// A host and its clock beside the target's.
#[derive(Clone, Copy, Debug)]
struct There {
    host: HostId,
    /// What is to be added to its clock.
    shift_ns: i64,
    error_ns: i64,
    hops: usize,
}

impl Across {
    /// # Errors
    /// As [`Packets::new`].
    pub fn new(options: Rc<ReportOptions>, trace: &Trace) -> Result<Across> {
        let packets = Packets::new(trace)?;
        let host = |_| Host {
            kernel: Kernel::new(trace, Follow::default()),
            watch: Watch::new(),
        };
        Ok(Across {
            options,
            hosts: (0..packets.hosts()).map(host).collect(),
            packets,
        })
    }

    /// Takes in an event of the instant `now_ns` of its host's clock; what was before the range
    /// only makes the state.
    pub fn event(&mut self, event: &EventView<'_>, now_ns: i64, in_range: bool) {
        let host = &mut self.hosts[self.packets.host_of(event.class())];
        let cpu = event.cpu().map_or(0, |cpu| cpu.0);
        host.watch.cpu = cpu;
        if in_range && host.watch.recorder.is_none() {
            host.watch.begin_ns = now_ns;
            host.watch.recorder = Some(Recorder::new(now_ns, NODES_MAX));
        }
        host.kernel
            .event(event, now_ns, &mut Shared(&mut host.watch));
        if let Some((seen, key)) = self.packets.event(event, now_ns) {
            host.watch.packet(&host.kernel, seen, key);
        }
    }

    /// The tables of what was found in `span`.
    pub fn tables(&self, span: Span) -> Vec<Table> {
        let found = self.packets.finish();
        let (legs, window) = self.legs(&found, span);
        let mut sums: Ordered<(HostId, LegWhat), (i64, u64)> = Ordered::default();
        for leg in &legs {
            let sum = sums.entry((leg.host, one_of_many(leg.what))).or_default();
            sum.0 += leg.duration_ns();
            sum.1 += 1;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, (total_ns, _))| -total_ns);
        let mut sum_table = window.table(&SUMS);
        for ((host, what), (total_ns, count)) in sums {
            let mut row = self.cells(&found, host, what);
            row.extend([
                Cell::Duration(total_ns),
                Cell::Ratio(share(total_ns, window)),
                Cell::Count(count),
            ]);
            sum_table.rows.push(row);
        }
        let mut step_table = window.table(&STEPS);
        let row = |leg: &Leg| {
            let mut row = vec![
                Cell::Range(leg.begin_ns, leg.end_ns),
                Cell::Duration(leg.duration_ns()),
            ];
            row.extend(self.cells(&found, leg.host, leg.what));
            row.push(Cell::Duration(leg.error_ns));
            row
        };
        step_table.rows = legs.iter().rev().map(row).collect();
        vec![sum_table, step_table]
    }

    /// The host, the thread, and what it did.
    fn cells(&self, found: &Hosts, host: HostId, what: LegWhat) -> Vec<Cell> {
        let kernel = &self.hosts[host].kernel;
        let name = Cell::Text(found.names[host].clone());
        match what {
            LegWhat::Did(who, what) => {
                let text = Cell::Text(what_text(kernel, what));
                vec![name, process_cell(kernel, who), text]
            }
            LegWhat::OnItsWay(from, key) => {
                let packet = key.map_or_else(String::new, |key| format!(": {key}"));
                let text = format!("packet on its way from {}{packet}", found.names[from]);
                vec![name, Cell::Empty, Cell::Text(text)]
            }
        }
    }

    /// The thread that was asked for, where it is: of several, the one that changed most often.
    fn target(&self) -> Option<(HostId, ProcId)> {
        let of_host = |(place, host): (HostId, &Host)| {
            let threads = host.watch.recorder.iter().flat_map(Recorder::threads);
            let threads: Vec<_> = threads.map(|(id, changes)| (place, id, changes)).collect();
            threads
        };
        let all = self.hosts.iter().enumerate().flat_map(of_host);
        let wanted = all.filter(|(place, id, _)| {
            let kernel = &self.hosts[*place].kernel;
            let process = kernel.process(*id);
            process.tid != 0 && self.options.wants_process(kernel, process)
        });
        let most = wanted.max_by_key(|(_, _, changes)| *changes);
        most.map(|(place, id, _)| (place, id))
    }

    /// The path, its end first, and the window of the target's host.
    fn legs(&self, found: &Hosts, span: Span) -> (Vec<Leg>, Span) {
        let mut legs = Vec::new();
        let Some((host, who)) = self.target() else {
            return (legs, span);
        };
        let here = &self.hosts[host];
        let window = Span {
            begin_ns: here.watch.begin_ns,
            end_ns: here.kernel.now_ns(),
        };
        let there = There {
            host,
            shift_ns: 0,
            error_ns: 0,
            hops: 0,
        };
        let last = here.watch.recorder.as_ref().and_then(|all| all.last(who));
        self.follow(found, there, (who, last), window, &mut legs);
        (legs, window)
    }

    /// Puts down what the path of a thread consists of in `span` of its host's clock.
    fn follow(
        &self,
        found: &Hosts,
        there: There,
        (who, place): (ProcId, Option<Place>),
        span: Span,
        legs: &mut Vec<Leg>,
    ) {
        let watch = &self.hosts[there.host].watch;
        let room = STEPS_MAX.saturating_sub(legs.len());
        let (begin_ns, end_ns) = (span.begin_ns, span.end_ns);
        let mut follower = Follower::new(who, place, begin_ns, end_ns, room);
        let known = watch.recorder.as_ref().map(|all| follower.follow(all));
        if !matches!(known, Some(Ok(()))) {
            follower.give_up();
        }
        let path = follower.into_path();
        for step in path.steps {
            match self.packet_of(found, there, &step) {
                Some(crossing) => self.cross(found, there, &step, crossing, legs),
                None => legs.push(there.leg(&step, LegWhat::Did(step.who, step.what))),
            }
        }
    }

    /// The packet that ended a wait, where it is known when it was sent.
    fn packet_of<'f>(&self, found: &'f Hosts, there: There, step: &Step) -> Option<&'f Crossing> {
        let What::Blocked(Some(Waker::Softirq(NET_RX))) = step.what else {
            return None;
        };
        let arrivals = &self.hosts[there.host].watch.arrivals;
        let key = arrivals.get(&(step.who.0, step.end_ns))?;
        let crossing = found.crossing(key)?;
        let known = crossing.to == there.host && there.hops < HOPS_MAX;
        (known && found.delay_ns(crossing).is_some()).then_some(crossing)
    }

    /// A wait that a packet ended: the packet's way, and before it the thread that sent it.
    fn cross(
        &self,
        found: &Hosts,
        there: There,
        step: &Step,
        crossing: &Crossing,
        legs: &mut Vec<Leg>,
    ) {
        let (delay_ns, error_ns) = found.delay_ns(crossing).unwrap_or_default();
        // It may be below nothing by the clocks' error.
        let sent_ns = (crossing.received_ns.saturating_sub(delay_ns.max(0))).max(step.begin_ns);
        let error_ns = there.error_ns.saturating_add(error_ns);
        let way = LegWhat::OnItsWay(crossing.from, Some(crossing.key));
        let on_its_way = Step {
            begin_ns: sent_ns,
            ..*step
        };
        legs.push(Leg {
            error_ns,
            ..there.leg(&on_its_way, way)
        });
        if sent_ns == step.begin_ns {
            return;
        }
        let Some(sender) = self.hosts[crossing.from].watch.senders.get(&crossing.key) else {
            let before = Step {
                end_ns: sent_ns,
                ..*step
            };
            legs.push(there.leg(&before, LegWhat::Did(step.who, step.what)));
            return;
        };
        let ahead_ns = crossing.sent_ns.saturating_sub(sent_ns);
        let sender_there = There {
            host: crossing.from,
            shift_ns: there.shift_ns.saturating_sub(ahead_ns),
            error_ns,
            hops: there.hops + 1,
        };
        let span = Span {
            begin_ns: step.begin_ns.saturating_add(ahead_ns),
            end_ns: crossing.sent_ns,
        };
        self.follow(found, sender_there, *sender, span, legs);
    }
}

/// Of all packets from one host one sum is made.
fn one_of_many(what: LegWhat) -> LegWhat {
    match what {
        LegWhat::OnItsWay(from, _) => LegWhat::OnItsWay(from, None),
        did @ LegWhat::Did(..) => did,
    }
}

impl Leg {
    fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

impl There {
    fn leg(&self, step: &Step, what: LegWhat) -> Leg {
        Leg {
            host: self.host,
            begin_ns: step.begin_ns.saturating_add(self.shift_ns),
            end_ns: step.end_ns.saturating_add(self.shift_ns),
            what,
            error_ns: self.error_ns,
        }
    }
}

impl Watch {
    fn new() -> Watch {
        Watch {
            recorder: None,
            begin_ns: 0,
            cpu: 0,
            taken_in: HashMap::new(),
            arrivals: HashMap::new(),
            senders: HashMap::new(),
        }
    }

    fn packet(&mut self, kernel: &Kernel, seen: Seen, key: Option<PacketKey>) {
        match (seen, key) {
            (Seen::Received, Some(key)) => drop(self.taken_in.insert(self.cpu, key)),
            // Whoever wakes now is woken by another packet.
            (Seen::Received, None) => drop(self.taken_in.remove(&self.cpu)),
            (Seen::Sent, Some(key)) => self.sent(kernel, key),
            (Seen::Sent, None) => {}
        }
    }

    /// Notes the sender; what a softirq or an interrupt sends is nobody's. Interrupts of timers,
    /// which may not be recorded, leave sending to softirqs.
    fn sent(&mut self, kernel: &Kernel, key: PacketKey) {
        if let Waker::Thread(id) | Waker::During(id) = kernel.waker(self.cpu, &[])
            && self.senders.len() < NOTES_MAX
        {
            let last = self.recorder.as_ref().and_then(|all| all.last(id));
            self.senders.entry(key).or_insert((id, last));
        }
    }
}

impl Sink for Watch {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match *change {
            Change::SoftirqExit { cpu, .. } => drop(self.taken_in.remove(&cpu)),
            Change::Woken { process, by, .. } if by == Waker::Softirq(NET_RX) => {
                if let Some(key) = self.taken_in.get(&self.cpu)
                    && self.arrivals.len() < NOTES_MAX
                {
                    self.arrivals.insert((process.0, kernel.now_ns()), *key);
                }
            }
            _ => {}
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.change(kernel, change);
        }
    }
}
