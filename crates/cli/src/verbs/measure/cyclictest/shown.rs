//! What cyclictest prints while it measures: its table again and again, or each sample.

use event::{Duration, Result};
use measure::cyclic::{Reading, Run, Sample};
use report::cyclictest_status;

use crate::exit;
use crate::options::CyclictestOutput;

/// The table is printed at every so many looks: its histograms are read for it.
const LOOKS: u32 = 10;

/// In the unit of the figures.
pub(super) fn figure(duration: Duration, in_ns: bool) -> i64 {
    match in_ns {
        true => duration.as_ns(),
        false => duration.as_ns() / 1000,
    }
}

/// What was printed so far.
pub(super) struct Shown<'a> {
    output: &'a CyclictestOutput,
    threads: Vec<Printed>,
    spikes: Vec<(usize, Sample)>,
    spikes_seen: u64,
    looks: u32,
    /// Lines of the table that stand there, to be written again.
    lines: usize,
    max: Duration,
}

/// Of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Printed {
    /// The number of its next sample.
    next: u64,
    /// Of those not printed yet, the longest, where it was, and how many there are.
    longest: Option<Sample>,
    count: u64,
}

impl<'a> Shown<'a> {
    pub fn new(output: &'a CyclictestOutput, threads: usize) -> Shown<'a> {
        Shown {
            output,
            threads: vec![Printed::default(); threads],
            spikes: Vec::new(),
            spikes_seen: 0,
            looks: 0,
            lines: 0,
            max: Duration::ZERO,
        }
    }

    /// Prints what is new.
    pub fn look(&mut self, run: &Run) -> Result<()> {
        let text = self.samples(run);
        if !text.is_empty() {
            exit::print(&text)?;
        }
        let shows_table = !self.output.quiet && self.output.every.is_none();
        if shows_table && self.looks.is_multiple_of(LOOKS) {
            self.table(&run.read(), self.output.on_max)?;
        }
        self.looks += 1;
        Ok(())
    }

    /// Prints what there is at the end.
    pub fn end(&mut self, run: &Run) -> Result<()> {
        let text = self.samples(run);
        exit::print(&text)?;
        match self.output.quiet || self.output.every.is_some() {
            true => Ok(()),
            false => self.table(&run.read(), false),
        }
    }

    /// Where the last one stands; with `on_max` only where a maximum grew.
    fn table(&mut self, readings: &[Reading], on_max: bool) -> Result<()> {
        let extremes = readings.iter().filter_map(|one| one.latency.extremes);
        let max = extremes.map(|extremes| extremes.max).max();
        let max = max.unwrap_or_default();
        if on_max && self.lines > 0 && max <= self.max {
            return Ok(());
        }
        self.max = max;
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let up = match self.lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A"),
        };
        self.lines = readings.len() + 2;
        exit::print(&format!(
            "{up}policy: {}: loadavg: {}          \n\n{}",
            self.output.policy,
            load.trim_end(),
            cyclictest_status(readings, self.output.in_ns)
        ))
    }

    /// Lines of new samples, and the spikes among them.
    fn samples(&mut self, run: &Run) -> String {
        let mut text = String::new();
        for place in 0..self.threads.len() {
            for sample in run.newest(place, self.threads[place].next) {
                self.threads[place].next = sample.number + 1;
                self.spike(place, sample);
                if let Some(every) = self.output.every {
                    text += &self.line(place, sample, every);
                }
            }
        }
        text
    }

    /// The longest of so many samples of a thread, as a line once they are there.
    fn line(&mut self, place: usize, sample: Sample, every: u64) -> String {
        let printed = &mut self.threads[place];
        printed.count += 1;
        let longest = match printed.longest {
            Some(longest) if longest.latency >= sample.latency => longest,
            _ => sample,
        };
        printed.longest = Some(longest);
        if printed.count < every {
            return String::new();
        }
        (printed.count, printed.longest) = (0, None);
        let latency = figure(longest.latency, self.output.in_ns);
        format!("{place:8}:{:8}:{latency:8}\n", longest.number)
    }

    fn spike(&mut self, place: usize, sample: Sample) {
        let Some((limit, kept)) = self.output.spikes else {
            return;
        };
        if sample.latency > limit {
            self.spikes_seen += 1;
            if self.spikes.len() < kept {
                self.spikes.push((place, sample));
            }
        }
    }

    /// The samples over the limit of spikes, for the end.
    pub fn spikes(&self) -> String {
        if self.spikes.is_empty() {
            return String::new();
        }
        let line = |(place, sample): &(usize, Sample)| {
            let latency = figure(sample.latency, self.output.in_ns);
            let at_us = sample.at_ns / 1000;
            format!("T:{place:2} Spike:{latency:8}: TS: {at_us:12}\n")
        };
        let lines: String = self.spikes.iter().map(line).collect();
        format!("\n{lines}spikes = {}\n\n", self.spikes_seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Cyclictest;
    use crate::options::{CyclicOptions, CyclicOutput};

    fn output(words: &str) -> CyclictestOutput {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let typed = Cyclictest::read(&words).expect("it is taken");
        let cpus = [event::Cpu(0)];
        let options = CyclicOptions::cyclictest(&typed, String::new(), &cpus, &cpus);
        match options.expect("has a meaning").output {
            CyclicOutput::Cyclictest(output) => output,
            other @ CyclicOutput::Own { .. } => panic!("{other:?}"),
        }
    }

    fn samples(latencies_us: &[i64]) -> impl Iterator<Item = Sample> {
        (0..).zip(latencies_us).map(|(number, us)| Sample {
            number,
            latency: Duration::from_us(*us),
            at_ns: 7_000_000,
        })
    }

    #[test]
    fn each_sample_is_a_line_or_the_longest_of_some() {
        let check = |words: &str, expect: &str| {
            let output = output(words);
            let mut shown = Shown::new(&output, 1);
            let every = output.every.expect("each is printed");
            let lines = samples(&[5, 9, 7, 1, 3]).map(|one| shown.line(0, one, every));
            assert_eq!(lines.collect::<String>(), expect, "{words}");
        };
        let line = |number: u64, latency: i64| format!("       0:{number:8}:{latency:8}\n");
        let all = [(0, 5), (1, 9), (2, 7), (3, 1), (4, 3)];
        let all: String = all.iter().map(|(number, us)| line(*number, *us)).collect();
        check("-v", &all);
        let longest = "       0:       1:       9\n       0:       2:       7\n";
        check("-v -o 2", longest);
        check("-v -o 5 -N", "       0:       1:    9000\n");
    }

    #[test]
    fn spikes_are_listed_up_to_the_nodes_and_all_counted() {
        let output = output("--spike=6 --spike-nodes=1");
        let mut shown = Shown::new(&output, 1);
        assert_eq!(shown.spikes(), "");
        samples(&[5, 9, 7]).for_each(|sample| shown.spike(0, sample));
        let expect = "\nT: 0 Spike:       9: TS:         7000\nspikes = 2\n\n";
        assert_eq!(shown.spikes(), expect);
    }
}
