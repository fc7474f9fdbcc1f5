//! `rtscope convert`: a trace in another format, whole or a part of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::CpuTotals;
use event::{Error, ErrorKind, Result, TimeRange};
use export::{Format, Sink};
use expr::Filter;
use kernel_state::bind::Binding;
use trace::{Damage, EventView, Item, Lost, Root, Trace};

use crate::exit::Outcome;
use crate::flags::Convert;
use crate::options::{ConvertOptions, WindowOptions};
use crate::signals;
use crate::verbs::progress::Progress;
use crate::verbs::{filtered, opened, window};

/// Events between two looks at the clock and at the signals.
const LOOK_EVENTS: u64 = 1 << 14;
/// So many unreadable places are named; the rest is counted.
const DAMAGES_NAMED: u64 = 10;

/// Runs the verb.
pub fn run(typed: &Convert) -> Result<Outcome> {
    let options = ConvertOptions::new(typed)?;
    if let Some(path) = options.traces.iter().find(|path| capture::is_raw(path)) {
        return raw(path, &options);
    }
    let roots: Vec<Root> = options.traces.iter().map(Root::from).collect();
    let mut trace = opened::open_all(&roots, &trace::OpenOptions::default())?;
    Binding::new(&trace).recorded_once(&trace)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    window::warn_outside(range, &trace);
    let filter = options.filter.as_ref();
    let filter = filter
        .map(|expr| filtered::compile(expr, &trace))
        .transpose()?;
    let asked = signals::take_over()?;
    trace.stop_when(&asked);
    let mut conversion = Conversion {
        sink: export::sink(options.format, &trace, &options.output)?,
        filter,
        options: &options,
        progress: Progress::new(range, &trace),
        asked: &asked,
        counts: Counts::default(),
    };
    conversion.sink.covers(range);
    let walked = conversion.walk(&trace, range);
    conversion.progress.live.clear();
    walked?;
    let counts = conversion.counts;
    conversion.sink.finish()?;
    note!("{}", counts.summary(&options));
    Ok(match counts.is_complete() {
        true => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}

/// What `record --raw` kept becomes the trace that it would have been.
fn raw(path: &Path, options: &ConvertOptions) -> Result<Outcome> {
    let is_whole = options.filter.is_none() && options.window == WindowOptions::default();
    if options.traces.len() > 1 || !is_whole || options.format != Format::Ctf1 {
        let what = "a raw recording is converted whole, by itself, to CTF 1.8 first";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(path.display().to_string())
            .fix(format!(
                "rtscope convert {} --to ctf -o NEW; then convert NEW",
                path.display()
            )));
    }
    let converted = capture::convert_raw(path, &options.output)?;
    let sum = |of: fn(&CpuTotals) -> u64| converted.cpus.iter().map(of).sum::<u64>();
    let (events, lost) = (sum(|cpu| cpu.events), sum(|cpu| cpu.discarded));
    let to = converted.path.display();
    note!("{events} events of the kernel's CPUs written to {to}; {lost} lost while recorded");
    if converted.damages > 0 {
        let damages = converted.damages;
        note!("{damages} places could not be read: each is a loss in the trace");
    }
    if converted.is_cut {
        note!("its recorder was killed, or its disk was full: what came last is not there");
    }
    Ok(match lost == 0 && !converted.is_cut {
        true => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}

struct Conversion<'a> {
    sink: Box<dyn Sink + 'a>,
    filter: Option<Filter>,
    options: &'a ConvertOptions,
    progress: Progress,
    asked: &'a AtomicBool,
    counts: Counts,
}

impl Conversion<'_> {
    fn walk(&mut self, trace: &Trace, range: TimeRange) -> Result<()> {
        let mut cursor = filtered::cursor(trace, range, self.filter.as_ref());
        while let Some(item) = cursor.next()? {
            match item {
                Item::Event(event) => self.event(&event)?,
                Item::Lost(lost) => self.lost(&lost)?,
                Item::Damage(damage) => self.damage(&damage)?,
            }
        }
        // Asked to stop, the walk ends early, also where it hands out nothing.
        self.stop_if_asked()
    }

    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        self.counts.seen += 1;
        if self.counts.seen.is_multiple_of(LOOK_EVENTS) {
            self.look(event.time())?;
        }
        // The filter sees every CPU: it learns from all of them which task runs.
        let matches = self.filter.as_mut().is_none_or(|f| f.matches(event));
        if matches && window::wants(&self.options.window, event.cpu()) {
            self.counts.written += 1;
            self.sink.event(event)?;
        }
        Ok(())
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.lost(lost.cpu);
        }
        // A loss that no CPU is named for may touch those that are wanted.
        if lost.cpu.is_none() || window::wants(&self.options.window, lost.cpu) {
            self.counts.losses += 1;
            self.counts.lost_events += lost.count.unwrap_or(0);
            self.sink.lost(lost)?;
        }
        Ok(())
    }

    fn damage(&mut self, damage: &Damage) -> Result<()> {
        self.counts.damages += 1;
        if self.counts.damages <= DAMAGES_NAMED {
            self.progress.live.clear();
            note!(
                "warning: unreadable: {} at byte {}: {}",
                damage.file,
                damage.offset_bytes,
                damage.reason
            );
        }
        self.sink.damage(damage)
    }

    fn look(&mut self, now: event::Instant) -> Result<()> {
        self.progress.show(now, self.counts.written);
        self.stop_if_asked()
    }

    fn stop_if_asked(&self) -> Result<()> {
        match self.asked.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Interrupted,
                "stopped before the end; nothing was written",
            )),
        }
    }
}

/// What went by.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Handed out by the walk; the classes that no filter wants are passed over before.
    seen: u64,
    written: u64,
    losses: u64,
    lost_events: u64,
    damages: u64,
}

impl Counts {
    fn is_complete(&self) -> bool {
        self.losses == 0 && self.damages == 0
    }

    fn summary(&self, options: &ConvertOptions) -> String {
        let mut text = format!(
            "{} events written to {}",
            self.written,
            options.output.display()
        );
        if self.losses > 0 {
            text += &format!(
                "; {} losses of at least {} events carried over",
                self.losses, self.lost_events
            );
        }
        if self.damages > 0 {
            text += &format!("; {} unreadable places left out", self.damages);
        }
        text
    }
}
