//! The evidence stream, decoded: what only the in-kernel watch saw. `docs/format/evidence.md`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

use event::evidence::{self, BlockedOn, Kind, Place, Records, Source, Sum};
use event::{Cpu, Duration, EventClass, Instant, Value};
use trace::EventView;

use crate::stacks::begin_where_interrupts_came_on;

/// So many sleepers for locks are looked through for those that are woken at once.
const SLEEPERS_MAX: usize = 64;

/// All evidence of a trace, each kind in time order.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    records: Records,
    /// Of each CPU's events.
    pub sums: BTreeMap<u32, Sum>,
}

impl Deref for Evidence {
    type Target = Records;

    fn deref(&self) -> &Records {
        &self.records
    }
}

/// The fields of one event by name. Evidence is rare: clarity is worth the look-ups.
struct Fields<'a> {
    event: &'a EventView<'a>,
    class: &'a EventClass,
}

impl Source for Fields<'_> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        let field = self.class.field(name)?;
        Some(self.event.value(field))
    }
}

impl Evidence {
    /// The last stop that was added.
    pub fn last_stop(&mut self) -> Option<&mut evidence::Stopped> {
        self.records.stopped.last_mut()
    }

    /// A stop that only a switch tells of.
    pub fn saw_stop(&mut self, stop: evidence::Stopped) {
        self.records.stopped.push(stop);
    }

    /// A sleep for a lock that only a system call tells of.
    pub fn saw_block(&mut self, blocked: evidence::Blocked) {
        self.records.blocked.push(blocked);
    }

    /// All who sleep for this lock are woken at once: several may have had it, and the last of them
    /// lets go of it now.
    pub fn saw_readers(&mut self, lock: u64) {
        let last = self.records.blocked.iter_mut().rev().take(SLEEPERS_MAX);
        last.filter(|blocked| blocked.lock == lock && blocked.on == BlockedOn::Mutex)
            .for_each(|blocked| blocked.on = BlockedOn::Readers);
    }

    /// A timer's slack that only its arming tells of.
    pub fn saw_slack(&mut self, released: evidence::Released) {
        self.records.released.push(released);
    }

    /// Adds an event of this kind; one that makes no sense is left out.
    pub fn add(&mut self, kind: Kind, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(class) = classes.get(event.class().0 as usize) else {
            return;
        };
        let place = Place {
            cpu,
            time: event.time(),
        };
        let payload = RefCell::new(Vec::new());
        let fields = Fields { event, class };
        self.records.read(kind, place, &fields, |record| {
            record.encode(&mut payload.borrow_mut());
            if let evidence::Evidence::LateTimer(late) = record {
                begin_where_interrupts_came_on(late);
            }
        });
        let mut payload = payload.into_inner();
        if let Some(hit) = self.records.hits.last().filter(|_| kind == Kind::Hit) {
            hit.encode(&mut payload);
        }
        let sum = self.sums.entry(cpu.0).or_default();
        sum.add(kind.class(), &payload);
    }
}

impl Evidence {
    /// What the hypervisor took from the CPU of late timer `place` between `begin` and `end`: at
    /// least, and at most. The kernel's clock of steal is read with each record: what passed since
    /// the record before may have passed at any time in between.
    pub fn steal_between(
        &self,
        place: usize,
        begin: Instant,
        end: Instant,
    ) -> (Duration, Duration) {
        let late = &self.late_timers[place];
        let mut earlier = self.late_timers[..place].iter().rev();
        let before = earlier.find(|other| other.cpu == late.cpu);
        let since = before.map_or(Instant::MIN, |before| before.time);
        let inside = end.min(late.time) - begin.max(since);
        let inside = inside.max(Duration::ZERO);
        let outside = (late.time - since) - inside;
        let least = (late.steal - outside).max(Duration::ZERO);
        (least, late.steal.min(inside))
    }

    /// The same by what was read of a CPU at hits; none where that does not tell of all the time.
    pub fn steal_of(&self, cpu: Cpu, begin: Instant, end: Instant) -> Option<(Duration, Duration)> {
        let (mut seen, mut least, mut most) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for record in self.steal.iter().filter(|record| record.cpu == cpu) {
            let inside = record.time.min(end) - record.begin.max(begin);
            let inside = inside.max(Duration::ZERO);
            let outside = (record.time - record.begin) - inside;
            seen += inside;
            least += (record.steal - outside).max(Duration::ZERO);
            most += record.steal.min(inside);
        }
        (begin < end && seen >= end - begin).then_some((least, most))
    }

