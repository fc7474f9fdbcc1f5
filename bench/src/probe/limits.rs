//! What surrounds an event: how many of them a second, on two CPUs, and at what cost for the
//! recorder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use event::Cpu;
use host::task::Policy;
use measure::looping::lttng::{Daemon, Library};
use measure::looping::{self, LoopEvent, LoopPlan, LoopTracer};
use serde_json::Value;

use super::scene::{DROPPED, RING, Scene, Tracer};
use crate::child;
use crate::report::{Bar, Cell, Table, number, text};
use crate::stats::median;

/// What may be missing of twice one thread's rate.
const MISSING_MAX: f64 = 0.05;
/// Times the loops of the other tables: starting a thread must not weigh.
const SCALING_LOOPS: u64 = 20;
/// How much is written to measure the storage below the recordings: about what one attempt is.
const STORAGE_BYTES: usize = 256 << 20;
/// What an event of two numbers takes there: header, process, thread, two numbers.
const STORED_EVENT_BYTES: f64 = 28.0;
/// Of LTTng's sub-buffers, 32 a CPU: room for all events.
const LTTNG_SUBBUFFER: &str = "4M";
/// A process that writes next to nothing.
const FEW_LOOPS: u64 = 1000;
/// Times the loops of the other tables: what a recorder does for a process must not weigh.
const RECORDED_LOOPS: u64 = 32;
/// Runs of each recorder, in turn: memory that the machine gives for the first time makes some
/// dear.
const RECORDED_ROUNDS: usize = 5;
/// Events a second that both recorders keep up with.
const RECORDED_PER_SECOND: u64 = 4_000_000;
/// A recorder that has used no more for so long is done.
const IDLE: Duration = Duration::from_millis(300);

/// The tables and bars of this file.
pub(super) struct Limits {
    pub tables: Vec<Table>,
    pub bars: Vec<Bar>,
}

/// Measures all of it, the peer's half where it is there; the highest rates, which take half a
/// minute for each tracer, and every round of the recorders only where `rates` asks for them.
pub(super) fn measure(scene: &Scene<'_>, rates: bool) -> Result<Limits> {
    let mut limits = Limits {
        tables: Vec::new(),
        bars: Vec::new(),
    };
    let mut add = |(table, bars): (Table, Vec<Bar>)| {
        limits.tables.push(table);
        limits.bars.extend(bars);
    };
    eprintln!("  two threads, recorders");
    add(scaling(scene)?);
    add(recorders(scene, if rates { RECORDED_ROUNDS } else { 1 })?);
    if rates {
        add(super::paper::rates(scene)?);
    }
    Ok(limits)
}

/// What was promised of `what`.
pub(super) fn bar(what: &str, found: Option<f64>, limit: f64, unit: &'static str) -> Bar {
    Bar {
        what: what.to_owned(),
        found,
        limit,
        unit,
    }
}

/// Events that the storage of the recordings takes in a second, by packets of our size, flushed or
/// not as the kernel sees fit: as for a recorder.
pub(super) fn storage_events_per_second(folder: &Path) -> Result<f64> {
    let path = folder.join("storage");
    let mut file = std::fs::File::create(&path)?;
    let packet = vec![1; 512 << 10];
    let begin = Instant::now();
    for _ in 0..STORAGE_BYTES / packet.len() {
        std::io::Write::write_all(&mut file, &packet)?;
    }
    let taken = begin.elapsed();
    std::fs::remove_file(&path)?;
    Ok(STORAGE_BYTES as f64 / STORED_EVENT_BYTES / taken.as_secs_f64())
}

/// One thread, and two threads on two CPUs; beside them the machine's own bound, a loop that only
/// reads the clock. By CPU time: what else runs there does not count.
fn scaling(scene: &Scene<'_>) -> Result<(Table, Vec<Bar>)> {
    let program = program(scene.folder, "scale")?;
    let mut found = [Vec::new(), Vec::new()];
    for threads in 1..=2 {
        for (what, rates) in ["events", "clock"].into_iter().zip(&mut found) {
            let mut command = Command::new(&program);
            command
                .env("RTSCOPE_DIR", scene.shared)
                .env("RTSCOPE_EVENTS", "npt")
                .env("RTSCOPE_MODE", "overwrite");
            let loops = scene.loops * SCALING_LOOPS;
            command.args([&scene.cpu.to_string(), &loops.to_string()]);
            let said = child::output(command.args([&threads.to_string(), what]))?;
            scene.remove_rings()?;
            let found: Value = serde_json::from_str(&said)?;
            rates.push(found["per_cpu_second"].as_f64().context("no rate")?);
        }
    }
    let [events, clock] = found;
    let row = |threads: usize| {
        vec![
            number(threads as f64, 0),
            number(events[threads - 1], 0),
            number(clock[threads - 1], 0),
        ]
    };
    let table = Table {
        columns: vec![
            "threads, a CPU each",
            "events in a second of CPU time",
            "clock readings alone",
        ],
        rows: vec![row(1), row(2)],
    };
    let missing = |rates: &[f64]| 1.0 - rates[1] / (2.0 * rates[0]);
    let what = format!(
        "missing of twice one thread's rate, two threads (clock readings: {:.2})",
        missing(&clock)
    );
    Ok((
        table,
        vec![bar(&what, Some(missing(&events)), MISSING_MAX, "")],
    ))
}

