//! The reports by name.

use std::sync::LazyLock;

use super::KINDS;
use super::kind::{Report, ReportKind};

/// A report that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// What people type.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What is asked.
    pub report: Report,
}

/// All reports, by the names that they have in lttng-analyses.
pub static REPORTS: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let of_kind = |kind: &&'static ReportKind| {
        let kind = *kind;
        let reports = kind.reports.iter();
        reports.map(move |(name, views, about)| Named {
            name,
            about,
            report: Report {
                kind,
                views: *views,
            },
        })
    };
    KINDS.iter().flat_map(of_kind).collect()
});

/// The report of this name, or of which this is the second name.
pub fn report_named(name: &str) -> Option<&'static Named> {
    let mut aliases = KINDS.iter().flat_map(|kind| kind.aliases);
    let alias = aliases.find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    REPORTS.iter().find(|named| named.name == name)
}
