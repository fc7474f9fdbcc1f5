//! The threads that are there now, as `/proc` has them.

use std::path::Path;

use event::{NamePattern, NamedTask, Prio, TaskPattern, Tid};
use host::namespace;

/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread as `/proc` has it.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub tid: Tid,
    pub comm: String,
    pub pid: Tid,
    pub leader: String,
    /// The process that made its own, or took it over.
    pub parent: Tid,
    /// The name of its program's file.
    pub program: Option<String>,
    /// What its process is called otherwise: what it was called by, and the script that it runs.
    pub programs: Vec<String>,
    pub prio: Prio,
    pub class: String,
    pub is_program: bool,
    /// Its id in its own PID namespace, where that is below ours.
    pub inner: Option<i32>,
    /// Its control groups and PID namespace, where somebody asks for them.
    pub cgroups: String,
    pub namespace: Option<u32>,
}

impl Thread {
    /// Whether a pattern means it.
    pub fn is_meant_by(&self, pattern: &TaskPattern) -> bool {
        pattern.matches(&NamedTask {
            tid: self.tid,
            comm: self.comm.as_bytes(),
            prio: Some(self.prio),
            pid: Some(self.pid),
            leader: Some(self.leader.as_bytes()),
            program: self.program.as_deref().map(str::as_bytes),
            is_program: self.is_program,
        })
    }

    /// Whether the process is called so, by its first thread, its program or its script.
    pub fn is_of_process_called(&self, name: &NamePattern) -> bool {
        let mut files = self.programs.iter().chain(&self.program);
        name.matches(self.leader.as_bytes()) || files.any(|file| name.means_file(file.as_bytes()))
    }
}

/// All threads of this machine that this process may see; where each is, if somebody asks.
pub(super) fn threads(with_groups: bool) -> Vec<Thread> {
    let own = namespace::of(Path::new("/proc/self"));
    let mut threads = Vec::new();
    for process in folders(Path::new("/proc")) {
        let Some(pid) = id_of(&process) else { continue };
        let Some(leader) = comm_of(&process) else {
            continue;
        };
        let programs = programs_of(&process);
        let program = program_of(&process);
        let namespace = namespace::of(&process);
        for folder in folders(&process.join("task")) {
            let Some((tid, comm)) = id_of(&folder).zip(comm_of(&folder)) else {
                continue;
            };
            let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
            let Some((prio, class, is_program)) = class_of(&stat) else {
                continue;
            };
            let parent = parent_of(&stat).unwrap_or(Tid(0));
            let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let is_below = namespace.is_some() && namespace != own;
            let inner = is_below.then(|| namespace::ids(&text("status")).last().copied());
            threads.push(Thread {
                inner: inner.flatten(),
                cgroups: if with_groups {
                    text("cgroup")
                } else {
                    String::new()
                },
                namespace,
                tid,
                comm,
                pid,
                leader: leader.clone(),
                parent,
                program: program.clone(),
                programs: programs.clone(),
                prio,
                class,
                is_program,
            });
        }
    }
    threads
}

fn folders(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn id_of(path: &Path) -> Option<Tid> {
    path.file_name()?.to_str()?.parse().ok().map(Tid)
}

/// What a thread that is there is called now.
pub(super) fn name_now(tid: Tid) -> Option<String> {
    comm_of(Path::new(&format!("/proc/{tid}")))
}

fn comm_of(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path.join("comm")).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(event::plain_text(name))
}

/// The name of the file that a process runs, also where that is deleted.
fn program_of(process: &Path) -> Option<String> {
    let path = std::fs::read_link(process.join("exe")).ok()?;
    let name = path.file_name()?.to_string_lossy();
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// What a process was called by, and the script that it runs, if it does: another first argument is
/// no file (`su postgres`).
fn programs_of(process: &Path) -> Vec<String> {
    let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).take(2);
    let words = words.map(event::plain_text);
    // An absolute path takes the place of the folder.
    let is_file = |word: &str| process.join("cwd").join(word).is_file();
    let words = words
        .enumerate()
        .filter(|(place, word)| *place == 0 || is_file(word));
    let last = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let names = words.map(|(_, word)| last(word));
    names.filter(|name| !name.is_empty()).collect()
}

/// The parent's process of a line of `/proc/PID/stat`.
fn parent_of(stat: &str) -> Option<Tid> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok().map(Tid)
}

/// Priority and scheduling class of a line of `/proc/PID/stat`, and whether it is a program's.
fn class_of(stat: &str) -> Option<(Prio, String, bool)> {
    // The name in it may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    // The first of these is field 3 of proc(5).
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
    let (flags, nice) = (field(9)?, field(19)?);
    let (rt, policy) = (field(40)? as u32, field(41)?);
    let fair = |name: &str| {
        (
            Prio::from_lttng(20 + nice as i32),
            format!("{name}nice {nice}"),
        )
    };
    let (prio, class) = match policy {
        1 => (Prio::from_rt(rt), format!("FIFO {rt}")),
        2 => (Prio::from_rt(rt), format!("RR {rt}")),
        6 => (Prio(-1), "DEADLINE".to_owned()),
        3 => fair("batch "),
        5 => fair("idle "),
        _ => fair(""),
    };
    Some((prio, class, flags as u64 & KERNEL_THREAD == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_argument_is_a_script_only_where_it_is_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = folder.path();
        std::fs::create_dir(process.join("cwd")).expect("made");
        std::fs::write(process.join("cwd/load.py"), "").expect("written");
        let check = |line: &str, expect: &[&str]| {
            std::fs::write(process.join("cmdline"), line).expect("written");
            assert_eq!(programs_of(process), expect, "{line:?}");
        };
        check("python3\0load.py\x003\0", &["python3", "load.py"]);
        check("su\0postgres\0-c\0", &["su"]);
        check("/usr/bin/tail\0-f\0", &["tail"]);
        check("-bash\0", &["-bash"]);
        let script = process.join("cwd/load.py");
        check(&format!("sh\0{}\0", script.display()), &["sh", "load.py"]);
        check("", &[]);
    }

    #[test]
    fn the_class_is_read_behind_any_name() {
        let line = |policy: u32, rt: u32, nice: i32| {
            let zeros = "0 ".repeat(20);
            format!("5 (a) b (c) S 1 5 5 0 -1 64 0 0 0 0 0 0 0 0 20 {nice} {zeros}{rt} {policy} 0")
        };
        let check = |policy, rt, nice, expect: &str| {
            let found = class_of(&line(policy, rt, nice)).map(|(_, class, _)| class);
            assert_eq!(found.as_deref(), Some(expect));
            assert_eq!(parent_of(&line(policy, rt, nice)), Some(Tid(1)));
        };
        check(1, 50, 0, "FIFO 50");
        check(2, 3, 0, "RR 3");
        check(0, 0, -5, "nice -5");
        check(6, 0, 0, "DEADLINE");
        assert!(class_of("5 (a").is_none());
    }
}
