//! Which events of applications are wanted: `GLOB[:LEVEL][ FILTER]`.

use event::{Error, ErrorKind, Result};
use expr::{Cond, Expr};
use ring::EventDescription;

use crate::select::glob;

/// LTTng's log levels, the gravest first: their numbers are their places.
pub const LOG_LEVELS: [&str; 15] = [
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
    /// Nor those that match one of these patterns.
    left_out: Vec<String>,
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

/// The patterns in words such as `a:b,c:*`: of events that are left out.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for what can be none.
pub(super) fn left_out(words: &[String]) -> Result<Vec<String>> {
    let all = words.iter().flat_map(|word| word.split(','));
    let checked = all.map(|text| match text.split(':').count() {
        0..=2 => pattern(text, "--exclude 'npt:noise'").map(str::to_owned),
        _ => Err(
            Error::new(ErrorKind::InvalidInput, "a level cannot be left out")
                .found(format!("'{text}'"))
                .fix("the level of --user leaves out what is less grave, as in 'npt:*:info'"),
        ),
    });
    checked.collect()
}

fn pattern<'a>(text: &'a str, example: &str) -> Result<&'a str> {
    let text = text.trim();
    let known = |c: char| c.is_ascii_alphanumeric() || "_:*?".contains(c);
    match !text.is_empty() && text.chars().all(known) {
        true => Ok(text),
        false => Err(
            Error::new(ErrorKind::InvalidInput, "not a pattern of events")
                .found(format!("'{text}'"))
                .fix(format!(
                    "as in {example}: letters, digits, '_', ':', '*' and '?'"
                )),
        ),
    }
}

fn rule(text: &str) -> Result<EventRule> {
    let text = pattern(text, "--user 'npt:*'")?;
    let mut parts = text.splitn(3, ':');
    let pattern: Vec<_> = parts.by_ref().take(2).collect();
    let level_max = parts.next().map(level).transpose()?;
    Ok(EventRule {
        pattern: pattern.join(":"),
        level_max,
        left_out: Vec::new(),
        filter: None,
    })
}

fn level(text: &str) -> Result<u8> {
    let number = text.parse().ok().filter(|level| *level < LOG_LEVELS.len());
    let place = || {
        let name = text.to_ascii_lowercase();
        LOG_LEVELS.iter().position(|level| *level == name)
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
        let left_out: String = self.left_out.iter().map(|out| format!("-{out}")).collect();
        let level = level.unwrap_or_default();
        format!("{}{level}{left_out}{filter}", self.pattern)
    }

    /// Events that match one of `patterns` are not meant.
    pub fn leave_out(&mut self, patterns: &[String]) {
        self.left_out.extend_from_slice(patterns);
    }

    /// From such a line; none when it is no pattern. Its filter is not told there.
    pub fn from_announced(line: &str) -> Option<EventRule> {
        let mut patterns = line.split(' ').next()?.split('-');
        let mut rule = rule(patterns.next()?).ok()?;
        rule.left_out = patterns.map(str::to_owned).collect();
        Some(rule)
    }

    pub fn names(&self, event: &EventDescription) -> bool {
        let names = |pattern: &String| match pattern.contains(':') {
            true => glob(pattern, &event.full_name()),
            false => glob(pattern, &event.provider),
        };
        names(&self.pattern)
            && !self.left_out.iter().any(names)
            && self.level_max.is_none_or(|max| event.level <= max)
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

    #[test]
    fn what_is_left_out_is_unwanted_by_each_rule_and_is_announced() {
        let check = |word: &str, out: &[&str], expect: Verdict, line: &str| {
            let out: Vec<_> = out.iter().map(|out| (*out).to_owned()).collect();
            let mut rules = parse(word).expect("rules");
            let out = left_out(&out).expect("patterns");
            rules.iter_mut().for_each(|rule| rule.leave_out(&out));
            assert_eq!(verdict(&rules, &described(14)), expect, "{word} {out:?}");
            assert_eq!(rules[0].announced(), line);
            let told = EventRule::from_announced(line).expect("a rule");
            let unfiltered = EventRule {
                filter: None,
                ..rules.remove(0)
            };
            assert_eq!(told, unfiltered);
        };
        let (on, off) = (Verdict::Wanted, Verdict::Unwanted);
        check("npt:*", &["npt:loop"], off.clone(), "npt:*-npt:loop");
        check("npt:*", &["npt:stop,web"], on, "npt:*-npt:stop-web");
        check("*", &["npt"], off.clone(), "*-npt");
        check("n*:*:14", &["a", "*:l?op"], off.clone(), "n*:*:14-a-*:l?op");
        check("npt i > 5", &["npt:loop"], off, "npt-npt:loop filtered");
        for word in ["", "a:b:info", "a-b", "a b"] {
            assert!(left_out(&[word.to_owned()]).is_err(), "{word}");
        }
    }
}
