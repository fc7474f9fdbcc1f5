//! `--keep`: how many of what is written stay, and in how much room.

use capture::Keep;
use event::{Error, ErrorKind, Result};

use super::parse_size;

/// Reads `20`, `10G` or `20/10G`, of what is called `things`, as `flag` has it.
pub(super) fn keep(flag: &str, text: &str, things: &str, fix: &str) -> Result<Keep> {
    let refuse = || {
        let what = format!("{flag} is no number of {things}");
        let error = Error::new(ErrorKind::InvalidInput, what);
        error.found(format!("'{text}'")).fix(fix)
    };
    let count = |text: &str| text.parse().ok().filter(|count| *count > 0);
    let bytes = |text: &str| parse_size(flag, text).map_err(|_| refuse());
    match text.split_once('/') {
        Some((things, room)) => Ok(Keep {
            count: count(things).ok_or_else(refuse)?,
            bytes: Some(bytes(room)?),
        }),
        None => match count(text) {
            Some(count) => Ok(Keep { count, bytes: None }),
            None => Ok(Keep {
                bytes: Some(bytes(text)?),
                ..Keep::ALL
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_a_number_or_a_room_or_both() {
        let check = |text: &str, expect: Option<(usize, Option<u64>)>| {
            let found = keep("--keep", text, "archives", "as in 20").ok();
            let expect = expect.map(|(count, bytes)| Keep { count, bytes });
            assert_eq!(found, expect, "{text}");
        };
        check("20", Some((20, None)));
        check("200M", Some((usize::MAX, Some(200 << 20))));
        check("20/1G", Some((20, Some(1 << 30))));
        for text in ["0", "x", "3/x", "/1G", "3/", "0/1G", ""] {
            check(text, None);
        }
    }
}
