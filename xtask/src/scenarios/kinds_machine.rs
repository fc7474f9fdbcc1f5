//! Kinds in which the machine, the kernel or a debugger keeps the victim from its CPU.

use super::draft::Draw;
use super::language::VICTIM;

/// A victim that is a process of its own, as signals and groups take it.
fn process(draw: &mut Draw, policy: &str, first: &[&str]) {
    let (every, work) = (draw.every(), draw.work());
    let steps = [first, &["loop", &every, &work]].concat();
    draw.task("victim", VICTIM, policy, &["cpu=0", "process"], &steps);
}

/// One that does `step` to the victim.
fn doer(draw: &mut Draw, step: &str, length_us: u64) {
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let policy = draw.random.of(&["other:0", "fifo:70"]);
    let step = format!("{step} {length_us}us");
    draw.task("culprit", name, policy, &[], &[&at, &step]);
    draw.accuse("stopped", name);
    draw.innocents();
}

pub fn stopped(draw: &mut Draw) {
    let policy = draw.own();
    process(draw, &policy, &[]);
    let length_us = draw.fault_us();
    doer(draw, &format!("stop {VICTIM}"), length_us);
}

pub fn traced(draw: &mut Draw) {
    let policy = draw.own();
    process(draw, &policy, &[]);
    let length_us = draw.fault_us();
    doer(draw, &format!("trace {VICTIM}"), length_us);
}

pub fn frozen(draw: &mut Draw) {
    draw.thing("group g 0");
    process(draw, "other:0", &["join g"]);
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let freeze = format!("freeze g {length_us}us");
    draw.task("culprit", name, "other:0", &[], &[&at, &freeze]);
    draw.accuse("stopped", "-");
    draw.innocents_elsewhere();
}

/// A greedy neighbour in the victim's group uses up what both have.
pub fn quota(draw: &mut Draw) {
    let quota_ms = draw.random.of(&[20, 30, 40]);
    draw.thing(&format!("group g {quota_ms}"));
    process(draw, "other:0", &["join g"]);
    let greedy = draw.name();
    let at = format!("at {}us", draw.at_us(200_000));
    let work = format!("work {}ms", quota_ms + 20);
    let steps = ["join g", &at, &work];
    draw.task("culprit", greedy, "other:0", &["cpu=0", "process"], &steps);
    draw.accuse("quota", "-");
    draw.innocents_elsewhere();
}

/// A timer that may come late, and does.
pub fn slack(draw: &mut Draw) {
    let length_us = draw.fault_us();
    process(draw, "other:0", &[&format!("slack {length_us}us")]);
    draw.accuse("timer_slack", "-");
    draw.lasts_until_us(120_000);
    draw.innocents_elsewhere();
}

/// A fault of the module on the victim's CPU.
fn injected(draw: &mut Draw, kind: &str, function: &str) {
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let step = format!("inject {kind} {function} {length_us}us");
    draw.task("culprit", name, "other:0", &["cpu=0"], &[&at, &step]);
    draw.innocents();
}

pub fn interrupts_off(draw: &mut Draw) {
    draw.victim();
    let functions = ["lab_drain_fifo", "lab_poll_register", "lab_raw_lock"];
    let function = draw.random.of(&functions);
    injected(draw, "irqoff", function);
    draw.accuse("interrupts_off", function);
}

pub fn preemption_off(draw: &mut Draw) {
    draw.victim();
    let function = draw.random.of(&["lab_spin_section", "lab_walk_list"]);
    injected(draw, "preemptoff", function);
    draw.accuse("preemption_off", function);
}

pub fn hardirq(draw: &mut Draw) {
    draw.victim();
    injected(draw, "hardirq", "lab_device");
    draw.accuse("hardirq", "lab_device");
}

/// On PREEMPT_RT the victim goes before it, and is in time.
pub fn softirq(draw: &mut Draw) {
    draw.victim();
    injected(draw, "softirq", "lab_tasklet");
    draw.accuse("softirq", "-");
}

/// The thread has priority 50.
pub fn interrupt_thread(draw: &mut Draw) {
    draw.priority = draw.random.within(20, 49);
    draw.without("irq/");
    draw.victim();
    injected(draw, "threadirq", "lab_threaded");
    draw.accuse("run_queue_wait", "irq/*");
}

/// The wall clock goes back for a while: nobody kept the victim from its CPU.
pub fn clock_set(draw: &mut Draw) {
    let (every, policy, work) = (draw.every_by("wall"), draw.own(), draw.work());
    draw.victim_of(&policy, &["loop", &every, &work]);
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let step = format!("clock -500 {length_us}us");
    draw.task("culprit", name, "other:0", &[], &[&at, &step]);
    draw.accuse("clock_set", "-");
    draw.silence("its clock was set: by it the victim is in time");
    draw.innocents();
}

pub fn cpu_off(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let step = format!("offline 1 {length_us}us");
    draw.task("culprit", name, "other:0", &["cpu=0"], &[&at, &step]);
    draw.accuse(
        "*",
        &format!("{name}|migration/0|migration/1|cpuhp/*|kworker/*"),
    );
    draw.short_innocent();
}

/// The emulator stands still: the guest cannot know it.
pub fn stall(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us + 100_000));
    let name = draw.name();
    let step = format!("stall {length_us}us");
    draw.task("culprit", name, "other:0", &[], &[&at, &step]);
    draw.accuse("steal", "-");
    draw.silence("the machine stood still: nobody knows it");
    draw.innocents();
}
