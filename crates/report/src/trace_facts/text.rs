//! What a trace holds, as people read it.

use std::fmt::Write;

use event::{Duration, Instant, civil_date};
use trace::{PartInfo, StreamInfo};

use super::TraceFacts;
use crate::count::{counted, counted_with};

const NS_PER_S: i64 = 1_000_000_000;
const S_PER_DAY: i64 = 86_400;

/// The facts as a summary, then a table of classes and one of streams.
pub fn trace_facts_text(facts: &TraceFacts) -> String {
    let mut text = String::new();
    summary(&mut text, facts);
    missing(&mut text, facts);
    classes(&mut text, facts);
    for part in &facts.parts {
        part_text(&mut text, part);
    }
    text
}

/// Formatting into a `String` cannot fail.
fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
    text.push('\n');
}

fn summary(text: &mut String, facts: &TraceFacts) {
    let streams: usize = facts.parts.iter().map(|part| part.streams.len()).sum();
    let sizes = facts.parts.iter().flat_map(|part| &part.streams);
    let bytes: u64 = sizes.map(|stream| stream.size_bytes).sum();
    let format = |part: &PartInfo| format!("{} {}", part.format, part.format_version);
    let mut formats: Vec<_> = facts.parts.iter().map(format).collect();
    formats.dedup();
    let formats: Vec<&str> = formats.iter().map(|format| format.trim_end()).collect();
    line(
        text,
        format_args!(
            "format   {}, {}, {}, {}",
            formats.join(" and "),
            counted(facts.parts.len() as u64, "trace"),
            counted(streams as u64, "stream file"),
            size(bytes),
        ),
    );
    let cpus = counted(facts.cpus.len() as u64, "CPU");
    let unrecorded: Vec<String> = facts.unrecorded.iter().map(ToString::to_string).collect();
    let unrecorded = match unrecorded.len() {
        0 => String::new(),
        _ => format!(
            "; no stream of {}, which events name",
            unrecorded.join(", ")
        ),
    };
    line(text, format_args!("cpus     {cpus}{unrecorded}"));
    let duration = facts.events_range.map(|(first, last)| {
        let length = last.since(first);
        line(
            text,
            format_args!(
                "time     {} to {} UTC ({length})",
                utc(facts.wall_offset_ns, first),
                utc(facts.wall_offset_ns, last),
            ),
        );
        line(
            text,
            format_args!("clock    {first} s to {last} s of the trace's clock"),
        );
        length
    });
    let rate = duration
        .filter(|length| length.as_ns() > 0)
        .map(|length| facts.events as f64 * NS_PER_S as f64 / length.as_ns() as f64);
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate:.0} a second"));
    line(
        text,
        format_args!(
            "events   {} of {} ({} declared){rate}",
            facts.events,
            counted_with(facts.classes.len() as u64, "class", "classes"),
            facts.declared_classes,
        ),
    );
}

fn missing(text: &mut String, facts: &TraceFacts) {
    let losses = &facts.losses;
    let mut words = Vec::new();
    if losses.places > 0 {
        let places = counted(losses.places, "place");
        words.push(format!("{} discarded in {places}", losses.discarded));
    }
    if losses.uncounted_places > 0 {
        let places = counted(losses.uncounted_places, "place");
        words.push(format!("an unknown number in {places}"));
    }
    if words.is_empty() {
        words.push("none".to_owned());
    }
    line(text, format_args!("lost     {}", words.join(", ")));
    let disorder = &facts.disorder;
    if disorder.packets > 0 || disorder.events > 0 {
        let packets = counted(disorder.packets, "packet");
        let events = counted(disorder.events, "event");
        line(
            text,
            format_args!("order    {packets} put in order, {events} out of order"),
        );
    }
    for damage in &facts.damages {
        line(
            text,
            format_args!(
                "damage   {} at byte {}: {}",
                damage.file, damage.offset_bytes, damage.reason
            ),
        );
    }
    for part in &facts.parts {
        violations(text, part);
    }
    let unnamed = facts.damage_count - facts.damages.len() as u64;
    if unnamed > 0 {
        line(text, format_args!("damage   {unnamed} more"));
    }
}

