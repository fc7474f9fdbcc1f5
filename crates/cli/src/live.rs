//! The terminal: how large it is, and what stands on it for a while, written again and again and
//! not left behind, also where the terminal becomes narrower meanwhile.
//!
//! Then it breaks the lines anew, takes the cursor along, and lets what no longer fits scroll away.
//! A line is erased nevertheless: the cursor rests at its first letter. Of a table only another
//! screen leaves nothing, the alternate one, which terminals do not break anew.

use std::cell::Cell;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// When the terminal does not say how large it is.
const SIZE_DEFAULT: Size = Size {
    columns: 80,
    rows: 24,
};
/// Erases from the cursor to the end of its row, or of the screen. The latter never from the first
/// letter of the screen, all of which some terminals then keep as if it had been read.
const ERASE_ROW: &str = "\x1b[K";
const ERASE_SCREEN: &str = "\x1b[J";
/// To the alternate screen, and to its first letter.
const ENTER: &str = "\x1b[?1049h";
const HOME: &str = "\x1b[H";
/// Back to what was there before. A terminal that has one screen is left empty.
const LEAVE: &str = "\x1b[H\x1b[J\x1b[?1049l";

/// Whether the terminal shows its alternate screen.
static ALTERNATE: AtomicBool = AtomicBool::new(false);

/// A terminal's, in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    columns: usize,
    rows: usize,
}

/// A line or a table on stderr; nothing where that is no terminal. It goes with this.
#[derive(Debug)]
pub struct Live {
    is_on: bool,
    has_line: Cell<bool>,
}

impl Live {
    /// Shown when it is `wanted` and stderr is a terminal that can.
    pub fn new(wanted: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Live {
            is_on: wanted && !dumb && std::io::stderr().is_terminal(),
            has_line: Cell::new(false),
        }
    }

    /// Replaces what is shown by a line, cut to the terminal's width.
    pub fn line(&self, text: &str) {
        if self.is_on {
            let columns = stderr_size().columns;
            let text: String = text.chars().take(room(columns)).collect();
            self.has_line.set(true);
            write(&format!("\r{text}{ERASE_SCREEN}\r"));
        }
    }

    /// Replaces what is shown by the lines that `text` makes of the room that a line has: those
    /// that are longer go on in the next, and those that the terminal has no row for are counted.
    pub fn table(&self, text: impl FnOnce(usize) -> String) {
        if self.is_on {
            let size = stderr_size();
            let lines = fitted(&text(room(size.columns)), size);
            let enter = match ALTERNATE.swap(true, Ordering::Relaxed) {
                true => "",
                false => ENTER,
            };
            let lines = lines.join(&format!("{ERASE_ROW}\r\n"));
            write(&format!("{enter}{HOME}{lines}{ERASE_SCREEN}"));
        }
    }

    /// Replaces what is shown by the whole screen that `draw` makes for so many columns and rows.
    pub fn screen(&self, draw: impl FnOnce(u16, u16) -> Vec<String>) {
        if self.is_on {
            let size = stderr_size();
            let letters = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
            let lines = draw(letters(room(size.columns)), letters(size.rows));
            let enter = match ALTERNATE.swap(true, Ordering::Relaxed) {
                true => "",
                false => ENTER,
            };
            let lines = lines.join(&format!("{ERASE_ROW}\r\n"));
            write(&format!("{enter}{HOME}{lines}{ERASE_ROW}"));
        }
    }

    /// Whether anything is shown at all.
    pub fn is_shown(&self) -> bool {
        self.is_on
    }

    /// Removes what is shown.
    pub fn clear(&self) {
        if self.is_on {
            leave_alternate_screen();
        }
        if self.has_line.replace(false) {
            write(&format!("\r {ERASE_SCREEN}\r{ERASE_ROW}"));
        }
    }
}

/// Also when an error comes in between: it is to stand on a line of its own.
impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Goes back to the screen of before, if we left it. Handlers of signals may call it.
pub fn leave_alternate_screen() {
    if ALTERNATE.swap(false, Ordering::Relaxed) {
        write(LEAVE);
    }
}

/// In one go, or it flickers. Who cannot be shown anything is shown nothing.
fn write(text: &str) {
    let _ = rustix::io::write(std::io::stderr(), text.as_bytes());
}

/// The width of the terminal on stdout, when it is one.
pub fn stdout_columns() -> Option<usize> {
    size(std::io::stdout()).map(|size| size.columns)
}

fn stderr_size() -> Size {
    size(std::io::stderr()).unwrap_or(SIZE_DEFAULT)
}

/// The size of the terminal at `fd`, when it is one that says so.
fn size(fd: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_col > 0).then(|| Size {
        columns: size.ws_col.into(),
        rows: match size.ws_row {
            0 => SIZE_DEFAULT.rows,
            rows => rows.into(),
        },
    })
}

/// The last column stays free: some terminals wrap when it is written.
fn room(columns: usize) -> usize {
    columns.saturating_sub(1).max(1)
}

/// The lines of `text` as a terminal of this size can show them. The last one says most.
fn fitted(text: &str, size: Size) -> Vec<String> {
    let options = textwrap::Options::new(room(size.columns));
    let mut lines: Vec<String> = textwrap::wrap(text.trim_end(), options)
        .into_iter()
        .map(|line| line.into_owned())
        .collect();
    if lines.len() > size.rows && size.rows > 1 {
        let last = lines.pop();
        let kept = size.rows - 2;
        let more = format!("{} more lines", lines.len() - kept);
        lines.truncate(kept);
        lines.extend([more].into_iter().chain(last));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_where_words_end_and_none_scrolls_away() {
        let check = |text: &str, (columns, rows), expect: &[&str]| {
            assert_eq!(fitted(text, Size { columns, rows }), expect, "{text}");
        };
        check(
            "  worst  7 µs\nleft\n",
            (80, 24),
            &["  worst  7 µs", "left"],
        );
        // Eight letters, and not their nine bytes.
        check("µs worst", (9, 24), &["µs worst"]);
        check("µs worst", (8, 24), &["µs", "worst"]);
        check("1\n2\n3\n4", (80, 4), &["1", "2", "3", "4"]);
        check("1\n2\n3\n4\n5", (80, 4), &["1", "2", "2 more lines", "5"]);
        check("1\n2\n3\n4\n5", (80, 2), &["4 more lines", "5"]);
    }
}
