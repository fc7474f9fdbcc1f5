//! Bar charts and histograms of a terminal, as wide as those of lttng-analyses.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::cells::{count, ns};

/// The width of a chart.
const WIDTH: usize = 80;
/// The part of a histogram's width that the bounds take.
const BOUND_WIDTH: usize = 8;

/// A bar: how long, what it says, what it is.
pub(super) struct Bar {
    pub value: f64,
    pub text: String,
    pub label: String,
}

/// Draws bars below a title; nothing when there are none.
pub(super) fn bars(title: &str, label_header: &str, bars: &[Bar], out: &mut String) {
    if bars.is_empty() {
        return;
    }
    let longest = longest(bars);
    match label_header {
        "" => out.push_str(title),
        header => {
            let space = (WIDTH + longest + 2).saturating_sub(title.chars().count());
            let _ = write!(out, "{title}{:space$}{header}", "");
        }
    }
    let _ = writeln!(out, "\n{:#<WIDTH$}", "");
    let max = max(bars);
    for bar in bars {
        let full = width(WIDTH, bar.value, max);
        let _ = writeln!(
            out,
            "{:█<full$}{:empty$} {:>longest$} {}",
            "",
            "",
            bar.text,
            bar.label,
            empty = WIDTH - full
        );
    }
    out.push('\n');
}

/// Draws a histogram below a title: labels are lower bounds. Nothing when there are no bins.
fn histogram(title: &str, bins: &[Bar], out: &mut String) {
    if bins.is_empty() {
        return;
    }
    let longest = longest(bins);
    let _ = writeln!(out, "{title}\n{:#<WIDTH$}", "");
    let (max, room) = (max(bins), WIDTH - BOUND_WIDTH);
    for bin in bins {
        let full = width(room, bin.value, max);
        let _ = writeln!(
            out,
            "{} {:█<full$}{:empty$} {:>longest$}",
            bin.label,
            "",
            "",
            bin.text,
            empty = room - full
        );
    }
    out.push('\n');
}

/// Draws a distribution: for each lower bound how often.
pub(super) fn distribution(title: &str, unit: &str, table: &Table, out: &mut String) {
    let mut keys = table.class.columns.iter().map(|column| column.key);
    let lower = keys.find(|key| key.ends_with("lower")).unwrap_or_default();
    let bin = |[lower, times]: [&Cell; 2]| Bar {
        value: count(times) as f64,
        text: count(times).to_string(),
        label: format!("{:>7.3}", ns(lower) / 1000.0),
    };
    let bins: Vec<Bar> = table.cells([lower, "count"]).map(bin).collect();
    histogram(&format!("{title} ({unit})"), &bins, out);
}

fn longest(bars: &[Bar]) -> usize {
    let lengths = bars.iter().map(|bar| bar.text.chars().count());
    lengths.max().unwrap_or(0)
}

fn max(bars: &[Bar]) -> f64 {
    bars.iter().map(|bar| bar.value).fold(0.0, f64::max)
}

fn width(room: usize, value: f64, max: f64) -> usize {
    match max > 0.0 {
        true => ((room as f64 * value / max) as usize).min(room),
        false => 0,
    }
}

/// A size as people read it: `0   B`, `5.00 KiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 9] = [
        "  B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB",
    ];
    if bytes < 1024 {
        return format!("{bytes} {}", UNITS[0]);
    }
    let exponent = ((bytes as f64).ln() / 1024_f64.ln()) as usize;
    let exponent = exponent.min(UNITS.len() - 1);
    let scaled = bytes as f64 / 1024_f64.powi(exponent as i32);
    match exponent {
        0 => format!("{scaled:.0} {}", UNITS[0]),
        _ => format!("{scaled:.2} {}", UNITS[exponent]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_chart_and_texts_are_aligned() {
        let bar = |value: f64, text: &str, label: &str| Bar {
            value,
            text: text.into(),
            label: label.into(),
        };
        let mut out = String::new();
        bars(
            "Title",
            "Label",
            &[bar(4.0, "4.00 %", "a"), bar(0.5, "0.50", "b")],
            &mut out,
        );
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], format!("Title{:83}Label", ""));
        assert_eq!(lines[2], format!("{:█<80} 4.00 % a", ""));
        assert_eq!(lines[3], format!("{:█<10}{:70}   0.50 b", "", ""));
        bars("Nothing", "", &[], &mut out);
        assert!(!out.contains("Nothing"));
    }

    #[test]
    fn a_size_has_a_unit_of_three_letters() {
        let check = |bytes: u64, expect: &str| assert_eq!(size(bytes), expect);
        check(0, "0   B");
        check(1023, "1023   B");
        check(5120, "5.00 KiB");
        check(u64::MAX, "16.00 EiB");
    }
}
