//! The kinds of faults that are drawn.

use super::draft::Draw;
use super::place::Place;
use super::{kinds_machine as machine, kinds_more as more, kinds_waits as waits};

/// Where a kind can be played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    /// Everywhere.
    All,
    /// Where there are two CPUs.
    TwoCpus,
    /// In guests.
    Guests,
    /// In guests with two CPUs by the clock of the emulator's host.
    Causal,
}

/// One kind.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As scenarios and tables call it.
    pub name: &'static str,
    at: Where,
    /// Draws one.
    pub draw: fn(&mut Draw),
}

impl Kind {
    /// Whether it can be played at `place`.
    pub fn fits(&self, place: Place) -> bool {
        match self.at {
            Where::All => true,
            Where::TwoCpus => place.cpus > 1,
            Where::Guests => place.is_guest,
            Where::Causal => place.name == "causal",
        }
    }
}

/// All of them.
pub const ALL: &[Kind] = &[
    kind("nothing", Where::All, nothing),
    kind("hog", Where::All, hog),
    kind("hog-twice", Where::All, hog_twice),
    kind("neighbour", Where::All, neighbour),
    kind("hog-lowers-itself", Where::All, lowers),
    kind("hog-raises-itself", Where::All, raises),
    kind("hog-renames-itself", Where::All, renames),
    kind("hog-forks", Where::All, forks),
    kind("hog-dies", Where::All, dies),
    kind("many-small-hogs", Where::All, many),
    kind("deadline-hog", Where::All, deadline),
    kind("victim-demoted", Where::All, demoted),
    kind("fair-victim", Where::All, fair_victim),
    kind("moved-to-a-hog", Where::TwoCpus, moved),
    kind("mutex-inversion", Where::All, waits::inversion),
    kind("mutex-inheritance", Where::All, waits::inheritance),
    kind("mutex-short", Where::All, waits::short_mutex),
    kind("feeder-behind-hog", Where::All, waits::feeder_behind_hog),
    kind("feeder-slow", Where::All, waits::feeder_slow),
    kind("feeder-fair", Where::All, waits::feeder_fair),
    kind("own-work", Where::All, waits::own_work),
    kind("own-pages", Where::All, waits::own_pages),
    kind("spin", Where::TwoCpus, waits::spin),
    kind("child-ends", Where::All, waits::child),
    kind("stopped", Where::All, machine::stopped),
    kind("traced", Where::All, machine::traced),
    kind("frozen", Where::All, machine::frozen),
    kind("quota", Where::All, machine::quota),
    kind("timer-slack", Where::All, machine::slack),
    kind(
        "hog-lowered-by-another",
        Where::All,
        more::lowered_by_another,
    ),
    kind("hog-raised-by-another", Where::All, more::raised_by_another),
    kind("two-hogs", Where::All, more::two_hogs),
    kind("hog-comes", Where::TwoCpus, more::hog_comes),
    kind("sent-to-a-hog", Where::TwoCpus, more::sent_to_a_hog),
    kind("stop-storm", Where::TwoCpus, more::stop_storm),
    kind("lock-chain", Where::All, more::lock_chain),
    kind("relay", Where::All, more::relay),
    kind("deadline-victim", Where::All, more::deadline_victim),
    kind("out-of-budget", Where::All, more::out_of_budget),
    kind("vfork", Where::All, more::vfork),
    kind("no-room", Where::TwoCpus, more::no_room),
    kind("changes-itself", Where::All, more::changes_itself),
    kind("interrupts-off", Where::Guests, machine::interrupts_off),
    kind("preemption-off", Where::Guests, machine::preemption_off),
    kind("hardirq", Where::Guests, machine::hardirq),
    kind("softirq", Where::Guests, machine::softirq),
    kind("interrupt-thread", Where::Guests, machine::interrupt_thread),
    kind("clock-set", Where::Guests, machine::clock_set),
    kind("cpu-off", Where::Causal, machine::cpu_off),
    kind("stall", Where::Causal, machine::stall),
];

const fn kind(name: &'static str, at: Where, draw: fn(&mut Draw)) -> Kind {
    Kind { name, at, draw }
}

fn nothing(draw: &mut Draw) {
    draw.victim();
    draw.innocents();
    draw.lasts_until_us(100_000);
}

/// The steps of one fault: `at`, `burn`.
fn burst(draw: &mut Draw) -> (String, String) {
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    (format!("at {at_us}us"), format!("burn {length_us}us"))
}

fn hog(draw: &mut Draw) {
    draw.victim();
    let (at, burn) = burst(draw);
    let policy = draw.above(1);
    draw.culprit(&policy, &[&at, &burn]);
    draw.innocents();
}

fn hog_twice(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    let gap_us = draw.random.within(30_000, 70_000);
    draw.lasts_until_us(at_us + 2 * length_us + gap_us);
    let (at, burn) = (format!("at {at_us}us"), format!("burn {length_us}us"));
    let policy = draw.above(1);
    let sleep = format!("sleep {gap_us}us");
    draw.culprit(&policy, &[&at, &burn, &sleep, &burn]);
    draw.innocents();
}

