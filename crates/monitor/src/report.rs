//! What the store says, as text.

use std::fmt::Write;

use abi::monitor::{Mode, Phase};
use event::{Duration, Prio, Result};

use crate::interval::{Interval, Scope, Worst};
use crate::store::{Range, Store};
use crate::task::Task;
use crate::wall::wall_text;

/// The wall clock was set when it went on by so much more or less than time did.
const STEP_MIN: Duration = Duration::from_ms(1000);

/// Letters of the longest name of a phase.
const TITLE_MIN: usize = 24;

/// What is said beside the sums.
#[derive(Debug, Default)]
struct Walked {
    sum: Interval,
    intervals: u64,
    first_ns: i64,
    steps: u64,
    worst: Vec<Worst>,
}

/// The phases of `range`, and the longest of each interval with victim and culprit: at most `top`
/// of them, the longest first.
///
/// # Errors
/// When the store cannot be read.
pub fn report(store: &Store, range: Range, scope: Scope, top: usize) -> Result<String> {
    let mut walked = Walked::default();
    let mut runs = Vec::new();
    store.read(range, |run, interval| {
        let head = &interval.head;
        if walked.intervals == 0 {
            walked.first_ns = head.begin_ns;
        }
        walked.intervals += 1;
        let wall = Duration::from_ns(head.end_ns.saturating_sub(head.begin_ns));
        let step = (wall.as_ns() - head.elapsed.as_ns()).abs();
        walked.steps += u64::from(step >= STEP_MIN.as_ns());
        walked.worst.extend(longest(&interval, scope).cloned());
        if runs.last() != Some(&run) {
            runs.push(run);
        }
        walked.sum.append(interval);
        Ok(())
    })?;
    let mut text = beginning(store, &walked, &runs)?;
    if walked.intervals == 0 {
        return Ok(text);
    }
    text += &phases(&walked.sum, scope);
    text += &missing(&walked);
    walked
        .worst
        .sort_by_key(|worst| std::cmp::Reverse(worst.value));
    let shown = walked.worst.len().min(top);
    if shown > 0 {
        let _ = writeln!(
            text,
            "\nthe longest of an interval, {shown} of {}; who had the CPU at the time did not \
             have to be the cause",
            walked.worst.len()
        );
    }
    for worst in &walked.worst[..shown] {
        text += &worst_line(worst);
    }
    text += &tracked(&walked.sum, scope);
    Ok(text)
}

/// From the timer on where there is one, else from the run queue; nobody is seen beside a task that
/// returns to user space.
fn longest(interval: &Interval, scope: Scope) -> Option<&Worst> {
    let phases = [Phase::TimerWakeupSwitch, Phase::Switch];
    let found = phases
        .iter()
        .filter_map(|phase| interval.worst_of(scope, *phase));
    // The first of equals is the one with more parts.
    found.reduce(|longest, next| {
        if next.value > longest.value {
            next
        } else {
            longest
        }
    })
}

fn beginning(store: &Store, walked: &Walked, runs: &[i64]) -> Result<String> {
    let mut text = format!("{}: ", store.path().display());
    if walked.intervals == 0 {
        return Ok(text + "no interval in this time\n");
    }
    let (from, to) = (
        wall_text(walked.first_ns),
        wall_text(walked.sum.head.end_ns),
    );
    let _ = writeln!(text, "{} intervals from {from} to {to}", walked.intervals);
    let known = store.runs()?;
    let known = known.iter().filter(|(number, _)| runs.contains(number));
    let mut kernels: Vec<_> = known
        .map(|(_, run)| format!("{} with Linux {}", run.host, run.kernel))
        .collect();
    kernels.dedup();
    let _ = writeln!(text, "  on {}", kernels.join(", then "));
    Ok(text)
}

