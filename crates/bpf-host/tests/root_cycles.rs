//! Check on the running kernel that sleeps between two releases by a task's own timer are told
//! where they may be inside its work, and that the wait for the next thing to do is none of them.

mod scene;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration as Time;

use abi::SleepsInside;
use bpf_host::{Targets, Watch, WatchConfig};
use event::evidence::EndKind;
use event::{Duration, TaskPattern};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use scene::{ASIDE, STAGE, become_task};

const CYCLES: usize = 18;
const PERIOD: Time = Time::from_millis(6);
/// What a slow answer takes: the cycle is late by itself.
const SLOW: Time = Time::from_millis(4);
const THRESHOLD: Duration = Duration::from_ms(3);

/// Answers each byte after a while, until nobody asks any more.
fn server(mut socket: UnixStream) {
    become_task("scene-server", ASIDE, 10);
    let mut asked = [0];
    while socket.read_exact(&mut asked).is_ok() {
        std::thread::sleep(if asked[0] == 0 { Time::ZERO } else { SLOW });
        if socket.write_all(&asked).is_err() {
            return;
        }
    }
}

/// Writes bytes for which nobody asks, each in the middle of a cycle of the other's or elsewhere.
fn newsman(mut socket: UnixStream) {
    become_task("scene-news", ASIDE, 10);
    while socket.write_all(&[0]).is_ok() {
        std::thread::sleep(SLOW);
    }
}

/// A target and the other end of its socket.
fn scene_with(
    other: impl FnOnce(UnixStream) + Send,
    name: &str,
    fifo: i32,
    body: impl FnOnce(UnixStream) + Send,
) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| other(theirs));
        scope.spawn(|| {
            become_task(name, STAGE, fifo);
            body(ours);
        });
    });
}

/// A target that asks a server.
fn scene(name: &str, fifo: i32, body: impl FnOnce(UnixStream) + Send) {
    scene_with(server, name, fifo, body);
}

/// Every sixth answer is slow.
fn ask(socket: &mut UnixStream, cycle: usize) {
    let is_slow = cycle % 6 == 5;
    socket.write_all(&[u8::from(is_slow)]).expect("asked");
}

fn answered(socket: &mut UnixStream) {
    socket.read_exact(&mut [0]).expect("an answer");
}

/// A timer begins each cycle, in which it sleeps for the answer.
fn waits_inside(mut socket: UnixStream) {
    let mut due_ns = scene::monotonic_ns();
    for cycle in 0..CYCLES {
        due_ns += PERIOD.as_nanos() as i64;
        scene::sleep_until(due_ns);
        ask(&mut socket, cycle);
        answered(&mut socket);
    }
}

/// The same with a timer that is a file.
fn waits_inside_a_timers_turn(mut socket: UnixStream) {
    let timer = steady_timer();
    for cycle in 0..CYCLES {
        rustix::io::read(&timer, &mut [0; 8]).expect("read");
        ask(&mut socket, cycle);
        answered(&mut socket);
    }
}

fn steady_timer() -> OwnedFd {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty());
    let timer = timer.expect("a timer");
    let period = Timespec {
        tv_sec: 0,
        tv_nsec: PERIOD.as_nanos() as i64,
    };
    let steady = Itimerspec {
        it_interval: period,
        it_value: period,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &steady).expect("set");
    timer
}

/// Waits for either, and says which have something.
fn next_events(timer: &OwnedFd, socket: &UnixStream) -> [bool; 2] {
    let mut fds = [
        PollFd::new(timer, PollFlags::IN),
        PollFd::new(socket, PollFlags::IN),
    ];
    poll(&mut fds, None).expect("polled");
    fds.map(|fd| fd.revents().contains(PollFlags::IN))
}

/// One loop for a timer, for answers, and for what comes by itself.
fn loops(mut socket: UnixStream, asks: bool) {
    let timer = steady_timer();
    let mut cycle = 0;
    while cycle < CYCLES {
        let has = next_events(&timer, &socket);
        if has[0] {
            rustix::io::read(&timer, &mut [0; 8]).expect("read");
            if asks {
                ask(&mut socket, cycle);
            }
            cycle += 1;
        }
        if has[1] {
            answered(&mut socket);
        }
    }
}

