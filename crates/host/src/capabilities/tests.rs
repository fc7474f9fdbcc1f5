//! The rules on made-up machines.

use event::{Cpu, ErrorKind};

use super::*;

/// A machine that lacks nothing.
fn able() -> Capabilities {
    Capabilities {
        privileges: Privileges {
            sys_admin: true,
            bpf: true,
            perfmon: true,
            sys_nice: true,
            syslog: true,
            ..Default::default()
        },
        tracefs: Tracefs {
            mountpoint: Some("/sys/kernel/tracing".into()),
            writable: true,
            instances: true,
            sched_events: true,
            kernel_symbols: true,
            kptr_restrict: Some(0),
            functions: Some(Functions::BothEnds),
        },
        bpf: Bpf {
            btf: true,
            statistics: true,
            interrupted_registers: true,
            steal: true,
            ..Default::default()
        },
        scheduler: Scheduler {
            preemption: Preemption::Full,
            ..Default::default()
        },
        machine: Machine {
            cpus_allowed: vec![Cpu(0), Cpu(1)],
            ..Default::default()
        },
        jackd_path: Some("/usr/bin/jackd".into()),
    }
}

fn check(change: impl Fn(&mut Capabilities), verb: Verb, expect: Option<(ErrorKind, &str, &str)>) {
    let mut capabilities = able();
    change(&mut capabilities);
    let error = capabilities.require(verb).err();
    let parts = error.as_ref().map(|error| {
        (
            error.kind(),
            error.value_found().unwrap_or(""),
            error.fixed_by().unwrap_or(""),
        )
    });
    assert_eq!(parts, expect, "{verb:?}");
}

#[test]
fn whose_clock_is_not_the_kernels_explains_nothing() {
    let offsets = "monotonic     1000000         5\nboottime            0         0\n";
    assert_eq!(parse::clock_offset_ns(offsets), 1_000_000_000_000_005);
    assert_eq!(parse::clock_offset_ns(""), 0);
    let apart = |found: &mut Capabilities| found.machine.clock_offset_ns = -1_500_000_000;
    let expect = (
        ErrorKind::Unsupported,
        "a time namespace, -1.5 s ahead (/proc/self/timens_offsets)",
        "run it outside of that namespace: sudo nsenter --target 1 --time rtscope …",
    );
    for verb in [Verb::Watch, Verb::Record, Verb::Demo, Verb::Tune] {
        check(apart, verb, Some(expect));
    }
    // Threads of our own look at one clock alone.
    check(apart, Verb::Measure, None);
}

#[test]
fn a_machine_that_lacks_nothing_runs_every_verb_on_its_highest_rung() {
    for verb in Verb::ALL {
        check(|_| (), verb, None);
        assert!(able().stand(verb).lacks.is_empty(), "{verb:?}");
    }
    assert_eq!(able().stand(Verb::Watch).rung, Some(Rung::Bpf));
    assert_eq!(able().stand(Verb::Record).rung, Some(Rung::Tracefs));
    assert_eq!(able().stand(Verb::Diagnose).rung, Some(Rung::File));
    assert!(able().doubts().is_empty());
}

#[test]
fn a_user_without_privileges_is_told_what_to_type() {
    let nobody = |capabilities: &mut Capabilities| {
        capabilities.privileges = Privileges {
            uid: 1000,
            ..Default::default()
        };
        capabilities.bpf.refused = Some("cannot load".into());
        capabilities.tracefs.writable = false;
    };
    let found = "uid 1000 without CAP_BPF";
    let denied = ErrorKind::PermissionDenied;
    check(
        nobody,
        Verb::Watch,
        Some((denied, found, "run it with sudo")),
    );
    let found = "uid 1000 may not write /sys/kernel/tracing";
    check(
        nobody,
        Verb::Record,
        Some((denied, found, "run it with sudo")),
    );
    let found = "no CAP_SYS_NICE, RLIMIT_RTPRIO 0";
    check(
        nobody,
        Verb::Measure,
        Some((denied, found, "run it with sudo")),
    );
    check(
        nobody,
        Verb::Tune,
        Some((denied, "uid 1000 without CAP_BPF", "run it with sudo")),
    );
    check(nobody, Verb::Diagnose, None);
    check(nobody, Verb::Cat, None);
}

