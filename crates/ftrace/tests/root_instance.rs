//! Instances on this kernel: made, filled, read, removed. Needs root.

use event::Cpu;
use ftrace::{EventFormat, EventName, Formats, Instance, Leftover, Page, Tracefs};

fn event(text: &str) -> EventName {
    EventName::parse(text).expect("a full name")
}

/// Runs something that wakes and switches tasks.
fn make_events() {
    for _ in 0..50 {
        let status = std::process::Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

#[test]
fn the_format_of_every_event_of_this_kernel_is_understood() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let events = tracefs.available_events().expect("a list of events");
    let formats = Formats::load(&tracefs, &events).expect("every format parses");
    assert_eq!(formats.iter().count(), events.len());
    for format in formats.iter() {
        let inside = |end: u32| {
            format
                .fields
                .iter()
                .all(|f| f.offset_bytes + f.size_bytes <= end)
        };
        assert!(inside(4096), "{}", format.full_name());
    }
    let switch = formats
        .by_name("sched_switch")
        .expect("every kernel has sched_switch");
    assert!(switch.field("prev_pid").is_some() && switch.field("common_pid").is_some());
}

#[test]
fn events_read_raw_are_all_that_the_kernel_counted() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let names = [event("sched:sched_switch"), event("sched:sched_waking")];
    let formats = Formats::load(&tracefs, &names).expect("formats");
    let instance = Instance::create(&tracefs).expect("an instance");
    instance.set_buffer_size(4 << 20).expect("4 MiB");
    for name in &names {
        instance.enable(name).expect("the event exists");
    }
    instance.start().expect("it starts");
    make_events();
    instance.stop().expect("it stops");
    for cpu in instance.cpus().to_vec() {
        let before = instance.statistics(cpu).expect("statistics");
        let mut pipe = instance.open_pipe(cpu, &formats.layout).expect("a pipe");
        let mut bytes = vec![0; pipe.page_size_bytes()];
        let (mut events, mut last_ns) = (0u64, 0u64);
        while pipe.read_page(&mut bytes).expect("a read") {
            let page = Page::parse(&formats.layout, &bytes).expect("a sound page");
            assert_eq!(page.missed, None);
            for raw in page.events() {
                let raw = raw.expect("a sound record");
                assert!(raw.time_ns >= last_ns, "time of {cpu} went backwards");
                last_ns = raw.time_ns;
                let id = u16::from_le_bytes([raw.record[0], raw.record[1]]);
                assert!(formats.by_id(id).is_some());
                events += 1;
            }
        }
        let after = instance.statistics(cpu).expect("statistics");
        assert_eq!(
            (events, before.entries, after.read),
            (events, events, events),
            "{cpu}"
        );
        assert_eq!(after.lost(), 0);
    }
}

#[test]
fn a_trigger_stops_the_ring_and_a_bad_filter_is_explained() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let instance = Instance::create(&tracefs).expect("an instance");
    let waking = event("sched:sched_waking");
    let error = instance
        .set_filter(&waking, "nonsense == 3")
        .expect_err("no such field");
    assert!(format!("{error:#}").contains("nonsense"), "{error:#}");
    instance
        .set_filter(&waking, "prio < 100")
        .expect("a sound filter");
    instance
        .set_trigger(&waking, "traceoff if prio >= 0")
        .expect("a sound trigger");
    instance.start().expect("it starts");
    make_events();
    assert!(
        !instance.is_running().expect("a state"),
        "a wake-up stopped it"
    );
}

#[test]
fn a_dropped_instance_is_gone_and_a_dead_ones_is_found_and_removed() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let instance = Instance::create(&tracefs).expect("an instance");
    let path = tracefs.root().join("instances").join(instance.name());
    assert!(path.exists());
    assert!(instance.set_cpus(&[Cpu(9999)]).is_err());
    instance.set_cpus(&[Cpu(0)]).expect("CPU 0 exists");
    let mine = instance.name().to_owned();
    let listed = || Leftover::list(&tracefs).expect("a list");
    assert!(
        listed().iter().all(|left| left.name != mine),
        "a living owner's is no leftover"
    );
    drop(instance);
    assert!(!path.exists());

    let mut child = std::process::Command::new("true").spawn().expect("a child");
    let dead = child.id();
    child.wait().expect("it ends");
    let name = format!("rtscope-{dead}-0");
    std::fs::create_dir(tracefs.root().join("instances").join(&name)).expect("an instance");
    let found = listed()
        .into_iter()
        .find(|left| left.name == name)
        .expect("it is found");
    found.remove().expect("it is removed");
    assert!(listed().iter().all(|left| left.name != name));
}

#[test]
fn an_unknown_event_is_an_error_in_three_parts() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let instance = Instance::create(&tracefs).expect("an instance");
    let error = instance
        .enable(&event("sched:nonsense"))
        .expect_err("there is none");
    assert!(error.what().contains("sched:nonsense") && error.fixed_by().is_some());
    assert!(EventFormat::parse("sched", "nonsense").is_err());
}

/// The options of an instance, as words.
fn options(tracefs: &Tracefs, instance: &Instance) -> String {
    let path = tracefs.root().join("instances").join(instance.name());
    std::fs::read_to_string(path.join("trace_options")).expect("readable")
}

#[test]
fn the_kernels_table_of_names_is_left_alone_while_somebody_records() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    // What a killed run left behind may record still.
    for leftover in Leftover::list(&tracefs).expect("a list") {
        leftover.remove().expect("it is removed");
    }
    let first = Instance::create(&tracefs).expect("an instance");
    let without = options(&tracefs, &first).contains("norecord-cmd");
    first.enable(&event("sched:sched_switch")).expect("exists");
    let second = Instance::create(&tracefs).expect("an instance");
    assert!(
        !options(&tracefs, &second).contains("norecord-cmd"),
        "the first one records"
    );
    assert!(without, "nobody recorded; another tracer's leftovers?");
}

#[test]
fn an_instance_goes_although_somebody_looks_into_it_for_a_while() {
    let _lock = testkit::privileged();
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let instance = Instance::create(&tracefs).expect("an instance");
    let path = tracefs.root().join("instances").join(instance.name());
    let open = std::fs::File::open(path.join("events/enable")).expect("a file of it");
    let begin = std::time::Instant::now();
    let looks = std::thread::spawn(move || {
        // Longer than a busy machine lets a reader wait for its turn.
        while begin.elapsed() < std::time::Duration::from_millis(300) {
            std::thread::yield_now();
        }
        drop(open);
    });
    drop(instance);
    assert!(!path.exists());
    looks.join().expect("it ends");
}
