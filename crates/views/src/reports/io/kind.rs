//! The reports on files, disks and network.

use super::Io;
use super::tables::CLASSES;
use crate::reports::kind::{Answers, Keeps, Lami, PLAIN, ReportKind};
use crate::reports::needs::{REQUESTS, SWITCHES};

use crate::reports::options::Views;

/// The reports.
pub(in crate::reports) static KIND: ReportKind = ReportKind {
    name: "io",
    reports: &[
        (
            "iousagetop",
            Views::USAGE,
            "bytes by process, file, disk and interface",
        ),
        ("iolatencytop", Views::TOP, "the longest requests on files"),
        (
            "iolatencystats",
            Views::STATS,
            "durations of requests on files and disks",
        ),
        (
            "iolatencyfreq",
            Views::FREQ,
            "how their durations are distributed",
        ),
        ("iolog", Views::LOG, "all requests on files"),
    ],
    aliases: &[("iolatencylog", "iolog")],
    classes: CLASSES,
    needs: &[SWITCHES, REQUESTS],
    lami: Lami {
        title: "I/O analysis",
        description: "Requests on files, disks and network: usage, top, statistics, \
                      distribution, log",
        tags: &["io", "syscall", "stats", "freq", "log", "top"],
    },
    summary: Keeps::Nothing,
    answers: Answers::Window(|asked| Box::new(Io::new(asked.options, asked.views, asked.begin_ns))),
    ..PLAIN
};
