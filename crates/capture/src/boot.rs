//! The ring that recorded while the kernel started, as a trace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctf::writer::{EnvValue, StagedDir};
use event::{Cpu, Error, ErrorKind, Instant, Result, TimeRange};
use ftrace::{BOOT_INSTANCE, BootRing, Formats, Page, PagePipe, Tracefs, behind_monotonic_ns};

use crate::functions::{self, SharedFunctions};
use crate::kernel_ctf::{Before, CpuConverter, CpuTotals, KernelClasses, ThreadGroups};
use crate::kernel_trace::KernelTrace;
use crate::statedump::{OfMemory, StateDump};
use crate::{clock, environment};
use host::capabilities::Capabilities;

/// What a boot left.
#[derive(Clone, Debug)]
pub struct BootSummary {
    /// Where the trace is.
    pub path: PathBuf,
    /// Per CPU.
    pub cpus: Vec<CpuTotals>,
    /// From the first event to the last, on the trace's clock.
    pub window: TimeRange,
    /// Whether an earlier boot wrote it: its times are that boot's.
    pub is_of_earlier_boot: bool,
    /// Whether the ring is gone; in reserved memory it stays, switched off.
    pub is_removed: bool,
}

impl BootSummary {
    /// Events on all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.events).sum()
    }

    /// Lost events on all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.discarded).sum()
    }
}

/// One CPU's ring, and its first page: all rings' begins are known before any is written.
struct BootPipe {
    pipe: PagePipe,
    first: Option<Vec<u8>>,
}

impl BootPipe {
    fn open(ring: &BootRing, cpu: Cpu, formats: &Formats) -> Result<BootPipe> {
        let mut pipe = ring.instance().open_pipe(cpu, &formats.layout)?;
        let mut page = vec![0; pipe.page_size_bytes()];
        let first = pipe.read_page(&mut page)?.then_some(page);
        Ok(BootPipe { pipe, first })
    }

    fn begin_ns(&self, formats: &Formats) -> Option<u64> {
        let page = Page::parse(&formats.layout, self.first.as_ref()?).ok()?;
        let mut events = page.events().flatten();
        events.next().map(|event| event.time_ns)
    }
}

/// Writes what the ring of the boot holds into the trace `output`; the ring is empty afterwards.
///
/// # Errors
/// [`ErrorKind::NotFound`] when this boot made none, [`ErrorKind::AlreadyExists`] when the output
/// is there; otherwise what the operating system says.
pub fn import_boot(
    output: &Path,
    capabilities: &Capabilities,
    command_line: &str,
) -> Result<BootSummary> {
    let tracefs = Tracefs::find()?;
    let staged = StagedDir::create(output)?;
    let ring = BootRing::find(&tracefs)?.ok_or_else(no_ring)?;
    let name = crate::record::name_of(output);
    match write(
        &tracefs,
        &ring,
        &staged,
        capabilities,
        (&name, command_line),
    ) {
        Ok((cpus, window)) => {
            let is_of_earlier_boot = ring.is_of_earlier_boot;
            let path = staged.commit()?;
            Ok(BootSummary {
                path,
                cpus,
                window,
                is_of_earlier_boot,
                is_removed: ring.remove(),
            })
        }
        Err(error) => {
            // Its pages are gone as far as they were read; what is left may be asked for again.
            ring.keep();
            Err(error)
        }
    }
}

fn no_ring() -> Error {
    let words = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let is_asked = words.contains(&format!("trace_instance={BOOT_INSTANCE}"));
    let found = match is_asked {
        true => format!(
            "no instances/{BOOT_INSTANCE}, although the kernel's command line asks for it: it was \
             imported already, or this kernel does not know trace_instance= (6.3 and later do)"
        ),
        false => format!("no trace_instance={BOOT_INSTANCE} on the kernel's command line"),
    };
    Error::new(ErrorKind::NotFound, "this boot was not recorded")
        .found(found)
        .fix("boot with the words that 'rtscope record --at-boot' prints")
}

