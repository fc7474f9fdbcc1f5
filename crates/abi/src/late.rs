//! Reads what is told in short of a late activation.

use event::evidence::{EndKind, LateOne};
use event::{Error, ErrorKind, Instant, Result};

use crate::raw;

/// Reads one that came through its ring.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when the bytes are too few or a kind is unknown.
pub fn decode_late(bytes: &[u8]) -> Result<LateOne> {
    let corrupt = |found: String| {
        let what = "a record of the kernel's watch makes no sense";
        let fix = "report it: the program and its BPF part were not built together";
        Error::new(ErrorKind::Corrupt, what).found(found).fix(fix)
    };
    let late: raw::Late =
        raw::read(bytes).ok_or_else(|| corrupt(format!("{} bytes", bytes.len())))?;
    let kind = u8::try_from(late.end_kind).ok();
    let end_kind = kind
        .and_then(EndKind::from_value)
        .ok_or_else(|| corrupt(format!("end kind {}", late.end_kind)))?;
    let instant = |ns: u64| Instant::from_ns(ns as i64);
    Ok(LateOne {
        end_kind,
        origin: instant(late.origin_ns),
        began: (late.began_ns > 0).then(|| instant(late.began_ns)),
        end: instant(late.end_ns),
        task: late
            .target
            .named()
            .ok_or_else(|| corrupt("no target".to_owned()))?,
        culprit: late.culprit.named(),
        preemptions: late.preemptions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_whole_and_what_makes_no_sense_is_refused() {
        let mut late: raw::Late = raw::zeroed();
        (late.origin_ns, late.end_ns) = (1000, 26_000);
        late.target.tid = 7;
        late.target.comm[..6].copy_from_slice(b"victim");
        late.culprit.tid = -1;
        let read = decode_late(raw::bytes(&late)).expect("it is read");
        assert_eq!(read.latency().as_ns(), 25_000);
        assert_eq!((read.began, read.culprit), (None, None));
        assert_eq!(read.task.comm, "victim");
        assert!(decode_late(&raw::bytes(&late)[1..]).is_err());
        late.end_kind = 9;
        assert!(decode_late(raw::bytes(&late)).is_err());
    }
}