fn phases(sum: &Interval, scope: Scope) -> String {
    let kinds = sum.kinds(scope);
    let longest = kinds.iter().map(|kind| kind.title().len()).max();
    let width = longest.unwrap_or(0).max(TITLE_MIN) + 2;
    let mut text = format!(
        "{:<width$} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        scope.name(),
        "samples",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max"
    );
    for kind in kinds {
        let Some(of) = sum.phase(scope, kind.clone()) else {
            continue;
        };
        let samples = of.histogram.samples();
        let mean = Duration::from_ns(of.sum.as_ns() / samples.max(1) as i64);
        let quantile = |quantile| {
            of.quantile(quantile)
                .map_or("-".to_owned(), Duration::short)
        };
        let _ = writeln!(
            text,
            "{:<width$} {samples:>12} {:>9} {:>9} {:>9} {:>9} {:>9}",
            format!("  {}", kind.title()),
            mean.short(),
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            of.max.short()
        );
    }
    text
}

/// What is not in the figures, and what they cost.
fn missing(walked: &Walked) -> String {
    let head = &walked.sum.head;
    let mut text = String::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            let _ = writeln!(text, "  {count} {what}");
        }
    };
    say(
        head.lost,
        "samples were not counted: their task was not known, or no program saw them",
    );
    say(
        head.hidden,
        "samples were seen by no program: they are counted by the kernel's accounts, which have \
         no timer and no wake-up apart",
    );
    say(
        head.lost_tracked,
        "intervals of trackers, or more, were not counted",
    );
    say(head.worst_missed, "longest samples without a name");
    say(
        head.unsaved,
        "intervals are missing: the store had no room for them",
    );
    say(
        walked.steps,
        "intervals in which somebody set the wall clock, or the machine slept",
    );
    let share = head.cost.share_of(head.elapsed) * 100.0;
    let _ = writeln!(text, "  counting cost {share:.3} % of one CPU");
    text
}

/// The longest of each series of each tracker; nothing without any.
fn tracked(sum: &Interval, scope: Scope) -> String {
    let is_tracked = |one: &&Worst| one.scope == scope && one.phase.phase().is_none();
    let lines: String = sum
        .worst
        .iter()
        .filter(is_tracked)
        .map(tracked_line)
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\nthe longest of what trackers measured\n{lines}"),
    }
}

fn tracked_line(worst: &Worst) -> String {
    let name = worst.phase.title();
    let mut text = format!(
        "{} {:>9}  {name}",
        wall_text(worst.at_ns),
        worst.value.short()
    );
    if let Some(key) = &worst.key {
        let _ = write!(text, ": {key}");
    }
    if let Some(victim) = &worst.victim {
        let _ = write!(text, ", {}", task(victim));
    }
    let _ = write!(text, ", CPU {}", worst.cpu.0);
    if let (Some(other), Some(culprit)) = (worst.phase.other(), &worst.culprit) {
        let _ = write!(text, ", {other} {}", task(culprit));
    }
    text + "\n"
}

fn worst_line(worst: &Worst) -> String {
    let mut text = format!("{} {:>9}  ", wall_text(worst.at_ns), worst.value.short());
    text += &worst.victim.as_ref().map_or("somebody".to_owned(), task);
    let _ = write!(text, ", CPU {}", worst.cpu.0);
    if let Some(call) = &worst.call {
        let _ = write!(text, ", in {call}");
    }
    text.push('\n');
    let mut parts = Vec::new();
    if let Some(timer) = worst.timer {
        let what = match worst.mode {
            Mode::Hidden if worst.parts[0] == Duration::ZERO => "timer and wake-up",
            _ => "timer",
        };
        parts.push(format!("{what} {}", timer.short()));
    }
    let names = ["wake-up", "switch", "return"];
    let others = names.iter().zip(worst.parts);
    let others = others.filter(|(_, part)| *part > Duration::ZERO);
    parts.extend(others.map(|(name, part)| format!("{name} {}", part.short())));
    let _ = writeln!(text, "    {}", parts.join(", "));
    let _ = writeln!(text, "    {}", running(worst));
    text
}

