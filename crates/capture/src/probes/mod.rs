//! Probes in programs and in the kernel: events that were not there before, with fields by
//! expression. [`spec`] reads what was typed, [`fetch`] says it in the kernel's words, [`target`]
//! finds the code.

mod fetch;
mod marker;
mod spec;
mod target;
mod value;

use std::collections::BTreeSet;

use event::{Error, ErrorKind, Result};
use ftrace::{DynamicEvents, EventName, Tracefs};

pub use spec::{Probe, ProbeKind};
use target::Target;

impl Probe {
    /// Reads a probe.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with the column of what makes no sense.
    pub fn parse(kind: ProbeKind, text: &str) -> Result<Probe> {
        let parsed = spec::parse(kind, text).and_then(|probe| {
            fetch::check(&probe)?;
            Ok(probe)
        });
        parsed.map_err(|fault| fault.into_error(kind, text))
    }
}

/// Probes that are in place; gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Probes {
    made: DynamicEvents,
    /// What could not be had of them.
    pub notes: Vec<String>,
}

impl Probes {
    /// Puts all of `probes` in place, or none.
    pub fn install(tracefs: &Tracefs, probes: &[Probe]) -> Result<Probes> {
        let mut names = BTreeSet::new();
        let known = tracefs.available_events()?;
        let mut installed = Probes {
            made: DynamicEvents::new(tracefs)?,
            notes: Vec::new(),
        };
        for probe in probes {
            let is_known = known.iter().any(|event| event.name == probe.name);
            if is_known || !names.insert(&probe.name) {
                let what = "two events of one name";
                return Err(Error::new(ErrorKind::InvalidInput, what)
                    .found(format!("'{}' in '{}'", probe.name, probe.text))
                    .fix("give the probe another name, as in OTHER=PLACE"));
            }
            installed.install_one(tracefs, probe)?;
        }
        Ok(installed)
    }

    fn install_one(&mut self, tracefs: &Tracefs, probe: &Probe) -> Result<()> {
        require(tracefs, probe)?;
        let targets = target::find(probe)?;
        if targets.len() > 1 && probe.kind != ProbeKind::Usdt {
            let (count, symbol, file) = (targets.len(), &probe.symbol, &probe.file);
            let note = format!(
                "{}: {count} functions of {file} are called {symbol}",
                probe.name
            );
            self.notes.push(note);
        }
        for (place, target) in targets.into_iter().enumerate() {
            let (fields, left_out) = fetch::fields(probe, &target)?;
            self.notes.extend(left_out);
            let definition = format!("{} {}", target.place(), fields.join(" "));
            let made = self
                .made
                .make(probe.kind.letter(), &probe.name, definition.trim_end());
            match made {
                Ok(_) => (),
                // The same marker elsewhere, with arguments of other kinds.
                Err(error) if place > 0 && error.kind() == ErrorKind::AlreadyExists => {
                    let name = format!("{}_{}", probe.name, place + 1);
                    self.made
                        .make(probe.kind.letter(), &name, definition.trim_end())?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Their events.
    pub fn events(&self) -> &[EventName] {
        self.made.events()
    }
}

/// Refuses what this kernel cannot do.
fn require(tracefs: &Tracefs, probe: &Probe) -> Result<()> {
    let (file, option) = match probe.kind.is_of_kernel() {
        true => ("kprobe_events", "CONFIG_KPROBE_EVENTS"),
        false => ("uprobe_events", "CONFIG_UPROBE_EVENTS"),
    };
    if tracefs.has(file) {
        return Ok(());
    }
    let what = match probe.kind.is_of_kernel() {
        true => "this kernel has no probes in itself",
        false => "this kernel has no probes in programs",
    };
    Err(Error::new(ErrorKind::Unsupported, what)
        .found(format!("no {} in {}", file, tracefs.root().display()))
        .fix(format!("use a kernel with {option}=y; '{}'", probe.text)))
}

impl Target {
    /// Where it is, in the kernel's words.
    fn place(&self) -> String {
        match self {
            Target::Function { symbol, offset } if *offset == 0 => symbol.clone(),
            Target::Function { symbol, offset } => format!("{symbol}+{offset}"),
            Target::Code { path, offset } => format!("{}:{offset:#x}", path.display()),
            Target::Marker { path, marker } => {
                let semaphore = marker.semaphore_offset;
                let counter = semaphore.map(|at| format!("({at:#x})")).unwrap_or_default();
                format!("{}:{:#x}{counter}", path.display(), marker.offset)
            }
        }
    }
}
