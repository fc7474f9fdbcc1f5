//! The flight recorder: an instance of our own whose rings are drained in one quick copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpf_host::{ContextConfig, ContextPlace, ContextRing, ContextWatch};
use event::{Cpu, Error, ErrorKind, Instant, Result, Tid, TimeRange};
use ftrace::{
    CpuStatistics, DynamicEvents, EventName, Formats, Instance, Page, PageLayout, PagePipe,
    StackKinds, Switch, Tracefs,
};

use crate::kernel_ctf::{KERNEL_STACK, KernelContexts, USER_STACK};
use crate::kernel_filter;
use crate::pages::{CpuPages, PageBlock, PageSpan, Pages};
use crate::probes::Probes;
use crate::select::{EventSelection, Selected};
use crate::traced_functions::{FunctionPatterns, TracedFunctions};
use crate::{clock, housekeeping};

/// The rings of what BPF reads at the events of each CPU.
pub(crate) type ContextRings = BTreeMap<Cpu, ContextRing>;

/// Who descends from whom: recorded for whoever tracks tasks.
pub(crate) const FORK: &str = "sched:sched_process_fork";
/// Says who has a CPU.
const SWITCH: &str = "sched:sched_switch";

/// What a full ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It overwrites the oldest events: a flight recorder. What it overwrites is history, no loss.
    Overwrite,
    /// It is emptied while it runs. The kernel overwrites here too, because only then it says
    /// where, and how many, events are missing; each of them is a loss.
    Stream,
    /// It is emptied while it runs, and refuses the newest events when it is full.
    Discard,
}

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// The events.
    pub events: EventSelection,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// What a full ring does.
    pub mode: Mode,
    /// Stop in the kernel as soon as this task is about to be woken.
    pub stop_trigger: Option<StopTrigger>,
    /// Only these CPUs; all when none are named.
    pub cpus: Option<Vec<Cpu>>,
    /// Filters, each on one event, in the language of every verb.
    pub filters: Vec<(EventName, String)>,
    /// Events that somebody else records.
    pub without: BTreeSet<EventName>,
    /// Functions of the kernel.
    pub functions: FunctionPatterns,
    /// Only what these tasks do, and all that descend from them; else what all do.
    pub tracked: Option<Vec<Tid>>,
    /// What events carry: stacks that the kernel writes behind each, and what BPF reads at it.
    pub contexts: KernelContexts,
}

/// Whose wake-up stops a recorder.
#[derive(Clone, Debug)]
pub struct StopTrigger {
    /// Its name, at most 15 bytes.
    pub comm: String,
    /// Only while it is a real-time task: what it waits for as a fair one stops nothing.
    pub real_time: bool,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        RecorderConfig {
            events: EventSelection::default(),
            buffer_bytes_per_cpu: 4 << 20,
            mode: Mode::Overwrite,
            stop_trigger: None,
            cpus: None,
            filters: Vec::new(),
            without: BTreeSet::new(),
            functions: FunctionPatterns::default(),
            tracked: None,
            contexts: KernelContexts::default(),
        }
    }
}

/// A running flight recorder. Dropping it removes the instance.
#[derive(Debug)]
pub struct Recorder {
    // Pipes first: an instance with open pipes cannot be removed.
    pipes: Vec<PagePipe>,
    instance: Instance,
    formats: Arc<Formats>,
    selected: Selected,
    buffer_bytes_per_cpu: usize,
    mode: Mode,
    /// Memory for the next drain of each CPU, touched before it is needed.
    spares: Vec<Vec<u8>>,
    /// When it ran again behind a stop, since the last drain.
    resumed: Vec<Instant>,
    // Behind the instance: an event that is enabled cannot be removed.
    probes: Option<Probes>,
    contexts: Option<ContextWatch>,
    functions: Option<TracedFunctions>,
}

