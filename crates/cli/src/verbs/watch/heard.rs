//! `--trigger`: what the application says is heard, and calls for its late activation.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use capture::watch::Calls;
use event::{Error, ErrorKind, Result};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

use crate::options::Trigger;
use crate::signals;

/// A line that is longer is looked at in parts of so much.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// So much of such a line is told before the text, and behind it.
const AROUND_BYTES: usize = 80;

/// Whom it listens to.
#[derive(Debug)]
pub(in crate::verbs) struct Ears {
    pub calls: Arc<Calls>,
    /// The texts, one of which a line has.
    texts: Vec<String>,
    readers: Vec<JoinHandle<()>>,
}

/// The ends of a command's output that are read.
pub(in crate::verbs) struct Output {
    /// A terminal: a program keeps lines back that go into a pipe.
    stdout: File,
    stderr: std::io::PipeReader,
}

/// The ends of a command's output that it writes to.
pub(in crate::verbs) struct Written {
    pub stdout: OwnedFd,
    pub stderr: std::io::PipeWriter,
}

impl Ears {
    /// Listens to signals already; none where nothing may call.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn open(triggers: &[Trigger]) -> Result<Option<Ears>> {
        if triggers.is_empty() {
            return Ok(None);
        }
        let calls = Arc::new(Calls::new()?);
        if triggers.contains(&Trigger::Signal) {
            signals::on_usr1(calls.clone())?;
        }
        let texts = triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Line(text) => Some(text.clone()),
            Trigger::Signal => None,
        });
        Ok(Some(Ears {
            calls,
            texts: texts.collect(),
            readers: Vec::new(),
        }))
    }

    /// Whether lines of some output may call.
    pub fn hears_lines(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Listens to the output of a command, or to the standard input, and passes both on.
    pub fn listen(&mut self, output: Option<Output>) {
        if !self.hears_lines() {
            return;
        }
        match output {
            Some(Output { stdout, stderr }) => {
                self.read(stdout, std::io::stdout());
                self.read(stderr, std::io::stderr());
            }
            None => self.read(std::io::stdin(), std::io::stdout()),
        }
    }

    fn read(&mut self, from: impl Read + Send + 'static, to: impl Write + Send + 'static) {
        let (calls, texts) = (self.calls.clone(), self.texts.clone());
        let reader = std::thread::spawn(move || pass_on(from, to, &texts, &calls));
        self.readers.push(reader);
    }

    /// Whether all that there was is read.
    pub fn have_heard_all(&self) -> bool {
        self.readers.iter().all(JoinHandle::is_finished)
    }
}

/// Passes on what comes, and calls for each line that has one of the texts.
fn pass_on(mut from: impl Read, mut to: impl Write, texts: &[String], calls: &Calls) {
    let mut line = Line::new(texts);
    let mut room = [0; 4096];
    loop {
        let bytes = match from.read(&mut room) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // A terminal whose other end is closed is no longer there.
            Ok(0) | Err(_) => break,
            Ok(count) => &room[..count],
        };
        for byte in bytes {
            match byte {
                // What is shown in the place of the line before is a line, too.
                b'\n' | b'\r' => line.end(calls),
                _ => line.add(*byte),
            }
        }
        // Whoever does not read it any more still has a watch.
        to.write_all(bytes).and_then(|()| to.flush()).ok();
    }
    line.end(calls);
}

/// The line that is being printed: the whole of it, or its newest part.
struct Line<'t> {
    texts: &'t [String],
    bytes: Vec<u8>,
    /// So many bytes are looked at together.
    part_bytes: usize,
    /// A part of it is gone already.
    is_long: bool,
    was_told: bool,
    /// What there is around the first of the texts that was found.
    found: Option<String>,
}

impl<'t> Line<'t> {
    fn new(texts: &'t [String]) -> Line<'t> {
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        Line {
            texts,
            bytes: Vec::new(),
            part_bytes: LINE_BYTES_MAX.max(2 * longest),
            is_long: false,
            was_told: false,
            found: None,
        }
    }

    fn add(&mut self, byte: u8) {
        if self.bytes.len() >= self.part_bytes {
            self.is_long = true;
            self.look();
            // A text may begin in this part and end in the next.
            let longest = self.texts.iter().map(String::len).max().unwrap_or(0);
            self.bytes.drain(..self.bytes.len() - longest);
            if !std::mem::replace(&mut self.was_told, true) {
                note!(
                    "a line of more than {} KiB: it is searched part by part, and of it only what \
                     is around the text is told",
                    LINE_BYTES_MAX / 1024
                );
            }
        }
        self.bytes.push(byte);
    }

    fn look(&mut self) {
        if self.found.is_some() {
            return;
        }
        let places = self.texts.iter().filter_map(|text| {
            let place = self
                .bytes
                .windows(text.len())
                .position(|at| at == text.as_bytes())?;
            Some((place, text.len()))
        });
        let Some((place, length)) = places.min() else {
            return;
        };
        let bytes = match self.is_long {
            true => {
                let end = self.bytes.len().min(place + length + AROUND_BYTES);
                &self.bytes[place.saturating_sub(AROUND_BYTES)..end]
            }
            false => &self.bytes[..],
        };
        let text = String::from_utf8_lossy(bytes);
        self.found = Some(event::plain_text(text.trim().as_bytes()));
    }

    fn end(&mut self, calls: &Calls) {
        self.look();
        if let Some(words) = self.found.take() {
            calls.call(words);
        }
        self.bytes.clear();
        self.is_long = false;
    }
}

/// A terminal for a command's output, and a pipe for its errors.
///
/// # Errors
/// When the operating system refuses.
pub(in crate::verbs) fn output() -> Result<(Output, Written)> {
    let cannot = |error| Error::io("cannot hear what the command prints", error);
    let stdout = OpenOptions::new().read(true).write(true).open("/dev/ptmx");
    let stdout = stdout.map_err(cannot)?;
    let other = other_end(&stdout).map_err(cannot)?;
    let mut modes = tcgetattr(&other).map_err(|errno| cannot(errno.into()))?;
    // Bytes are passed on as they were written.
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&other, OptionalActions::Now, &modes).map_err(|errno| cannot(errno.into()))?;
    let (stderr, errors) = std::io::pipe().map_err(cannot)?;
    let output = Output { stdout, stderr };
    let written = Written {
        stdout: other,
        stderr: errors,
    };
    Ok((output, written))
}

