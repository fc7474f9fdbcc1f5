//! How the emulator keeps time: the laboratory's accelerator profiles, as data.

use anyhow::{Context, Result};

use super::disturb::Host;

/// One way to run a guest.
pub struct Profile {
    /// As in the table of cases.
    pub name: &'static str,
    /// What it is good for.
    pub purpose: &'static str,
    /// Arguments of the emulator.
    pub qemu: &'static [&'static str],
    /// Words of the kernel's command line.
    pub kernel: &'static [&'static str],
    /// Lengths are true to the microsecond.
    pub exact: bool,
    /// What the host does to the emulator meanwhile.
    pub host: Host,
}

/// One CPU, of which an instruction takes 2 ns whatever the host does.
const VIRTUAL_TIME: &[&str] = &[
    "-accel",
    "tcg,thread=single",
    "-icount",
    "shift=1,sleep=off",
    "-smp",
    "1",
    "-rtc",
    "base=2026-01-01,clock=vm",
];

/// What is random at boot would move every later instant.
const NOTHING_RANDOM: &[&str] = &["nokaslr", "norandmaps", "randomize_kstack_offset=off"];

/// All emulate on one thread: with one thread per CPU the emulator can lose an update of the
/// guest kernel's own text (static keys, tracepoints) and the guest dies with `Oops: int3`.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "causal",
        purpose: "two CPUs; who woke whom is true, lengths hold the host's noise",
        qemu: &["-accel", "tcg,thread=single", "-smp", "2"],
        // On a busy host the check finds the emulated timer too slow, and the kernel gives up.
        kernel: &["no_timer_check"],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "many",
        purpose: "the same, with room for 240 CPUs, of which 238 never come",
        qemu: &[
            "-accel",
            "tcg,thread=single",
            "-smp",
            "2,sockets=120,cores=2,threads=1,maxcpus=240",
        ],
        // Kernels before 6.9 count what may be plugged in when they are told to, later ones do not.
        kernel: &["no_timer_check", "possible_cpus=240"],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "loaded",
        purpose: "the same, while others want every CPU of the host",
        qemu: &["-accel", "tcg,thread=single", "-smp", "2"],
        kernel: &["no_timer_check"],
        exact: false,
        host: Host::Busy,
    },
    Profile {
        name: "stalled",
        purpose: "the same, while the host stops the emulator for 60 ms again and again",
        qemu: &["-accel", "tcg,thread=single", "-smp", "2"],
        kernel: &["no_timer_check"],
        exact: false,
        host: Host::Stalls,
    },
    Profile {
        name: "single",
        purpose: "one CPU by the host's clock: where the emulator stands, the guest has a gap",
        qemu: &["-accel", "tcg,thread=single", "-smp", "1"],
        kernel: &["no_timer_check"],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "exact",
        purpose: "one CPU in virtual time: an instruction takes 2 ns whatever the host does",
        qemu: VIRTUAL_TIME,
        kernel: NOTHING_RANDOM,
        exact: true,
        host: Host::Quiet,
    },
    Profile {
        name: "boot",
        purpose: "one CPU in virtual time, and the kernel records while it starts",
        qemu: VIRTUAL_TIME,
        // What `rtscope record --at-boot` prints; the case compares.
        kernel: &[
            "trace_buf_size=2048K",
            "trace_instance=rtscope_boot,\
             irq_handler_entry,irq_handler_exit,sched_switch,sched_waking",
        ],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "boot-kept",
        purpose: "the same, into memory that the next boot finds again",
        qemu: VIRTUAL_TIME,
        kernel: &[
            "reserve_mem=256K:4096:rtscope",
            "trace_instance=rtscope_boot@rtscope,\
             irq_handler_entry,irq_handler_exit,sched_switch,sched_waking",
        ],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "boot-again",
        purpose: "the same; what the guest restarts comes up again, with the ring of before",
        qemu: &[
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=1,sleep=off",
            "-smp",
            "1",
            "-rtc",
            "base=2026-01-01,clock=vm",
            "-action",
            "reboot=reset",
        ],
        // The memory has to lie where it lay; what the script switches on is on in its own boot.
        kernel: &[
            "nokaslr",
            "reserve_mem=256K:4096:rtscope",
            "trace_instance=rtscope_boot^traceoff@rtscope,\
             irq_handler_entry,irq_handler_exit,sched_switch,sched_waking",
        ],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "boot-functions",
        purpose: "one CPU in virtual time, and the kernel traces its functions while it starts",
        qemu: VIRTUAL_TIME,
        // What `rtscope record --at-boot --functions` prints; the case compares.
        kernel: &[
            "trace_buf_size=2048K",
            "trace_instance=rtscope_boot,sched_switch",
            "ftrace=function_graph",
            "ftrace_filter=vfs_open,vfs_read",
            "trace_event=sched:sched_switch",
            "trace_clock=mono",
        ],
        exact: false,
        host: Host::Quiet,
    },
    Profile {
        name: "fine",
        purpose: "one CPU in virtual time: an instruction takes 1 ns whatever the host does",
        qemu: &[
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=0,sleep=off",
            "-smp",
            "1",
            "-rtc",
            "base=2026-01-01,clock=vm",
        ],
        kernel: NOTHING_RANDOM,
        exact: true,
        host: Host::Quiet,
    },
];

/// The profile called `name`.
pub fn by_name(name: &str) -> Result<&'static Profile> {
    let known = || PROFILES.iter().map(|profile| profile.name);
    PROFILES
        .iter()
        .find(|profile| profile.name == name)
        .with_context(|| {
            format!(
                "no profile '{name}'; there are: {}",
                known().collect::<Vec<_>>().join(", ")
            )
        })
}
