//! The rules: plain capabilities → what each verb can do here, and what would fix each lack.

use event::{Error, ErrorKind, Result};
use serde::Serialize;

use super::{Capabilities, Functions};

/// What a person wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Watch for late activations.
    Watch,
    /// Keep latencies for months.
    Monitor,
    /// Record kernel events.
    Record,
    /// Measure how late threads of our own run.
    Measure,
    /// Keep CPUs free for real-time tasks.
    Shield,
    /// Try a change of the machine.
    Tune,
    /// Show a late activation that we make ourselves.
    Demo,
    /// The demo with the real jackd.
    DemoJack,
    /// Explain a trace.
    Diagnose,
    /// Print a trace.
    Cat,
}

impl Verb {
    /// All of them, in the order in which people meet them.
    pub const ALL: [Verb; 10] = [
        Verb::Watch,
        Verb::Monitor,
        Verb::Record,
        Verb::Measure,
        Verb::Shield,
        Verb::Tune,
        Verb::Demo,
        Verb::DemoJack,
        Verb::Diagnose,
        Verb::Cat,
    ];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Watch => "watch",
            Verb::Monitor => "monitor",
            Verb::Record => "record",
            Verb::Measure => "measure",
            Verb::Shield => "shield",
            Verb::Tune => "tune",
            Verb::Demo => "demo hog",
            Verb::DemoJack => "demo jack",
            Verb::Diagnose => "diagnose",
            Verb::Cat => "cat",
        }
    }
}

/// The ladder: what a verb stands on here. Less is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Programs in the kernel.
    Bpf,
    /// The kernel's event tracer.
    Tracefs,
    /// The system calls that every kernel has.
    UserSpace,
    /// A file is all that it needs.
    File,
}

/// What a lack does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The verb cannot run.
    Stops,
    /// It runs, with less.
    Degrades,
    /// It runs in full; its numbers are doubtful as a statement about other machines.
    Doubts,
}

/// Something that is missing here, and the way out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lack {
    /// What it does to the verb.
    pub effect: Effect,
    /// What is missing, and so cannot be done.
    pub what: String,
    /// The value that was found.
    pub found: String,
    /// The command, or the change, that fixes it.
    pub fix: String,
    #[serde(skip)]
    kind: ErrorKind,
}

impl Lack {
    pub(super) fn new(
        effect: Effect,
        kind: ErrorKind,
        what: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Lack {
            effect,
            what: what.into(),
            found: found.into(),
            fix: fix.into(),
            kind,
        }
    }
}

/// What one verb stands on here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stand {
    /// The verb.
    pub verb: Verb,
    /// Its rung; none when something stops it.
    pub rung: Option<Rung>,
    /// What is missing, the worst first.
    pub lacks: Vec<Lack>,
}

impl Capabilities {
    /// What `verb` can do here.
    pub fn stand(&self, verb: Verb) -> Stand {
        let mut lacks = Vec::new();
        let rung = match verb {
            Verb::Watch | Verb::Monitor => {
                let stopped = self.bpf_lacks();
                // What a kernel lacks is only known where programs can be attached.
                if stopped.is_none() {
                    lacks.extend(self.bpf_degradations());
                }
                lacks.extend(stopped);
                lacks.extend(self.tracefs_lacks(Effect::Degrades));
                lacks.extend(self.symbol_lack());
                Rung::Bpf
            }
            Verb::Record => {
                lacks.extend(self.clock_lack());
                lacks.extend(self.tracefs_lacks(Effect::Stops));
                lacks.extend(self.symbol_lack());
                lacks.extend(self.function_lack());
                Rung::Tracefs
            }
            Verb::Demo | Verb::DemoJack => {
                lacks.extend(self.bpf_lacks());
                lacks.extend(self.tracefs_lacks(Effect::Stops));
                lacks.extend(self.real_time_lack().or_else(|| self.second_cpu_lack()));
                if verb == Verb::DemoJack {
                    lacks.extend(self.jackd_lack());
                }
                Rung::Bpf
            }
            Verb::Measure => {
                lacks.extend(self.real_time_lack());
                lacks.extend(self.measuring_lacks());
                let explains = self.bpf_lacks().map(|lack| Lack {
                    effect: Effect::Degrades,
                    what: format!("late samples are not explained: {}", lack.what),
                    ..lack
                });
                if explains.is_none() {
                    Rung::Bpf
                } else {
                    lacks.extend(explains);
                    Rung::UserSpace
                }
            }
            Verb::Shield => {
                lacks.extend(self.settings_lack());
                Rung::UserSpace
            }
            Verb::Tune => {
                lacks.extend(self.bpf_lacks());
                lacks.extend(self.settings_lack());
                Rung::Bpf
            }
            Verb::Diagnose | Verb::Cat => Rung::File,
        };
        let stopped = lacks.iter().any(|lack| lack.effect == Effect::Stops);
        lacks.sort_by_key(|lack| lack.effect != Effect::Stops);
        Stand {
            verb,
            rung: (!stopped).then_some(rung),
            lacks,
        }
    }