/// The end of a pseudo-terminal that a program has.
fn other_end(terminal: &File) -> std::io::Result<OwnedFd> {
    let fd = terminal.as_fd().as_raw_fd();
    let unlocked: libc::c_int = 0;
    // SAFETY: the terminal is open, and the number is read during the call alone.
    if unsafe { libc::ioctl(fd, libc::TIOCSPTLCK, &raw const unlocked) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the terminal is open; the request takes flags and gives a new file descriptor.
    let other = unsafe { libc::ioctl(fd, libc::TIOCGPTPEER, flags) };
    if other < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel gave it a moment ago, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(other) })
}

/// Refuses to read lines where there are none.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a line that nobody prints.
pub(super) fn has_lines(triggers: &[Trigger], has_command: bool) -> Result<()> {
    let is_terminal = || std::io::IsTerminal::is_terminal(&std::io::stdin());
    let line = triggers.iter().find_map(|trigger| match trigger {
        Trigger::Line(text) => Some(text),
        Trigger::Signal => None,
    });
    match line.filter(|_| !has_command && is_terminal()) {
        None => Ok(()),
        Some(text) => Err(Error::new(
            ErrorKind::InvalidInput,
            "nobody prints the line of --trigger: there is no COMMAND, and the input is a terminal",
        )
        .found(format!("line:{text}"))
        .fix("watch … -- ./app, or ./app 2>&1 | sudo rtscope watch …")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_passed_on_whole_and_a_line_that_has_the_text_calls() {
        let check = |printed: &str, expect: u64| {
            let calls = Calls::new().expect("calls");
            let mut passed = Vec::new();
            let texts = ["XRUN".to_owned(), "missed".to_owned()];
            pass_on(printed.as_bytes(), &mut passed, &texts, &calls);
            assert_eq!(passed, printed.as_bytes());
            assert_eq!(calls.waiting(), expect, "{printed:?}");
        };
        check("", 0);
        check("all is well\n", 0);
        check("12.5 XRUN 1\nfine\n13.5 XRUN 2\r\n", 2);
        // Also the last line, which nobody ended.
        check("missed", 1);
        check("mis\nsed", 0);
        let long = |count| "x".repeat(count);
        check(&format!("missed {}\n", long(3 * LINE_BYTES_MAX)), 1);
        check(&format!("{} missed\nfine\n", long(5 * LINE_BYTES_MAX)), 1);
        check(&format!("{} missed, missed\n", long(5 * LINE_BYTES_MAX)), 1);
        // Wherever the parts meet.
        for less in 0..8 {
            let text = format!("{}missed{}\n", long(LINE_BYTES_MAX - less), long(40_000));
            check(&text, 1);
        }
        check(&format!("{}mis\nsed\n", long(LINE_BYTES_MAX - 3)), 0);
        // Progress that is shown in the place of what was there before.
        check("1 of 3\r2 of 3 missed\r", 1);
        check("missed\r\n", 1);
    }

    #[test]
    fn of_a_long_line_what_is_around_the_text_is_told_and_memory_is_bounded() {
        let texts = ["missed".to_owned()];
        let calls = Calls::new().expect("calls");
        let mut line = Line::new(&texts);
        for byte in std::iter::repeat_n(b'x', 1 << 20).chain(*b" missed 7 ms") {
            line.add(byte);
            assert!(line.bytes.len() <= LINE_BYTES_MAX);
        }
        line.look();
        let found = line.found.clone().expect("found");
        assert!(
            found.len() < 200 && found.ends_with("missed 7 ms"),
            "{found}"
        );
        line.end(&calls);
        assert_eq!(calls.waiting(), 1);
    }

    #[test]
    fn a_command_prints_to_a_terminal_so_that_its_lines_come_at_once() {
        let (mut output, written) = output().expect("a terminal");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "test -t 1 && echo yes"]);
        let mut child = shell.stdout(written.stdout).spawn().expect("a shell");
        drop(shell);
        let mut room = [0; 16];
        let count = output.stdout.read(&mut room).expect("a line");
        assert_eq!(&room[..count], b"yes\n");
        child.wait().expect("ended");
    }
}
