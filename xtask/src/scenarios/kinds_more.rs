//! Kinds in which somebody else changes who goes first, or in which more than one is behind it.

use super::draft::Draw;
use super::language::VICTIM;

/// No real-time task has a CPU for longer.
const LONG_US_MAX: u64 = 100_000;

/// Another task takes the hog's priority away while it runs: from then on the victim is free.
pub fn lowered_by_another(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    let above = draw.above(1);
    let burn = format!("burn {}us", (2 * length_us).min(LONG_US_MAX));
    let hog = draw.culprit(&above, &[&format!("at {at_us}us"), &burn]);
    let when = format!("at {}us", at_us + length_us);
    let to = draw.random.of(&["other:0", "fifo:1"]);
    by_another(draw, &[&when, &format!("force {hog} {to}")]);
    draw.short_innocent();
}

/// It runs below the victim at first.
pub fn raised_by_another(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    let burn = format!("burn {}us", (2 * length_us).min(LONG_US_MAX));
    let hog = draw.culprit("other:0", &[&format!("at {at_us}us"), &burn]);
    let above = draw.above(1);
    let when = format!("at {}us", at_us + length_us / 2);
    by_another(draw, &[&when, &format!("force {hog} {above}")]);
    draw.short_innocent();
}

/// Above all, on any CPU.
fn by_another(draw: &mut Draw, steps: &[&str]) {
    let name = draw.name();
    let cpu = format!("cpu={}", draw.random.within(0, draw.place.cpus - 1));
    draw.task("helper", name, "fifo:90", &[&cpu], steps);
}

/// One behind the other: both did it.
pub fn two_hogs(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    for at_us in [at_us, at_us + length_us / 3] {
        let above = draw.above(1);
        let steps = [format!("at {at_us}us"), format!("burn {length_us}us")];
        draw.culprit(&above, &[&steps[0], &steps[1]]);
    }
    draw.innocents();
}

/// The hog comes to the victim's CPU in the midst of its work.
pub fn hog_comes(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(2 * length_us));
    let (above, name) = (draw.above(1), draw.name());
    let burn = format!("burn {length_us}us");
    let steps = [&at, &burn, "move 0", &burn];
    draw.task("culprit", name, &above, &["cpu=1"], &steps);
    draw.accuse("run_queue_wait", name);
    draw.innocents();
}

/// Somebody sends the victim to the hog's CPU, and later back.
pub fn sent_to_a_hog(draw: &mut Draw) {
    draw.victim();
    let length_us = draw.fault_us();
    let at_us = draw.at_us(length_us);
    let (above, name) = (draw.above(1), draw.name());
    let steps = [format!("at {at_us}us"), format!("burn {length_us}us")];
    draw.task("culprit", name, &above, &["cpu=1"], &[&steps[0], &steps[1]]);
    draw.accuse("run_queue_wait", name);
    let (there, back) = (at_us.saturating_sub(500), at_us + length_us + 10_000);
    let when = [format!("at {there}us"), format!("at {back}us")];
    let send = |cpu: u32| format!("send {VICTIM} {cpu}");
    by_another(draw, &[&when[0], &send(1), &when[1], &send(0)]);
    draw.short_innocent();
}

/// Again and again, within one activation and between them.
pub fn stop_storm(draw: &mut Draw) {
    let (every, policy, work) = (draw.every(), draw.own(), draw.work());
    let options = ["cpu=0", "process"];
    draw.task(
        "victim",
        VICTIM,
        &policy,
        &options,
        &["loop", &every, &work],
    );
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(3 * length_us));
    let stop = format!("stop {VICTIM} {}us", length_us / 3);
    let steps = [&at, &stop, "burn 300us", &stop, &stop, "burn 100us", &stop];
    let name = draw.name();
    draw.task("culprit", name, "fifo:70", &["cpu=1"], &steps);
    draw.accuse("stopped", name);
    draw.innocents();
}

/// The victim waits for one who waits for another, who is preempted or works for long; the locks
/// inherit.
pub fn lock_chain(draw: &mut Draw) {
    draw.thing("mutex m pi 1");
    draw.thing("mutex n pi 1");
    let (every, policy) = (draw.every(), draw.own());
    let steps = ["loop", &every, "lock m", "work 50us", "unlock m"];
    draw.victim_of(&policy, &steps);
    let length_us = draw.fault_us();
    let at_us = draw.at_us(2 * length_us);
    let (middle, last) = (draw.name(), draw.name());
    let is_preempted = draw.random.percent(50);
    let hold = match is_preempted {
        true => format!("work {}us", draw.place.over_us / 2),
        false => format!("burn {length_us}us"),
    };
    let at = format!("at {at_us}us");
    let steps = [&at, "lock n", &hold, "unlock n"];
    let role = if is_preempted { "helper" } else { "culprit" };
    draw.task(role, last, "fifo:5", &["cpu=0"], &steps);
    let at = format!("at {}us", at_us + draw.place.over_us / 10);
    let steps = [&at, "lock m", "lock n", "work 50us", "unlock n", "unlock m"];
    draw.task("helper", middle, "fifo:15", &["cpu=0"], &steps);
    draw.accuse("lock_wait|run_queue_wait|upstream", last);
    draw.accuse("lock_wait|run_queue_wait|upstream", middle);
    if is_preempted {
        let above = draw.above(1);
        let at = format!("at {}us", at_us + draw.place.over_us / 4);
        let hog = draw.culprit(&above, &[&at, &format!("burn {length_us}us")]);
        draw.accuse("priority_inversion", hog);
    }
    draw.short_innocent();
}

