//! Pictures of an evaluation, drawn into the page: no script, no other file.

use serde_json::Value;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 180.0;
/// Room for the numbers at the left and below.
const LEFT: f64 = 56.0;
const BELOW: f64 = 28.0;
/// Room above, and at the right.
const MARGIN: f64 = 8.0;
/// Bars of a histogram: buckets that fall on one bar are added.
const BARS: usize = 160;

/// A scale of decades: latencies and counts span many.
struct Decades {
    from: f64,
    to: f64,
}

impl Decades {
    fn around(low: f64, high: f64) -> Decades {
        let from = low.max(1.0).log10().floor();
        let to = high.max(low + 1.0).log10().ceil().max(from + 1.0);
        Decades { from, to }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        ((value.max(1.0).log10() - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        (self.from as i32..=self.to as i32).map(|power| 10f64.powi(power))
    }
}

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - MARGIN)
}

fn y(share: f64) -> f64 {
    HEIGHT - BELOW - share * (HEIGHT - BELOW - MARGIN)
}

fn frame(title: &str, inside: &str) -> String {
    format!(
        "<figure><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{inside}\
         <path class=\"axis\" d=\"M{} {}V{}H{}\"/></svg></figure>\n",
        x(0.0),
        y(1.0),
        y(0.0),
        x(1.0)
    )
}

fn time(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        ..1e3 => format!("{ns:.0} ns"),
        ..1e6 => format!("{:.0} us", ns / 1e3),
        ..1e9 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.0} s", ns / 1e9),
    }
}

/// Where a number below the picture is held: the last one ends at the picture's end.
fn anchor(share: f64) -> &'static str {
    if share < 1.0 { "middle" } else { "end" }
}

fn marks_below(scale: &Decades) -> String {
    let mark = |ns: f64| {
        let at = x(scale.place(ns));
        let (top, text) = (y(1.0), HEIGHT - 10.0);
        let (name, anchor) = (time(ns), anchor(scale.place(ns)));
        format!(
            "<path class=\"grid\" d=\"M{at:.1} {}V{top:.1}\"/>\
             <text x=\"{at:.1}\" y=\"{text}\" text-anchor=\"{anchor}\">{name}</text>",
            y(0.0)
        )
    };
    scale.marks().map(mark).collect()
}

fn marks_left(scale: &Decades, name: impl Fn(f64) -> String) -> String {
    let mark = |value: f64| {
        let at = y(scale.place(value));
        format!(
            "<path class=\"grid\" d=\"M{:.1} {at:.1}H{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x(0.0),
            x(1.0),
            LEFT - 6.0,
            at + 4.0,
            name(value)
        )
    };
    scale.marks().map(mark).collect()
}

/// Where the histograms of `threads` begin and end, in ns: one axis for all, because the eye
/// compares places.
pub(super) fn axis<'a>(threads: impl Iterator<Item = &'a Value> + Clone) -> (f64, f64) {
    let shortest =
        |thread: &Value| Some(thread["histogram"][0][0].as_f64()? + thread["bucket_ns"].as_f64()?);
    let longest = threads.clone().filter_map(|one| one["max_ns"].as_f64());
    let shortest = threads.filter_map(shortest).reduce(f64::min);
    (shortest.unwrap_or(1.0), longest.fold(1.0, f64::max))
}

