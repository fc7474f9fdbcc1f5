//! Advice is offered where it would have prevented the miss, for whom it concerns, and in words
//! that the machine takes.

use diagnosis::{Advice, Query, TaskFilter, diagnose};
use event::{Tid, Value};
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const HOG: Task = Task::rt(200, "burner", 60);
const FAIR: Task = Task::fair(300, "compile");

/// CPU 1 is not free, the victim sleeps on CPU 0.
fn begun(victim: Task) -> SyntheticTrace {
    let busy = Task::rt(900, "busy", 98);
    let trace = SyntheticTrace::new().shows_timers().at(10);
    let trace = trace.cpu(1).block(FAIR, busy);
    trace.cpu(0).at(20).block(victim, FAIR)
}

/// An interrupt wakes a task at 1 ms.
fn woken(trace: SyntheticTrace, task: Task) -> SyntheticTrace {
    let trace = trace.at(1_000).irq(9, "eth0").after(2);
    trace.wake(task).after(2).irq_end(9)
}

fn advice(trace: SyntheticTrace, victim: Task) -> Vec<Advice> {
    let query = Query {
        tasks: TaskFilter::from(Tid(victim.tid)),
        worst: 1,
        ..Query::default()
    };
    let diagnosis = diagnose(&trace.build(), &query).expect("a diagnosis");
    let verdict = diagnosis.verdict().expect("it was late");
    assert!(verdict.conclusive, "{}", verdict.sentence);
    verdict.advice.clone()
}

/// The commands that are advised, in order.
fn check(trace: SyntheticTrace, victim: Task, expect: &[&str]) {
    let advice = advice(trace, victim);
    let commands: Vec<_> = advice.iter().map(|a| a.command.as_str()).collect();
    assert_eq!(commands, expect);
}

/// `hog` runs ahead of `victim` for 20 ms.
fn behind(hog: Task, victim: Task) -> SyntheticTrace {
    let trace = begun(victim).at(500).preempt(FAIR, hog);
    woken(trace, victim).at(21_000).block(hog, victim)
}

#[test]
fn a_task_with_a_deadline_is_not_moved_but_leaves_its_class() {
    let deadline = Task {
        tid: 200,
        comm: "burner",
        prio: -1,
    };
    check(behind(deadline, VICTIM), VICTIM, &["chrt -o -p 0 200"]);
}

#[test]
fn who_is_put_below_keeps_its_policy_and_where_nobody_knows_it_that_is_said() {
    const RUNNING: i64 = 1;
    let check = |policy: Option<u64>, command: &str, doubts: bool| {
        let trace = begun(VICTIM).at(500).preempt(FAIR, HOG);
        let trace = woken(trace, VICTIM).at(21_000);
        let trace = match policy {
            Some(policy) => trace.moment_of_policy(HOG, RUNNING, 0, policy),
            None => trace,
        };
        let given = advice(trace.block(HOG, VICTIM), VICTIM);
        let lower = given.iter().find(|one| one.rule == "lower-task");
        let lower = lower.expect("it is advised");
        assert_eq!(lower.command, command, "{policy:?}");
        assert_eq!(lower.because.contains("SCHED_RR"), doubts, "{policy:?}");
    };
    check(Some(1), "chrt -f -p 49 200", false);
    check(Some(2), "chrt -r -p 49 200", false);
    check(None, "chrt -f -p 49 200", true);
    // What was seen is a fair one's: it may have had either before.
    check(Some(0), "chrt -f -p 49 200", true);
}

#[test]
fn a_fair_victim_gets_no_real_time_policy() {
    let victim = Task::fair(100, "audio");
    let expect = ["taskset -pc 1 200", "chrt -o -p 0 200"];
    check(behind(HOG, victim), victim, &expect);
    let equal = Task::fair(200, "compiler");
    let expect = ["taskset -pc 1 200", "renice -n -10 -p 100"];
    check(behind(equal, victim), victim, &expect);
}

