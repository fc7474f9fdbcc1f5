//! What a recorder keeps of a story: switches that the kernel hides, stretches that are lost, CPUs
//! whose events begin late.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use event::Value;
use testkit::SyntheticTrace;
use trace::Trace;

use crate::agree::names;
use crate::answers::Told;
use crate::damage::{Damage, Opened, damaged};
use crate::fault::Faults;
use crate::story::{Happening, Record, Story};
use crate::truth::{Doing, TrueWait, Truth, Window};

/// Which events tell of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    Both,
    OnlyWaking,
    OnlyWakeup,
}

/// What tells which task has a CPU, beside switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    Nothing,
    /// Each event, as ftrace's own numbers and LTTng's contexts do.
    WithEachEvent,
    /// Events of our recorder, where switches do not tell it.
    WhereHidden,
}

/// A story as it was recorded.
pub struct Recording {
    pub truth: Truth,
    pub wakes: Wakes,
    /// What the trace holds.
    pub kept: Vec<Record>,
    /// Switches that were not recorded, though others of their time were.
    pub hidden: Vec<Record>,
    /// What was lost: on which CPU, from when until when.
    pub lost: Vec<(Option<u32>, Window)>,
    /// Before this, events of that CPU, or of all, were not recorded.
    pub late: Option<(Option<u32>, i64)>,
    pub damage: Option<Damage>,
    pub shows: Shows,
    /// What of it is asked for, where that is not all.
    pub asked: Option<Window>,
}

impl Recording {
    pub fn new(story: &Story, faults: &Faults) -> Recording {
        let (records, truth) = story.play();
        let begin_ns = records.first().map_or(0, |record| record.at_ns);
        let len_ns = truth.end_ns - begin_ns;
        let at = |share: i64| begin_ns + len_ns * share / 1_000;
        let cpus = truth.cpus() as u32;
        let lost = faults.losses.iter().map(|(cpu, share)| {
            let stretch = Window {
                begin_ns: at(share.begin),
                end_ns: at(share.begin + share.len),
            };
            (cpu.map(|cpu| cpu % cpus), stretch)
        });
        let mut recording = Recording {
            truth,
            wakes: faults.wakes,
            kept: Vec::new(),
            hidden: Vec::new(),
            lost: lost.collect(),
            late: faults
                .late
                .map(|(cpu, share)| (cpu.map(|cpu| cpu % cpus), at(share))),
            damage: faults.damage,
            shows: faults.shows,
            asked: faults.asked.map(|share| Window {
                begin_ns: at(share.begin),
                end_ns: at(share.begin + share.len),
            }),
        };
        let told = records
            .into_iter()
            .filter(|record| recording.is_told(record));
        let told: Vec<_> = told.collect();
        recording.hide(told, faults);
        recording
    }

    /// Whether a recorder gets an event that the kernel does not hide.
    fn is_told(&self, record: &Record) -> bool {
        let is_class = match record.what {
            Happening::Waking { .. } => self.wakes != Wakes::OnlyWakeup,
            Happening::Wakeup { .. } => self.wakes != Wakes::OnlyWaking,
            _ => true,
        };
        let begun = |(cpu, from_ns): (Option<u32>, i64)| {
            cpu.is_some_and(|cpu| record.cpu != cpu) || record.at_ns >= from_ns
        };
        let is_lost = self.lost_on(record.cpu).any(|stretch| {
            // An event at the begin or the end of a loss is the last before or the first after it.
            stretch.begin_ns < record.at_ns && record.at_ns < stretch.end_ns
        });
        is_class && self.late.is_none_or(begun) && !is_lost
    }

    /// The stretches in which events of this CPU were lost.
    pub fn lost_on(&self, cpu: u32) -> impl Iterator<Item = Window> {
        let there = move |(on, _): &&(Option<u32>, Window)| on.is_none_or(|on| on == cpu);
        self.lost.iter().filter(there).map(|(_, stretch)| *stretch)
    }

