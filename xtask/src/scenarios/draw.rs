//! Draws a scenario: a pure function of a seed, a number and a place.

use super::draft::Draw;
use super::kinds::{self, Kind};
use super::language::Scenario;
use super::place::Place;
use super::random::Random;

/// Cell `index` of `seed` at `place`, of one of the kinds whose name contains `part`.
pub fn draw(seed: u64, index: u64, place: Place, part: &str) -> Option<Scenario> {
    let mut random = Random::of_cell(seed, index);
    let fits = |kind: &&Kind| kind.fits(place) && kind.name.contains(part);
    let kinds: Vec<&Kind> = kinds::ALL.iter().filter(fits).collect();
    if kinds.is_empty() {
        return None;
    }
    let kind = random.of(&kinds);
    let name = format!("{}-{seed}-{index}", kind.name);
    let mut draw = Draw::new(random, place, &name, kind.name);
    (kind.draw)(&mut draw);
    Some(draw.scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::language::{self, Task, VICTIM};
    use crate::scenarios::place::{CAUSAL, EXACT, HOST};

    /// No step of a real-time task has the CPU for longer.
    const BURN_US_MAX: u64 = 100_000;

    /// Every scenario of the first ones of three seeds at each place.
    fn all() -> Vec<(Place, Scenario)> {
        let mut all = Vec::new();
        for place in [HOST, EXACT, CAUSAL] {
            for seed in [1, 20_260_101, u64::MAX] {
                all.extend((0..300).filter_map(|at| Some((place, draw(seed, at, place, "")?))));
            }
        }
        all
    }

    fn duration_us(text: &str) -> u64 {
        let (digits, factor) = match text.strip_suffix("ms") {
            Some(digits) => (digits, 1000),
            None => (text.strip_suffix("us").unwrap(), 1),
        };
        digits.parse::<u64>().unwrap() * factor
    }

    /// How long a step has the CPU at most, and whether it waits for something that comes.
    fn measure(step: &str) -> (u64, bool) {
        let words: Vec<&str> = step.split(' ').collect();
        match words[..] {
            ["burn" | "work" | "fork", length] => (duration_us(length), words[0] == "fork"),
            ["every", _, period] | ["sleep" | "at" | "child", period] => {
                (0, duration_us(period) > 0)
            }
            ["take" | "get", _] => (0, true),
            _ => (0, false),
        }
    }

    #[test]
    fn the_same_seed_number_and_place_draw_the_same_scenario() {
        for index in 0..50 {
            assert_eq!(draw(7, index, HOST, ""), draw(7, index, HOST, ""));
        }
        assert!((0..50).any(|index| draw(7, index, HOST, "") != draw(8, index, HOST, "")));
    }

    #[test]
    fn every_kind_is_drawn_where_it_can_be_played_and_only_there() {
        for place in [HOST, EXACT, CAUSAL] {
            for kind in kinds::ALL {
                let found = (0..2_000).filter_map(|index| draw(3, index, place, ""));
                let found = found.filter(|scenario| scenario.fault == kind.name).count();
                assert_eq!(
                    found > 0,
                    kind.fits(place),
                    "{} at {}",
                    kind.name,
                    place.name
                );
            }
        }
    }

    #[test]
    fn what_is_drawn_is_read_again_and_bounded_in_time() {
        for (place, scenario) in all() {
            let read = language::parse(&scenario.to_string()).unwrap();
            assert_eq!(read, std::slice::from_ref(&scenario));
            assert!(
                scenario.over_us == place.over_us && scenario.length_ms > 0,
                "{scenario}"
            );
            assert!(scenario.length_ms <= 1_500, "{scenario}");
            assert_eq!(scenario.of_role("victim").count(), 1, "{scenario}");
            assert_eq!(scenario.of_role("victim").next().unwrap().name, VICTIM);
            let last_us = scenario.tasks.iter().flat_map(|task| &task.steps);
            let last_us = last_us
                .filter_map(|step| step.strip_prefix("at "))
                .map(duration_us);
            assert!(
                last_us.max().unwrap_or(0) < scenario.length_ms * 1_000,
                "{scenario}"
            );
        }
    }

    #[test]
    fn no_real_time_task_has_a_cpu_for_long_or_again_and_again_without_a_wait() {
        let check = |task: &Task, scenario: &Scenario| {
            let longest_us = task.steps.iter().map(|step| measure(step).0).max();
            assert!(longest_us <= Some(BURN_US_MAX), "{task} of {scenario}");
            let repeated = task.steps.iter().skip_while(|step| *step != "loop");
            let mut repeated = repeated.peekable();
            let waits = |step: &String| measure(step).1;
            assert!(
                repeated.peek().is_none() || repeated.any(waits),
                "{task} of {scenario}"
            );
        };
        for (_, scenario) in all() {
            scenario
                .tasks
                .iter()
                .for_each(|task| check(task, &scenario));
        }
    }

    #[test]
    fn innocents_are_in_each_scenario_and_nobody_of_their_name_may_be_accused() {
        let mut without = 0;
        for (_, scenario) in all() {
            without += u32::from(scenario.of_role("innocent").next().is_none());
            for innocent in scenario.of_role("innocent") {
                let mut culprits = scenario
                    .of_role("culprit")
                    .chain(scenario.of_role("helper"));
                assert!(
                    culprits.all(|task| task.name != innocent.name),
                    "{scenario}"
                );
                let mut named = scenario.accuse.iter().flat_map(|accuse| &accuse.names);
                assert!(named.all(|name| *name != innocent.name), "{scenario}");
            }
        }
        assert_eq!(without, 0);
    }
}
