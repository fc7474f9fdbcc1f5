//! What a watch judged: a number of hits says nothing without it.

use bpf_host::Statistics;
use capture::watch::{SleepsInside, Status};
use event::Duration;
use serde_json::{Value, json};

use crate::flags::Until;
use crate::options::WatchOptions;

/// Tasks that are named; the others are counted.
const NAMED_MAX: usize = 3;

/// Whose activations, and where they end.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The targets, in words.
    pub whom: String,
    /// Where an activation ends.
    pub until: Until,
    /// What is late by itself, if that was asked for.
    pub asked: Option<Duration>,
    /// What may be waited for until it is told.
    pub timeout: Option<Duration>,
}

impl Scope {
    /// As `--until` and JSON call the end.
    pub fn until_name(&self) -> &'static str {
        match self.until {
            Until::Block => "block",
            Until::SwitchIn => "switch-in",
            Until::UserReturn => "user-return",
        }
    }

    /// How many activations of whom were judged to where; `nobody`: as far as was seen, none of
    /// those was there.
    pub fn judged(&self, status: &Status, nobody: bool) -> String {
        let statistics = &status.statistics;
        let (samples, whom) = (statistics.samples, &self.whom);
        let to = match self.until {
            // What the watch follows is inside the work; these it does not.
            Until::Block => {
                "to the end of the work; a sleep for a semaphore, a condition, an answer or a \
                 length of time ends it, and what a fair task did before it woke one, or a \
                 real-time one before its last sleep, is not judged"
            }
            Until::SwitchIn => "to the switch-in; work after it not judged",
            Until::UserReturn => "to the return to user space; work after it not judged",
        };
        match samples {
            // No other end would help.
            0 if nobody => format!("nothing judged: none of {whom} was seen"),
            0 if self.until == Until::Block => format!(
                "nothing judged: no activation of {whom} ended; --until switch-in judges the waits \
                 of those that do not sleep"
            ),
            0 => format!("nothing judged: no activation of {whom} ended"),
            1 => format!("judged: 1 activation of {whom}, {to}"),
            _ => format!("judged: {samples} activations of {whom}, {to}"),
        }
    }
}

/// Whether an activation was judged, or one that was not seen to begin ended.
pub(super) fn has_judged(statistics: &Statistics) -> bool {
    statistics.samples + statistics.unseen > 0
}

/// What could not be judged, and why: a line each, none where there is nothing to say.
pub(super) fn unjudged_text(statistics: &Statistics) -> String {
    let reasons = [
        (
            statistics.untracked,
            "of tasks that the kernel had no memory to follow",
        ),
        (
            statistics.unplaced,
            "of which nothing says when they began, judged from their wake-up alone",
        ),
        (
            statistics.unmeant,
            "over the threshold, of tasks that were meant no longer at their end",
        ),
    ];
    let those = reasons.iter().filter(|(count, _)| *count > 0);
    let those: Vec<_> = those.map(|(count, why)| format!("{count} {why}")).collect();
    let mut text = match statistics.unjudged() {
        0 => String::new(),
        1 => format!("1 activation could not be judged: {}\n", those.join("; ")),
        all => format!(
            "{all} activations could not be judged: {}\n",
            those.join("; ")
        ),
    };
    let dated = statistics.unseen.saturating_sub(statistics.undated);
    text += &match dated {
        0 => String::new(),
        1 => "1 wake-up was not seen: its activation was judged from the task's own timer\n"
            .to_owned(),
        all => format!(
            "{all} wake-ups were not seen: their activations were judged from the tasks' own \
             timers\n"
        ),
    };
    text += &match statistics.undated {
        0 => String::new(),
        1 => "1 wake-up was not seen, nor a date: its activation was judged from when it ran, and \
              may have been late by then\n"
            .to_owned(),
        all => format!(
            "{all} wake-ups were not seen, nor a date: their activations were judged from when \
             they ran, and may have been late by then\n"
        ),
    };
    text += &match statistics.renamed {
        0 => String::new(),
        1 => "1 task is called otherwise now: what it did since then was not judged\n".to_owned(),
        all => format!(
            "{all} tasks are called otherwise now: what they did since then was not judged\n"
        ),
    };
    text
}

