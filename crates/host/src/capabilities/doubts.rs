//! What makes this machine's figures doubtful: plain capabilities → doubts, each with its remedy.

use event::{Duration, ErrorKind};

use super::{Capabilities, Effect, FairServer, Lack, Preemption};

/// An idle state that takes longer to leave makes tasks late.
const IDLE_EXIT_US_FINE: i64 = 20;
/// Clocksources whose reading goes through a device.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "pit", "jiffies"];

/// The share that the fair server has unless somebody sets it.
const SERVED_DEFAULT: f64 = 0.05;

fn doubt(what: &str, found: impl Into<String>, fix: impl Into<String>) -> Lack {
    Lack::new(Effect::Doubts, ErrorKind::Unsupported, what, found, fix)
}

/// What a fair server leaves to real-time tasks, what it is set to, and what lifts it: no sysctl.
fn served(server: FairServer) -> (f64, String, &'static str) {
    match (server.runtime_ns, server.period_ns) {
        (Some(runtime_ns), Some(period_ns)) => {
            let taken = runtime_ns as f64 / period_ns.max(1) as f64;
            let [runtime, period] = [runtime_ns, period_ns].map(Duration::from_ns);
            let found = format!("the fair server gives ordinary tasks {runtime} of {period}");
            let fix = "for each CPU: echo 0 | sudo tee \
                       /sys/kernel/debug/sched/fair_server/cpuN/runtime";
            (1.0 - taken, found, fix)
        }
        _ => {
            let found = "the fair server, which this kernel lets nobody read or set (lockdown)";
            let fix = "keep ordinary tasks away: sudo rtscope shield --cpu N --apply";
            (1.0 - SERVED_DEFAULT, found.to_owned(), fix)
        }
    }
}

impl Capabilities {
    /// What makes results of this machine doubtful, whatever the verb.
    pub fn doubts(&self) -> Vec<Lack> {
        let doubts = [
            self.host_doubt(),
            self.governor_doubt(),
            self.smt_doubt(),
            self.idle_doubt(),
            self.clock_doubt(),
            self.interrupts_doubt(),
            self.preemption_doubt(),
        ];
        let doubts = doubts.into_iter().flatten();
        doubts.chain(self.background_doubts()).collect()
    }

    fn host_doubt(&self) -> Option<Lack> {
        let steal = self.machine.steal.name();
        self.machine.virtualised.then(|| {
            doubt(
                "latencies include what the host takes from this virtual machine",
                format!("a hypervisor below this kernel, steal {steal}"),
                "repeat on the bare machine",
            )
        })
    }

    fn governor_doubt(&self) -> Option<Lack> {
        let mut governors = self.machine.governors.iter();
        let slow = governors.find(|governor| *governor != "performance")?;
        Some(doubt(
            "the frequency governor may slow the CPU down between activations",
            format!("governor {slow}"),
            "echo performance | sudo tee \
             /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ))
    }

    fn smt_doubt(&self) -> Option<Lack> {
        (self.machine.smt_active == Some(true)).then(|| {
            doubt(
                "another thread of the same core takes a part of it",
                "SMT is on",
                "echo off | sudo tee /sys/devices/system/cpu/smt/control",
            )
        })
    }

    fn idle_doubt(&self) -> Option<Lack> {
        let exit_us = self.machine.idle_exit_us_max?;
        (exit_us > IDLE_EXIT_US_FINE).then(|| {
            doubt(
                "idle CPUs sleep so deep that they are late to wake",
                format!("an idle state takes {exit_us} us to leave"),
                format!("sudo cpupower idle-set -D {IDLE_EXIT_US_FINE}"),
            )
        })
    }

    fn clock_doubt(&self) -> Option<Lack> {
        let source = self.machine.clocksource.as_deref()?;
        SLOW_CLOCKS.contains(&source).then(|| {
            doubt(
                "reading the clock takes a microsecond or more",
                format!("clocksource {source}"),
                "boot with tsc=reliable, if the machine's TSC is",
            )
        })
    }

    fn interrupts_doubt(&self) -> Option<Lack> {
        let count = self.machine.irqs_on_isolated.len();
        let isolated = self.machine.cpus_isolated.iter();
        let cpus: Vec<_> = isolated.map(|cpu| cpu.0.to_string()).collect();
        let cpus = cpus.join(",");
        (count > 0).then(|| {
            doubt(
                "interrupts come on isolated CPUs",
                format!("{count} interrupts on {cpus}"),
                format!("sudo rtscope shield --cpu {cpus} --apply"),
            )
        })
    }

    fn preemption_doubt(&self) -> Option<Lack> {
        let preemption = self.scheduler.preemption;
        matches!(preemption, Preemption::None | Preemption::Voluntary).then(|| {
            doubt(
                "the kernel does not preempt itself: system calls of others delay your task",
                format!("preemption model {}", preemption.name()),
                "boot with preempt=full, or a PREEMPT_RT kernel",
            )
        })
    }

    fn background_doubts(&self) -> impl Iterator<Item = Lack> {
        let background = &self.machine.background;
        let always = background.huge_pages.as_deref() == Some("always");
        let doubts = [
            (
                background.irqbalance,
                "interrupts are moved from CPU to CPU while tasks run",
                "irqbalance runs",
                "sudo systemctl stop irqbalance",
            ),
            (
                always,
                "the kernel copies and merges pages behind every task",
                "transparent_hugepage/enabled is always",
                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            ),
            (
                background.numa_balancing == Some(true),
                "the kernel moves pages between nodes: a task faults on its own memory",
                "kernel.numa_balancing is on, with more than one node",
                "sudo sysctl kernel.numa_balancing=0",
            ),
            (
                background.nmi_watchdog == Some(true),
                "a non-maskable interrupt comes on every CPU, whatever it does",
                "kernel.nmi_watchdog is on",
                "sudo sysctl kernel.nmi_watchdog=0",
            ),
        ];
        let there = doubts.into_iter().filter(|(there, ..)| *there);
        there.map(|(_, what, found, fix)| doubt(what, found, fix))
    }

    /// What RT throttling does to a real-time task that wants this share of its CPU for itself.
    pub fn throttling_doubt(&self, share: f64) -> Option<Lack> {
        let (granted, found, fix) = match self.scheduler.fair_server {
            Some(server) => served(server),
            None => self.limited()?,
        };
        let what = "RT throttling may stop a real-time task that does not sleep";
        let kind = ErrorKind::PermissionDenied;
        (share > granted).then(|| Lack::new(Effect::Doubts, kind, what, found, fix))
    }

    /// What `kernel.sched_rt_runtime_us` leaves to real-time tasks, where it is and what lifts it.
    fn limited(&self) -> Option<(f64, String, &'static str)> {
        let (runtime_us, period_us) = (self.scheduler.rt_runtime_us?, self.scheduler.rt_period_us?);
        let granted = runtime_us as f64 / period_us.max(1) as f64;
        let found = format!("kernel.sched_rt_runtime_us={runtime_us} of {period_us}");
        let fix = "sudo sysctl kernel.sched_rt_runtime_us=-1";
        (runtime_us >= 0).then_some((granted, found, fix))
    }
}