/// With a time-out: it chose itself how long it waits, but not for how long the answer takes.
fn waits_with_a_limit(mut socket: UnixStream) {
    let mut due_ns = scene::monotonic_ns();
    for cycle in 0..CYCLES {
        due_ns += PERIOD.as_nanos() as i64;
        scene::sleep_until(due_ns);
        ask(&mut socket, cycle);
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        poll(&mut fds, Some(&second)).expect("polled");
        answered(&mut socket);
    }
}

const PAUSE: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: SLOW.as_nanos() as i64,
};

/// Another call than that of its periods.
fn nap() {
    // SAFETY: reads one initialised struct.
    unsafe { libc::nanosleep(&PAUSE, std::ptr::null_mut()) };
}

/// Tries for a lock again and again that another one has for that long.
fn tries() {
    const TRIES: u32 = 20;
    for _ in 0..TRIES {
        // SAFETY: takes an integer.
        unsafe { libc::usleep(SLOW.as_micros() as u32 / TRIES) };
    }
}

/// Waits for somebody who does not come.
fn gives_up() {
    let word = 0u32;
    // SAFETY: reads the word and one initialised struct, which both live as long as the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            &raw const word,
            libc::FUTEX_WAIT,
            0,
            &PAUSE,
        )
    };
}

/// Waits for its own alarm.
fn alarm() {
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: all zero is a valid event.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = libc::SIGUSR2;
    event.sigev_notify_thread_id = scene::tid();
    let once = libc::itimerspec {
        it_interval: libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: PAUSE,
    };
    // SAFETY: all structs are initialised, and live for as long as the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        libc::timer_settime(timer, 0, &raw const once, std::ptr::null_mut());
        libc::sigwaitinfo(&raw const set, std::ptr::null_mut());
        libc::timer_delete(timer);
    }
}

/// Where it is to be paced by a device, say: now and then it sleeps in the middle of its work.
fn naps(is_moment: bool, cycles: usize, sleep: fn()) {
    let mut due_ns = scene::monotonic_ns();
    for cycle in 0..cycles {
        due_ns = scene::monotonic_ns().max(due_ns + PERIOD.as_nanos() as i64);
        match is_moment {
            true => scene::sleep_until(due_ns),
            false => std::thread::sleep(PERIOD),
        }
        if cycle % 6 == 5 {
            sleep();
        }
    }
}

/// Until something is there it tries again, by the call of its periods; or a cycle later it goes on
/// with another pace, or one phase later.
fn tries_until(mut due_ns: i64, then: Then) {
    let period_ns = PERIOD.as_nanos() as i64;
    for cycle in 0..3 * CYCLES {
        due_ns += match then {
            Then::Drifts if cycle >= CYCLES => {
                scene::spin(SLOW / 7 * (cycle % 5) as u32);
                scene::monotonic_ns() - due_ns + period_ns
            }
            Then::Paces if cycle >= CYCLES => period_ns / 2,
            Then::Shifts if cycle == CYCLES => period_ns * 3 / 2,
            _ => period_ns,
        };
        scene::sleep_until(due_ns);
        let tries = if then == Then::Tries && cycle % 12 == 11 {
            4
        } else {
            0
        };
        for _ in 0..tries {
            scene::sleep_until(scene::monotonic_ns() + SLOW.as_nanos() as i64);
        }
    }
}

/// What a target does that sleeps until moments on a grid.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Tries,
    Paces,
    Shifts,
    /// It counts its next period from when it is done, and each of its works takes another time.
    Drifts,
}

/// A sleep at its start, and then one call for all of its periods.
fn begins_with_a_nap() {
    // SAFETY: takes an integer.
    unsafe { libc::usleep(1) };
    naps(true, CYCLES / 3, nap);
}

/// Nobody's timer.
fn serves(mut socket: UnixStream) {
    for cycle in 0..CYCLES {
        ask(&mut socket, cycle);
        answered(&mut socket);
    }
}

