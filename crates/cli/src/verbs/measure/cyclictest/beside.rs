//! Who asks for the figures while it measures: by SIGUSR1 on stderr, by SIGUSR2 in shared memory
//! (as get_cyclictest_snapshot reads it), or through a named pipe.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use event::{Error, Result};
use measure::cyclic::Reader;
use report::cyclictest_status;
use rustix::fs::{FileType, Mode, OFlags};
use signal_hook::consts::{SIGUSR1, SIGUSR2};

use super::files;
use crate::options::CyclictestOutput;

/// How often we look whether somebody reads the pipe.
const PIPE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// The line above the figures, and below.
const RULE: &str = "#---------------------------";

/// What could not be made, or written.
fn failed(what: &str, error: std::io::Error) -> Error {
    Error::io(what.to_owned(), error).fix("name a place that is there and ours to write")
}

/// Answers while it lives.
pub(super) struct Beside {
    reader: Reader,
    in_ns: bool,
    asked: [Arc<AtomicBool>; 2],
    shared: Option<Shared>,
    pipe: Option<Pipe>,
}

impl Beside {
    /// Begins to listen.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub fn start(output: &CyclictestOutput, reader: Reader) -> Result<Beside> {
        let flag = |signal| -> Result<Arc<AtomicBool>> {
            let flag = Arc::new(AtomicBool::new(false));
            let registered = signal_hook::flag::register(signal, flag.clone());
            registered.map_err(|error| failed("cannot handle signals", error))?;
            Ok(flag)
        };
        let pipe = output.pipe.as_deref();
        let pipe = pipe.map(|path| Pipe::start(path, reader.clone(), output.in_ns));
        let pipe = pipe.transpose()?.flatten();
        Ok(Beside {
            in_ns: output.in_ns,
            asked: [flag(SIGUSR1)?, flag(SIGUSR2)?],
            shared: Shared::make(),
            pipe,
            reader,
        })
    }

    /// Answers who asked since the last look.
    pub fn look(&self) {
        let [on_stderr, shared] = &self.asked;
        if on_stderr.swap(false, Ordering::Relaxed) {
            note_text!("{}", self.text());
        }
        if shared.swap(false, Ordering::Relaxed) {
            match &self.shared {
                Some(memory) => memory.write(&self.text()),
                None => note!("ERROR: rstat_fd not valid"),
            }
        }
    }

    fn text(&self) -> String {
        let figures = cyclictest_status(&self.reader.read(), self.in_ns);
        format!("{RULE}\n# cyclictest current status:\n{figures}{RULE}\n")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            pipe.end();
        }
    }
}

/// A file in shared memory with our process id in its name.
struct Shared(PathBuf);

impl Shared {
    /// None where there is no shared memory.
    fn make() -> Option<Shared> {
        let path = PathBuf::from(format!("/dev/shm/cyclictest{}", std::process::id()));
        let mut options = File::options();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        made.is_ok().then_some(Shared(path))
    }

    fn write(&self, text: &str) {
        if let Err(error) = std::fs::write(&self.0, text) {
            note!("ERROR: {}: {error}", self.0.display());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A named pipe, and the thread that writes into it whenever somebody reads.
struct Pipe {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Pipe {
    /// None where it cannot be made: that is said, and it measures all the same.
    fn start(path: &Path, reader: Reader, in_ns: bool) -> Result<Option<Pipe>> {
        // One that an earlier run left; anything else stays, and is in the way.
        let is_pipe = |path: &Path| {
            let found = rustix::fs::stat(path);
            found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo)
        };
        if is_pipe(path) {
            std::fs::remove_file(path).ok();
        }
        let mode = Mode::from_raw_mode(0o666);
        let made = rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0);
        if let Err(error) = made {
            let why = files::words(&error.into());
            note!("Error creating fifo {}: {why}", path.display());
            return Ok(None);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (own_path, own_over) = (path.to_owned(), over.clone());
        let body = move || {
            while !own_over.load(Ordering::Relaxed) {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK;
                if let Ok(pipe) = rustix::fs::open(&own_path, flags, Mode::empty()) {
                    let text = cyclictest_status(&reader.read(), in_ns);
                    File::from(pipe).write_all(text.as_bytes()).ok();
                }
                std::thread::sleep(PIPE_INTERVAL);
            }
        };
        let thread = std::thread::Builder::new().name("rtscope-pipe".into());
        let thread = thread
            .spawn(body)
            .map_err(|error| failed("cannot start a thread", error))?;
        Ok(Some(Pipe {
            path: path.to_owned(),
            over,
            thread,
        }))
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().ok();
        std::fs::remove_file(&self.path).ok();
    }
}
