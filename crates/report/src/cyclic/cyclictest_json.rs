//! What cyclictest's `--json` writes: its keys in its order, the stray colons with them, as readers
//! know them.

use event::Duration;
use measure::cyclic::Reading;
use serde::{Serialize, Serializer};

use super::cyclictest::{MIN_UNKNOWN, figure};

/// What it says of the machine and the run, beside the threads.
#[derive(Clone, Debug, Default)]
pub struct CyclictestFacts {
    /// The command line as typed.
    pub command_line: String,
    /// When it began and ended, as text.
    pub start_time: String,
    /// When it ended.
    pub end_time: String,
    /// Its exit status.
    pub return_code: i32,
    /// `uname`: sysname, nodename, release, version, machine.
    pub uname: [String; 5],
    /// Whether the kernel is PREEMPT_RT.
    pub realtime: bool,
    /// Figures are in nanoseconds.
    pub in_ns: bool,
    /// A histogram was asked for.
    pub histogram: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    command_line: &'a str,
    #[serde(rename = "rt_test_version:")]
    version: &'a str,
    start_time: &'a str,
    end_time: &'a str,
    return_code: i32,
    sysinfo: System<'a>,
    num_threads: usize,
    resolution_in_ns: u8,
    thread: Numbered<Thread>,
}

#[derive(Serialize)]
struct System<'a> {
    sysname: &'a str,
    nodename: &'a str,
    release: &'a str,
    version: &'a str,
    machine: &'a str,
    realtime: u8,
}

#[derive(Serialize)]
struct Thread {
    histogram: Numbered<u64>,
    cycles: u64,
    min: i64,
    max: i64,
    avg: f64,
    cpu: u32,
    node: u32,
}

/// An object whose keys are numbers, in their order.
struct Numbered<T>(Vec<(usize, T)>);

impl<T: Serialize> Serialize for Numbered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The file. An average of no samples, which is no number there, is 0.
pub fn cyclictest_json(readings: &[Reading], facts: &CyclictestFacts) -> String {
    let [sysname, nodename, release, version, machine] = &facts.uname;
    let threads = readings.iter().map(|reading| thread(reading, facts));
    let document = Document {
        file_version: 1,
        command_line: &facts.command_line,
        version: concat!("rtscope ", env!("CARGO_PKG_VERSION")),
        start_time: &facts.start_time,
        end_time: &facts.end_time,
        return_code: facts.return_code,
        sysinfo: System {
            sysname,
            nodename,
            release,
            version,
            machine,
            realtime: facts.realtime.into(),
        },
        num_threads: readings.len(),
        resolution_in_ns: facts.in_ns.into(),
        thread: Numbered(threads.enumerate().collect()),
    };
    serde_json::to_string_pretty(&document).expect("keys are texts and numbers") + "\n"
}

fn thread(reading: &Reading, facts: &CyclictestFacts) -> Thread {
    let latency = &reading.latency;
    let filled = latency.buckets.iter().copied().enumerate();
    let filled = filled.filter(|(_, samples)| facts.histogram && *samples > 0);
    let of = |duration: Duration| figure(duration, facts.in_ns);
    let unit_ns = if facts.in_ns { 1.0 } else { 1000.0 };
    let mean = latency
        .mean()
        .map_or(0.0, |mean| mean.as_ns() as f64 / unit_ns);
    Thread {
        histogram: Numbered(filled.collect()),
        cycles: latency.samples,
        min: latency
            .extremes
            .map_or(MIN_UNKNOWN, |extremes| of(extremes.min)),
        max: latency.extremes.map_or(0, |extremes| of(extremes.max)),
        // Two digits, as there.
        avg: (mean * 100.0).round() / 100.0,
        cpu: reading.plan.cpu.map_or(0, |cpu| cpu.0),
        node: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::reading;
    use super::*;

    #[test]
    fn the_keys_stand_in_cyclictests_order_and_a_histogram_only_where_it_was_asked_for() {
        let check = |facts: &CyclictestFacts, histogram: &str| {
            let text = cyclictest_json(&[reading([1, 1, 3])], facts);
            let (head, thread) = text.split_once("\"thread\": ").expect("its key");
            let keys = head
                .lines()
                .filter_map(|line| line.trim().split_once("\": "));
            let keys: Vec<&str> = keys.map(|(key, _)| key.trim_start_matches('"')).collect();
            let expect = "file_version cmdline: rt_test_version: start_time end_time return_code \
                          sysinfo sysname nodename release version machine realtime num_threads \
                          resolution_in_ns";
            assert_eq!(keys.join(" "), expect);
            let thread: String = thread.split_whitespace().collect();
            let rest = "\"cycles\":3,\"min\":1,\"max\":3,\"avg\":1.67,\"cpu\":1,\"node\":0";
            assert_eq!(
                thread,
                format!("{{\"0\":{{\"histogram\":{{{histogram}}},{rest}}}}}}}")
            );
        };
        let facts = CyclictestFacts::default();
        check(&facts, "");
        let histogram = true;
        check(&CyclictestFacts { histogram, ..facts }, "\"1\":2,\"3\":1");
    }
}