/// Who had the CPU, and where.
fn running(worst: &Worst) -> String {
    let Some(culprit) = &worst.culprit else {
        return "nobody was seen on the CPU".to_owned();
    };
    if worst.mode == Mode::Hidden {
        let who = match culprit.tid {
            0 => "the idle task".to_owned(),
            _ => task(culprit),
        };
        return format!("no program was called meanwhile; before that, {who} came on the CPU");
    }
    let mut text = match culprit.tid {
        0 => "the CPU was idle".to_owned(),
        _ => format!("{} had the CPU", task(culprit)),
    };
    match (&worst.function, worst.mode) {
        (Some(function), Mode::Kernel) => {
            let _ = write!(text, "; interrupts came back on in {function}");
        }
        (Some(function), Mode::Enabled) => {
            let _ = write!(text, "; it was in {function}, with interrupts on");
        }
        (_, Mode::User) => text += "; it was in user space",
        (_, Mode::Idle | Mode::Hidden) | (None, _) => {}
    }
    text
}

fn task(task: &Task) -> String {
    format!("{} (tid {}, {})", task.name, task.tid, Prio(task.prio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::sample;

    #[test]
    fn the_longest_is_told_with_its_parts_and_whoever_had_the_cpu() {
        let mut worst = sample(3).worst[0].clone();
        let check = |worst: &Worst, expect: &str| {
            let line = worst_line(worst);
            assert!(line.contains(expect), "{line}");
        };
        check(
            &worst,
            "1970-01-01T00:15:00Z   5.00 us  task7 (tid 7, rt 50), CPU 1, in clock_n",
        );
        check(&worst, "timer 2.00 us, wake-up 1.00 us, switch 5.00 us\n");
        check(&worst, "task3 (tid 3, rt 50) had the CPU\n");
        worst.function = Some("f+0x1".to_owned());
        worst.mode = Mode::Kernel;
        check(&worst, "had the CPU; interrupts came back on in f+0x1\n");
        worst.mode = Mode::User;
        check(&worst, "had the CPU; it was in user space\n");
        worst.mode = Mode::Hidden;
        worst.parts[0] = Duration::ZERO;
        check(&worst, "timer and wake-up 2.00 us, switch");
        check(
            &worst,
            "no program was called meanwhile; before that, task3 (tid 3",
        );
        worst.culprit = None;
        check(&worst, "nobody was seen on the CPU\n");
    }

    #[test]
    fn the_longest_of_a_tracker_says_of_what_it_was_and_who_else_was_in_it() {
        let mut worst = sample(3).worst[0].clone();
        worst.phase = crate::kind::Kind::tracked("block", "device", "woken by");
        worst.key = Some("vda read".to_owned());
        let mut interval = sample(0);
        assert_eq!(tracked(&interval, Scope::RealTime), "");
        interval.worst.push(worst);
        let text = tracked(&interval, Scope::RealTime);
        let expect = "5.00 us  block_device: vda read, task7 (tid 7, rt 50), CPU 1, \
                      woken by task3 (tid 3, rt 50)\n";
        assert!(text.ends_with(expect), "{text}");
        assert_eq!(tracked(&interval, Scope::All), "");
    }

    #[test]
    fn what_is_missing_is_said_and_nothing_else() {
        let mut walked = Walked {
            sum: sample(0),
            ..Walked::default()
        };
        let text = missing(&walked);
        assert!(text.contains("1 samples were not counted"), "{text}");
        assert!(text.contains("3 samples were seen by no"), "{text}");
        assert!(
            !text.contains("wall clock") && !text.contains("no room"),
            "{text}"
        );
        walked.steps = 1;
        walked.sum.head.unsaved = 2;
        let text = missing(&walked);
        assert!(text.contains("1 intervals in which somebody set"), "{text}");
        assert!(text.contains("2 intervals are missing"), "{text}");
    }

    #[test]
    fn the_longest_of_an_interval_has_as_many_parts_as_there_are() {
        let mut interval = sample(0);
        let phase = |interval: &Interval| {
            longest(interval, Scope::RealTime).map(|worst| worst.phase.clone())
        };
        assert_eq!(phase(&interval), Some(Phase::Switch.into()));
        let mut whole = interval.worst[0].clone();
        whole.phase = Phase::TimerWakeupSwitch.into();
        interval.worst.push(whole);
        assert_eq!(phase(&interval), Some(Phase::TimerWakeupSwitch.into()));
        interval.worst[0].value = Duration::from_ms(1);
        assert_eq!(phase(&interval), Some(Phase::Switch.into()));
        assert_eq!(longest(&interval, Scope::Named), None);
    }
}
