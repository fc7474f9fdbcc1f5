//! Trackers' reports and sums as text.

use bpf_host::trackers::{DetailKind, Hook, KeySum, Losses, SeriesStatistics, Tracker};
use capture::watch::{TrackerReport, TrackerStatus, TrackersStatus};
use event::evidence::Stack;
use event::evidence::tracked::Tracked;
use event::{Duration, Tid};

use crate::live::short;
use crate::options::only_takes;

/// Rows of the table by key.
const KEYS_SHOWN: usize = 10;
/// Letters of the longest bar.
const BAR_COLUMNS: u64 = 40;

/// The trackers, each with whether this kernel has its hooks.
pub(super) fn list(stands: &[(&Tracker, Option<Vec<Hook>>)]) -> String {
    let mut lines = Vec::new();
    for (tracker, missing) in stands {
        lines.push(format!("{:<10} {}", tracker.name, tracker.help));
        if let Some(refusal) = missing.as_deref().and_then(|hooks| tracker.refusal(hooks)) {
            let found = refusal.value_found().unwrap_or_default();
            let mend = refusal.mended_by().unwrap_or_default();
            lines.push(format!("           not here: {found}; {mend}"));
        }
    }
    let takes = |(tracker, _): &(&Tracker, Option<Vec<Hook>>)| {
        only_takes(tracker).map(|takes| format!("{takes} ({})", tracker.name))
    };
    let only: Vec<_> = stands.iter().filter_map(takes).collect();
    lines.push(String::new());
    let only = format!(
        "--over DUR reports what takes longer, --task chooses tasks, --only chooses {}.",
        only.join(", ")
    );
    lines.extend(textwrap::wrap(&only, 79).into_iter().map(String::from));
    lines.push("Example: sudo rtscope watch syscall --task app --over 5ms --for 10s".into());
    lines.join("\n") + "\n"
}

/// A report: one line, and its stacks below.
pub(super) fn hit(report: &TrackerReport) -> String {
    let tracked = &report.hit.tracked;
    let tracker = report.tracker;
    let mut text = format!(
        "{}  {} {}\n",
        tracked.end,
        tracker.name,
        interval(tracker, tracked, &report.key)
    );
    for (what, stack) in [
        ("its stack", &report.hit.stack),
        ("the other's", &report.hit.other_stack),
    ] {
        text += &stack_text(what, stack);
    }
    if let Some(path) = &report.snapshot {
        text += &format!("    snapshot {}\n", path.display());
    }
    if let Some(failure) = &report.failure {
        text += &format!("    no snapshot: {failure:#}\n");
    }
    text
}

/// `device: vda read took 4.213 ms, dd (tid 7, nice 0), CPU 1, sector 2048`.
fn interval(tracker: &Tracker, tracked: &Tracked, key: &str) -> String {
    let series = tracker.series.get(tracked.series).copied().unwrap_or("?");
    let took = if tracked.is_open {
        "is open for"
    } else {
        "took"
    };
    let mut parts = vec![format!("{series}: {key} {took} {}", tracked.duration())];
    if let Some(task) = &tracked.task {
        // A key that is the task names it already.
        let named = key.contains(&format!("(tid {})", task.tid));
        parts.push(if named {
            task.prio.to_string()
        } else {
            task.to_string()
        });
    }
    parts.push(format!("CPU {}", tracked.cpu.0));
    if let Some(other) = &tracked.other {
        let other = if other.tid == Tid(0) {
            "the idle task".to_owned()
        } else {
            other.to_string()
        };
        parts.push(format!("{} {other}", other_words(tracker, tracked)));
    }
    match tracker.detail {
        DetailKind::Result if !tracked.is_open => {
            parts.push(format!("returned {}", tracked.detail as i64));
        }
        DetailKind::Sector => parts.push(format!("sector {}", tracked.detail)),
        DetailKind::Tid(what) if tracked.detail > 0 => {
            parts.push(format!("{what} tid {}", tracked.detail));
        }
        _ => {}
    }
    parts.join(", ")
}

/// Of "preempted or woken by", what fits the series.
fn other_words(tracker: &Tracker, tracked: &Tracked) -> &'static str {
    match tracker.other.split_once(" or ") {
        Some((first, _)) if tracked.series == 0 => first,
        Some((_, rest)) => rest,
        None => tracker.other,
    }
}

fn stack_text(what: &str, stack: &Stack) -> String {
    if stack.is_empty() {
        return String::new();
    }
    let frames = stack.iter().map(|frame| match frame.symbol.as_str() {
        "" => format!("      {:#x}\n", frame.address),
        symbol => format!("      {symbol}\n"),
    });
    format!("    {what}:\n{}", frames.collect::<String>())
}

/// Short enough for a terminal of 80 columns.
pub(super) fn live(status: &TrackersStatus) -> String {
    let mut parts = vec![format!("{:.1} s", status.elapsed.as_ns() as f64 / 1e9)];
    for one in &status.trackers {
        let series = &one.statistics.series;
        let count = series.iter().map(|series| series.count).sum::<u64>();
        let worst = series.iter().filter_map(|series| series.worst.as_ref());
        let worst = worst.map(Tracked::duration).max();
        let worst = worst.map_or("-".to_owned(), short);
        parts.push(format!("{} {count} worst {worst}", one.tracker.name));
    }
    let share = status.cost.share() * 100.0;
    parts.push(format!("hits {}  cost {share:.1} %", status.hits));
    parts.join("  ")
}

