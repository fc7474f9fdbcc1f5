//! `log`'s lines as the event `rust_log:line`.

use std::fmt::Write as _;

use crate::{Level, event};

/// A sink for [`log`]; hand it to `log::set_logger`. Lines cost their formatting only while
/// somebody records them.
#[derive(Clone, Copy, Debug)]
pub struct LogSink;

impl log::Log for LogSink {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        event!(
            Level::Info,
            "rust_log",
            "line",
            u8 "log_level" = level(record.level()),
            u32 "line" = record.line().unwrap_or(0),
            text "target" = record.target(),
            text "file" = record.file().unwrap_or(""),
            text "msg" = formatted(*record.args()).as_str()
        );
    }

    fn flush(&self) {}
}

fn formatted(arguments: std::fmt::Arguments<'_>) -> String {
    let mut text = String::new();
    // Writing to a String fails only when a value of the program's own does.
    let _ = text.write_fmt(arguments);
    text
}

fn level(level: log::Level) -> u8 {
    let level = match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warning,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::DebugLine,
        log::Level::Trace => Level::Debug,
    };
    level as u8
}
