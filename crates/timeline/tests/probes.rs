//! What a track says of an instant is what happened then: of recordings that a small scheduler
//! makes up, whose truth it knows. In a hole nobody knows, and behind it nothing false is said.

use event::Value;
use testkit::{SyntheticTrace, Task};
use timeline::{Builder, Index, Kind, State, TrackId};

const RECORDINGS: u64 = 100;
const PROBES: u64 = 100;
const STEPS: u64 = 120;
const CPUS: usize = 2;
const TASKS: [Task; 4] = [
    Task::fair(7, "a"),
    Task::rt(8, "b", 60),
    Task::fair(9, "c"),
    Task::rt(10, "d", 10),
];

/// Numbers without a pattern, the same each time.
struct Mixed(u64);

impl Mixed {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wants {
    Sleep,
    Cpu,
    On(usize),
}

/// All that is so from an instant on.
#[derive(Clone, Copy, Debug)]
struct Truth {
    on: [Option<usize>; CPUS],
    in_irq: [bool; CPUS],
    in_call: [bool; TASKS.len()],
    wants: [Wants; TASKS.len()],
    /// What the events so far say something of: CPUs, tasks.
    seen: ([bool; CPUS], [bool; TASKS.len()]),
}

impl Truth {
    fn on_cpu(&self, cpu: usize) -> (Kind, Option<usize>) {
        let task = self.on[cpu];
        let kind = match task {
            _ if self.in_irq[cpu] => Kind::Irq,
            None => Kind::Idle,
            Some(task) if self.in_call[task] => Kind::Call,
            Some(_) => Kind::Run,
        };
        (kind, task)
    }

    fn of_task(&self, task: usize) -> (Kind, Option<usize>) {
        match self.wants[task] {
            Wants::Sleep => (Kind::Idle, None),
            Wants::Cpu => (Kind::Runnable, None),
            Wants::On(cpu) => (self.on_cpu(cpu).0, Some(cpu)),
        }
    }
}

struct Recording {
    trace: SyntheticTrace,
    /// From when, in microseconds, what is so.
    truth: Vec<(i64, Truth)>,
    /// On this CPU nothing was recorded meanwhile.
    hole: Option<(usize, i64, i64)>,
    now: Truth,
    at_us: i64,
    /// When the first event was.
    begin_us: Option<i64>,
}

impl Recording {
    fn new(seed: u64, has_hole: bool) -> Recording {
        let mut mixed = Mixed(seed);
        let begin_us = 400 + mixed.below(1_200) as i64;
        let hole = has_hole.then(|| {
            let length_us = 50 + mixed.below(300) as i64;
            (
                mixed.below(CPUS as u64) as usize,
                begin_us,
                begin_us + length_us,
            )
        });
        let mut recording = Recording {
            trace: SyntheticTrace::new(),
            truth: Vec::new(),
            hole,
            now: Truth {
                on: [None; CPUS],
                in_irq: [false; CPUS],
                in_call: [false; TASKS.len()],
                wants: [Wants::Sleep; TASKS.len()],
                seen: ([false; CPUS], [false; TASKS.len()]),
            },
            at_us: 10,
            begin_us: None,
        };
        for _ in 0..STEPS {
            recording.at_us += 2 + mixed.below(40) as i64;
            recording.step(&mut mixed);
        }
        if let Some((cpu, begin_us, end_us)) = hole {
            let lost = recording
                .trace
                .lost_on(Some(cpu as u32), begin_us * 1_000, end_us * 1_000);
            recording.trace = lost;
        }
        recording
    }

    fn write(&mut self, cpu: usize, event: impl FnOnce(SyntheticTrace) -> SyntheticTrace) {
        let at_us = self.at_us;
        let is_lost = self.hole.is_some_and(|(of, begin_us, end_us)| {
            of == cpu && begin_us <= at_us && at_us <= end_us
        });
        if !is_lost {
            self.begin_us.get_or_insert(at_us);
            let trace = std::mem::take(&mut self.trace);
            self.trace = event(trace.at(at_us).cpu(cpu as u32));
        }
    }