/// A state dump's line about a thread of process 100.
fn of_process(trace: SyntheticTrace, task: Task) -> SyntheticTrace {
    trace.event(
        "lttng_statedump_process_state",
        &[
            ("tid", Value::Signed(task.tid.into())),
            ("pid", Value::Signed(100)),
            ("name", Value::Text(task.comm.into())),
        ],
    )
}

#[test]
fn nothing_is_taken_from_a_real_time_task_for_an_ordinary_thread_beside_real_time_ones() {
    let (victim, beside) = (Task::fair(100, "audio"), Task::rt(101, "audio", 70));
    let both = |trace| of_process(of_process(trace, victim), beside);
    let told = "audio (tid 100, nice 0, an ordinary thread beside real-time ones) was late";
    let check = |hog: Task, expect: &[&str], should: bool| {
        let trace = both(behind(hog, victim)).after(10).block(victim, beside);
        let trace = trace.after(10).block(beside, FAIR).build();
        let tasks = TaskFilter::from(Tid(victim.tid));
        let query = Query {
            tasks,
            ..Query::default()
        };
        let diagnosis = diagnose(&trace, &query).expect("a diagnosis");
        let verdict = diagnosis.verdict().expect("it was late");
        assert!(verdict.sentence.starts_with(told), "{}", verdict.sentence);
        assert_eq!(
            verdict.sentence.contains("as they should"),
            should,
            "{}",
            verdict.sentence
        );
        let commands: Vec<_> = verdict.advice.iter().map(|a| a.command.as_str()).collect();
        assert_eq!(commands, expect);
    };
    check(HOG, &[], true);
    // Of others it may have more.
    let equal = Task::fair(200, "compiler");
    let expect = ["taskset -pc 1 200", "renice -n -10 -p 100"];
    check(equal, &expect, false);
}

#[test]
fn ordinary_threads_stand_behind_the_real_time_ones_of_their_process() {
    let (victim, beside) = (Task::fair(100, "audio"), Task::rt(101, "audio", 50));
    let trace = begun(victim).at(500).preempt(FAIR, HOG);
    let trace = of_process(of_process(woken(trace, victim), victim), beside);
    let trace = trace.at(15_000).irq(9, "eth0").after(2).wake(beside);
    let trace = trace.after(2).irq_end(9).at(21_000).block(HOG, beside);
    let trace = trace.at(22_000).block(beside, victim).build();
    let query = Query {
        tasks: TaskFilter::parse(&["audio"]).expect("names tasks"),
        ..Query::default()
    };
    let diagnosis = diagnose(&trace, &query).expect("a diagnosis");
    let first = diagnosis.groups[0].members[0];
    assert_eq!(diagnosis.activations[first].task.tid, Tid(beside.tid));
    let longest = diagnosis.activations.first().expect("one");
    assert_eq!(longest.task.tid, Tid(victim.tid), "it is the longer one");
}

#[test]
fn a_victim_of_sched_idle_is_told_so_and_leaves_that_policy_as_nice_values_do_nothing_for_it() {
    const TARGET: i64 = 0;
    let victim = Task::fair(100, "audio");
    let equal = Task::fair(200, "compiler");
    let check = |policy: u64, told: &str, expect: &str| {
        let trace = begun(victim).at(500).preempt(FAIR, equal);
        let trace = woken(trace, victim).at(21_000);
        let trace = trace.moment_of_policy(victim, TARGET, 0, policy);
        let trace = trace.block(equal, victim).build();
        let tasks = TaskFilter::from(Tid(victim.tid));
        let query = Query {
            tasks,
            ..Query::default()
        };
        let diagnosis = diagnose(&trace, &query).expect("a diagnosis");
        let verdict = diagnosis.verdict().expect("it was late");
        assert!(verdict.sentence.starts_with(told), "{}", verdict.sentence);
        let commands: Vec<_> = verdict.advice.iter().map(|a| a.command.as_str()).collect();
        assert_eq!(commands, ["taskset -pc 1 200", expect], "policy {policy}");
    };
    let renice = "renice -n -10 -p 100";
    check(0, "audio (tid 100, nice 0) was late", renice);
    check(3, "audio (tid 100, nice 0, SCHED_BATCH) was late", renice);
    let leave = "chrt -o -p 0 100";
    check(5, "audio (tid 100, nice 0, SCHED_IDLE) was late", leave);
}

