//! What threads' activations say of budgets: those that are over, those that the trace leaves open,
//! and those of which nobody knows since when they lasted.

use event::{Cpu, NamedTask};
use kernel_state::{Kernel, ProcId};

use super::judge::End;
use super::responses::{Ended, Response};
use super::{Checker, Subject, is_response_of, is_wake_up_of, is_work_of};

impl Checker<'_> {
    /// An activation of a thread is over.
    pub(super) fn ended(&mut self, kernel: &Kernel, ended: Ended) {
        let (process, response) = match ended {
            Ended::Known(response) => (response.process, Some(response)),
            Ended::Unseen(process)
            | Ended::Unwoken(process, _)
            | Ended::PutOff(process, ..)
            | Ended::Started(process, ..) => (process, None),
        };
        let task = kernel.named(kernel.process(process));
        let is_it =
            |subject: &Subject| is_response_of(subject, &task) || is_work_of(subject, &task);
        let Some(Response {
            begin_ns,
            own_ns,
            lossy,
            own_lossy,
            stopped_asleep,
            period_ns,
            ..
        }) = response
        else {
            return match ended {
                Ended::PutOff(process, since_ns, lossy) => {
                    self.put_off(process, &task, (since_ns, lossy));
                }
                Ended::Unwoken(_, last_ns) => self.unwoken(is_it, last_ns),
                Ended::Started(process, made_ns, slept) => {
                    self.started(process, &task, (made_ns, slept));
                }
                _ => self.unseen(is_it, kernel.first_ns()),
            };
        };
        let now_ns = self.now_ns;
        let unbegun = begin_ns < self.known_from_ns;
        let end = |lossy: bool| match (unbegun, lossy) {
            (true, _) => End::Unknown,
            (false, true) => End::NotAfter(now_ns),
            (false, false) => End::Seen(now_ns),
        };
        let is_response = |subject: &Subject| is_response_of(subject, &task);
        let since = self.begun.since(task.tid.0, (begin_ns, now_ns));
        let end_of_response = match end(lossy) {
            End::Seen(_) if stopped_asleep => End::Stopped(now_ns),
            end => end,
        };
        self.sample_since(is_response, (since, period_ns), end_of_response);
        // It may have worked for all of that time.
        let work_ns = match own_lossy {
            true => begin_ns,
            false => now_ns - own_ns,
        };
        self.sample(
            |subject| is_work_of(subject, &task),
            work_ns,
            end(own_lossy),
        );
        let responses = |subject: &Subject| matches!(subject, Subject::Response(_));
        self.named(responses, is_it, &task, begin_ns);
        let works = |subject: &Subject| matches!(subject, Subject::Work(_));
        self.named(works, is_it, &task, work_ns);
        self.seen(is_it, &task);
    }

    /// A thread waited for a CPU whose work was not seen to begin: what it does not end by a sleep
    /// is judged by each of its waits.
    fn put_off(&mut self, process: ProcId, task: &NamedTask<'_>, (since_ns, lossy): (i64, bool)) {
        let end = match lossy {
            true => End::Unknown,
            false => End::Seen(self.now_ns),
        };
        if self.responses.is_starting(process) {
            return self.waits_in_start_up(process, task, (since_ns, end));
        }
        let is_it = |subject: &Subject| is_response_of(subject, task);
        self.sample(is_it, since_ns, end);
        self.seen(is_it, task);
    }

    /// What had begun before the trace, whose first event came at `first_ns`, does not count. Where
    /// the part that was seen is over the limit, it was not in time either.
    fn unseen(&mut self, is_it: impl Fn(&Subject) -> bool, first_ns: i64) {
        if !self.counts() {
            return;
        }
        let seen_ns = self.now_ns - first_ns;
        let budgets = self.rules.budgets.iter().zip(&mut self.tallies);
        for (budget, tally) in budgets.filter(|(budget, _)| is_it(&budget.subject)) {
            match seen_ns > budget.limit.as_ns() {
                true => tally.unwoken += 1,
                false => tally.unseen += 1,
            }
        }
    }

    /// A wake-up was not recorded, after that instant: nobody knows how long what it began lasted,
    /// unless all of that time is within the limit.
    pub(super) fn unwoken(&mut self, is_it: impl Fn(&Subject) -> bool, after_ns: i64) {
        if !self.counts() {
            return;
        }
        let most_ns = self.now_ns.saturating_sub(after_ns);
        let budgets = self.rules.budgets.iter().zip(&mut self.tallies);
        for (budget, tally) in budgets.filter(|(budget, _)| is_it(&budget.subject)) {
            tally.unwoken += u64::from(most_ns > budget.limit.as_ns());
        }
    }

    /// Activations that the trace's end leaves under way.
    pub(super) fn responses_end(&mut self, kernel: &Kernel) {
        let starting: Vec<(ProcId, i64, bool)> = self.responses.starting().collect();
        for (process, made_ns, slept) in starting {
            let known = kernel.process(process);
            self.here = self.is_asked_for(Some(Cpu(known.seen_on)));
            self.started(process, &kernel.named(known), (made_ns, slept));
        }
        let responses: Vec<Response> = self.responses.under_way(self.now_ns).collect();
        for response in responses {
            let Response {
                process,
                begin_ns,
                own_ns,
                lossy,
                own_lossy,
                stopped_asleep,
                period_ns: _,
            } = response;
            let known = kernel.process(process);
            let task = kernel.named(known);
            // It may have done its work unseen.
            let at = known.arrived.map_or(known.seen_on, |arrival| arrival.cpu);
            self.here = self.is_asked_for(Some(Cpu(at)));
            // Where no switches are recorded, nobody knows who has long been through.
            let is_doubted =
                begin_ns < self.known_from_ns || kernel.is_doubted(at) || !kernel.families().switch;
            let (lossy, own_lossy) = (lossy || is_doubted, own_lossy || is_doubted);
            let lossy = lossy || stopped_asleep;
            let since = self.begun.since(task.tid.0, (begin_ns, self.now_ns));
            self.open_since(|subject| is_response_of(subject, &task), since, lossy);
            let work_ns = self.now_ns - own_ns;
            self.still_open(|subject| is_work_of(subject, &task), work_ns, own_lossy);
        }
    }

    /// What was found of the sleeps of threads between two releases by their timers.
    pub(super) fn cycles_end(&mut self, kernel: &Kernel) {
        for (id, process) in kernel.processes() {
            let Some(found) = self.cycles.found(id.0, self.now_ns) else {
                continue;
            };
            let task = kernel.named(process);
            if !self.is_asked_for(Some(Cpu(process.seen_on))) {
                continue;
            }
            let budgets = self.rules.budgets.iter().zip(&mut self.tallies);
            for ((budget, tally), over) in budgets.zip(&found.over) {
                // It may have another name, or another priority, by the end.
                let was_it = matches!(budget.subject, Subject::Response(_))
                    && tally.threads.contains_key(&process.tid);
                if was_it || is_response_of(&budget.subject, &task) {
                    tally.slept_inside(&found, *over);
                }
            }
        }
    }

    /// Threads that were woken and were never scheduled in.
    pub(super) fn wake_ups_end(&mut self, kernel: &Kernel) {
        for (id, process) in kernel.processes() {
            let may_wait_ns = kernel.may_wait_since(id);
            let Some(begin_ns) = process.woken_ns.or(may_wait_ns) else {
                continue;
            };
            let task = kernel.named(process);
            let at = process.arrived.map_or(process.seen_on, |at| at.cpu);
            self.here = self.is_asked_for(Some(Cpu(at)));
            // Another thread may have its id by now.
            if kernel.find(process.tid) == Some(id) {
                let mut at = process.arrived.iter();
                let is_sure = process.woken_ns.is_some() && !process.doubtful;
                let is_sure = is_sure && kernel.families().switch;
                let doubtful = !is_sure || at.any(|at| kernel.is_doubted(at.cpu));
                self.still_open(|subject| is_wake_up_of(subject, &task), begin_ns, doubtful);
                let begin_ns = self.responses.begin_ns(id, begin_ns);
                let since = self.begun.since(task.tid.0, (begin_ns, self.now_ns));
                self.open_since(|subject| is_response_of(subject, &task), since, doubtful);
            }
        }
    }

    /// A thread may have been woken and have run, so many times, and nobody knows for how long.
    pub(super) fn may_have_waited(
        &mut self,
        kernel: &Kernel,
        process: ProcId,
        (since_ns, until_ns): (i64, Option<i64>),
        count: u64,
    ) {
        let task = kernel.named(kernel.process(process));
        let end = until_ns.map_or(End::Unknown, End::PerhapsBefore);
        let is_it =
            |subject: &Subject| is_wake_up_of(subject, &task) || is_response_of(subject, &task);
        for _ in 0..count {
            self.sample(is_it, since_ns, end);
        }
    }
}