    fn step(&mut self, mixed: &mut Mixed) {
        let (cpu, task) = (mixed.below(2) as usize, mixed.below(4) as usize);
        let here = self.now.on[cpu];
        match mixed.below(6) {
            0 | 1 if self.now.wants[task] == Wants::Sleep => {
                self.write(cpu, |trace| trace.waking(TASKS[task], cpu as u32));
                self.now.wants[task] = Wants::Cpu;
                self.now.seen.1[task] = true;
            }
            2 | 3 if !self.now.in_irq[cpu] => {
                // No CPU begins to idle while somebody waits, and only who blocks leaves it idle.
                let waiting = (0..TASKS.len()).map(|turn| (task + turn) % TASKS.len());
                let next = waiting
                    .into_iter()
                    .find(|task| self.now.wants[*task] == Wants::Cpu);
                if next.is_none() && here.is_none() {
                    return;
                }
                let blocks = next.is_none() || mixed.below(2) == 0;
                self.switch(cpu, next, blocks);
            }
            4 if self.now.in_irq[cpu] => {
                self.write(cpu, |trace| trace.irq_end(9));
                self.now.in_irq[cpu] = false;
            }
            4 => {
                self.write(cpu, |trace| trace.irq(9, "disk"));
                self.now.in_irq[cpu] = true;
            }
            5 if !self.now.in_irq[cpu] && here.is_some() => self.call(cpu),
            _ => return,
        }
        self.truth.push((self.at_us, self.now));
    }

    fn switch(&mut self, cpu: usize, next: Option<usize>, blocks: bool) {
        let here = self.now.on[cpu];
        let task = |place: Option<usize>| place.map_or(Task::IDLE, |place| TASKS[place]);
        self.write(cpu, |trace| match blocks && here.is_some() {
            true => trace.block(task(here), task(next)),
            false => trace.preempt(task(here), task(next)),
        });
        if let Some(here) = here {
            self.now.wants[here] = if blocks { Wants::Sleep } else { Wants::Cpu };
        }
        if let Some(next) = next {
            self.now.wants[next] = Wants::On(cpu);
            self.now.seen.1[next] = true;
        }
        self.now.on[cpu] = next;
        self.now.seen.0[cpu] = true;
    }

    fn call(&mut self, cpu: usize) {
        let task = self.now.on[cpu].expect("a task");
        let is_in = self.now.in_call[task];
        self.write(cpu, |trace| match is_in {
            true => trace.event("syscall_exit_read", &[("ret", Value::Signed(0))]),
            false => trace.event("syscall_entry_read", &[("fd", Value::Unsigned(1))]),
        });
        self.now.in_call[task] = !is_in;
    }