#[test]
fn the_hop_that_waited_is_the_one_that_advice_is_for() {
    // The hog keeps the source from CPU 1; the victim waits for the source on CPU 0.
    let (source, busy) = (Task::rt(400, "source", 40), Task::rt(900, "busy", 98));
    let trace = begun(VICTIM).at(400).cpu(1).block(busy, HOG).at(1_000);
    let trace = trace
        .irq(9, "eth0")
        .after(2)
        .wake(source)
        .after(2)
        .irq_end(9);
    let trace = trace
        .at(21_000)
        .block(HOG, source)
        .after(20)
        .waking(VICTIM, 0);
    let trace = trace
        .cpu(0)
        .after(3)
        .wakeup(VICTIM, 0)
        .after(2)
        .preempt(FAIR, VICTIM);
    let given = advice(trace, VICTIM);
    let because = &given[0].because;
    assert_eq!(given[0].command, "taskset -pc 0 200");
    assert_eq!(because, "burner shares CPU 1 with source");
    assert!(
        given.iter().all(|a| a.rule != "widen-affinity"),
        "{given:?}"
    );
}

#[test]
fn a_victim_that_takes_another_name_in_the_midst_has_one_name_in_the_answer() {
    let before = Task {
        comm: "app",
        ..VICTIM
    };
    let trace = begun(before).at(500).preempt(FAIR, HOG);
    let given = advice(woken(trace, before).at(21_000).block(HOG, VICTIM), VICTIM);
    let because = &given[0].because;
    assert!(
        because.ends_with(&format!("with {}", VICTIM.comm)),
        "{given:?}"
    );
}

#[test]
fn tasks_of_the_victims_own_name_are_changed_without_it() {
    let same = |tid| Task::rt(tid, VICTIM.comm, 60);
    let mut trace = woken(begun(VICTIM).at(500).preempt(FAIR, same(400)), VICTIM);
    for tid in 400..410 {
        trace = trace.after(2_000).block(same(tid), same(tid + 1));
    }
    let given = advice(trace.after(2_000).block(same(410), VICTIM), VICTIM);
    let expect = "for tid in $(pgrep -w -x victim | grep -vxE '100'); do taskset -pc 1 $tid; done";
    assert_eq!(given[0].command, expect);
}

#[test]
fn where_no_cause_alone_made_the_miss_all_of_the_advice_is_needed() {
    let second = Task::rt(201, "second", 70);
    let after = |first_ms: i64, second_ms: i64| {
        let trace = begun(VICTIM).at(500).preempt(FAIR, HOG);
        let trace = woken(trace, VICTIM).at(1_000 + first_ms * 1_000);
        let trace = trace.block(HOG, second).after(second_ms * 1_000);
        let steps = [(1_000_000, 3, 0, 9), (1_002_000, 7, 0, VICTIM.tid)];
        trace.block(second, VICTIM).hit(1, VICTIM, HOG, &steps)
    };
    // Over 1 ms are left when one of the two is gone.
    let both = advice(after(10, 10), VICTIM);
    assert!(both.iter().all(|a| !a.alone), "{both:?}");
    let commands: Vec<_> = both.iter().map(|a| a.command.as_str()).collect();
    assert!(commands.contains(&"taskset -pc 1 200") && commands.contains(&"taskset -pc 1 201"));
    // The first one alone is enough; the second one is not.
    let first = [(1_000_000, 3, 0, 9), (1_002_000, 7, 0, VICTIM.tid)];
    let trace = begun(VICTIM).at(500).preempt(FAIR, HOG);
    let trace = woken(trace, VICTIM)
        .at(11_000)
        .block(HOG, second)
        .after(900);
    let one = advice(
        trace.block(second, VICTIM).hit(1, VICTIM, HOG, &first),
        VICTIM,
    );
    assert!(
        one.iter().all(|a| a.alone && !a.command.ends_with("201")),
        "{one:?}"
    );
}

