//! Runs one guest under a watchdog and brings its results out through a virtual disk.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cache;
use super::console::{Console, State};
use super::disturb::{Disturbance, Host};
use super::profile::Profile;
use super::request::Stall;
use crate::run;

/// Room for the results; the file is sparse.
const DISK_BYTES: u64 = 512 << 20;
/// A guest that says nothing for so long hangs; scripts say what they begin.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Patience is counted in the emulator's CPU time, because a busy host may give it little; and in
/// so many times as much of the wall clock's, for a guest that sleeps for good.
const WALL_FACTOR: u32 = 5;
const MEMORY: &str = "1536M";

/// What to boot and where its files go.
pub struct Guest<'a> {
    /// The compressed kernel.
    pub kernel: PathBuf,
    /// The initial file system.
    pub initrd: PathBuf,
    /// How the emulator keeps time.
    pub profile: &'a Profile,
    /// Further arguments of the emulator.
    pub devices: Vec<&'static str>,
    /// Gets `console.txt` and, below `result`, what the script left in `/out`.
    pub folder: PathBuf,
}

/// One boot.
pub struct Boot {
    /// How it ended.
    pub outcome: Outcome,
    /// What it took.
    pub spent: Spent,
}

/// What a boot, or a cell, took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// From the emulator's start to its end.
    pub wall: Duration,
    /// Its CPU time.
    pub cpu: Duration,
}

impl Spent {
    /// Adds what another took.
    pub fn add(&mut self, other: Spent) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }

    /// Whether this is more than `patience` allows.
    fn exceeds(&self, patience: Duration) -> bool {
        self.cpu > patience || self.wall > patience * WALL_FACTOR
    }
}

/// How a guest ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The script ended; its results are in the folder `result`.
    Done,
    /// The emulator's known crash: worth another try.
    EmulatorCrash,
    /// Anything else, in words.
    Failed(String),
}

impl Guest<'_> {
    /// Waits for its turn, boots the guest and waits for its end, at most `limit`.
    pub fn run(&self, limit: Duration) -> Result<Boot> {
        let _turn = match self.profile.exact {
            true => cache::lock_shared()?,
            false => cache::lock()?,
        };
        let disk = self.folder.join("disk.raw");
        let file = std::fs::File::create(&disk);
        let file = file.with_context(|| format!("cannot write {}", disk.display()))?;
        file.set_len(DISK_BYTES)?;

        let mut command = self.command();
        // In this order: the guest calls them vda and vdb.
        let results = format!("file={},format=raw,if=none,id=results", disk.display());
        command.args(["-drive", &results]);
        command.args(["-device", "virtio-blk-pci,drive=results"]);
        // Every request takes 20 ms.
        let slow = "driver=null-co,node-name=slow,size=67108864,latency-ns=20000000";
        command.args(["-blockdev", slow, "-device", "virtio-blk-pci,drive=slow"]);
        let (console, stood, boot) = supervise(&mut command, self.profile.host, limit)?;
        let path = self.folder.join("console.txt");
        std::fs::write(&path, console.text())
            .with_context(|| format!("cannot write {}", path.display()))?;
        if boot.outcome == Outcome::Done {
            let result = self.folder.join("result");
            unpack(&disk, &result)?;
            if !stood.is_empty() {
                std::fs::write(result.join("stood"), stood)?;
            }
        }
        std::fs::remove_file(&disk)?;
        Ok(boot)
    }

    /// Boots the guest on this terminal; its `init` gives a shell.
    pub fn interactive(&self) -> Result<()> {
        let _alone = cache::lock()?;
        run::must_succeed(&mut self.command())
    }

    fn command(&self) -> Command {
        let mut words = vec!["console=ttyS0", "quiet", "panic=-1", "tsc=reliable"];
        words.extend(self.profile.kernel);
        // Who is killed leaves no emulator behind.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        // A guest is a heavy neighbour: everything else on the machine goes first.
        command.args(["nice", "-n", "5"]);
        // A guest that restarts has ended, unless its profile says otherwise.
        command.args(["qemu-system-x86_64", "-no-reboot"]);
        command.args(self.profile.qemu);
        command.args(["-cpu", "max", "-m", MEMORY]);
        command.args(["-nographic", "-nic", "none"]);
        command.args(&self.devices);
        command.arg("-kernel").arg(&self.kernel);
        command.arg("-initrd").arg(&self.initrd);
        command.arg("-append").arg(words.join(" "));
        command
    }
}

