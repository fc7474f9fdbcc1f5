//! What was asked of a watch, in the words of the session.

use std::path::Path;

use bpf_host::{Action, Beside, Targets, WatchConfig};
use capture::EventSelection;
use capture::watch::{self, FlightRecorder};
use event::evidence::EndKind;
use event::{Duration, Error, ErrorKind, Result, TaskPattern, vectors};

use crate::flags::{Until, Watch};
use crate::options::{IrqFilter, Rate, SnapshotOptions, Target, WatchOptions};
use crate::verbs::room;
use host::capabilities::Capabilities;
use host::namespace;

/// With no threshold asked for, every latency may be the worst so far.
const SMALLEST: Duration = Duration::from_ns(1);

/// The session that `options` describe.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a task or an interrupt that is not there.
pub fn session(options: &WatchOptions) -> Result<watch::WatchOptions> {
    let flight = options.snapshot.as_ref().map(flight_recorder).transpose()?;
    Ok(watch::WatchOptions {
        watch: kernel_side(options)?,
        flight,
        duration: options.run_for,
        worst: options.worst,
        calls: None,
    })
}

fn flight_recorder(options: &SnapshotOptions) -> Result<FlightRecorder> {
    let bytes = room::kernel_buffer(options.buffer_bytes)?;
    Ok(FlightRecorder {
        events: EventSelection::new(&options.events),
        buffer_bytes_per_cpu: bytes,
        output: options.output.clone(),
        user: options.user.clone(),
        snapshots_max: None,
    })
}

fn kernel_side(options: &WatchOptions) -> Result<WatchConfig> {
    let targets = match &options.target {
        Target::Tasks(patterns) => {
            patterns.iter().try_for_each(is_there)?;
            Targets::Tasks(patterns.clone())
        }
        Target::RealTime => Targets::RealTime,
    };
    let action = options.bpf_action.as_deref().map(Action::read);
    Ok(WatchConfig {
        targets,
        members: options.members.clone(),
        beside: beside(options),
        cpus: (!options.cpus.is_empty()).then(|| options.cpus.clone()),
        irqs: options.irq.as_ref().map(irqs).transpose()?,
        softirq: options.softirq,
        min_prio: options.prio_min,
        threshold: threshold(options),
        late_timer_floor: match (options.over, options.triggers.is_empty()) {
            // What an application calls late is rarely that short.
            (None, false) => WatchConfig::default().late_timer_floor,
            _ => late_timer_floor(threshold(options)),
        },
        end: match options.until {
            Until::SwitchIn => EndKind::SwitchIn,
            Until::UserReturn => EndKind::UserReturn,
            Until::Block => EndKind::Blocked,
        },
        waiting_after: options.timeout,
        new_worst_only: options.new_worst,
        window: (!options.triggers.is_empty()).then_some(watch::CALL_WINDOW),
        rate_limit_interval: interval(options.rate),
        max_hits: options.hits_max,
        waker_stacks: takes_waker_stacks(&options.target),
        action: action.transpose()?,
        // Without a threshold every activation is held back but the worst.
        notes_late: options.over.is_some()
            && !options.new_worst
            && options.worst.is_none()
            && options.triggers.is_empty(),
        ..WatchConfig::default()
    })
}

/// Who is judged beside those that are asked for. An application that says that it was late may
/// have waited for others; a sound server's real-time thread wakes its clients, and nobody asks for
/// these by name.
pub(super) fn beside(options: &WatchOptions) -> Beside {
    let Target::Tasks(patterns) = &options.target else {
        return Beside::Nobody;
    };
    let is_process =
        |pattern: &TaskPattern| matches!(pattern, TaskPattern::Process(_) | TaskPattern::Pid(_));
    match options.triggers.is_empty() {
        false => Beside::All,
        true if options.until == Until::Block && patterns.iter().any(is_process) => Beside::Woken,
        true => Beside::Nobody,
    }
}

