//! Two parts of stores as text and as JSON (schema `rtscope.monitor.diff` version 1).

use std::fmt::Write;

use event::Duration;
use serde_json::{Value, json};

use crate::compare::{PhaseChange, PhaseTrend, StoreComparison, StoreSide};
use crate::wall::wall_text;

impl PhaseTrend {
    /// As people read it.
    pub const fn title(self) -> &'static str {
        match self {
            PhaseTrend::Slower => "SLOWER",
            PhaseTrend::Faster => "faster",
            PhaseTrend::NotResolved => "not resolved",
            PhaseTrend::TooFew => "too few",
        }
    }
}

/// A line per phase, and what both sides are.
pub fn store_comparison_text(comparison: &StoreComparison) -> String {
    let [before, after] = &comparison.sides;
    let mut text = format!(
        "before: {}\nafter:  {}\n",
        side_text(before),
        side_text(after)
    );
    if comparison.changes.is_empty() {
        return text + "no phase has samples on both sides\n";
    }
    let _ = writeln!(
        text,
        "{:<34} {:>21} {:>21} {:>21}  by chance",
        "", "p50", "p99.9", "max"
    );
    for change in &comparison.changes {
        let _ = writeln!(text, "{}", change_line(change));
    }
    text
}

fn side_text(side: &StoreSide) -> String {
    if side.intervals == 0 {
        return "no interval in this time".to_owned();
    }
    let kernels: Vec<&str> = side.kernels.iter().map(String::as_str).collect();
    let head = &side.head;
    let (begin, end) = (wall_text(head.begin_ns), wall_text(head.end_ns));
    let mut text = format!(
        "{} intervals from {begin} to {end}, Linux {}",
        side.intervals,
        kernels.join(" and ")
    );
    if head.lost + head.unsaved > 0 {
        let _ = write!(
            text,
            ", {} samples and {} intervals lost",
            head.lost, head.unsaved
        );
    }
    text
}

/// What became of a phase, and its figures before and after.
pub fn change_line(change: &PhaseChange) -> String {
    let pair = |at: usize| {
        let side = |of: usize| Duration::short(change.sides[of].1[at]);
        format!("{} > {}", side(0), side(1))
    };
    let chance = change.p.map_or("-".to_owned(), |p| format!("{p:.4}"));
    format!(
        "{:<13}{:<21} {:>21} {:>21} {:>21}  {chance}",
        change.trend.title(),
        format!("{} {}", change.scope.name(), change.phase.name()),
        pair(0),
        pair(1),
        pair(2)
    )
}

/// All that was found, as one object.
pub fn store_comparison_json(comparison: &StoreComparison) -> Value {
    let side = |side: &StoreSide| {
        json!({
            "intervals": side.intervals,
            "begin_ns": side.head.begin_ns,
            "end_ns": side.head.end_ns,
            "elapsed_ns": side.head.elapsed.as_ns(),
            "lost": side.head.lost,
            "unsaved": side.head.unsaved,
            "kernels": side.kernels,
        })
    };
    let figures = |(samples, [p50, p99_9, max]): &(u64, [Duration; 3])| {
        json!({
            "samples": samples,
            "p50_ns": p50.as_ns(),
            "p99_9_ns": p99_9.as_ns(),
            "max_ns": max.as_ns(),
        })
    };
    let change = |change: &PhaseChange| {
        json!({
            "scope": change.scope.name(),
            "phase": change.phase.name(),
            "change": match change.trend {
                PhaseTrend::Slower => "slower",
                PhaseTrend::Faster => "faster",
                PhaseTrend::NotResolved => "not_resolved",
                PhaseTrend::TooFew => "too_few",
            },
            "p": change.p,
            "before": figures(&change.sides[0]),
            "after": figures(&change.sides[1]),
        })
    };
    json!({
        "schema": "rtscope.monitor.diff",
        "version": 1,
        "before": side(&comparison.sides[0]),
        "after": side(&comparison.sides[1]),
        "phases": comparison.changes.iter().map(change).collect::<Vec<_>>(),
    })
}
