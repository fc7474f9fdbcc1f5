//! Programs that keep the machine busy while it is measured: hackbench, stress-ng, a compiler; and
//! the proof that they did.
//!
//! Three processes deep: who measures starts a [`keeper`], that starts the first process of a PID
//! namespace ([`work`]), and that runs the load again and again and counts what it completed.
//!
//! # Design constraints
//! - None outlives us, however we die: the keeper sees the end of a pipe that we hold, the kernel
//!   kills the first process of the namespace with the keeper, and all others with that one.
//! - A load that is not installed, dies, stands still or only says that it did its work is told
//!   ([`Proof`]): nothing is proved under it.
//! - Each process says that it is ours: by its name, its command line or its environment.

mod account;
mod confined;
mod counters;
mod keeper;
mod kind;
mod left;
mod proof;
mod starved;
mod work;

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use event::{Cpu, Duration, Error, Result};

use host::shield;
use kind::{GOODBYE, OWNER, PIPE_WHOLE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use keeper::{Over, keep};
pub use kind::Load;
pub use left::{LeftLoad, begin_ticks, dead_owner, left};
pub use proof::{Look, Proof, State};
pub use starved::Starved;
pub use work::work;

const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);
/// How long a load has to end when it is told to, and when it is killed.
const TIME_TO_END: std::time::Duration = std::time::Duration::from_secs(10);
const TIME_TO_DIE: std::time::Duration = std::time::Duration::from_secs(1);
/// Why its worker ended, in its folder.
const WHY: &str = "why";

/// Where loads run.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Their CPUs.
    pub cpus: Vec<Cpu>,
    /// The control group that they join: its folder.
    pub cgroup: Option<PathBuf>,
    /// From one look that the report keeps to the next.
    pub stretch: Duration,
}

/// What the processes of a load are told.
#[derive(Clone, Debug)]
pub struct LoadOrder {
    /// Which one.
    pub load: Load,
    /// Its CPUs.
    pub cpus: Vec<Cpu>,
    /// The control group that it joins.
    pub cgroup: Option<PathBuf>,
    /// Its scratch files.
    pub folder: PathBuf,
}

impl LoadOrder {
    /// The same as arguments; `rtscope load-part` reads them.
    fn arguments(&self, role: &str) -> Vec<std::ffi::OsString> {
        let mut words: Vec<std::ffi::OsString> = ["load-part", role, self.load.name()]
            .map(Into::into)
            .to_vec();
        words.extend(["--cpus".into(), shield::list(&self.cpus).into()]);
        words.extend(["--folder".into(), self.folder.clone().into()]);
        if let Some(group) = &self.cgroup {
            words.extend(["--cgroup".into(), group.clone().into()]);
        }
        words
    }

    /// A process of ours that plays `role`; `ps` shows whose it is.
    fn process(&self, role: &str) -> Command {
        // Also when the file was replaced since we began.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(format!("rtscope-load-{}", self.load.name()));
        command.args(self.arguments(role));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Notes why the worker ended, for its keeper.
    fn note(&self, why: &str) {
        // Without room the status of the process has to do.
        std::fs::write(self.folder.join(WHY), why).ok();
    }
}

/// A load that runs while this lives.
#[derive(Debug)]
pub struct Running {
    load: Load,
    keeper: Child,
    slots: usize,
    progress: proof::Progress,
    ended: Option<String>,
    told_end: Option<Instant>,
    /// Its scratch files.
    folder: Scratch,
}

/// Starts `load`. This process must be one that understands `load-part`: it starts itself.
///
/// # Errors
/// [`event::ErrorKind::NotFound`] with what installs it when its program is missing,
/// [`event::ErrorKind::InvalidInput`] for a control group that is not there, and what the operating
/// system refused.
pub fn start(load: Load, plan: &LoadPlan) -> Result<Running> {
    load.find()?;
    if let Some(group) = &plan.cgroup {
        check_group(group)?;
    }
    let cannot = |error| Error::io(format!("cannot start the load {}", load.name()), error);
    let folder = Scratch::new(load).map_err(cannot)?;
    let order = LoadOrder {
        load,
        cpus: plan.cpus.clone(),
        cgroup: plan.cgroup.clone(),
        folder: folder.0.clone(),
    };
    let (name, value) = mark();
    let keeper = order
        .process("keeper")
        .env(name, value)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    Ok(Running {
        load,
        keeper,
        slots: load.slots(plan.cpus.len()),
        progress: proof::Progress::new(load, plan.stretch),
        ended: None,
        told_end: None,
        folder,
    })
}

/// The word of the environment that says of a process and of all that it starts whose they are:
/// [`left`] finds those whose owner is dead.
pub fn mark() -> (&'static str, String) {
    (OWNER, left::own_mark())
}

impl Running {
    /// Which one it is.
    pub fn load(&self) -> Load {
        self.load
    }

