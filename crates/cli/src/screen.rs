//! A whole screen of a watch that goes on: the kinds of what is measured, the histogram of one of
//! them, who is in the way, the worst. `ratatui` lays it out; [`Live`] puts it on the terminal.

use event::Duration;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Widget};

use crate::keys;
use crate::live::Live;

/// Letters before the bar of a histogram's row.
const BEFORE_BAR: usize = 20;
/// So many rows for the worst, with what stands below each.
const WORST_ROWS: u16 = 8;
/// The names of kinds have so many letters.
const NAME_COLUMNS: usize = 28;

/// What is shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What is watched, in a line.
    pub title: String,
    /// What is measured.
    pub kinds: Vec<Kind>,
    /// Who was in the way, the one that took most first.
    pub culprits: Vec<Culprit>,
    /// The worst first, each with lines below it.
    pub worst: Vec<(String, Vec<String>)>,
    /// How long, how many, what it costs, what was lost.
    pub foot: String,
}

/// A kind of intervals.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Its columns, as they stand in the table.
    pub cells: Vec<String>,
    /// Powers of two in nanoseconds, and how many were of them.
    pub octaves: Vec<(u32, u64)>,
}

/// Somebody who was in the way.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// The name.
    pub name: String,
    /// How often.
    pub hits: u64,
    /// The time of these hits together.
    pub total: Duration,
}

/// The screen, and what of it was chosen.
#[derive(Debug)]
pub struct Screen {
    live: Live,
    /// Whose histogram is shown.
    chosen: usize,
}

impl Screen {
    /// On stderr; none where that is no terminal.
    pub fn new() -> Option<Screen> {
        let live = Live::new(true);
        live.is_shown().then_some(Screen { live, chosen: 0 })
    }

    /// Draws; whether to go on.
    pub fn draw(&mut self, shown: &Shown) -> bool {
        // Behind the shell's back nothing is written.
        if !keys::is_in_foreground() {
            return true;
        }
        keys::take();
        let kinds = shown.kinds.len().max(1);
        let mut goes_on = true;
        for key in keys::pressed() {
            match key {
                b'q' => goes_on = false,
                b'\t' | b' ' | b'n' => self.chosen = (self.chosen + 1) % kinds,
                b'p' => self.chosen = (self.chosen + kinds - 1) % kinds,
                _ => {}
            }
        }
        let chosen = self.chosen.min(kinds - 1);
        self.live
            .screen(|columns, rows| lines(&drawn(shown, chosen, columns, rows)));
        goes_on
    }

    /// Gives the terminal back as it was.
    pub fn clear(&self) {
        self.live.clear();
        keys::give_back();
    }
}

/// Also when an error comes in between.
impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What is shown, on so many columns and rows.
fn drawn(shown: &Shown, chosen: usize, columns: u16, rows: u16) -> Buffer {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    let kinds = u16::try_from(shown.kinds.len()).unwrap_or(u16::MAX);
    let [title, table, middle, worst, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(kinds.saturating_add(1)),
        Constraint::Min(4),
        Constraint::Length(WORST_ROWS.min(rows / 3)),
        Constraint::Length(1),
    ])
    .areas(area);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(55), Constraint::Fill(1)]).areas(middle);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::styled(shown.title.as_str(), bold).render(title, &mut buffer);
    Paragraph::new(table_lines(shown, chosen)).render(table, &mut buffer);
    let kind = shown.kinds.get(chosen);
    let name = kind.map_or("", |kind| &kind.name);
    let inside = framed(format!("{name}, from"), left, &mut buffer);
    let bars = kind.map_or_else(Vec::new, |kind| {
        bar_lines(&kind.octaves, inside.width.into(), inside.height.into())
    });
    Paragraph::new(bars).render(inside, &mut buffer);
    let inside = framed("who was in the way".to_owned(), right, &mut buffer);
    Paragraph::new(culprit_lines(&shown.culprits)).render(inside, &mut buffer);
    let inside = framed("the worst".to_owned(), worst, &mut buffer);
    Paragraph::new(worst_lines(&shown.worst)).render(inside, &mut buffer);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let keys = format!("{}  |  tab: next histogram  q: end", shown.foot);
    Line::styled(keys, dim).render(foot, &mut buffer);
    buffer
}

fn framed(title: String, area: Rect, buffer: &mut Buffer) -> Rect {
    let block = Block::new().borders(Borders::TOP).title(title);
    let inside = block.inner(area);
    block.render(area, buffer);
    inside
}

fn table_lines(shown: &Shown, chosen: usize) -> Vec<Line<'static>> {
    let row = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>9}")).collect();
        format!("{name:<NAME_COLUMNS$}{cells}")
    };
    let head = ["count", "min", "p50", "p99", "p99.9", "max", "hits"].map(str::to_owned);
    let mut lines = vec![Line::from(row("", &head))];
    for (number, kind) in shown.kinds.iter().enumerate() {
        let name: String = kind.name.chars().take(NAME_COLUMNS).collect();
        let style = match number == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push(Line::styled(row(&name, &kind.cells), style));
    }
    lines
}