/// How it ended.
pub(super) fn end(status: &TrackersStatus, hist: bool) -> String {
    let mut text = String::new();
    for one in &status.trackers {
        text += &tracker_text(one, hist);
        text.push('\n');
    }
    let cost = &status.cost;
    let share = |duration: Duration| duration.share_of(cost.available) * 100.0;
    text += &format!(
        "{}  hits {}  cost {:.2} %: {:.2} in the kernel's programs, {:.2} in this process\n",
        status.elapsed,
        status.hits,
        cost.share() * 100.0,
        share(cost.programs),
        share(cost.process)
    );
    text
}

fn tracker_text(status: &TrackerStatus, hist: bool) -> String {
    let tracker = status.tracker;
    let statistics = &status.statistics;
    let mut text = format!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        tracker.name, "count", "min", "p50", "p99", "p99.9", "max", "hits"
    );
    for (name, series) in tracker.series.iter().zip(&statistics.series) {
        text += &series_row(name, series);
    }
    for (number, series) in statistics.series.iter().enumerate() {
        if let Some(worst) = &series.worst {
            let key = status.worst_keys.get(number).map_or("", String::as_str);
            text += &format!(
                "  worst {}, at {}\n",
                interval(tracker, worst, key),
                worst.end
            );
        }
    }
    if hist {
        for (name, series) in tracker.series.iter().zip(&statistics.series) {
            text += &histogram(name, series);
        }
    }
    text += &keys_text(tracker, &status.keys);
    for loss in losses(&statistics.losses)
        .into_iter()
        .filter(|loss| loss.count > 0)
    {
        text += &format!("  {} {}\n", loss.count, loss.meaning);
    }
    text
}

fn series_row(name: &str, series: &SeriesStatistics) -> String {
    let cell = |duration: Option<Duration>| duration.map_or("-".to_owned(), short);
    let suppressed = match series.suppressed {
        0 => String::new(),
        suppressed => format!(" (and {suppressed} suppressed)"),
    };
    format!(
        "  {name:<14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}{suppressed}\n",
        series.count,
        cell(series.min),
        cell(series.quantile(0.5)),
        cell(series.quantile(0.99)),
        cell(series.quantile(0.999)),
        cell(series.worst.as_ref().map(Tracked::duration)),
        series.hits,
    )
}

/// The keys with the longest intervals.
fn keys_text(tracker: &Tracker, keys: &[(String, KeySum)]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "  {:<46} {:>9} {:>9} {:>9}\n",
        "by key", "count", "mean", "max"
    );
    for (name, sum) in keys.iter().take(KEYS_SHOWN) {
        let mean = Duration::from_ns(sum.sum.as_ns() / sum.count.max(1) as i64);
        let name = match tracker.series {
            [_] => name.clone(),
            several => format!("{name}: {}", several.get(sum.series).unwrap_or(&"?")),
        };
        text += &format!(
            "    {name:<44} {:>9} {:>9} {:>9}\n",
            sum.count,
            short(mean),
            short(sum.max)
        );
    }
    if let Some(more) = keys.len().checked_sub(KEYS_SHOWN).filter(|more| *more > 0) {
        text += &format!("    {more} more; --json has them all\n");
    }
    text
}

/// A row for each power of two.
fn histogram(name: &str, series: &SeriesStatistics) -> String {
    let mut rows: Vec<(u32, u64)> = Vec::new();
    for (from, _, count) in series.histogram.counts() {
        let octave = from.as_ns_unsigned().max(1).ilog2();
        match rows.last_mut() {
            Some((last, sum)) if *last == octave => *sum += count,
            _ => rows.push((octave, count)),
        }
    }
    let Some(longest) = rows.iter().map(|(_, count)| *count).max() else {
        return String::new();
    };
    let (first, last) = (rows[0].0, rows[rows.len() - 1].0);
    let mut text = format!("  {name}, from\n");
    for octave in first..=last {
        let count = rows.iter().find(|(of, _)| *of == octave);
        let count = count.map_or(0, |(_, count)| *count);
        // What is there is seen, however little it is.
        let bar = (count * BAR_COLUMNS).div_ceil(longest);
        let from = short(Duration::from_ns(1i64 << octave));
        let bar = "█".repeat(bar as usize);
        text += format!("    {from:>8} {count:>9} {bar}").trim_end();
        text.push('\n');
    }
    text
}

/// A cause of losses.
pub(super) struct Loss {
    pub(super) name: &'static str,
    pub(super) count: u64,
    pub(super) meaning: &'static str,
}

/// The losses by cause.
pub(super) fn losses(losses: &Losses) -> Vec<Loss> {
    let loss = |name, count, meaning| Loss {
        name,
        count,
        meaning,
    };
    vec![
        loss("lost", losses.lost, "reports lost: the ring was full"),
        loss(
            "full",
            losses.full,
            "intervals not measured: the table of what is open was full",
        ),
        loss(
            "unpaired",
            losses.unpaired,
            "beginnings or ends without their other half, not counted",
        ),
        loss(
            "keys_full",
            losses.keys_full,
            "intervals counted above, but in no row by key: that table was full",
        ),
        loss(
            "storage_failures",
            losses.storage_failures,
            "tasks not seen: the kernel had no memory for them at once",
        ),
        loss(
            "recursion",
            losses.recursion,
            "events left out by the kernel: its program was running there",
        ),
    ]
}