    fn at(&self, us: i64) -> Option<&Truth> {
        let place = self.truth.partition_point(|(at_us, _)| *at_us <= us);
        Some(&self.truth.get(place.checked_sub(1)?)?.1)
    }
}

/// What a tile of one pixel draws there: its leading state, and that nothing else is in it.
fn drawn(index: &Index, id: TrackId, at_ns: i64) -> Option<State> {
    let tile = index.tile(&[id], (at_ns, at_ns + 1), 1);
    let number = |at: usize| u32::from_le_bytes(tile[at..at + 4].try_into().expect("four bytes"));
    // One stretch: behind the head of 32 bytes and the track's of 16, two instants and its state.
    (tile[37] == 0 && number(40) == 1).then(|| State(number(64)))
}

/// What the probes of many recordings found.
#[derive(Default)]
struct Found {
    known: u64,
    unknown: u64,
    in_hole: u64,
}

/// A track at an instant, and what is so then: its kind, and the thread's id or the CPU's number.
struct Probe {
    id: TrackId,
    us: i64,
    truth: (Kind, Option<i32>),
    /// Events before it say something of it.
    is_seen: bool,
    in_hole: bool,
    /// No kernel lets a task wait for long beside an idle CPU: such a wait is doubted.
    is_doubtful: bool,
}

/// A probe of a track that is there.
fn draw(recording: &Recording, index: &Index, mixed: &mut Mixed) -> Option<Probe> {
    let end_us = recording.truth.last()?.0;
    let us = 10 + mixed.below(end_us as u64 - 10) as i64;
    let truth = recording.at(us)?;
    let (cpu, task) = (mixed.below(2) as usize, mixed.below(4) as usize);
    if mixed.below(2) == 0 {
        let (kind, task) = truth.on_cpu(cpu);
        let is_inside = |begin_us, end_us| (begin_us..end_us).contains(&us);
        let hole = recording.hole;
        return Some(Probe {
            id: TrackId::Cpu(cpu as u32),
            us,
            truth: (kind, task.map(|task| TASKS[task].tid)),
            is_seen: truth.seen.0[cpu],
            in_hole: hole.is_some_and(|(of, begin, end)| of == cpu && is_inside(begin, end)),
            is_doubtful: false,
        });
    }
    let is_it = |known: &timeline::TaskFacts| known.tid == TASKS[task].tid;
    let place = index.tasks.iter().position(is_it)?;
    let (kind, cpu) = truth.of_task(task);
    Some(Probe {
        id: TrackId::Thread(place as u32),
        us,
        truth: (kind, cpu.map(|cpu| cpu as i32)),
        is_seen: truth.seen.1[task],
        in_hole: false,
        is_doubtful: kind == Kind::Runnable && truth.on.contains(&None),
    })
}

fn check(probe: &Probe, index: &Index, at_ns: i64, is_lossy: bool, found: &mut Found) {
    let (id, us) = (probe.id, probe.us);
    let Some(said) = index.track(id).map(|track| track.at(at_ns)) else {
        return;
    };
    if said != State::UNKNOWN {
        let drawn = drawn(index, id, at_ns);
        assert_eq!(drawn, Some(said), "{id:?} at {us} us");
    }
    if probe.in_hole {
        found.in_hole += 1;
        assert_eq!(said.kind(), Kind::Unknown, "{id:?} at {us} us, in a hole");
        return;
    }
    let (kind, detail) = probe.truth;
    if said.kind() == Kind::Unknown {
        found.unknown += 1;
        let may = is_lossy || !probe.is_seen || probe.is_doubtful;
        assert!(may, "{id:?} at {us} us: {kind:?}");
        return;
    }
    found.known += 1;
    // A return from a system call may lie in the hole, and the task's next event elsewhere.
    let call = [Kind::Run, Kind::Call];
    let is_either = is_lossy && call.contains(&kind) && call.contains(&said.kind());
    assert!(
        said.kind() == kind || is_either,
        "{id:?} at {us} us: {kind:?} {said:?}"
    );
    let told = said.detail().map(|detail| match id {
        TrackId::Cpu(_) => index.tasks[detail as usize].tid,
        _ => detail as i32,
    });
    // Behind a hole an interrupt's victim may be unknown; who waits has no CPU.
    if detail.is_some() && (told.is_some() || !is_lossy) {
        assert_eq!(told, detail, "{id:?} at {us} us");
    }
}

fn probe(has_hole: bool) -> Found {
    let mut found = Found::default();
    for seed in 0..RECORDINGS {
        let mut recording = Recording::new(seed, has_hole);
        let trace = std::mem::take(&mut recording.trace).build();
        let index = Builder::new(&trace).walk(|_| true).expect("a walk");
        let begin_us = recording.begin_us.expect("an event");
        let mut mixed = Mixed(seed + 1_000);
        for _ in 0..PROBES {
            let Some(probe) = draw(&recording, &index, &mut mixed) else {
                continue;
            };
            let at_ns = index.begin_ns + (probe.us - begin_us) * 1_000 + 500;
            check(&probe, &index, at_ns, has_hole, &mut found);
        }
    }
    found
}

#[test]
fn ten_thousand_probes_of_tracks_say_what_happened_and_who_it_was() {
    let found = probe(false);
    assert!(found.known > 7_500, "{} {}", found.known, found.unknown);
    assert_eq!(found.in_hole, 0);
}

#[test]
fn ten_thousand_probes_of_recordings_with_a_hole_say_nothing_false() {
    let found = probe(true);
    assert!(found.known > 5_000, "{} {}", found.known, found.unknown);
    assert!(found.in_hole > 100, "{}", found.in_hole);
}
