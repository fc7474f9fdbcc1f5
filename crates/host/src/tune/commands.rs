//! Commands that change the machine, as advice gives them and people type them: what each changes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};

use super::task::{Policy, TaskId};
use super::words::{between, words};
use super::{Change, groups};
use crate::change::chosen;

/// The commands that are understood, for people.
const KNOWN: &str = "tune understands taskset -p, chrt -p, renice, echo into /proc/sys, \
                     /proc/irq or /sys, sysctl -w, cpupower idle-set -D, and what diagnose \
                     advises of them";
/// Round robin is what `chrt -p` gives when no policy is named.
const CHRT_DEFAULT: char = 'r';
/// What a program has to do itself.
const OWN_WORK: [&str; 4] = ["mlockall", "pthread_", "let ", "hand "];

/// What an advice mounts where a knob of the scheduler is not there.
const MOUNTED: &str = " ] || mount -t debugfs none /sys/kernel/debug; ";

/// What a command changes on the machine below `root`, with what is there now.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a command that cannot be tried, [`ErrorKind::NotFound`] for a
/// task, a file or a setting that is not there.
pub fn read(root: &Path, command: &str) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for part in parts(command) {
        changes.extend(Reader { root, command }.read(part)?);
    }
    if changes.is_empty() {
        return Err(
            Error::new(ErrorKind::NotFound, "the command changes nothing here")
                .found(format!("'{command}'"))
                .fix("what it asks for is so already; try another advice"),
        );
    }
    Ok(changes)
}

/// Where commands follow each other; not inside a loop, which has its own.
fn parts(command: &str) -> Vec<&str> {
    // A debugfs that is mounted for a knob stays: where the knob is not there, that is said.
    let command = match command.split_once(MOUNTED) {
        Some((absent, turn)) if absent.starts_with("[ -e ") => turn,
        _ => command,
    };
    let is_whole = ["for ", "if ", "v2="]
        .iter()
        .any(|begin| command.trim_start().starts_with(begin));
    match is_whole {
        true => vec![command],
        false => command.split("&&").collect(),
    }
}

struct Reader<'a> {
    root: &'a Path,
    /// The whole, for errors.
    command: &'a str,
}

