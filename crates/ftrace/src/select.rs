//! The full name of a tracepoint.

use std::fmt;

/// A tracepoint by system and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    /// The system, such as `sched`.
    pub system: String,
    /// The event, such as `sched_switch`.
    pub name: String,
}

impl EventName {
    /// From `system:name`; none when there is no colon, or a part is no plain word (so that it can
    /// never lead out of a directory).
    pub fn parse(text: &str) -> Option<Self> {
        let (system, name) = text.trim().split_once(':')?;
        let plain = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        (plain(system) && plain(name)).then(|| EventName {
            system: system.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// `system:name`
impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.system, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_its_directory() {
        let check = |text: &str, expect: Option<&str>| {
            let parsed = EventName::parse(text).map(|name| name.to_string());
            assert_eq!(parsed.as_deref(), expect, "{text}");
        };
        check("sched:sched_switch\n", Some("sched:sched_switch"));
        check("sched", None);
        check("../..:x", None);
        check("sched:../x", None);
        check("sched:", None);
        check("a:b:c", None);
    }
}
