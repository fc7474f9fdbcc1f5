//! Programs that keep the machine busy while it is measured: hackbench, stress-ng, a compiler.
//!
//! # Design constraints
//! - Each runs in a process group of its own under a time limit of its own, so that none outlives
//!   the measurement for long, however that ends.
//! - A program that is not installed is told, and the others run.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use event::{Cpu, Duration, Error, Result};
use rustix::process::{Pid, Signal};

use crate::shield;

/// How long a load has to end by itself.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
const LOOKS_MAX: u32 = 50;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Processes that send each other messages: the scheduler's load.
    Hackbench,
    /// CPU, memory, disk and timers.
    StressNg,
    /// A compiler, again and again.
    Compile,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 3] = [Load::Hackbench, Load::StressNg, Load::Compile];

    /// As it is typed and written.
    pub fn name(self) -> &'static str {
        match self {
            Load::Hackbench => "hackbench",
            Load::StressNg => "stress-ng",
            Load::Compile => "compile",
        }
    }

    /// The program, and what installs it.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Load::Hackbench => ("hackbench", "sudo apt install rt-tests"),
            Load::StressNg => ("stress-ng", "sudo apt install stress-ng"),
            Load::Compile => ("cc", "sudo apt install gcc"),
        }
    }

    /// What a shell runs: `$0` is the number of CPUs, `$1` a folder for scratch files.
    fn script(self) -> &'static str {
        match self {
            Load::Hackbench => "while :; do hackbench -g \"$0\" -l 1000 || exit; done",
            Load::StressNg => {
                "exec stress-ng --temp-path \"$1\" --cpu \"$0\" --vm 1 --vm-bytes 64M --hdd 1 \
                 --hdd-bytes 16M --timer 1"
            }
            Load::Compile => {
                "for number in $(seq \"$0\"); do while :; do
                 cc -O2 -c -o \"$1/$number.o\" \"$1/source.c\" || exit; done & done; wait"
            }
        }
    }
}

/// Where loads run, and for how long at most.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Their CPUs.
    pub cpus: Vec<Cpu>,
    /// The control group that they join: its folder.
    pub cgroup: Option<PathBuf>,
    /// They are killed after this, whatever happens to us.
    pub limit: Duration,
}

/// A load that runs while this lives.
#[derive(Debug)]
pub struct Running {
    load: Load,
    child: Child,
    /// Its scratch files.
    _folder: Scratch,
}

/// Starts `load`.
///
/// # Errors
/// [`event::ErrorKind::NotFound`] with what installs it when its program is missing,
/// [`event::ErrorKind::InvalidInput`] for a control group that is not there, and what the operating
/// system refused.
pub fn start(load: Load, plan: &LoadPlan) -> Result<Running> {
    let (program, install) = load.program();
    if which::which(program).is_err() {
        let what = format!("there is no {program} for the load {}", load.name());
        let found = format!("no {program} in PATH");
        return Err(Error::new(event::ErrorKind::NotFound, what)
            .found(found)
            .mend(install));
    }
    if let Some(group) = &plan.cgroup {
        check_group(group)?;
    }
    let cannot = |error| Error::io(format!("cannot start the load {}", load.name()), error);
    let folder = Scratch::new(load).map_err(cannot)?;
    let enter = match &plan.cgroup {
        Some(group) => format!("echo $$ > '{}/cgroup.procs' || exit; ", group.display()),
        None => String::new(),
    };
    let seconds = plan.limit.as_ns() as f64 / 1e9;
    let child = Command::new("taskset")
        .args(["--cpu-list", &shield::list(&plan.cpus)])
        .args(["timeout", "--signal=KILL", &format!("{seconds:.1}")])
        .args(["sh", "-c", &(enter + load.script())])
        .arg(plan.cpus.len().to_string())
        .arg(&folder.0)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(cannot)?;
    Ok(Running {
        load,
        child,
        _folder: folder,
    })
}

impl Running {
    /// Which one it is.
    pub fn load(&self) -> Load {
        self.load
    }

    /// How it ended, when it did before its time: a load that fails at once is none.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("{} ended early: {status}", self.load.name()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        // Asked first: whoever has children in other groups ends them himself.
        rustix::process::kill_process_group(group, Signal::TERM).ok();
        look_until(|| self.child.try_wait().is_ok_and(|status| status.is_some()));
        rustix::process::kill_process_group(group, Signal::KILL).ok();
        self.child.wait().ok();
        // On a busy machine the killed are not dead at once: they would still write to the folder
        // that goes now, and keep the control group from being removed.
        look_until(|| rustix::process::test_kill_process_group(group).is_err());
    }
}

/// Returns once it is so, or after so many looks.
fn look_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// A folder in the temporary one, with something to compile, that goes with its load.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new(load: Load) -> std::io::Result<Scratch> {
        let name = format!("rtscope-load-{}-{}", std::process::id(), load.name());
        let scratch = Scratch(std::env::temp_dir().join(name));
        std::fs::create_dir(&scratch.0)?;
        if load == Load::Compile {
            let mut source = std::fs::File::create(scratch.0.join("source.c"))?;
            for number in 0..400 {
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
    let mend = format!("sudo mkdir {}", group.display());
    Err(Error::new(event::ErrorKind::InvalidInput, what)
        .found(found)
        .mend(mend))
}