/// Where others give it its work, it sleeps now and then in the middle of that, and never steadily.
fn serves_and_naps(mut socket: UnixStream) {
    const TURN: usize = 41;
    const NAPS: [usize; 7] = [2, 5, 13, 15, 24, 31, 40];
    for request in 0..2 * TURN {
        answered(&mut socket);
        if NAPS.contains(&(request % TURN)) {
            nap();
        }
    }
}

/// Waits for its next work at two places in turn.
fn serves_at_two_places(mut socket: UnixStream) {
    for _ in 0..2 * CYCLES {
        answered(&mut socket);
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        poll(&mut fds, None).expect("polled");
        answered(&mut socket);
    }
}

/// Asks others three times in each period of its own.
fn asks_often(mut socket: UnixStream) {
    for _ in 0..CYCLES {
        std::thread::sleep(PERIOD);
        for _ in 0..3 {
            ask(&mut socket, 0);
            answered(&mut socket);
        }
    }
}

/// Writes bytes for a server, until nobody reads any more.
fn client(mut socket: UnixStream) {
    become_task("scene-client", ASIDE, 10);
    while socket.write_all(&[0]).is_ok() {
        std::thread::sleep(SLOW);
    }
}

/// A length of time that is slept as Python does it: to the moment at which that is over.
fn nap_to_a_moment() {
    scene::sleep_until(scene::monotonic_ns() + SLOW.as_nanos() as i64);
}

/// An event loop with timers of its own, at `lengths` of time in turn; in some of its turns it
/// sleeps in the middle of the work.
fn loops_and_naps(socket: &UnixStream, lengths: &[Time]) {
    for turn in 0..3 * CYCLES {
        let length = Timespec {
            tv_sec: 0,
            tv_nsec: lengths[turn % lengths.len()].as_nanos() as i64,
        };
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        poll(&mut fds, Some(&length)).expect("polled");
        if turn % 11 == 10 {
            nap_to_a_moment();
        }
    }
}

/// Whether the world goes on.
static GOES_ON: AtomicU32 = AtomicU32::new(1);

/// A signal's handler that waits until the collector is through.
extern "C" fn halt(_: libc::c_int) {
    while GOES_ON.load(Ordering::Acquire) == 0 {
        // SAFETY: the word is static.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                GOES_ON.as_ptr(),
                libc::FUTEX_WAIT,
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
    }
}