/// Of the victim's own priority: who has the CPU keeps it.
fn neighbour(draw: &mut Draw) {
    draw.victim();
    let (at, burn) = burst(draw);
    let policy = format!("fifo:{}", draw.priority);
    draw.culprit(&policy, &[&at, &burn]);
    draw.innocents();
}

fn lowers(draw: &mut Draw) {
    draw.victim();
    let (at, burn) = burst(draw);
    let policy = draw.above(1);
    let lower = draw.random.of(&["other:0", "other:19", "fifo:1"]);
    draw.culprit(
        &policy,
        &[&at, &burn, &format!("policy {lower}"), "work 1ms"],
    );
    draw.innocents();
}

fn raises(draw: &mut Draw) {
    draw.victim();
    let (at, burn) = burst(draw);
    let policy = draw.above(1);
    draw.culprit(
        "other:0",
        &[&at, "work 300us", &format!("policy {policy}"), &burn],
    );
    draw.innocents();
}

fn renames(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    let half = format!("burn {}us", length_us / 2);
    let policy = draw.above(1);
    let second = draw.name();
    let name = format!("name {second}");
    draw.culprit(&policy, &[&format!("at {at_us}us"), &half, &name, &half]);
    draw.accuse("run_queue_wait", second);
    draw.innocents();
}

fn forks(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    let policy = draw.above(1);
    let fork = format!("fork {length_us}us");
    draw.culprit(&policy, &[&format!("at {at_us}us"), &fork, "sleep 100ms"]);
    draw.innocents();
}

fn dies(draw: &mut Draw) {
    draw.victim();
    let (at, burn) = burst(draw);
    let policy = draw.above(1);
    draw.culprit(&policy, &[&at, &burn, "exit"]);
    draw.innocents();
}

/// Several tasks of one name and one policy, each for a part of the time.
fn many(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let policy = draw.above(1);
    let count = draw.random.within(3, 6);
    let burn = format!("burn {}us", length_us / count);
    let name = draw.culprit(&policy, &[&at, &burn]);
    for _ in 1..count {
        draw.task("culprit", name, &policy, &["cpu=0"], &[&at, &burn]);
    }
    draw.innocents();
}

/// It may go to another CPU: then the victim is in time.
fn deadline(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let policy = format!("dl:{}us/{}us", length_us + 2_000, 4 * length_us + 20_000);
    let name = draw.name();
    let burn = format!("burn {length_us}us");
    draw.task("culprit", name, &policy, &["process"], &[&at, &burn]);
    draw.accuse("run_queue_wait", name);
    draw.innocents();
}

/// It loses its policy behind a hog; who runs before it then does so rightly.
fn demoted(draw: &mut Draw) {
    let every = draw.every();
    let policy = draw.own();
    let work = draw.work();
    draw.victim_of(&policy, &["loop", &every, &work]);
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    let above = draw.above(1);
    let burn = format!("burn {length_us}us");
    draw.culprit(&above, &[&format!("at {at_us}us"), &burn]);
    let force = format!("force {} other:0", super::language::VICTIM);
    let back = format!("force {} {policy}", super::language::VICTIM);
    let middle = format!("at {}us", at_us + length_us / 2);
    let end = format!("at {}us", at_us + 2 * length_us + 10_000);
    let demoter = draw.name();
    draw.task(
        "helper",
        demoter,
        "fifo:90",
        &["cpu=0"],
        &[&middle, &force, &end, &back],
    );
    let fair = draw.name();
    draw.task(
        "helper",
        fair,
        "other:0",
        &["cpu=0"],
        &["loop", "work 2ms", "sleep 3ms"],
    );
    draw.accuse("run_queue_wait", fair);
    draw.short_innocent();
}

/// Behind others of its own class: who ran is who may be named.
fn fair_victim(draw: &mut Draw) {
    let every = draw.every();
    let work = draw.work();
    let nice = draw.random.of(&["0", "10", "19"]);
    draw.victim_of(&format!("other:{nice}"), &["loop", &every, &work]);
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(3 * length_us));
    let length = format!("work {length_us}us");
    for _ in 0..draw.random.within(2, 4) {
        let policy = draw.random.of(&["other:0", "other:-20", "other:0"]);
        draw.culprit(policy, &[&at, &length]);
    }
    draw.innocents_elsewhere();
}

/// It goes where the hog is.
fn moved(draw: &mut Draw) {
    let every = draw.every_by("abs");
    let policy = draw.own();
    let work = draw.work();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    draw.victim_of(
        &policy,
        &["loop", &every, &work, "move 1", &every, &work, "move 0"],
    );
    let name = draw.name();
    let above = draw.above(1);
    let (at, burn) = (format!("at {at_us}us"), format!("burn {length_us}us"));
    draw.task("culprit", name, &above, &["cpu=1"], &[&at, &burn]);
    draw.accuse("run_queue_wait", name);
    draw.innocents();
}
