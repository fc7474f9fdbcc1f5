//! The watch beside the counting: `rtscope watch` in a process of its own, whose hits with their
//! ledgers come into the interval. So there is one engine, and a watch that ends takes no count of
//! months with it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration as Time, Instant};

use capture::capabilities;
use event::{Duration, Error, Result};
use monitor::Late;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::ClockId;

use super::clock::{now_ns, wall_ns};
use crate::options::{MonitorOptions, OverOptions};

/// Snapshots at most: for months, not for a person who waits. A new worst is held back by none.
const RATE: &str = "6/m";
/// So long a watch may take to write down what it has.
const END_MAX: Time = Time::from_secs(10);
/// Between two looks at whether it has ended.
const LOOK_EVERY: Time = Time::from_millis(20);

/// A watch that runs; it ends when this is dropped.
pub(super) struct Watching {
    child: Child,
    words: Vec<OsString>,
    reader: Option<JoinHandle<()>>,
    late: Receiver<Late>,
    /// What is said once of a watch that ended by itself.
    is_told: bool,
}

impl Watching {
    /// Starts the watch that `options` ask for; none when they ask for none.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(options: &MonitorOptions) -> Result<Option<Watching>> {
        let Some(over) = &options.over else {
            return Ok(None);
        };
        let failed = |cause| Error::io("cannot start the watch beside the monitor", cause);
        let words = words(options, over, has_snapshots());
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(&words).stdin(Stdio::null());
        // What the watch has to say goes where the monitor's own words go.
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let parent = rustix::process::getpid();
        let dies_with_us = move || {
            let signal = Some(Signal::TERM);
            rustix::process::set_parent_process_death_signal(signal)?;
            // Who died before that is heard of no more.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        };
        // SAFETY: system calls that touch no memory.
        unsafe { command.pre_exec(dies_with_us) };
        let mut child = command.spawn().map_err(failed)?;
        let (to, late) = channel();
        let stdout = child.stdout.take();
        let reader = stdout.map(|stdout| std::thread::spawn(move || read(stdout, &to)));
        Ok(Some(Watching {
            child,
            words,
            reader,
            late,
            is_told: false,
        }))
    }

    /// Whether it does what `options` ask for.
    pub fn is_of(&self, options: &MonitorOptions) -> bool {
        let over = options.over.as_ref();
        // Whether snapshots can be had does not change while it runs.
        let has_snapshots = !self.words.contains(&"--no-snapshot".into());
        over.is_some_and(|over| words(options, over, has_snapshots) == self.words)
    }

    /// What was late since the last call.
    pub fn take(&mut self) -> Vec<Late> {
        self.late.try_iter().collect()
    }

    /// Whether it ended by itself, which is said once.
    pub fn has_ended(&mut self) -> bool {
        let Ok(Some(status)) = self.child.try_wait() else {
            return false;
        };
        if !std::mem::replace(&mut self.is_told, true) {
            note!(
                "the watch beside the monitor has ended ({status}): counting goes on, and it \
                 begins anew with the next interval"
            );
        }
        true
    }

    /// The CPU time of its process so far.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        cpu_time(&stat.unwrap_or_default())
    }

    /// Ends it; what was late until then.
    pub fn finish(mut self) -> Vec<Late> {
        self.end();
        self.late.iter().collect()
    }

    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), pid) {
            kill_process(pid, Signal::TERM).ok();
        }
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begun.elapsed() > END_MAX {
                self.child.kill().ok();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.end();
    }
}

/// Its hits until it ends.
fn read(stdout: ChildStdout, to: &Sender<Late>) {
    for line in BufReader::new(stdout)
        .split(b'\n')
        .map_while(|line| line.ok())
    {
        let ahead_ns = wall_ns() - now_ns(ClockId::Monotonic);
        let line = serde_json::from_slice(&line).unwrap_or_default();
        if let Some(late) = Late::of_hit(&line, ahead_ns) {
            // Nobody asks any more once the monitor ends.
            let _ = to.send(late);
        }
    }
}

/// Whether hits can have snapshots here; says so where they cannot, as `watch` does.
fn has_snapshots() -> bool {
    let capabilities = capabilities::gather();
    let Some(lack) = capabilities.snapshot_lack() else {
        return true;
    };
    note!(
        "no snapshots of what takes longer than --over: {}\n  found: {}\n  fix:  {}",
        lack.what,
        lack.found,
        lack.fix
    );
    false
}

