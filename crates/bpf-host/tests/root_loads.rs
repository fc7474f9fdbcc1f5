//! Check on the running kernel that the programs of every mode of a watch load, and leave the
//! verifier room: older kernels' verifiers need more steps for the same programs.

use bpf_host::{Members, Targets, Watch, WatchConfig};
use event::evidence::EndKind;
use event::{Duration, GroupId, TaskPattern};

/// Of the million that the verifier takes.
const STEPS_MAX: u32 = 500_000;

const ENDS: [EndKind; 3] = [EndKind::SwitchIn, EndKind::UserReturn, EndKind::Blocked];

/// The kernel's own numbers of the largest program.
fn largest(config: &WatchConfig) -> (String, u32) {
    let (watch, _ring) = Watch::start(config).expect("a watch");
    let programs = watch.verified_steps().into_iter();
    programs.max_by_key(|(_, steps)| *steps).expect("programs")
}

#[test]
fn every_mode_loads_and_leaves_the_verifier_half_of_its_steps() {
    let _privileged = testkit::privileged();
    let mut over = Vec::new();
    let mut check = |mode: &str, config: &WatchConfig| {
        for end in ENDS {
            let config = WatchConfig {
                end,
                threshold: Duration::MAX,
                waiting_after: Some(Duration::from_ms(100)),
                ..config.clone()
            };
            let (program, steps) = largest(&config);
            let found = format!("{mode}, to {end:?}: {program} {steps}");
            println!("{found}");
            if steps > STEPS_MAX {
                over.push(found);
            }
        }
    };
    let named = |name: &str| Targets::Tasks(vec![TaskPattern::parse(name).expect("a name")]);
    let of = |targets: Targets| WatchConfig {
        targets,
        notes_late: true,
        ..WatchConfig::default()
    };
    check("all", &of(Targets::All));
    check("real-time", &of(Targets::RealTime));
    check("named", &of(named("no-such-task*")));
    let own_group = WatchConfig {
        members: Members {
            groups: vec![GroupId {
                hierarchy: 0,
                id: 1,
            }],
            ..Members::default()
        },
        ..of(Targets::Tasks(Vec::new()))
    };
    check("group", &own_group);
    let all_of_it = WatchConfig {
        members: Members {
            namespaces: vec![1],
            family: Some(event::Tid(1)),
            ..own_group.members.clone()
        },
        softirq: Some(1),
        irqs: Some(vec![1]),
        ..of(named("no-such-task*"))
    };
    check("group, command, namespace, filters", &all_of_it);
    assert!(over.is_empty(), "{over:#?}");
}
