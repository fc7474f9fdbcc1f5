//! What cyclictest's options mean.

use std::sync::Arc;

use event::{Cpu, Duration, Error, ErrorKind};
use host::clock::Clock;
use host::task::Policy;
use measure::cyclic::{Begin, Plan, Sleep, ThreadPlan, TraceMark};

use super::cyclictest_output::CyclictestOutput;
use super::measure::{CyclicOptions, CyclicOutput};
use super::numa_cpus;
use crate::flags::{Cyclictest, CyclictestPolicy, Refusal};

type Result<T> = std::result::Result<T, Refusal>;

/// The histogram that is kept when none is asked for: it is never printed then.
const UNASKED_BUCKETS: usize = 1000;
/// No histogram is longer.
const BUCKETS_MAX: i64 = 1_000_000;
/// From one thread's interval to the next one's.
const DISTANCE: i64 = 500;
/// Samples of a thread that are kept until they are printed.
const KEPT: usize = 16_384;

impl CyclicOptions {
    /// From cyclictest's own options, on a machine with the CPUs `online`, of which we may use
    /// `allowed`.
    ///
    /// # Errors
    /// What is refused, in cyclictest's own words.
    pub fn cyclictest(
        typed: &Cyclictest,
        command_line: String,
        online: &[Cpu],
        allowed: &[Cpu],
    ) -> Result<Self> {
        let us = Duration::from_us;
        let mut warnings = typed.warnings.clone();
        let cpus = match &typed.cpus {
            Some(list) => cpus(list, online, allowed)?,
            None => allowed.to_vec(),
        };
        let threads = threads(typed, &cpus, &mut warnings)?;
        let main_cpus = typed.mainaffinity.as_ref();
        let main_cpus = main_cpus.and_then(|list| match listed(list, online, allowed) {
            Ok(cpus) => Some(cpus).filter(|cpus| !cpus.is_empty()),
            Err(said) => {
                // It goes on then, wherever it is.
                warnings.extend(said);
                None
            }
        });
        let forced = !threads.iter().any(|thread| thread.policy.prio() > 0);
        let mut output = CyclictestOutput {
            policy: policy_text(typed.policy, forced),
            command_line,
            ..output(typed)
        };
        let plan = plan(typed, threads, &output)?;
        let traced = |mark: &Arc<TraceMark>| {
            let root = mark.root().display();
            format!("INFO: debugfs mountpoint: {root}/")
        };
        warnings.extend(plan.mark.as_ref().map(traced));
        output.warnings = warnings;
        Ok(CyclicOptions {
            plan,
            phases: false,
            // Its threads see that by themselves.
            run_for: None,
            warm_up: None,
            wake_latency: (!typed.default_system).then_some(us(typed.latency)),
            deepest_idle: typed.deepest_idle,
            // It wakes as often as cyclictest's, where that does: a sample that it comes just
            // before finds its CPU awake, and figures of then and of now can be compared.
            own_cpus: Some(main_cpus.unwrap_or(cpus)),
            lock_memory: typed.mlockall,
            output: CyclicOutput::Cyclictest(output),
        })
    }
}

/// What is printed, but for what the threads turn out to be.
fn output(typed: &Cyclictest) -> CyclictestOutput {
    let spikes = (typed.spike > 0).then(|| {
        let nodes = typed.spike_nodes.clamp(0, BUCKETS_MAX) as usize;
        (limit(typed, typed.spike), nodes)
    });
    CyclictestOutput {
        histogram: (typed.histogram > 0).then_some(typed.histofall),
        histogram_file: typed.histfile.clone(),
        json_file: typed.json.clone(),
        in_ns: typed.nsecs,
        quiet: typed.quiet,
        unbuffered: typed.unbuffered,
        every: typed.verbose.then_some(typed.oscope.cast_unsigned()),
        distance: Duration::from_us(distance(typed)),
        on_max: typed.refresh_on_max,
        spikes,
        pipe: typed.fifo.clone(),
        tids: typed.breaktrace > 0,
        resolution: typed.resolution,
        dma_latency_us: (!typed.default_system).then_some(typed.latency),
        ..CyclictestOutput::default()
    }
}

/// What samples are held against is in the unit of the figures.
fn limit(typed: &Cyclictest, number: i64) -> Duration {
    match typed.nsecs {
        true => Duration::from_ns(number),
        false => Duration::from_us(number),
    }
}