/// One hands on to the next, and that one to the victim: behind a hog.
pub fn relay(draw: &mut Draw) {
    let kinds = ["pipe", "eventfd", "futex", "socket"];
    for name in ["c", "d"] {
        let kind = draw.random.of(&kinds);
        draw.thing(&format!("channel {name} {kind}"));
    }
    let (policy, work) = (draw.own(), draw.work());
    let steps = ["loop", "take d", &work];
    draw.task("victim", VICTIM, &policy, &["cpu=0"], &steps);
    let between = format!("fifo:{}", draw.priority + draw.random.within(0, 5));
    let name = draw.name();
    draw.task(
        "helper",
        name,
        &between,
        &["cpu=0"],
        &["loop", "take c", "post d"],
    );
    let (name, every) = (draw.name(), draw.every());
    let cpu = format!("cpu={}", draw.random.within(0, draw.place.cpus - 1));
    let feeder = format!("fifo:{}", draw.priority + 6);
    draw.task(
        "helper",
        name,
        &feeder,
        &[&cpu],
        &["loop", &every, "post c"],
    );
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let above = draw.above(7);
    draw.culprit(&above, &[&at, &format!("burn {length_us}us")]);
    draw.innocents();
}

/// A victim with a deadline of its own, behind one with a shorter one.
pub fn deadline_victim(draw: &mut Draw) {
    let (every, work) = (draw.every_by("abs"), draw.work());
    // Enough for all its work in a period of that, and late behind those of a shorter deadline.
    let budget = draw.place.over_us * 4;
    let policy = format!("dl:{budget}us/{}ms", draw.place.period_ms * 20);
    draw.task(
        "victim",
        VICTIM,
        &policy,
        &["process"],
        &["loop", &every, &work],
    );
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let policy = format!("dl:{}us/{}us", length_us + 2_000, 4 * length_us + 20_000);
    let burn = format!("burn {length_us}us");
    for _ in 0..draw.place.cpus {
        let name = draw.name();
        draw.task("culprit", name, &policy, &["process"], &[&at, &burn]);
        draw.accuse("run_queue_wait", name);
    }
    draw.innocents();
}

/// More work than its budget: the scheduler makes it wait for the next one.
pub fn out_of_budget(draw: &mut Draw) {
    let (every, work) = (draw.every_by("abs"), draw.work());
    let policy = format!("dl:{}us/{}ms", draw.place.over_us, draw.place.period_ms);
    let length = format!("work {}us", draw.place.over_us * 3);
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.extend([every.as_str(), work.as_str()]);
    }
    steps.extend([length.as_str(), "loop", &every, &work]);
    draw.task("victim", VICTIM, &policy, &["process"], &steps);
    draw.accuse("own_run|throttled|runtime_used_up", "-");
    draw.lasts_until_us(12_000 * draw.place.period_ms);
    draw.innocents();
}

/// The kernel keeps it from its work until its child has ended.
pub fn vfork(draw: &mut Draw) {
    let length_us = draw.fault_us();
    let (every, policy, work) = (draw.every(), draw.own(), draw.work());
    let wait = format!("vfork {length_us}us");
    let steps = [&every, &work, &every, &wait, "loop", &every, &work];
    draw.victim_of(&policy, &steps);
    draw.silence("it waits for its child, and nothing says why that takes so long");
    draw.lasts_until_us(6_000 * draw.place.period_ms + length_us);
    draw.innocents();
}

/// It writes more than there is room for; who reads is kept from it, on another CPU.
pub fn no_room(draw: &mut Draw) {
    let kind = draw.random.of(&["pipe", "socket"]);
    draw.thing(&format!("channel c {kind}"));
    let (every, policy) = (draw.every(), draw.own());
    draw.victim_of(&policy, &["loop", &every, "put c 12"]);
    let reader = draw.name();
    let steps = ["loop", "get c"];
    draw.task("helper", reader, "fifo:12", &["cpu=1"], &steps);
    let length_us = (4 * draw.fault_us()).min(LONG_US_MAX);
    let at = format!("at {}us", draw.at_us(length_us));
    let (hog, burn) = (draw.name(), format!("burn {length_us}us"));
    draw.task("culprit", hog, "fifo:20", &["cpu=1"], &[&at, &burn]);
    // A recording follows who woke it.
    draw.accuse("run_queue_wait", hog);
    draw.silence("nothing says why nobody reads");
    draw.short_innocent();
}

/// Its own policy is another one in each activation.
pub fn changes_itself(draw: &mut Draw) {
    let (every, own, work) = (draw.every(), draw.own(), draw.work());
    let other = format!("policy fifo:{}", draw.priority - 1);
    let (back, policy) = (format!("policy {own}"), own.clone());
    let steps = ["loop", &every, &other, &work, &every, &back, &work];
    draw.victim_of(&policy, &steps);
    let length_us = draw.fault_us();
    let at = format!("at {}us", draw.at_us(length_us));
    let above = draw.above(1);
    draw.culprit(&above, &[&at, &format!("burn {length_us}us")]);
    draw.innocents();
}
