//! A snapshot on disk: the flight recorder's pages and the evidence, as one CTF trace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpf_host::Gone;
use ctf::writer::{EnvValue, StagedDir};
use event::evidence::{Evidence, Hit};
use event::{Cpu, Duration, Instant, Result, Tid, TimeRange};
use ftrace::{EventName, Formats, Page};

use crate::functions::{self, SharedFunctions};
use crate::heartbeat::Heartbeat;
use crate::kernel_ctf::{
    Before, CpuConverter, CpuTotals, KernelClasses, KernelContexts, ThreadGroups,
};
use crate::kernel_trace::KernelTrace;
use crate::pages::{CpuPages, Pages};
use crate::statedump::{OfMemory, StateDump};
use crate::user::{self, Held, UserConfig, UserRecorder, UserSummary, Whose};
use crate::{clock, environment, evidence};
use host::capabilities::Capabilities;
use host::groups::GroupLimits;

/// What a snapshot says of the machine, gathered while nobody waits.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFacts {
    /// Tasks and interrupts.
    pub dump: StateDump,
    /// Kernel functions, as [`crate::kernel_functions`] gives them.
    pub functions: Arc<str>,
    shared: SharedFunctions,
    environment: Vec<(String, EnvValue)>,
    wall_offset_ns: i64,
    rings: Option<Rings>,
    contexts: KernelContexts,
}

/// Rings of applications that become part of each snapshot.
#[derive(Clone, Debug)]
struct Rings {
    directory: Option<PathBuf>,
    /// Whose they are.
    recorder: u64,
    /// What was written before is left out.
    since: Instant,
}

impl SnapshotFacts {
    /// Reads the tables of this machine. `command_line` is how rtscope was called.
    pub fn collect(facts: &Capabilities, command_line: &str) -> Self {
        SnapshotFacts {
            dump: StateDump::collect(),
            functions: functions::kernel_functions().into(),
            shared: SharedFunctions::default(),
            environment: environment::environment("snapshot", command_line, facts),
            wall_offset_ns: clock::wall_offset_ns(),
            rings: None,
            contexts: KernelContexts::default(),
        }
    }

    /// Writes the functions once, so that snapshots below `output` need only link them.
    pub(crate) fn share_functions(mut self, output: &Path) -> Self {
        self.shared = SharedFunctions::write(output, &self.functions);
        self
    }

    /// With the rings of the applications that a recorder keeps in flight.
    pub(crate) fn with_rings(mut self, user: Option<(&UserConfig, &UserRecorder)>) -> Self {
        self.rings = user.map(|(user, recorder)| Rings {
            directory: user.directory().map(Path::to_owned),
            recorder: recorder.id(),
            since: Instant::MIN,
        });
        self
    }

    /// Leaves out what applications wrote before `since`.
    pub(crate) fn since(&mut self, since: Instant) {
        if let Some(rings) = &mut self.rings {
            rings.since = since;
        }
    }

    /// Reads what changes anew.
    pub(crate) fn refresh(&mut self) {
        self.dump = StateDump::collect_all(OfMemory {
            programs: self.contexts.stacks().user,
            ..OfMemory::default()
        });
        self.wall_offset_ns = clock::wall_offset_ns();
    }

    /// Says which timers leave evidence: those that are late by at least `floor`.
    pub fn with_late_timer_floor(mut self, floor: Duration) -> Self {
        let value = EnvValue::Integer(floor.as_ns());
        self.environment
            .push(("rtscope_late_timer_floor_ns".to_owned(), value));
        self
    }

    /// Says that the application called, and that nothing was longer than is usual.
    pub(crate) fn with_open_call(mut self, words: &str) -> Self {
        let value = EnvValue::Text(words.to_owned());
        self.environment
            .push(("rtscope_open_call".to_owned(), value));
        self
    }

    /// Names the events of which filters left some out.
    pub(crate) fn with_filters(mut self, filters: &[(EventName, String)]) -> Self {
        self.environment.extend(environment::filtered(filters));
        self
    }

    /// Each event of the kernel carries these.
    pub(crate) fn with_contexts(mut self, contexts: KernelContexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// Says which CPUs beat, and how often, while the trace was taken.
    pub(crate) fn with_heartbeat(mut self, heartbeat: Option<&Heartbeat>) -> Self {
        let beats = heartbeat.map(Heartbeat::environment);
        self.environment.extend(beats.into_iter().flatten());
        self
    }
}

/// A CPU whose pages begin after a hit's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// The hit.
    pub hit: u64,
    /// The CPU.
    pub cpu: Cpu,
    /// From the hit's origin to the CPU's first event; to the hit's end when it has none.
    pub range: TimeRange,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Where.
    pub path: PathBuf,
    /// Per CPU: events, losses inside the window, begin and end.
    pub cpus: Vec<CpuTotals>,
    /// Events of the evidence stream.
    pub evidence_events: u64,
    /// Events of the state dump.
    pub dump_events: u64,
    /// What the rings of applications gave.
    pub user: UserSummary,
    /// What the window does not hold of its hits; empty when it holds them whole.
    pub missing: Vec<MissingPart>,
}

impl SnapshotSummary {
    /// Events of the kernel, on all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.events).sum()
    }

    /// Events lost inside the window, on all CPUs.
    pub fn discarded(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.discarded).sum()
    }
}

