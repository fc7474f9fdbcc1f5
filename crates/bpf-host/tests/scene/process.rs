//! A periodic victim in a process of its own, and what can stop it.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// A process that a timer wakes every 2 ms, until it is dropped.
pub struct Process {
    pub pid: i32,
    waited: Cell<bool>,
}

impl Process {
    pub fn start(name: &str, cpu: usize) -> Process {
        Process::sleeping(name, cpu, Duration::from_millis(2), false)
    }

    /// It sleeps for `pause` at a time, or until an instant so much later.
    pub fn sleeping(name: &str, cpu: usize, pause: Duration, absolute: bool) -> Process {
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
                let pause_ns = pause.as_nanos() as i64;
                let mut until: libc::timespec = std::mem::zeroed();
                let (clock, null) = (libc::CLOCK_MONOTONIC, std::ptr::null_mut());
                loop {
                    let flags = if absolute { libc::TIMER_ABSTIME } else { 0 };
                    if absolute {
                        libc::clock_gettime(clock, &raw mut until);
                    }
                    let ns = until.tv_nsec * i64::from(absolute) + pause_ns;
                    until.tv_sec = until.tv_sec * i64::from(absolute) + ns / 1_000_000_000;
                    until.tv_nsec = ns % 1_000_000_000;
                    libc::clock_nanosleep(clock, flags, &raw const until, null);
                }
            }
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

/// A control group with a freezer; removed when dropped, when it is empty.
pub struct Freezer(PathBuf);

impl Freezer {
    /// None where the machine has no such groups.
    pub fn with_own_group() -> Option<Freezer> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mounted = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (folder, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(folder))
        })?;
        let group = mounted.join(format!("rtscope-test-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        let freezer = Freezer(group);
        freezer.0.join("cgroup.freeze").exists().then_some(freezer)
    }

    pub fn take(&self, process: &Process) {
        self.write("cgroup.procs", &process.pid.to_string());
    }

    pub fn freeze_for(&self, pause: Duration) {
        self.write("cgroup.freeze", "1");
        let events = self.0.join("cgroup.events");
        while !std::fs::read_to_string(&events)
            .unwrap()
            .contains("frozen 1")
        {
            std::thread::yield_now();
        }
        std::thread::sleep(pause);
        self.write("cgroup.freeze", "0");
        std::thread::sleep(Duration::from_millis(5));
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // The victim is gone by then; a zombie may keep the folder for a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
