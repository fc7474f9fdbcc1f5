//! Check on the running kernel that a program of somebody else's with `rtscope/track.bpf.h` counts
//! its intervals and calls back: the example, built as its author would build it.

use std::process::Command;
use std::sync::{Arc, Mutex};

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, RingBufferBuilder};

const EXAMPLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slow_sleeps.bpf.o"));

const THRESHOLD_NS: u64 = 50_000_000;
const TIMEOUT_NS: u64 = 20_000_000;
const OVER: u32 = 1;
const OPEN: u32 = 2;

/// `struct slow_sleep`: who, and `struct rts_track_interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slow {
    tid: u32,
    begin_ns: u64,
    end_ns: u64,
    flags: u32,
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    words.collect()
}

fn slow(bytes: &[u8]) -> Slow {
    let words = words(bytes);
    Slow {
        tid: words[0] as u32,
        begin_ns: words[1],
        end_ns: words[2],
        flags: (words[3] >> 32) as u32,
    }
}

/// The read-only data in the order of the header: threshold, time-out, only the worst.
fn load() -> Object {
    // A copy is aligned as libelf wants it.
    let bytes = EXAMPLE.to_vec();
    let mut opened = ObjectBuilder::default()
        .open_memory(&bytes)
        .expect("opened");
    for mut map in opened.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata") {
            let data = map.initial_value_mut().expect("read-only data");
            data[..8].copy_from_slice(&THRESHOLD_NS.to_ne_bytes());
            data[8..16].copy_from_slice(&TIMEOUT_NS.to_ne_bytes());
        }
    }
    opened.load().expect("loaded")
}

/// The fields of `struct rts_track_statistics`, of all CPUs.
fn statistics(object: &Object) -> Vec<u64> {
    let map = object.maps().find(|map| map.name() == "sleeps_statistics");
    let map = map.expect("statistics");
    let cpus = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
    let cpus = cpus.expect("read").expect("an entry");
    let mut sums = vec![0; 8 + 640];
    for cpu in cpus {
        for (place, word) in words(&cpu).into_iter().enumerate() {
            sums[place] = match place {
                // The longest.
                3 => sums[place].max(word),
                _ => sums[place] + word,
            };
        }
    }
    sums
}

#[test]
fn anothers_program_counts_its_intervals_and_is_told_of_the_long_ones() {
    let _privileged = testkit::privileged();
    let object = load();
    let told: Arc<Mutex<Vec<Slow>>> = Arc::default();
    let keep = Arc::clone(&told);
    let mut ring = RingBufferBuilder::new();
    let map = object.maps().find(|map| map.name() == "slow_sleeps");
    let map = map.expect("a ring");
    ring.add(&map, move |bytes| {
        keep.lock().expect("nobody panics").push(slow(bytes));
        0
    })
    .expect("a ring");
    let ring = ring.build().expect("a ring");
    let mut programs = object.progs_mut();
    let check = programs.find(|program| program.name() == "sleeps_check");
    let check = check.expect("a program that looks");
    let attached = object
        .progs_mut()
        .filter(|program| program.name() != "sleeps_check");
    let _links: Vec<_> = attached
        .map(|program| program.attach().expect("attached"))
        .collect();

    let mut sleep = Command::new("sleep").arg("0.1").spawn().expect("sleep");
    let mut short = Command::new("sleep").arg("0.001").spawn().expect("sleep");
    while sleep.try_wait().expect("a child").is_none() {
        check.test_run(ProgramInput::default()).expect("it looks");
        ring.consume().expect("read");
        std::thread::yield_now();
    }
    short.wait().expect("a child");
    ring.consume().expect("read");

    let told = told.lock().expect("nobody panics").clone();
    let of = |child: u32| told.iter().filter(move |slow| slow.tid == child);
    let ours: Vec<_> = of(sleep.id()).collect();
    let [open, over] = ours[..] else {
        panic!("open once, over once: {told:?}");
    };
    assert_eq!(
        (open.flags, over.flags, open.begin_ns),
        (OPEN, OVER, over.begin_ns)
    );
    assert!(open.end_ns - open.begin_ns >= TIMEOUT_NS && open.end_ns < over.end_ns);
    assert!(over.end_ns - over.begin_ns >= 100_000_000, "{over:?}");
    assert_eq!(of(short.id()).filter(|slow| slow.flags == OVER).count(), 0);

    let sums = statistics(&object);
    let (count, hits, full) = (sums[0], sums[4], sums[5]);
    assert!(count >= 2 && hits >= 2 && full == 0, "{:?}", &sums[..8]);
    assert_eq!(sums[8..].iter().sum::<u64>(), count, "each is in a bucket");
    assert!(sums[3] >= over.end_ns - over.begin_ns);
}