/// CPU time of whoever reads the rings, for an event: what a process with many costs beyond one
/// with few. What the process itself costs, the memory of its rings above all, is shown apart.
fn recorders(scene: &Scene<'_>, rounds: usize) -> Result<(Table, Vec<Bar>)> {
    let many = scene.loops * RECORDED_LOOPS;
    let our_cost = || Cost::of(many, |loops| our_recorder(scene, loops));
    let (ours, theirs) = match scene.lttng.as_deref() {
        Some(library) => in_turn(scene, library, (rounds, many), our_cost)?,
        None => (vec![our_cost()?], Vec::new()),
    };
    let spread = |costs: &[Cost]| {
        let of_all = costs.iter().map(|cost| cost.event_ns);
        let least = of_all.clone().fold(f64::INFINITY, f64::min);
        format!("{least:.1} to {:.1}", of_all.fold(0.0, f64::max))
    };
    let spreads = [&ours, &theirs].map(|costs| spread(costs));
    let (ours, theirs) = (Cost::median(&ours), Cost::median(&theirs));
    let row = |name: &str, cost: Option<&Cost>, spread: &str| {
        let cell = |ns: Option<f64>| ns.map_or(Cell::None, |ns| number(ns, 1));
        vec![
            text(name),
            cell(cost.map(|cost| cost.event_ns)),
            cost.map_or(Cell::None, |_| text(spread)),
            cell(cost.map(|cost| cost.process_ns / 1e6)),
        ]
    };
    let table = Table {
        columns: vec![
            "recorder",
            "CPU time an event, ns",
            "all runs, ns",
            "a process, ms",
        ],
        rows: vec![
            row("rtscope record", ours.as_ref(), &spreads[0]),
            row("lttng-consumerd, lttng-timer", theirs.as_ref(), &spreads[1]),
        ],
    };
    let what = "the recorder's CPU time an event, of LTTng-UST's consumer's";
    let share = ours.zip(theirs);
    let share = share.map(|(ours, theirs)| ours.event_ns / theirs.event_ns);
    Ok((table, vec![bar(what, share, 1.0, "")]))
}

/// CPU time of a recorder, in nanoseconds.
struct Cost {
    event_ns: f64,
    /// For a process that comes, writes next to nothing and goes.
    process_ns: f64,
}

impl Cost {
    /// From what a run of [`FEW_LOOPS`] takes, `used_ns`, and one of `loops`.
    fn of(loops: u64, used_ns: impl Fn(u64) -> Result<f64>) -> Result<Cost> {
        let process_ns = used_ns(FEW_LOOPS)?;
        Ok(Cost {
            event_ns: (used_ns(loops)? - process_ns) / (loops - FEW_LOOPS) as f64,
            process_ns,
        })
    }

    /// Of some runs.
    fn median(costs: &[Cost]) -> Option<Cost> {
        let of = |part: fn(&Cost) -> f64| median(&costs.iter().map(part).collect::<Vec<_>>());
        Some(Cost {
            event_ns: of(|cost| cost.event_ns)?,
            process_ns: of(|cost| cost.process_ns)?,
        })
    }
}

/// Ends what it holds.
pub(super) struct Running(Option<Child>);

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// Ends it; what it took from its start to its end.
    pub(super) fn end(mut self) -> Result<child::Taken> {
        let running = self.0.take().context("it runs")?;
        interrupt(&running);
        child::wait(&running)
    }
}

fn interrupt(running: &Child) {
    // SAFETY: a signal to our own child, which was not waited for yet.
    unsafe { libc::kill(running.id() as libc::pid_t, libc::SIGINT) };
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(running) = &mut self.0 {
            interrupt(running);
            running.wait().ok();
        }
    }
}