fn plan(typed: &Cyclictest, threads: Vec<ThreadPlan>, output: &CyclictestOutput) -> Result<Plan> {
    let buckets = match typed.histogram.min(BUCKETS_MAX) as usize {
        0 => UNASKED_BUCKETS,
        buckets => buckets,
    };
    let limit = (typed.breaktrace > 0).then(|| limit(typed, typed.breaktrace));
    let mark = limit.filter(|_| typed.tracemark);
    let mark = mark.map(|limit| TraceMark::open(limit, typed.nsecs).map(Arc::new));
    let keeps = output.every.is_some() || output.spikes.is_some();
    Ok(Plan {
        // As many as there are rows.
        overflows_named: buckets,
        threads,
        clock: match typed.clock {
            1 => Clock::Realtime,
            _ => Clock::Monotonic,
        },
        samples: (typed.loops > 0).then_some(typed.loops.cast_unsigned()),
        break_over: limit,
        bucket: match typed.nsecs {
            true => Duration::from_ns(1),
            false => Duration::from_us(1),
        },
        buckets,
        begin: begin(typed),
        // What is less than nothing has passed when the first of them looks.
        sampled_for: (typed.duration_s != 0).then(|| Duration::from_ms(typed.duration_s * 1000)),
        sleep: sleep(typed),
        kept: if keeps { KEPT } else { 0 },
        kept_over: None,
        called: Some("cyclictest"),
        mark: mark.transpose()?,
        phases: None,
    })
}

/// Each thread sleeps for an interval first.
fn begin(typed: &Cyclictest) -> Begin {
    let offset = Duration::from_us(typed.aligned.unwrap_or_default().max(0));
    let (after, apart) = match typed.secaligned {
        true => (offset, Duration::ZERO),
        false => (Duration::ZERO, offset),
    };
    Begin {
        at_second: typed.secaligned,
        after,
        apart,
        with_interval: true,
    }
}

fn policy_text(policy: CyclictestPolicy, forced: bool) -> String {
    match forced {
        true => format!("{}/other", policy.name()),
        false => policy.name().to_owned(),
    }
}

fn sleep(typed: &Cyclictest) -> Sleep {
    match (typed.posix_timers, typed.relative) {
        (true, _) => Sleep::Timer,
        (false, true) => Sleep::For,
        (false, false) => Sleep::Until,
    }
}

/// The rules of cyclictest 2.x: each thread stays on a CPU, in turn, also without `-a`; all have
/// one priority but with `--priospread`, and a histogram makes the distance zero.
fn threads(
    typed: &Cyclictest,
    cpus: &[Cpu],
    warnings: &mut Vec<String>,
) -> Result<Vec<ThreadPlan>> {
    let wanted = match typed.threads {
        Some(number) => number as usize,
        None => cpus.len(),
    };
    let distance = distance(typed);
    if typed.interval <= 0 {
        let error = Error::new(ErrorKind::InvalidInput, "-i is no interval");
        return Err(error
            .found(typed.interval.to_string())
            .fix("-i 1000")
            .into());
    }
    let (policy, highest) = urgency(typed, wanted, warnings);
    let thread = |number: usize| {
        let below = if typed.priospread { number as i64 } else { 0 };
        let (cpu, prio) = (cpus[number % cpus.len()], highest - below);
        let prio = u32::try_from(prio).map_err(|_| not_a_priority(cpu, prio))?;
        Ok(ThreadPlan {
            cpu: Some(cpu),
            policy: match policy {
                _ if prio == 0 => Policy::Ordinary,
                CyclictestPolicy::Rr => Policy::RoundRobin(prio),
                _ => Policy::Fifo(prio),
            },
            interval: Duration::from_us(typed.interval + distance * number as i64),
        })
    };
    (0..wanted).map(thread).collect()
}

fn distance(typed: &Cyclictest) -> i64 {
    match typed.histogram {
        0 => typed.distance.unwrap_or(DISTANCE),
        _ => 0,
    }
}

fn not_a_priority(cpu: Cpu, prio: i64) -> Refusal {
    let cpu = cpu.0;
    let what = format!("FATAL: timerthread{cpu}: failed to set priority to {prio}");
    Refusal::Fatal(vec![what])
}

