//! Which events a recording is asked for beside named ones: probes, and files that describe events.

use std::collections::BTreeMap;
use std::path::Path;

use capture::{Probe, ProbeKind};
use event::{Error, ErrorKind, Result};
use serde::Deserialize;

use super::settings;
use crate::flags::RecordWhat;

/// Event files that are always there.
const SHIPPED: &[(&str, &str)] = &[
    (
        "locking",
        include_str!("../../../../examples/events/locking.toml"),
    ),
    (
        "memory",
        include_str!("../../../../examples/events/memory.toml"),
    ),
];
/// Says whose events those of probes and functions are: recorded with them when no other event is
/// asked for.
const SWITCH: &str = "sched:sched_switch";

/// An event file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EventFile {
    events: Vec<String>,
    filter: Vec<String>,
    uprobe: BTreeMap<String, ProbeTable>,
    uretprobe: BTreeMap<String, ProbeTable>,
    usdt: BTreeMap<String, ProbeTable>,
    probe: BTreeMap<String, ProbeTable>,
    retprobe: BTreeMap<String, ProbeTable>,
}

/// A probe of an event file; its name is the table's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeTable {
    place: String,
    #[serde(default)]
    fields: Vec<String>,
}

/// What is wanted of the kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Sets, events and patterns.
    pub events: Vec<String>,
    /// Filters, as they were typed.
    pub filters: Vec<String>,
    pub probes: Vec<Probe>,
}

impl Wanted {
    /// From what was typed and the files that it names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what makes no sense, with its place.
    pub fn new(what: &RecordWhat) -> Result<Wanted> {
        if what.events.iter().any(|term| term.trim().is_empty()) {
            // Perhaps a variable of the shell that is not set: the default set is not meant.
            return Err(
                Error::new(ErrorKind::InvalidInput, "--events names nothing")
                    .found("''")
                    .fix(
                        "name sets or events, as in --events sched; the default set: leave it out",
                    ),
            );
        }
        let mut wanted = Wanted {
            events: what.events.clone(),
            filters: what.filter.clone(),
            probes: Vec::new(),
        };
        for (kind, texts) in [
            (ProbeKind::Uprobe, &what.uprobe),
            (ProbeKind::Uretprobe, &what.uretprobe),
            (ProbeKind::Usdt, &what.usdt),
            (ProbeKind::Kprobe, &what.probe),
            (ProbeKind::Kretprobe, &what.retprobe),
        ] {
            for text in texts {
                wanted.probes.push(Probe::parse(kind, text)?);
            }
        }
        for name in &what.event_file {
            wanted.add_file(name)?;
        }
        let has_more = !wanted.probes.is_empty() || !what.functions.is_empty();
        if has_more && wanted.events.is_empty() {
            wanted.events.push(SWITCH.to_owned());
        }
        Ok(wanted)
    }

    fn add_file(&mut self, name: &str) -> Result<()> {
        let text = text_of(name)?;
        let subject = format!("the event file {name} makes");
        let file: EventFile =
            settings::parse(&text, &subject, "docs/probes.md lists what it may have")?;
        // Not every kernel has each of them.
        let events = file.events.iter().map(|event| format!("?{event}"));
        self.events.extend(events);
        self.filters.extend(file.filter);
        for (kind, tables) in [
            (ProbeKind::Uprobe, file.uprobe),
            (ProbeKind::Uretprobe, file.uretprobe),
            (ProbeKind::Usdt, file.usdt),
            (ProbeKind::Kprobe, file.probe),
            (ProbeKind::Kretprobe, file.retprobe),
        ] {
            for (event, table) in tables {
                let text = format!("{event}={} {}", table.place, table.fields.join(" "));
                let probe = Probe::parse(kind, text.trim_end());
                self.probes
                    .push(probe.map_err(|error| in_file(name, error))?);
            }
        }
        Ok(())
    }
}

/// An error about what a file says.
fn in_file(name: &str, error: Error) -> Error {
    let found = error.value_found().unwrap_or_default();
    Error::new(
        error.kind(),
        format!("in the event file {name}: {}", error.what()),
    )
    .found(found.to_owned())
    .fix("docs/probes.md has the expressions and the types")
}

/// The text of an event file: one on the disk, else one of ours.
fn text_of(name: &str) -> Result<String> {
    let shipped = SHIPPED.iter().find(|(known, _)| *known == name);
    match (std::fs::read_to_string(Path::new(name)), shipped) {
        (Ok(text), _) => Ok(text),
        (Err(_), Some((_, text))) => Ok((*text).to_owned()),
        (Err(cause), None) => {
            let names: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
            let what = format!("cannot read the event file {name}");
            Err(Error::io(what, cause).fix(format!("give a file, or one of: {}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(what: RecordWhat) -> Result<Wanted> {
        Wanted::new(&what)
    }

    fn of_file(text: &str) -> Result<Wanted> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.toml");
        std::fs::write(&path, text).expect("written");
        wanted(RecordWhat {
            event_file: vec![path.to_str().expect("UTF-8").to_owned()],
            ..RecordWhat::default()
        })
    }

    #[test]
    fn an_event_file_has_events_filters_and_probes_by_name() {
        let text = "events = ['sched:sched_waking']\nfilter = ['got: size > 100']\n\
                    [uprobe.got]\nplace = 'libc.so.6:malloc'\nfields = ['size=arg1:size_t']\n\
                    [uretprobe.gave]\nplace = 'libc.so.6:malloc'\n";
        let wanted = of_file(text).expect("sound");
        assert_eq!(wanted.events, ["?sched:sched_waking"]);
        assert_eq!(wanted.filters, ["got: size > 100"]);
        let names: Vec<_> = wanted.probes.iter().map(|probe| &probe.name).collect();
        assert_eq!(names, ["got", "gave"]);
    }

    #[test]
    fn what_makes_no_sense_in_a_file_is_refused_with_its_place() {
        let check = |text: &str, expect: &str| {
            let error = of_file(text).expect_err(expect);
            assert!(error.what().contains(expect), "{error:#}");
            assert!(error.value_found().is_some() && error.fixed_by().is_some());
        };
        check("evnts = []", "line 1, column 1");
        check("[uprobe.x]\nplace = 'a:b'\nfield = []", "line 3, column 1");
        check("[uprobe.x]\nfields = []", "line 1");
        check(
            "[uprobe.x]\nplace = 'a:b'\nfields = ['n=arg7']",
            "at column 9: registers hold",
        );
    }

    #[test]
    fn shipped_files_make_sense_and_a_file_that_is_not_there_names_them() {
        for (name, _) in SHIPPED {
            let what = RecordWhat {
                event_file: vec![(*name).to_owned()],
                ..RecordWhat::default()
            };
            let wanted = wanted(what).expect(name);
            assert!(!wanted.events.is_empty() || !wanted.probes.is_empty());
        }
        let what = RecordWhat {
            event_file: vec!["lokcing".to_owned()],
            ..RecordWhat::default()
        };
        let error = wanted(what).expect_err("no such file");
        assert!(error.fixed_by().is_some_and(|fix| fix.contains("locking")));
    }

    #[test]
    fn probes_and_functions_alone_come_with_who_has_the_cpu() {
        let what = RecordWhat {
            uprobe: vec!["libc.so.6:malloc".to_owned()],
            ..RecordWhat::default()
        };
        assert_eq!(wanted(what).expect("sound").events, [SWITCH]);
        let what = RecordWhat {
            functions: vec!["vfs_*".to_owned()],
            ..RecordWhat::default()
        };
        assert_eq!(wanted(what).expect("sound").events, [SWITCH]);
    }
}
