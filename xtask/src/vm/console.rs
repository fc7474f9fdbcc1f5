//! Reads a guest's serial console and decides what has become of the guest.

use super::request::Stall;

/// How a word of the guest's script begins.
const WORD: &str = "rtscope-vm: ";
/// How a guest asks for a stall, behind the instant of its word.
const STALL: &str = " stall ";
/// Printed by `tests/vm/guest/init` when the results are on their disk.
const DONE: &str = "rtscope-vm: done";
/// The emulator lost an update of the kernel's text; not the guest's fault.
const EMULATOR_CRASH: &str = "Oops: int3";
/// What a kernel says when it cannot go on as it should.
const FATAL: &[&str] = &[
    "Kernel panic",
    "Oops:",
    "BUG: ",
    "general protection fault",
    "soft lockup",
    "hard LOCKUP",
    "detected stalls on CPUs",
    "unable to mount root",
];

/// What the console shows.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Nothing to worry about yet.
    Running,
    /// The script ended and the results are out.
    Done,
    /// The emulator's known crash.
    EmulatorCrash,
    /// The line with which the kernel gave up.
    Fatal(String),
}

/// The console's text and what it means.
#[derive(Default)]
pub struct Console {
    text: String,
    line: Vec<u8>,
    verdict: Option<State>,
    asked: Vec<Stall>,
}

impl Console {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            self.take_line(line.trim_end_matches('\r'));
        }
    }

    /// What has become of the guest so far.
    pub fn state(&self) -> State {
        self.verdict.clone().unwrap_or(State::Running)
    }

    /// The stalls that the guest asked for since the last call.
    pub fn take_asked(&mut self) -> Vec<Stall> {
        std::mem::take(&mut self.asked)
    }

    /// Everything but the last, unfinished line.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn take_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        if let Some((_, words)) = line.split_once(STALL).filter(|_| line.starts_with(WORD)) {
            self.asked.extend(Stall::parse(words));
        }
        // An oops of the known kind is followed by lines that look like any other.
        if self.verdict.is_some() {
            return;
        }
        if line.contains(EMULATOR_CRASH) {
            self.verdict = Some(State::EmulatorCrash);
        } else if FATAL.iter().any(|words| line.contains(words)) {
            self.verdict = Some(State::Fatal(line.to_owned()));
        } else if line.contains(DONE) {
            self.verdict = Some(State::Done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_telling_line_decides() {
        let check = |text: &str, expect: State| {
            let mut console = Console::default();
            console.feed(text.as_bytes());
            assert_eq!(console.state(), expect, "{text}");
        };
        let panic = "[ 1.0] Kernel panic - not syncing: VFS";
        check("hello\nrtscope-vm: do", State::Running);
        check("hello\r\nrtscope-vm: done\r\n", State::Done);
        check(
            "int3: Oops: int3: 0000 [#1] SMP\nKernel panic\n",
            State::EmulatorCrash,
        );
        check(
            &format!("{panic}\nrtscope-vm: done\n"),
            State::Fatal(panic.into()),
        );
    }

    #[test]
    fn a_guest_asks_for_a_stall_in_a_word_of_its_own_and_once() {
        let mut console = Console::default();
        console.feed(b"a stall 1 2\nrtscope-vm: 12.34 stall 200 100\nrtscope-vm: 13 stall");
        let asked = console.take_asked();
        assert_eq!(asked, Vec::from_iter(Stall::parse("200 100")));
        assert_eq!(console.take_asked(), []);
    }

    #[test]
    fn a_line_may_arrive_in_pieces_and_need_not_be_text() {
        let mut console = Console::default();
        for piece in [&b"a\xff\nrtscope-"[..], b"vm: done", b"\nrest"] {
            console.feed(piece);
        }
        assert_eq!(console.state(), State::Done);
        assert_eq!(console.text(), "a\u{fffd}\nrtscope-vm: done\n");
    }
}