impl Reader<'_> {
    fn read(&self, part: &str) -> Result<Vec<Change>> {
        if let Some((list, rest)) = between(part, "for tid in $(", "); do ") {
            return self.for_each(list, rest);
        }
        if let Some((condition, rest)) = between(part, "if [ -e ", " ]; then ") {
            return self.either(condition, rest);
        }
        if part.starts_with("v2=") {
            let mut files = part.split("/proc/");
            let tid = files.find_map(|rest| rest.split_once("/cgroup")?.0.parse().ok());
            return Ok(groups::lift_quota(
                self.root,
                tid.ok_or_else(|| self.unknown())?,
            ));
        }
        let words = words(part).ok_or_else(|| self.unknown())?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = words.strip_prefix(&["sudo"]).unwrap_or(&words);
        match words {
            ["taskset", rest @ ..] => self.taskset(rest),
            ["chrt", rest @ ..] => self.chrt(rest),
            ["renice", rest @ ..] => self.renice(rest),
            ["echo", value, ">", path]
            | ["echo", value, "|", "sudo", "tee", path]
            | ["echo", value, "|", "tee", path] => self.write(path, value),
            ["sysctl", "-w", setting] => self.sysctl(setting),
            ["cpupower", "-c", cpu, "idle-set", "-D", latency_us] => self.idle(cpu, latency_us),
            _ => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> Error {
        let found = format!("'{}'", self.command);
        if OWN_WORK.iter().any(|begin| self.command.starts_with(begin)) {
            let what = "only the program itself can do that";
            return Error::new(ErrorKind::Unsupported, what)
                .found(found)
                .fix("change the program, then watch it again with the same flags");
        }
        Error::new(
            ErrorKind::Unsupported,
            "tune cannot try and take back this command",
        )
        .found(found)
        .fix(KNOWN)
    }

    fn absent(&self, what: &str, found: &str) -> Error {
        let fix = match what {
            "task" => "ps -eLo pid,tid,rtprio,comm lists tasks; diagnose again for the ids of now",
            _ if found.contains("/sys/kernel/debug/") => {
                "mount -t debugfs none /sys/kernel/debug, if it is not mounted there"
            }
            _ => "sysctl -a lists the settings below /proc/sys; ls shows the files of the others",
        };
        Error::new(ErrorKind::NotFound, format!("there is no such {what}"))
            .found(format!("{found}, in '{}'", self.command))
            .fix(fix)
    }

    /// What the kernel would refuse, before anything is tried.
    fn impossible(&self, what: &str, found: String, fix: &str) -> Error {
        Error::new(ErrorKind::InvalidInput, what)
            .found(format!("{found}, in '{}'", self.command))
            .fix(fix)
    }

    /// Refuses CPUs of which none is there: the kernel passes over single ones.
    fn has_cpus(&self, cpus: &[event::Cpu]) -> Result<()> {
        let online = std::fs::read_to_string(self.root.join("sys/devices/system/cpu/online"));
        let Some(online) = online
            .ok()
            .and_then(|text| event::Cpu::parse_list(text.trim()).ok())
        else {
            return Ok(());
        };
        match cpus.iter().any(|cpu| online.contains(cpu)) {
            true => Ok(()),
            false => {
                let names: Vec<String> = online.iter().map(|cpu| cpu.0.to_string()).collect();
                let fix = format!("this machine has the CPUs {}", names.join(","));
                let names: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
                let found = format!("CPUs {}", names.join(","));
                Err(self.impossible("there is no such CPU", found, &fix))
            }
        }
    }

    /// The tasks that `pgrep` names, each with the command behind it.
    fn for_each(&self, list: &str, rest: &str) -> Result<Vec<Change>> {
        let body = rest.split_once("; done").map(|(body, _)| body);
        let body = body.filter(|_| list.starts_with("pgrep "));
        let body = body.ok_or_else(|| self.unknown())?;
        // It looks for tasks, and for lines among them: it changes nothing.
        let harmless = |c: char| !";&<>`(\n".contains(c);
        let mut stages = list.split(" | ");
        let is_known = stages.all(|one| one.starts_with("pgrep ") || one.starts_with("grep -vxE "));
        if !is_known || !list.chars().all(harmless) {
            return Err(self.unknown());
        }
        let found = std::process::Command::new("sh").args(["-c", list]).output();
        let found = found.map_err(|error| Error::io("cannot look for tasks", error))?;
        let tids = String::from_utf8_lossy(&found.stdout).into_owned();
        let mut changes = Vec::new();
        for tid in tids.split_whitespace() {
            // One may have ended meanwhile.
            match self.read(&body.replace("$tid", tid)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => changes.extend(other?),
            }
        }
        match changes.is_empty() {
            true => Err(self.absent("task", list)),
            false => Ok(changes),
        }
    }

    fn either(&self, condition: &str, rest: &str) -> Result<Vec<Change>> {
        let (then, otherwise) = rest.split_once("; else ").ok_or_else(|| self.unknown())?;
        let otherwise = otherwise
            .strip_suffix("; fi")
            .ok_or_else(|| self.unknown())?;
        match self.path(condition)?.exists() {
            true => self.read(then),
            false => self.read(otherwise),
        }
    }

    /// A file of the kernel's, below the root.
    fn path(&self, path: &str) -> Result<PathBuf> {
        let is_settings = ["/proc/sys/", "/proc/irq/", "/sys/"]
            .iter()
            .any(|one| path.starts_with(one));
        match is_settings && !path.contains("..") {
            true => Ok(self.root.join(path.trim_start_matches('/'))),
            false => Err(self.unknown()),
        }
    }

    fn task(&self, word: &str) -> Result<TaskId> {
        let tid = word.parse().map_err(|_| self.unknown())?;
        TaskId::find(tid).ok_or_else(|| self.absent("task", word))
    }

    fn write(&self, path: &str, value: &str) -> Result<Vec<Change>> {
        let path = self.path(path)?;
        let before = std::fs::read_to_string(&path);
        let before = before.map_err(|_| self.absent("setting", &path.display().to_string()))?;
        if chosen(&before).trim_end() == value {
            return Ok(Vec::new());
        }
        if self.takes_commands(&path, &before) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "nothing could be written back into this file: it takes commands, and has no value",
            )
            .found(path.display().to_string())
            .fix("do it by hand, between two runs of rtscope watch"));
        }
        Ok(vec![Change::Write {
            path,
            before,
            after: value.to_owned(),
        }])
    }

    /// Whether what is written into a file is done at once, and is no setting that stays: nobody
    /// can read it, it is empty where no list is, or it has the machine sleep.
    fn takes_commands(&self, path: &Path, before: &str) -> bool {
        let is_readable = std::fs::metadata(path).is_ok_and(|of| of.mode() & 0o444 != 0);
        let is_list = path.starts_with(self.root.join("sys/fs/cgroup"));
        let sleeps = path.starts_with(self.root.join("sys/power"));
        !is_readable || sleeps || before.trim().is_empty() && !is_list
    }

    fn sysctl(&self, setting: &str) -> Result<Vec<Change>> {
        let (name, value) = setting.split_once('=').ok_or_else(|| self.unknown())?;
        self.write(&format!("/proc/sys/{}", name.replace('.', "/")), value)
    }

    fn taskset(&self, rest: &[&str]) -> Result<Vec<Change>> {
        let (cpus, task) = match rest {
            ["-pc" | "-cp", cpus, tid] | ["-p", "-c", cpus, tid] => (*cpus, self.task(tid)?),
            _ => return Err(self.unknown()),
        };
        self.has_cpus(&event::Cpu::parse_list(cpus)?)?;
        let before = task.affinity();
        let before = before.ok_or_else(|| self.absent("task", &task.to_string()))?;
        Ok(match before == cpus {
            true => Vec::new(),
            false => vec![Change::Affinity {
                task,
                before,
                after: cpus.to_owned(),
            }],
        })
    }

    fn chrt(&self, rest: &[&str]) -> Result<Vec<Change>> {
        let (flags, priority, tid) = match rest {
            [flags @ .., priority, tid] => (flags, priority, tid),
            _ => return Err(self.unknown()),
        };
        let letters = flags.iter().map(|flag| flag.strip_prefix('-'));
        let letters: Option<Vec<&str>> = letters.collect();
        let letters = letters.ok_or_else(|| self.unknown())?.concat();
        let priority = priority.parse().map_err(|_| self.unknown())?;
        let mut kinds = letters.chars().filter(|letter| *letter != 'p');
        let letter = kinds.next().unwrap_or(CHRT_DEFAULT);
        let policy = Policy::of_letter(letter).filter(|_| letters.contains('p'));
        let policy = policy
            .filter(|_| kinds.next().is_none())
            .ok_or_else(|| self.unknown())?;
        if !Policy::takes(policy, priority) {
            return Err(self.impossible(
                "the policy does not take this priority",
                priority.to_string(),
                "-f and -r take 1 to 99, the other policies 0: chrt -m",
            ));
        }
        self.schedule(tid, |before| before.with_policy(policy, priority))
    }

    fn renice(&self, rest: &[&str]) -> Result<Vec<Change>> {
        let (nice, tid) = match rest {
            ["-n", nice, "-p", tid] | [nice, "-p", tid] | [nice, tid] => (*nice, tid),
            _ => return Err(self.unknown()),
        };
        let nice: i32 = nice.parse().map_err(|_| self.unknown())?;
        if !(-20..=19).contains(&nice) {
            return Err(self.impossible(
                "there is no such nice value",
                nice.to_string(),
                "from -20, which others give way to, to 19",
            ));
        }
        self.schedule(tid, |before| before.with_nice(nice))
    }

    fn schedule(&self, tid: &str, change: impl FnOnce(Policy) -> Policy) -> Result<Vec<Change>> {
        let task = self.task(tid)?;
        let before = task.policy();
        let before = before.ok_or_else(|| self.absent("task", &task.to_string()))?;
        let after = change(before);
        Ok(match before == after {
            true => Vec::new(),
            false => vec![Change::Schedule {
                task,
                before,
                after,
            }],
        })
    }

    /// Every idle state that takes at least so long to leave is switched off.
    fn idle(&self, cpu: &str, latency_us: &str) -> Result<Vec<Change>> {
        let (Ok(cpu), Ok(latency_us)) = (cpu.parse::<u32>(), latency_us.parse::<u64>()) else {
            return Err(self.unknown());
        };
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let entries = std::fs::read_dir(self.path(&folder)?);
        let entries = entries.map_err(|_| self.absent("setting", &folder))?;
        let mut states: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        states.sort();
        let mut changes = Vec::new();
        for state in states {
            let latency = std::fs::read_to_string(state.join("latency")).unwrap_or_default();
            if latency
                .trim()
                .parse::<u64>()
                .is_ok_and(|one| one >= latency_us)
            {
                let name = state.file_name().unwrap_or_default().display().to_string();
                changes.extend(self.write(&format!("{folder}/{name}/disable"), "1")?);
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in [
            ("proc/irq/24/smp_affinity_list", "0-1\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never\n",
            ),
            ("sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0\n"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state0/disable", "0\n"),
            (
                "sys/devices/system/cpu/cpu1/cpuidle/state1/latency",
                "133\n",
            ),
            ("sys/devices/system/cpu/cpu1/cpuidle/state1/disable", "0\n"),
            ("sys/power/state", "freeze mem disk\n"),
            ("sys/block/vda/uevent", ""),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        folder
    }

    #[test]
    fn a_command_is_read_as_what_it_changes() {
        let machine = machine();
        let root = machine.path();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let check = |command: &str, expect: &[&str]| {
            let changes =
                read(root, command).unwrap_or_else(|error| panic!("{command}: {error:#}"));
            let changes = changes.iter().map(|change| {
                let text = change.to_string().replace(&root.display().to_string(), "");
                text.split_once("): ")
                    .map_or(text.clone(), |(_, rest)| rest.to_owned())
            });
            assert_eq!(changes.collect::<Vec<_>>(), expect, "{command}");
        };
        let irq = "/proc/irq/24/smp_affinity_list: 0-1 -> 1";
        check("echo 1 > /proc/irq/24/smp_affinity_list", &[irq]);
        check("echo 1 | sudo tee /proc/irq/24/smp_affinity_list", &[irq]);
        let throttling = "/proc/sys/kernel/sched_rt_runtime_us: 950000 -> -1";
        check("sysctl -w kernel.sched_rt_runtime_us=-1", &[throttling]);
        check(
            "if [ -e /sys/kernel/debug/sched/fair_server/cpu0/runtime ]; then echo 0 > \
             /sys/kernel/debug/sched/fair_server/cpu0/runtime; else sysctl -w \
             kernel.sched_rt_runtime_us=-1; fi",
            &[throttling],
        );
        check(
            "[ -e /sys/kernel/mm/transparent_hugepage/enabled ] || mount -t debugfs none \
             /sys/kernel/debug; echo never > /sys/kernel/mm/transparent_hugepage/enabled",
            &["/sys/kernel/mm/transparent_hugepage/enabled: always -> never"],
        );
        check(
            "echo never > /sys/kernel/mm/transparent_hugepage/enabled && echo 1 > \
             /proc/irq/24/smp_affinity_list # both",
            &[
                "/sys/kernel/mm/transparent_hugepage/enabled: always -> never",
                irq,
            ],
        );
        let idle = "/sys/devices/system/cpu/cpu1/cpuidle/state1/disable: 0 -> 1";
        check("cpupower -c 1 idle-set -D 10", &[idle]);
        let nice = TaskId::find(own)
            .and_then(|task| task.policy())
            .expect("its own");
        check(
            &format!("chrt -f -p 5 {own}"),
            &[&format!("{nice} -> FIFO 5")],
        );
        check(&format!("chrt -p 5 {own}"), &[&format!("{nice} -> RR 5")]);
        check(
            &format!("renice -n 7 -p {own}"),
            &[&format!("{nice} -> nice 7")],
        );
    }

    #[test]
    fn what_cannot_be_tried_or_is_not_there_is_refused_with_the_reason() {
        let machine = machine();
        let check = |command: &str, expect: ErrorKind| {
            let error = read(machine.path(), command).expect_err(command);
            assert_eq!(error.kind(), expect, "{command}");
            assert!(error.fixed_by().is_some(), "{command}");
        };
        for command in [
            "rm -rf /",
            "echo 1 > /etc/passwd",
            "echo 1 > /sys/../etc/passwd",
            "mlockall(MCL_CURRENT | MCL_FUTURE) before the work, and touch its buffers once",
            "boot with isolcpus=managed_irq,domain,1 nohz_full=1",
            "for tid in $(rm -rf /x); do renice -n 1 -p $tid; done",
            "for tid in $(pgrep x; rm y); do renice -n 1 -p $tid; done",
            "chrt -d -p 0 1",
            "taskset -pc 1",
            "echo 'a",
            "",
            // These are done at once, and cannot be taken back.
            "echo mem > /sys/power/state",
            "echo add > /sys/block/vda/uevent",
        ] {
            check(command, ErrorKind::Unsupported);
        }
        check("taskset -pc 0 99999999", ErrorKind::NotFound);
        check(
            "echo 1 > /proc/irq/77/smp_affinity_list",
            ErrorKind::NotFound,
        );
        check("sysctl -w nosuch.thing=1", ErrorKind::NotFound);
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        for command in [
            format!("chrt -f -p 0 {own}"),
            format!("chrt -r -p 100 {own}"),
            format!("chrt -o -p 5 {own}"),
            format!("taskset -pc 99 {own}"),
            format!("renice -n 30 -p {own}"),
            format!("renice -n -21 -p {own}"),
        ] {
            check(&command, ErrorKind::InvalidInput);
        }
        // It is so already.
        check(
            "sysctl -w kernel.sched_rt_runtime_us=950000",
            ErrorKind::NotFound,
        );
        let nobody = "for tid in $(pgrep -w -x rtscope-nobody); do renice -n 1 -p $tid; done";
        check(nobody, ErrorKind::NotFound);
    }
}