fn write(
    tracefs: &Tracefs,
    ring: &BootRing,
    staged: &StagedDir,
    capabilities: &Capabilities,
    (name, command_line): (&str, &str),
) -> Result<(Vec<CpuTotals>, TimeRange)> {
    let formats = Formats::load(tracefs, &ring.events)?;
    let is_ours = !ring.is_of_earlier_boot;
    // An earlier boot's clock is nobody's any more: its times stay as they are.
    let (shift_ns, offset_ns) = match is_ours {
        true => {
            let now_ns = || clock::monotonic().as_ns();
            let shift_ns = behind_monotonic_ns(tracefs, &ring.clock, now_ns)?;
            (shift_ns, clock::wall_offset_ns())
        }
        false => (0, 0),
    };
    let cpus = ring.instance().cpus();
    let pipes: Result<Vec<_>> = cpus
        .iter()
        .map(|cpu| BootPipe::open(ring, *cpu, &formats))
        .collect();
    let pipes = pipes?;
    let begin_ns = pipes
        .iter()
        .filter_map(|pipe| pipe.begin_ns(&formats))
        .min();
    let begin_ns = begin_ns.unwrap_or(0).saturating_add_signed(shift_ns);
    let begin = Instant::from_ns(begin_ns.min(i64::MAX as u64) as i64);

    let mut environment = environment::environment(name, command_line, capabilities);
    environment.extend(facts(ring));

    let dump = if is_ours {
        StateDump::collect_all(OfMemory::default())
    } else {
        StateDump::default()
    };
    let groups = Arc::new(ThreadGroups::new(dump.thread_groups()));
    let classes = Arc::new(KernelClasses::compile(&formats));
    let mut trace =
        KernelTrace::create(staged.path(), (classes, &[]), environment, offset_ns, false)?;
    let mut lanes = Vec::with_capacity(pipes.len());
    for pipe in pipes {
        let mut converter = trace.cpu(pipe.pipe.cpu(), &groups)?.shifted(shift_ns);
        converter.covers(begin)?;
        lanes.push((empty(pipe, &mut converter, ring)?, converter));
    }
    let end = lanes
        .iter()
        .map(|(last, _)| *last)
        .max()
        .unwrap_or(begin)
        .max(begin);
    let window = TimeRange { begin, end };
    let mut totals = Vec::with_capacity(lanes.len());
    for (_, mut converter) in lanes {
        converter.covers(end)?;
        totals.push(converter.finish()?);
    }
    if is_ours {
        trace.state_dump(&dump, window)?;
        let own = SharedFunctions::default();
        functions::write_functions(staged.path(), &functions::kernel_functions(), &own)?;
    }
    Ok((totals, window))
}

/// What only a boot's trace says of itself.
fn facts(ring: &BootRing) -> [(String, EnvValue); 3] {
    let boot = match ring.is_of_earlier_boot {
        true => "an earlier one",
        false => "this",
    };
    let text = |name: &str, text: &str| (name.to_owned(), EnvValue::Text(text.to_owned()));
    [
        environment::recorded(ring.instance().cpus()),
        text("rtscope_boot", boot),
        text("rtscope_boot_clock", &ring.clock),
    ]
}

/// Writes all pages of a ring that is stopped; the time of its last event.
fn empty(lane: BootPipe, converter: &mut CpuConverter, ring: &BootRing) -> Result<Instant> {
    let BootPipe { mut pipe, first } = lane;
    let Some(mut page) = first else {
        return Ok(Instant::MIN);
    };
    let overrun = ring.instance().statistics(pipe.cpu())?.overrun;
    loop {
        let missed_min = overrun.saturating_sub(converter.discarded());
        converter.page(&page, Before::Running, missed_min)?;
        if !pipe.read_page(&mut page)? {
            break;
        }
    }
    converter.lost(ring.instance().statistics(pipe.cpu())?.lost())?;
    Ok(converter.reached())
}
