//! Functions of the kernel that an instance traces, by the kernel's function tracers.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

use event::{Error, ErrorKind, Result};

use crate::{EventName, Instance, Tracefs};

/// Says which functions an instance traces.
const FILTER: &str = "set_ftrace_filter";
/// How the kernel begins its answer where nothing limits it.
const UNLIMITED: u8 = b'#';

/// A tracer of the kernel that sees its functions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Where each begins and where it returns.
    FunctionGraph,
    /// Where each begins.
    Function,
}

impl Tracer {
    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Tracer::FunctionGraph => "function_graph",
            Tracer::Function => "function",
        }
    }

    /// The events that it writes.
    pub fn events(self) -> Vec<EventName> {
        let names: &[&str] = match self {
            Tracer::FunctionGraph => &["funcgraph_entry", "funcgraph_exit"],
            Tracer::Function => &["function"],
        };
        let event = |name: &&str| EventName {
            system: "ftrace".to_owned(),
            name: (*name).to_owned(),
        };
        names.iter().map(event).collect()
    }
}

impl Tracefs {
    /// The functions that this kernel traces, in its order; some names are there more than once.
    ///
    /// # Errors
    /// When this kernel has no such list, or keeps it from us.
    pub fn traceable_functions(&self) -> Result<Vec<String>> {
        let text = self.read("available_filter_functions")?;
        let first = |line: &str| line.split_ascii_whitespace().next().map(str::to_owned);
        Ok(text.lines().filter_map(first).collect())
    }
}

impl Instance {
    /// Whether `tracer` works in instances of this kernel. Older ones have `function_graph` in the
    /// first instance only, which is not ours.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn has_tracer(&self, tracer: Tracer) -> Result<bool> {
        let known = self.read("available_tracers")?;
        Ok(known
            .split_ascii_whitespace()
            .any(|word| word == tracer.name()))
    }

    /// Lets `tracer` trace the functions that match one of `patterns`, from the next
    /// [`Instance::start`] on. All of them match some: without a limit every function is traced.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with what the kernel says when it does not take a pattern.
    pub fn trace_functions(&self, tracer: Tracer, patterns: &[String]) -> Result<()> {
        let path = self.path().join(FILTER);
        for (place, pattern) in patterns.iter().enumerate() {
            let is_first = place == 0;
            let mut options = OpenOptions::new();
            options.write(true).append(!is_first).truncate(is_first);
            // What ends no line is looked at when the file is closed, and nobody hears of it.
            let written = options
                .open(&path)
                .and_then(|mut file| file.write_all(format!("{pattern}\n").as_bytes()));
            written.map_err(|cause| {
                let what = "the kernel does not trace these functions";
                Error::new(ErrorKind::InvalidInput, what)
                    .found(format!("'{pattern}': {cause}"))
                    .fix("available_filter_functions in tracefs lists those that it traces")
                    .cause(cause)
            })?;
        }
        if self.is_unlimited()? {
            let what = "the kernel took no limit of functions, and would trace all";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!("'{}' in {FILTER}", patterns.join(" ")))
                .fix("name other functions"));
        }
        self.write("current_tracer", tracer.name())
    }

    fn is_unlimited(&self) -> Result<bool> {
        let path = self.path().join(FILTER);
        let mut first = [0u8];
        let read = File::open(&path).and_then(|mut file| file.read(&mut first));
        let length =
            read.map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
        Ok(length == 0 || first[0] == UNLIMITED)
    }
}
