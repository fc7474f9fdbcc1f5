//! `--tui`: what a watch has seen so far, as a whole screen: the worst with what is known of them,
//! and those who were in the way, by the time that they took.

use event::{Duration, Error, ErrorKind, Result};

use crate::screen::{Culprit, Kind, Screen, Shown};

/// So many of the worst are kept.
const WORST_MAX: usize = 20;
/// So many culprits are told apart; the rest are one.
const CULPRITS_MAX: usize = 1000;
const OTHERS: &str = "others";

/// A screen, and what is on it.
#[derive(Debug)]
pub(super) struct Board {
    screen: Screen,
    title: String,
    seen: Seen,
}

/// The hits so far.
#[derive(Debug, Default)]
struct Seen {
    worst: Vec<(Duration, String, Vec<String>)>,
    culprits: Vec<Culprit>,
}

impl Board {
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where there is no terminal to fill.
    pub(super) fn open(title: &str) -> Result<Board> {
        let screen = Screen::new().ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "--tui has no screen to fill")
                .found("stderr is no terminal, or a dumb one")
                .fix("leave --tui away, or run it in a terminal")
        })?;
        Ok(Board {
            screen,
            title: title.to_owned(),
            seen: Seen::default(),
        })
    }

    /// A hit: how long, in a line, with lines below, and who was in its way.
    pub(super) fn hit(
        &mut self,
        took: Duration,
        line: String,
        below: Vec<String>,
        culprit: Option<String>,
    ) {
        self.seen.add(took, line, below, culprit);
    }

    /// The worst of a kind, which need not have been reported.
    pub(super) fn worst(&mut self, took: Duration, line: String) {
        if !self.seen.worst.iter().any(|(_, known, _)| *known == line) {
            self.seen.place(took, line, Vec::new());
        }
    }

    /// Draws what there is; whether to go on.
    pub(super) fn show(&mut self, kinds: Vec<Kind>, foot: String) -> bool {
        let worst = self.seen.worst.iter();
        let shown = Shown {
            title: self.title.clone(),
            kinds,
            culprits: self.seen.culprits.clone(),
            worst: worst
                .map(|(_, line, below)| (line.clone(), below.clone()))
                .collect(),
            foot,
        };
        self.screen.draw(&shown)
    }
}

impl Seen {
    /// Among the worst. What was seen as a kind's worst before it was reported is there once.
    fn place(&mut self, took: Duration, line: String, below: Vec<String>) {
        self.worst.retain(|(_, known, _)| *known != line);
        let place = self.worst.partition_point(|(before, ..)| *before >= took);
        self.worst.insert(place, (took, line, below));
        self.worst.truncate(WORST_MAX);
    }

    fn add(&mut self, took: Duration, line: String, below: Vec<String>, culprit: Option<String>) {
        self.place(took, line, below);
        let Some(name) = culprit else { return };
        let known = self.culprits.iter().position(|one| one.name == name);
        let full = self.culprits.len() >= CULPRITS_MAX;
        let name = if full && known.is_none() {
            OTHERS.to_owned()
        } else {
            name
        };
        match self.culprits.iter_mut().find(|one| one.name == name) {
            Some(one) => {
                one.hits += 1;
                one.total += took;
            }
            None => self.culprits.push(Culprit {
                name,
                hits: 1,
                total: took,
            }),
        }
        self.culprits.sort_by_key(|one| -one.total.as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_come_first_and_culprits_are_ranked_by_their_time() {
        let mut seen = Seen::default();
        for (ms, culprit) in [(3, "a"), (7, "b"), (5, "a"), (1, "c")] {
            let took = Duration::from_ms(ms);
            seen.add(took, format!("{ms}"), vec![], Some(culprit.to_owned()));
        }
        seen.add(Duration::from_ms(2), "2".to_owned(), vec![], None);
        let lines: Vec<_> = seen
            .worst
            .iter()
            .map(|(_, line, _)| line.as_str())
            .collect();
        assert_eq!(lines, ["7", "5", "3", "2", "1"]);
        let ranked = seen.culprits.iter();
        let ranked: Vec<_> = ranked.map(|one| (one.name.as_str(), one.hits)).collect();
        assert_eq!(ranked, [("a", 2), ("b", 1), ("c", 1)]);
    }

    #[test]
    fn neither_hits_nor_culprits_grow_without_end() {
        let mut seen = Seen::default();
        for number in 0..2 * CULPRITS_MAX {
            let name = Some(number.to_string());
            seen.add(Duration::from_us(1), number.to_string(), vec![], name);
        }
        assert_eq!(seen.worst.len(), WORST_MAX);
        assert_eq!(seen.culprits.len(), CULPRITS_MAX + 1);
        assert_eq!(seen.culprits[0].name, OTHERS);
        let hits: u64 = seen.culprits.iter().map(|one| one.hits).sum();
        assert_eq!(hits, 2 * CULPRITS_MAX as u64);
    }
}