impl Recorder {
    /// Makes the instance, switches the events on, starts to record.
    ///
    /// # Errors
    /// When tracefs is out of reach, an event does not exist, or the kernel refuses a setting.
    pub fn start(config: &RecorderConfig) -> Result<Recorder> {
        let tracefs = Tracefs::find()?;
        let available = tracefs.available_events()?;
        let mut selected = config.events.resolve(&available)?;
        selected
            .events
            .retain(|event| !config.without.contains(event));
        let is_asked = |event: &EventName| config.tracked.is_none() || event.to_string() != FORK;
        if !selected.events.iter().any(is_asked) && !config.without.is_empty() {
            // What the others record is a task's, and only switches say whose.
            let is_switch = |event: &&EventName| event.to_string() == SWITCH;
            selected
                .events
                .extend(available.iter().find(is_switch).cloned());
        }
        if selected.events.is_empty() {
            return Err(
                Error::new(ErrorKind::NotFound, "this kernel has none of these events")
                    .found(selected.absent.join(" "))
                    .fix("rtscope record --list-events"),
            );
        }
        remove_dead(&tracefs);
        // Before the instance, and so dropped behind it: what it has enabled cannot be removed.
        let functions;
        let instance = Instance::create(&tracefs)?;
        functions = TracedFunctions::prepare(&tracefs, &instance, &config.functions)?;
        let stacks = config.contexts.stacks();
        let formats = formats(&tracefs, &selected, functions.as_ref(), stacks)?;
        let filters = kernel_filter::filters(&config.filters, &formats)?;
        let recorded = config
            .cpus
            .clone()
            .unwrap_or_else(|| instance.cpus().to_vec());
        // Before the events are switched on: it has to run before the kernel writes them.
        let contexts = read_contexts(config, &selected, &recorded)?;
        set_up(&instance, config, &selected, &filters)?;
        if let Some(functions) = &functions {
            functions.switch_on(&instance)?;
        }
        let pipes: Result<Vec<_>> = recorded
            .iter()
            .map(|cpu| instance.open_pipe(*cpu, &formats.layout))
            .collect();
        let mut recorder = Recorder {
            pipes: pipes?,
            instance,
            formats,
            selected,
            buffer_bytes_per_cpu: config.buffer_bytes_per_cpu,
            mode: config.mode,
            spares: Vec::new(),
            resumed: Vec::new(),
            probes: None,
            contexts,
            functions,
        };
        if config.mode == Mode::Overwrite {
            recorder.refill_spares();
        }
        recorder.instance.start()?;
        Ok(recorder)
    }

    /// Keeps `probes` in place for as long as it records.
    pub(crate) fn with_probes(mut self, probes: Option<Probes>) -> Self {
        self.probes = probes;
        self
    }

    /// What could not be had of its probes and functions.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let probes = self.probes.iter().flat_map(|probes| &probes.notes);
        let functions = self.functions.iter().flat_map(|traced| &traced.notes);
        probes.chain(functions).cloned().collect()
    }

    /// Whether it records now; a hit's trigger may have stopped it.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn is_running(&self) -> Result<bool> {
        self.instance.is_running()
    }

    /// Its switch, to be looked at from another thread.
    pub fn switch(&self) -> Switch {
        self.instance.switch()
    }

    /// Stops; what was recorded stays in the rings.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn stop(&self) -> Result<()> {
        self.instance.stop()
    }

    /// Records again; gives since when.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn resume(&mut self) -> Result<Instant> {
        let now = clock::monotonic();
        self.resumed.push(now);
        self.instance.start()?;
        Ok(now)
    }

    /// Takes out of the rings what was recorded before `until`: a copy, of which nothing but the
    /// begin of each page is looked at. The recorder need not stop for it: what comes meanwhile is
    /// for the next drain, but for a few events. Makes memory ready for that.
    ///
    /// # Errors
    /// When the kernel refuses; the pages read so far are lost.
    pub fn drain(&mut self, until: Instant) -> Result<Pages> {
        let limit = self.ring_bytes();
        let mut cpus = Vec::with_capacity(self.pipes.len());
        for pipe in &mut self.pipes {
            let mut bytes = self.spares.pop().unwrap_or_default();
            read_until(pipe, &self.formats.layout, &mut bytes, (until, limit))?;
            if bytes.len() <= limit / SMALL_PART {
                // A full ring's memory for little: hits in short order would fill the history.
                let kept = bytes.clone();
                self.spares.push(bytes);
                bytes = kept;
            }
            let block = PageBlock::new(pipe.cpu(), self.formats.layout, bytes);
            cpus.push(CpuPages {
                cpu: pipe.cpu(),
                spans: vec![PageSpan::whole(Arc::new(block))],
            });
        }
        self.refill_spares();
        let mut pages = Pages {
            cpus,
            until,
            stops: Vec::new(),
        };
        // All rings stop at once: it ran until the last event of any, before `until`. Since when it
        // stood still before an earlier start nobody knows.
        let newest = pages.newest();
        let stop = |end: Instant| TimeRange {
            begin: newest.filter(|_| end == until).unwrap_or(Instant::MIN),
            end,
        };
        pages.stops = std::mem::take(&mut self.resumed)
            .into_iter()
            .map(stop)
            .collect();
        Ok(pages)
    }

    /// The rings of what BPF reads at events, for whoever converts these.
    pub(crate) fn context_rings(&mut self) -> ContextRings {
        let cpus = self.cpus();
        let rings = self.contexts.as_mut().map(|contexts| {
            let ring = |cpu: Cpu| Some((cpu, contexts.ring(cpu)?));
            cpus.into_iter().filter_map(ring).collect()
        });
        rings.unwrap_or_default()
    }

    /// What each CPU's ring has counted.
    ///
    /// # Errors
    /// When tracefs refuses.
    pub fn statistics(&self) -> Result<Vec<CpuStatistics>> {
        self.pipes
            .iter()
            .map(|pipe| self.instance.statistics(pipe.cpu()))
            .collect()
    }

    /// Whose events alone are recorded now, where not everybody's are.
    pub(crate) fn tracked(&self) -> Result<Vec<Tid>> {
        self.instance.tracked()
    }

    /// What is needed to understand the pages.
    pub fn formats(&self) -> Arc<Formats> {
        Arc::clone(&self.formats)
    }

    /// The events that are recorded, and those of the asked sets that this kernel does not have.
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// The size of each CPU's ring.
    pub fn buffer_bytes_per_cpu(&self) -> usize {
        self.buffer_bytes_per_cpu
    }

    /// What its full rings do.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The CPUs that are recorded.
    pub fn cpus(&self) -> Vec<Cpu> {
        self.pipes.iter().map(PagePipe::cpu).collect()
    }

    /// The instance, and the pipes of the recorded CPUs.
    pub(crate) fn parts(&mut self) -> (&Instance, &mut [PagePipe]) {
        (&self.instance, &mut self.pipes)
    }

    /// All that one CPU's ring can hold, headers included.
    fn ring_bytes(&self) -> usize {
        ring_bytes(&self.formats.layout, self.buffer_bytes_per_cpu)
    }

    /// The memory that so many drains take, however little was in the rings.
    pub fn drains_bytes(&self, drains: usize) -> usize {
        drains * on(&self.cpus()) * self.ring_bytes()
    }

    fn refill_spares(&mut self) {
        let limit = self.ring_bytes();
        let page = self.formats.layout.page_size_bytes();
        let wanted = on(&self.cpus());
        while self.spares.len() < wanted {
            let mut spare = Vec::with_capacity(limit);
            // Written, so that the pages exist when they are needed.
            while spare.len() < limit {
                spare.resize(limit.min(spare.len() + page), 1u8);
                housekeeping::let_equals_run();
            }
            spare.clear();
            self.spares.push(spare);
        }
    }
}