    /// Refuses `verb` when something stops it here, with what was found and the way out.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`], [`ErrorKind::Unsupported`] or [`ErrorKind::NotFound`], for
    /// the first lack that stops it.
    pub fn require(&self, verb: Verb) -> Result<()> {
        let stand = self.stand(verb);
        match stand
            .lacks
            .into_iter()
            .find(|lack| lack.effect == Effect::Stops)
        {
            None => Ok(()),
            Some(lack) => {
                let what = format!("rtscope {} cannot run here: {}", verb.name(), lack.what);
                Err(Error::new(lack.kind, what).found(lack.found).fix(lack.fix))
            }
        }
    }

    /// Who we are.
    fn who(&self) -> String {
        let held = &self.privileges;
        match held.in_user_namespace {
            true => format!("uid {} of a user namespace", held.uid),
            false => format!("uid {}", held.uid),
        }
    }

    /// Whether nobody has more privileges.
    fn is_root(&self) -> bool {
        let held = &self.privileges;
        held.uid == 0 && !held.in_user_namespace && held.sys_admin
    }

    /// How to get privileges.
    fn sudo(&self) -> &'static str {
        match self.privileges.in_user_namespace {
            true => "run it with sudo outside of this user namespace, on the host",
            false => "run it with sudo",
        }
    }

    fn bpf_lacks(&self) -> Option<Lack> {
        let stop = |kind, what: &str, found: String, fix: &str| {
            Some(Lack::new(Effect::Stops, kind, what, found, fix))
        };
        if let Some(lack) = self.clock_lack() {
            return Some(lack);
        }
        if let Some(mode) = self
            .bpf
            .lockdown
            .as_ref()
            .filter(|mode| *mode == "confidentiality")
        {
            return stop(
                ErrorKind::PermissionDenied,
                "lockdown forbids programs that read the kernel",
                format!("lockdown={mode}"),
                "boot with lockdown=integrity, or without lockdown",
            );
        }
        let held = &self.privileges;
        let missing = match (held.sys_admin || held.bpf, held.sys_admin || held.perfmon) {
            (false, _) => Some("CAP_BPF"),
            (true, false) => Some("CAP_PERFMON"),
            (true, true) => None,
        };
        if let Some(missing) = missing {
            return stop(
                ErrorKind::PermissionDenied,
                "BPF programs cannot be loaded",
                format!("{} without {missing}", self.who()),
                self.sudo(),
            );
        }
        if !self.bpf.btf {
            return stop(
                ErrorKind::Unsupported,
                "the kernel does not describe its types (BTF)",
                "/sys/kernel/btf/vmlinux is absent or empty".into(),
                "use a kernel with CONFIG_DEBUG_INFO_BTF=y (every Debian kernel since 11); until \
                 then: sudo rtscope record, then rtscope diagnose",
            );
        }
        if let Some(refusal) = &self.bpf.refused {
            return stop(
                ErrorKind::Unsupported,
                "BPF programs cannot be attached",
                refusal.clone(),
                "boot a kernel with CONFIG_BPF_SYSCALL=y, outside of containers that forbid it; \
                 until then: sudo rtscope record, then rtscope diagnose",
            );
        }
        None
    }

    /// What a watch does without because the kernel lacks it.
    fn bpf_degradations(&self) -> Vec<Lack> {
        let lack = |what: &str, found: String, fix: &str| {
            Lack::new(Effect::Degrades, ErrorKind::Unsupported, what, found, fix)
        };
        let absent = self.bpf.absent.iter().map(|tracepoint| {
            let found = format!("no tracepoint {}", tracepoint.name);
            lack(
                &tracepoint.without,
                found,
                "boot a kernel that has it: a newer one, or with its CONFIG option",
            )
        });
        let mut lacks: Vec<Lack> = absent.collect();
        if !self.bpf.statistics {
            let found = "BPF_ENABLE_STATS was refused".into();
            let fix = "run it with sudo, on Linux 5.8 or later";
            lacks.push(lack("our own cost cannot be counted", found, fix));
        }
        if !self.bpf.interrupted_registers {
            let found = "no __irq_regs in the kernel's BTF".into();
            let fix = "boot a kernel whose BTF holds its per-CPU variables";
            lacks.push(lack("late timers have no interrupted function", found, fix));
        }
        lacks
    }

    /// What a task did in the instants of our clock would be told of what it did in others.
    fn clock_lack(&self) -> Option<Lack> {
        let offset_ns = self.machine.clock_offset_ns;
        let lack = || {
            Lack::new(
                Effect::Stops,
                ErrorKind::Unsupported,
                "our clock is not the one that the kernel stamps its events with",
                format!(
                    "a time namespace, {} s ahead (/proc/self/timens_offsets)",
                    offset_ns as f64 / 1e9
                ),
                "run it outside of that namespace: sudo nsenter --target 1 --time rtscope …",
            )
        };
        (offset_ns != 0).then(lack)
    }

    fn tracefs_lacks(&self, effect: Effect) -> Option<Lack> {
        let without = if effect == Effect::Stops {
            "kernel events cannot be recorded"
        } else {
            "a hit has no snapshot"
        };
        let lack = |kind, why: &str, found: String, fix: String| {
            let what = format!("{without}: {why}");
            Some(Lack::new(effect, kind, what, found, fix))
        };
        let tracefs = &self.tracefs;
        let Some(mountpoint) = &tracefs.mountpoint else {
            let found = "no tracefs in /proc/mounts".into();
            let fix = "sudo mount -t tracefs nodev /sys/kernel/tracing".into();
            return lack(ErrorKind::Unsupported, "tracefs is not mounted", found, fix);
        };
        if !tracefs.writable {
            let found = format!("{} may not write {mountpoint}", self.who());
            let why = "tracefs is not ours to write";
            let fix = match self.is_root() {
                // It is no privilege that root lacks.
                true => format!(
                    "another mount hides it, or it is read-only: mount -t tracefs nodev \
                     {mountpoint}; a container needs --privileged or -v {mountpoint}:{mountpoint}"
                ),
                false => self.sudo().to_owned(),
            };
            return lack(ErrorKind::PermissionDenied, why, found, fix);
        }
        if !tracefs.instances || !tracefs.sched_events {
            let missing = if tracefs.instances {
                "events/sched"
            } else {
                "instances/"
            };
            let found = format!("no writable {mountpoint}/{missing}");
            let fix = "use a kernel with CONFIG_TRACING=y and CONFIG_ENABLE_DEFAULT_TRACERS=y";
            return lack(
                ErrorKind::Unsupported,
                "tracefs lacks it",
                found,
                fix.into(),
            );
        }
        None
    }

    /// What keeps a watch from a snapshot of each hit; it then goes on without.
    pub fn snapshot_lack(&self) -> Option<Lack> {
        self.tracefs_lacks(Effect::Degrades)
    }

    /// What a measurement does without.
    fn measuring_lacks(&self) -> Vec<Lack> {
        let held = &self.privileges;
        let lack = |what: &str, found: String, fix: &str| {
            let kind = ErrorKind::PermissionDenied;
            Lack::new(Effect::Degrades, kind, what, found, fix)
        };
        let mut lacks = Vec::new();
        if held.memory_lock_refused {
            let found = format!(
                "no CAP_IPC_LOCK, RLIMIT_MEMLOCK {}",
                held.memlock_bytes.unwrap_or(0)
            );
            let fix = "run it with sudo, or ulimit -l unlimited";
            lacks.push(lack("page faults may be among the latencies", found, fix));
        }
        if held.idle_limit_refused {
            let found = format!("{} may not write /dev/cpu_dma_latency", self.who());
            let fix = "run it with sudo, or let your group write that file";
            lacks.push(lack("idle CPUs sleep as deep as they like", found, fix));
        }
        lacks
    }

    fn symbol_lack(&self) -> Option<Lack> {
        let found = match self.tracefs.kptr_restrict {
            Some(value) => format!("kernel.kptr_restrict={value}, uid {}", self.privileges.uid),
            None => "/proc/kallsyms shows no addresses".into(),
        };
        let fix = match self.tracefs.kptr_restrict {
            Some(2) => "sudo sysctl kernel.kptr_restrict=1, and run it with sudo",
            _ => self.sudo(),
        };
        let what = "kernel stacks have addresses instead of names";
        let kind = ErrorKind::PermissionDenied;
        (!self.tracefs.kernel_symbols).then(|| Lack::new(Effect::Degrades, kind, what, found, fix))
    }

    /// What `record --functions` does without.
    fn function_lack(&self) -> Option<Lack> {
        const NEWER: &str = "use a kernel of 6.11 or later with CONFIG_FUNCTION_GRAPH_TRACER=y";
        const OPEN: &str =
            "use a kernel with CONFIG_FUNCTION_GRAPH_TRACER=y that is not locked down";
        let absent = || "function_graph does not work in instances of this kernel".to_owned();
        let (what, found, fix) = match self.tracefs.functions.as_ref()? {
            Functions::BothEnds => return None,
            Functions::Probed(count) => (
                format!("of more than {count} functions only the begin is recorded"),
                absent(),
                NEWER,
            ),
            Functions::Entries => ("only the begin is recorded".to_owned(), absent(), NEWER),
            Functions::Refused(why) => (
                "functions of the kernel are not recorded".to_owned(),
                why.clone(),
                OPEN,
            ),
        };
        let what = format!("--functions: {what}");
        let kind = ErrorKind::Unsupported;
        Some(Lack::new(Effect::Degrades, kind, what, found, fix))
    }

    fn real_time_lack(&self) -> Option<Lack> {
        let stop = |what: &str, found: String, fix: String| {
            let kind = ErrorKind::PermissionDenied;
            Some(Lack::new(Effect::Stops, kind, what, found, fix))
        };
        let scheduler = &self.scheduler;
        if let (Some(0), Some(cgroup)) = (scheduler.cgroup_rt_runtime_us, &scheduler.cgroup) {
            return stop(
                "our control group has no real-time budget",
                format!("{cgroup}/cpu.rt_runtime_us is 0"),
                format!("echo 500000 | sudo tee {cgroup}/cpu.rt_runtime_us"),
            );
        }
        if !self.privileges.sys_nice && self.privileges.rtprio_max < 70 {
            return stop(
                "real-time priorities are not ours to give",
                match self.privileges.in_user_namespace {
                    true => format!(
                        "{}, RLIMIT_RTPRIO {}",
                        self.who(),
                        self.privileges.rtprio_max
                    ),
                    false => format!(
                        "no CAP_SYS_NICE, RLIMIT_RTPRIO {}",
                        self.privileges.rtprio_max
                    ),
                },
                self.sudo().into(),
            );
        }
        None
    }

    /// What keeps us from the machine's settings, which belong to root.
    fn settings_lack(&self) -> Option<Lack> {
        let held = &self.privileges;
        (held.uid != 0 || held.in_user_namespace).then(|| {
            let (what, fix) = ("the machine's settings are not ours to write", self.sudo());
            let kind = ErrorKind::PermissionDenied;
            Lack::new(Effect::Stops, kind, what, self.who(), fix)
        })
    }

    /// What keeps a hog of ours from a machine that must go on meanwhile.
    fn second_cpu_lack(&self) -> Option<Lack> {
        let allowed = self.machine.cpus_allowed.len();
        (allowed < 2).then(|| {
            let what = "a hog on the only CPU would stop the machine";
            let fix = "run it where two CPUs are allowed: taskset -p $$ shows them";
            let found = format!("{allowed} CPU to run on");
            Lack::new(Effect::Stops, ErrorKind::Unsupported, what, found, fix)
        })
    }

    fn jackd_lack(&self) -> Option<Lack> {
        self.jackd_path.is_none().then(|| {
            let what = "jackd is not installed";
            let fix = "sudo apt install jackd2; without it: sudo rtscope demo hog";
            let found = "no jackd in PATH";
            Lack::new(Effect::Stops, ErrorKind::NotFound, what, found, fix)
        })
    }
}