    /// Notes what it has done until `at`. Gives why it ended, once, when it did.
    pub fn look(&mut self, at: Duration) -> Option<String> {
        let file = self.folder.0.join(counters::FILE);
        let look = Look {
            at,
            slots: counters::read(&file, self.slots),
            cpu_time: left::cpu_time_of(self.keeper.id()),
        };
        self.progress.add(look);
        self.progress
            .confine(at, &left::cpus_of(&left::programs_below(self.keeper.id())));
        if self.ended.is_some() {
            return None;
        }
        self.ended = self.told().or_else(|| {
            let status = self.keeper.try_wait().ok().flatten()?;
            Some(format!("its keeper ended: {status}"))
        });
        self.ended.clone()
    }

    /// What its keeper says of its end, if it has said it.
    fn told(&self) -> Option<String> {
        let output = self.keeper.stdout.as_ref()?;
        let mut said = [PollFd::new(output, PollFlags::IN)];
        if poll(&mut said, Some(&Timespec::default())).ok()? == 0 {
            return None;
        }
        let mut why = [0; PIPE_WHOLE];
        let length = rustix::io::read(output, &mut why).ok()?;
        (length > 0).then(|| String::from_utf8_lossy(&why[..length]).into_owned())
    }

    /// What it was until now.
    pub fn so_far(&self) -> State {
        self.progress.clone().judge(self.ended.clone()).state
    }

    /// Tells it to end, once: of several all are told before one is waited for.
    pub fn tell_end(&mut self) {
        // The end of its input tells the keeper to end all of it; it ends last.
        if let Some(mut input) = self.keeper.stdin.take() {
            // Where it is gone already nobody needs to be told.
            input.write_all(GOODBYE).ok();
            self.told_end = Some(Instant::now());
        }
    }

    /// Ends it, and says what it did.
    pub fn finish(mut self) -> Proof {
        let nothing = proof::Progress::new(self.load, Duration::ZERO);
        let progress = std::mem::replace(&mut self.progress, nothing);
        progress.judge(self.ended.take())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tell_end();
        let told = self.told_end.unwrap_or_else(Instant::now);
        if has_ended(&mut self.keeper, told + TIME_TO_END) {
            return;
        }
        // One in a frozen control group dies when somebody thaws that: not ours to wait for.
        self.keeper.kill().ok();
        has_ended(&mut self.keeper, Instant::now() + TIME_TO_DIE);
    }
}

/// Whether it has until then.
fn has_ended(keeper: &mut Child, until: Instant) -> bool {
    loop {
        if keeper.try_wait().is_ok_and(|status| status.is_some()) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// A folder in the temporary one, with something to compile, that goes with its load.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new(load: Load) -> std::io::Result<Scratch> {
        let name = format!("{}{}-{}", left::FOLDER, std::process::id(), load.name());
        let scratch = Scratch(std::env::temp_dir().join(name));
        std::fs::create_dir(&scratch.0)?;
        if load == Load::Compile {
            let mut source = std::fs::File::create(scratch.0.join("source.c"))?;
            writeln!(source, "int RUN(void) {{ return 0; }}")?;
            for number in 0..40 {
                writeln!(
                    source,
                    "int f{number}(int n) {{ int s = {number}; for (int i = 0; i < n; i++) s += \
                     (s << 3) ^ i * {number}; return s; }}"
                )?;
            }
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Whether a load can join the control group in this folder.
fn check_group(group: &Path) -> Result<()> {
    let tasks = group.join("cgroup.procs");
    if rustix::fs::access(&tasks, rustix::fs::Access::WRITE_OK).is_ok() {
        return Ok(());
    }
    let what = "the loads cannot join this control group";
    let found = format!("no {} that we may write", tasks.display());
    let fix = format!("sudo mkdir {}", group.display());
    Err(Error::new(event::ErrorKind::InvalidInput, what)
        .found(found)
        .fix(fix))
}
