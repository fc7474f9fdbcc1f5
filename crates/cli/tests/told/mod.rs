//! A traced program that writes as many events as it is told.

#![allow(dead_code)] // each test file uses its part

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// For each number that it reads, writes so many events and says how many it has written.
pub const PROGRAM: &str = r#"
#include <stdio.h>
#include <rtscope/event.h>
int main(void)
{
    int more, written = 0;
    while (scanf("%d", &more) == 1) {
        for (; more > 0; more--)
            RTSCOPE_EVENT(robot, step, i32("i", written++));
        printf("%d\n", written);
        fflush(stdout);
    }
    return 0;
}
"#;

/// One that runs; ended with its test.
pub struct Traced {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Traced {
    /// Starts `program`, compiled from [`PROGRAM`], with its rings of `ring` bytes in `shared`.
    pub fn start(program: &Path, shared: &Path, ring: &str) -> Traced {
        let mut command = Command::new(program);
        command.env("RTSCOPE_RING_SIZE", ring);
        Traced::run(command, shared)
    }

    /// Starts `command`, such a program, with its rings in `shared`.
    pub fn run(mut command: Command, shared: &Path) -> Traced {
        command.env("RTSCOPE_DIR", shared);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let said = BufReader::new(child.stdout.take().expect("its output"));
        Traced { child, said }
    }

    /// Writes `count` events more; gives how many there are.
    pub fn write(&mut self, count: u64) -> u64 {
        self.write_line(&count.to_string());
        self.answer()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives it a line.
    pub fn write_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("it reads");
    }

    /// The next number that it says.
    pub fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it answers");
        line.trim().parse().expect("a number")
    }

    /// Nothing more is to be written; it ends by itself.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
