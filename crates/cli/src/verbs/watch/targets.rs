//! Whom a watch means now: the threads that are there, with class and priority; what a name that
//! matches nobody may have meant.

use std::fmt::Write as _;
use std::path::Path;

use bpf_host::Members;
use event::{NamePattern, Result, TaskPattern, Tid};
use host::groups::{self, Asked, Found};

use super::command::Command;
use super::threads::{Thread, threads};
use crate::options::{Target, WatchOptions};

/// Threads that are listed; the others are counted.
const LISTED_MAX: usize = 8;
/// Threads of a process that are named where it was meant perhaps.
const NAMED_MAX: usize = 6;
/// So far up the parents of a process are looked for; ids that are used again make no circle.
const PARENTS_MAX: usize = 64;

/// Whom somebody asks for.
#[derive(Clone, Debug)]
pub(in crate::verbs) struct Whom {
    /// By name, id or priority.
    pub target: Target,
    /// By where they are.
    pub asked: Vec<Asked>,
    /// By descent from a command; beside others who are asked for, its tasks of these names alone.
    pub family: Option<Tid>,
}

impl Whom {
    /// Whether somebody is asked for beside a command: then not all of the command is meant.
    fn names_beside_command(&self) -> bool {
        let names = matches!(&self.target, Target::Tasks(patterns) if !patterns.is_empty());
        self.family.is_some() && (names || !self.asked.is_empty())
    }
}

/// The threads of this moment, and whom of them a target means.
pub(in crate::verbs) struct Matched {
    threads: Vec<Thread>,
    /// Whom they are compared with.
    pub target: Target,
    found: Vec<Found>,
    family: Option<Tid>,
    /// Of the family, those that are named alone; who is named otherwise is not meant by that.
    family_named: bool,
}

impl Matched {
    /// Looks through `/proc` and the control groups.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`] for a group that can have no such name.
    pub fn find(whom: &Whom) -> Result<Matched> {
        let found = whom.asked.iter();
        let found = found.map(|asked| groups::find(Path::new("/"), asked));
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok(Matched {
            threads: threads(!found.is_empty()),
            target: whom.target.clone(),
            found,
            family: whom.family,
            family_named: whom.names_beside_command(),
        })
    }

    /// Who is meant by where they are, for the kernel.
    pub fn members(&self) -> Members {
        let all = |found: &Found| {
            found
                .groups
                .iter()
                .map(|group| group.id)
                .collect::<Vec<_>>()
        };
        Members {
            groups: self.found.iter().flat_map(all).collect(),
            group_names: self
                .found
                .iter()
                .flat_map(|one| one.names.clone())
                .collect(),
            namespaces: self
                .found
                .iter()
                .flat_map(|one| one.namespaces.clone())
                .collect(),
            family: self.family,
            family_named: self.family_named,
        }
    }

    /// The ids of the threads that are meant.
    pub fn tids(&self) -> Vec<Tid> {
        self.meant().map(|thread| thread.tid).collect()
    }

    fn meant(&self) -> impl Iterator<Item = &Thread> {
        let own = Tid(std::process::id() as i32);
        self.threads.iter().filter(move |thread| {
            let is_meant = match &self.target {
                Target::Tasks(patterns) => {
                    patterns.iter().any(|pattern| self.means(pattern, thread))
                }
                Target::RealTime => thread.is_meant_by(&TaskPattern::RealTime),
            };
            let of = |found: &Found| found.has_member(&thread.cgroups, thread.namespace);
            let is_command = self.family == Some(thread.pid) && !self.family_named;
            let is_member = is_command || self.found.iter().any(of);
            (is_meant || is_member) && thread.pid != own
        })
    }

    /// Whether a pattern means a thread: beside a command a name means its tasks alone.
    fn means(&self, pattern: &TaskPattern, thread: &Thread) -> bool {
        thread.is_meant_by(pattern)
            && (!self.family_named || pattern.is_an_id() || self.is_of_family(thread))
    }