/// What is late by itself: not what an application has to call so.
pub(super) fn asked(options: &WatchOptions) -> Option<Duration> {
    options.over.filter(|_| options.triggers.is_empty())
}

/// Whether tasks slept, perhaps inside of their work, so that it lasted longer than was asked for,
/// or were at work for so long and did not sleep at all: no activation tells.
pub(in crate::verbs) fn may_be_late(options: &WatchOptions, status: &Status) -> bool {
    let slept = || status.inside.iter().any(|found| found.over > 0);
    asked(options).is_some() && (slept() || status.statistics.unslept > 0)
}

/// What is said of programs that did not sleep at all.
pub(super) fn unslept_text(asked: Option<Duration>, statistics: &Statistics) -> String {
    let Some(over) = asked.filter(|_| statistics.unslept > 0) else {
        return String::new();
    };
    let those = match statistics.unslept {
        1 => "1 program, which".to_owned(),
        all => format!("{all} programs, each of which"),
    };
    format!(
        "not judged: the work of {those} was at it for more than {over:#} and did not sleep once; \
         --until switch-in judges its waits\n"
    )
}

/// What is said of start-ups that nobody judged, and may take for work that was in time.
pub(super) fn start_ups_text(asked: Option<Duration>, statistics: &Statistics) -> String {
    let Some(over) = asked.filter(|_| statistics.start_ups > 0) else {
        return String::new();
    };
    let those = match statistics.start_ups {
        1 => "1 start-up".to_owned(),
        all => format!("{all} start-ups"),
    };
    format!(
        "{those} took longer than {over:#}: what a task does before its first sleep, once it is \
         made or has its name, is not judged\n"
    )
}

/// What is said where all that was late are ordinary threads of processes that have real-time
/// ones.
pub(super) fn nobody_waits_text(asked: Option<Duration>) -> String {
    let over = asked.map_or_else(String::new, |over| format!(" --over {over:#}"));
    format!(
        "no real-time thread was late: what was are ordinary threads beside real-time ones, for \
         which nobody waits; rtscope watch{over} judges every real-time task of the machine\n"
    )
}

/// Waits that were too long for `--timeout`, and over before anybody looked.
pub(super) fn overlooked_text(timeout: Option<Duration>, statistics: &Statistics) -> String {
    let Some(timeout) = timeout.filter(|_| statistics.overlooked > 0) else {
        return String::new();
    };
    let those = match statistics.overlooked {
        1 => "1 more waited".to_owned(),
        all => format!("{all} more waited"),
    };
    format!(
        "{those} for longer than {timeout:#} and ran again before the next look at who waits: \
         --over {timeout:#} tells each\n"
    )
}

/// What is said of such tasks, a line each: of all that may be late, where that was asked for, else
/// of those that may be worse than the worst.
pub(super) fn slept_text(asked: Option<Duration>, status: &Status) -> String {
    let worst = status.statistics.worst;
    let matters = |found: &&SleepsInside| match asked {
        Some(_) => found.over > 0,
        None => found.worst.duration() > worst,
    };
    let those: Vec<_> = status.inside.iter().filter(matters).collect();
    let mut text = String::new();
    for found in those.iter().take(NAMED_MAX) {
        let (task, longest, begin) = (&found.task, found.worst.duration(), found.worst.begin);
        let (slept, over) = (times(found.sleeps), asked.zip(Some(found.over)));
        let over = over.map(|(over, count)| format!(", and {count} took more than {over:#}"));
        let (over, between) = (over.unwrap_or_default(), between(found));
        text += &format!(
            "not judged: {task} slept {slept} {between}; if that is inside its work, the worst \
             took {longest} from {begin}{over}\n",
        );
        if let Some(over) = asked.filter(|_| found.by_others) {
            let tid = task.tid;
            text += &format!(
                "  for what:   rtscope watch offcpu --task tid:{tid} --over {over:#} --stacks\n"
            );
        }
    }
    if those.len() > NAMED_MAX {
        text += &format!("the same of {} more tasks\n", those.len() - NAMED_MAX);
    }
    text
}