/// Stops a periodic thread by a signal, as a collector of garbage does, in most of `periods` while
/// it sleeps, and for longer than one.
fn is_stopped_by_a_collector(periods: usize) {
    let (tell, victim) = std::sync::mpsc::channel();
    let collector = std::thread::spawn(move || {
        let victim = victim.recv().expect("a victim");
        for _ in 0..periods / 6 {
            std::thread::sleep(5 * PERIOD);
            GOES_ON.store(0, Ordering::Release);
            // SAFETY: the thread lives for longer than this one, and has a handler.
            unsafe { libc::pthread_kill(victim, libc::SIGUSR1) };
            std::thread::sleep(2 * PERIOD);
            GOES_ON.store(1, Ordering::Release);
            // SAFETY: the word is static.
            unsafe { libc::syscall(libc::SYS_futex, GOES_ON.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    });
    // SAFETY: the handler lives for ever; it makes one system call.
    unsafe { libc::signal(libc::SIGUSR1, halt as *const () as libc::sighandler_t) };
    // SAFETY: takes nothing.
    tell.send(unsafe { libc::pthread_self() }).expect("told");
    let mut due_ns = scene::monotonic_ns();
    while !collector.is_finished() {
        due_ns = scene::monotonic_ns().max(due_ns + PERIOD.as_nanos() as i64);
        while scene::monotonic_ns() < due_ns {
            scene::sleep_until(due_ns);
        }
        // Asked for once more, as by a loop that does not look at the clock.
        scene::sleep_until(due_ns);
    }
    collector.join().expect("it ends");
}

/// Its timer is a file, and others wake it at the same place; then it waits elsewhere until they
/// have answered, for longer than the timer's period.
fn is_kept_from_its_timer(mut socket: UnixStream, mut other: UnixStream) {
    let timer = steady_timer();
    for _ in 0..4 * CYCLES {
        let has = next_events(&timer, &other);
        if has[0] {
            rustix::io::read(&timer, &mut [0; 8]).expect("read");
        }
        if has[1] {
            other.read_exact(&mut [0]).expect("read");
            answered(&mut socket);
        }
    }
}

/// One loop for a steady timer and for a client, who is answered, and asks again after a while of
/// its own. Some of the answers take a nap. The longest turn, by the loop's own clock.
fn answers_beside_its_timer(mut socket: UnixStream) -> Duration {
    let timer = steady_timer();
    let mut longest = 0;
    for turn in 0..6 * CYCLES {
        let has = next_events(&timer, &socket);
        let begin_ns = scene::monotonic_ns();
        if has[1] {
            answered(&mut socket);
            if turn % 9 == 8 {
                std::thread::sleep(2 * PERIOD);
            }
            socket.write_all(&[0]).expect("an answer");
        }
        if has[0] {
            rustix::io::read(&timer, &mut [0; 8]).expect("read");
        }
        longest = longest.max(scene::monotonic_ns() - begin_ns);
    }
    Duration::from_ns(longest)
}

/// Asks, and waits for the answer; then it sleeps.
fn asks_and_sleeps(mut socket: UnixStream) {
    become_task("scene-client", ASIDE, 10);
    while socket.write_all(&[0]).is_ok() && socket.read_exact(&mut [0]).is_ok() {
        std::thread::sleep(SLOW);
    }
}

/// Asks one thread once, which never sleeps, and wakes it in each cycle. The longest cycle, by the
/// victim's own clock.
fn is_woken_by_one_that_runs_on() -> Duration {
    // No values of a lock's.
    const ASKED: u32 = 11;
    const AT_IT: u32 = 12;
    const DONE: u32 = 13;
    let (word, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let longest = AtomicI64::new(0);
    let futex = |operation: libc::c_int, value: u32| {
        // SAFETY: the word lives as long as the scope below.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                operation,
                value,
                std::ptr::null::<libc::timespec>(),
            )
        };
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_task("scene-runs-on", ASIDE, 5);
            futex(libc::FUTEX_WAIT, 0);
            while !over.load(Ordering::Acquire) {
                if word
                    .compare_exchange(ASKED, AT_IT, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
                {
                    scene::spin(SLOW);
                    word.store(DONE, Ordering::Release);
                    futex(libc::FUTEX_WAKE, 1);
                }
            }
        });
        scope.spawn(|| {
            become_task("scene-vic-once", STAGE, 10);
            let mut due_ns = scene::monotonic_ns();
            for _ in 0..CYCLES {
                due_ns += PERIOD.as_nanos() as i64;
                scene::sleep_until(due_ns);
                word.store(ASKED, Ordering::Release);
                futex(libc::FUTEX_WAKE, 1);
                while word.load(Ordering::Acquire) != DONE {
                    futex(libc::FUTEX_WAIT, ASKED);
                    futex(libc::FUTEX_WAIT, AT_IT);
                }
                longest.fetch_max(scene::monotonic_ns() - due_ns, Ordering::Relaxed);
            }
            over.store(true, Ordering::Release);
        });
    });
    Duration::from_ns(longest.into_inner())
}

/// Counts its next period from when it is done; every other answer is slow, and each differently.
fn is_often_late(mut socket: UnixStream) {
    for cycle in 0..2 * CYCLES {
        scene::sleep_until(scene::monotonic_ns() + PERIOD.as_nanos() as i64);
        if cycle % 2 == 1 && cycle > CYCLES / 2 {
            for _ in 0..=cycle % 5 {
                socket.write_all(&[1]).expect("asked");
                answered(&mut socket);
            }
        }
    }
}

/// All victims, to the end of their work.
fn of_victims() -> WatchConfig {
    WatchConfig {
        targets: Targets::Tasks(vec![TaskPattern::parse("scene-vic*").expect("a name")]),
        threshold: THRESHOLD,
        rate_limit_interval: Duration::ZERO,
        end: EndKind::Blocked,
        ..WatchConfig::default()
    }
}