    /// Whether a thread's process is the command's, or descends from it by those that are there.
    fn is_of_family(&self, thread: &Thread) -> bool {
        let parent = |pid: Tid| self.threads.iter().find(|one| one.pid == pid);
        let above = |pid: &Tid| parent(*pid).map(|one| one.parent);
        let mut line = std::iter::successors(Some(thread.pid), above).take(PARENTS_MAX);
        self.family.is_some() && line.any(|pid| Some(pid) == self.family)
    }

    /// The first threads of the processes that are called so by how they were begun or by their
    /// script alone, and how somebody asks for them. The kernel does not know that name.
    fn called_by_program(&self) -> Vec<(&Thread, &NamePattern)> {
        let patterns = match &self.target {
            Target::Tasks(patterns) => patterns.as_slice(),
            Target::RealTime => &[],
        };
        let names = patterns.iter().filter_map(|pattern| match pattern {
            TaskPattern::Process(name) => Some((pattern, name)),
            _ => None,
        });
        let of_it = |(pattern, name): (&TaskPattern, &NamePattern), thread: &&Thread| {
            thread.pid == thread.tid
                && !thread.is_meant_by(pattern)
                && thread.is_of_process_called(name)
                && (!self.family_named || self.is_of_family(thread))
        };
        names
            .flat_map(|asked| {
                let threads = self.threads.iter();
                let threads = threads.filter(move |thread| of_it(asked, thread));
                threads.map(move |thread| (thread, asked.1))
            })
            .collect()
    }