#[test]
fn root_of_a_user_namespace_is_told_to_leave_it() {
    let inside = |capabilities: &mut Capabilities| {
        capabilities.privileges = Privileges {
            in_user_namespace: true,
            ..Default::default()
        };
        capabilities.tracefs.writable = false;
    };
    let denied = ErrorKind::PermissionDenied;
    let leave = "run it with sudo outside of this user namespace, on the host";
    let found = "uid 0 of a user namespace without CAP_BPF";
    check(inside, Verb::Watch, Some((denied, found, leave)));
    let found = "uid 0 of a user namespace may not write /sys/kernel/tracing";
    check(inside, Verb::Record, Some((denied, found, leave)));
    let found = "uid 0 of a user namespace";
    check(inside, Verb::Shield, Some((denied, found, leave)));
    let found = "uid 0 of a user namespace, RLIMIT_RTPRIO 0";
    check(inside, Verb::Measure, Some((denied, found, leave)));
}

#[test]
fn with_a_few_capabilities_each_verb_says_what_it_does_without() {
    let mut few = able();
    few.privileges = Privileges {
        uid: 1000,
        bpf: true,
        perfmon: true,
        sys_nice: true,
        memory_lock_refused: true,
        memlock_bytes: Some(8 << 20),
        idle_limit_refused: true,
        ..Default::default()
    };
    few.tracefs.writable = false;
    let lacks = |verb| few.stand(verb).lacks.into_iter().map(|lack| lack.found);
    let tracefs = "uid 1000 may not write /sys/kernel/tracing";
    assert_eq!(few.stand(Verb::Watch).rung, Some(Rung::Bpf));
    assert_eq!(lacks(Verb::Watch).collect::<Vec<_>>(), [tracefs]);
    assert_eq!(
        few.snapshot_lack().map(|lack| lack.found),
        Some(tracefs.into())
    );
    assert_eq!(few.stand(Verb::Record).rung, None);
    assert_eq!(few.stand(Verb::Measure).rung, Some(Rung::Bpf));
    assert_eq!(
        lacks(Verb::Measure).collect::<Vec<_>>(),
        [
            "no CAP_IPC_LOCK, RLIMIT_MEMLOCK 8388608",
            "uid 1000 may not write /dev/cpu_dma_latency"
        ]
    );
    assert_eq!(able().snapshot_lack(), None);
}

#[test]
fn without_programs_in_the_kernel_a_measurement_has_its_figures_and_no_culprits() {
    let mut capabilities = able();
    assert_eq!(capabilities.stand(Verb::Measure).rung, Some(Rung::Bpf));
    capabilities.bpf.btf = false;
    let stand = capabilities.stand(Verb::Measure);
    assert_eq!(stand.rung, Some(Rung::UserSpace));
    assert_eq!(stand.lacks[0].effect, Effect::Degrades);
}

#[test]
fn a_tracefs_that_is_not_mounted_stops_a_recording_and_degrades_a_watch() {
    let unmounted = |capabilities: &mut Capabilities| capabilities.tracefs.mountpoint = None;
    let fix = "sudo mount -t tracefs nodev /sys/kernel/tracing";
    let expect = (ErrorKind::Unsupported, "no tracefs in /proc/mounts", fix);
    check(unmounted, Verb::Record, Some(expect));
    check(unmounted, Verb::Watch, None);
    let mut capabilities = able();
    unmounted(&mut capabilities);
    assert_eq!(
        capabilities.stand(Verb::Watch).lacks[0].effect,
        Effect::Degrades
    );
}

#[test]
fn root_that_cannot_write_tracefs_is_not_sent_to_sudo() {
    let check = |uid: u32, expect: &str| {
        let mut capabilities = able();
        capabilities.privileges.uid = uid;
        capabilities.tracefs.writable = false;
        let error = capabilities.require(Verb::Record).expect_err("no tracefs");
        let fix = error.fixed_by().expect("a remedy");
        assert!(fix.contains(expect), "{uid}: {fix}");
    };
    check(0, ": mount -t tracefs nodev /sys/kernel/tracing");
    check(1000, "run it with sudo");
}

#[test]
fn a_kernel_without_btf_names_the_lower_rung() {
    let mut capabilities = able();
    capabilities.bpf.btf = false;
    let error = capabilities.require(Verb::Watch).expect_err("no BTF");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .fixed_by()
            .is_some_and(|fix| fix.contains("rtscope record"))
    );
}

