//! A tracefs instance of our own, `rtscope-PID-N`, removed on drop.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use event::{Cpu, Error, ErrorKind, Result, Tid};

use crate::tracefs::{read_text, write_text};
use crate::{CpuStatistics, EventName, PageLayout, PagePipe, Tracefs, task_names};

/// How the names of our instances begin.
pub(crate) const NAME_PREFIX: &str = "rtscope-";
/// How often a removal is tried, a few milliseconds apart: a closing reader may still hold a page,
/// and others look into all instances, on a busy machine for long.
const REMOVE_TRIES: u32 = 400;

/// No task has this number: with it a list of tasks is never empty, which would mean all.
const NOBODY: i32 = 1 << 22;
/// Whose events are recorded, and what makes their children follow.
const TRACKED: (&str, &str) = ("set_event_pid", "options/event-fork");
/// The same of functions.
const TRACKED_FUNCTIONS: (&str, &str) = ("set_ftrace_pid", "options/function-fork");

/// Which call stacks the kernel writes behind each event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackKinds {
    /// Those of the kernel.
    pub kernel: bool,
    /// Those of programs.
    pub user: bool,
}

/// Numbers the instances of this process.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// The switch of an instance, to look at only.
#[derive(Clone, Debug)]
pub struct Switch(PathBuf);

impl Switch {
    /// Whether events go into the rings. A trigger may have stopped them.
    ///
    /// # Errors
    /// When tracefs refuses, or the instance is gone.
    pub fn is_on(&self) -> Result<bool> {
        let text = read_text(&self.0)
            .map_err(|error| Error::io(format!("cannot read {}", self.0.display()), error))?;
        Ok(text.trim() == "1")
    }
}

/// An instance: ring buffers and event switches of its own. It starts stopped, without events.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    name: String,
    cpus: Vec<Cpu>,
}

