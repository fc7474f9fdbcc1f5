//! The same fault has the same signature after another boot: other tids, CPUs, interrupt numbers,
//! addresses and another compiler's clones; another fault has another one.

use diagnosis::{CauseChange, Diagnosis, Query, TaskFilter, compare, diagnose};
use event::Duration;
use testkit::{SyntheticTrace, Task};

/// What differs between two boots of one system.
struct Boot {
    cpu: u32,
    first_tid: i32,
    irq: i32,
    irq_thread: &'static str,
    worker: &'static str,
    function: &'static str,
}

const MONDAY: Boot = Boot {
    cpu: 0,
    first_tid: 100,
    irq: 9,
    irq_thread: "irq/9-snd_hda_i",
    worker: "kworker/u8:2",
    function: "console_write.isra.0+0x1f",
};
const TUESDAY: Boot = Boot {
    cpu: 1,
    first_tid: 4_000,
    irq: 128,
    irq_thread: "irq/128-snd_hda",
    worker: "kworker/u16:5",
    function: "console_write.constprop.0+0x9c4",
};

impl Boot {
    fn victim(&self) -> Task {
        Task::rt(self.first_tid, "victim", 40)
    }

    fn worker(&self) -> Task {
        Task::fair(self.first_tid + 1, self.worker)
    }

    fn hog(&self) -> Task {
        Task::rt(self.first_tid + 2, "hog-3", 60)
    }

    fn irq_thread(&self) -> Task {
        Task::rt(self.first_tid + 3, self.irq_thread, 50)
    }

    fn begins(&self) -> SyntheticTrace {
        let other = SyntheticTrace::new()
            .shows_timers()
            .at(10)
            .cpu(1 - self.cpu);
        let other = other.block(self.irq_thread(), Task::IDLE);
        other.cpu(self.cpu).at(20).block(self.victim(), Task::IDLE)
    }

    fn ask(&self, trace: SyntheticTrace) -> Diagnosis {
        let query = Query {
            tasks: TaskFilter::parse(&["victim"]).expect("names tasks"),
            threshold: Some(Duration::from_us(500)),
            worst: 0,
            lengths: true,
            ..Query::default()
        };
        diagnose(&trace.build(), &query).expect("it can be diagnosed")
    }

    /// A worker writes to the console with interrupts off, and the victim's timer waits.
    fn console(&self, times: i64) -> Diagnosis {
        let mut trace = self.begins();
        for begin_us in (0..times).map(|time| time * 20_000 + 1_000) {
            trace = trace.at(begin_us).run(self.worker()).at(begin_us + 3_000);
            let stack = ["_raw_spin_unlock_irqrestore+0x1f", self.function];
            trace = trace.late_timer(begin_us + 1_000, self.worker(), 0, 0, &stack);
            trace = trace
                .hrtimer_start(0x1000 + self.cpu as u64, begin_us + 1_000)
                .timer_irq()
                .hrtimer_expire(0x1000 + self.cpu as u64);
            trace = trace.after(2).wake(self.victim());
            trace = trace
                .hrtimer_done(0x1000 + self.cpu as u64)
                .after(1)
                .timer_irq_end();
            trace = trace.after(2).preempt(self.worker(), self.victim());
            trace = trace.after(50).block(self.victim(), Task::IDLE);
        }
        self.ask(trace)
    }

    /// The interrupt's thread, which wakes the victim, has to do for long; a hog is ahead of it.
    fn interrupt(&self) -> Diagnosis {
        let trace = self.begins().at(500).run(self.hog()).at(1_000);
        let trace = trace.irq(self.irq, "snd_hda_intel:card0").after(2);
        let trace = trace.wake(self.irq_thread()).after(1).irq_end(self.irq);
        let trace = trace.at(4_000).block(self.hog(), self.irq_thread());
        let trace = trace.at(7_000).wake(self.victim()).after(4);
        self.ask(trace.block(self.irq_thread(), self.victim()))
    }
}

fn signatures(diagnosis: &Diagnosis) -> Vec<&str> {
    let groups = diagnosis.groups.iter();
    groups.map(|group| group.signature.as_str()).collect()
}

#[test]
fn the_same_fault_has_the_same_signature_after_another_boot() {
    for boot in [MONDAY, TUESDAY] {
        let console = boot.console(1);
        assert_eq!(signatures(&console), ["interrupts_off:console_write"]);
        let interrupt = boot.interrupt();
        let expect = "run_queue_wait:hog-*+upstream:irq/*-snd_hda";
        assert_eq!(signatures(&interrupt), [expect]);
    }
}

/// Of the threads of a compiler, each of which is in the victim's way once.
fn behind_threads(names: &[&'static str]) -> Vec<String> {
    let (victim, compiler) = (Task::rt(100, "victim", 40), Task::rt(50, "rustc", 45));
    let mut trace = SyntheticTrace::new().shows_timers().at(10);
    trace = trace.block(victim, Task::IDLE);
    for (begin_us, (tid, name)) in (1_000..).step_by(20_000).zip((200..).zip(names)) {
        let hog = Task::rt(tid, name, 60);
        trace = trace.at(begin_us).run(compiler).after(10);
        trace = trace.fork_thread(compiler, hog).after(10);
        trace = trace.preempt(compiler, hog).after(100).wake(victim);
        trace = trace.after(4_000).end(hog, victim);
        trace = trace.after(50).block(victim, Task::IDLE);
    }
    let query = Query {
        tasks: TaskFilter::parse(&["victim"]).expect("names tasks"),
        threshold: Some(Duration::from_us(500)),
        worst: 0,
        lengths: true,
        ..Query::default()
    };
    let found = diagnose(&trace.build(), &query).expect("it can be diagnosed");
    assert_eq!(found.activations.len(), names.len(), "{found:#?}");
    signatures(&found).into_iter().map(str::to_owned).collect()
}

#[test]
fn threads_with_names_that_mean_nothing_are_called_after_their_process() {
    let check = |names: &[&'static str], expect: &[&str]| {
        assert_eq!(behind_threads(names), expect, "{names:?}");
    };
    // One of five would pass for a word.
    let drawn = [
        "opt 3jk4hfgw0s5",
        "opt 0bw4xm2wq9x",
        "opt a7f30c9e21b",
        "opt 9k2m5p8r1tq",
        "opt habitorelan",
    ];
    check(&drawn, &["run_queue_wait:rustc"]);
    check(&drawn[4..], &["run_queue_wait:opt habitorelan"]);
    let meant = ["lint checker", "lint mp3player"];
    let each = [
        "run_queue_wait:lint checker",
        "run_queue_wait:lint mp3player",
    ];
    check(&meant, &each);
}

#[test]
fn a_console_that_keeps_interrupts_off_is_advised_to_print_less() {
    let console = MONDAY.console(1);
    let advice = &console.verdict().expect("it was late").advice;
    let rules: Vec<_> = advice.iter().map(|advice| advice.rule).collect();
    assert_eq!(rules, ["quiet-console"]);
}

#[test]
fn a_comparison_finds_the_fault_of_another_boot_again() {
    let compared = compare(&[MONDAY.console(40)], &[TUESDAY.console(40)]);
    let causes = compared.causes.iter();
    let found: Vec<_> = causes
        .map(|cause| (cause.signature.as_str(), cause.before.count, cause.change))
        .collect();
    let expect = "interrupts_off:console_write";
    assert_eq!(found, [(expect, 40, CauseChange::NotResolved)]);
    let other = compare(&[MONDAY.console(40)], &[TUESDAY.interrupt()]);
    assert_eq!(other.causes.len(), 2, "another fault is another cause");
}