#[test]
fn what_is_needed_against_each_cause_comes_before_other_ways_against_one() {
    let second = Task::rt(201, "second", 70);
    let trace = begun(VICTIM).at(500).preempt(FAIR, HOG);
    let trace = woken(trace, VICTIM).at(11_000).block(HOG, second);
    let steps = [(1_000_000, 3, 0, 9), (1_002_000, 7, 0, VICTIM.tid)];
    let trace = trace.at(22_000).block(second, VICTIM);
    let given = advice(trace.hit(1, VICTIM, HOG, &steps), VICTIM);
    assert!(given.iter().all(|one| !one.alone), "{given:?}");
    let causes: Vec<usize> = given.iter().map(|one| one.cause).collect();
    assert_eq!(causes[..4], [0, 1, 0, 1], "{given:?}");
    assert_eq!(given[0].command, "taskset -pc 1 201");
    assert_eq!(given[1].command, "taskset -pc 1 200");
}

/// The victim works for `work_us`, and the hog runs for `hog_us` in the middle of it; a watch looks
/// on.
fn works(work_us: i64, hog_us: i64) -> SyntheticTrace {
    let trace = woken(begun(VICTIM), VICTIM).preempt(FAIR, VICTIM);
    let trace = trace.after(work_us / 2).wake(HOG).preempt(VICTIM, HOG);
    let trace = trace.after(hog_us).block(HOG, VICTIM);
    let trace = trace.after(work_us / 2).block(VICTIM, FAIR);
    let end_ns = (1_004 + work_us + hog_us) * 1_000;
    let (task, cpu) = (VICTIM.tid, 0);
    let steps = [
        (1_000_000, 3, cpu, 9),
        (1_002_000, 7, cpu, task),
        (1_004_000, 8, cpu, task),
        (end_ns, 10, cpu, task),
    ];
    trace.hit_blocked(1, VICTIM, HOG, &steps)
}

#[test]
fn whoever_takes_a_good_part_beside_own_work_is_in_the_advice_too() {
    let check = |(work_us, hog_us): (i64, i64), expect: &[(&str, bool)], was_alone: bool| {
        let found = diagnose(&works(work_us, hog_us).build(), &Query::default());
        let found = found.expect("a diagnosis");
        assert_eq!(found.groups[0].signature, "own work");
        let advice = &found.groups[0].verdict.advice;
        let rules: Vec<_> = advice.iter().map(|one| (one.rule, one.alone)).collect();
        assert_eq!(rules[..expect.len()], *expect, "{rules:?}");
        let said = advice
            .iter()
            .any(|one| one.because.contains("no other task had"));
        assert_eq!(said, was_alone, "{advice:?}");
    };
    // A fiftieth is no good part.
    check((10_000, 200), &[("profile-own-work", true)], true);
    // Without the hog it would still have been late.
    let both = [("profile-own-work", false), ("move-task", false)];
    check((6_000, 4_000), &both, false);
    // It would not: and nobody works less for nothing.
    let one = [
        ("move-task", true),
        ("lower-task", true),
        ("profile-own-work", true),
    ];
    check((620, 480), &one, false);
}