#[test]
fn sleeps_inside_of_what_others_ask_for_are_told() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("work that others give") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    scene_with(client, "scene-vic-naps", 10, serves_and_naps);
    scene_with(client, "scene-vic-two", 10, serves_at_two_places);
    scene("scene-vic-often", 10, asks_often);
    watch.check_open().expect("looked");
    let found = watch.sleeps_inside().expect("read");
    let of_others = found.iter().filter(|one| one.by_others);
    let of_others: Vec<_> = of_others.collect();
    let names: Vec<_> = of_others.iter().map(|one| one.task.comm.as_str()).collect();
    assert_eq!(names, ["scene-vic-naps"], "{found:#?}");
    let slow = Duration::from_ns(SLOW.as_nanos() as i64);
    let naps = of_others[0];
    // Of 14; until its home is sure nobody knows, and what came meanwhile needs no sleep at home.
    assert!(naps.over >= 5, "{naps:?}");
    assert!(naps.worst.duration() >= slow, "{naps:?}");
}

#[test]
fn sleeps_inside_a_timers_cycles_are_told_with_the_longest_and_waits_for_work_are_not() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("cycles of a timer") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    scene("scene-vic-fifo", 10, waits_inside);
    scene("scene-vic-file", 10, waits_inside_a_timers_turn);
    scene("scene-vic-loop", 10, |socket| loops(socket, true));
    scene_with(newsman, "scene-vic-news", 10, |socket| loops(socket, false));
    scene("scene-vic-limit", 10, waits_with_a_limit);
    scene("scene-vic-serve", 10, serves);
    scene("scene-vic-nap", 10, |_| naps(true, CYCLES, nap));
    scene("scene-vic-ends", 10, |_| naps(true, CYCLES, gives_up));
    scene("scene-vic-alarm", 10, |_| naps(true, CYCLES, alarm));
    scene("scene-vic-tries", 10, |_| naps(true, CYCLES, tries));
    scene("scene-vic-begin", 10, |_| begins_with_a_nap());
    watch.check_open().expect("looked");
    let found = watch.sleeps_inside().expect("read");
    let mut names: Vec<_> = found.iter().map(|one| one.task.comm.as_str()).collect();
    names.sort_unstable();
    let wait = [
        "alarm", "ends", "fifo", "file", "limit", "loop", "nap", "tries",
    ]
    .map(|kind| format!("scene-vic-{kind}"));
    assert_eq!(names, wait, "{found:#?}");
    let slow = Duration::from_ns(SLOW.as_nanos() as i64);
    for victim in &found {
        // The last one has no release behind it; on a busy machine others are late, too.
        assert!(victim.over >= (CYCLES / 6) as u64 - 1, "{victim:?}");
        assert!(victim.sleeps >= victim.over, "{victim:?}");
        assert!(victim.worst.duration() >= slow, "{victim:?}");
    }
}

/// What the watch says of one victim's sleeps, which are all of one kind.
fn only_one(found: &[SleepsInside], name: &str) -> SleepsInside {
    let those: Vec<_> = found.iter().filter(|one| one.task.comm == name).collect();
    assert_eq!(those.len(), 1, "{name}: {found:#?}");
    those[0].clone()
}

#[test]
fn sleeps_beside_an_exact_grid_are_inside_and_those_of_another_pace_or_phase_are_not() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("grids of releases") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    for (name, then) in [
        ("scene-vic-again", Then::Tries),
        ("scene-vic-pace", Then::Paces),
        ("scene-vic-phase", Then::Shifts),
        ("scene-vic-drift", Then::Drifts),
    ] {
        scene_with(drop, name, 10, |_| tries_until(scene::monotonic_ns(), then));
    }
    watch.check_open().expect("looked");
    let found = only_one(&watch.sleeps_inside().expect("read"), "scene-vic-again");
    let tried = Duration::from_ns(4 * SLOW.as_nanos() as i64);
    // Behind such a cycle releases passed, with one sleep each.
    let is_tried = found.over >= 3 && found.sleeps >= 2 * found.cycles;
    assert!(is_tried, "{found:?}");
    assert!(found.worst.duration() >= tried, "{found:?}");
    let all = watch.sleeps_inside().expect("read");
    assert_eq!(all.len(), 1, "{all:#?}");
}

