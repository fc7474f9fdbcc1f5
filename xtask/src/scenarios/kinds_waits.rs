//! Kinds in which a task waits for another one, or for itself.

use super::draft::Draw;
use super::language::VICTIM;

/// A plain lock: its owner is preempted by a task between the two.
pub fn inversion(draw: &mut Draw) {
    draw.thing("mutex m plain 1");
    let (every, policy) = (draw.every(), draw.own());
    draw.victim_of(
        &policy,
        &["loop", &every, "lock m", "work 50us", "unlock m"],
    );
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    let low = draw.name();
    let low_policy = draw.random.of(&["other:0", "fifo:5", "fifo:1"]);
    let hold = format!("work {}us", draw.place.over_us / 2);
    let at = format!("at {at_us}us");
    draw.task(
        "culprit",
        low,
        low_policy,
        &["cpu=0"],
        &[&at, "lock m", &hold, "unlock m"],
    );
    let between = format!("fifo:{}", draw.random.within(11, draw.priority - 1));
    let later = format!("at {}us", at_us + draw.place.over_us / 4);
    let middle = draw.name();
    let burn = format!("burn {length_us}us");
    draw.task("culprit", middle, &between, &["cpu=0"], &[&later, &burn]);
    // Where timers are served by a thread of priority 1, both go before it too.
    draw.accuse("priority_inversion|run_queue_wait", middle);
    draw.accuse("lock_wait|run_queue_wait", low);
    draw.short_innocent();
}

/// A lock with priority inheritance that is held for long.
pub fn inheritance(draw: &mut Draw) {
    draw.thing("mutex m pi 1");
    let (every, policy) = (draw.every(), draw.own());
    draw.victim_of(
        &policy,
        &["loop", &every, "lock m", "work 50us", "unlock m"],
    );
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let low = draw.name();
    let low_policy = draw.random.of(&["other:0", "fifo:5", "rr:9"]);
    let hold = format!("burn {length_us}us");
    // From another CPU's owner the victim does not block: it spins, in the kernel.
    let cpu = format!("cpu={}", draw.random.within(0, draw.place.cpus - 1));
    draw.task(
        "culprit",
        low,
        low_policy,
        &[&cpu],
        &[&at, "lock m", &hold, "unlock m"],
    );
    // A recording without system calls shows who woke it, not that it was a lock.
    draw.accuse("lock_wait|upstream", low);
    draw.innocents();
}

/// A lock that is held for microseconds by one that is busy for long without it: no fault.
pub fn short_mutex(draw: &mut Draw) {
    let kind = draw.random.of(&["plain", "pi"]);
    draw.thing(&format!("mutex m {kind} 1"));
    // Not by a timer that a thread of priority 1 serves on some kernels: the worker goes before it.
    let sleep = draw.random.of(&["abs", "skip", "rel", "futex"]);
    let (every, policy) = (draw.every_by(sleep), draw.own());
    draw.victim_of(
        &policy,
        &["loop", &every, "lock m", "work 20us", "unlock m"],
    );
    let worker = draw.name();
    let below = format!("fifo:{}", draw.random.within(11, draw.priority - 1));
    let work = format!("work {}us", draw.place.over_us * 2);
    let steps = [
        "loop",
        &work,
        "lock m",
        "burn 30us",
        "unlock m",
        "sleep 20ms",
    ];
    draw.task("innocent", worker, &below, &["cpu=0"], &steps);
    draw.innocents();
    draw.lasts_until_us(120_000);
}

/// One that wakes the victim, at multiples of a period.
fn fed(draw: &mut Draw, feeder_policy: &str) {
    let kind = draw
        .random
        .of(&["pipe", "eventfd", "futex", "signal", "socket"]);
    draw.thing(&format!("channel c {kind}"));
    let policy = draw.own();
    let work = draw.work();
    let steps = ["loop", "take c", &work];
    draw.task("victim", VICTIM, &policy, &["cpu=0"], &steps);
    let feeder = draw.name();
    let every = draw.every();
    let cpu = format!("cpu={}", draw.random.within(0, draw.place.cpus - 1));
    let options = match kind {
        // A signal goes to a thread of the same process, as everything else may.
        "signal" => vec![cpu.as_str()],
        _ => vec![cpu.as_str(), "process"],
    };
    let cpu = options.clone();
    draw.task(
        "helper",
        feeder,
        feeder_policy,
        &cpu,
        &["loop", &every, "post c"],
    );
}

pub fn feeder_behind_hog(draw: &mut Draw) {
    let feeder = format!("fifo:{}", draw.priority + draw.random.within(0, 5));
    fed(draw, &feeder);
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let above = draw.above(6);
    draw.culprit(&above, &[&at, &format!("burn {length_us}us")]);
    draw.innocents();
}

/// Its post comes late by its own work: a chain that may begin with it or with its post.
pub fn feeder_slow(draw: &mut Draw) {
    fed(draw, "fifo:62");
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let name = draw.name();
    let burn = format!("burn {length_us}us");
    let above = draw.above(1);
    let cpu = format!("cpu={}", draw.place.cpus - 1);
    draw.task("culprit", name, &above, &[&cpu], &[&at, &burn, "post c"]);
    draw.accuse("upstream|run_queue_wait", name);
    draw.silence("a post that comes late is no late activation by itself");
    draw.innocents();
}

/// A fair producer behind a hog: its consumer is late by what the producer waited.
pub fn feeder_fair(draw: &mut Draw) {
    fed(draw, "other:0");
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let above = draw.above(1);
    draw.culprit(&above, &[&at, &format!("burn {length_us}us")]);
    draw.silence("a fair task hands on no activation");
    draw.short_innocent();
}

/// A victim that does `step` once, in its fifth activation.
fn once(draw: &mut Draw, step: &str, length_us: u64) {
    let (every, policy, work) = (draw.every(), draw.own(), draw.work());
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.extend([every.as_str(), work.as_str()]);
    }
    steps.extend([step, "loop", &every, &work]);
    draw.victim_of(&policy, &steps);
    draw.lasts_until_us(7 * 2_000 * draw.place.period_ms + length_us);
    draw.innocents();
}

pub fn own_work(draw: &mut Draw) {
    let length_us = draw.fault_us();
    once(draw, &format!("burn {length_us}us"), length_us);
    draw.accuse("own_run", VICTIM);
}

pub fn own_pages(draw: &mut Draw) {
    let pages = draw.random.within(1000, 8000);
    once(draw, &format!("touch {pages}"), 50_000);
    draw.accuse("own_run|page_fault", "-");
}

/// It spins until another CPU's task sets a flag.
pub fn spin(draw: &mut Draw) {
    draw.thing("channel f flag");
    let length_us = draw.fault_us();
    once(draw, "spin f", length_us);
    let setter = draw.name();
    let sleep = format!("sleep {length_us}us");
    draw.task(
        "helper",
        setter,
        "fifo:20",
        &["cpu=1"],
        &["loop", &sleep, "set f"],
    );
    draw.accuse("own_run", VICTIM);
}

/// It waits for its child to end, which is no lateness; to make one is its own work.
pub fn child(draw: &mut Draw) {
    let length_us = draw.fault_us();
    let policy = draw.own();
    let (every, work) = (draw.every(), draw.work());
    let wait = format!("child {length_us}us");
    draw.victim_of(&policy, &["loop", &every, &work, &wait]);
    draw.accuse("own_run", VICTIM);
    draw.silence("it waits for its child, for nearly a period: its activation is over then");
    draw.lasts_until_us(100_000 + length_us);
    draw.innocents();
}