/// Runs the emulator until it ends, the console shows the end, or patience is over.
/// Also gives a line for each stall that the guest asked for.
fn supervise(
    command: &mut Command,
    host: Host,
    limit: Duration,
) -> Result<(Console, String, Boot)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let begin = Instant::now();
    let mut child = command
        .spawn()
        .context("cannot start the emulator\n  fix: apt-get install qemu-system-x86")?;
    let pieces = read_in_background(&mut child)?;
    let mut console = Console::default();
    let id = child.id();
    let spent = || Spent {
        wall: begin.elapsed(),
        cpu: cpu_time(id),
    };
    let disturbance = Disturbance::begin(host, id);
    let mut stood = String::new();
    let mut stall = |asked: Stall| match asked.run(id) {
        Ok(line) => stood += &line,
        Err(error) => eprintln!("{error:#}"),
    };
    let outcome = watch(&pieces, &mut console, limit, &spent, &mut stall);
    drop(disturbance);
    let spent = spent();
    if outcome != Outcome::Done {
        // Let the kernel finish the report of its own death.
        std::thread::sleep(Duration::from_millis(500));
        while let Ok(piece) = pieces.try_recv() {
            console.feed(&piece);
        }
    }
    child.kill().ok(); // it may have ended by itself
    child.wait().context("cannot wait for the emulator")?;
    Ok((console, stood, Boot { outcome, spent }))
}

/// CPU time of a process and all its threads; none once it has ended.
fn cpu_time(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    Duration::from_millis(
        cpu_ticks(&stat).unwrap_or(0) * 1000 / rustix::param::clock_ticks_per_second(),
    )
}

/// Fields 14 and 15 of `/proc/PID/stat`; the second is a name in brackets that may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

fn read_in_background(child: &mut Child) -> Result<Receiver<Vec<u8>>> {
    let mut stdout = child.stdout.take().context("no stdout")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}

fn watch(
    pieces: &Receiver<Vec<u8>>,
    console: &mut Console,
    limit: Duration,
    spent: &dyn Fn() -> Spent,
    stall: &mut dyn FnMut(Stall),
) -> Outcome {
    let mut last_word = Spent::default();
    loop {
        let heard = match pieces.recv_timeout(Duration::from_millis(500)) {
            Ok(piece) => {
                console.feed(&piece);
                console.take_asked().into_iter().for_each(&mut *stall);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                return Outcome::Failed("the emulator ended before the script".into());
            }
        };
        match console.state() {
            State::Running => {}
            State::Done => return Outcome::Done,
            State::EmulatorCrash => return Outcome::EmulatorCrash,
            State::Fatal(line) => return Outcome::Failed(format!("the kernel gave up: {line}")),
        }
        let now = spent();
        if heard {
            last_word = now;
        }
        let silence = Spent {
            wall: now.wall.saturating_sub(last_word.wall),
            cpu: now.cpu.saturating_sub(last_word.cpu),
        };
        for (spent, patience, what) in [
            (silence, SILENCE_MAX, "no word on the console for"),
            (now, limit, "not done within"),
        ] {
            if spent.exceeds(patience) {
                return Outcome::Failed(format!(
                    "{what} {} s ({} s of CPU time)",
                    spent.wall.as_secs(),
                    spent.cpu.as_secs()
                ));
            }
        }
    }
}

/// The disk holds a tar archive from its first byte.
fn unpack(disk: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut command = Command::new("tar");
    command
        .arg("--no-same-owner")
        // The guest's clock need not agree with ours.
        .arg("--warning=no-timestamp")
        .arg("-xf")
        .arg(disk)
        .arg("-C")
        .arg(folder);
    let status = command.status().context("cannot start tar")?;
    ensure!(status.success(), "the results' disk holds no archive");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_that_may_hold_anything() {
        let check = |stat: &str, expect: Option<u64>| assert_eq!(cpu_ticks(stat), expect, "{stat}");
        let fields = "S 1 2 3 4 5 6 7 8 9 10 30 12 0";
        check(&format!("77 (qemu) {fields}"), Some(42));
        check(&format!("77 (a) 1 (b) {fields}"), Some(42));
        check("", None);
        check("77 (qemu) S 1 2", None);
    }

    #[test]
    fn patience_is_for_cpu_time_and_longer_for_a_guest_that_sleeps() {
        let check = |cpu_s: u64, wall_s: u64, expect: bool| {
            let spent = Spent {
                wall: Duration::from_secs(wall_s),
                cpu: Duration::from_secs(cpu_s),
            };
            assert_eq!(spent.exceeds(Duration::from_secs(10)), expect, "{spent:?}");
        };
        check(10, 50, false);
        check(11, 11, true);
        check(1, 51, true);
    }
}
