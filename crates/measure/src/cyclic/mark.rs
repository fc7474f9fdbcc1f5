//! A mark in the kernel's own trace where a sample ended the measurement, and the end of that
//! trace: for those who trace by themselves meanwhile, and ask for it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use event::{Duration, Error, Result};

/// Where tracefs is.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The files of the kernel's own trace, open before anything is late.
#[derive(Debug)]
pub struct TraceMark {
    marker: File,
    switch: File,
    root: PathBuf,
    limit: Duration,
    in_ns: bool,
}

impl TraceMark {
    /// For samples over `limit`; with figures in nanoseconds, or in microseconds.
    ///
    /// # Errors
    /// Where the files cannot be written.
    pub fn open(limit: Duration, in_ns: bool) -> Result<TraceMark> {
        let mut roots = ROOTS.iter().map(Path::new);
        let root = roots.find(|root| root.join("trace_marker").exists());
        TraceMark::below(root.unwrap_or(Path::new(ROOTS[0])), limit, in_ns)
    }

    /// Where its files are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn below(root: &Path, limit: Duration, in_ns: bool) -> Result<TraceMark> {
        let open = |name: &str| {
            let path: PathBuf = root.join(name);
            let file = OpenOptions::new().write(true).open(&path);
            file.map_err(|error| {
                Error::io(format!("cannot write {}", path.display()), error)
                    .fix("sudo mount -t tracefs nodev /sys/kernel/tracing; run it with sudo")
            })
        };
        Ok(TraceMark {
            marker: open("trace_marker")?,
            switch: open("tracing_on")?,
            root: root.to_owned(),
            limit,
            in_ns,
        })
    }

    /// Marks a sample, and ends the trace. Whoever cannot be told is not told.
    pub(super) fn hit(&self, latency: Duration) {
        let figure = |duration: Duration| match self.in_ns {
            true => duration.as_ns(),
            false => duration.as_ns() / 1000,
        };
        let (latency, limit) = (figure(latency), figure(self.limit));
        let text = format!("hit latency threshold ({latency} > {limit})");
        rustix::io::write(&self.marker, text.as_bytes()).ok();
        rustix::io::write(&self.switch, b"0\n").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_how_late_the_sample_was_and_ends_the_trace() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        let limit = Duration::from_us(100);
        assert!(TraceMark::below(root.path(), limit, false).is_err());
        for name in ["trace_marker", "tracing_on"] {
            std::fs::write(path(name), "").expect("written");
        }
        let mark = TraceMark::below(root.path(), limit, false).expect("open");
        mark.hit(Duration::from_ns(123_999));
        let text = |name: &str| std::fs::read_to_string(path(name)).expect("read");
        assert_eq!(text("trace_marker"), "hit latency threshold (123 > 100)");
        assert_eq!(text("tracing_on"), "0\n");
    }
}