    /// Leaves out the switches that are hidden, where what is told later shows that one is
    /// missing: of what leaves no trace at all nobody can be asked to know.
    fn hide(&mut self, told: Vec<Record>, faults: &Faults) {
        let mut is_hidden = vec![false; told.len()];
        for cpu in 0..self.truth.cpus() as u32 {
            let mut open: Vec<usize> = Vec::new();
            // Who has the CPU by what was told, and when that was.
            let mut known: Option<(i32, i64)> = None;
            for (place, record) in told.iter().enumerate() {
                if record.cpu != cpu {
                    continue;
                }
                let lost = |since_ns: i64| {
                    let between = |stretch: Window| {
                        stretch.end_ns > since_ns && stretch.begin_ns < record.at_ns
                    };
                    self.lost_on(cpu).any(between)
                };
                if known.is_some_and(|(_, since_ns)| lost(since_ns)) {
                    known = None;
                    open.clear();
                }
                let Happening::Switch { prev, next, .. } = record.what else {
                    // It may say who has the CPU: whoever came and went before left no trace.
                    let told = known.filter(|_| faults.shows != Shows::Nothing);
                    if let Some((tid, _)) = told {
                        if tid != record.tid {
                            open.drain(..).for_each(|place| is_hidden[place] = true);
                            known = Some((record.tid, record.at_ns));
                        }
                        open.clear();
                    }
                    continue;
                };
                let is_marked = |tid: i32| tid == prev.tid || tid == next.tid;
                let hides = (faults.hides_idle && cpu > 0 && prev.tid == 0)
                    || faults.hides_task.is_some_and(is_marked);
                if hides && known.is_some() {
                    open.push(place);
                    continue;
                }
                if known.is_some_and(|(tid, _)| tid != prev.tid) {
                    open.drain(..).for_each(|place| is_hidden[place] = true);
                }
                open.clear();
                known = Some((next.tid, record.at_ns));
            }
        }
        for (record, is_hidden) in told.into_iter().zip(is_hidden) {
            match is_hidden {
                true => self.hidden.push(record),
                false => self.kept.push(record),
            }
        }
    }

    /// The trace.
    pub fn trace(&self) -> Opened {
        let trace = self.in_memory();
        match &self.damage {
            Some(damage) => damaged(&trace, damage),
            None => trace.into(),
        }
    }

    /// The same recording as `perf data convert` writes it.
    pub fn trace_of_perf(&self) -> Trace {
        self.synthetic().by_perf().build()
    }

    /// The same, of which a class is declared besides that never happens.
    pub fn trace_with(&self, absent: &str, like: &str) -> Trace {
        self.synthetic().declares(absent, like).build()
    }

    fn in_memory(&self) -> Trace {
        self.synthetic().build()
    }

    fn synthetic(&self) -> SyntheticTrace {
        let trace = SyntheticTrace::new().cpus(self.truth.cpus() as u32);
        let mut told = BTreeMap::new();
        let trace = self.kept.iter().fold(trace, |trace, record| {
            let task = record.tid;
            let trace = match self.shows {
                Shows::Nothing => trace,
                Shows::WithEachEvent => trace.in_task(Some(task)),
                Shows::WhereHidden => self.tell_hidden(trace, record, task, &mut told),
            };
            record.add_to(trace)
        });
        self.lost.iter().fold(trace, |trace, (cpu, stretch)| {
            trace.lost_on(*cpu, stretch.begin_ns, stretch.end_ns)
        })
    }

    /// As our recorder does: the task is told where no switch tells it. `told` has for each CPU
    /// who it is, and since when.
    fn tell_hidden(
        &self,
        trace: SyntheticTrace,
        record: &Record,
        task: i32,
        told: &mut BTreeMap<u32, (i32, i64)>,
    ) -> SyntheticTrace {
        let (cpu, at_ns) = (record.cpu, record.at_ns);
        if let Happening::Switch { next, .. } = record.what {
            told.insert(cpu, (next.tid, at_ns));
            return trace;
        }
        let is_lost = |since_ns: i64| {
            let mut lost = self.lost_on(cpu);
            lost.any(|stretch| stretch.begin_ns >= since_ns && stretch.begin_ns < at_ns)
        };
        let before = told.insert(cpu, (task, at_ns));
        match before {
            Some((tid, since_ns)) if tid == task && !is_lost(since_ns) => trace,
            _ => {
                let tid = Value::Signed(task.into());
                let trace = trace.at_ns(at_ns).cpu(cpu);
                trace.event("rtscope_current", &[("tid", tid)])
            }
        }
    }

    /// Whether bytes that are damaged still read as events, but others. Nobody can know of all.
    pub fn is_garbled(&self) -> bool {
        let Some(damage) = &self.damage else {
            return false;
        };
        let trace = self.in_memory();
        !damaged(&trace, damage).is_only_less_than(&trace)
    }

