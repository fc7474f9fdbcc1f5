//! Trackers' reports and sums as text.

use bpf_host::trackers::{DetailKind, Hook, KeySum, Losses, SeriesStatistics, Tracker};
use capture::watch::{TrackerReport, TrackerStatus, TrackersStatus};
use event::evidence::Stack;
use event::evidence::tracked::Tracked;
use event::{Duration, Tid};

use crate::options::only_takes;
use crate::screen::Kind;

/// Rows of the table by key.
const KEYS_SHOWN: usize = 10;
/// Letters of the first column, beside its indent.
const NAME_COLUMNS: usize = 14;
/// Letters of the longest bar.
const BAR_COLUMNS: u64 = 40;

/// The trackers, each with whether this kernel has its hooks.
pub(super) fn list(stands: &[(&Tracker, Option<Vec<Hook>>)]) -> String {
    let mut lines = Vec::new();
    for (tracker, missing) in stands {
        lines.push(format!("{:<10} {}", tracker.name, tracker.help));
        if let Some(refusal) = missing.as_deref().and_then(|hooks| tracker.refusal(hooks)) {
            let found = refusal.value_found().unwrap_or_default();
            let fix = refusal.fixed_by().unwrap_or_default();
            lines.push(format!("           not here: {found}; {fix}"));
        }
    }
    // What it takes, and the trackers that take it.
    let mut only: Vec<(&str, Vec<&str>)> = Vec::new();
    for (tracker, _) in stands {
        let Some(takes) = only_takes(tracker) else {
            continue;
        };
        match only.iter_mut().find(|(known, _)| *known == takes) {
            Some((_, names)) => names.push(tracker.name),
            None => only.push((takes, vec![tracker.name])),
        }
    }
    let only: Vec<_> = only
        .iter()
        .map(|(takes, names)| format!("{takes} ({})", names.join(", ")))
        .collect();
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
    let mut text = line(report.tracker, tracked, &report.key);
    text.push('\n');
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

fn line(tracker: &Tracker, tracked: &Tracked, key: &str) -> String {
    let (end, name) = (tracked.end, tracker.name);
    format!("{end}  {name} {}", interval(tracker, tracked, key))
}

/// The worst of each kind, in the lines that a report has.
pub(super) fn worst(status: &TrackersStatus) -> Vec<(Duration, String)> {
    let mut lines = Vec::new();
    for one in &status.trackers {
        for (series, key) in one.statistics.series.iter().zip(&one.worst_keys) {
            let line = |worst: &Tracked| (worst.duration(), line(one.tracker, worst, key));
            lines.extend(series.worst.as_ref().map(line));
        }
    }
    lines
}

/// `device: vda read took 4.213 ms, dd (tid 7, nice 0), CPU 1, sector 2048`.
fn interval(tracker: &Tracker, tracked: &Tracked, key: &str) -> String {
    let took = if tracked.is_open {
        "is open for"
    } else {
        "took"
    };
    let mut parts = vec![format!("{key} {took} {}", tracked.duration())];
    if tracker.series.len() > 1 {
        let series = tracker.series.get(tracked.series).unwrap_or(&"?");
        parts[0] = format!("{series}: {}", parts[0]);
    }
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
        let did = tracker.other.get(tracked.series).unwrap_or(&"beside");
        parts.push(format!("{did} {other}"));
    }
    match tracker.detail {
        DetailKind::Result if !tracked.is_open => {
            parts.push(format!("returned {}", tracked.detail as i64));
        }
        DetailKind::Address => parts.push(format!("at {:#x}", tracked.detail)),
        DetailKind::Sector => parts.push(format!("sector {}", tracked.detail)),
        DetailKind::Tid(what) if tracked.detail > 0 => {
            parts.push(format!("{what} tid {}", tracked.detail));
        }
        DetailKind::Bytes => parts.push(format!("{} bytes", tracked.detail)),
        DetailKind::Port => parts.push(format!("port {}", tracked.more)),
        _ => {}
    }
    parts.join(", ")
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

/// After so long somebody wonders why nothing comes.
const SILENCE: Duration = Duration::from_ms(5_000);

/// What to tell of a pair of which one side has matched nothing yet.
pub(super) fn silence(status: &TrackersStatus) -> Option<String> {
    let pair = |one: &TrackerStatus| one.statistics.pair;
    let pair = status.trackers.iter().find_map(pair)?;
    let side = pair.matched.iter().position(|matched| *matched == 0)?;
    (status.elapsed >= SILENCE).then(|| {
        let what = ["--from", "--to"][side];
        match pair.seen[side] {
            0 => format!("the event of {what} has not come yet"),
            seen => format!("the event of {what} came {seen} times, its filter let none through"),
        }
    })
}

/// Short enough for a terminal of 80 columns.
pub(super) fn live(status: &TrackersStatus) -> String {
    let mut parts = vec![format!("{:.1} s", status.elapsed.as_ns() as f64 / 1e9)];
    for one in &status.trackers {
        let series = &one.statistics.series;
        let count = series.iter().map(|series| series.count).sum::<u64>();
        let worst = series.iter().filter_map(|series| series.worst.as_ref());
        let worst = worst.map(Tracked::duration).max();
        let worst = worst.map_or("-".to_owned(), Duration::short);
        parts.push(format!("{} {count} worst {worst}", one.tracker.name));
    }
    let share = status.cost.share() * 100.0;
    parts.push(format!("hits {}  cost {share:.1} %", status.hits));
    parts.join("  ")
}

/// The rows of a screen.
pub(super) fn kinds(status: &TrackersStatus) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for one in &status.trackers {
        for (name, series) in one.tracker.series.iter().zip(&one.statistics.series) {
            kinds.push(Kind {
                name: match one.tracker.series {
                    [_] if one.tracker.name != *name => one.tracker.name.to_owned(),
                    _ => format!("{}: {name}", one.tracker.name),
                },
                cells: cells(series).to_vec(),
                octaves: octaves(series),
            });
        }
    }
    kinds
}