/// Refuses an id that no task has.
fn is_there(pattern: &TaskPattern) -> Result<()> {
    let (TaskPattern::Tid(tid) | TaskPattern::Pid(tid)) = pattern else {
        return Ok(());
    };
    let folder = Path::new("/proc").join(tid.to_string());
    if folder.exists() {
        return match (pattern, process_of(&folder)) {
            (TaskPattern::Pid(pid), Some(process)) if process != pid.0 => {
                let error = Error::new(ErrorKind::NotFound, "there is no such process");
                let found = format!("{pid} is a thread of process {process}");
                Err(error
                    .found(found)
                    .fix(format!("--pid {process}, or --tid {pid}")))
            }
            _ => Ok(()),
        };
    }
    let what = match pattern {
        TaskPattern::Pid(_) => "there is no such process",
        _ => "there is no such task",
    };
    let error = Error::new(ErrorKind::NotFound, what);
    Err(match namespace::is_inside() {
        true => error
            .found(format!(
                "{pattern}: an id of the host, or of another container, is none here"
            ))
            .fix(
                "give its id in this container (ps -eLo pid,tid,rtprio,comm), or watch on the host",
            ),
        false => error
            .found(pattern.to_string())
            .fix("ps -eLo pid,tid,rtprio,comm lists the tasks"),
    })
}

/// The process of a thread, by its folder in `/proc`.
fn process_of(folder: &Path) -> Option<i32> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The waker's stack is taken at each wake-up of a target, late or not, and costs thirty times the
/// rest of the watch's work there: for the tasks that somebody named, not for every real-time task
/// of the machine.
fn takes_waker_stacks(target: &Target) -> bool {
    let of_many =
        |pattern: &TaskPattern| matches!(pattern, TaskPattern::Prio(..) | TaskPattern::RealTime);
    match target {
        Target::Tasks(patterns) => !patterns.iter().any(of_many),
        Target::RealTime => false,
    }
}

/// Whoever asks only for tasks that still wait gets no others.
fn threshold(options: &WatchOptions) -> Duration {
    match (options.over, options.new_worst) {
        (Some(over), _) => over,
        (None, true) => SMALLEST,
        (None, false) if !options.triggers.is_empty() => LATE_AT_ALL,
        (None, false) => Duration::MAX,
    }
}

/// What an application calls late took longer than this.
const LATE_AT_ALL: Duration = Duration::from_us(10);

/// Shorter sections are everywhere, and say nothing.
const LATE_TIMER_FLOOR_MIN: Duration = Duration::from_us(10);

/// A timer that is late by a quarter of the threshold is worth a record.
fn late_timer_floor(threshold: Duration) -> Duration {
    let quarter = Duration::from_ns(threshold.as_ns() / 4);
    let usual = WatchConfig::default().late_timer_floor;
    quarter.max(LATE_TIMER_FLOOR_MIN).min(usual)
}

/// Reports a time, as a time between reports.
fn interval(rate: Rate) -> Duration {
    Duration::from_ns(rate.per.as_ns() / i64::from(rate.hits_max))
}

fn irqs(filter: &IrqFilter) -> Result<Vec<i32>> {
    let text = std::fs::read_to_string("/proc/interrupts")
        .map_err(|error| Error::io("cannot read /proc/interrupts", error))?;
    let (numbers, what) = match filter {
        IrqFilter::Number(number) => (irqs_numbered(&text, *number), "no such interrupt"),
        IrqFilter::Name(name) => (irqs_named(&text, name), "no interrupt has such a name"),
    };
    if !numbers.is_empty() {
        return Ok(numbers);
    }
    let found = match filter {
        IrqFilter::Number(number) => number.to_string(),
        IrqFilter::Name(name) => name.clone(),
    };
    let error = Error::new(ErrorKind::NotFound, what).found(format!("'{found}'"));
    Err(error.fix(
        "cat /proc/interrupts lists them: the number first, the name last; \
                   timer is the CPU's own",
    ))
}

