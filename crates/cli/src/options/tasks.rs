//! Which tasks were meant: the same words for every verb.

use diagnosis::TaskFilter;
use event::{Error, ErrorKind, Result, TaskPattern, Tid};
use host::groups::Asked;

use crate::flags::TraceGroups;

/// What `--task` and `--tid` name; nothing when nothing was typed.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word that can name no task.
pub(super) fn tasks(typed: &[String], tid: Option<i32>) -> Result<TaskFilter> {
    let mut filter = TaskFilter::parse(typed)?;
    if let Some(tid) = tid {
        filter.patterns.push(TaskPattern::Tid(positive_tid(tid)?));
    }
    Ok(filter)
}

/// What `--pid` and `--process` name.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word that can name no process.
pub(super) fn processes(pids: &[i32], names: &[String]) -> Result<Vec<TaskPattern>> {
    let pids = pids
        .iter()
        .map(|pid| TaskPattern::parse(&format!("pid:{pid}")));
    let names = names
        .iter()
        .map(|name| TaskPattern::parse(&format!("process:{name}")));
    pids.chain(names).collect()
}

/// What `--cgroup`, `--unit` and `--container` name.
pub(super) fn groups(cgroups: &[String], units: &[String], containers: &[String]) -> Vec<Asked> {
    let cgroups = cgroups.iter().cloned().map(Asked::Cgroup);
    let units = units.iter().cloned().map(Asked::Unit);
    let containers = containers.iter().cloned().map(Asked::Container);
    cgroups.chain(units).chain(containers).collect()
}

/// The flag that asks for these, and what is typed after it.
pub fn group_flag(asked: &Asked) -> (&'static str, &str) {
    match asked {
        Asked::Cgroup(name) => ("cgroup", name),
        Asked::Unit(name) => ("unit", name),
        Asked::Container(name) => ("container", name),
    }
}

/// Refuses control groups where a trace is read: it does not know them.
///
/// # Errors
/// [`ErrorKind::Unsupported`] when one was typed.
pub(super) fn no_groups(typed: &TraceGroups) -> Result<()> {
    let flags = [
        ("--cgroup", &typed.cgroup),
        ("--unit", &typed.unit),
        ("--container", &typed.container),
    ];
    let Some((flag, name)) = flags
        .iter()
        .find_map(|(flag, name)| Some((flag, name.as_ref()?)))
    else {
        return Ok(());
    };
    let what = "a trace does not say which task was in which control group or container";
    Err(Error::new(ErrorKind::Unsupported, what)
        .found(format!("{flag} {name}"))
        .fix(format!(
            "name its threads (--process NAME, --pid N), or judge them while they run: \
             rtscope record {flag} {name}, rtscope watch {flag} {name}"
        )))
}

/// Whom a tune watches.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word that can name no task.
pub fn target_words(typed: &crate::flags::Tune) -> Result<(Vec<TaskPattern>, Vec<Asked>)> {
    let mut patterns = tasks(&typed.task, None)?.patterns;
    patterns.extend(processes(&typed.pid, &typed.process)?);
    let groups = groups(&typed.cgroup, &typed.unit, &typed.container);
    Ok((patterns, groups))
}

