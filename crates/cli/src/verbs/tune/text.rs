//! What a tune found, for people and programs.

use std::fmt::Write as _;

use event::Duration;
use serde_json::{Value, json};

use super::compare::{Block, Difference, Finding, Rounds};
use super::question::Question;

/// The schema of `--json`.
pub const SCHEMA: &str = "rtscope.tune";
/// Its version.
pub const SCHEMA_VERSION: u32 = 1;

/// The commands, and what they change.
pub fn changes(question: &Question) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    for command in &question.commands {
        let _ = writeln!(text, "tried: {command}");
    }
    if let Some(because) = &question.because {
        let _ = writeln!(text, "because {because}");
    }
    for change in &question.changes {
        let _ = writeln!(text, "  {change}");
    }
    text
}

/// The table, what it comes to, and what is left of the change.
pub fn text(question: &Question, rounds: &Rounds, is_kept: bool) -> String {
    let (before, after) = (rounds.side(false), rounds.side(true));
    let over = question.watch.over.unwrap_or(Duration::ZERO);
    let mut text = changes(question);
    let _ = writeln!(text, "\n{:<14}{:>20}{:>20}", "", "without", "with");
    let mut row = |name: String, cell: &dyn Fn(&Block) -> String| {
        let _ = writeln!(text, "{name:<14}{:>20}{:>20}", cell(&before), cell(&after));
    };
    let duration = |duration: Option<Duration>| {
        duration.map_or("-".to_owned(), |duration| duration.to_string())
    };
    row("activations".into(), &|block| block.samples.to_string());
    row(format!("over {over:#}"), &|block| {
        let share = block.late as f64 * 100.0 / block.samples.max(1) as f64;
        format!("{} ({share:.2} %)", block.late)
    });
    row("99 % within".into(), &|block| duration(block.p99));
    row("worst".into(), &|block| duration(block.worst));
    let _ = writeln!(text, "\n{}", sentence(rounds, over));
    let commands = question.commands.join(" && ");
    let _ = match is_kept {
        true => writeln!(text, "kept, until the machine or the task starts again"),
        false => writeln!(text, "taken back; to have it: {commands}"),
    };
    text
}

/// What it comes to, in plain words.
fn sentence(rounds: &Rounds, over: Duration) -> String {
    let (count, before) = (rounds.pairs.len(), rounds.side(false));
    let interval = rounds.difference().map(interval).unwrap_or_default();
    match rounds.finding() {
        Finding::Helped => format!("It helped: {interval}, in {count} rounds."),
        Finding::Harmed => format!("It did harm: {interval}, in {count} rounds."),
        Finding::NoDifference => format!(
            "It made no difference that {count} rounds can show: {interval}. A longer --for may \
             show a small one."
        ),
        Finding::NothingLate => format!(
            "Nothing to fix: of {} activations without it none took more than {over:#}. Whether \
             it helps is not known.",
            before.samples
        ),
        Finding::NothingJudged => format!(
            "Nothing can be said: {count} rounds, {} activations without the change, {} with it.",
            before.samples,
            rounds.side(true).samples
        ),
    }
}

/// `41.2 fewer of 1,000 activations were late (95 % interval: 38.0 to 44.1 fewer)`.
fn interval(difference: Difference) -> String {
    let word = |value: f64| if value < 0.0 { "fewer" } else { "more" };
    let Difference {
        per_thousand,
        low,
        high,
    } = difference;
    // The end with the smaller change first.
    let (near, far) = if high.abs() < low.abs() {
        (high, low)
    } else {
        (low, high)
    };
    let near_word = match (near < 0.0) == (far < 0.0) {
        true => String::new(),
        false => format!(" {}", word(near)),
    };
    format!(
        "{:.1} {} of 1,000 activations were late (95 % interval: {:.1}{near_word} to {:.1} {})",
        per_thousand.abs(),
        word(per_thousand),
        near.abs(),
        far.abs(),
        word(far)
    )
}

/// Integers in nanoseconds.
pub fn json(question: &Question, rounds: &Rounds, is_kept: bool) -> Value {
    let block = |block: &Block| {
        json!({
            "samples": block.samples,
            "late": block.late,
            "p99_ns": block.p99.map(Duration::as_ns),
            "worst_ns": block.worst.map(Duration::as_ns),
        })
    };
    let finding = match rounds.finding() {
        Finding::Helped => "helped",
        Finding::Harmed => "harmed",
        Finding::NoDifference => "no_difference",
        Finding::NothingLate => "nothing_late",
        Finding::NothingJudged => "nothing_judged",
    };
    let difference = rounds.difference().map(|difference| {
        json!({
            "late_per_thousand": difference.per_thousand,
            "low": difference.low,
            "high": difference.high,
        })
    });
    let pairs = rounds.pairs.iter();
    let pairs = pairs.map(|(before, after)| json!([block(before), block(after)]));
    let changes = question.changes.iter().map(ToString::to_string);
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "commands": question.commands,
        "changes": changes.collect::<Vec<_>>(),
        "over_ns": question.watch.over.map(Duration::as_ns),
        "without": block(&rounds.side(false)),
        "with": block(&rounds.side(true)),
        "rounds": pairs.collect::<Vec<_>>(),
        "difference": difference,
        "finding": finding,
        "kept": is_kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_says_which_way_its_ends_lie() {
        let check = |per_thousand, low, high, expect: &str| {
            let found = interval(Difference {
                per_thousand,
                low,
                high,
            });
            assert_eq!(found, expect);
        };
        check(
            -41.2,
            -44.1,
            -38.0,
            "41.2 fewer of 1,000 activations were late (95 % interval: 38.0 to 44.1 fewer)",
        );
        check(
            3.0,
            -12.0,
            18.0,
            "3.0 more of 1,000 activations were late (95 % interval: 12.0 fewer to 18.0 more)",
        );
        check(
            40.0,
            38.0,
            44.0,
            "40.0 more of 1,000 activations were late (95 % interval: 38.0 to 44.0 more)",
        );
    }

    #[test]
    fn a_useless_change_is_called_useless() {
        let block = |late| Block {
            samples: 1000,
            late,
            p99: None,
            worst: None,
        };
        let check = |pairs: &[(u64, u64)], expect: &str| {
            let pairs = pairs
                .iter()
                .map(|(before, after)| (block(*before), block(*after)));
            let rounds = Rounds {
                pairs: pairs.collect(),
            };
            let found = sentence(&rounds, Duration::from_ms(5));
            assert!(found.starts_with(expect), "{found}");
        };
        check(
            &[(9, 10), (10, 9), (11, 11)],
            "It made no difference that 3 rounds can show: ",
        );
        check(
            &[(0, 0); 3],
            "Nothing to fix: of 3000 activations without it none took more than 5ms",
        );
        check(&[(90, 1), (80, 2), (95, 0)], "It helped: ");
    }
}