/// The last row of a screen.
pub(super) fn foot(status: &TrackersStatus) -> String {
    let lost = |one: &TrackerStatus| {
        let losses = &one.statistics.losses;
        losses.lost + losses.full + losses.storage_failures + losses.recursion
    };
    let lost: u64 = status.trackers.iter().map(lost).sum();
    let (seconds, share) = (
        status.elapsed.as_ns() as f64 / 1e9,
        status.cost.share() * 100.0,
    );
    let hits = status.hits;
    format!("{seconds:.0} s  hits {hits}  lost {lost}  cost {share:.2} %")
}

/// What the end says beside the sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The histograms.
    pub(super) hist: bool,
    /// What was over the threshold and not reported; without one that is everything.
    pub(super) suppressed: bool,
}

/// How it ended.
pub(super) fn end(status: &TrackersStatus, extent: Extent) -> String {
    let mut text = String::new();
    for one in &status.trackers {
        text += &tracker_text(one, extent);
        text.push('\n');
    }
    text += &super::history::text(status);
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

fn tracker_text(status: &TrackerStatus, extent: Extent) -> String {
    let tracker = status.tracker;
    let statistics = &status.statistics;
    let mut text = format!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        tracker.name, "count", "min", "p50", "p99", "p99.9", "max", "hits"
    );
    for (name, series) in tracker.series.iter().zip(&statistics.series) {
        text += &series_row(name, series, extent.suppressed);
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
    if extent.hist {
        for (name, series) in tracker.series.iter().zip(&statistics.series) {
            text += &histogram(name, series);
        }
    }
    text += &keys_text(tracker, &status.keys);
    if let Some(pair) = &statistics.pair {
        let [from, to] =
            [0, 1].map(|side| format!("{} of {}", pair.matched[side], pair.seen[side]));
        let alone = pair.alone;
        text += &format!("  matched {from} and {to} events; {alone} ends without a begin\n");
    }
    for loss in losses(&statistics.losses)
        .into_iter()
        .filter(|loss| loss.count > 0)
    {
        text += &format!("  {} {}\n", loss.count, loss.meaning);
    }
    text
}

/// What stands in the columns of a series.
pub(super) fn cells(series: &SeriesStatistics) -> [String; 7] {
    let cell = |duration: Option<Duration>| duration.map_or("-".to_owned(), Duration::short);
    [
        series.count.to_string(),
        cell(series.min),
        cell(series.quantile(0.5)),
        cell(series.quantile(0.99)),
        cell(series.quantile(0.999)),
        cell(series.worst.as_ref().map(Tracked::duration)),
        series.hits.to_string(),
    ]
}

fn series_row(name: &str, series: &SeriesStatistics, suppressed: bool) -> String {
    let suppressed = match series.suppressed {
        count @ 1.. if suppressed => format!(" (and {count} suppressed)"),
        _ => String::new(),
    };
    // A name that is longer than its column has a line of its own.
    let name = match name.len() > NAME_COLUMNS {
        true => format!("  {name}\n  {:<NAME_COLUMNS$}", ""),
        false => format!("  {name:<NAME_COLUMNS$}"),
    };
    let cells = cells(series).map(|cell| format!(" {cell:>9}"));
    format!("{name}{}{suppressed}\n", cells.concat())
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
            mean.short(),
            sum.max.short()
        );
    }
    if let Some(more) = keys.len().checked_sub(KEYS_SHOWN).filter(|more| *more > 0) {
        text += &format!("    {more} more; --json has them all\n");
    }
    text
}