fn violations(text: &mut String, part: &PartInfo) {
    let found = &part.violations;
    let path = match part.path.as_str() {
        "" => String::new(),
        path => format!("of {path}, "),
    };
    for violation in &found.first {
        let (at, what) = (violation.line, &violation.what);
        line(text, format_args!("metadata {path}line {at}: {what}"));
    }
    let unnamed = found.count - found.first.len() as u64;
    if unnamed > 0 {
        line(text, format_args!("metadata {path}{unnamed} more"));
    }
}

fn classes(text: &mut String, facts: &TraceFacts) {
    if facts.classes.is_empty() {
        return;
    }
    line(text, format_args!("\n    events  share %  class"));
    for class in &facts.classes {
        let share = class.events as f64 * 100.0 / facts.events.max(1) as f64;
        line(
            text,
            format_args!("{:>10}  {share:>7.2}  {}", class.events, class.name),
        );
    }
}

fn part_text(text: &mut String, part: &PartInfo) {
    let name = if part.path.is_empty() {
        "."
    } else {
        &part.path
    };
    line(text, format_args!("\ntrace {name}"));
    for (key, value) in &part.environment {
        line(text, format_args!("  {key} = {value}"));
    }
    for clock in &part.clocks {
        line(
            text,
            format_args!(
                "  clock {}: {} Hz, {} s behind the wall clock",
                clock.name,
                clock.frequency_hz,
                Instant::from_ns(clock.wall_offset.as_ns()),
            ),
        );
    }
    if part.streams.is_empty() {
        return;
    }
    line(
        text,
        format_args!(
            "   cpu  packets  discarded  gaps        bytes         begin s           end s  file"
        ),
    );
    part.streams
        .iter()
        .for_each(|stream| stream_line(text, stream));
}

fn stream_line(text: &mut String, stream: &StreamInfo) {
    let cpu = stream.cpu.map_or("-".to_owned(), |cpu| cpu.0.to_string());
    let (begin, end) = match &stream.range {
        Some(range) => {
            let last = range.end - Duration::from_ns(1);
            (range.begin.to_string(), last.to_string())
        }
        None => ("-".to_owned(), "-".to_owned()),
    };
    line(
        text,
        format_args!(
            "{cpu:>6} {:>8} {:>10} {:>5} {:>12} {begin:>15} {end:>15}  {}",
            stream.packets, stream.discarded, stream.packet_gaps, stream.size_bytes, stream.file
        ),
    );
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// `2026-11-20 11:47:13.000000001`
fn utc(wall_offset_ns: i64, instant: Instant) -> String {
    let wall_ns = i128::from(wall_offset_ns) + i128::from(instant.as_ns());
    let seconds = wall_ns.div_euclid(NS_PER_S.into()) as i64;
    let ns = wall_ns.rem_euclid(NS_PER_S.into());
    let (days, second) = (seconds.div_euclid(S_PER_DAY), seconds.rem_euclid(S_PER_DAY));
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ns:09}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_a_date_in_utc() {
        let check = |wall_ns: i64, expect: &str| {
            assert_eq!(utc(wall_ns, Instant::from_ns(0)), expect);
        };
        check(0, "1970-01-01 00:00:00.000000000");
        check(-1, "1969-12-31 23:59:59.999999999");
        check(951_782_400_000_000_000, "2000-02-29 00:00:00.000000000");
        check(1_795_175_233_000_000_007, "2026-11-20 11:47:13.000000007");
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_people_would_choose() {
        let check = |bytes, expect: &str| assert_eq!(size(bytes), expect);
        check(17, "17 bytes");
        check(2_048, "2.0 KiB");
        check(5 << 20, "5.0 MiB");
        check(3 << 30, "3.00 GiB");
    }
}