/// How many of `cpus` are on: a machine may have room for many more, and those have no rings.
fn on(cpus: &[Cpu]) -> usize {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = Cpu::parse_list(&online).unwrap_or_default();
    let on = cpus.iter().filter(|cpu| online.contains(cpu)).count();
    if on == 0 { cpus.len() } else { on }
}

/// Removes the instances of recorders that were killed: each goes on recording, at a cost for all.
fn remove_dead(tracefs: &Tracefs) {
    // What cannot be listed or removed is `doctor`'s to tell; it keeps nobody from recording.
    for dead in ftrace::Leftover::list(tracefs).unwrap_or_default() {
        dead.remove_if_unused();
    }
}

/// What is needed to understand the events that were selected, and those of functions.
fn formats(
    tracefs: &Tracefs,
    selected: &Selected,
    functions: Option<&TracedFunctions>,
    stacks: StackKinds,
) -> Result<Arc<Formats>> {
    let mut events = selected.events.clone();
    let of_stacks = [(stacks.kernel, KERNEL_STACK), (stacks.user, USER_STACK)];
    let of_stacks = of_stacks.iter().filter(|(is_wanted, _)| *is_wanted);
    events.extend(of_stacks.filter_map(|(_, name)| EventName::parse(name)));
    events.extend(functions.map(TracedFunctions::events).unwrap_or_default());
    Ok(Arc::new(Formats::load(tracefs, &events)?))
}

/// Where BPF reads what an event carries.
fn place(event: &EventName) -> ContextPlace {
    let starts = |begin: &str| event.name.starts_with(begin);
    let in_interrupt = match event.system.as_str() {
        "irq_vectors" | "nmi" => true,
        "irq" => starts("irq_handler_"),
        "timer" => starts("hrtimer_expire_"),
        _ => false,
    };
    ContextPlace {
        name: event.name.clone(),
        in_interrupt,
    }
}