/// Which policy the threads have, and the priority of the first: without one, a real-time policy
/// gets what leaves each thread its own.
fn urgency(
    typed: &Cyclictest,
    threads: usize,
    warnings: &mut Vec<String>,
) -> (CyclictestPolicy, i64) {
    let (mut policy, mut prio) = (typed.policy, typed.priority);
    let mut default = |prio: &mut i64| {
        *prio = threads as i64 + 1;
        warnings.push(format!("defaulting realtime priority to {prio}"));
    };
    if typed.priospread && prio == 0 {
        default(&mut prio);
    }
    let is_unlike = prio > 0 && !policy.is_real_time();
    if is_unlike {
        policy = CyclictestPolicy::Fifo;
    }
    if policy.is_real_time() && prio == 0 {
        default(&mut prio);
    }
    if is_unlike {
        let what = "policy and priority don't match: setting policy to SCHED_FIFO";
        warnings.push(what.to_owned());
    }
    (policy, prio)
}

/// The CPUs of a list for the measuring threads.
fn cpus(list: &str, online: &[Cpu], allowed: &[Cpu]) -> Result<Vec<Cpu>> {
    let cpus = listed(list, online, allowed).map_err(|said| Refusal::Usage(said, 1))?;
    match cpus.is_empty() {
        true => Err(Refusal::Fatal(vec![
            "WARN: Couldn't setaffinity in main thread: Invalid argument".to_owned(),
            "FATAL: No allowable cpus to run on".to_owned(),
        ])),
        false => Ok(cpus),
    }
}

