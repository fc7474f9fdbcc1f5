//! What became of a recording on the way to another host, for people.

use std::fmt::Write as _;

use capture::session::StreamStatus;

/// How far the other host is, as lines that `indent` begins.
pub(super) fn text(stream: &StreamStatus, indent: &str) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let cuts = match stream.figures.cuts {
        0 => String::new(),
        1 => ", 1 connection broke".to_owned(),
        cuts => format!(", {cuts} connections broke"),
    };
    let mut text = format!(
        "{indent}streamed: {:.1} MB to {}{cuts}; at most {:.1} of {:.1} MB waited\n",
        megabytes(stream.figures.delivered_bytes),
        stream.to,
        megabytes(stream.figures.waiting_bytes_most),
        megabytes(stream.figures.spool_bytes),
    );
    // Writing to a String cannot fail, here and below.
    if stream.figures.lost_events > 0 {
        let lost = stream.figures.lost_events;
        let _ = writeln!(
            text,
            "{indent}{lost} events lost: the spool, or its disk, was full; see --spool"
        );
    }
    for rest in &stream.rest {
        let events = rest.events;
        let _ = match &rest.path {
            Some(path) => writeln!(
                text,
                "{indent}{events} events did not get through: {}",
                path.display()
            ),
            None => writeln!(
                text,
                "{indent}{events} events did not get through, and could not be kept"
            ),
        };
    }
    if let Some(trouble) = &stream.trouble {
        let _ = writeln!(text, "{indent}no connection: {trouble}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::session::RestStatus;
    use relay::Figures;

    #[test]
    fn what_is_lost_and_what_did_not_get_through_is_said() {
        let check = |stream: &StreamStatus, expect: &str| assert_eq!(text(stream, "  "), expect);
        let mut stream = StreamStatus {
            to: "logger:7423".to_owned(),
            figures: Figures {
                delivered_bytes: 2_000_000,
                spool_bytes: 4_000_000,
                ..Figures::default()
            },
            ..StreamStatus::default()
        };
        let first = "  streamed: 2.0 MB to logger:7423; at most 0.0 of 4.0 MB waited\n";
        check(&stream, first);
        stream.figures.cuts = 1;
        stream.figures.waiting_bytes_most = 4_000_000;
        stream.figures.lost_events = 7;
        stream.trouble = Some("cannot reach logger:7423: timed out".to_owned());
        let rest = |path: Option<&str>, events| RestStatus {
            path: path.map(Into::into),
            events,
        };
        stream.rest = vec![rest(Some("/t"), 3), rest(None, 2)];
        let expect = "  streamed: 2.0 MB to logger:7423, 1 connection broke; at most 4.0 of 4.0 \
                      MB waited\n  7 events lost: the spool, or its disk, was full; see --spool\n  \
                      3 events did not get through: /t\n  2 events did not get through, and could \
                      not be kept\n  no connection: cannot reach logger:7423: timed out\n";
        check(&stream, expect);
    }
}