/// `mean 1.52 us, deviation 1.44 us, p90 2.94 us, `
fn spread(series: &SeriesStatistics) -> String {
    let mean = Duration::from_ns(series.sum.as_ns() / series.count.max(1) as i64);
    let facts = [
        ("mean", (series.count > 0).then_some(mean)),
        ("deviation", series.deviation()),
        ("p90", series.quantile(0.9)),
    ];
    let told = facts.into_iter().filter_map(|(name, duration)| {
        duration.map(|duration| format!("{name} {}, ", duration.short()))
    });
    told.collect()
}

/// How many intervals are of each power of two, in nanoseconds.
pub(super) fn octaves(series: &SeriesStatistics) -> Vec<(u32, u64)> {
    let mut rows: Vec<(u32, u64)> = Vec::new();
    for (from, _, count) in series.histogram.counts() {
        let octave = from.as_ns_unsigned().max(1).ilog2();
        match rows.last_mut() {
            Some((last, sum)) if *last == octave => *sum += count,
            _ => rows.push((octave, count)),
        }
    }
    rows
}

/// A row for each power of two.
fn histogram(name: &str, series: &SeriesStatistics) -> String {
    let rows = octaves(series);
    let Some(longest) = rows.iter().map(|(_, count)| *count).max() else {
        return String::new();
    };
    let (first, last) = (rows[0].0, rows[rows.len() - 1].0);
    let mut text = format!("  {name}, {}from\n", spread(series));
    for octave in first..=last {
        let count = rows.iter().find(|(of, _)| *of == octave);
        let count = count.map_or(0, |(_, count)| *count);
        // What is there is seen, however little it is.
        let bar = (count * BAR_COLUMNS).div_ceil(longest);
        let from = Duration::from_ns(1i64 << octave).short();
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

#[cfg(test)]
mod tests {
    use event::evidence::TaskRef;
    use event::{Cpu, Instant, Prio};

    use super::*;

    fn tracker(name: &str) -> &'static Tracker {
        Tracker::find(name).expect("a tracker")
    }

    fn task(tid: i32, comm: &str) -> Option<TaskRef> {
        Some(TaskRef {
            tid: Tid(tid),
            comm: comm.to_owned(),
            prio: Prio::from_rt(50),
        })
    }

    fn tracked(series: usize, detail: u64, other: Option<TaskRef>) -> Tracked {
        Tracked {
            begin: Instant::from_ns(1_000),
            end: Instant::from_ns(5_001_000),
            key: 7,
            group: 0,
            detail,
            more: 0,
            cpu: Cpu(1),
            series,
            is_open: false,
            task: task(7, "app"),
            other,
            label: String::new(),
        }
    }

    #[test]
    fn an_interval_is_told_with_whoever_was_in_it() {
        let check = |name: &str, tracked: &Tracked, key: &str, expect: &str| {
            assert_eq!(interval(tracker(name), tracked, key), expect, "{name}");
        };
        let result = -110i64 as u64;
        let call = "futex took 5.000 ms, app (tid 7, rt 50), CPU 1, returned -110";
        check("syscall", &tracked(0, result, None), "futex", call);
        let mut open = tracked(0, result, None);
        open.is_open = true;
        let call = "futex is open for 5.000 ms, app (tid 7, rt 50), CPU 1";
        check("syscall", &open, "futex", call);
        let preempted =
            "preempted: app (tid 7) took 5.000 ms, rt 50, CPU 1, preempted by hog (tid 8, rt 50)";
        let key = "app (tid 7)";
        check("offcpu", &tracked(0, 0, task(8, "hog")), key, preempted);
        let blocked = "blocked: app (tid 7) took 5.000 ms, rt 50, CPU 1, woken by the idle task";
        check("offcpu", &tracked(1, 0, task(0, "swapper/1")), key, blocked);
        let read = "device: vda read took 5.000 ms, app (tid 7, rt 50), CPU 1, sector 2048";
        check("block", &tracked(1, 2048, None), "vda read", read);
    }

    #[test]
    fn a_histogram_has_a_row_for_each_power_of_two_and_shows_what_is_rare() {
        let mut series = SeriesStatistics::default();
        let mut buckets = [0; abi::raw::BUCKETS_MAX];
        // From 16 ns, from 17 ns, and from 128 ns on.
        buckets[16] = 300;
        buckets[17] = 100;
        buckets[64] = 1;
        series.histogram.add(&buckets);
        let bar = "█".repeat(40);
        let expect = format!(
            "  run, from\n       16 ns       400 {bar}\n       32 ns         0\n       \
             64 ns         0\n      128 ns         1 █\n"
        );
        assert_eq!(histogram("run", &series), expect);
        assert_eq!(histogram("run", &SeriesStatistics::default()), "");
    }

    #[test]
    fn a_long_name_of_a_pair_leaves_the_columns_where_they_are() {
        let check = |name: &str, lines: usize| {
            let row = series_row(name, &SeriesStatistics::default(), false);
            assert_eq!(row.lines().count(), lines, "{row}");
            let last = row.lines().last().expect("a line");
            assert_eq!(last.len(), 2 + NAME_COLUMNS + 7 * 10, "{row}");
        };
        check("run", 1);
        check("sched_waking to sched_switch", 2);
    }

    #[test]
    fn the_list_of_trackers_fits_a_screen_and_says_what_a_kernel_lacks() {
        let here: Vec<_> = bpf_host::trackers::TRACKERS
            .iter()
            .map(|tracker| (*tracker, Some(Vec::new())))
            .collect();
        let text = list(&here);
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.len() < 80), "{text}");
        assert!(!text.contains("not here"), "{text}");
        let lacks = [(here[0].0, Some(here[0].0.hooks.to_vec()))];
        let text = list(&lacks);
        assert!(
            text.contains("not here: no tracepoint sched_switch"),
            "{text}"
        );
        assert!(text.contains("CONFIG_"), "{text}");
    }

    #[test]
    fn every_loss_is_told_by_its_cause() {
        let all = Losses {
            lost: 1,
            full: 2,
            unpaired: 3,
            keys_full: 4,
            storage_failures: 5,
            recursion: 6,
        };
        let counts: Vec<u64> = losses(&all).iter().map(|loss| loss.count).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6]);
    }
}
