//! The reports on periods.

use super::classes::CLASSES;
use crate::reports::kind::{Answers, Lami, PLAIN, ReportKind, Subject};
use crate::reports::options::Views;

/// The reports.
pub(in crate::reports) static KIND: ReportKind = ReportKind {
    name: "periods",
    reports: &[
        ("periodtop", Views::TOP, "the longest periods (--period)"),
        ("periodlog", Views::LOG, "all periods"),
        ("periodstats", Views::STATS, "periods, and how they nest"),
        (
            "periodfreq",
            Views::FREQ,
            "how their durations are distributed",
        ),
    ],
    classes: CLASSES,
    needs: &[],
    subject: Subject::Periods,
    lami: Lami {
        title: "Periods analysis",
        description: "Periods that were defined: log, top, statistics, distribution",
        tags: &["period", "stats", "freq", "top", "log"],
    },
    answers: Answers::Periods,
    ..PLAIN
};
