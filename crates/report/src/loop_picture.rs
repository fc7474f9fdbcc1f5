//! Histograms of measuring loops below each other, on one pair of axes: the eye compares places.

use crate::reports::picture::canvas::{Canvas, WIDTH};

/// Iterations of a loop by what they took.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopBins {
    /// Who recorded.
    pub name: String,
    /// Durations in nanoseconds, rising, and how many iterations took so long.
    pub bins: Vec<(f64, u64)>,
}

const LEFT: f64 = 70.0;
/// Room at the right, for the last mark.
const RIGHT: f64 = 40.0;
/// Of a histogram, its heading above and the marks below.
const HEIGHT: f64 = 110.0;
const HEADING: f64 = 24.0;
const BELOW: f64 = 28.0;
/// Bars across.
const BARS: usize = 212;
/// A single iteration must be seen too.
const HEIGHT_MIN: f64 = 2.0;

/// Powers of ten from one to another: durations and counts span many.
struct Decades {
    from: i32,
    to: i32,
}

impl Decades {
    fn around(low: f64, high: f64) -> Decades {
        let from = low.max(1.0).log10().floor() as i32;
        let to = (high.max(1.0).log10().ceil() as i32).max(from + 1);
        Decades { from, to }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let place = value.max(1.0).log10() - f64::from(self.from);
        (place / f64::from(self.to - self.from)).clamp(0.0, 1.0)
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        (self.from..=self.to).map(|power| 10_f64.powi(power))
    }
}

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// An SVG that stands alone: a histogram for each loop, both axes in powers of ten.
pub fn loop_picture(title: &str, loops: &[LoopBins]) -> String {
    let bins = || loops.iter().flat_map(|one| &one.bins);
    let shortest = bins().map(|(ns, _)| *ns).fold(f64::MAX, f64::min);
    let longest = bins().map(|(ns, _)| *ns).fold(1.0, f64::max);
    let across = Decades::around(shortest.min(longest), longest);
    let all: Vec<[u64; BARS]> = loops.iter().map(|one| bars(one, &across)).collect();
    let highest = all.iter().flatten().copied().max().unwrap_or(1);
    let up = Decades::around(1.0, highest as f64);
    let mut canvas = Canvas::new(title);
    for (place, (one, bars)) in loops.iter().zip(&all).enumerate() {
        let top = place as f64 * (HEADING + HEIGHT + BELOW);
        canvas.text((LEFT, top + 14.0), "", &heading(one));
        draw(bars, top + HEADING, &across, &up, &mut canvas);
    }
    canvas.finish()
}

fn bars(one: &LoopBins, across: &Decades) -> [u64; BARS] {
    let mut bars = [0; BARS];
    for (ns, count) in &one.bins {
        bars[((across.place(*ns) * BARS as f64) as usize).min(BARS - 1)] += count;
    }
    bars
}

fn heading(one: &LoopBins) -> String {
    let count: u64 = one.bins.iter().map(|(_, count)| count).sum();
    let sum: f64 = one.bins.iter().map(|(ns, count)| ns * *count as f64).sum();
    let (Some((min, _)), Some((max, _))) = (one.bins.first(), one.bins.last()) else {
        return format!("{}: nothing", one.name);
    };
    let mean = sum / count as f64;
    format!(
        "{}: {count} iterations, min {min:.1} ns, mean {mean:.1} ns, max {max:.0} ns",
        one.name
    )
}

/// One histogram from `top` on.
fn draw(bars: &[u64; BARS], top: f64, across: &Decades, up: &Decades, canvas: &mut Canvas) {
    let bottom = top + HEIGHT;
    for ns in across.marks() {
        let at = x(across.place(ns));
        canvas.line((at, top), (at, bottom), "grid");
        canvas.text((at, bottom + 16.0), "", &time(ns));
    }
    for count in up.marks().step_by(2) {
        let at = bottom - HEIGHT * up.place(count);
        canvas.line((LEFT, at), (x(1.0), at), "grid");
        canvas.text((LEFT - 6.0, at + 4.0), "end", &format!("{count:.0}"));
    }
    let width = (x(1.0) - LEFT) / BARS as f64;
    for (bar, count) in bars.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (HEIGHT * up.place(*count as f64)).max(HEIGHT_MIN);
        let at = (LEFT + bar as f64 * width, bottom - height);
        canvas.rect(at, (width - 0.5, height), "bar", &count.to_string());
    }
    canvas.line((LEFT, bottom), (x(1.0), bottom), "axis");
    canvas.reach(bottom + BELOW);
}

fn time(ns: f64) -> String {
    match ns {
        ..1e3 => format!("{ns:.0} ns"),
        ..1e6 => format!("{:.0} \u{b5}s", ns / 1e3),
        ..1e9 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.0} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, bins: &[(f64, u64)]) -> LoopBins {
        LoopBins {
            name: name.to_owned(),
            bins: bins.to_vec(),
        }
    }

    #[test]
    fn every_loop_has_its_bars_on_the_same_axes() {
        let svg = loop_picture(
            "loops",
            &[
                one("none", &[(10.0, 1_000_000), (20.0, 5)]),
                one("a < b", &[(20.0, 999), (40_000.0, 1)]),
            ],
        );
        assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
        assert!(
            svg.contains("a &lt; b: 1000 iterations, min 20.0 ns"),
            "{svg}"
        );
        // 20 ns stand at the same place in both.
        let places: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<rect"))
            .filter_map(|line| line.split("x=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(places[1], places[2], "{svg}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        for loops in [&[][..], &[one("none", &[])][..]] {
            let svg = loop_picture("empty", loops);
            assert!(!svg.contains("<rect") && !svg.contains("NaN"), "{svg}");
        }
    }
}
