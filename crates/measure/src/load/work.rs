//! The first process of a load's namespace: it runs the load again and again, checks that each run
//! did its work, and counts.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use event::{Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::account::{Account, Needs};
use super::counters::{self, COUNTERS, Row};
use super::{Load, LoadOrder};
use host::task;

/// hackbench: each of a group's senders sends so many messages to each of its receivers.
const LOOPS: u64 = 100;
const SENDERS: u64 = 20;
const RECEIVERS: u64 = 20;
const MESSAGE_BYTES: u64 = 100;
/// stress-ng says after each go what it has done.
const GO: &str = "1s";
/// What its goes do; `Load::counters` has them in this order.
const STRESSORS: [&str; 4] = ["cpu", "vm", "hdd", "timer"];
/// Where CPUs are wanted by many, a stressor completes nothing in a go now and then. In so many
/// goes behind each other it does nothing at all.
const IDLE_GOES_MAX: u32 = 10;
/// What its stressor of memory maps in each go: before it has, it completes nothing.
const VM_BYTES: &str = "16M";
/// An operation of its stressor of disks writes or reads 64 KiB; so much of it at least is written.
const HDD_BYTES: u64 = 16 << 10;

/// Out of memory, the kernel kills a load before anything else; but not its keeper, who cleans up.
const OOM_SCORE: &str = "1000";

/// Runs a load until it fails, or until it is killed.
///
/// # Errors
/// What a run of it ended with that did not do its work.
pub fn work(order: &LoadOrder) -> Result<std::convert::Infallible> {
    let failed = tied_to_keeper().and_then(|()| Worker::start(order)?.run());
    if let Err(error) = &failed {
        order.note(&error.to_string());
    }
    failed
}

/// The kernel kills us with the keeper; in a namespace of our own that ends all of the load.
fn tied_to_keeper() -> Result<()> {
    task::call_yourself("rtscope-load")?;
    // A load that must stay alive at all costs would be strange; refused, it is as any other.
    fs::write("/proc/self/oom_score_adj", OOM_SCORE).ok();
    let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    tied.map_err(|error| Error::io("cannot tie the load to its keeper", error.into()))?;
    // The keeper holds the other end, and may have died before the call above.
    let input = std::io::stdin();
    let mut end = [PollFd::new(&input, PollFlags::IN)];
    let at_once = Timespec::default();
    match poll(&mut end, Some(&at_once)) {
        Ok(0) => Ok(()),
        _ => Err(Error::new(ErrorKind::Interrupted, "its keeper is gone")),
    }
}

struct Worker<'a> {
    order: &'a LoadOrder,
    counters: File,
    slots: Vec<Slot>,
}

/// One of the runs that go on side by side.
#[derive(Default)]
struct Slot {
    pid: u32,
    row: Row,
    /// Where its run begins, for those of which the kernel's account is asked.
    begin: Account,
    /// What its last run needed, with which the next one begins.
    needs: Option<Needs>,
    /// In how many goes until now each stressor completed nothing.
    idle_goes: [u32; STRESSORS.len()],
}

