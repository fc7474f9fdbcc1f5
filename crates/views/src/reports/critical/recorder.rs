//! Puts down what threads do from one change to the next, and walks again for what was dropped.

use std::num::NonZeroU32;

use event::{Mixing, TimeRange};
use indexmap::IndexSet;
use trace::{Item, Trace};

use super::history::{Doing, History, Link, Node, Place};
use crate::reports::ordered::Ordered;
use kernel_state::{Change, Follow, Kernel, ProcId, Shared, Sink, Topic, Topics, Waker};

/// Where a window begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::reports) struct Begin {
    pub ns: i64,
    /// The number of its first event in the trace.
    pub event: u64,
}

/// A thread so far.
#[derive(Clone, Copy, Debug)]
struct Thread {
    last: Place,
    changes: u64,
}

/// What threads did in a window, as far back as memory is allowed to reach.
#[derive(Debug)]
pub(super) struct Recorder {
    begin_ns: i64,
    threads: Ordered<u32, Thread>,
    /// Numbered from one in the order in which they first woke.
    wakers: IndexSet<Waker, Mixing>,
    pub history: History,
}

impl Recorder {
    pub fn new(begin_ns: i64, nodes_max: usize) -> Recorder {
        Recorder {
            begin_ns,
            threads: Ordered::default(),
            wakers: IndexSet::default(),
            history: History::new(nodes_max),
        }
    }

    /// The last change of a thread.
    pub fn last(&self, id: ProcId) -> Option<Place> {
        self.threads.get(&id.0).map(|thread| thread.last)
    }

    /// All threads that changed, each with how often.
    pub fn threads(&self) -> impl Iterator<Item = (ProcId, u64)> {
        let threads = self.threads.iter();
        threads.map(|(id, thread)| (ProcId(*id), thread.changes))
    }

    /// What woke in the change `node`.
    pub fn waker(&self, node: Node) -> Option<Waker> {
        let number = node.by?.get() as usize - 1;
        self.wakers.get_index(number).copied()
    }

    fn now(&mut self, id: ProcId, at_ns: i64, doing: Doing, by: Option<Waker>) {
        let here = self.history.end();
        let waker = match by {
            Some(Waker::Thread(waker)) => self.last(waker),
            _ => None,
        };
        let number = by.map(|by| self.wakers.insert_full(by).0 + 1);
        self.history.push(Node {
            at_ns,
            prev: Link::new(self.last(id), here),
            waker: Link::new(waker, here),
            by: number.and_then(|number| NonZeroU32::new(u32::try_from(number).ok()?)),
        });
        let last = Place { node: here, doing };
        let thread = self.threads.entry(id.0);
        let thread = thread.or_insert(Thread { last, changes: 0 });
        thread.last = last;
        thread.changes += 1;
    }

    /// What a thread did before it was first seen to change; unknown when nothing said it.
    fn first(&mut self, id: ProcId, since_ns: Option<i64>, doing: Doing) {
        if !self.threads.contains_key(&id.0) {
            let doing = since_ns.map_or(Doing::Unknown, |_| doing);
            self.now(id, self.begin_ns, doing, None);
        }
    }
}

impl Sink for Recorder {
    const TOPICS: Topics = Topics::of(&[Topic::Runs, Topic::Waits]);

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let now_ns = kernel.now_ns();
        match *change {
            Change::Woken {
                process,
                by,
                blocked_since_ns,
            } => {
                self.first(process, blocked_since_ns, Doing::Blocked);
                self.now(process, now_ns, Doing::WaitsForCpu, Some(by));
            }
            Change::Switch {
                prev,
                prev_runnable,
                next,
                waited_since_ns,
                ..
            } => {
                if kernel.process(prev).tid != 0 {
                    self.first(prev, Some(now_ns), Doing::Runs);
                    let doing = match prev_runnable {
                        true => Doing::WaitsForCpu,
                        false => Doing::Blocked,
                    };
                    self.now(prev, now_ns, doing, None);
                }
                if kernel.process(next).tid != 0 {
                    self.first(next, waited_since_ns, Doing::WaitsForCpu);
                    self.now(next, now_ns, Doing::Runs, None);
                }
            }
            _ => {}
        }
    }
}

/// Walks over the window again, up to and with the change `last`; none when the trace ends before,
/// as one does whose files are gone meanwhile.
pub(super) fn record_again(
    trace: &Trace,
    begin: Begin,
    nodes_max: usize,
    last: u64,
) -> Option<Recorder> {
    let mut kernel = Kernel::new(trace, Follow::default());
    let mut before = Ignore;
    let mut recorder = Recorder::new(begin.ns, nodes_max);
    let offset_ns = trace.info().wall_offset.as_ns();
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut events = 0;
    while recorder.history.end() <= last {
        if let Item::Event(event) = cursor.next().ok()?? {
            let now_ns = event.time().as_ns().saturating_add(offset_ns);
            match events < begin.event {
                true => kernel.event(&event, now_ns, &mut Shared(&mut before)),
                false => kernel.event(&event, now_ns, &mut Shared(&mut recorder)),
            }
            events += 1;
        }
    }
    Some(recorder)
}

/// Nobody asks yet.
struct Ignore;

impl Sink for Ignore {
    fn change(&mut self, _kernel: &Kernel, _change: &Change<'_>) {}
}