/// A histogram from one length to another with both axes in decades; the budget is a line.
pub(super) fn histogram(
    thread: &Value,
    (shortest_ns, longest_ns): (f64, f64),
    budget_ns: Option<f64>,
) -> String {
    let pair = |pair: &Value| Some((pair[0].as_f64()?, pair[1].as_f64()?));
    let buckets = thread["histogram"].as_array();
    let buckets: Vec<(f64, f64)> = buckets.into_iter().flatten().filter_map(pair).collect();
    let width_ns = thread["bucket_ns"].as_f64().unwrap_or(1.0);
    let across = Decades::around(shortest_ns, longest_ns.max(budget_ns.unwrap_or(0.0)));
    let mut bars = [0.0; BARS];
    for (begin_ns, count) in &buckets {
        let share = across.place(begin_ns + width_ns / 2.0);
        bars[((share * BARS as f64) as usize).min(BARS - 1)] += count;
    }
    // What fits into no bucket lies between the last one and the longest: drawn at the longest.
    let overflows = thread["overflows"].as_f64().unwrap_or(0.0);
    let longest_own = thread["max_ns"].as_f64().unwrap_or(0.0);
    bars[((across.place(longest_own) * BARS as f64) as usize).min(BARS - 1)] += overflows;
    let highest = bars.iter().copied().fold(1.0, f64::max);
    let up = Decades::around(1.0, highest);
    let mut inside = marks_below(&across) + &marks_left(&up, |count| format!("{count:.0}"));
    let step = (WIDTH - LEFT - MARGIN) / BARS as f64;
    for (bar, count) in bars.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        // A single sample must be seen too.
        let height = (y(0.0) - y(up.place(*count))).max(3.0);
        let begin = bar as f64 / BARS as f64;
        let over = budget_ns.is_some_and(|budget_ns| begin >= across.place(budget_ns));
        let class = if over { " class=\"over\"" } else { "" };
        inside += &format!(
            "<rect{class} x=\"{:.1}\" y=\"{:.1}\" width=\"{step:.1}\" height=\"{height:.1}\"/>",
            x(begin),
            y(0.0) - height,
        );
    }
    if let Some(budget_ns) = budget_ns {
        let at = x(across.place(budget_ns));
        inside += &format!(
            "<path class=\"budget\" d=\"M{at:.1} {:.1}V{:.1}\"/>",
            y(0.0),
            y(1.0)
        );
    }
    frame("samples by latency", &inside)
}

/// The longest latency of each stretch over time; the budget is a line.
pub(super) fn series(thread: &Value, elapsed_ns: f64, budget_ns: Option<f64>) -> String {
    let pair = |pair: &Value| Some((pair[0].as_f64()?, pair[1].as_f64()?));
    let points = thread["series"].as_array();
    let points: Vec<(f64, f64)> = points.into_iter().flatten().filter_map(pair).collect();
    let values = || points.iter().map(|(_, longest)| *longest);
    let low = values()
        .fold(f64::MAX, f64::min)
        .min(budget_ns.unwrap_or(f64::MAX));
    let high = values().fold(1.0, f64::max).max(budget_ns.unwrap_or(1.0));
    let up = Decades::around(if points.is_empty() { 1.0 } else { low }, high);
    let mut inside = marks_left(&up, time);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let anchor = anchor(share);
        inside += &format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            x(share),
            HEIGHT - 10.0,
            time(share * elapsed_ns)
        );
    }
    let line: String = points
        .iter()
        .map(|(end, longest)| {
            let across = (end / elapsed_ns.max(1.0)).min(1.0);
            format!("{:.1},{:.1} ", x(across), y(up.place(*longest)))
        })
        .collect();
    inside += &format!("<polyline points=\"{}\"/>", line.trim_end());
    if let Some(budget_ns) = budget_ns {
        let at = y(up.place(budget_ns));
        inside += &format!(
            "<path class=\"budget\" d=\"M{:.1} {at:.1}H{:.1}\"/>",
            x(0.0),
            x(1.0)
        );
    }
    frame("longest latency over time", &inside)
}