#[test]
fn who_is_found_spinning_in_the_kernel_has_not_worked_for_itself() {
    let check = |kernel: &[&'static str], conclusive: bool, says: &str| {
        let mut trace = woken(begun(VICTIM), VICTIM).preempt(FAIR, VICTIM);
        for _ in 0..9 {
            let look: &[&str] = &["jpw+0x12 (robot)"];
            trace = trace.after(1_000).worked_in_kernel(VICTIM, look, kernel);
        }
        let trace = trace.after(1_000).block(VICTIM, FAIR);
        let task = VICTIM.tid;
        let steps = [
            (1_000_000, 3, 0, 9),
            (1_002_000, 7, 0, task),
            (1_004_000, 8, 0, task),
            (11_004_000, 10, 0, task),
        ];
        let trace = trace.hit_blocked(1, VICTIM, HOG, &steps);
        let found = diagnose(&trace.build(), &Query::default()).expect("a diagnosis");
        let verdict = &found.groups[0].verdict;
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
        assert_eq!(verdict.conclusive, conclusive, "{}", verdict.sentence);
    };
    check(&[], true, "it ran itself for 10.000 ms");
    check(
        &["shmem_write_end+0x12"],
        true,
        "it ran itself for 10.000 ms",
    );
    let spun = "it spun for another task's lock, nothing says since when";
    check(&["rwsem_spin_on_owner+0x3b"], false, spun);
}