/// A row for each power of two; where there are more than rows, the shortest are left out.
fn bar_lines(octaves: &[(u32, u64)], columns: usize, rows: usize) -> Vec<Line<'static>> {
    let (Some((first, _)), Some((last, _))) = (octaves.first(), octaves.last()) else {
        return vec![Line::from("nothing yet")];
    };
    let longest = octaves.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let room = columns.saturating_sub(BEFORE_BAR).max(1) as u64;
    let shown_from = (last + 1).saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
    let row = |octave: u32| {
        let mut octaves = octaves.iter();
        let count = octaves.find(|(of, _)| *of == octave);
        let count = count.map_or(0, |(_, count)| *count);
        let bar = count.saturating_mul(room).div_ceil(longest.max(1));
        let from = Duration::from_ns(1i64 << octave.min(62)).short();
        Line::from(format!(
            "{from:>8} {count:>9}  {}",
            "█".repeat(bar as usize)
        ))
    };
    (shown_from.max(*first)..=*last).map(row).collect()
}

fn culprit_lines(culprits: &[Culprit]) -> Vec<Line<'static>> {
    if culprits.is_empty() {
        return vec![Line::from("nobody yet")];
    }
    let row = |culprit: &Culprit| {
        let (total, hits) = (culprit.total.short(), culprit.hits);
        Line::from(format!("{total:>9} {hits:>5}×  {}", culprit.name))
    };
    culprits.iter().map(row).collect()
}

fn worst_lines(worst: &[(String, Vec<String>)]) -> Vec<Line<'static>> {
    let lines = worst.iter().flat_map(|(line, below)| {
        let below = below.iter().map(|line| Line::from(format!("    {line}")));
        std::iter::once(Line::from(line.clone())).chain(below)
    });
    lines.collect()
}

/// The rows of a buffer as a terminal understands them.
fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y: u16| {
        let mut line = String::new();
        let mut now = Modifier::empty();
        for x in 0..area.width {
            let cell = &buffer[(x, y)];
            if cell.modifier != now {
                now = cell.modifier;
                line += code(now);
            }
            line += cell.symbol();
        }
        if !now.is_empty() {
            line += code(Modifier::empty());
        }
        line
    };
    (0..area.height).map(row).collect()
}

/// What switches a terminal to letters of this kind.
fn code(modifier: Modifier) -> &'static str {
    match modifier {
        Modifier::BOLD => "\x1b[0;1m",
        Modifier::DIM => "\x1b[0;2m",
        Modifier::REVERSED => "\x1b[0;7m",
        _ => "\x1b[0m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Shown {
        let kind = |name: &str, octaves: &[(u32, u64)]| Kind {
            name: name.to_owned(),
            cells: vec!["7".to_owned(), "1 us".to_owned()],
            octaves: octaves.to_vec(),
        };
        Shown {
            title: "watching".to_owned(),
            kinds: vec![kind("wakeup", &[(10, 3), (12, 1)]), kind("irq", &[(20, 9)])],
            culprits: vec![Culprit {
                name: "hog (tid 7)".to_owned(),
                hits: 2,
                total: Duration::from_ms(3),
            }],
            worst: vec![("app took 3 ms".to_owned(), vec!["behind hog".to_owned()])],
            foot: "1.0 s  cost 0.1 %".to_owned(),
        }
    }

    fn text(chosen: usize, columns: u16, rows: u16) -> String {
        let drawn = drawn(&shown(), chosen, columns, rows);
        let lines = lines(&drawn);
        assert_eq!(lines.len(), usize::from(rows));
        let plain = |line: &String| {
            let codes = ["\x1b[0;1m", "\x1b[0;2m", "\x1b[0;7m", "\x1b[0m"];
            let mut line = line.clone();
            codes.iter().for_each(|code| line = line.replace(code, ""));
            assert_eq!(line.chars().count(), usize::from(columns), "{line}");
            line.trim_end().to_owned()
        };
        lines.iter().map(plain).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_screen_has_kinds_histogram_culprits_worst_and_cost() {
        let first = text(0, 100, 24);
        for words in [
            "wakeup",
            "irq",
            "1.02 us         3  ██",
            "hog (tid 7)",
            "app took 3 ms",
            "    behind hog",
            "cost 0.1 %",
            "q: end",
        ] {
            assert!(first.contains(words), "{words}:\n{first}");
        }
        assert!(!first.contains("1.05 ms"), "{first}");
        assert!(text(1, 100, 24).contains("1.05 ms         9  ██"));
    }

    #[test]
    fn every_size_of_a_terminal_has_a_screen_that_fits_it() {
        for columns in [1, 2, 19, 20, 21, 80, 300] {
            for rows in [1, 2, 3, 7, 24, 100] {
                text(0, columns, rows);
            }
        }
    }

    #[test]
    fn nothing_measured_is_said() {
        let mut empty = shown();
        empty.kinds.iter_mut().for_each(|kind| kind.octaves.clear());
        empty.culprits.clear();
        let drawn = lines(&drawn(&empty, 0, 80, 24)).join("\n");
        assert!(drawn.contains("nothing yet") && drawn.contains("nobody yet"));
    }
}
