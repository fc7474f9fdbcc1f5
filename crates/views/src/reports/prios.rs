//! The priorities that a thread had, each with how often it was given.

use std::collections::BTreeMap;
use std::fmt;

/// Priorities on LTTng's scale; none stands for one that nobody knew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prios(BTreeMap<Option<i32>, u64>);

impl Prios {
    pub fn add(&mut self, prio: Option<i32>) {
        *self.0.entry(prio).or_default() += 1;
    }
}

/// As in `[-61, 20 (3 times)]`.
impl fmt::Display for Prios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (place, (prio, count)) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            match prio {
                Some(prio) => write!(f, "{prio}")?,
                None => f.write_str("None")?,
            }
            if *count > 1 {
                write!(f, " ({count} times)")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_stand_in_order_with_how_often_each_was_given() {
        let check = |given: &[i32], expect: &str| {
            let mut prios = Prios::default();
            given.iter().for_each(|prio| prios.add(Some(*prio)));
            assert_eq!(prios.to_string(), expect);
        };
        check(&[], "[]");
        check(&[20], "[20]");
        check(&[20, -61, 20], "[-61, 20 (2 times)]");
    }
}
