//! The evidence stream, decoded: what only the in-kernel watch saw. `docs/format/evidence.md`.

use event::evidence::{
    Blocked, BlockedOn, EndKind, Frame, Hit, LateTimer, Mode, PreemptionModel, PreemptionOff,
    Stack, Step, StepKind, TaskRef, Throttled,
};
use event::{Cpu, Duration, EventClass, Instant, Prio, Tid, Value};
use trace::EventView;

use crate::stacks::begin_where_interrupts_came_on;

/// All evidence of a trace, each kind in time order.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub hits: Vec<Hit>,
    pub late_timers: Vec<LateTimer>,
    pub preemption_off: Vec<PreemptionOff>,
    pub blocked: Vec<Blocked>,
    pub throttled: Vec<Throttled>,
}

/// The fields of one event by name. Evidence is rare: clarity is worth the look-ups.
struct Fields<'a> {
    event: &'a EventView<'a>,
    class: &'a EventClass,
}

impl<'a> Fields<'a> {
    fn new(event: &'a EventView<'a>, classes: &'a [EventClass]) -> Option<Self> {
        Some(Fields {
            event,
            class: classes.get(event.class().0 as usize)?,
        })
    }

    fn i64(&self, name: &str) -> i64 {
        self.class
            .field(name)
            .map_or(0, |field| self.event.i64(field))
    }

    fn u32(&self, name: &str) -> u32 {
        self.i64(name) as u32
    }

    fn instant(&self, name: &str) -> Instant {
        Instant::from_ns(self.i64(name))
    }

    fn duration(&self, name: &str) -> Duration {
        Duration::from_ns(self.i64(name))
    }

    fn task(&self, prefix: &str) -> TaskRef {
        let text = self
            .class
            .field(&format!("{prefix}comm"))
            .map(|field| self.event.text(field));
        TaskRef {
            tid: Tid(self.i64(&format!("{prefix}tid")) as i32),
            comm: String::from_utf8_lossy(text.unwrap_or_default()).into_owned(),
            prio: Prio::from_lttng(self.i64(&format!("{prefix}prio")) as i32),
        }
    }

    fn elements<T>(&self, name: &str, each: impl Fn(&Value<'_>) -> Option<T>) -> Vec<T> {
        let value = self.class.field(name).map(|field| self.event.value(field));
        let elements = value.as_ref().and_then(Value::as_array).unwrap_or_default();
        elements.iter().filter_map(each).collect()
    }

    fn stack(&self, name: &str) -> Stack {
        self.elements(name, |frame| {
            let address = frame.member("address")?.as_u64()?;
            let symbol = frame
                .member("symbol")
                .and_then(Value::as_text)
                .unwrap_or_default();
            Some(Frame {
                address,
                symbol: symbol.to_owned(),
            })
        })
    }
}

fn step(value: &Value<'_>) -> Option<Step> {
    let number = |name: &str| value.member(name)?.as_i64();
    let comm = value
        .member("comm")
        .and_then(Value::as_text)
        .unwrap_or_default();
    Some(Step {
        time: Instant::from_ns(number("time_ns")?),
        kind: StepKind::from_value(u8::try_from(number("kind")?).ok()?)?,
        cpu: Cpu(number("cpu")? as u32),
        id: number("id")? as i32,
        prio: Prio::from_lttng(number("prio").unwrap_or(0) as i32),
        comm: comm.trim_end_matches('\0').to_owned(),
    })
}

impl Evidence {
    /// Adds an `rtscope_hit`; one of an unknown end kind is left out.
    pub fn add_hit(&mut self, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let end_kind = u8::try_from(fields.i64("end_kind"))
            .ok()
            .and_then(EndKind::from_value);
        let Some(end_kind) = end_kind else { return };
        let flags = fields.u32("flags");
        self.hits.push(Hit {
            id: fields.i64("id") as u64,
            end_kind,
            origin: fields.instant("origin_ns"),
            end: fields.instant("end_ns"),
            threshold: fields.duration("threshold_ns"),
            task: fields.task(""),
            preemptions: fields.u32("preemptions"),
            overflow: fields.u32("overflow"),
            stale: flags & 1 != 0,
            repaired: flags & 2 != 0,
            culprit: Some(fields.task("culprit_")).filter(|culprit| culprit.tid.0 >= 0),
            steps: fields.elements("steps", step),
            waker_stack: fields.stack("waker_stack"),
            wakee_stack: fields.stack("wakee_stack"),
            culprit_stack: fields.stack("culprit_stack"),
        });
    }

    /// Adds an `rtscope_late_timer`.
    pub fn add_late_timer(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let mut late = LateTimer {
            cpu,
            time: event.time(),
            expiry: fields.instant("expiry_ns"),
            lateness: fields.duration("lateness_ns"),
            hrtimer: fields.i64("hrtimer") as u64,
            function: fields.i64("function") as u64,
            interrupted: fields.task("interrupted_"),
            // User mode accuses nobody: the safe reading of a mode that is not known.
            mode: Mode::from_value(fields.i64("mode") as u8).unwrap_or(Mode::User),
            steal: fields.duration("steal_ns"),
            stack: fields.stack("stack"),
            came_on: fields.u32("came_on"),
        };
        begin_where_interrupts_came_on(&mut late);
        self.late_timers.push(late);
    }

    /// Adds an `rtscope_preemption_off`.
    pub fn add_preemption_off(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        self.preemption_off.push(PreemptionOff {
            cpu,
            time: event.time(),
            begin: fields.instant("begin_ns"),
            delay: fields.duration("delay_ns"),
            task: fields.task(""),
            model: PreemptionModel::from_value(fields.i64("model") as u8).unwrap_or_default(),
            stack: fields.stack("stack"),
        });
    }

    /// Adds an `rtscope_blocked`; one of an unknown kind is left out.
    pub fn add_blocked(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        let Some(fields) = Fields::new(event, classes) else {
            return;
        };
        let on = u8::try_from(fields.i64("on"));
        let Some(on) = on.ok().and_then(BlockedOn::from_value) else {
            return;
        };
        self.blocked.push(Blocked {
            cpu,
            time: event.time(),
            task: fields.task(""),
            on,
            owner: Some(fields.task("owner_")).filter(|owner| owner.tid.0 >= 0),
            lock: fields.i64("lock") as u64,
            stack: fields.stack("stack"),
        });
    }

    /// Adds an `rtscope_throttled`.
    pub fn add_throttled(&mut self, cpu: Cpu, event: &EventView<'_>, classes: &[EventClass]) {
        if let Some(fields) = Fields::new(event, classes) {
            self.throttled.push(Throttled {
                cpu,
                time: event.time(),
                begin: fields.instant("begin_ns"),
                task: fields.task(""),
            });
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let evidence = Evidence {
                late_timers: records.map(|(time, steal)| timer(time, steal)).to_vec(),
                ..Evidence::default()
            };
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
}