#[test]
fn an_event_loop_that_sleeps_to_a_moment_in_its_work_is_told_however_steady_it_is() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("event loops") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    let check = |name: &'static str, lengths: &'static [u64]| {
        let lengths = lengths.iter().map(|ms| Time::from_millis(*ms));
        let lengths: Vec<_> = lengths.collect();
        scene_with(drop, name, 10, |socket| {
            let (kept, _other) = UnixStream::pair().expect("sockets");
            drop(socket);
            loops_and_naps(&kept, &lengths);
        });
        let found = only_one(&watch.sleeps_inside().expect("read"), name);
        assert!(found.over >= 3, "{found:?}");
        assert!(
            found.worst.duration() >= Duration::from_ns(SLOW.as_nanos() as i64),
            "{found:?}"
        );
    };
    check("scene-vic-turns", &[2]);
    check("scene-vic-any", &[1, 5, 2, 9, 3, 1, 7]);
}

#[test]
fn a_release_that_passes_while_its_task_sleeps_for_something_else_is_told() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("releases that pass") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    std::thread::spawn(|| {
        become_task("scene-vic-halts", STAGE, 10);
        is_stopped_by_a_collector(4 * CYCLES);
    })
    .join()
    .expect("it ends");
    scene_with(
        |_| {},
        "scene-vic-kept",
        10,
        |_| {
            let (ours, mut theirs) = UnixStream::pair().expect("sockets");
            let (other, mut others) = UnixStream::pair().expect("sockets");
            let newsman = std::thread::spawn(move || {
                become_task("scene-news", ASIDE, 10);
                loop {
                    std::thread::sleep(5 * PERIOD);
                    if others.write_all(&[0]).is_err() {
                        return;
                    }
                    std::thread::sleep(2 * PERIOD);
                    if theirs.write_all(&[0]).is_err() {
                        return;
                    }
                }
            });
            is_kept_from_its_timer(ours, other);
            newsman.join().expect("it ends");
        },
    );
    let found = watch.sleeps_inside().expect("read");
    // Who gives the second one its work sees it sleep elsewhere, too.
    let of_timers = found.into_iter().filter(|one| !one.by_others);
    let of_timers: Vec<_> = of_timers.collect();
    for name in ["scene-vic-halts", "scene-vic-kept"] {
        let victim = only_one(&of_timers, name);
        assert!(victim.over >= 4, "{victim:?}");
    }
}

#[test]
fn cycles_of_a_timer_are_as_long_as_they_were_and_late_ones_do_not_hide_that_it_is_steady() {
    let _privileged = testkit::privileged();
    if !testkit::two_cpus("lengths of cycles") {
        return;
    }
    let (watch, _ring) = Watch::start(&of_victims()).expect("a watch");
    let longest = is_woken_by_one_that_runs_on();
    scene("scene-vic-often", 10, is_often_late);
    let found = watch.sleeps_inside().expect("read");
    let once = only_one(&found, "scene-vic-once");
    // Not since it asked for the first time: those are eighteen periods.
    let longest = longest + Duration::from_ns(PERIOD.as_nanos() as i64);
    assert!(
        once.over >= 4 && once.worst.duration() < longest,
        "{longest} {once:?}"
    );
    let often = only_one(&found, "scene-vic-often");
    assert!(often.over >= 8, "{often:?}");
    // Who was answered, and asks for the next thing, prolongs nothing.
    let mut longest = Duration::ZERO;
    scene_with(asks_and_sleeps, "scene-vic-side", 10, |socket| {
        longest = answers_beside_its_timer(socket);
    });
    let found = watch.sleeps_inside().expect("read");
    let beside = found.iter().filter(|one| one.task.comm == "scene-vic-side");
    let worst = beside.map(|one| one.worst.duration()).max();
    let longest = longest + Duration::from_ns(PERIOD.as_nanos() as i64);
    assert!(
        worst.is_some_and(|worst| worst < longest),
        "{longest} {found:#?}"
    );
}
