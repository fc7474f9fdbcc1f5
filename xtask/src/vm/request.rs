//! Stops the emulator for a moment when its guest asks for that: what firmware or a busy
//! hypervisor does to a machine.
//!
//! A guest asks on its console, `stall AFTER LENGTH` in milliseconds (`lib.sh`); what was done goes
//! into the file `stood` beside what the guest left, a line each: the length that was asked for,
//! and how long the emulator stood, in nanoseconds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Pid;

use super::disturb;

/// A guest that asks for more is wrong.
const LENGTH_MAX: Duration = Duration::from_secs(5);

/// What a guest asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// From the moment when it is read: time to get to work again.
    pub after: Duration,
    /// How long.
    pub length: Duration,
}

impl Stall {
    /// The words behind `stall`; none for what is no request.
    pub fn parse(words: &str) -> Option<Stall> {
        let (after, length) = words.trim().split_once(' ')?;
        let ms = |text: &str| Some(Duration::from_millis(text.parse().ok()?));
        let stall = Stall {
            after: ms(after)?,
            length: ms(length)?,
        };
        (stall.after <= LENGTH_MAX && stall.length <= LENGTH_MAX).then_some(stall)
    }

    /// Stops the process `id` as was asked; the line for the file.
    pub fn run(self, id: u32) -> Result<String> {
        std::thread::sleep(self.after);
        let pid = Pid::from_raw(id.cast_signed()).context("no emulator")?;
        let begin = Instant::now();
        disturb::stop(pid, self.length).context("cannot stop the emulator")?;
        let (asked, stood) = (self.length.as_nanos(), begin.elapsed().as_nanos());
        Ok(format!("{asked} {stood}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_delay_and_a_length_within_bounds() {
        let check = |words: &str, expect_ms: Option<(u64, u64)>| {
            let ms = Duration::from_millis;
            let expect = expect_ms.map(|(after, length)| Stall {
                after: ms(after),
                length: ms(length),
            });
            assert_eq!(Stall::parse(words), expect, "{words}");
        };
        check("200 100", Some((200, 100)));
        check("0 5000", Some((0, 5000)));
        check("0 5001", None);
        check("100", None);
        check("200 -1", None);
        check("", None);
    }
}
