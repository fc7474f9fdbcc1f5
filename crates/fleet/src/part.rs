//! Which intervals of a day and a boot go into which file, so that a file only ever grows.
//!
//! A file is called after its first interval. It is written anew with all that followed for as
//! long as the store has that first one; when it has not, what is new begins another file.

use serde::{Deserialize, Serialize};

/// The file that a day and a boot had last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Where its first interval begins.
    pub first_ns: i64,
    /// Where its last one does.
    pub last_ns: i64,
    /// How many it has.
    pub count: usize,
}

impl Known {
    fn of(begins_ns: &[i64]) -> Option<Known> {
        Some(Known {
            first_ns: *begins_ns.first()?,
            last_ns: *begins_ns.last()?,
            count: begins_ns.len(),
        })
    }
}

/// The file that is to be written, from the begins of the intervals that the store has, in their
/// order; none when there is nothing new.
pub(crate) fn next(begins_ns: &[i64], known: Option<Known>) -> Option<(&[i64], Known)> {
    let place = |ns: i64| begins_ns.iter().position(|begin| *begin == ns);
    let from = match known {
        None => 0,
        Some(known) => match (place(known.first_ns), place(known.last_ns)) {
            (Some(first), _) => first,
            (None, Some(last)) => last + 1,
            // Another store, or one that has lost all that was pushed.
            (None, None) => 0,
        },
    };
    let part = &begins_ns[from..];
    let new = Known::of(part)?;
    (known != Some(new)).then_some((part, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_until_its_first_interval_is_gone_and_then_another_begins() {
        let known = |first_ns, last_ns, count| {
            Some(Known {
                first_ns,
                last_ns,
                count,
            })
        };
        let check = |begins_ns: &[i64], before: Option<Known>, expect: Option<&[i64]>| {
            let found = next(begins_ns, before);
            assert_eq!(
                found.map(|(part, _)| part),
                expect,
                "{begins_ns:?} {before:?}"
            );
        };
        check(&[1, 2, 3], None, Some(&[1, 2, 3]));
        check(&[1, 2, 3], known(1, 3, 3), None);
        check(&[1, 2, 3, 4], known(1, 3, 3), Some(&[1, 2, 3, 4]));
        // The oldest were removed: what is in the first file stays there.
        check(&[3, 4], known(1, 3, 3), Some(&[4]));
        check(&[3], known(1, 3, 3), None);
        check(&[4, 5], known(4, 4, 1), Some(&[4, 5]));
        // All of them were.
        check(&[7, 8], known(1, 3, 3), Some(&[7, 8]));
        // The wall clock was set back in between.
        check(&[5, 6, 2, 3], known(5, 6, 2), Some(&[5, 6, 2, 3]));
        check(&[5, 6, 2, 3], known(5, 3, 4), None);
        check(&[], None, None);
    }
}