    /// Whether nothing is hidden, lost or late.
    pub fn is_complete(&self) -> bool {
        let told = self.hidden.is_empty() && self.lost.is_empty() && self.late.is_none();
        told && self.damage.is_none()
    }

    /// From the first event to the last; none when there is none.
    pub fn window(&self) -> Option<Window> {
        let (first, last) = (self.kept.first()?, self.kept.last()?);
        Some(Window {
            begin_ns: first.at_ns,
            end_ns: last.at_ns,
        })
    }

    /// The end of what is asked for.
    pub fn last_ns(&self) -> i64 {
        let asked_ns = self.asked.map_or(i64::MAX, |asked| asked.end_ns);
        let end_ns = self.window().map_or(0, |window| window.end_ns);
        end_ns.min(asked_ns)
    }

    /// From the events on, true waits that ended inside of the window.
    pub fn true_waits(&self) -> impl Iterator<Item = (&TrueWait, Window)> {
        self.waits_of(|wait| wait.slept)
    }

    /// Those too that nobody can tell from them: where events are missing, a task may have slept
    /// that was preempted before.
    pub fn apparent_waits(&self) -> impl Iterator<Item = (&TrueWait, Window)> {
        let is_complete = self.is_complete();
        self.waits_of(move |wait| wait.slept || !is_complete)
    }

    fn waits_of(
        &self,
        is: impl Fn(&TrueWait) -> bool,
    ) -> impl Iterator<Item = (&TrueWait, Window)> {
        let window = self.window();
        let span = |wait: &'_ TrueWait| wait.span(self.wakes != Wakes::OnlyWakeup);
        let inside = move |span: &Window| {
            window.is_some_and(|all| all.begin_ns <= span.begin_ns && span.end_ns <= all.end_ns)
        };
        let waits = self.truth.waits.iter().filter(move |wait| is(wait));
        let spans = waits.filter_map(move |wait| Some((wait, span(wait)?)));
        spans.filter(move |(_, span)| inside(span))
    }

    /// A hidden switch away from idle is taken to be at the arrival of the task: an idle CPU takes
    /// it at once. This is how much the truth differs, for each task.
    pub fn idle_exits_ns(&self) -> BTreeMap<i32, i64> {
        let mut exits = BTreeMap::new();
        for record in &self.hidden {
            if let Happening::Switch {
                prev,
                next,
                arrived_ns,
                ..
            } = record.what
                && prev.tid == 0
            {
                *exits.entry(next.tid).or_default() += record.at_ns - arrived_ns;
            }
        }
        exits
    }

    /// Whether the task was switched in at this instant, or between it and its arrival on a CPU
    /// that is seen to have left idle only later.
    pub fn may_end_a_wait(&self, tid: i32, at_ns: i64) -> bool {
        let is_complete = self.is_complete();
        let of_it = |wait: &&TrueWait| wait.tid == tid && (wait.slept || !is_complete);
        let mut waits = self.truth.waits.iter().filter(of_it);
        let ends = |record: &Record| match record.what {
            Happening::Switch {
                prev,
                next,
                arrived_ns,
                ..
            } => prev.tid == 0 && next.tid == tid && (arrived_ns..=record.at_ns).contains(&at_ns),
            _ => false,
        };
        waits.any(|wait| wait.switch_ns == Some(at_ns)) || self.hidden.iter().any(ends)
    }

    /// The first event of each CPU that was recorded.
    pub fn first_event_ns(&self, cpu: u32) -> Option<i64> {
        let first = self.kept.iter().find(|record| record.cpu == cpu);
        first.map(|record| record.at_ns)
    }