fn positive_tid(tid: i32) -> Result<Tid> {
    if tid > 0 {
        return Ok(Tid(tid));
    }
    let error = Error::new(ErrorKind::InvalidInput, "--tid is not a thread id");
    Err(error
        .found(format!("'{tid}'"))
        .fix("ps -eLo tid,rtprio,comm lists them"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use event::{Cpu, NamedTask, Prio};
    use views::{Rules, Subject};

    use super::*;
    use crate::flags;
    use crate::options::{
        DiagnoseOptions, DiffOptions, RecordOptions, ReportVerb, Target, WatchOptions,
    };

    const PAGE: &str = include_str!("../../../../docs/tasks.md");

    #[derive(Parser)]
    enum Line {
        Watch(Box<flags::Watch>),
        Diagnose(flags::Diagnose),
        Report(Box<flags::Report>),
        Diff(flags::Diff),
        Record(Box<flags::Record>),
    }

    /// What a verb's own reading of a command line makes of it.
    fn typed(verb: &str, before: &[&str], task: &str) -> Result<Vec<TaskPattern>> {
        let task = format!("--task={task}");
        let words = ["rtscope", verb].into_iter().chain(before.iter().copied());
        let line = Line::try_parse_from(words.chain([task.as_str()])).expect("a command line");
        Ok(match line {
            Line::Watch(typed) => match WatchOptions::new(&typed, &[Cpu(0)])?.target {
                Target::Tasks(patterns) => patterns,
                Target::RealTime => vec![TaskPattern::RealTime],
            },
            Line::Diagnose(typed) => DiagnoseOptions::new(&typed)?.tasks.patterns,
            Line::Report(typed) => match ReportVerb::new(&typed)? {
                ReportVerb::Run(request) => request.options.tasks.patterns,
                other => panic!("{other:?} instead of a report"),
            },
            Line::Diff(typed) => DiffOptions::new(&typed)?.tasks.patterns,
            Line::Record(typed) => RecordOptions::new(&typed)?.tasks.patterns,
        })
    }

    fn budget(task: &str) -> Result<Vec<TaskPattern>> {
        let rules = Rules::parse(&format!("wake-up of {task} within 1ms"))?;
        let subjects = rules
            .budgets
            .into_iter()
            .map(|budget| match budget.subject {
                Subject::WakeUp(task) => task,
                other => panic!("{other:?} is read"),
            });
        Ok(subjects.collect())
    }

    fn rt_rule(task: &str) -> Result<Vec<TaskPattern>> {
        let rule = format!("--rt={task}:10ms:1ms");
        let words = ["rtscope", "report", "rtcheck", "TRACE", &rule];
        let Ok(Line::Report(typed)) = Line::try_parse_from(words) else {
            panic!("{rule} is no flag");
        };
        let ReportVerb::Run(request) = ReportVerb::new(&typed)? else {
            panic!("{rule} is no report");
        };
        Ok(request
            .options
            .rt_rules
            .into_iter()
            .map(|rule| rule.task)
            .collect())
    }

    /// The same words through every way in.
    fn through_every_verb(task: &str) -> Vec<(&'static str, Result<Vec<TaskPattern>>)> {
        vec![
            ("watch", typed("watch", &[], task)),
            ("diagnose", typed("diagnose", &["TRACE"], task)),
            ("report", typed("report", &["cputop", "TRACE"], task)),
            ("diff", typed("diff", &["OLD", "NEW"], task)),
            ("record", typed("record", &[], task)),
            ("check", budget(task)),
            ("rtcheck", rt_rule(task)),
        ]
    }

    /// The rows of the page's first table with this `head` behind a line.
    fn rows(head: &str, behind: &str) -> Vec<Vec<&'static str>> {
        let lines = PAGE.lines().skip_while(|line| !line.starts_with(behind));
        let lines = lines.skip_while(|line| !line.starts_with(head)).skip(2);
        let lines = lines.take_while(|line| line.starts_with('|'));
        let cells = lines.map(|line| {
            let line = line.trim_matches('|').split(" | ");
            line.map(|cell| cell.trim().trim_matches('|').trim())
                .collect()
        });
        cells.collect()
    }

    fn code(cell: &'static str) -> &'static str {
        let inside = cell
            .strip_prefix('`')
            .and_then(|cell| cell.strip_suffix('`'));
        inside.unwrap_or_else(|| panic!("{cell} is no code"))
    }

    fn prio(text: &str) -> Prio {
        match text.split_once(' ') {
            Some(("rt", rt)) => Prio::from_rt(rt.parse().expect("a priority")),
            Some(("nice", nice)) => Prio::from_lttng(20 + nice.parse::<i32>().expect("a nice")),
            _ => Prio(-1),
        }
    }

    #[test]
    fn the_examples_of_the_page_mean_the_same_tasks_to_every_verb() {
        let tasks = rows("| tid | name |", "With these tasks");
        let tasks: Vec<(i32, &str, i32, Prio, Option<&str>)> = tasks
            .iter()
            .map(|row| {
                let number = |cell: &str| cell.parse().expect("an id");
                let file = row.get(4).filter(|cell| !cell.is_empty());
                let file = file.map(|cell| code(cell));
                (
                    number(row[0]),
                    code(row[1]),
                    number(row[2]),
                    prio(row[3]),
                    file,
                )
            })
            .collect();
        let leader = |pid: i32| tasks.iter().find(|task| task.0 == pid).map(|task| task.1);
        let named = tasks.iter().map(|(tid, name, pid, prio, file)| NamedTask {
            tid: Tid(*tid),
            comm: name.as_bytes(),
            prio: Some(*prio),
            pid: Some(Tid(*pid)),
            leader: leader(*pid).map(str::as_bytes),
            program: file.map(str::as_bytes),
            is_program: false,
        });
        let named: Vec<_> = named.collect();
        let examples = rows("| `--task` | tids |", "these mean");
        assert!(
            examples.len() > 25 && named.len() > 10,
            "the page has its tables"
        );
        for row in examples {
            let (text, expect) = (code(row[0]), row.get(1).copied().unwrap_or_default());
            for (verb, patterns) in through_every_verb(text) {
                let patterns = patterns.unwrap_or_else(|error| panic!("{verb} {text}: {error}"));
                let filter = TaskFilter { patterns };
                let meant = named.iter().filter(|task| filter.matches(task));
                let meant: Vec<String> = meant.map(|task| task.tid.to_string()).collect();
                assert_eq!(meant.join(" "), expect, "{verb} {text}");
            }
        }
    }

    #[test]
    fn what_can_name_no_task_is_refused_by_every_verb_with_a_remedy() {
        let refused = rows("| `--task` |", "and these are refused");
        assert!(refused.len() > 8, "the page has its table");
        for row in refused {
            let text = code(row[0]);
            for (verb, patterns) in through_every_verb(text) {
                let error = patterns.expect_err(&format!("{verb} {text}"));
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{verb} {text}");
                assert!(error.fixed_by().is_some(), "{verb} {text}");
            }
        }
    }
}
