//! Budgets: whether a trace shows that what must be done in time is done in time.
//!
//! Nothing is kept of a sample but whether it was over: "99.9 % within 1 ms" is broken when more
//! than one of a thousand lasted longer, and no percentile need be computed.

mod activations;
mod begun;
mod finding;
mod handled;
mod judge;
mod pace;
mod renamed;
mod responses;
mod rules;
mod samples;
mod start_ups;
mod starts;
mod undecided;

use std::collections::HashMap;
use std::sync::Arc;

use event::{Cpu, Instant, NamedTask, Result, TimeRange};
use trace::{EventView, Item, Trace};

use begun::Begun;
pub use finding::{BudgetFinding, Judgement, SleepsInside};
pub use handled::Called;
use handled::{Handled, Handlers};
use judge::{End, Tally};
use responses::Responses;
pub use rules::{Budget, Rules, Subject};
use starts::Starts;
use undecided::{AllUndecided, Undecided};

use crate::periods::{Matcher, Turn};
use kernel_state::bind::{Bound, Known, Sched, WakeKind, one_kernel};
use kernel_state::{
    Caller, Change, Cycles, Follow, Kernel, ProcId, Shared, Sink, Wakee, seen_until,
};

/// What was found for all budgets, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// In the order of the rules.
    pub findings: Vec<BudgetFinding>,
    /// First and last event looked at; none when there is none.
    pub window: Option<TimeRange>,
    /// Events looked at.
    pub events: u64,
    /// Events lost, as far as they were counted.
    pub lost: u64,
    /// Places at which events are missing or cannot be read.
    pub holes: u64,
}

/// Judges budgets over a part of a trace: what ends in it, and what goes on at its end. What came
/// before tells how that began.
///
/// # Errors
/// As [`trace::Cursor::next`]; a trace of several machines.
pub fn check_budgets(trace: &Trace, rules: &Rules, range: TimeRange) -> Result<Checked> {
    check_budgets_on(trace, rules, range, &[])
}

/// The same of these CPUs alone, unless there are none: what ends on one of them.
///
/// # Errors
/// As [`check_budgets`].
pub fn check_budgets_on(
    trace: &Trace,
    rules: &Rules,
    range: TimeRange,
    cpus: &[Cpu],
) -> Result<Checked> {
    one_kernel(trace)?;
    let begun = Begun::of(trace, rules, range.end)?;
    let mut checker = Checker::new(trace, rules, range, cpus);
    checker.begun = begun;
    let mut checked = Checked::default();
    let mut kernel = Kernel::new(trace, Follow::default());
    let binding = Arc::clone(kernel.binding());
    let mut cursor = trace.cursor(TimeRange {
        begin: Instant::MIN,
        ..range
    });
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                let now = event.time();
                if range.begin <= now {
                    checked.saw(now);
                }
                checker.now_ns = now.as_ns();
                checker.here = checker.is_asked_for(event.cpu());
                checker.periods(&event);
                let bound = binding.get(event.class());
                checker.before(&kernel, bound, &event);
                kernel.event(&event, now.as_ns(), &mut Shared(&mut checker));
                checker.behind(&kernel, bound, &event);
                checker.handlers(&event, &kernel);
            }
            Item::Lost(lost) => {
                if range.begin <= lost.range.end {
                    checked.holes += 1;
                    checked.lost = checked.lost.saturating_add(lost.count.unwrap_or(0));
                }
                let TimeRange { begin, end } = lost.range;
                let cpu = lost.cpu.map(|cpu| cpu.0);
                // Of what it makes unsure nobody knows on which CPU it ends.
                checker.here = true;
                if lost.hides_what_happened() {
                    checker.cycles.forget_all();
                    kernel.lost(cpu, begin.as_ns(), end.as_ns(), &mut Shared(&mut checker));
                }
            }
            // What it took stands beside it as a loss.
            Item::Damage(_) => {}
        }
    }
    checker.finish(&mut kernel, seen_until(trace, range)?);
    let unrecorded = kernel.unrecorded().len() as u64;
    if unrecorded > 0 {
        checked.holes += unrecorded;
        checker.tallies.iter_mut().for_each(Tally::doubt_all);
    }
    let tallies = checker.tallies.into_iter();
    checked.findings = rules
        .budgets
        .iter()
        .zip(tallies)
        .map(|(budget, tally)| tally.finding(budget.clone(), checked.holes, kernel.knows_locks()))
        .collect();
    Ok(checked)
}