#[test]
fn what_the_kernel_lacks_degrades_a_watch_and_stops_none() {
    let mut capabilities = able();
    capabilities.bpf.absent = vec![AbsentTracepoint {
        name: "nmi_handler".into(),
        without: "NMIs are not seen".into(),
    }];
    capabilities.bpf.statistics = false;
    let stand = capabilities.stand(Verb::Watch);
    let lacks: Vec<_> = stand
        .lacks
        .iter()
        .map(|lack| (lack.effect, lack.what.as_str()))
        .collect();
    let degrades = Effect::Degrades;
    let expect = [
        (degrades, "NMIs are not seen"),
        (degrades, "our own cost cannot be counted"),
    ];
    assert_eq!(lacks, expect);
    assert_eq!(stand.rung, Some(Rung::Bpf));
    // A program that cannot be attached for another reason than a privilege stops it.
    capabilities.bpf.refused = Some("cannot attach".into());
    let error = capabilities.require(Verb::Watch).expect_err("refused");
    assert_eq!(error.value_found(), Some("cannot attach"));
}

#[test]
fn a_demo_needs_a_real_time_budget_and_a_second_cpu() {
    check(
        |capabilities| {
            capabilities.scheduler.cgroup = Some("/sys/fs/cgroup/cpu/a".into());
            capabilities.scheduler.cgroup_rt_runtime_us = Some(0);
        },
        Verb::Demo,
        Some((
            ErrorKind::PermissionDenied,
            "/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us is 0",
            "echo 500000 | sudo tee /sys/fs/cgroup/cpu/a/cpu.rt_runtime_us",
        )),
    );
    let alone = |capabilities: &mut Capabilities| capabilities.machine.cpus_allowed = vec![Cpu(0)];
    let fix = "run it where two CPUs are allowed: taskset -p $$ shows them";
    check(
        alone,
        Verb::Demo,
        Some((ErrorKind::Unsupported, "1 CPU to run on", fix)),
    );
    check(alone, Verb::Watch, None);
}

#[test]
fn a_missing_jackd_points_to_the_other_demo() {
    let without = |capabilities: &mut Capabilities| capabilities.jackd_path = None;
    let fix = "sudo apt install jackd2; without it: sudo rtscope demo hog";
    check(
        without,
        Verb::DemoJack,
        Some((ErrorKind::NotFound, "no jackd in PATH", fix)),
    );
    check(without, Verb::Demo, None);
}

#[test]
fn what_makes_numbers_doubtful_is_said_with_the_remedy() {
    let mut capabilities = able();
    capabilities.machine.virtualised = true;
    capabilities.machine.steal = StealReport::NotReported;
    capabilities.machine.governors = vec!["powersave".into()];
    capabilities.scheduler.preemption = Preemption::None;
    let found: Vec<String> = capabilities
        .doubts()
        .into_iter()
        .map(|doubt| doubt.found)
        .collect();
    let expect = [
        "a hypervisor below this kernel, steal not reported",
        "governor powersave",
        "preemption model none",
    ];
    assert_eq!(found, expect);
}

/// The first doubt of a machine that was changed so: what was found, and its fix.
fn doubted(change: fn(&mut Machine), expect: Option<(&str, &str)>) {
    let mut capabilities = able();
    change(&mut capabilities.machine);
    let doubts = capabilities.doubts();
    let parts = doubts
        .first()
        .map(|one| (one.found.as_str(), one.fix.as_str()));
    assert_eq!(parts, expect);
}

#[test]
fn a_setting_that_makes_tasks_late_is_told_with_its_remedy() {
    let check = doubted;
    check(|_| (), None);
    check(|machine| machine.smt_active = Some(false), None);
    check(
        |machine| machine.smt_active = Some(true),
        Some((
            "SMT is on",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )),
    );
    check(|machine| machine.idle_exit_us_max = Some(2), None);
    check(
        |machine| machine.idle_exit_us_max = Some(133),
        Some((
            "an idle state takes 133 us to leave",
            "sudo cpupower idle-set -D 20",
        )),
    );
    check(|machine| machine.clocksource = Some("tsc".into()), None);
    check(
        |machine| machine.clocksource = Some("hpet".into()),
        Some((
            "clocksource hpet",
            "boot with tsc=reliable, if the machine's TSC is",
        )),
    );
    check(
        |machine| {
            machine.cpus_isolated = vec![Cpu(2), Cpu(3)];
            machine.irqs_on_isolated = vec![9];
        },
        Some((
            "1 interrupts on 2,3",
            "sudo rtscope shield --cpu 2,3 --apply",
        )),
    );
}

