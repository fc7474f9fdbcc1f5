//! Gaps as tables for people.

use event::Duration;

use super::{Gaps, Held, name, noises};

/// How many single gaps are shown.
const LONGEST_SHOWN: usize = 5;

/// What each CPU lost, who took it, the longest gaps, and what it rests on.
pub fn gaps_text(gaps: &Gaps) -> String {
    let mut text = cpus(gaps);
    match gaps.explained {
        Some(explained) if !explained.is_empty() => {
            text +=
                "\nwho took them             CPU      gaps    total us  longest us   of the CPU\n";
            for (cpu, taker, noise) in noises(explained) {
                let reading = gaps.readings.iter().find(|reading| reading.cpu == cpu);
                let looped = reading.map_or(Duration::ZERO, |reading| reading.looped);
                text += &format!(
                    "{:<25} {:>3} {:>9} {:>11} {:>11} {:>10.4} %\n",
                    shortened(&name(&taker)),
                    cpu.0,
                    noise.gaps,
                    us(noise.total),
                    us(noise.longest),
                    100.0 * noise.total.share_of(looped),
                );
            }
            text += &longest(explained);
        }
        Some(_) => {}
        None => text += "who took them was not asked (--no-events)\n",
    }
    text + &limits(gaps) + &basis(gaps)
}

/// Whether the limits hold, a line each.
fn limits(gaps: &Gaps) -> String {
    let line = |what: &str, limit: Option<Duration>, found: Duration| {
        let limit = limit?;
        let word = match (found > limit, gaps.has_looked()) {
            (true, _) => "EXCEEDED",
            (false, true) => "held",
            (false, false) => "not known",
        };
        Some(format!("{what} of {limit}: {word}, the most was {found}\n"))
    };
    let budget = line("budget", gaps.limits.budget, gaps.longest());
    let hard = line(
        "hard limit below the kernel",
        gaps.limits.hard,
        gaps.below(),
    );
    let mut text: String = budget.into_iter().chain(hard).collect();
    if gaps.held() == Held::Unknown {
        text += match gaps.has_looked() {
            true => {
                "inconclusive: of longer ones it was not recorded, or not kept, who took them\n"
            }
            false => "inconclusive: a CPU was not looked at; look for longer: --for\n",
        };
    }
    if text.is_empty() {
        return text;
    }
    format!("\n{text}")
}

fn cpus(gaps: &Gaps) -> String {
    let mut text =
        String::from("CPU    looked s   readings  finest step      gaps  longest us   steal ms\n");
    for reading in gaps.readings {
        let steal = gaps.steal.iter().find(|(cpu, _)| *cpu == reading.cpu);
        let steal = steal.map_or("–".into(), |(_, steal)| {
            format!("{:.0}", steal.as_ns() as f64 / 1e6)
        });
        text += &format!(
            "{:>3} {:>11.1} {:>10.3e} {:>12} {:>9} {:>11} {steal:>10}\n",
            reading.cpu.0,
            reading.looped.as_ns() as f64 / 1e9,
            reading.iterations as f64,
            format!("{}", reading.step_min),
            reading.gaps.len() as u64 + reading.gaps_unkept,
            us(reading.longest),
        );
        if reading.gaps_unkept > 0 {
            text += &format!(
                "    {} gaps more than we keep: raise --over\n",
                reading.gaps_unkept
            );
        }
    }
    text
}

fn longest(explained: &[diagnosis::ExplainedGap]) -> String {
    let mut order: Vec<_> = explained.iter().collect();
    order.sort_by_key(|one| std::cmp::Reverse(one.gap.range.duration()));
    let mut text = String::from("\nthe longest gaps\n");
    for one in order.into_iter().take(LONGEST_SHOWN) {
        let parts: Vec<String> = one
            .parts
            .iter()
            .map(|(taker, duration)| format!("{} {duration}", name(taker)))
            .collect();
        text += &format!(
            "  {}  CPU {}  {}: {}\n",
            one.gap.range.begin,
            one.gap.cpu.0,
            one.gap.range.duration(),
            parts.join(", ")
        );
    }
    text
}

fn basis(gaps: &Gaps) -> String {
    let mut text = format!(
        "\n{:.1} s, gaps over {}, counter {}, Linux {}, preemption {}\n",
        gaps.elapsed.as_ns() as f64 / 1e9,
        gaps.threshold,
        gaps.counter.name(),
        gaps.kernel,
        gaps.preemption,
    );
    if !gaps.complete {
        text += "interrupted: what stands here was measured until then\n";
    }
    for warning in gaps.warnings {
        text += &format!("doubtful: {warning}\n");
    }
    text
}

fn us(duration: Duration) -> String {
    format!("{:.1}", duration.as_ns() as f64 / 1000.0)
}

/// A name for a column: what stands before a colon says enough of the longest one.
fn shortened(name: &str) -> String {
    let name = if name.starts_with("below") {
        name.split(':').next().unwrap_or(name)
    } else {
        name
    };
    name.chars().take(25).collect()
}

#[cfg(test)]
mod tests {
    use diagnosis::Taker;
    use event::Cpu;

    use super::super::tests::{found, gap, reading};
    use super::*;

    #[test]
    fn a_cpu_its_takers_and_its_longest_gap_are_shown() {
        let disk = Taker::Hardirq {
            irq: 30,
            name: "disk".into(),
        };
        let gaps = [
            gap(&[(disk.clone(), 12)]),
            gap(&[(Taker::Below, 130), (disk, 20)]),
        ];
        let readings = [reading(&gaps)];
        let steal = [(Cpu(1), Duration::from_ms(10))];
        let text = gaps_text(&found(&readings, &gaps, &steal));
        let line = |begin: &str| {
            let found = text.lines().find(|line| line.starts_with(begin));
            let words = found.unwrap_or_else(|| panic!("no '{begin}' in {text}"));
            words.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("  1"), "1 0.5 1.000e6 20 ns 2 150.0 10");
        assert_eq!(line("below"), "below the kernel 1 1 130.0 130.0 0.0260 %");
        assert_eq!(
            line("interrupt"),
            "interrupt 30 disk 1 2 32.0 20.0 0.0064 %"
        );
        let expect = "5.000000000 CPU 1 150.000 us: below the kernel: hardware, firmware or \
                      hypervisor 130.000 us, interrupt 30 disk 20.000 us";
        assert_eq!(line("  5."), expect);
    }
}
