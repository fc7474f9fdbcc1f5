//! The last minutes of trackers, as text and as JSON.

use bpf_host::trackers::Tracker;
use capture::watch::{TrackerStatus, TrackersStatus, Window, WindowRow};
use event::Duration;
use serde_json::{Value, json};

/// Letters of the first column, its indent included.
const NAME_COLUMNS: usize = 30;
/// In text and JSON.
const QUANTILES: [(&str, &str, f64); 3] = [
    ("p50", "p50_ns", 0.5),
    ("p99", "p99_ns", 0.99),
    ("p99.9", "p99_9_ns", 0.999),
];

/// All windows of all trackers that keep some; empty without any.
pub(super) fn text(status: &TrackersStatus) -> String {
    let kept = status.trackers.iter().filter(|one| !one.history.is_empty());
    kept.map(of_tracker).collect()
}

fn of_tracker(status: &TrackerStatus) -> String {
    let mut text = String::new();
    for window in &status.history {
        text += &of_window(status.tracker, window);
        if window.is_all {
            // What is longer has the same in it.
            break;
        }
    }
    text + "\n"
}

fn of_window(tracker: &Tracker, window: &Window) -> String {
    let name = tracker.name;
    let length = (window.range.end - window.range.begin).short();
    let title = match window.is_all {
        true => format!("{name}, all: {length}"),
        false => format!("{name}, {} min: {length}", window.minutes),
    };
    let columns = QUANTILES.map(|(name, ..)| format!(" {name:>9}")).concat();
    let mut text = format!(
        "{title:<NAME_COLUMNS$} {:>9} {:>9}{columns} {:>10}\n",
        "count", "mean", "worst"
    );
    for row in &window.rows {
        text += &of_row(tracker, row);
    }
    if window.rows.is_empty() {
        text += "  nothing ended\n";
    }
    text
}

fn of_row(tracker: &Tracker, row: &WindowRow) -> String {
    let series = tracker.series.get(row.row.series).unwrap_or(&"?");
    let name = match row.name.as_str() {
        "" => format!("  {series}"),
        key => format!("    {key}"),
    };
    let cell = |duration: Option<Duration>| duration.map_or("-".to_owned(), Duration::short);
    let quantiles = QUANTILES.map(|(.., q)| format!(" {:>9}", cell(row.quantile(q))));
    // Of the longest of all times it is known; of others only the bucket.
    let at_most = if row.worst_is_exact { "" } else { "<" };
    let worst = format!("{at_most}{}", row.worst.short());
    format!(
        "{name:<NAME_COLUMNS$} {:>9} {:>9}{} {worst:>10}\n",
        row.count(),
        row.mean().short(),
        quantiles.concat()
    )
}

/// A line of JSON with the windows of all trackers that keep some.
pub(super) fn json(status: &TrackersStatus) -> Value {
    let kept = status.trackers.iter().filter(|one| !one.history.is_empty());
    let tracker =
        |one: &TrackerStatus| json!({ "tracker": one.tracker.name, "history": windows(one) });
    json!({
        "type": "history",
        "elapsed_ns": status.elapsed.as_ns(),
        "trackers": kept.map(tracker).collect::<Vec<_>>(),
    })
}

/// The windows of one.
pub(super) fn windows(status: &TrackerStatus) -> Value {
    let window = |window: &Window| {
        let rows = window.rows.iter();
        let rows = rows.map(|row| self::row(status.tracker, row));
        json!({
            "minutes": window.minutes,
            "begin_ns": window.range.begin.as_ns(),
            "end_ns": window.range.end.as_ns(),
            "since_start": window.is_all,
            "rows": rows.collect::<Vec<_>>(),
        })
    };
    status.history.iter().map(window).collect()
}

fn row(tracker: &Tracker, row: &WindowRow) -> Value {
    let mut value = json!({
        "series": tracker.series.get(row.row.series),
        "key": row.row.key.map(|_| row.name.as_str()),
        "key_number": row.row.key.map(|(key, _)| key),
        "count": row.count(),
        "sum_ns": row.sum.as_ns(),
        "mean_ns": row.mean().as_ns(),
        "worst_ns": row.worst.as_ns(),
        "worst_is_exact": row.worst_is_exact,
    });
    for (_, name, quantile) in QUANTILES {
        value[name] = row.quantile(quantile).map(Duration::as_ns).into();
    }
    value
}

#[cfg(test)]
mod tests {
    use abi::Histogram;
    use capture::watch::Row;
    use event::{Instant, TimeRange};

    use super::*;

    fn window(minutes: u32, is_all: bool) -> Window {
        let row = |key: Option<(u64, u32)>, name: &str, worst_is_exact| {
            let mut histogram = Histogram::default();
            histogram.add_some(&[(100, 3)]);
            WindowRow {
                row: Row { series: 1, key },
                name: name.to_owned(),
                sum: Duration::from_us(90),
                worst: Duration::from_us(40),
                worst_is_exact,
                histogram,
            }
        };
        Window {
            minutes,
            range: TimeRange {
                begin: Instant::from_ns(0),
                end: Instant::from_ns(60_000_000_000 * i64::from(minutes)),
            },
            is_all,
            rows: vec![row(None, "", true), row(Some((7, 0)), "vda read", false)],
        }
    }

    #[test]
    fn a_window_has_its_length_a_row_a_kind_and_one_for_each_key() {
        let tracker = Tracker::find("block").expect("a tracker");
        let text = of_window(tracker, &window(5, false));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("block, 5 min: 300 s"), "{text}");
        assert!(
            lines[1].starts_with("  device ") && lines[1].ends_with(" 40.0 us"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("    vda read") && lines[2].ends_with(" <40.0 us"),
            "{text}"
        );
        let widths: Vec<usize> = lines.iter().map(|line| line.len()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        let value = row(tracker, &window(1, true).rows[1]);
        assert_eq!(value["key"], "vda read");
        assert_eq!(
            (&value["count"], &value["mean_ns"]),
            (&json!(3), &json!(30_000))
        );
        assert_eq!(value["worst_is_exact"], false);
    }
}