impl Instance {
    /// Makes an instance that is stopped, on CLOCK_MONOTONIC, and does not record names of tasks.
    ///
    /// # Errors
    /// When the kernel refuses to make it.
    pub fn create(tracefs: &Tracefs) -> Result<Self> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME_PREFIX}{}-{serial}", std::process::id());
        let path = tracefs.root().join("instances").join(&name);
        fs::create_dir(&path).map_err(|error| {
            Error::io(format!("cannot make the tracefs instance {name}"), error)
                .fix("sudo rtscope doctor --clean")
        })?;
        let mut instance = Instance {
            path,
            name,
            cpus: Vec::new(),
        };
        instance.cpus = instance.list_cpus()?;
        instance.stop()?;
        instance.write("trace_clock", "mono")?;
        task_names::do_without(tracefs, &instance.path)?;
        Ok(instance)
    }

    /// The instance `name`, which the kernel made for us. It is removed on drop as one of our own.
    pub(crate) fn made_by_others(tracefs: &Tracefs, name: &str) -> Result<Self> {
        let path = tracefs.root().join("instances").join(name);
        let mut instance = Instance {
            path,
            name: name.to_owned(),
            cpus: Vec::new(),
        };
        match instance.list_cpus() {
            Ok(cpus) => instance.cpus = cpus,
            Err(error) => {
                instance.leave();
                return Err(error);
            }
        }
        Ok(instance)
    }

    /// Lets go of it without removing it.
    pub(crate) fn leave(mut self) {
        self.path = PathBuf::new();
    }

    fn list_cpus(&self) -> Result<Vec<Cpu>> {
        let directory = self.path.join("per_cpu");
        let entries = fs::read_dir(&directory)
            .map_err(|error| Error::io(format!("cannot read {}", directory.display()), error))?;
        let mut cpus: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                entry
                    .file_name()
                    .to_str()?
                    .strip_prefix("cpu")?
                    .parse()
                    .ok()
            })
            .map(Cpu)
            .collect();
        cpus.sort();
        Ok(cpus)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The CPUs that have a ring buffer.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> Result<()> {
        write_text(&self.path.join(file), text, false)
    }

    pub(crate) fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        read_text(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))
    }

    /// Sets the size of each CPU's ring, rounded up to KiB.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the kernel lacks the memory.
    pub fn set_buffer_size(&self, bytes_per_cpu: usize) -> Result<()> {
        let kib = bytes_per_cpu.div_ceil(1024).max(1);
        self.write("buffer_size_kb", &kib.to_string())
            .map_err(|error| error.fix(smaller(kib)))
    }

    /// Whether a full ring overwrites its oldest events (else it refuses the newest).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_overwrite(&self, overwrite: bool) -> Result<()> {
        self.write("options/overwrite", if overwrite { "1" } else { "0" })
    }

    /// Lets the kernel write call stacks behind each event.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when this kernel cannot.
    pub fn set_stacks(&self, kinds: StackKinds) -> Result<()> {
        let wanted = [
            (kinds.kernel, "stacktrace", "callstack-kernel"),
            (kinds.user, "userstacktrace", "callstack-user"),
        ];
        for (_, option, context) in wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            self.write(&format!("options/{option}"), "1")
                .map_err(|error| {
                    let what = format!("this kernel cannot write call stacks: {context}");
                    Error::new(ErrorKind::Unsupported, what)
                        .found(format!("it refuses options/{option} of an instance"))
                        .fix("leave it out of --context, or use a kernel with CONFIG_STACKTRACE=y")
                        .cause(error)
                })?;
        }
        Ok(())
    }

    /// Records on these CPUs only.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when one of them does not exist.
    pub fn set_cpus(&self, cpus: &[Cpu]) -> Result<()> {
        if let Some(cpu) = cpus.iter().find(|cpu| !self.cpus.contains(cpu)) {
            let last = self.cpus.last().map_or(0, |cpu| cpu.0);
            return Err(
                Error::new(ErrorKind::InvalidInput, "this machine has no such CPU")
                    .found(cpu.to_string())
                    .fix(format!("name CPUs between 0 and {last}")),
            );
        }
        self.write("tracing_cpumask", &cpu_mask(cpus))
    }

    /// Records what these tasks do and all that descend from them, and nothing else: switches and
    /// wake-ups where one of them is a part. More can be added by [`Instance::track`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when this kernel cannot.
    pub fn track_alone(&self, tasks: &[Tid], functions: bool) -> Result<()> {
        for (list, follows) in tracked_lists(functions) {
            let refused = |error| {
                let what = "this kernel cannot record the events of some tasks alone";
                Error::new(ErrorKind::Unsupported, what)
                    .found(format!("it refuses {list} or {follows} of an instance"))
                    .fix("record all without --track; cat --filter shows some of it")
                    .cause(error)
            };
            self.write(follows, "1").map_err(refused)?;
            self.write(list, &NOBODY.to_string()).map_err(refused)?;
        }
        self.track(tasks, functions)
    }

    /// Adds tasks to those that are recorded alone.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn track(&self, tasks: &[Tid], functions: bool) -> Result<()> {
        let words: Vec<String> = tasks.iter().map(|task| task.0.to_string()).collect();
        if words.is_empty() {
            return Ok(());
        }
        let mut lists = tracked_lists(functions);
        lists.try_for_each(|(list, _)| write_text(&self.path.join(list), &words.join(" "), true))
    }

    /// Takes tasks from those that are recorded alone. The kernel takes a list as a whole, and
    /// forgets the one before first: in between, what others do is recorded too.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn untrack(&self, tasks: &[Tid], functions: bool) -> Result<()> {
        for (list, _) in tracked_lists(functions) {
            let text = self.read(list)?;
            let stays = |tid: &i32| !tasks.contains(&Tid(*tid)) && *tid != NOBODY;
            let all = text.lines().filter_map(|line| line.trim().parse().ok());
            let left = all.filter(stays).chain([NOBODY]);
            let words: Vec<String> = left.map(|tid| tid.to_string()).collect();
            let path = self.path.join(list);
            let opened = fs::OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&path);
            let written = opened.and_then(|mut file| file.write_all(words.join(" ").as_bytes()));
            written
                .map_err(|error| Error::io(format!("cannot write {}", path.display()), error))?;
        }
        Ok(())
    }

    /// The tasks that are recorded alone now, as the kernel has them: also those that came since.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn tracked(&self) -> Result<Vec<Tid>> {
        let text = self.read(TRACKED.0)?;
        let all = text.lines().filter_map(|line| line.trim().parse().ok());
        Ok(all.filter(|tid| *tid != NOBODY).map(Tid).collect())
    }

    /// Files to which a process that is to be recorded alone adds its number by itself.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn tracked_files(&self, functions: bool) -> Result<Vec<fs::File>> {
        let open = |(list, _): (&str, &str)| {
            let path = self.path.join(list);
            let file = fs::OpenOptions::new().append(true).open(&path);
            file.map_err(|error| Error::io(format!("cannot open {}", path.display()), error))
        };
        tracked_lists(functions).map(open).collect()
    }

    /// Switches an event on.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when this kernel does not have it.
    pub fn enable(&self, event: &EventName) -> Result<()> {
        let _locked = task_names::lock(&self.path)?;
        write_text(&self.path.join("set_event"), &event.to_string(), true).map_err(|error| {
            Error::new(error.kind(), format!("cannot enable the event {event}"))
                .found(error.value_found().unwrap_or_default().to_owned())
                .fix("rtscope record --list-events")
                .cause(error)
        })
    }

    /// Switches an event off again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self, event: &EventName) -> Result<()> {
        write_text(&self.path.join("set_event"), &format!("!{event}"), true)
    }

    /// Lets only those events into the ring that match `filter`, in the kernel's filter language.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with the kernel's own words when it does not understand it.
    pub fn set_filter(&self, event: &EventName, filter: &str) -> Result<()> {
        let file = format!("events/{}/{}/filter", event.system, event.name);
        self.write(&file, filter).map_err(|error| {
            let said = self.read(&file).unwrap_or_default();
            Error::new(
                ErrorKind::InvalidInput,
                format!("the kernel refuses a filter of {event}"),
            )
            .found(format!("'{filter}': {}", said.trim().replace('\n', " ")))
            .fix(format!(
                "use the fields that 'rtscope record --list-events {event}' prints"
            ))
            .cause(error)
        })
    }

    /// Installs a trigger, such as `traceoff if comm == "x"`. The event need not be enabled.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when this kernel refuses it.
    pub fn set_trigger(&self, event: &EventName, trigger: &str) -> Result<()> {
        // A trigger switches its event on, silently.
        let _locked = task_names::lock(&self.path)?;
        let file = self
            .path
            .join(format!("events/{}/{}/trigger", event.system, event.name));
        write_text(&file, trigger, true).map_err(|error| {
            Error::new(
                ErrorKind::Unsupported,
                format!("this kernel refuses a trigger on {event}"),
            )
            .found(format!("'{trigger}'"))
            .fix("rtscope doctor")
            .cause(error)
        })
    }

    /// Lets events into the rings.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&self) -> Result<()> {
        self.write("tracing_on", "1")
    }

    /// Keeps events out of the rings.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<()> {
        self.write("tracing_on", "0")
    }

    /// Whether events go into the rings. A trigger may have stopped them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn is_running(&self) -> Result<bool> {
        self.switch().is_on()
    }

    /// Its switch, to be looked at from another thread.
    pub fn switch(&self) -> Switch {
        Switch(self.path.join("tracing_on"))
    }

    /// What the ring of `cpu` has counted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn statistics(&self, cpu: Cpu) -> Result<CpuStatistics> {
        let text = self.read(&format!("per_cpu/cpu{}/stats", cpu.0))?;
        Ok(CpuStatistics::parse(cpu, &text))
    }

    /// Opens the raw pipe of `cpu`. Drop it before the instance, or the instance stays.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open_pipe(&self, cpu: Cpu, layout: &PageLayout) -> Result<PagePipe> {
        let path = self
            .path
            .join(format!("per_cpu/cpu{}/trace_pipe_raw", cpu.0));
        PagePipe::open(&path, cpu, layout.page_size_bytes())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        // Nobody is left to tell; `rtscope doctor --clean` finds what stays.
        let _ = remove(&self.path);
    }
}

