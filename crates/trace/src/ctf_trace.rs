//! All CTF traces below one root, as one trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ctf::reader::TraceFiles;
use ctf::writer::EnvValue;
use ctf::{LOSSES_BETWEEN, LOSSES_KEY};
use event::{ClassId, Clock, Cpu, Duration, EventClass, Result};

use crate::TraceInfo;

/// The CTF traces of one root, the kernel's first.
pub(crate) struct CtfTrace {
    pub parts: Vec<Part>,
}

/// One CTF trace with what places it among the others.
pub(crate) struct Part {
    pub files: TraceFiles,
    /// Its directory relative to the root, empty or with a slash at the end.
    pub prefix: String,
    /// Its first class in the list of all.
    pub first_class: u32,
    /// To add to its times, so that they are on the clock of the first part.
    pub shift_ns: i64,
    /// Whether a loss lies between two packets, not somewhere inside of the second.
    pub losses_between: bool,
    pub environment: BTreeMap<String, String>,
}

impl CtfTrace {
    /// Opens the directories, given with their prefixes.
    pub fn open(dirs: Vec<(PathBuf, String)>) -> Result<CtfTrace> {
        let mut parts = Vec::with_capacity(dirs.len());
        for (dir, prefix) in dirs {
            let files = TraceFiles::open(&dir)?;
            let environment = environment(&files);
            let losses_between = environment
                .get(LOSSES_KEY)
                .is_some_and(|v| v == LOSSES_BETWEEN);
            parts.push(Part {
                files,
                prefix,
                first_class: 0,
                shift_ns: 0,
                losses_between,
                environment,
            });
        }
        let is_kernel = |part: &Part| {
            part.environment
                .get("domain")
                .is_some_and(|d| d == "kernel")
        };
        parts.sort_by_key(|part| !is_kernel(part));
        let base_ns = parts.first().map_or(0, Part::wall_offset_ns);
        let mut first_class = 0;
        for part in &mut parts {
            part.first_class = first_class;
            first_class += part.files.schema().classes.len() as u32;
            part.shift_ns = part.wall_offset_ns().saturating_sub(base_ns);
        }
        Ok(CtfTrace { parts })
    }

    /// Classes of all parts, numbered through.
    pub fn classes(&self) -> Vec<EventClass> {
        let mut classes = Vec::new();
        for class in self
            .parts
            .iter()
            .flat_map(|part| &part.files.schema().classes)
        {
            let id = ClassId(classes.len() as u32);
            classes.push(EventClass {
                id,
                ..class.clone()
            });
        }
        classes
    }

    /// Facts of the first part, CPUs of all.
    pub fn info(&self) -> TraceInfo {
        let Some(first) = self.parts.first() else {
            return TraceInfo::default();
        };
        let clock = first.files.schema().base_clock();
        let monotonic = clock.is_some_and(|clock| clock.name == "monotonic");
        let mut cpus: Vec<Cpu> = self.parts.iter().flat_map(Part::cpus).collect();
        cpus.sort_unstable();
        cpus.dedup();
        TraceInfo {
            clock: if monotonic {
                Clock::Monotonic
            } else {
                Clock::Foreign
            },
            wall_offset: Duration::from_ns(first.wall_offset_ns()),
            environment: first.environment.clone(),
            cpus,
        }
    }

    pub fn environment_of(&self, class: ClassId) -> Option<&BTreeMap<String, String>> {
        self.part_of(class).map(|part| &part.environment)
    }

    pub fn has_payload(&self, class: ClassId) -> bool {
        let has = |part: &Part| {
            let id = ClassId(class.0 - part.first_class);
            part.files.schema().has_payload(id)
        };
        self.part_of(class).is_some_and(has)
    }

    fn part_of(&self, class: ClassId) -> Option<&Part> {
        let after = self
            .parts
            .partition_point(|part| part.first_class <= class.0);
        self.parts.get(after.checked_sub(1)?)
    }
}

impl Part {
    fn wall_offset_ns(&self) -> i64 {
        self.files
            .schema()
            .base_clock()
            .map_or(0, |clock| clock.wall_offset_ns())
    }

    /// The CPUs of the streams.
    fn cpus(&self) -> Vec<Cpu> {
        let indexes = self.files.indexes().iter();
        indexes.filter_map(|index| index.cpu.map(Cpu)).collect()
    }
}

fn environment(files: &TraceFiles) -> BTreeMap<String, String> {
    let entry = |(name, value): &(String, EnvValue)| match value {
        EnvValue::Text(text) => (name.clone(), text.clone()),
        EnvValue::Integer(number) => (name.clone(), number.to_string()),
    };
    files.schema().environment.iter().map(entry).collect()
}