/// Where its sleeps may be inside of its work.
fn between(found: &SleepsInside) -> &'static str {
    match found.by_others {
        true => {
            "elsewhere than where it waits for work (for a length of time, a child, another's \
                 answer)"
        }
        false => "between releases by its timer, for others or for a length of time",
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// The same of all such tasks, for programs.
pub(super) fn slept_json(status: &Status) -> Value {
    let of_task = |found: &SleepsInside| {
        let task = &found.task;
        json!({
            "task": { "tid": task.tid.0, "comm": task.comm, "prio": task.prio.lttng() },
            "begun_by": if found.by_others { "others" } else { "timer" },
            "cycles": found.cycles,
            "sleeps": found.sleeps,
            "over": found.over,
            "worst_ns": found.worst.duration().as_ns(),
            "worst_begin_ns": found.worst.begin.as_ns(),
        })
    };
    status.inside.iter().map(of_task).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use event::evidence::TaskRef;
    use event::{Instant, Prio, Tid, TimeRange};

    use super::*;
    use crate::flags;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        watch: flags::Watch,
    }

    #[test]
    fn who_may_have_slept_inside_of_its_work_is_told_where_that_would_be_late() {
        let check = |words: &[&str], over: u64, expect: (bool, Option<&str>)| {
            let words = ["watch", "--task", "x"].iter().chain(words);
            let typed = Line::try_parse_from(words).expect("parses").watch;
            let options = WatchOptions::new(&typed, &[event::Cpu(0)]).expect("valid");
            let task = TaskRef {
                tid: Tid(7),
                comm: "victim".to_owned(),
                prio: Prio::from_rt(50),
            };
            let mut inside = SleepsInside {
                task,
                by_others: false,
                naps: false,
                cycles: 4,
                sleeps: 5,
                over,
                worst: TimeRange {
                    begin: Instant::from_ns(2_000_000_000),
                    end: Instant::from_ns(2_020_700_000),
                },
            };
            let mut status = status();
            status.inside = vec![inside.clone()];
            status.statistics.worst = event::Duration::from_ms(1);
            assert_eq!(may_be_late(&options, &status), expect.0, "{:?}", typed.over);
            let text = slept_text(asked(&options), &status);
            let end = text.split_once("length of time; ").map(|(_, end)| end);
            assert_eq!(end.map(str::trim_end), expect.1, "{text}");
            inside.by_others = true;
            status.inside = vec![inside];
            let text = slept_text(asked(&options), &status);
            let place = "5 times elsewhere than where it waits for work";
            assert_eq!(text.contains(place), expect.1.is_some(), "{text}");
            let how = "for what:   rtscope watch offcpu --task tid:7 --over 3ms --stacks\n";
            assert_eq!(text.ends_with(how), over > 0 && expect.0, "{text}");
        };
        let worst = "if that is inside its work, the worst took 20.700 ms from 2.000000000";
        let over = format!("{worst}, and 4 took more than 3ms");
        check(&["--over", "3ms"], 4, (true, Some(&over)));
        check(&["--over", "30ms"], 0, (false, None));
        // Every activation is over the smallest threshold: only a worse one than the worst is news.
        check(&[], 4, (false, Some(worst)));
        check(&["--trigger", "signal"], 4, (false, Some(worst)));
    }

    fn status() -> Status {
        Status {
            elapsed: event::Duration::ZERO,
            read: Instant::MIN,
            hits: 0,
            statistics: Default::default(),
            cost: Default::default(),
            spent: Default::default(),
            inside: Vec::new(),
        }
    }

    #[test]
    fn a_number_of_hits_comes_with_what_was_judged() {
        let check_of = |nobody, until, samples, expect: &str| {
            let mut status = status();
            status.statistics.samples = samples;
            let whom = "tasks called jackd".to_owned();
            let scope = Scope {
                whom,
                until,
                asked: None,
                timeout: None,
            };
            assert_eq!(scope.judged(&status, nobody), expect);
        };
        let check = |until, samples, expect: &str| check_of(false, until, samples, expect);
        let block = "judged: 7 activations of tasks called jackd, to the end of the work; a sleep \
                     for a semaphore, a condition, an answer or a length of time ends it, and what \
                     a fair task did before it woke one, or a real-time one before its last sleep, \
                     is not judged";
        check(Until::Block, 7, block);
        check(
            Until::SwitchIn,
            1,
            "judged: 1 activation of tasks called jackd, to the switch-in; work after it not \
             judged",
        );
        check(
            Until::Block,
            0,
            "nothing judged: no activation of tasks called jackd ended; --until switch-in judges \
             the waits of those that do not sleep",
        );
        let nobody = "nothing judged: none of tasks called jackd was seen";
        check_of(true, Until::Block, 0, nobody);
        check_of(true, Until::SwitchIn, 0, nobody);
    }

    #[test]
    fn programs_that_never_slept_are_told_where_something_was_asked_for() {
        let check = |asked_ms: Option<i64>, unslept, expect: &str| {
            let statistics = Statistics {
                unslept,
                ..Statistics::default()
            };
            let text = unslept_text(asked_ms.map(Duration::from_ms), &statistics);
            assert_eq!(text, expect);
        };
        check(Some(20), 0, "");
        check(None, 3, "");
        check(
            Some(20),
            1,
            "not judged: the work of 1 program, which was at it for more than 20ms \
             and did not sleep once; --until switch-in judges its waits\n",
        );
        let several = unslept_text(
            Some(Duration::from_ms(20)),
            &Statistics {
                unslept: 3,
                ..Statistics::default()
            },
        );
        assert!(
            several.contains("3 programs, each of which was"),
            "{several}"
        );
    }

    #[test]
    fn start_ups_are_told_where_something_was_asked_for() {
        let check = |asked_ms: Option<i64>, start_ups, expect: &str| {
            let statistics = Statistics {
                start_ups,
                ..Statistics::default()
            };
            let text = start_ups_text(asked_ms.map(Duration::from_ms), &statistics);
            assert_eq!(text, expect);
        };
        check(Some(9), 0, "");
        check(None, 2, "");
        let scope = "took longer than 9ms: what a task does before its first sleep, once it is \
                     made or has its name, is not judged\n";
        check(Some(9), 1, &format!("1 start-up {scope}"));
        check(Some(9), 2, &format!("2 start-ups {scope}"));
    }

    #[test]
    fn waits_that_were_over_before_a_look_are_told_beside_the_time_out() {
        let check = |timeout_ms: Option<i64>, overlooked, expect: &str| {
            let statistics = Statistics {
                overlooked,
                ..Statistics::default()
            };
            let text = overlooked_text(timeout_ms.map(Duration::from_ms), &statistics);
            assert_eq!(text, expect);
        };
        check(Some(30), 0, "");
        check(None, 2, "");
        let rest = "waited for longer than 30ms and ran again before the next look at who waits: \
                    --over 30ms tells each\n";
        check(Some(30), 1, &format!("1 more {rest}"));
        check(Some(30), 2, &format!("2 more {rest}"));
    }

    #[test]
    fn what_could_not_be_judged_is_said_with_its_reason() {
        let check = |statistics: &Statistics, expect: &str| {
            assert_eq!(unjudged_text(statistics), expect);
        };
        let mut statistics = Statistics::default();
        check(&statistics, "");
        statistics.unplaced = 1;
        check(
            &statistics,
            "1 activation could not be judged: 1 of which nothing says when they began, judged \
             from their wake-up alone\n",
        );
        statistics.untracked = 2;
        let text = unjudged_text(&statistics);
        assert!(text.starts_with("3 activations could not be judged: 2 of tasks that"));
        assert!(text.contains("; 1 of which nothing says"), "{text}");
        statistics = Statistics {
            unseen: 2,
            ..Statistics::default()
        };
        check(
            &statistics,
            "2 wake-ups were not seen: their activations were judged from the tasks' own timers\n",
        );
        statistics.undated = 2;
        check(
            &statistics,
            "2 wake-ups were not seen, nor a date: their activations were judged from when they \
             ran, and may have been late by then\n",
        );
        statistics = Statistics {
            renamed: 1,
            ..Statistics::default()
        };
        check(
            &statistics,
            "1 task is called otherwise now: what it did since then was not judged\n",
        );
    }
}
