//! Runs one guest under a watchdog and brings its results out through a virtual disk.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cache;
use super::console::{Console, State};
use super::profile::Profile;
use crate::run;

/// Room for the results; the file is sparse.
const DISK_BYTES: u64 = 512 << 20;
/// A guest that says nothing for so long hangs; scripts say what they begin.
const SILENCE_MAX: Duration = Duration::from_secs(120);
const MEMORY: &str = "1536M";

/// What to boot and where its files go.
pub struct Guest<'a> {
    /// The compressed kernel.
    pub kernel: PathBuf,
    /// The initial file system.
    pub initrd: PathBuf,
    /// How the emulator keeps time.
    pub profile: &'a Profile,
    /// Further words of the kernel's command line.
    pub words: &'a str,
    /// Gets `console.txt` and, below `result`, what the script left in `/out`.
    pub folder: PathBuf,
}

/// One boot.
pub struct Boot {
    /// How it ended.
    pub outcome: Outcome,
    /// How long the emulator ran.
    pub emulated: Duration,
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
        let _alone = cache::lock()?;
        let begin = Instant::now();
        let disk = self.folder.join("disk.raw");
        let file = std::fs::File::create(&disk);
        let file = file.with_context(|| format!("cannot write {}", disk.display()))?;
        file.set_len(DISK_BYTES)?;

        let mut command = self.command();
        command.args([
            "-drive",
            &format!("file={},format=raw,if=virtio", disk.display()),
        ]);
        let (console, outcome) = supervise(&mut command, limit)?;
        let path = self.folder.join("console.txt");
        std::fs::write(&path, console.text())
            .with_context(|| format!("cannot write {}", path.display()))?;
        if outcome == Outcome::Done {
            unpack(&disk, &self.folder.join("result"))?;
        }
        std::fs::remove_file(&disk)?;
        Ok(Boot {
            outcome,
            emulated: begin.elapsed(),
        })
    }

    /// Boots the guest on this terminal; its `init` gives a shell.
    pub fn interactive(&self) -> Result<()> {
        let _alone = cache::lock()?;
        run::must_succeed(&mut self.command())
    }

    fn command(&self) -> Command {
        let mut words = vec!["console=ttyS0", "quiet", "panic=-1", "tsc=reliable"];
        words.extend(self.profile.kernel);
        words.push(self.words);
        // A guest is a heavy neighbour: everything else on the machine goes first.
        let mut command = Command::new("nice");
        command.args(["-n", "5", "qemu-system-x86_64"]);
        command.args(self.profile.qemu);
        command.args(["-cpu", "max", "-m", MEMORY]);
        command.args(["-nographic", "-no-reboot", "-nic", "none"]);
        command.arg("-kernel").arg(&self.kernel);
        command.arg("-initrd").arg(&self.initrd);
        command.arg("-append").arg(words.join(" "));
        command
    }
}

/// Runs the emulator until it ends, the console shows the end, or patience is over.
fn supervise(command: &mut Command, limit: Duration) -> Result<(Console, Outcome)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .context("cannot start the emulator\n  mend: apt-get install qemu-system-x86")?;
    let pieces = read_in_background(&mut child)?;
    let mut console = Console::default();
    let outcome = watch(&pieces, &mut console, limit);
    if outcome != Outcome::Done {
        // Let the kernel finish the report of its own death.
        std::thread::sleep(Duration::from_millis(500));
        while let Ok(piece) = pieces.try_recv() {
            console.feed(&piece);
        }
    }
    child.kill().ok(); // it may have ended by itself
    child.wait().context("cannot wait for the emulator")?;
    Ok((console, outcome))
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

fn watch(pieces: &Receiver<Vec<u8>>, console: &mut Console, limit: Duration) -> Outcome {
    let begin = Instant::now();
    let mut last_word = begin;
    loop {
        match pieces.recv_timeout(Duration::from_millis(500)) {
            Ok(piece) => {
                last_word = Instant::now();
                console.feed(&piece);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Outcome::Failed("the emulator ended before the script".into());
            }
        }
        match console.state() {
            State::Running => {}
            State::Done => return Outcome::Done,
            State::EmulatorCrash => return Outcome::EmulatorCrash,
            State::Fatal(line) => return Outcome::Failed(format!("the kernel gave up: {line}")),
        }
        if last_word.elapsed() > SILENCE_MAX {
            let silence_s = SILENCE_MAX.as_secs();
            return Outcome::Failed(format!("no word on the console for {silence_s} s"));
        }
        if begin.elapsed() > limit {
            return Outcome::Failed(format!("not done within {} s", limit.as_secs()));
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
