//! Outcomes and errors become exit codes here and nowhere else.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use event::{Error, Result};

use crate::paint::Paint;
use crate::signals;

/// How a verb ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and nothing was found to complain about.
    Fine,
    /// A threshold was exceeded, or a budget broken.
    Exceeded,
    /// Losses or censoring forbid a statement.
    Inconclusive,
    /// The exit code of a command that was run for somebody, or of a program whose place we take;
    /// what there was to say is said.
    Code(u8),
}

impl Outcome {
    /// The same, unless nothing was found and not all was looked at.
    pub fn unless(self, unknown: bool) -> Outcome {
        match self {
            Outcome::Fine if unknown => Outcome::Inconclusive,
            outcome => outcome,
        }
    }
}

/// Scripts depend on these.
const FINE: u8 = 0;
const ERROR: u8 = 1;
const EXCEEDED: u8 = 2;
const INCONCLUSIVE: u8 = 3;

/// Prints an error in its three parts and gives the exit code.
pub fn finish(result: Result<Outcome>, paint: Paint) -> ExitCode {
    let code = code(&result);
    if let (Err(error), ERROR) = (&result, code) {
        note!("{} {error:#}", paint.bad("error:"));
    }
    code.into()
}

fn code(result: &Result<Outcome>) -> u8 {
    match result {
        Ok(Outcome::Fine) => FINE,
        Ok(Outcome::Exceeded) => EXCEEDED,
        Ok(Outcome::Inconclusive) => INCONCLUSIVE,
        Ok(Outcome::Code(code)) => *code,
        // The reader of our output has seen enough.
        Err(error) if is_broken_pipe(error) => FINE,
        Err(_) => ERROR,
    }
}

/// Whether nobody reads any more what we write.
pub fn is_broken_pipe(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Writes data to stdout.
///
/// # Errors
/// As [`stdout_error`].
pub fn print(text: &str) -> Result<()> {
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)
}

/// Writes data to stdout of something that goes on. Who stops to read ends it, as Ctrl-C does:
/// nobody would hear of the rest, and the exit code is that of what there was until then.
///
/// # Errors
/// As [`stdout_error`], but for a closed pipe.
pub fn tell(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let told = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    let told = told.map_err(stdout_error);
    if told.as_ref().is_err_and(is_broken_pipe) {
        signals::stop();
    }
    answered(told)
}

/// Writes the last data to stdout, behind which only the exit code comes. Who stops to read before
/// it (`| head`, `| grep -q`) still gets the verdict's.
///
/// # Errors
/// As [`stdout_error`], but for a closed pipe.
pub fn print_answer(text: &str) -> Result<()> {
    answered(print(text))
}

fn answered(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        printed => printed,
    }
}

/// Writes data to a file that was asked for.
///
/// # Errors
/// Names the file.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| write_error(path, error))
}

/// A failed write to a file that was asked for as an [`Error`].
pub fn write_error(path: &Path, error: std::io::Error) -> Error {
    let fix = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room: df says where there is some"
        }
        _ => "name a file in a folder that is there and ours to write",
    };
    Error::io(format!("cannot write {}", path.display()), error).fix(fix)
}

/// A failed write to stdout as an [`Error`].
pub fn stdout_error(error: std::io::Error) -> Error {
    Error::io("cannot write to stdout", error)
        .fix("make room where stdout goes, or send it into another file: > FILE")
}

#[cfg(test)]
mod tests {
    use event::ErrorKind;

    use super::*;

    #[test]
    fn exit_codes_are_0_1_2_3_and_a_closed_pipe_is_success() {
        let check = |result: Result<Outcome>, expect: u8| assert_eq!(code(&result), expect);
        check(Ok(Outcome::Fine), 0);
        check(Err(Error::new(ErrorKind::NotFound, "no such trace")), 1);
        check(Ok(Outcome::Exceeded), 2);
        check(Ok(Outcome::Inconclusive), 3);
        check(Ok(Outcome::Code(42)), 42);
        check(Err(stdout_error(std::io::ErrorKind::BrokenPipe.into())), 0);
        check(Err(stdout_error(std::io::ErrorKind::StorageFull.into())), 1);
    }

    #[test]
    fn a_pipe_that_closes_before_the_answer_leaves_the_verdict_its_exit_code() {
        let check = |kind: std::io::ErrorKind, expect: u8| {
            let printed = answered(Err(stdout_error(kind.into())));
            assert_eq!(code(&printed.map(|()| Outcome::Exceeded)), expect);
        };
        check(std::io::ErrorKind::BrokenPipe, 2);
        check(std::io::ErrorKind::StorageFull, 1);
    }
}