impl<'a> Worker<'a> {
    fn start(order: &'a LoadOrder) -> Result<Worker<'a>> {
        let cannot = |error| Error::io("cannot write into its folder", error);
        let counters = File::create(order.folder.join(counters::FILE)).map_err(cannot)?;
        if let Some(name) = link_name(order.load) {
            symlink(order.load.find()?, order.folder.join(name)).map_err(cannot)?;
        }
        let count = order.load.slots(order.cpus.len());
        let slots = std::iter::repeat_with(Slot::default).take(count).collect();
        Ok(Worker {
            order,
            counters,
            slots,
        })
    }

    fn run(mut self) -> Result<std::convert::Infallible> {
        for number in 0..self.slots.len() {
            self.begin(number)?;
        }
        loop {
            let (pid, status) = wait()?;
            // As the first process of a namespace we are the parent of all orphans too.
            let slot = self.slots.iter().position(|slot| slot.pid == pid);
            let Some(number) = slot else { continue };
            self.check(number, status)?;
            let written = counters::write(&self.counters, number, &self.slots[number].row);
            written.map_err(|error| Error::io("cannot count", error))?;
            self.begin(number)?;
        }
    }

    /// Starts the next run of a slot.
    fn begin(&mut self, number: usize) -> Result<()> {
        let name = self.order.load.program().0;
        let cannot = |error| Error::io(format!("{name} cannot be started"), error);
        let file = |what: &str| File::create(self.file(what, number));
        let mut command = self.command(number)?;
        command.stdin(Stdio::null());
        // What it leaves when it is killed goes with the folder.
        command.env("TMPDIR", &self.order.folder);
        command.stdout(file("output").map_err(cannot)?);
        command.stderr(file("error").map_err(cannot)?);
        // SAFETY: one call of the system, which touches no memory.
        unsafe {
            command.pre_exec(|| {
                // Where there is no namespace that would end it.
                let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                tied.map_err(Into::into)
            });
        }
        let pid = command.spawn().map_err(cannot)?.id();
        let (slot, now) = (&mut self.slots[number], Account::now(pid));
        slot.pid = pid;
        // Its own first process is counted with the next one's.
        let before = std::mem::replace(&mut slot.begin, now);
        let needs = slot.needs.take().unwrap_or_default();
        let lacks = before.lacks(now, needs).map(|lacks| {
            let why = format!("{lacks}: it only says that it did its work");
            self.failed(&why)
        });
        lacks.map_or(Ok(()), Err)
    }

    fn file(&self, what: &str, number: usize) -> std::path::PathBuf {
        self.order.folder.join(format!("{what}-{number}"))
    }

    fn command(&self, number: usize) -> Result<Command> {
        let load = self.order.load;
        let mut command = match link_name(load) {
            Some(name) => Command::new(self.order.folder.join(name)),
            None => Command::new(load.find()?),
        };
        let cpus = self.order.cpus.len().max(1).to_string();
        match load {
            Load::Hackbench => command.args(["-g", &cpus, "-l", &LOOPS.to_string()]),
            Load::StressNg => command
                .args(["--timeout", GO, "--metrics", "--keep-name", "--yaml"])
                .arg(self.file("metrics", number))
                .arg("--temp-path")
                .arg(&self.order.folder)
                .args(["--cpu", &cpus, "--vm", "1", "--vm-bytes", VM_BYTES])
                .args(["--hdd", "1", "--hdd-bytes", "16M", "--timer", "1"]),
            Load::Compile => {
                let object = self.file("object", number);
                // The compiler's parts are called as they are; their arguments name our folder.
                command.args(["-O2", "-c", "-o"]).arg(object);
                command.arg(format!("-DRUN={}", self.symbol(number)));
                command.arg(self.order.folder.join("source.c"))
            }
        };
        Ok(command)
    }

    /// Whether the run of a slot that has ended did its work; then it is counted.
    fn check(&mut self, number: usize, status: ExitStatus) -> Result<()> {
        if !status.success() {
            let said = fs::read_to_string(self.file("error", number)).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            let said = last.map_or(String::new(), |line| format!(" ({})", line.trim()));
            return Err(self.failed(&format!("ended with {status}{said}")));
        }
        let done = match self.order.load {
            Load::Hackbench => self.hackbench(number),
            Load::StressNg => self.stress_ng(number),
            Load::Compile => self.compile(number),
        };
        let done = done.map_err(|missing| self.failed(&missing))?;
        let needs = self.needs(&done);
        let slot = &mut self.slots[number];
        slot.needs = needs;
        for (sum, one) in slot.row.iter_mut().zip(done) {
            *sum += one;
        }
        if self.order.load != Load::StressNg {
            return Ok(());
        }
        match idle(&mut slot.idle_goes, done) {
            Some(stressor) => Err(self.failed(&format!(
                "did nothing for its stressor {stressor} in {IDLE_GOES_MAX} goes"
            ))),
            None => Ok(()),
        }
    }

    /// What a run that has done so much takes of the kernel; none for a compiler, whose object
    /// shows it.
    fn needs(&self, done: &Row) -> Option<Needs> {
        let (processes, written) = match self.order.load {
            Load::Hackbench => (done[3], done[2]),
            Load::StressNg => {
                let cpus = self.order.cpus.len().max(1);
                ((cpus + STRESSORS.len()) as u64, done[3] * HDD_BYTES)
            }
            Load::Compile => return None,
        };
        Some(Needs { processes, written })
    }

    /// What the source of a slot's run has that no other run's has: nothing that is kept from
    /// earlier ones holds it.
    fn symbol(&self, number: usize) -> String {
        format!("rtscope_run_{number}_{}", self.slots[number].row[0])
    }

    fn failed(&self, why: &str) -> Error {
        let name = self.order.load.program().0;
        Error::new(ErrorKind::Interrupted, format!("{name} {why}"))
    }

    /// It prints how long it took once all messages have come.
    fn hackbench(&self, number: usize) -> Result<Row, String> {
        let output = fs::read_to_string(self.file("output", number)).unwrap_or_default();
        if !output.lines().any(|line| line.starts_with("Time:")) {
            return Err("did not say how long it took".into());
        }
        let groups = self.order.cpus.len().max(1) as u64;
        let messages = groups * SENDERS * RECEIVERS * LOOPS;
        let forks = groups * (SENDERS + RECEIVERS) + 1;
        Ok([1, messages, messages * MESSAGE_BYTES, forks, 0, 0, 0, 0])
    }

    /// Its file has what each stressor did.
    fn stress_ng(&self, number: usize) -> Result<Row, String> {
        let path = self.file("metrics", number);
        let text = fs::read_to_string(&path).unwrap_or_default();
        // The next go writes its own.
        fs::remove_file(&path).ok();
        let mut row = [0; COUNTERS];
        row[0] = 1;
        for (at, stressor) in STRESSORS.iter().enumerate() {
            let done = operations(&text, stressor);
            row[at + 1] = done.ok_or_else(|| format!("did not say what its {stressor} did"))?;
        }
        Ok(row)
    }

    /// An object with what this run's source had.
    fn compile(&self, number: usize) -> Result<Row, String> {
        let path = self.file("object", number);
        let object = fs::read(&path).unwrap_or_default();
        // The next run makes its own.
        fs::remove_file(&path).ok();
        if object.is_empty() {
            return Err("wrote no object".into());
        }
        let symbol = format!("{}\0", self.symbol(number));
        let symbol = symbol.as_bytes();
        match object.windows(symbol.len()).any(|part| part == symbol) {
            true => Ok([1, object.len() as u64, 0, 0, 0, 0, 0, 0]),
            false => Err("wrote an object without what it was to compile".into()),
        }
    }
}

/// A link to the program through which it is called by a name of ours, where it does not mind: a
/// compiler may be one program that goes by its name.
fn link_name(load: Load) -> Option<&'static str> {
    match load {
        Load::Hackbench => Some("rtscope-hackbench"),
        Load::StressNg => Some("rtscope-stress-ng"),
        Load::Compile => None,
    }
}

