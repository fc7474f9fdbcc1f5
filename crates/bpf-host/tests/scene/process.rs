//! A periodic victim in a process of its own, and what can stop it.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// A process that a timer wakes every 2 ms, until it is dropped.
pub struct Process {
    pub pid: i32,
    waited: Cell<bool>,
}

/// What a process sleeps in.
#[derive(Clone, Copy, Debug)]
pub enum Sleep {
    Relative,
    Absolute,
    /// A time-out of a word that nobody changes.
    Futex,
    /// The same of no descriptors.
    Poll,
    /// An interval of a timer that is read as a file, of which each process has one.
    TimerFile,
}

impl Sleep {
    /// Sleeps for `pause_ns`; calls only what a signal handler may.
    pub fn run(self, pause_ns: i64) {
        let word = 0u32;
        let mut until = libc::timespec {
            tv_sec: pause_ns / 1_000_000_000,
            tv_nsec: pause_ns % 1_000_000_000,
        };
        let (clock, null) = (libc::CLOCK_MONOTONIC, std::ptr::null_mut());
        // SAFETY: system calls on memory of our own.
        unsafe {
            match self {
                Sleep::Relative => {
                    libc::clock_nanosleep(clock, 0, &raw const until, null);
                }
                Sleep::Absolute => {
                    libc::clock_gettime(clock, &raw mut until);
                    let ns = until.tv_nsec + pause_ns;
                    until.tv_sec += ns / 1_000_000_000;
                    until.tv_nsec = ns % 1_000_000_000;
                    libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &raw const until, null);
                }
                Sleep::Futex => {
                    let wait = libc::FUTEX_WAIT;
                    let (word, until) = (&raw const word, &raw const until);
                    libc::syscall(libc::SYS_futex, word, wait, 0, until);
                }
                Sleep::TimerFile => {
                    static FILE: AtomicI32 = AtomicI32::new(-1);
                    if FILE.load(Ordering::Relaxed) < 0 {
                        let each = libc::itimerspec {
                            it_interval: until,
                            it_value: until,
                        };
                        let file = libc::timerfd_create(clock, 0);
                        libc::timerfd_settime(file, 0, &raw const each, std::ptr::null_mut());
                        FILE.store(file, Ordering::Relaxed);
                    }
                    let mut expiries = 0u64;
                    let to = (&raw mut expiries).cast();
                    libc::read(FILE.load(Ordering::Relaxed), to, size_of::<u64>());
                }
                Sleep::Poll => {
                    libc::poll(std::ptr::null_mut(), 0, (pause_ns / 1_000_000) as i32);
                }
            }
        }
    }
}

impl Process {
    pub fn start(name: &str, cpu: usize) -> Process {
        Process::sleeping(name, cpu, Duration::from_millis(2), Sleep::Relative)
    }

    /// It sleeps for `pause` at a time.
    pub fn sleeping(name: &str, cpu: usize, pause: Duration, sleep: Sleep) -> Process {
        Process::doing(name, cpu, || {
            loop {
                sleep.run(pause.as_nanos() as i64);
            }
        })
    }

    /// It sleeps for `pause` and works for `work`, again and again.
    pub fn working(
        name: &str,
        cpu: usize,
        (pause, work): (Duration, Duration),
        sleep: Sleep,
    ) -> Process {
        Process::doing(name, cpu, || {
            loop {
                sleep.run(pause.as_nanos() as i64);
                super::spin(work);
            }
        })
    }

    /// It works for `work` in each `period`, so often, and ends; it catches up with what it missed.
    pub fn periodic(
        name: &str,
        cpu: usize,
        (period, work): (Duration, Duration),
        times: u32,
    ) -> Process {
        Process::doing(name, cpu, || {
            let mut due_ns = super::monotonic_ns();
            for _ in 0..times {
                due_ns += period.as_nanos() as i64;
                super::sleep_until(due_ns);
                super::spin(work);
            }
        })
    }