#[test]
fn own_work_says_in_which_function_it_was_seen() {
    let plan: &[&str] = &["clock_gettime+0x2d (libc.so.6)", "plan+0x12 (robot)"];
    let other: &[&str] = &["log+0x3 (robot)"];
    let check = |looks: &[&[&'static str]], expect: Option<&str>| {
        let mut trace = woken(begun(VICTIM), VICTIM).preempt(FAIR, VICTIM);
        for look in looks {
            trace = trace.after(2_000).worked(VICTIM, look);
        }
        // Of another task, and of the next activation.
        let trace = trace.worked(HOG, other).after(2_000).block(VICTIM, FAIR);
        let end_ns = (1_004 + 2_000 * (looks.len() as i64 + 1)) * 1_000;
        let task = VICTIM.tid;
        let steps = [
            (1_000_000, 3, 0, 9),
            (1_002_000, 7, 0, task),
            (1_004_000, 8, 0, task),
            (end_ns, 10, 0, task),
        ];
        let trace = trace.hit_blocked(1, VICTIM, HOG, &steps);
        let trace = trace.after(100).worked(VICTIM, other);
        let found = diagnose(&trace.build(), &Query::default()).expect("a diagnosis");
        let verdict = &found.groups[0].verdict;
        match expect {
            Some(expect) => assert!(verdict.sentence.contains(expect), "{}", verdict.sentence),
            None => assert!(!verdict.sentence.contains("seen"), "{}", verdict.sentence),
        }
        let shown = verdict.stacks.iter();
        let shown = shown.filter(|(what, _)| what.contains("at its own work"));
        assert_eq!(shown.count(), looks.len());
    };
    check(&[], None);
    check(&[plan], Some("seen in plan of robot at 1 of 1 looks"));
    check(
        &[plan, other, plan],
        Some("seen in plan of robot at 2 of 3 looks"),
    );
}

#[test]
fn a_task_that_works_before_it_hands_on_is_told_to_hand_on_first() {
    let source = Task::rt(400, "source", 40);
    let trace = woken(begun(VICTIM), source).after(2).preempt(FAIR, source);
    let trace = trace
        .at(21_000)
        .wake(VICTIM)
        .after(3)
        .preempt(source, VICTIM);
    let given = advice(trace, VICTIM);
    assert_eq!(given[0].rule, "hand-on-sooner");
    let expect = "let source wake victim first, and do the rest of its work after that";
    assert_eq!(given[0].command, expect);
}

#[test]
fn a_limit_on_real_time_tasks_has_the_knob_that_the_machine_has() {
    let trace = woken(begun(VICTIM).at(500).preempt(FAIR, HOG), VICTIM);
    let trace = trace
        .at(1_100)
        .preempt(HOG, FAIR)
        .at(41_000)
        .preempt(FAIR, VICTIM);
    let expect = "if [ -e /sys/kernel/debug/sched/fair_server/cpu0/runtime ]; then \
                  echo 0 > /sys/kernel/debug/sched/fair_server/cpu0/runtime; \
                  else sysctl -w kernel.sched_rt_runtime_us=-1; fi";
    check(trace.clone(), VICTIM, &[expect]);
    // The sysctl lifts nothing where there is a server, whether or not its knob is to be seen.
    let server = "echo 0 > /sys/kernel/debug/sched/fair_server/cpu0/runtime";
    let mounts = "[ -e /sys/kernel/debug/sched/fair_server/cpu0/runtime ] || mount -t debugfs none \
                  /sys/kernel/debug; echo 0 > /sys/kernel/debug/sched/fair_server/cpu0/runtime";
    let limit = "sysctl -w kernel.sched_rt_runtime_us=-1";
    let on = |release: &'static str, debugfs: &'static str, expect: &[&str]| {
        let trace = trace.clone().environment("kernel_release", release);
        check(
            trace.environment("rtscope_debugfs", debugfs),
            VICTIM,
            expect,
        );
    };
    on("6.18.0-rc1", "unmounted", &[mounts]);
    on("6.12.48+deb13-rt-amd64", "unknown", &[mounts]);
    on("7.0.1", "allowed", &[server]);
    on("6.18.0", "refused", &[]);
    on("6.11.9", "unmounted", &[limit]);
    on("6.1.0-40-rt-amd64", "refused", &[limit]);
}

#[test]
fn a_preemption_model_is_offered_only_to_kernels_that_can_change_it() {
    let offered = |version: &str| {
        let trace = begun(VICTIM)
            .environment("kernel_version", version)
            .environment("rtscope_preemption_model", "none");
        let trace = woken(trace, VICTIM).at(21_000).preempt(FAIR, VICTIM);
        advice(trace, VICTIM)
            .iter()
            .any(|a| a.rule == "full-preemption")
    };
    assert!(offered("#1 SMP PREEMPT_DYNAMIC @0"));
    assert!(!offered("#1 SMP @0"));
}

#[test]
fn what_the_machine_refuses_is_not_offered() {
    let offers = |trace: SyntheticTrace, debugfs: &'static str| -> Vec<String> {
        let trace = trace.environment("rtscope_debugfs", debugfs);
        let given = advice(trace, VICTIM);
        given.into_iter().map(|advice| advice.command).collect()
    };
    let throttled = || {
        let trace = woken(begun(VICTIM).at(500).preempt(FAIR, HOG), VICTIM);
        let trace = trace.at(1_100).preempt(HOG, FAIR);
        trace.at(41_000).preempt(FAIR, VICTIM)
    };
    assert_eq!(offers(throttled(), "allowed").len(), 1);
    assert!(offers(throttled(), "refused").is_empty());
    let kept = || {
        let trace = begun(VICTIM).environment("rtscope_preemption_model", "none");
        woken(trace, VICTIM).at(21_000).preempt(FAIR, VICTIM)
    };
    let boot = |commands: Vec<String>| commands.contains(&"boot with preempt=full".to_owned());
    assert!(boot(offers(kept(), "refused")));
    assert!(!boot(offers(kept(), "allowed")));
    let turns = "echo full > /sys/kernel/debug/sched/preempt";
    let mounts = "[ -e /sys/kernel/debug/sched/preempt ] || mount -t debugfs none \
                  /sys/kernel/debug; echo full > /sys/kernel/debug/sched/preempt";
    for (debugfs, expect) in [
        ("allowed", turns),
        ("unmounted", mounts),
        ("unknown", mounts),
    ] {
        let given = offers(kept(), debugfs);
        assert!(
            given.iter().any(|one| one == expect),
            "{debugfs}: {given:?}"
        );
    }
}

#[test]
fn a_virtual_cpu_has_no_idle_states_to_limit() {
    let asleep = |trace: SyntheticTrace| {
        let trace = trace.cpu(1).at(10).block(FAIR, Task::IDLE);
        let trace = trace.cpu(0).at(20).block(VICTIM, Task::IDLE).at(1_000);
        let trace = trace
            .irq(9, "eth0")
            .after(2)
            .wake(VICTIM)
            .after(2)
            .irq_end(9);
        trace.after(150).run(VICTIM)
    };
    let rules = |trace| -> Vec<&str> {
        let given = advice(asleep(trace), VICTIM);
        given.iter().map(|a| a.rule).collect()
    };
    assert_eq!(rules(SyntheticTrace::new()), ["limit-idle-states"]);
    let guest = SyntheticTrace::new().environment("rtscope_virtualised", "1");
    assert!(rules(guest).is_empty());
}