/// Writes the snapshot `root`. It appears whole or not at all.
///
/// What the rings overwrote before the first page of a CPU is history; what is missing between two
/// of its pages is a loss. Where the rings stood still, that counts as at least one lost event of
/// each CPU.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when `root` is there; [`event::ErrorKind::StorageFull`]
/// when the disk is (nothing is left behind then); otherwise what the operating system says.
pub fn write_snapshot(
    root: &Path,
    pages: &Pages,
    formats: &Formats,
    seen: &Seen<'_>,
    facts: &SnapshotFacts,
) -> Result<SnapshotSummary> {
    let staged = StagedDir::create(root)?;
    let classes = KernelClasses::compile(formats).carrying(&facts.contexts);
    let encoded = evidence::encode(seen.hits, seen.evidence);
    let mut environment = facts.environment.clone();
    environment.push(evidence::promise(&encoded));
    let cpus: Vec<Cpu> = pages.cpus.iter().map(|pages| pages.cpu).collect();
    environment.push(environment::recorded(&cpus));
    let mut trace = KernelTrace::create(
        staged.path(),
        (Arc::new(classes), &[]),
        environment,
        facts.wall_offset_ns,
        true,
    )?;
    let groups = Arc::new(ThreadGroups::new(facts.dump.thread_groups()));
    let window = window_of(pages);
    let mut cpus = Vec::with_capacity(pages.cpus.len());
    for cpu_pages in &pages.cpus {
        cpus.push(convert(
            (cpu_pages, pages),
            trace.cpu(cpu_pages.cpu, &groups)?,
            formats,
            window,
        )?);
    }
    let evidence_events = trace.evidence(&encoded, seen.gone, window)?;
    // Tables that were read before the window are valid at its begin.
    let mut dump = facts.dump.clone();
    dump.begin = dump.begin.max(window.begin);
    dump.end = dump.end.max(dump.begin);
    dump.limits = seen.limits.to_vec();
    let dump_events = trace.state_dump(&dump, window)?;
    functions::write_functions(staged.path(), &facts.functions, &facts.shared)?;
    let user = match &facts.rings {
        Some(rings) => {
            let name = root.file_name().unwrap_or_default().to_string_lossy();
            let held = Held {
                directory: rings.directory.as_deref(),
                since: rings.since,
                recorder: Some(rings.recorder),
            };
            user::write_rings(staged.path(), &name, &held, Whose::All)?.0
        }
        None => UserSummary::default(),
    };
    let missing = missing_parts(seen.hits, &cpus);
    Ok(SnapshotSummary {
        path: staged.commit()?,
        cpus,
        evidence_events,
        dump_events,
        user,
        missing,
    })
}

/// What a watch saw, for a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// Who was late.
    pub hits: &'a [Hit],
    /// What the kernel's programs noted beside it.
    pub evidence: &'a [Evidence],
    /// What of that was overwritten.
    pub gone: &'a [Gone],
    /// What control groups gave those that it is about.
    pub limits: &'a [(Tid, GroupLimits)],
}

/// From the first to the last event of all CPUs, or to where the rings stood still behind that.
fn window_of(pages: &Pages) -> TimeRange {
    let begins = pages.cpus.iter().filter_map(|cpu| cpu.range());
    let begin = begins.map(|range| range.begin).min();
    let stops = pages.stops.iter().map(|stop| stop.end);
    TimeRange {
        begin: begin.unwrap_or_default(),
        end: pages
            .newest()
            .into_iter()
            .chain(stops)
            .max()
            .unwrap_or_default(),
    }
}

/// Writes one CPU's pages. All rings are read up to one instant, so that a stream reaches to the
/// window's end; where nothing was overwritten, it also reaches back to the begin.
fn convert(
    (pages, of): (&CpuPages, &Pages),
    converter: CpuConverter,
    formats: &Formats,
    window: TimeRange,
) -> Result<CpuTotals> {
    let mut converter = converter.without(of.until, &of.stops);
    let overwritten =
        |page: &[u8]| Page::parse(&formats.layout, page).is_ok_and(|page| page.missed.is_some());
    if !pages.iter().next().is_some_and(overwritten) {
        converter.covers(window.begin)?;
    }
    let mut before = Before::History;
    for span in &pages.spans {
        for page in span.iter() {
            converter.page(page, before, 1)?;
            before = Before::Running;
        }
    }
    converter.covers(window.end)?;
    converter.finish()
}

/// For each hit, the CPUs of its steps whose pages begin after its origin.
fn missing_parts(hits: &[Hit], cpus: &[CpuTotals]) -> Vec<MissingPart> {
    let mut missing = Vec::new();
    for hit in hits {
        let mut used: Vec<_> = hit.steps.iter().map(|step| step.cpu).collect();
        used.sort();
        used.dedup();
        for cpu in used {
            let window = cpus
                .iter()
                .find(|totals| totals.cpu == cpu)
                .and_then(|t| t.window);
            let begin = window.map_or(Instant::MAX, |window| window.begin);
            if begin > hit.origin {
                let range = TimeRange {
                    begin: hit.origin,
                    end: begin.min(hit.end),
                };
                missing.push(MissingPart {
                    hit: hit.id,
                    cpu,
                    range,
                });
            }
        }
    }
    missing
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