/// `number`, when `/proc/interrupts` has a line of it.
fn irqs_numbered(interrupts: &str, number: u32) -> Vec<i32> {
    let is_it = |line: &str| {
        let first = line.split_once(':').map(|(first, _)| first.trim().parse());
        first == Some(Ok(number))
    };
    let there = interrupts.lines().any(is_it);
    let number = i32::try_from(number).ok().filter(|_| there);
    number.into_iter().collect()
}

/// The CPU's own timer, as people who want it call it.
const TIMER: &str = "timer";

/// The CPU's own interrupts of this name.
fn vectors_named(name: &str) -> impl Iterator<Item = i32> {
    let is_it = move |vector: &&vectors::Vector| {
        [vector.name, vector.tag].contains(&name) || (name == TIMER && vector.tag == "local_timer")
    };
    let numbers = vectors::VECTORS
        .iter()
        .filter(is_it)
        .map(|vector| vector.number);
    let mut numbers: Vec<i32> = numbers.collect();
    numbers.dedup();
    numbers.into_iter()
}

/// The numbers of the lines of `/proc/interrupts` that contain `name`, and the CPU's own interrupts
/// of that name.
fn irqs_named(interrupts: &str, name: &str) -> Vec<i32> {
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        rest.contains(name)
            .then(|| number.trim().parse().ok())
            .flatten()
    };
    let devices = interrupts.lines().filter_map(line);
    devices.chain(vectors_named(name)).collect()
}

/// Whether hits can have snapshots here; says so where they cannot, as `doctor` does.
///
/// # Errors
/// When they cannot, and somebody asked for what only they bring.
pub(in crate::verbs) fn may_snapshot(capabilities: &Capabilities, typed: &Watch) -> Result<bool> {
    let Some(lack) = capabilities.snapshot_lack() else {
        return Ok(true);
    };
    let asks = typed.output.is_some()
        || typed.buffer.is_some()
        || !(typed.events.is_empty() && typed.user.is_empty());
    if asks {
        let what = format!("rtscope watch cannot keep snapshots here: {}", lack.what);
        return Err(Error::new(ErrorKind::PermissionDenied, what)
            .found(lack.found)
            .fix(lack.fix));
    }
    let (what, found, fix) = (lack.what, lack.found, lack.fix);
    note!("{what}\n  found: {found}\n  fix:  {fix}");
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_found_by_a_part_of_its_name() {
        let text = "      CPU0\n 24:   7  PCI-MSI 1-edge  snd_hda_intel:card0\n NMI:  0  Non\n";
        assert_eq!(irqs_named(text, "snd_hda"), [24]);
        assert!(irqs_named(text, "eth0").is_empty());
        assert!(irqs_named(text, "Non").is_empty());
        for name in ["timer", "local_timer", "local timer"] {
            assert_eq!(irqs_named(text, name), [-1], "{name}");
        }
        assert_eq!(irqs_named(text, "function_call"), [-3]);
    }

    #[test]
    fn only_named_tasks_cost_a_stack_at_each_wake_up() {
        let check = |target: Target, expect: bool| {
            assert_eq!(takes_waker_stacks(&target), expect, "{target:?}");
        };
        let named = |text| Target::Tasks(TaskPattern::parse_all(&[text]).expect("a task"));
        check(named("jackd"), true);
        check(named("7"), true);
        check(named("prio:50"), false);
        check(Target::RealTime, false);
    }

    #[test]
    fn a_low_threshold_looks_at_timers_that_are_less_late() {
        let check = |threshold: Duration, expect_us: i64| {
            assert_eq!(late_timer_floor(threshold), Duration::from_us(expect_us));
        };
        check(Duration::MAX, 50);
        check(Duration::from_ms(25), 50);
        check(Duration::from_us(80), 20);
        check(SMALLEST, 10);
    }

    #[test]
    fn a_rate_is_a_time_between_reports() {
        let rate = Rate {
            hits_max: 5,
            per: Duration::from_ms(1000),
        };
        assert_eq!(interval(rate), Duration::from_ms(200));
    }
}