/// A list of CPUs. One with a sign before is of those that we may use, another one of all that
/// are there: a thread may go where its parent may not.
fn listed(
    list: &str,
    online: &[Cpu],
    allowed: &[Cpu],
) -> std::result::Result<Vec<Cpu>, Vec<String>> {
    let mut cpus = numa_cpus::read(list, online)?;
    if cpus.is_empty() {
        return Err(Vec::new());
    }
    if list.contains(['!', '+']) {
        cpus.retain(|cpu| allowed.contains(cpu));
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: [Cpu; 4] = [Cpu(0), Cpu(1), Cpu(2), Cpu(3)];

    fn typed(words: &str) -> Result<Cyclictest> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Cyclictest::read(&words)
    }

    fn options(words: &str) -> Result<CyclicOptions> {
        CyclicOptions::cyclictest(&typed(words)?, String::new(), &CPUS, &CPUS)
    }

    fn cyclictest(words: &str) -> CyclicOptions {
        options(words).expect("has a meaning")
    }

    fn output(words: &str) -> CyclictestOutput {
        match cyclictest(words).output {
            CyclicOutput::Cyclictest(output) => output,
            other @ CyclicOutput::Own { .. } => panic!("{other:?}"),
        }
    }

    /// CPU, priority and interval in us of each thread.
    fn check(words: &str, expect: &[(i64, u32, i64)]) {
        let threads = cyclictest(words).plan.threads;
        let found: Vec<_> = threads
            .iter()
            .map(|thread| {
                let cpu = thread.cpu.map_or(-1, |cpu| i64::from(cpu.0));
                (cpu, thread.policy.prio(), thread.interval.as_ns() / 1000)
            })
            .collect();
        assert_eq!(found, expect, "{words}");
    }

    #[test]
    fn threads_are_laid_out_as_cyclictest_lays_them() {
        check("", &[(0, 0, 1000)]);
        check("-p 80 -t 2", &[(0, 80, 1000), (1, 80, 1500)]);
        check("-p80 -t2 --priospread", &[(0, 80, 1000), (1, 79, 1500)]);
        check("-p80 -t2 -d0 -i250", &[(0, 80, 250), (1, 80, 250)]);
        check("-p 80 -t2 -a 2-3 -h100", &[(2, 80, 1000), (3, 80, 1000)]);
        check(
            "-S -p 95 -m",
            &[(0, 95, 1000), (1, 95, 1500), (2, 95, 2000), (3, 95, 2500)],
        );
        check(
            "-S -h 100",
            &[(0, 0, 1000), (1, 0, 1000), (2, 0, 1000), (3, 0, 1000)],
        );
        check("-a 1 -t2 -p 1", &[(1, 1, 1000), (1, 1, 1500)]);
        check("-a all -t1", &[(0, 0, 1000)]);
        check("-a !0,1 -t2", &[(2, 0, 1000), (3, 0, 1500)]);
        check("-a !0,1 -t", &[(2, 0, 1000), (3, 0, 1500)]);
        let all = [(0, 0, 1000), (1, 0, 1000), (2, 0, 1000), (3, 0, 1000)];
        check("-t 0 -d0", &all);
        check("-S -t2 -d0", &all);
        check("-S -a 1 -d0", &all);
        // As atoi(3) makes an int of what is none.
        check("-p 4294967376 -t 4294967297", &[(0, 80, 1000)]);
        check("-i 4294968296 -t99999999999999999999 -d 4294967296", &all);
        check("-i +1000x -t 1", &[(0, 0, 1000)]);
        // A real-time policy without a priority gets one.
        check("-t2 --policy=rr", &[(0, 3, 1000), (1, 3, 1500)]);
        check("--policy=other -p 80", &[(0, 80, 1000)]);
        check("-t2 --priospread", &[(0, 3, 1000), (1, 2, 1500)]);
        check(
            "--priority=80 --thr=2 --dist=0",
            &[(0, 80, 1000), (1, 80, 1000)],
        );
        check(
            "-Smp90 -i200 -d0",
            &[(0, 90, 200), (1, 90, 200), (2, 90, 200), (3, 90, 200)],
        );
    }

    /// What is said of a command line in the list.
    fn told(line: &str) -> String {
        let words = line
            .split_whitespace()
            .filter(|word| *word != "--tracemark");
        let words = words.map(|word| match word {
            "-h_3500" => "-h 3500".to_owned(),
            word => word.to_owned(),
        });
        let typed = Cyclictest::read(&words.collect::<Vec<_>>());
        let options = typed.and_then(|typed| {
            CyclicOptions::cyclictest(&typed, String::new(), &CPUS[..2], &CPUS[..2])
                .map(|options| (typed, options.plan))
        });
        let (typed, plan) = match options {
            Ok(options) => options,
            Err(Refusal::Usage(_, code)) => return format!("usage {code}"),
            Err(Refusal::Fatal(_)) => return "fatal 1".to_owned(),
            Err(Refusal::Failed(error)) => return error.to_string(),
        };
        if typed.histogram > 0 {
            return format!("histogram of {}", plan.threads.len());
        }
        let thread =
            |one: &ThreadPlan| format!("{}/{}", one.policy.prio(), one.interval.as_ns() / 1000);
        plan.threads
            .iter()
            .map(thread)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn command_lines_of_documents_and_of_other_programs_mean_what_they_do_there() {
        let list = include_str!("../../tests/cyclictest/lines.txt");
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let lines: Vec<_> = lines.filter_map(|line| line.split_once(" => ")).collect();
        assert!(lines.len() >= 80);
        let unlike = lines.iter().filter(|(line, expect)| told(line) != *expect);
        let unlike =
            unlike.map(|(line, expect)| format!("{line}: {expect}, and not {}", told(line)));
        let unlike: Vec<String> = unlike.collect();
        assert!(unlike.is_empty(), "{}", unlike.join("\n"));
    }

    #[test]
    fn what_cyclictest_refuses_is_refused_in_its_words() {
        let check = |words: &str, said: &[&str], code: u8| {
            let said: Vec<String> = said.iter().map(|line| (*line).to_owned()).collect();
            let found = options(words).expect_err("it is refused");
            let Refusal::Usage(lines, found) = found else {
                panic!("{words}: {found:?}");
            };
            assert_eq!((&lines[..], found), (&said[..], code), "{words}");
        };
        check("--help", &[], 0);
        check("-Z", &["cyclictest: invalid option -- 'Z'"], 0);
        check("--nope", &["cyclictest: unrecognized option '--nope'"], 0);
        check("-p", &["cyclictest: option requires an argument -- 'p'"], 0);
        check("-p 100", &[], 1);
        check("-p 2147483648", &[], 1);
        check("-h 2147483648", &[], 1);
        check("-t0", &[], 1);
        check("-o 0", &[], 1);
        check("-A 100 --secaligned", &[], 1);
        check("-h -5", &[], 1);
        check("-o 5", &["WARN: -o option only meaningful, if verbose"], 1);
        check(
            "-a 9",
            &["libnuma: Warning: cpu argument 9 is out of range", ""],
            1,
        );
        // libnuma reads it before the next word is looked at.
        let said = ["libnuma: Warning: cpu argument -1 is out of range", ""];
        check("-a -1 -Z", &said, 1);
        check("-a 1 -Z", &["cyclictest: invalid option -- 'Z'"], 0);
        check("--help -Z", &[], 0);
        check("-a !0-3", &[], 1);
        let fatal = |words: &str, expect: &str| match options(words) {
            Err(Refusal::Fatal(said)) => assert_eq!(said.last().expect("said"), expect),
            other => panic!("{words}: {other:?}"),
        };
        fatal(
            "-a 1 -S",
            "FATAL: numa and smp options are mutually exclusive",
        );
        fatal(
            "-t3 -p1 --priospread",
            "FATAL: timerthread2: failed to set priority to -1",
        );
    }

    #[test]
    fn a_list_goes_beyond_the_cpus_that_we_may_use_unless_a_sign_is_before_it() {
        let check = |list: &str, expect: &[u32]| {
            let found = cpus(list, &CPUS, &CPUS[2..]).ok();
            let expect: Vec<Cpu> = expect.iter().copied().map(Cpu).collect();
            assert_eq!(found.unwrap_or_default(), expect, "{list}");
        };
        check("0", &[0]);
        check("all", &[0, 1, 2, 3]);
        check("+1-2", &[2]);
        check("!3", &[2]);
        check("!2-3", &[]);
    }

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        let check = |words: &str, expect_s: i64| {
            let found = cyclictest(words).plan.sampled_for;
            assert_eq!(found, Some(Duration::from_ms(expect_s * 1000)), "{words}");
        };
        check("-D 10", 10);
        check("-D 10s", 10);
        check("-D 2m", 120);
        check("--duration=1h", 3_600);
        check("-D1d", 86_400);
    }

    #[test]
    fn the_first_sample_is_due_an_interval_after_a_thread_begins() {
        let us = Duration::from_us;
        let check = |words: &str, [after, apart]: [i64; 2], at_second: bool| {
            let expect = Begin {
                at_second,
                after: us(after),
                apart: us(apart),
                with_interval: true,
            };
            assert_eq!(cyclictest(words).plan.begin, expect, "{words}");
        };
        check("-q", [0, 0], false);
        check("-A 100 -t2", [0, 100], false);
        check("--secaligned", [0, 0], true);
        check("--secaligned=100 -t2", [100, 0], true);
    }

    #[test]
    fn the_main_thread_is_where_cyclictests_is() {
        let check = |words: &str, expect: &[u32]| {
            let expect = expect.iter().copied().map(Cpu).collect();
            assert_eq!(cyclictest(words).own_cpus, Some(expect), "{words}");
        };
        check("-t2", &[0, 1, 2, 3]);
        check("-S", &[0, 1, 2, 3]);
        check("-a", &[0, 1, 2, 3]);
        check("-a 2-3 -t1", &[2, 3]);
        check("-a 2-3 --mainaffinity=0", &[0]);
        check("-a 2 --mainaffinity=9", &[2]);
    }

    #[test]
    fn other_options_mean_what_they_do_there() {
        let sleeps = |words: &str| cyclictest(words).plan.sleep;
        assert_eq!(sleeps("-q"), Sleep::Until);
        assert_eq!(sleeps("-r"), Sleep::For);
        assert_eq!(sleeps("-s"), Sleep::For);
        assert_eq!(sleeps("-x"), Sleep::Timer);
        assert_eq!(sleeps("-x -s"), Sleep::For);
        assert_eq!(output("-v -o 10").every, Some(10));
        assert_eq!(
            output("--spike=50 --spike-nodes=7").spikes,
            Some((Duration::from_us(50), 7))
        );
        let limits = |words: &str| {
            let spike = output(words).spikes.map(|(limit, _)| limit.as_ns());
            let limit = cyclictest(words).plan.break_over;
            (limit.map(Duration::as_ns), spike)
        };
        let words = "-b 70 --spike=50";
        assert_eq!(limits(words), (Some(70_000), Some(50_000)));
        // As the figures are, so are they.
        assert_eq!(limits("-N -b 70 --spike=50"), (Some(70), Some(50)));
        assert_eq!(limits("-b -5"), (None, None));
        assert_eq!(output("-p1").policy, "fifo");
        assert_eq!(output("--policy=idle").policy, "idle/other");
        let warnings = output("-S -t4 -h100 -d0").warnings;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert_eq!(cyclictest("--laptop").wake_latency, None);
        let deepest = |words: &str| cyclictest(words).deepest_idle;
        assert_eq!(deepest("--deepest-idle-state=1"), Some(1));
        assert_eq!(deepest("--deepest-idle-state -1"), Some(-1));
        assert_eq!(
            (deepest("--deepest-idle-state=-2"), deepest("-q")),
            (None, None)
        );
        assert_eq!(cyclictest("-l 5 -l 7abc").plan.samples, Some(7));
        assert_eq!(cyclictest("-h 2000000").plan.buckets, 1_000_000);
    }
}