/// `rtscope record` of what starts from now on, and where its trace is.
pub(super) fn begin_recorder(scene: &Scene<'_>) -> Result<(Running, PathBuf)> {
    let trace = scene.folder.join("recorded");
    let mut command = Command::new(scene.rtscope);
    command.args(["record", "--user", "npt", "-o"]).arg(&trace);
    command.env("RTSCOPE_DIR", scene.shared);
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let recorder = Running(Some(child));
    let begin = Instant::now();
    let announced = || -> Result<bool> {
        let mut names = std::fs::read_dir(scene.shared)?.flatten();
        Ok(names.any(|entry| entry.file_name().to_string_lossy().starts_with("session-")))
    };
    while !announced()? {
        if begin.elapsed() > Duration::from_secs(10) {
            bail!("rtscope record does not begin");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok((recorder, trace))
}

/// A recorder beside a program that knows nothing of it; its CPU time in nanoseconds.
fn our_recorder(scene: &Scene<'_>, loops: u64) -> Result<f64> {
    let (recorder, trace) = begin_recorder(scene)?;
    let before = cpu_ns(recorder.pid())?;
    let mut traced = Command::new(scene.rtscope);
    let long = Scene {
        lttng: None,
        loops,
        ..*scene
    };
    long.add_loop(&mut traced, Tracer::Recorded, "numbers");
    traced.args(["--events-per-second", &RECORDED_PER_SECOND.to_string()]);
    child::output(traced.env("RTSCOPE_RING_SIZE", RING))?;
    let used = until_idle(recorder.pid())? - before;
    drop(recorder);
    std::fs::remove_dir_all(&trace).ok();
    Ok(used)
}

/// Runs of our recorder, and as many of LTTng-UST's consumer, which looks by a timer. Its loop runs
/// in this process: the daemon, and with it the consumer, must be there before and after.
fn in_turn(
    scene: &Scene<'_>,
    library: &Path,
    (rounds, many): (usize, u64),
    our_cost: impl Fn() -> Result<Cost>,
) -> Result<(Vec<Cost>, Vec<Cost>)> {
    let daemon = Daemon::start(scene.folder)?;
    let (costs, _) = daemon.session(true, LTTNG_SUBBUFFER, || {
        let library = Library::load(library, &daemon)?;
        let consumer = process_named("lttng-consumerd")?;
        let used = |loops: u64| -> Result<f64> {
            let before = cpu_ns(consumer)?;
            let plan = LoopPlan {
                cpu: Cpu(scene.cpu as u32),
                policy: Policy::Ordinary,
                iterations: loops,
                dropped: DROPPED,
                per_second: Some(RECORDED_PER_SECOND),
                tracer: LoopTracer::Lttng(&library),
                event: LoopEvent::Numbers,
                interruptions: None,
            };
            looping::run(&plan, &AtomicBool::new(false))?;
            Ok(until_idle(consumer)? - before)
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(our_cost()?);
            theirs.push(Cost::of(many, used)?);
        }
        Ok::<_, anyhow::Error>((ours, theirs))
    })?;
    Ok(costs)
}

/// CPU time of all threads of a process, in nanoseconds.
pub(super) fn cpu_ns(pid: u32) -> Result<f64> {
    let mut sum = 0.0;
    for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let said = std::fs::read_to_string(entry?.path().join("schedstat"))?;
        let first = said.split(' ').next().context("no CPU time")?;
        sum += first.parse::<f64>()?;
    }
    Ok(sum)
}

/// Waits until the process has read all that there is: it uses a small part of a CPU then.
pub(super) fn until_idle(pid: u32) -> Result<f64> {
    let mut before = cpu_ns(pid)?;
    loop {
        std::thread::sleep(IDLE);
        let now = cpu_ns(pid)?;
        if now - before < IDLE.as_nanos() as f64 / 50.0 {
            return Ok(before);
        }
        before = now;
    }
}

/// The youngest process of this name.
pub(super) fn process_named(name: &str) -> Result<u32> {
    let pids = std::fs::read_dir("/proc")?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // The kernel keeps 15 bytes of a name.
    let kept = &name[..name.len().min(15)];
    let named = pids.filter(|pid| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim() == kept)
    });
    named.max().with_context(|| format!("no process {name}"))
}

/// Compiles a program of `bench/probe` together with the probe.
pub(super) fn program(folder: &Path, name: &str) -> Result<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let mut command = Command::new("cc");
    command.args(["-O2", "-pthread", "-o"]).arg(&program);
    command.arg(home.join("probe").join(name).with_extension("c"));
    let probe = home.join("../probe");
    command.arg(format!("-I{}", probe.join("include").display()));
    for entry in std::fs::read_dir(probe.join("src"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "c") {
            command.arg(path);
        }
    }
    child::output(&mut command)?;
    Ok(program)
}