    /// Those processes: they are watched by their ids.
    pub fn by_program(&self) -> Vec<TaskPattern> {
        let found = self.called_by_program().into_iter();
        let mut pids: Vec<Tid> = found.map(|(thread, _)| thread.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().map(TaskPattern::Pid).collect()
    }

    /// Such processes that began after the watch, to which they are called otherwise.
    pub fn too_late(&self) -> String {
        let found = self.called_by_program().into_iter().take(LISTED_MAX);
        let told = found.map(|(Thread { pid, leader, .. }, name)| {
            format!(
                "process {} ({pid}) began after the watch, to which it is {leader}: not watched; \
                 --process {leader}, or --pid {pid}, watches it\n",
                name.text()
            )
        });
        told.collect()
    }

    /// The processes of the threads that are meant, each once.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.meant().map(|thread| thread.pid.0 as u32).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// The threads with class and priority, and what matched nobody.
    pub fn text(&self) -> String {
        // A command that is held is not yet what it is to be.
        let is_held = |thread: &&Thread| self.family != Some(thread.pid);
        let meant: Vec<&Thread> = self.meant().filter(is_held).collect();
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        if !meant.is_empty() {
            let threads = if meant.len() == 1 {
                "thread"
            } else {
                "threads"
            };
            let _ = writeln!(text, "matched {} {threads}:", meant.len());
        }
        for thread in meant.iter().take(LISTED_MAX) {
            let Thread {
                tid, comm, class, ..
            } = thread;
            let of = match thread.pid == *tid {
                true => String::new(),
                false => format!(" of {} ({})", thread.leader, thread.pid),
            };
            let inner = match thread.inner {
                Some(inner) => format!(", {inner} in its container"),
                None => String::new(),
            };
            let _ = writeln!(text, "  {tid:>7}  {class:<10}  {comm}{of}{inner}");
        }
        if meant.len() > LISTED_MAX {
            let _ = writeln!(text, "  and {} more", meant.len() - LISTED_MAX);
        }
        // What a command that is held is to be called is not known yet.
        text + &match self.family_named {
            true => self.groups_hints() + &self.elsewhere(),
            false => self.hints(),
        }
    }

    /// Threads of such a name that are none of the command's, one for each name.
    fn elsewhere(&self) -> String {
        let Target::Tasks(patterns) = &self.target else {
            return String::new();
        };
        let told = patterns.iter().filter_map(|pattern| {
            let is_meant = |one: &&Thread| one.is_meant_by(pattern);
            let first = self.threads.iter().find(is_meant)?;
            let is_other = !self.threads.iter().any(|one| self.means(pattern, one));
            let Thread { tid, comm, pid, .. } = first;
            is_other.then(|| {
                format!(
                    "{comm} ({tid}) is no task of the command, and not watched; --pid {pid} \
                     watches it while the command runs\n"
                )
            })
        });
        told.collect()
    }

    /// What became of the threads that were meant at the begin, a line for each that is called
    /// otherwise now, or ended: `comm` tells the present name of a thread that is there.
    pub fn gone(&self, comm: impl Fn(Tid) -> Option<String>) -> String {
        let is_there = |thread: &&Thread| self.family != Some(thread.pid);
        let told = self.meant().filter(is_there).filter_map(|thread| {
            let Thread { tid, comm: was, .. } = thread;
            match comm(*tid) {
                Some(now) if now == *was => None,
                Some(now) => Some(format!("{was} ({tid}) is called {now} now\n")),
                None => Some(format!("{was} ({tid}) has ended\n")),
            }
        });
        told.take(LISTED_MAX).collect()
    }

    /// Names that no thread has, and processes of such a name whose threads are called otherwise.
    pub fn hints(&self) -> String {
        let mut text = self.groups_hints();
        let Target::Tasks(patterns) = &self.target else {
            return text;
        };
        if self.family_named {
            text.push_str(&self.elsewhere());
        }
        for pattern in patterns {
            let mut threads = self.threads.iter();
            let is_there = threads.any(|thread| self.means(pattern, thread));
            match pattern {
                TaskPattern::Name(name) => text.push_str(&self.hint(name, is_there)),
                TaskPattern::Process(name) if !is_there && self.by_program().is_empty() => {
                    let name = name.text();
                    let _ = writeln!(text, "no process is called {name} now; waiting for one");
                }
                TaskPattern::Prio(..) | TaskPattern::RealTime if !is_there => {
                    let _ = writeln!(text, "no task has {pattern} now; waiting for one");
                }
                _ => {}
            }
        }
        text
    }

    /// Groups that are not there, and those without a task.
    fn groups_hints(&self) -> String {
        let hint = |found: &Found| {
            let asked = &found.asked;
            let mut threads = self.threads.iter();
            match found.is_absent() {
                true => {
                    let names: Vec<_> = found.names.iter().map(ToString::to_string).collect();
                    let names = names.join(", ");
                    format!(
                        "there is no {asked} now; waiting for a control group called {names} \
                         (systemd-cgls)\n"
                    )
                }
                false if threads.any(|one| found.has_member(&one.cgroups, one.namespace)) => {
                    String::new()
                }
                false => format!("{asked} has no task now; waiting for one\n"),
            }
        };
        self.found.iter().map(hint).collect()
    }

    /// What a thread's name may have meant.
    fn hint(&self, name: &NamePattern, is_there: bool) -> String {
        let of_process = self.threads.iter().filter(|thread| {
            thread.is_of_process_called(name)
                && !name.matches(thread.comm.as_bytes())
                && (!self.family_named || self.is_of_family(thread))
        });
        let others: Vec<&Thread> = of_process.collect();
        let name = name.text();
        let Some(first) = others.first() else {
            return match is_there {
                true => String::new(),
                false => format!(
                    "no task is called {name} now; waiting for one (ps -eLo tid,rtprio,comm)\n"
                ),
            };
        };
        let mut names: Vec<&str> = others.iter().map(|thread| thread.comm.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > NAMED_MAX { ", …" } else { "" };
        names.truncate(NAMED_MAX);
        let names = names.join(", ");
        match is_there {
            true => format!(
                "process {name} ({}) has threads of other names that are not watched, {} of them \
                 ({names}{more}): --process {name} watches all\n",
                first.pid,
                others.len()
            ),
            false => format!(
                "no thread is called {name}; process {name} ({}) has the threads {names}{more}: \
                 --process {name} watches all\n",
                first.pid
            ),
        }
    }

    /// Whether nobody is meant now.
    pub fn is_nobody(&self) -> bool {
        self.meant().next().is_none()
    }
}

/// Whom somebody asks for, with a command if there is one.
pub(in crate::verbs) fn whom(options: &WatchOptions, command: Option<&Command>) -> Whom {
    Whom {
        target: options.target.clone(),
        asked: options.groups.clone(),
        family: command.map(Command::id),
    }
}

/// Says who is meant now; adds the processes that are called so by their program alone, and who is
/// meant by where they are.
///
/// # Errors
/// As [`Matched::find`].
pub(in crate::verbs) fn meant(options: &mut WatchOptions, whom: &Whom) -> Result<Matched> {
    let mut matched = Matched::find(whom)?;
    let processes = matched.by_program().into_iter();
    processes.for_each(|process| options.target.add(process));
    matched.target = options.target.clone();
    options.members = matched.members();
    note_text!("{}", matched.text());
    Ok(matched)
}

#[cfg(test)]
mod tests {
    use event::Prio;

    use super::*;

    fn thread(tid: i32, comm: &str, pid: i32, leader: &str, program: &str) -> Thread {
        Thread {
            tid: Tid(tid),
            comm: comm.to_owned(),
            pid: Tid(pid),
            leader: leader.to_owned(),
            parent: Tid(1),
            program: None,
            programs: vec![program.to_owned()],
            prio: Prio::from_rt(50),
            class: "FIFO 50".to_owned(),
            is_program: true,
            inner: None,
            cgroups: String::new(),
            namespace: None,
        }
    }

    fn matched(texts: &[&str]) -> Matched {
        let threads = vec![
            thread(5, "jackd", 5, "jackd", "jackd"),
            thread(7, "memcached", 7, "memcached", "memcached"),
            thread(8, "mc-worker", 7, "memcached", "memcached"),
            thread(9, "ctrl_loop", 9, "ctrl_loop", "ros2_control_node"),
            thread(11, "python3", 11, "python3", "load.py"),
        ];
        let target = Target::Tasks(TaskPattern::parse_all(texts).expect("tasks"));
        Matched {
            threads,
            target,
            found: Vec::new(),
            family: None,
            family_named: false,
        }
    }

    #[test]
    fn beside_a_command_a_name_means_its_tasks_and_an_id_means_itself() {
        let beside = |texts: &[&str]| {
            let mut matched = matched(texts);
            // memcached is the command, and made one that runs a script.
            matched.threads[4].parent = Tid(7);
            (matched.family, matched.family_named) = (Some(Tid(7)), true);
            matched
        };
        let check = |text: &str, expect: &[i32]| {
            let found = beside(&[text]).tids();
            let expect: Vec<_> = expect.iter().copied().map(Tid).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("mc-worker", &[8]);
        check("process:memcached", &[7, 8]);
        check("rt", &[7, 8, 11]);
        check("prio:50", &[7, 8, 11]);
        check("python3", &[11]);
        check("jackd", &[]);
        check("process:jackd", &[]);
        check("pid:5", &[5]);
        check("5", &[5]);
        let said = "jackd (5) is no task of the command, and not watched; --pid 5 watches it while \
                    the command runs\n";
        assert_eq!(beside(&["jackd"]).text(), said);
        assert_eq!(beside(&["rtscope-none"]).text(), "", "it is held yet");
        let script = [TaskPattern::Pid(Tid(11))];
        assert_eq!(beside(&["process:load.py"]).by_program(), script);
        assert_eq!(beside(&["process:ros2_control_node"]).by_program(), []);
        assert!(beside(&["mc-worker"]).members().family_named);
        let whole = Whom {
            target: Target::Tasks(Vec::new()),
            asked: Vec::new(),
            family: Some(Tid(7)),
        };
        assert!(!whole.names_beside_command(), "all of the command is meant");
    }

    #[test]
    fn the_threads_that_are_meant_are_listed_with_class_and_priority() {
        let text = matched(&["jackd"]).text();
        assert_eq!(text, "matched 1 thread:\n        5  FIFO 50     jackd\n");
        let text = matched(&["process:memcached"]).text();
        let expect = "matched 2 threads:\n        7  FIFO 50     memcached\n        8  FIFO 50     \
                      mc-worker of memcached (7)\n";
        assert_eq!(text, expect);
    }

    #[test]
    fn who_is_called_otherwise_or_has_ended_is_told_where_nothing_was_judged() {
        let told = |name: &'static str, now: Option<&'static str>| {
            matched(&[name]).gone(|_| now.map(str::to_owned))
        };
        assert_eq!(told("jackd", Some("jackd")), "");
        assert_eq!(
            told("jackd", Some("jackdbus")),
            "jackd (5) is called jackdbus now\n"
        );
        assert_eq!(told("jackd", None), "jackd (5) has ended\n");
        assert_eq!(told("nobody", None), "");
    }

    #[test]
    fn a_name_that_no_thread_has_says_what_it_may_have_meant() {
        let check = |name: &str, expect: &str| {
            assert_eq!(matched(&[name]).hints(), expect, "{name}");
        };
        check("jackd", "");
        check(
            "rtscope-none",
            "no task is called rtscope-none now; waiting for one (ps -eLo tid,rtprio,comm)\n",
        );
        check(
            "memcached",
            "process memcached (7) has threads of other names that are not watched, 1 of them \
             (mc-worker): --process memcached watches all\n",
        );
        check(
            "ros2_control_node",
            "no thread is called ros2_control_node; process ros2_control_node (9) has the threads \
             ctrl_loop: --process ros2_control_node watches all\n",
        );
        check(
            "process:rtscope-none",
            "no process is called rtscope-none now; waiting for one\n",
        );
    }

    #[test]
    fn a_process_is_found_by_its_program_and_its_script_whatever_its_threads_are_called() {
        let check = |name: &str, expect: &[i32]| {
            let found = matched(&[&format!("process:{name}")]).by_program();
            let expect: Vec<_> = expect
                .iter()
                .map(|pid| TaskPattern::Pid(Tid(*pid)))
                .collect();
            assert_eq!(found, expect, "{name}");
        };
        check("ros2_control_node", &[9]);
        check("load.py", &[11]);
        check("load*", &[11]);
        let said = "process load.py (11) began after the watch, to which it is python3: not \
                    watched; --process python3, or --pid 11, watches it\n";
        assert_eq!(matched(&["process:load.py"]).too_late(), said);
        assert_eq!(matched(&["process:jackd"]).too_late(), "");
        // The kernel knows these by the name of their first thread, and this one by its file.
        let mut by_file = matched(&["process:fairpipe"]);
        by_file.threads[3].program = Some("fairpipe".to_owned());
        assert_eq!(
            (by_file.tids(), by_file.by_program()),
            (vec![Tid(9)], vec![])
        );
        assert_eq!(by_file.too_late(), "");
        check("jackd", &[]);
        check("python3", &[]);
        check("ros2_control_nope", &[]);
    }

    #[test]
    fn members_of_a_group_are_listed_with_their_ids_inside_and_absent_groups_are_said() {
        let group = |asked: &str, path: &str| Found {
            asked: Asked::Unit(asked.to_owned()),
            groups: (!path.is_empty())
                .then(|| groups::Group {
                    id: event::GroupId {
                        hierarchy: 0,
                        id: 7,
                    },
                    path: path.to_owned(),
                })
                .into_iter()
                .collect(),
            names: vec![event::GroupName::parse("web.service").expect("a name")],
            namespaces: Vec::new(),
        };
        let mut matched = matched(&["jackd"]);
        matched.target = Target::Tasks(Vec::new());
        matched.threads[2].cgroups = "0::/system.slice/web.service\n".to_owned();
        matched.threads[2].inner = Some(3);
        let mut check = |found: Found, expect: &str| {
            matched.found = vec![found];
            assert_eq!(matched.text(), expect);
        };
        check(
            group("web", "/system.slice/web.service"),
            "matched 1 thread:\n        8  FIFO 50     mc-worker of memcached (7), 3 in its \
             container\n",
        );
        check(
            group("web", "/system.slice/other.service"),
            "unit web has no task now; waiting for one\n",
        );
        check(
            group("web", ""),
            "there is no unit web now; waiting for a control group called web.service \
             (systemd-cgls)\n",
        );
    }
}