/// Starts to read what ftrace does not note, where that is asked for.
fn read_contexts(
    config: &RecorderConfig,
    selected: &Selected,
    cpus: &[Cpu],
) -> Result<Option<ContextWatch>> {
    let Some((wanted, counters)) = config.contexts.asked() else {
        return Ok(None);
    };
    let own = DynamicEvents::group();
    let has_tracepoint = |event: &&EventName| event.system != "ftrace" && event.system != own;
    let tracepoints = selected.events.iter().filter(has_tracepoint);
    let watch = ContextWatch::start(&ContextConfig {
        wanted,
        counters: counters.to_vec(),
        tracepoints: tracepoints.map(place).collect(),
        buffer_bytes_per_cpu: config.buffer_bytes_per_cpu,
        cpus: cpus.to_vec(),
    })?;
    Ok(Some(watch))
}

fn set_up(
    instance: &Instance,
    config: &RecorderConfig,
    selected: &Selected,
    filters: &BTreeMap<&EventName, String>,
) -> Result<()> {
    instance.set_buffer_size(config.buffer_bytes_per_cpu)?;
    instance.set_overwrite(config.mode != Mode::Discard)?;
    instance.set_stacks(config.contexts.stacks())?;
    if let Some(cpus) = &config.cpus {
        instance.set_cpus(cpus)?;
    }
    if let Some(tasks) = &config.tracked {
        instance.track_alone(tasks, !config.functions.is_empty())?;
    }
    for (event, words) in filters {
        instance.set_filter(event, words)?;
    }
    for event in &selected.events {
        instance.enable(event)?;
    }
    if let Some(trigger) = &config.stop_trigger {
        instance.set_trigger(&waking(), &stop_trigger(trigger)?)?;
    }
    Ok(())
}

fn waking() -> EventName {
    EventName {
        system: "sched".to_owned(),
        name: "sched_waking".to_owned(),
    }
}

fn stop_trigger(StopTrigger { comm, real_time }: &StopTrigger) -> Result<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b':' | b'.');
    if comm.is_empty() || comm.len() > 15 || !comm.bytes().all(plain) {
        return Err(
            Error::new(ErrorKind::InvalidInput, "not a name that a task can have")
                .found(format!("'{comm}'"))
                .fix("use 1 to 15 letters, digits, '_', '-', '/', ':' or '.'"),
        );
    }
    let only = if *real_time { " && prio < 100" } else { "" };
    Ok(format!("traceoff if comm == \"{comm}\"{only}"))
}

/// The kernel takes the size of a ring for room for events, without the pages' headers; a page is
/// the reader's, and one more may fill while another CPU still writes.
fn ring_bytes(layout: &PageLayout, buffer_bytes_per_cpu: usize) -> usize {
    let pages = buffer_bytes_per_cpu.div_ceil(layout.data_size_bytes);
    (pages + 2) * layout.page_size_bytes()
}

/// A drain that takes no more than this part of the ring is copied.
const SMALL_PART: usize = 16;

/// Reads the pages that begin before `until`, and at most one more.
fn read_until(
    pipe: &mut PagePipe,
    layout: &PageLayout,
    bytes: &mut Vec<u8>,
    (until, limit): (Instant, usize),
) -> Result<()> {
    let page = pipe.page_size_bytes();
    bytes.clear();
    while bytes.len() + page <= limit {
        let begin = bytes.len();
        bytes.resize(begin + page, 0);
        if !pipe.read_page(&mut bytes[begin..])? {
            bytes.truncate(begin);
            break;
        }
        let begins = Page::parse(layout, &bytes[begin..]).map(|page| page.time_ns);
        if begins.is_ok_and(|begin_ns| begin_ns >= until.as_ns().max(0) as u64) {
            break;
        }
        housekeeping::let_equals_run();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_more_bytes_than_its_size_because_pages_have_headers() {
        let check = |buffer_bytes: usize, pages: usize| {
            assert_eq!(ring_bytes(&PageLayout::LP64, buffer_bytes), pages * 4096);
        };
        check(4080, 1 + 2);
        check(4081, 2 + 2);
        check(4 << 20, 1029 + 2);
    }

    #[test]
    fn a_trigger_holds_only_a_name_that_a_task_can_have() {
        let of = |comm: &str, real_time| {
            stop_trigger(&StopTrigger {
                comm: comm.to_owned(),
                real_time,
            })
        };
        let expect = "traceoff if comm == \"rtscope-w0\"";
        assert_eq!(of("rtscope-w0", false).ok().as_deref(), Some(expect));
        let expect = "traceoff if comm == \"rtscope-w0\" && prio < 100";
        assert_eq!(of("rtscope-w0", true).ok().as_deref(), Some(expect));
        for comm in ["", "a-name-of-16-char", "x\" || 1", "a b"] {
            assert!(of(comm, false).is_err(), "{comm}");
        }
    }
}
