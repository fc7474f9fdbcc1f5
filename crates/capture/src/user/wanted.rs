//! Which events of applications are wanted: `GLOB[:LEVEL][ FILTER]`.

use event::{Error, ErrorKind, Result};
use expr::{Cond, Expr};
use ring::EventDescription;

use crate::select::glob;

/// LTTng's log levels, the gravest first: their numbers are their places.
const LEVELS: [&str; 15] = [
    "emerg",
    "alert",
    "crit",
    "err",
    "warning",
    "notice",
    "info",
    "debug_system",
    "debug_program",
    "debug_process",
    "debug_module",
    "debug_unit",
    "debug_function",
    "debug_line",
    "debug",
];

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventRule {
    /// `provider:name`, or a provider alone.
    pattern: String,
    /// Events that are less grave are not meant.
    level_max: Option<u8>,
    filter: Option<Expr>,
}

/// What becomes of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Unwanted,
    Wanted,
    /// Where this holds.
    If(Expr),
}

/// The rules in a word of the command line: `a:*,b` or `a:*:warning i > 5`.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for what can be none.
pub(super) fn parse(text: &str) -> Result<Vec<EventRule>> {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        // A filter may have commas of its own: it stands behind one pattern.
        Some((pattern, filter)) => {
            let filter = Some(Expr::parse(filter)?);
            Ok(vec![EventRule {
                filter,
                ..rule(pattern)?
            }])
        }
        None => text.split(',').map(rule).collect(),
    }
}

fn rule(text: &str) -> Result<EventRule> {
    let text = text.trim();
    let known = |c: char| c.is_ascii_alphanumeric() || "_:*?".contains(c);
    if text.is_empty() || !text.chars().all(known) {
        return Err(
            Error::new(ErrorKind::InvalidInput, "not a pattern of events")
                .found(format!("'{text}'"))
                .fix("as in --user 'npt:*': letters, digits, '_', ':', '*' and '?'"),
        );
    }
    let mut parts = text.splitn(3, ':');
    let pattern: Vec<_> = parts.by_ref().take(2).collect();
    let level_max = parts.next().map(level).transpose()?;
    Ok(EventRule {
        pattern: pattern.join(":"),
        level_max,
        filter: None,
    })
}

fn level(text: &str) -> Result<u8> {
    let number = text.parse().ok().filter(|level| *level < LEVELS.len());
    let place = || {
        let name = text.to_ascii_lowercase();
        LEVELS.iter().position(|level| *level == name)
    };
    number
        .or_else(place)
        .map(|level| level as u8)
        .ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "not a log level")
                .found(format!("'{text}'"))
                .fix("one of emerg, alert, crit, err, warning, notice, info, debug, or 0 to 14")
        })
}

impl EventRule {
    /// As a process reads it in a session's file: it switches on by itself what needs no filter.
    pub fn announced(&self) -> String {
        let level = self.level_max.map(|level| format!(":{level}"));
        let filter = self.filter.as_ref().map_or("", |_| " filtered");
        format!("{}{}{filter}", self.pattern, level.unwrap_or_default())
    }

    /// From such a line; none when it is no pattern. Its filter is not told there.
    pub fn from_announced(line: &str) -> Option<EventRule> {
        rule(line.split(' ').next()?).ok()
    }

    pub fn names(&self, event: &EventDescription) -> bool {
        let named = match self.pattern.contains(':') {
            true => glob(&self.pattern, &event.full_name()),
            false => glob(&self.pattern, &event.provider),
        };
        named && self.level_max.is_none_or(|max| event.level <= max)
    }
}

/// What all rules together mean for an event.
pub(super) fn verdict(rules: &[EventRule], event: &EventDescription) -> Verdict {
    let mut filters = Vec::new();
    for rule in rules.iter().filter(|rule| rule.names(event)) {
        match &rule.filter {
            None => return Verdict::Wanted,
            Some(filter) => filters.push(filter.root.clone()),
        }
    }
    match filters.is_empty() {
        true => Verdict::Unwanted,
        false => Verdict::If(Expr::new(Cond::any(filters))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(level: u8) -> EventDescription {
        let mut event = EventDescription::new(1, "npt", "loop");
        event.level = level;
        event
    }

    #[test]
    fn a_word_names_events_up_to_a_level_and_may_filter_them() {
        let check = |words: &[&str], level: u8, expect: Verdict| {
            let rules: Vec<_> = words
                .iter()
                .flat_map(|word| parse(word).expect("rules"))
                .collect();
            assert_eq!(verdict(&rules, &described(level)), expect, "{words:?}");
        };
        let only = |filter: &str| Verdict::If(Expr::parse(filter).expect("a filter"));
        check(&["npt"], 14, Verdict::Wanted);
        check(&["n*:l??p"], 14, Verdict::Wanted);
        check(&["web,npt:*"], 14, Verdict::Wanted);
        check(&["npt:lo"], 14, Verdict::Unwanted);
        check(&["npt:*:warning"], 4, Verdict::Wanted);
        check(&["npt:*:WARNING"], 5, Verdict::Unwanted);
        check(&["npt:*:5"], 5, Verdict::Wanted);
        check(&["npt:* i in (1, 2)"], 14, only("i in (1, 2)"));
        check(&["npt:*:3 i == 1"], 4, Verdict::Unwanted);
        check(&["npt:* i == 1", "npt"], 4, Verdict::Wanted);
        check(&["npt i == 1", "npt j == 2"], 4, only("i == 1 || j == 2"));
    }

    #[test]
    fn what_is_no_wish_is_refused() {
        for word in ["", "a b!", "a-b", "a,", "a:b:loud", "a:b:15"] {
            assert!(parse(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_process_is_told_what_it_can_switch_on_by_itself() {
        let check = |word: &str, expect: &str| {
            let rules = parse(word).expect("rules");
            assert_eq!(rules[0].announced(), expect);
        };
        check("npt:*", "npt:*");
        check("npt:*:err", "npt:*:3");
        check("npt:*:err i > 5", "npt:*:3 filtered");
    }
}