    /// What the hypervisor took while the timer `place` was late, by all that was read: at least,
    /// and at most.
    pub fn steal_of_late_timer(&self, place: usize) -> (Duration, Duration) {
        let late = &self.late_timers[place];
        let (least, _) = self.steal_between(place, late.expiry, late.time);
        match self.steal_of(late.cpu, late.expiry, late.time) {
            Some((surely, at_most)) => (least.max(surely), late.steal.min(at_most)),
            None => (least, late.steal),
        }
    }
}

#[cfg(test)]
mod tests {
    use event::evidence::{LateTimer, Mode, Steal, TaskRef};
    use event::{Prio, Tid};

    use super::*;

    fn of(records: Records) -> Evidence {
        Evidence {
            records,
            ..Evidence::default()
        }
    }

    #[test]
    fn steal_is_placed_only_as_far_as_the_records_around_it_allow() {
        let timer = |time_us: i64, steal_us: i64| LateTimer {
            cpu: Cpu(0),
            time: Instant::from_ns(time_us * 1000),
            expiry: Instant::from_ns((time_us - 100) * 1000),
            lateness: Duration::from_us(100),
            hrtimer: 0,
            function: 0,
            interrupted: TaskRef {
                tid: Tid(1),
                comm: String::new(),
                prio: Prio(120),
            },
            mode: Mode::Kernel,
            steal: Duration::from_us(steal_us),
            stack: vec![],
            came_on: 0,
        };
        let check = |records: [(i64, i64); 2], range_us: (i64, i64), expect_us: (i64, i64)| {
            let evidence = of(Records {
                late_timers: records.map(|(time, steal)| timer(time, steal)).to_vec(),
                ..Records::default()
            });
            let (begin, end) = (range_us.0 * 1000, range_us.1 * 1000);
            let steal = evidence.steal_between(1, Instant::from_ns(begin), Instant::from_ns(end));
            let expect = (
                Duration::from_us(expect_us.0),
                Duration::from_us(expect_us.1),
            );
            assert_eq!(steal, expect, "{records:?} {range_us:?}");
        };
        // 90 us between records that are 100 us apart: 80 of them within these 90.
        check([(900, 0), (1000, 90)], (910, 1000), (80, 90));
        // Between records 10 ms apart it may lie anywhere.
        check([(1000, 0), (11_000, 90)], (10_900, 11_000), (0, 90));
        check([(1000, 0), (11_000, 900)], (10_900, 11_000), (0, 100));
        check([(1000, 0), (11_000, 900)], (0, 900), (0, 0));
    }

    #[test]
    fn what_was_read_at_hits_tells_of_the_time_that_it_covers() {
        let record = |begin_us: i64, time_us: i64, steal_us: i64| Steal {
            cpu: Cpu(1),
            time: Instant::from_ns(time_us * 1000),
            begin: Instant::from_ns(begin_us * 1000),
            steal: Duration::from_us(steal_us),
        };
        let evidence = of(Records {
            steal: vec![record(0, 100, 0), record(100, 200, 90)],
            ..Records::default()
        });
        let check = |cpu: u32, range_us: (i64, i64), expect_us: Option<(i64, i64)>| {
            let (begin, end) = (range_us.0 * 1000, range_us.1 * 1000);
            let (begin, end) = (Instant::from_ns(begin), Instant::from_ns(end));
            let steal = evidence.steal_of(Cpu(cpu), begin, end);
            let us = |duration: Duration| duration.as_ns() / 1000;
            let steal = steal.map(|(least, most)| (us(least), us(most)));
            assert_eq!(steal, expect_us, "{cpu} {range_us:?}");
        };
        check(1, (10, 90), Some((0, 0)));
        check(1, (100, 200), Some((90, 90)));
        check(1, (150, 200), Some((40, 50)));
        check(1, (50, 150), Some((40, 50)));
        // Beyond what was read, and of another CPU, nothing is known.
        check(1, (150, 201), None);
        check(0, (10, 90), None);
    }
}
