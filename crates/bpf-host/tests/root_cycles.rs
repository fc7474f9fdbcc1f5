//! Check on the running kernel that sleeps between two releases by a task's own timer are told
//! where they may be inside its work, and that the wait for the next thing to do is none of them.

mod scene;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration as Time;

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

/// One loop for a timer, for answers, and for what comes by itself.
fn loops(mut socket: UnixStream, asks: bool) {
    let timer = steady_timer();
    let mut cycle = 0;
    while cycle < CYCLES {
        let mut fds = [
            PollFd::new(&timer, PollFlags::IN),
            PollFd::new(&socket, PollFlags::IN),
        ];
        poll(&mut fds, None).expect("polled");
        let has = fds
            .each_ref()
            .map(|fd| fd.revents().contains(PollFlags::IN));
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
