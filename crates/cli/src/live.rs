//! The terminal: how wide it is, and one line on it that is written again and again, never wrapped
//! and never left behind.

use std::io::IsTerminal;

use event::Duration;

/// When the terminal does not say how wide it is.
const COLUMNS_DEFAULT: usize = 80;

/// The line, on stderr; nothing happens where that is no terminal.
#[derive(Clone, Copy, Debug)]
pub struct LiveLine {
    is_on: bool,
}

impl LiveLine {
    /// Shown when it is `wanted` and stderr is a terminal that can.
    pub fn new(wanted: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        LiveLine {
            is_on: wanted && !dumb && std::io::stderr().is_terminal(),
        }
    }

    /// Replaces the line by `text`, cut to the terminal's width.
    pub fn show(self, text: &str) {
        if self.is_on {
            // The last column stays free: some terminals wrap when it is written.
            let columns = columns(libc::STDERR_FILENO).unwrap_or(COLUMNS_DEFAULT);
            eprint!("\r\x1b[K{}", cut(text, columns.saturating_sub(1)));
        }
    }

    /// Removes the line.
    pub fn clear(self) {
        if self.is_on {
            eprint!("\r\x1b[K");
        }
    }
}

/// Several lines on stderr that are written again and again; nothing where that is no terminal.
#[derive(Debug)]
pub struct LiveTable {
    line: LiveLine,
    rows: usize,
}

impl LiveTable {
    /// Shown when it is `wanted` and stderr is a terminal that can.
    pub fn new(wanted: bool) -> Self {
        let line = LiveLine::new(wanted);
        LiveTable { line, rows: 0 }
    }

    /// Replaces the lines by those of `text`, each cut to the terminal's width.
    pub fn show(&mut self, text: &str) {
        if !self.line.is_on {
            return;
        }
        self.clear();
        for row in text.lines() {
            self.line.show(row);
            eprintln!();
            self.rows += 1;
        }
    }

    /// Removes the lines.
    pub fn clear(&mut self) {
        if self.rows > 0 {
            eprint!("\x1b[{}A\x1b[J", self.rows);
            self.rows = 0;
        }
    }
}

/// The width of the terminal on stdout, when it is one.
pub fn stdout_columns() -> Option<usize> {
    columns(libc::STDOUT_FILENO)
}

/// The width of the terminal at `fd`, when it is one that says so.
fn columns(fd: libc::c_int) -> Option<usize> {
    // SAFETY: an all-zero winsize is valid, and the kernel writes one, during the call.
    let (status, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let status = libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size);
        (status, size)
    };
    (status == 0 && size.ws_col > 0).then(|| size.ws_col.into())
}

fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}

/// A duration in three digits: `8.42 ms`, `11.0 ms`, `297 ms`.
pub fn short(duration: Duration) -> String {
    let ns = duration.as_ns() as f64;
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let unit = units.iter().find(|(_, unit_ns)| ns.abs() >= *unit_ns);
    let Some((name, unit_ns)) = unit else {
        return format!("{} ns", duration.as_ns());
    };
    let value = ns / unit_ns;
    let decimals = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_letters_and_not_by_bytes() {
        assert_eq!(cut("worst µs", 7), "worst µ");
        assert_eq!(cut("worst", 80), "worst");
    }

    #[test]
    fn a_short_duration_has_three_digits_and_its_unit() {
        let check = |ns: i64, expect: &str| assert_eq!(short(Duration::from_ns(ns)), expect);
        check(0, "0 ns");
        check(999, "999 ns");
        check(8_420_000, "8.42 ms");
        check(11_028_000, "11.0 ms");
        check(297_716_000, "298 ms");
        check(2_726_000_000, "2.73 s");
        check(7_200_000_000_000, "7200 s");
    }
}