    /// It does what calls only what a signal handler may, and ends.
    fn doing(name: &str, cpu: usize, does: impl Fn()) -> Process {
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: the child of a process of several threads calls only what a signal handler may.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork");
        if pid == 0 {
            // SAFETY: system calls on memory of our own.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
                let param = libc::sched_param { sched_priority: 10 };
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param);
            }
            does();
            // SAFETY: it ends the process.
            unsafe { libc::_exit(0) };
        }
        let process = Process {
            pid,
            waited: Cell::new(false),
        };
        let comm = format!("/proc/{pid}/comm");
        let named = || std::fs::read(&comm).is_ok_and(|read| read.starts_with(name.as_bytes()));
        while !named() {
            std::thread::yield_now();
        }
        process
    }

    /// From now on it takes turns with others.
    pub fn become_fair(&self) {
        let param = libc::sched_param { sched_priority: 0 };
        // SAFETY: the calls read one structure that lives for them.
        unsafe {
            // It has its name before it has its policy.
            while libc::sched_getscheduler(self.pid) != libc::SCHED_FIFO {
                std::thread::yield_now();
            }
            let set = libc::sched_setscheduler(self.pid, libc::SCHED_OTHER, &raw const param);
            assert_eq!(set, 0);
        }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a call without pointers.
        assert_eq!(unsafe { libc::kill(self.pid, signal) }, 0);
    }

    pub fn stop_for(&self, pause: Duration) {
        self.stop_around(|| std::thread::sleep(pause));
    }

    pub fn stop_around(&self, meanwhile: impl FnOnce()) {
        self.signal(libc::SIGSTOP);
        self.until_changed(libc::WUNTRACED);
        meanwhile();
        self.signal(libc::SIGCONT);
        self.until_changed(libc::WCONTINUED);
    }

    /// Returns when a sleep of it begins.
    pub fn until_asleep(&self) {
        let asleep = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
            stat.is_ok_and(|stat| stat.contains(") S "))
        };
        // Of a sleep that nobody saw begin, the end may be near.
        while asleep() {
            std::thread::yield_now();
        }
        while !asleep() {
            std::thread::yield_now();
        }
    }

    pub fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Returns when it is gone.
    pub fn wait(&self) {
        if !self.waited.replace(true) {
            self.until_changed(0);
        }
    }

    fn until_changed(&self, options: i32) {
        let mut status = 0;
        // SAFETY: the call writes one integer that lives for it.
        let found = unsafe { libc::waitpid(self.pid, &raw mut status, options | libc::__WALL) };
        assert_eq!(found, self.pid);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.waited.get() {
            self.kill();
            self.wait();
        }
    }
}

/// A process that we trace; let go when dropped.
pub struct Traced<'a>(&'a Process);

impl<'a> Traced<'a> {
    pub fn seize(process: &'a Process) -> Self {
        let traced = Traced(process);
        traced.request(libc::PTRACE_SEIZE);
        traced
    }

    pub fn stop_for(&self, pause: Duration) {
        self.request(libc::PTRACE_INTERRUPT);
        self.0.until_changed(0);
        std::thread::sleep(pause);
        self.request(libc::PTRACE_DETACH);
        std::thread::sleep(Duration::from_millis(5));
    }

    fn request(&self, request: libc::c_uint) {
        // SAFETY: none of these requests takes a pointer.
        assert_eq!(unsafe { libc::ptrace(request, self.0.pid, 0, 0) }, 0);
    }
}

/// A control group with a freezer, of either version; removed when dropped, when it is empty.
pub struct Freezer {
    group: PathBuf,
    pub is_unified: bool,
}

impl Freezer {
    /// None where the machine has no such groups.
    pub fn with_own_group() -> Option<Freezer> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mounted = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
            let first_version = kind == "cgroup" && options.split(',').any(|one| one == "freezer");
            let is_unified = kind == "cgroup2";
            (is_unified || first_version).then(|| (PathBuf::from(folder), is_unified))
        })?;
        let group = mounted
            .0
            .join(format!("rtscope-test-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        let freezer = Freezer {
            group,
            is_unified: mounted.1,
        };
        let state = freezer.group.join(freezer.words().0);
        state.exists().then_some(freezer)
    }

    /// The file that freezes, what it takes to, and to end it; where to read that all is frozen.
    fn words(&self) -> (&str, &str, &str, (&str, &str)) {
        if self.is_unified {
            ("cgroup.freeze", "1", "0", ("cgroup.events", "frozen 1"))
        } else {
            let state = "freezer.state";
            (state, "FROZEN", "THAWED", (state, "FROZEN"))
        }
    }

    pub fn take(&self, process: &Process) {
        self.write("cgroup.procs", &process.pid.to_string());
    }

    pub fn freeze_for(&self, pause: Duration) {
        let (file, frozen, thawed, (events, done)) = self.words();
        self.write(file, frozen);
        let events = self.group.join(events);
        while !std::fs::read_to_string(&events).unwrap().contains(done) {
            std::thread::yield_now();
        }
        std::thread::sleep(pause);
        self.write(file, thawed);
        std::thread::sleep(Duration::from_millis(5));
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.group.join(file), text).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // The victim is gone by then; a zombie may keep the folder for a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
