//! `per_cpu/cpuN/stats`: what the ring buffer of one CPU has counted.

use event::Cpu;

/// The counters of one CPU's ring buffer since it was made or cleared.
///
/// Of all events offered to the ring, `entries` are still in it, `read` were read, `overrun` were
/// overwritten before anybody read them, `dropped` came when a ring in discard mode was full, and
/// `commit_overrun` came when nested writers had filled it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStatistics {
    /// The CPU.
    pub cpu: Option<Cpu>,
    /// Events in the ring, not yet read.
    pub entries: u64,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events lost because an interrupted writer held the ring's end.
    pub commit_overrun: u64,
    /// Bytes of the events in the ring.
    pub size_bytes: u64,
    /// Events refused because the ring was full (discard mode).
    pub dropped: u64,
    /// Events read.
    pub read: u64,
    /// When they were counted, on the ring's clock, to a microsecond: no later than any that is
    /// counted here as lost. None where that clock has no seconds.
    pub counted_ns: Option<u64>,
}

impl CpuStatistics {
    /// Reads the text of a `stats` file. Lines that are not known are left out.
    pub fn parse(cpu: Cpu, text: &str) -> Self {
        let mut statistics = CpuStatistics {
            cpu: Some(cpu),
            ..Default::default()
        };
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let (key, value) = (key.trim(), value.trim());
            if key == "now ts" {
                statistics.counted_ns = nanoseconds(value);
            }
            let Ok(value) = value.parse::<u64>() else {
                continue;
            };
            match key {
                "entries" => statistics.entries = value,
                "overrun" => statistics.overrun = value,
                "commit overrun" => statistics.commit_overrun = value,
                "bytes" => statistics.size_bytes = value,
                "dropped events" => statistics.dropped = value,
                "read events" => statistics.read = value,
                _ => {}
            }
        }
        statistics
    }

    /// Every event that the kernel offered to this ring.
    pub fn offered(&self) -> u64 {
        self.entries + self.read + self.lost()
    }

    /// Every event that the ring lost, whatever the cause.
    pub fn lost(&self) -> u64 {
        self.overrun + self.commit_overrun + self.dropped
    }
}

/// Seconds with six decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let is_whole = micros.len() == 6 && micros.bytes().all(|byte| byte.is_ascii_digit());
    let micros: u64 = micros.parse().ok().filter(|_| is_whole)?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_read_from_its_own_line() {
        let text = "entries: 5\noverrun: 4\ncommit overrun: 3\nbytes: 200\n\
                    oldest event ts:     0.000000\nnow ts:   856.595547\n\
                    dropped events: 2\nread events: 9\n";
        let found = CpuStatistics::parse(Cpu(1), text);
        let expect = CpuStatistics {
            cpu: Some(Cpu(1)),
            entries: 5,
            overrun: 4,
            commit_overrun: 3,
            size_bytes: 200,
            dropped: 2,
            read: 9,
            counted_ns: Some(856_595_547_000),
        };
        assert_eq!(found, expect);
        assert_eq!((found.lost(), found.offered()), (9, 23));
    }
}
