//! The commands that come after an answer: the watch that shows whether an advice helped, with the
//! user's own flags, and the diagnosis that shows all of it.

use diagnosis::{Diagnosis, LateActivation, Until, check_threshold, quoted};
use event::evidence::EndKind;

use crate::flags::Diagnose;

/// Flags that say what to print, with whether they have a value: what comes next is for people.
const PRINTS: [(&str, bool); 6] = [
    ("--json", false),
    ("--exec", true),
    ("--html", true),
    ("--svg", true),
    ("--verbose", false),
    ("-v", false),
];

/// The watch that was typed, to be typed once more; `words` are those behind the program's name.
pub fn same_watch(words: impl IntoIterator<Item = String>) -> String {
    without_prints(words)
}

/// The diagnosis that was typed, with all that it knows.
pub fn with_all(words: impl IntoIterator<Item = String>) -> String {
    without_prints(words) + " -v"
}

fn without_prints(words: impl IntoIterator<Item = String>) -> String {
    let mut again = String::from("rtscope");
    let mut words = words.into_iter();
    let mut is_command = false;
    while let Some(word) = words.next() {
        is_command |= word == "--";
        let flag = word.split('=').next().unwrap_or_default();
        let prints = PRINTS.iter().find(|(name, _)| *name == flag && !is_command);
        if let Some((_, has_value)) = prints {
            if *has_value && !word.contains('=') {
                words.next();
            }
            continue;
        }
        again.push(' ');
        again.push_str(&quoted(&word));
    }
    again
}

/// The words of this process behind the program's name.
pub fn own_words() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Lets each advice be checked by what was asked for: the same tasks, end and threshold. Of a
/// snapshot that is the watch which took it, by its `command`, unless something else was typed.
pub fn check_as_asked(diagnosis: &mut Diagnosis, typed: &Diagnose, command: Option<&str>) {
    let until = diagnosis.basis.until;
    let watch = command.filter(|_| !asks(typed)).and_then(watch_of);
    diagnosis.check_with(|late| match (&watch, &late.hit) {
        (Some(watch), Some(_)) => watch.clone(),
        _ => check(typed, until, late),
    });
}

/// The watch of this command line, to be typed once more; none where it is another verb's.
fn watch_of(command: &str) -> Option<String> {
    let words = shlex::split(command)?;
    let mut words = words.into_iter().skip(1).peekable();
    let is_watch = words.peek().is_some_and(|verb| verb == "watch");
    is_watch.then(|| same_watch(words))
}

/// Whether the flags of a diagnosis say whose lateness is meant, or from when on.
fn asks(typed: &Diagnose) -> bool {
    is_named(typed) || typed.over.is_some() || typed.window.cpu.is_some()
}

fn is_named(typed: &Diagnose) -> bool {
    !typed.task.is_empty()
        || typed.tid.is_some()
        || !typed.pid.is_empty()
        || !typed.process.is_empty()
}

fn check(typed: &Diagnose, until: Until, late: &LateActivation) -> String {
    let mut words = vec!["rtscope watch".to_owned()];
    let mut flag = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
    typed.task.iter().for_each(|task| flag("--task", task));
    if let Some(tid) = typed.tid {
        flag("--tid", &tid.to_string());
    }
    for pid in &typed.pid {
        flag("--pid", &pid.to_string());
    }
    typed
        .process
        .iter()
        .for_each(|name| flag("--process", name));
    if !is_named(typed) {
        flag("--task", &late.task.comm);
    }
    match &typed.over {
        Some(over) => flag("--over", over),
        None => flag("--over", &format!("{:#}", check_threshold(late))),
    }
    if let Some(cpu) = &typed.window.cpu {
        flag("--cpu", cpu);
    }
    // A watch goes to the end of the work if nothing is said.
    match late.hit.as_ref().map(|hit| hit.end_kind) {
        Some(EndKind::UserReturn) => flag("--until", "user-return"),
        Some(EndKind::SwitchIn) => flag("--until", "switch-in"),
        Some(_) => {}
        None if until == Until::SwitchIn => flag("--until", "switch-in"),
        None => {}
    }
    let without = [
        ("--begin", typed.window.begin.is_some()),
        ("--end", typed.window.end.is_some()),
        ("--worst", typed.worst.is_some()),
    ];
    let without: Vec<_> = without.iter().filter(|(_, typed)| *typed).collect();
    let mut text = words.join(" ");
    if !without.is_empty() {
        let names: Vec<_> = without.iter().map(|(name, _)| *name).collect();
        text += &format!("   # a watch has no {}", names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use diagnosis::{Query, diagnose};
    use testkit::{SyntheticTrace, Task};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        diagnose: Diagnose,
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_watch_is_typed_again_with_its_flags_and_without_what_only_prints() {
        let check = |line: &str, expect: &str| assert_eq!(same_watch(words(line)), expect);
        check(
            "watch --task jackd --over 25ms --json",
            "rtscope watch --task jackd --over 25ms",
        );
        check(
            "watch --exec mail --html=x.html -v --pid 7 --until switch-in",
            "rtscope watch --pid 7 --until switch-in",
        );
        check(
            "watch --over 5ms -- ./app --json -v",
            "rtscope watch --over 5ms -- ./app --json -v",
        );
        let pattern = same_watch(["watch".into(), "--task".into(), "jack*".into()]);
        assert_eq!(pattern, "rtscope watch --task 'jack*'");
    }

    #[test]
    fn a_snapshot_is_checked_by_the_watch_that_took_it() {
        let check = |line: &str, expect: Option<&str>| {
            assert_eq!(watch_of(line).as_deref(), expect, "{line}");
        };
        check(
            "/usr/bin/rtscope watch --process jackd --over 5ms --json",
            Some("rtscope watch --process jackd --over 5ms"),
        );
        check(
            "rtscope watch --over 5ms -- 'my app' -v",
            Some("rtscope watch --over 5ms -- 'my app' -v"),
        );
        check("rtscope demo jack", None);
        check("rtscope record -- watch", None);
        check("rtscope watch 'unclosed", None);
    }

    #[test]
    fn the_check_of_a_diagnosis_has_the_users_flags_and_names_those_that_a_watch_has_not() {
        let (victim, hog) = (Task::rt(100, "victim", 50), Task::rt(200, "hog", 60));
        let trace = SyntheticTrace::new().at(20).block(victim, hog);
        let trace = trace.at(1_000).irq(9, "eth0").after(2).wake(victim);
        let trace = trace.after(2).irq_end(9).at(9_000).block(hog, victim);
        let trace = trace.after(10).block(victim, Task::IDLE).build();
        let check = |line: &str, expect: &str| {
            let typed = Line::try_parse_from(words(line)).expect("parses").diagnose;
            let query = Query {
                until: typed.until.into(),
                ..Query::default()
            };
            let mut diagnosis = diagnose(&trace, &query).expect("a diagnosis");
            check_as_asked(&mut diagnosis, &typed, None);
            let verdict = diagnosis.verdict().expect("late");
            assert_eq!(verdict.advice[0].then_check, expect, "{line}");
        };
        check("diagnose T", "rtscope watch --task victim --over 4ms");
        check(
            "diagnose T --process player --over 2ms --cpu 1",
            "rtscope watch --process player --over 2ms --cpu 1",
        );
        check(
            "diagnose T --until switch-in --pid 7",
            "rtscope watch --pid 7 --over 4ms --until switch-in",
        );
        check(
            "diagnose T --begin +1s --worst 3 --over 1ms",
            "rtscope watch --task victim --over 1ms   # a watch has no --begin, --worst",
        );
    }
}