/// Counts the goes in which a stressor completed nothing; names one that has done so for too long.
fn idle(idle_goes: &mut [u32; STRESSORS.len()], done: Row) -> Option<&'static str> {
    for (goes, done) in idle_goes.iter_mut().zip(&done[1..]) {
        *goes = if *done == 0 { *goes + 1 } else { 0 };
    }
    let place = idle_goes.iter().position(|goes| *goes >= IDLE_GOES_MAX)?;
    Some(STRESSORS[place])
}

/// What `stressor` did by the file of metrics.
fn operations(text: &str, stressor: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::trim);
    let is_it = |line: &str| line.strip_prefix("- stressor: ") == Some(stressor);
    lines.find(|line| is_it(line))?;
    let operations = lines.next()?.strip_prefix("bogo-ops: ")?;
    operations.parse().ok()
}

/// Waits for the end of any child.
fn wait() -> Result<(u32, ExitStatus)> {
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let pid = pid.as_raw_nonzero().get().cast_unsigned();
                let status: ExitStatus =
                    std::os::unix::process::ExitStatusExt::from_raw(status.as_raw());
                return Ok((pid, status));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot wait for a load", error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stressor_may_complete_nothing_in_a_go_but_not_in_many_behind_each_other() {
        let row = |vm: u64| [1, 160, vm, 1024, 3236, 0, 0, 0];
        let mut idle_goes = [0; STRESSORS.len()];
        for go in 0..100 {
            // As on a busy machine: four goes of five are too short for it.
            assert_eq!(idle(&mut idle_goes, row(u64::from(go % 5 == 0))), None);
        }
        let mut idle_goes = [0; STRESSORS.len()];
        let found: Vec<_> = (0..IDLE_GOES_MAX)
            .map(|_| idle(&mut idle_goes, row(0)))
            .collect();
        let (last, before) = found.split_last().expect("goes");
        assert_eq!((*last, before.iter().flatten().count()), (Some("vm"), 0));
    }

    #[test]
    fn what_a_stressor_did_is_read_by_its_name() {
        let text = "metrics:\n    - stressor: cpu\n      bogo-ops: 3446\n      wall: 2.0\n\n    \
                    - stressor: vm\n      bogo-ops: 0\n    - stressor: hdd\n      x: 1\n";
        let check = |stressor: &str, expect| assert_eq!(operations(text, stressor), expect);
        check("cpu", Some(3446));
        check("vm", Some(0));
        check("hdd", None);
        check("timer", None);
    }
}