/// Stops the instance at `path`, switches its events and triggers off, and removes it.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let _ = write_text(&path.join("tracing_on"), "0", false);
    let _ = write_text(&path.join("events/enable"), "0", false);
    let mut tries = 0;
    loop {
        // Who of us looks whether anybody records has a file of each instance open meanwhile.
        let locked = task_names::lock(path);
        let removed = fs::remove_dir(path);
        drop(locked);
        match removed {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if tries == REMOVE_TRIES => {
                let what = format!("cannot remove the tracefs instance {}", path.display());
                return Err(Error::io(what, error)
                    .fix("close what reads it, then run: sudo rtscope doctor --clean"));
            }
            Err(_) => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn tracked_lists(functions: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    [Some(TRACKED), functions.then_some(TRACKED_FUNCTIONS)]
        .into_iter()
        .flatten()
}

/// Words of 32 bits in hexadecimal, the most significant first, with commas: as cpumasks are read.
fn cpu_mask(cpus: &[Cpu]) -> String {
    let words = cpus.iter().map(|cpu| cpu.0 / 32 + 1).max().unwrap_or(1);
    let word = |index: u32| {
        let inside = cpus.iter().filter(|cpu| cpu.0 / 32 == index);
        inside.fold(0u32, |mask, cpu| mask | 1 << (cpu.0 % 32))
    };
    (0..words)
        .rev()
        .map(|index| format!("{:08x}", word(index)))
        .collect::<Vec<_>>()
        .join(",")
}

/// For who asked for buffers of `kib` that the kernel refused.
fn smaller(kib: usize) -> String {
    format!("ask for a smaller buffer: --buffer {}K", (kib / 4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_advised_is_smaller_than_the_one_that_was_refused() {
        let check = |kib: usize, expect: &str| assert!(smaller(kib).ends_with(expect), "{kib}");
        check(4 << 20, "--buffer 1048576K");
        check(512, "--buffer 128K");
        check(1, "--buffer 1K");
    }

    #[test]
    fn a_mask_of_many_cpus_has_its_highest_word_first() {
        let check = |cpus: &[u32], expect: &str| {
            assert_eq!(
                cpu_mask(&cpus.iter().copied().map(Cpu).collect::<Vec<_>>()),
                expect
            );
        };
        check(&[], "00000000");
        check(&[0, 1], "00000003");
        check(&[1, 33, 64], "00000001,00000002,00000002");
    }
}