#[test]
fn what_the_kernel_does_by_itself_is_told_with_its_remedy() {
    let check = doubted;
    check(
        |machine| machine.background.irqbalance = true,
        Some(("irqbalance runs", "sudo systemctl stop irqbalance")),
    );
    check(
        |machine| machine.background.huge_pages = Some("madvise".into()),
        None,
    );
    check(
        |machine| machine.background.huge_pages = Some("always".into()),
        Some((
            "transparent_hugepage/enabled is always",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )),
    );
    check(
        |machine| machine.background.numa_balancing = Some(true),
        Some((
            "kernel.numa_balancing is on, with more than one node",
            "sudo sysctl kernel.numa_balancing=0",
        )),
    );
    check(
        |machine| machine.background.nmi_watchdog = Some(true),
        Some((
            "kernel.nmi_watchdog is on",
            "sudo sysctl kernel.nmi_watchdog=0",
        )),
    );
}

#[test]
fn throttling_is_in_the_way_of_whoever_wants_more_than_it_grants() {
    let check = |runtime_us: Option<i64>, share: f64, expect: bool| {
        let mut capabilities = able();
        capabilities.scheduler.rt_runtime_us = runtime_us;
        capabilities.scheduler.rt_period_us = Some(1_000_000);
        assert_eq!(
            capabilities.throttling_doubt(share).is_some(),
            expect,
            "{runtime_us:?} {share}"
        );
    };
    check(Some(950_000), 0.5, false);
    check(Some(950_000), 0.99, true);
    check(Some(-1), 0.99, false);
    check(None, 0.99, false);
}

#[test]
fn where_a_fair_server_throttles_the_sysctl_lifts_nothing() {
    let check = |set_ns: Option<(i64, i64)>, share: f64, expect: Option<&str>| {
        let mut capabilities = able();
        capabilities.scheduler.rt_runtime_us = Some(-1);
        capabilities.scheduler.rt_period_us = Some(1_000_000);
        capabilities.scheduler.fair_server = Some(FairServer {
            runtime_ns: set_ns.map(|(runtime_ns, _)| runtime_ns),
            period_ns: set_ns.map(|(_, period_ns)| period_ns),
        });
        let doubt = capabilities.throttling_doubt(share);
        let words = doubt.map(|doubt| format!("{}; {}", doubt.found, doubt.fix));
        match (&words, expect) {
            (Some(words), Some(part)) => assert!(words.contains(part), "{words}"),
            (words, expect) => assert_eq!(words.as_deref(), expect, "{set_ns:?} {share}"),
        }
    };
    let default = Some((50_000_000, 1_000_000_000));
    check(default, 0.5, None);
    check(
        default,
        0.99,
        Some("50.000 ms of 1.000 s; for each CPU: echo 0"),
    );
    check(Some((0, 1_000_000_000)), 1.0, None);
    check(None, 0.5, None);
    check(None, 0.99, Some("rtscope shield"));
}

#[test]
fn what_functions_lack_keeps_nobody_from_recording() {
    let check = |functions: Option<Functions>, expect: Option<&str>| {
        let mut capabilities = able();
        capabilities.tracefs.functions = functions;
        let stand = capabilities.stand(Verb::Record);
        assert_eq!(stand.rung, Some(Rung::Tracefs), "{stand:?}");
        let lacks: Vec<_> = stand.lacks.iter().map(|lack| &*lack.what).collect();
        assert_eq!(lacks, expect.as_slice());
    };
    check(None, None);
    check(Some(Functions::BothEnds), None);
    check(
        Some(Functions::Probed(64)),
        Some("--functions: of more than 64 functions only the begin is recorded"),
    );
    check(
        Some(Functions::Entries),
        Some("--functions: only the begin is recorded"),
    );
    check(
        Some(Functions::Refused("x: denied".into())),
        Some("--functions: functions of the kernel are not recorded"),
    );
}