/// Plays the advice of a quota on a machine with these files of control groups, of which those of
/// `/proc` are given with `{root}` in the place of the root; the files that it changed.
fn lifted(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Vec<String> {
    let victim = Task::fair(100, "victim");
    let trace = SyntheticTrace::new().at(10).block(victim, Task::IDLE);
    let trace = trace.at(1_000).throttled(1_000, victim).wake(victim);
    let trace = trace.at(90_000).run(victim);
    let given = advice(trace, victim);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().display().to_string();
    let proc = [("proc/mounts", mounts), ("proc/100/cgroup", groups)];
    for (path, text) in proc.iter().chain(files) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text.replace("{root}", &root)).expect("written");
    }
    let command = given[0].command.replace("/proc/", &format!("{root}/proc/"));
    let mut shell = std::process::Command::new("sh");
    let run = shell.args(["-c", &command]).output().expect("a shell");
    assert!(run.status.success(), "{command}: {run:?}");
    let read = |path| std::fs::read_to_string(folder.path().join(path)).expect("there");
    let changed = files.iter().filter(|(path, text)| read(*path) != *text);
    changed
        .map(|(path, _)| format!("{path}: {}", read(*path).trim()))
        .collect()
}

#[test]
fn a_quota_is_lifted_through_whichever_interface_the_machine_has_mounted_anywhere() {
    let check = |mounts, groups, files: &[(&str, &str)], expect: &str| {
        assert_eq!(lifted(mounts, groups, files), [expect], "{mounts}");
    };
    let second = "cgroup2 {root}/cgroup cgroup2 rw 0 0\n";
    let first = "cgroup {root}/mnt/set cgroup rw,relatime,cpuset 0 0\n\
                 cgroup {root}/mnt/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n";
    let in_first = ("mnt/cpu/a/cpu.cfs_quota_us", "20000\n");
    check(
        second,
        "0::/a\n",
        &[("cgroup/a/cpu.max", "20000 100000\n")],
        "cgroup/a/cpu.max: max",
    );
    let groups = "4:cpuset:/z\n3:cpu,cpuacct:/a\n0::/\n";
    let expect = "mnt/cpu/a/cpu.cfs_quota_us: -1";
    check(first, groups, &[in_first], expect);
    // Both at once, as systemd's mixed layout has them: the second has no controllers.
    check(&format!("{second}{first}"), groups, &[in_first], expect);
}

#[test]
fn a_nice_value_is_said_to_do_nothing_between_sessions_where_the_kernel_shares_by_these() {
    let (victim, equal) = (Task::fair(100, "audio"), Task::fair(200, "compiler"));
    let check = |autogroup: Option<&str>, expect: bool| {
        let trace = begun(victim).at(500).preempt(FAIR, equal);
        let trace = woken(trace, victim).at(21_000).block(equal, victim);
        let trace = match autogroup {
            Some(said) => trace.environment("rtscope_autogroup", said),
            None => trace,
        };
        let tasks = TaskFilter::from(Tid(victim.tid));
        let query = Query {
            tasks,
            ..Query::default()
        };
        let diagnosis = diagnose(&trace.build(), &query).expect("a diagnosis");
        let verdict = diagnosis.verdict().expect("it was late");
        let mut advice = verdict.advice.iter();
        let renice = advice.find(|one| one.rule == "raise-weight");
        let because = &renice.expect("it is offered").because;
        let is_told = because.contains("echo -10 > /proc/100/autogroup");
        assert_eq!(is_told, expect, "{because}");
    };
    check(Some("on"), true);
    check(Some("off"), false);
    check(None, false);
}