    /// When who has the CPU is proven: from a recorded switch on, until events are lost, or until
    /// the last recorded switch before one that is hidden.
    pub fn proven(&self, cpu: u32) -> Vec<Window> {
        let end_ns = self.window().map_or(0, |window| window.end_ns);
        let switches = |records: &[Record]| -> Vec<i64> {
            let is_switch = |record: &&Record| {
                record.cpu == cpu && matches!(record.what, Happening::Switch { .. })
            };
            let switches = records.iter().filter(is_switch);
            switches.map(|record| record.at_ns).collect()
        };
        let (shown, hidden) = (switches(&self.kept), switches(&self.hidden));
        let mut stretches = Vec::new();
        for (place, begin_ns) in shown.iter().copied().enumerate() {
            let next_ns = shown.get(place + 1).copied().unwrap_or(end_ns);
            if hidden
                .iter()
                .any(|at_ns| (begin_ns..=next_ns).contains(at_ns))
            {
                continue;
            }
            // What waits then may have been moved away by events that nobody recorded.
            if self.late.is_some_and(|(_, from_ns)| begin_ns < from_ns) {
                continue;
            }
            let lost = self.lost_on(cpu).map(|stretch| stretch.begin_ns);
            let lost = lost.filter(|at_ns| begin_ns <= *at_ns && *at_ns < next_ns);
            // A loss that began before may reach into this stretch.
            let still = self.lost_on(cpu);
            let mut still = still.filter(|lost| lost.begin_ns < begin_ns && begin_ns < lost.end_ns);
            if still.next().is_none() {
                stretches.push(Window {
                    begin_ns,
                    end_ns: lost.min().unwrap_or(next_ns),
                });
            }
        }
        stretches
    }

    /// How much of the window is surely unknown on a CPU: before its first event, and where events
    /// were lost.
    pub fn unknowable_ns(&self, cpu: u32, window: Window) -> i64 {
        let mut gaps: Vec<Window> = self.lost_on(cpu).collect();
        gaps.push(Window {
            begin_ns: window.begin_ns,
            end_ns: self.first_event_ns(cpu).unwrap_or(window.end_ns),
        });
        gaps.sort_by_key(|gap| gap.begin_ns);
        let mut reached_ns = window.begin_ns;
        let mut unknown_ns = 0;
        for gap in gaps {
            let gap = gap.cut(Window {
                begin_ns: reached_ns,
                end_ns: window.end_ns,
            });
            unknown_ns += gap.ns();
            reached_ns = reached_ns.max(gap.end_ns);
        }
        unknown_ns
    }
}

impl Told for Recording {
    fn opened(&self) -> Opened {
        self.trace()
    }

    fn asked(&self) -> Option<Window> {
        self.asked
    }

    fn names(&self) -> BTreeSet<String> {
        names(self).into_iter().map(str::to_owned).collect()
    }

    fn waits_at(&self, tid: i32, at_ns: i64) -> bool {
        let last = Window {
            begin_ns: at_ns - 1,
            end_ns: at_ns,
        };
        let waits = |doing: &Doing| matches!(doing, Doing::Waiting { .. });
        self.truth.task_ns(tid, last, waits) > 0
    }
}

/// The story as it was recorded, a line for each event and for what is not there.
impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(i64, String)> = Vec::new();
        lines.extend(
            self.kept
                .iter()
                .map(|record| (record.at_ns, record.to_string())),
        );
        let hidden = |record: &Record| (record.at_ns, format!("{record}   (hidden)"));
        lines.extend(self.hidden.iter().map(hidden));
        for (cpu, stretch) in &self.lost {
            let on = cpu.map_or("all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
            let (begin_ns, end_ns) = (stretch.begin_ns, stretch.end_ns);
            let us = |ns: i64| ns as f64 / 1e3;
            let line = format!("{:>12.3} us  lost on {on}:", us(begin_ns));
            lines.push((begin_ns, format!("{line} until {:.3} us", us(end_ns))));
        }
        if let Some((cpu, from_ns)) = self.late {
            let us = from_ns as f64 / 1e3;
            let on = cpu.map_or("all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
            lines.push((from_ns, format!("{us:>12.3} us  events of {on} begin")));
        }
        if let Some(asked) = self.asked {
            for (at_ns, what) in [(asked.begin_ns, "begins"), (asked.end_ns, "ends")] {
                let us = at_ns as f64 / 1e3;
                lines.push((at_ns, format!("{us:>12.3} us  what is asked for {what}")));
            }
        }
        lines.sort_by_key(|(at_ns, _)| *at_ns);
        if let Some(damage) = &self.damage {
            writeln!(f, "{damage:?}")?;
        }
        writeln!(
            f,
            "{} CPUs, wake-ups by {:?}, tasks shown: {:?}",
            self.truth.cpus(),
            self.wakes,
            self.shows
        )?;
        lines.iter().try_for_each(|(_, line)| writeln!(f, "{line}"))
    }
}