/// What is typed for the watch.
fn words(options: &MonitorOptions, over: &OverOptions, has_snapshots: bool) -> Vec<OsString> {
    let until = match options.until_return {
        true => "user-return",
        false => "switch-in",
    };
    let mut words: Vec<OsString> = ["watch", "--json", "--until", until, "--rate", RATE]
        .map(OsString::from)
        .into();
    let mut say = |flag: &str, word: OsString| {
        words.push(format!("--{flag}").into());
        words.push(word);
    };
    say("over", format!("{}ns", over.over.as_ns()).into());
    let has_named = !options.named.is_empty() || !options.groups.is_empty();
    if has_named && !options.all {
        say("task", "rt".into());
        for pattern in &options.named {
            say("task", pattern.to_string().into());
        }
        for asked in &options.groups {
            let (flag, name) = crate::options::group_flag(asked);
            say(flag, name.into());
        }
    }
    if has_snapshots {
        say("output", over.snapshots.clone().into());
        say("keep", over.keep.clone().into());
    }
    words.extend(has_snapshots.then(|| "--keep-earlier".into()));
    words.extend((!has_snapshots).then(|| "--no-snapshot".into()));
    words.extend(options.all.then(|| "--all".into()));
    words
}

/// User and system time in `/proc/PID/stat`, in its ticks of ten milliseconds.
fn cpu_time(stat: &str) -> Duration {
    // A name may hold anything, spaces and brackets too.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2);
    let ticks: i64 = ticks.filter_map(|word| word.parse::<i64>().ok()).sum();
    Duration::from_ms(ticks * 10)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags;
    use crate::options::{Target, WatchOptions};

    #[derive(Parser)]
    enum Line {
        Monitor(Box<flags::Monitor>),
        Watch(Box<flags::Watch>),
    }

    /// The watch of a monitor, as its own verb reads it.
    fn watch_of(line: &str, has_snapshots: bool) -> WatchOptions {
        let typed = ["rtscope", "monitor"]
            .into_iter()
            .chain(line.split_whitespace());
        let Ok(Line::Monitor(typed)) = Line::try_parse_from(typed) else {
            panic!("{line}");
        };
        let options = MonitorOptions::new(&typed).expect("valid");
        let over = options.over.clone().expect("a watch");
        let words = words(&options, &over, has_snapshots);
        let words = std::iter::once("rtscope".into()).chain(words);
        let Ok(Line::Watch(typed)) = Line::try_parse_from(words) else {
            panic!("{line}");
        };
        WatchOptions::new(&typed, &[event::Cpu(0)]).expect("valid")
    }

    #[test]
    fn the_watch_means_whom_the_monitor_counts_and_ends_where_its_longest_phase_does() {
        let plain = watch_of("--over 1500us --store /s", true);
        assert_eq!(plain.target, Target::RealTime);
        assert_eq!(plain.over, Some(Duration::from_us(1500)));
        assert_eq!(plain.until, flags::Until::SwitchIn);
        assert!(plain.json && !plain.new_worst);
        let snapshots = plain.snapshot.expect("snapshots");
        assert_eq!(snapshots.output, std::path::Path::new("/s-snapshots"));
        assert!(snapshots.keep_earlier && snapshots.keep.count == 20);
        let line = "--over 1ms --task x --task process:y* --unit u --cgroup /c --container d";
        let named = watch_of(&format!("{line} --return"), false);
        let words = ["rt", "x", "process:y*"];
        let expect = event::TaskPattern::parse_all(&words).expect("tasks");
        assert_eq!(named.target, Target::Tasks(expect));
        assert_eq!(
            (named.groups.len(), named.until),
            (3, flags::Until::UserReturn)
        );
        assert!(named.snapshot.is_none());
        let all = watch_of("--over 1ms --task x --all", true);
        let every = event::TaskPattern::parse_all(&["*"]).expect("tasks");
        assert_eq!(all.target, Target::Tasks(every));
    }

    #[test]
    fn cpu_time_is_read_behind_whatever_name_a_process_has() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 9";
        assert_eq!(cpu_time(stat), Duration::from_ms(1750));
        assert_eq!(cpu_time(""), Duration::ZERO);
    }
}