impl Checked {
    fn saw(&mut self, now: Instant) {
        let window = self.window.get_or_insert(TimeRange {
            begin: now,
            end: now,
        });
        window.end = now;
        self.events += 1;
    }
}

struct Checker<'a> {
    rules: &'a Rules,
    matcher: Option<Matcher>,
    /// Periods that are open: their definition, and when they began.
    open: HashMap<u64, (usize, i64)>,
    responses: Responses,
    start_ups: Starts,
    begun: Begun,
    undecided: AllUndecided,
    /// Followed where a budget is about them, or begins with a timer.
    handlers: Option<Handlers>,
    cycles: Cycles,
    /// A system call was seen to return: its exits are recorded.
    calls_return: bool,
    tallies: Vec<Tally>,
    now_ns: i64,
    /// What ends on another CPU does not count; all of them where there are none.
    cpus: &'a [Cpu],
    /// What ends now ends on one of these.
    here: bool,
    /// What ended before does not count.
    begin_ns: i64,
    /// Nothing that began before is sure.
    known_from_ns: i64,
}

impl<'a> Checker<'a> {
    fn new(trace: &Trace, rules: &'a Rules, range: TimeRange, cpus: &'a [Cpu]) -> Checker<'a> {
        let limits = rules.budgets.iter().map(|budget| budget.limit.as_ns());
        let (begin_ns, end_ns) = (range.begin.as_ns(), range.end.as_ns());
        let has_periods = !rules.periods.list().is_empty();
        let has = |is_it: fn(&Subject) -> bool| {
            let mut subjects = rules.budgets.iter().map(|budget| &budget.subject);
            subjects.any(is_it)
        };
        let has_handlers = has(Subject::is_handled);
        let responses = rules.budgets.iter();
        let responses = responses.filter(|budget| budget.subject.is_released());
        let least = responses.map(|budget| budget.limit).min();
        let follows_timers = has_handlers || has(Subject::is_released);
        Checker {
            rules,
            matcher: has_periods.then(|| Matcher::new(&rules.periods, trace.classes())),
            open: HashMap::new(),
            responses: Responses::default(),
            start_ups: Starts::default(),
            begun: Begun::default(),
            undecided: AllUndecided::default(),
            handlers: follows_timers.then(|| Handlers::new(has_handlers, least)),
            cycles: Cycles::new(limits.collect(), (begin_ns, end_ns)),
            calls_return: false,
            tallies: rules.budgets.iter().map(|_| Tally::default()).collect(),
            now_ns: i64::MIN,
            cpus,
            here: true,
            begin_ns,
            known_from_ns: i64::MIN,
        }
    }

    fn is_asked_for(&self, cpu: Option<Cpu>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.contains(&cpu))
    }

    /// Whether what ends now counts.
    fn counts(&self) -> bool {
        self.here && self.begin_ns <= self.now_ns
    }

    /// What is open as the trace ends.
    fn finish(&mut self, kernel: &mut Kernel, until_ns: Option<i64>) {
        self.now_ns = until_ns.unwrap_or(self.now_ns);
        self.here = true;
        kernel.finish(self.now_ns, self);
        self.periods_end();
        self.wake_ups_end(kernel);
        self.responses_end(kernel);
        self.start_ups_end();
        self.handlers_end(kernel);
        self.cycles_end(kernel);
    }

    /// An event that the kernel's state does not know yet.
    fn before(&mut self, kernel: &Kernel, bound: Option<&Bound>, event: &EventView<'_>) {
        let Some(bound) = bound else { return };
        if let Known::Handler(handler) = bound.known
            && let Some(cpu) = kernel.place(bound, event)
        {
            let current = kernel.task_on(cpu).map(|task| Caller {
                task: task.0,
                in_futex: kernel.process(task).waits_in_futex(),
            });
            self.cycles.timer(cpu, handler, event, current);
        }
    }

    /// An event that it knows.
    fn behind(&mut self, kernel: &Kernel, bound: Option<&Bound>, event: &EventView<'_>) {
        let Some(bound) = bound else { return };
        self.runs_another(bound, event);
        let Known::Sched(Sched::Wake(kind, ref fields)) = bound.known else {
            return;
        };
        let task = kernel.find(fields.tid(event));
        if let (Some(cpu), Some(task)) = (kernel.place(bound, event), task) {
            let kind = (kind, kernel.families().waking);
            let at = (cpu, self.now_ns);
            self.cycles.wake(kind, kernel.wakee(), task.0, at);
            let is_first = kind.0 != WakeKind::Wakeup || !kind.1;
            if is_first && kernel.wakee() == Wakee::Slept {
                let handlers = self.handlers.as_ref();
                let due_ns = handlers.and_then(|handlers| handlers.due_on(cpu));
                self.responses.woken(task, due_ns);
            }
            if kind.0 == WakeKind::WakeupNew {
                self.cycles.forget(task.0);
                self.responses.made(task);
            }
        }
    }

    fn periods(&mut self, event: &EventView<'_>) {
        let Some(mut matcher) = self.matcher.take() else {
            return;
        };
        matcher.event(event, |turn| match turn {
            Turn::Begin { id, def, .. } => {
                self.open.insert(id, (def, self.now_ns));
            }
            Turn::End { id, completed, .. } => {
                let begun = self.open.remove(&id);
                if let Some((def, begin_ns)) = begun.filter(|_| completed) {
                    self.period(def, begin_ns);
                }
            }
        });
        self.matcher = Some(matcher);
    }

    fn period(&mut self, def: usize, begin_ns: i64) {
        let name = self.rules.periods.list()[def].name.clone();
        let is_it = |subject: &Subject| is_period(subject, name.as_deref());
        self.sample(is_it, begin_ns, End::Seen(self.now_ns));
    }

    /// A thread that was woken is scheduled in, and was moved before.
    fn undecided(
        &mut self,
        is_it: impl Fn(&Subject) -> bool,
        process: ProcId,
        (woken_ns, at_ns): (i64, i64),
    ) {
        let budgets = self.rules.budgets.iter().enumerate();
        let its = budgets.filter(|(_, budget)| is_it(&budget.subject));
        let budgets = its.map(|(place, _)| place).collect();
        if self.here && at_ns >= self.begin_ns {
            self.undecided.add(Undecided {
                process,
                woken_ns,
                at_ns,
                budgets,
            });
        }
    }

    /// A thread is scheduled in; `made`: for the first time since it was made.
    fn comes(&mut self, kernel: &Kernel, change: &Change<'_>, made: bool) {
        let Change::ScheduledIn {
            process,
            at_ns,
            woken_ns: Some(woken_ns),
            lossy,
            within_ns,
            open,
            ..
        } = *change
        else {
            return;
        };
        let task = kernel.named(kernel.process(process));
        let is_it = |subject: &Subject| {
            is_wake_up_of(subject, &task) || made && is_response_of(subject, &task)
        };
        let end = match within_ns {
            _ if !lossy => End::Seen(at_ns),
            Some((_, until_ns)) => End::NotAfter(until_ns),
            None => End::Unknown,
        };
        match open {
            true => self.undecided(is_it, process, (woken_ns, at_ns)),
            false => self.sample(is_it, woken_ns, end),
        }
        if made {
            self.starts(&task);
        }
        if !lossy && !open && !made {
            let is_wake_up = |subject: &Subject| matches!(subject, Subject::WakeUp(_));
            self.named(is_wake_up, is_it, &task, woken_ns);
        }
        self.seen(is_it, &task);
    }

    /// Whether such a thread ran before is known. If it did, it waited for less.
    fn settled(&mut self, change: &Change<'_>) {
        let Change::Settled {
            process,
            at_ns,
            lossy,
            ..
        } = *change
        else {
            return;
        };
        let wait = self.undecided.take(process, at_ns);
        let end = match lossy {
            true => End::NotAfter(at_ns),
            false => End::Seen(at_ns),
        };
        let Some(wait) = wait else { return };
        for place in wait.budgets {
            let limit_ns = self.rules.budgets[place].limit.as_ns();
            self.tallies[place].enter(wait.woken_ns, end, limit_ns);
        }
        if lossy {
            self.responses.ran_unseen(process);
        }
    }

    /// A thread had a sample of its own.
    fn seen(&mut self, is_it: impl Fn(&Subject) -> bool, task: &NamedTask<'_>) {
        if !self.counts() {
            return;
        }
        for (budget, tally) in self.rules.budgets.iter().zip(&mut self.tallies) {
            if is_it(&budget.subject) {
                let name = || event::plain_text(task.comm);
                tally.threads.entry(task.tid.0).or_insert_with(name);
            }
        }
    }

    /// What an event of a handler or of a timer ends.
    fn handlers(&mut self, event: &EventView<'_>, kernel: &Kernel) {
        let handled = self.handlers.as_mut();
        let handled = handled.and_then(|handlers| handlers.event(event, kernel));
        match handled {
            Some(Handled::Handler(which, begin_ns)) => {
                let (name, number) = which.name(kernel);
                let is_it = |subject: &Subject| subject.is_handler(which, &name, number);
                self.sample(is_it, begin_ns, End::Seen(self.now_ns));
            }
            Some(Handled::Unbegun(which, since_ns)) => {
                let (name, number) = which.name(kernel);
                let is_it = |subject: &Subject| subject.is_handler(which, &name, number);
                match since_ns {
                    Some(since_ns) => self.begun_before(is_it, since_ns),
                    None => self.sample(is_it, self.now_ns, End::Unknown),
                }
            }
            Some(Handled::Timer(owner, due_ns)) => {
                let task = owner.map(|owner| kernel.named(kernel.process(owner)));
                let is_it = |subject: &Subject| subject.is_timer_of(task.as_ref());
                self.sample(is_it, due_ns, End::Seen(self.now_ns));
                if let Some(task) = &task {
                    self.seen(is_it, task);
                }
            }
            None => {}
        }
        let missed = self.handlers.as_mut().map(Handlers::missed);
        for (which, begin_ns) in missed.unwrap_or_default() {
            let (name, number) = which.name(kernel);
            let is_it = |subject: &Subject| subject.is_handler(which, &name, number);
            self.sample(is_it, begin_ns, End::Unknown);
        }
    }

    /// What had begun when the recording did, at `begun_ns`, is over: it was long, or nobody knows.
    fn begun_before(&mut self, is_it: impl Fn(&Subject) -> bool, begun_ns: i64) {
        if !self.counts() {
            return;
        }
        for (budget, tally) in self.rules.budgets.iter().zip(&mut self.tallies) {
            if !is_it(&budget.subject) {
                continue;
            }
            let limit_ns = budget.limit.as_ns();
            match self.now_ns - begun_ns > limit_ns && begun_ns >= self.known_from_ns {
                true => tally.add(begun_ns, self.now_ns, limit_ns),
                false => tally.unseen += 1,
            }
        }
    }

    /// A system call is over that had begun when the recording did. Which call it was, and whose,
    /// may be unknown.
    fn call_begun_before(
        &mut self,
        name: Option<&str>,
        task: Option<&NamedTask<'_>>,
        since_ns: Option<i64>,
    ) {
        let is_sure = name.is_some() && task.is_some();
        let since_ns = since_ns.filter(|_| is_sure).unwrap_or(self.now_ns);
        self.begun_before(|subject| subject.may_be_call_of(name, task), since_ns);
    }

    /// Handlers and system calls that the trace's end leaves under way.
    fn handlers_end(&mut self, kernel: &Kernel) {
        let open: Vec<_> = match &self.handlers {
            Some(handlers) => handlers.under_way().collect(),
            None => Vec::new(),
        };
        for (cpu, which, begin_ns) in open {
            self.here = self.is_asked_for(Some(Cpu(cpu)));
            let (name, number) = which.name(kernel);
            let is_it = |subject: &Subject| subject.is_handler(which, &name, number);
            self.still_open(is_it, begin_ns, !which.has_ends(&kernel.families()));
        }
        for (id, process) in kernel.processes() {
            let call = process.call.as_ref();
            self.here = self.is_asked_for(Some(Cpu(process.seen_on)));
            if let Some(call) = call.filter(|_| !self.responses.is_gone(id)) {
                let (name, task) = (kernel.call_name(call.call), kernel.named(process));
                let is_it = |subject: &Subject| subject.is_call_of(name, &task);
                // Where entries alone are recorded, it may have returned long ago.
                self.still_open(is_it, call.begin_ns, !self.calls_return);
            }
        }
    }

    /// Periods that the trace's end leaves open.
    fn periods_end(&mut self) {
        for (def, begin_ns) in std::mem::take(&mut self.open).into_values() {
            let name = self.rules.periods.list()[def].name.clone();
            let is_it = |subject: &Subject| is_period(subject, name.as_deref());
            self.still_open(is_it, begin_ns, false);
        }
    }
}