/// A rate at its axis: of few the half in the middle is no whole number.
fn per_second(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        ..10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

/// How often a load completed its work in each second, over time: from one look to the next.
pub(super) fn rate(load: &Value) -> String {
    let pair = |point: &Value| Some((point[0].as_f64()?, point[1].as_f64()?));
    let points = load["points"].as_array();
    let points: Vec<(f64, f64)> = points.into_iter().flatten().filter_map(pair).collect();
    let rates: Vec<(f64, f64, f64)> = points
        .windows(2)
        .filter(|two| two[1].0 > two[0].0)
        .map(|two| {
            let (span_ns, done) = (two[1].0 - two[0].0, two[1].1 - two[0].1);
            (two[0].0, two[1].0, done.max(0.0) * 1e9 / span_ns)
        })
        .collect();
    let high = rates.iter().map(|one| one.2).fold(1.0, f64::max);
    let end_ns = points.last().map_or(1.0, |last| last.0.max(1.0));
    let mut inside = String::new();
    for share in [0.0, 0.5, 1.0] {
        inside += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            LEFT - 6.0,
            y(share) + 4.0,
            per_second(share * high),
            x(share),
            HEIGHT - 10.0,
            anchor(share),
            time(share * end_ns)
        );
    }
    let place = |at_ns: f64, rate: f64| format!("{:.1},{:.1} ", x(at_ns / end_ns), y(rate / high));
    let step = |(from, to, rate): &(f64, f64, f64)| place(*from, *rate) + &place(*to, *rate);
    let line: String = rates.iter().map(step).collect();
    inside += &format!("<polyline points=\"{}\"/>", line.trim_end());
    let word = |value: &Value| crate::xml::escaped(value.as_str().unwrap_or("?"));
    let (name, what) = (word(&load["name"]), word(&load["counters"][0]));
    frame(&format!("{name}: {what} per second"), &inside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_middle_of_an_axis_of_few_is_no_rounded_number() {
        let check = |rate: f64, expect: &str| assert_eq!(per_second(rate), expect);
        check(0.0, "0");
        check(0.5, "0.5");
        check(2.5, "2.5");
        check(512.4, "512");
    }

    #[test]
    fn all_histograms_of_a_page_have_one_axis() {
        let thread = |from_ns: i64, max_ns: i64| {
            let histogram = json!([[from_ns, 1]]);
            json!({"histogram": histogram, "bucket_ns": 100, "max_ns": max_ns})
        };
        let both = [thread(50_000, 90_000), thread(2_000, 9_000)];
        assert_eq!(axis(both.iter()), (2_100.0, 90_000.0));
        assert_eq!(axis([json!({})].iter()), (1.0, 1.0));
    }

    #[test]
    fn every_sample_is_in_a_bar_and_the_budget_is_a_line() {
        let thread = json!({
            "histogram": [[1000, 5], [3000, 1]], "bucket_ns": 1000, "overflows": 1,
            "max_ns": 900_000,
        });
        let drawn = histogram(&thread, (2_000.0, 900_000.0), Some(5_000.0));
        assert_eq!(drawn.matches("<rect").count(), 3, "{drawn}");
        assert_eq!(drawn.matches("class=\"budget\"").count(), 1);
        assert_eq!(drawn.matches("class=\"over\"").count(), 1, "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        let empty = histogram(&json!({}), (1.0, 0.0), None);
        assert!(
            !empty.contains("NaN") && !empty.contains("<rect"),
            "{empty}"
        );
    }

    #[test]
    fn a_series_is_one_line_through_its_points() {
        let thread = json!({ "series": [[1_000, 20], [2_000, 400]] });
        let drawn = series(&thread, 2_000.0, None);
        assert!(drawn.contains("<polyline points=\"344.0,"), "{drawn}");
        assert!(!series(&json!({}), 0.0, None).contains("NaN"));
    }

    #[test]
    fn the_rate_of_a_load_is_what_it_completed_from_one_look_to_the_next() {
        let load = json!({
            "name": "compile", "counters": ["files"],
            "points": [[0, 0], [1_000_000_000, 10], [2_000_000_000, 10]],
        });
        let drawn = rate(&load);
        let top = format!("points=\"{:.1},{:.1} ", x(0.0), y(1.0));
        assert!(drawn.contains(&top), "{drawn}");
        let stood = format!("{:.1},{:.1} {:.1},{:.1}\"", x(0.5), y(0.0), x(1.0), y(0.0));
        assert!(drawn.contains(&stood), "{drawn}");
        assert!(!rate(&json!({})).contains("NaN"));
    }
}