fn is_period(subject: &Subject, name: Option<&str>) -> bool {
    match subject {
        Subject::Period(wanted) => name == Some(wanted),
        _ => false,
    }
}

fn is_wake_up_of(subject: &Subject, task: &NamedTask<'_>) -> bool {
    match subject {
        Subject::WakeUp(wanted) => wanted.matches(task),
        _ => false,
    }
}

fn is_work_of(subject: &Subject, task: &NamedTask<'_>) -> bool {
    match subject {
        Subject::Work(wanted) => wanted.matches(task),
        _ => false,
    }
}

fn is_response_of(subject: &Subject, task: &NamedTask<'_>) -> bool {
    match subject {
        Subject::Response(wanted) => wanted.matches(task),
        _ => false,
    }
}

impl Sink for Checker<'_> {
    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        self.settled(change);
        if let Some((process, since_ns)) = self.responses.unwoken(kernel, change) {
            let task = kernel.named(kernel.process(process));
            self.unwoken(|subject| is_wake_up_of(subject, &task), since_ns);
        }
        let made = match *change {
            Change::ScheduledIn { process, .. } => self.responses.is_made(process),
            _ => false,
        };
        let due_ns = match *change {
            Change::Switch { prev, pause, .. } if pause.is_stop() => {
                self.cycles.due_ns(prev.0, self.now_ns)
            }
            _ => None,
        };
        if let Some(ended) = self.responses.change(self.now_ns, change, due_ns) {
            self.ended(kernel, ended);
        }
        match *change {
            Change::ScheduledIn { .. } => self.comes(kernel, change, made),
            Change::CallExit {
                process,
                call,
                begin_ns,
                ..
            } => {
                self.calls_return = true;
                let task = kernel.named(kernel.process(process));
                let name = kernel.call_name(call);
                let is_it = |subject: &Subject| subject.is_call_of(name, &task);
                self.sample(is_it, begin_ns, End::Seen(self.now_ns));
                self.seen(is_it, &task);
            }
            Change::CallBegunBefore {
                process,
                call,
                since_ns,
            } => {
                self.calls_return = true;
                let task = process.map(|process| kernel.named(kernel.process(process)));
                let name = call.map(|call| kernel.call_name(call));
                self.call_begun_before(name, task.as_ref(), since_ns);
            }
            Change::MayHaveWaited {
                process,
                since_ns,
                until_ns,
                count,
            } => self.may_have_waited(kernel, process, (since_ns, until_ns), count),
            Change::Switch {
                cpu, prev, pause, ..
            } => {
                self.cycles.leaves(prev.0, cpu, self.now_ns, pause);
                if let Some(handlers) = &mut self.handlers {
                    handlers.switches(cpu);
                }
            }
            Change::Unknown { process, .. }
            | Change::RanUnseen { process }
            | Change::Doubted { process } => self.cycles.forget(process.0),
            Change::Lost { .. } => {
                self.known_from_ns = kernel.known_from_ns();
                if let Some(handlers) = &mut self.handlers {
                    handlers.lost();
                }
            }
            _ => {}
        }
    }
}
