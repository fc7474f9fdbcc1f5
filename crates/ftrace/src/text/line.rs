//! One line of ftrace's text, taken apart.
//!
//! `comm-tid (tgid) [cpu] flags seconds.fraction: event: fields`, where the thread group and the
//! flags may be missing (`Documentation/trace/ftrace.rst` of the kernel). `perf script` writes
//! `comm  tid [cpu] seconds.fraction: period system:event: fields`, with `pid/tid` when it is asked
//! to, and the period when it has one.

use crate::limits::CPUS_MAX;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub comm: &'a str,
    pub tid: i32,
    pub cpu: u32,
    /// `d.h2.`; empty when the line has none.
    pub flags: &'a str,
    pub time_ns: i64,
    /// The event's name, as the text spells it.
    pub name: &'a str,
    pub rest: Rest<'a>,
}

/// What follows the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest<'a> {
    /// `name: …`
    Fields(&'a str),
    /// `sys_read(fd: 3, …)`
    Call(&'a str),
    /// `sys_read -> 0x5`
    Return(&'a str),
    /// `callee <-caller`
    Function(&'a str),
}

/// Takes a line apart; none when it is no event.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    let (head, cpu, tail) = cpu_column(line)?;
    let (comm, tid) = head;
    let (flags, time_ns, event) = time_column(tail)?;
    let (name, rest) = event_column(event)?;
    Some(Line {
        comm,
        tid,
        cpu,
        flags,
        time_ns,
        name,
        rest,
    })
}

/// The CPU in brackets, with the task before it: names may have brackets too.
fn cpu_column(line: &str) -> Option<((&str, i32), u32, &str)> {
    line.match_indices('[').take(8).find_map(|(at, _)| {
        let (cpu, tail) = line[at + 1..].split_once(']')?;
        let cpu = cpu.parse().ok().filter(|cpu| *cpu < CPUS_MAX)?;
        tail.starts_with([' ', '\t']).then_some(())?;
        Some((task(line[..at].trim())?, cpu, tail))
    })
}

/// `comm-tid`, or `comm-tid (tgid)`.
fn task(text: &str) -> Option<(&str, i32)> {
    let text = match text.strip_suffix(')') {
        Some(open) => open.rsplit_once('(')?.0.trim_end(),
        None => text,
    };
    let number = |tid: &str| tid.parse().ok().filter(|tid: &i32| *tid >= 0);
    if let Some((comm, tid)) = text.rsplit_once('-')
        && let Some(tid) = number(tid)
    {
        return Some((without_instance(comm.trim()), tid));
    }
    let (comm, tid) = text.rsplit_once([' ', '\t'])?;
    let tid = tid.rsplit_once('/').map_or(tid, |(_, tid)| tid);
    Some((comm.trim(), number(tid)?))
}

/// `instance:        comm`: `trace-cmd report` begins each line of an instance with its name.
fn without_instance(text: &str) -> &str {
    let named = [":  ", ":\t"].iter().find_map(|sign| text.split_once(sign));
    let comm = named.map(|(_, comm)| comm.trim_start());
    comm.filter(|comm| !comm.is_empty()).unwrap_or(text)
}

/// Flags, time and the rest.
fn time_column(tail: &str) -> Option<(&str, i64, &str)> {
    let tail = tail.trim_start();
    let (first, rest) = tail.split_once([' ', '\t'])?;
    if let Some(time_ns) = first.strip_suffix(':').and_then(time_ns) {
        return Some(("", time_ns, rest.trim_start()));
    }
    let (second, rest) = rest.trim_start().split_once([' ', '\t'])?;
    let time_ns = time_ns(second.strip_suffix(':')?)?;
    Some((first, time_ns, rest.trim_start()))
}

/// Seconds with a fraction; without one, ticks of a counter.
fn time_ns(text: &str) -> Option<i64> {
    let Some((seconds, fraction)) = text.split_once('.') else {
        return text.parse().ok().filter(|ticks| *ticks >= 0);
    };
    let digits = fraction.len();
    let is_sound = (1..=9).contains(&digits) && fraction.bytes().all(|b| b.is_ascii_digit());
    is_sound.then_some(())?;
    let seconds: i64 = seconds.parse().ok().filter(|seconds| *seconds >= 0)?;
    let fraction: i64 = fraction.parse().ok()?;
    let unit = 10i64.pow(9 - digits as u32);
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * unit)
}

fn event_column(event: &str) -> Option<(&str, Rest<'_>)> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let event = match event.split_once([' ', '\t']) {
        Some((period, event)) if is_number(period) => event.trim_start(),
        _ => event,
    };
    let event = without_system(event).unwrap_or(event);
    let end = event.find(|c| !is_letter(c)).unwrap_or(event.len());
    let (name, rest) = event.split_at(end);
    (!name.is_empty()).then_some(())?;
    if let Some(fields) = rest.strip_prefix(':') {
        return Some((name, Rest::Fields(fields.trim())));
    }
    if let Some(arguments) = rest.strip_prefix('(') {
        let arguments = arguments.trim_end();
        let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
        return Some((name, Rest::Call(arguments)));
    }
    let rest = rest.trim();
    if let Some(value) = rest.strip_prefix("-> ") {
        return Some((name, Rest::Return(value)));
    }
    let caller = rest.strip_prefix("<-")?;
    Some((name, Rest::Function(caller)))
}

/// `sched:sched_switch: …` without its first word.
fn without_system(event: &str) -> Option<&str> {
    let (system, event) = event.split_once(':')?;
    let is_word = |word: &str| {
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        !word.is_empty() && word.bytes().all(is_letter)
    };
    let name = event.split_once(':').map(|(name, _)| name);
    (is_word(system) && name.is_some_and(is_word)).then_some(event)
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [12 EVENTS DROPPED]`, `CPU:1 [EVENTS DROPPED]`, and what
/// `perf script --show-lost-events` prints: the CPU, and the number when the line says it.
pub(super) fn lost(line: &str) -> Option<(u32, Option<u64>)> {
    let Some(rest) = line.trim().strip_prefix("CPU:") else {
        return perf_lost(line);
    };
    let (cpu, words) = rest.split_once(' ')?;
    let words = words.trim().strip_prefix('[')?.strip_suffix(']')?;
    let count = match words.split(' ').collect::<Vec<_>>().as_slice() {
        ["LOST", count, "EVENTS"] | [count, "EVENTS", "DROPPED"] => Some(count.parse().ok()?),
        ["EVENTS", "DROPPED"] | ["LOST", "EVENTS"] => None,
        _ => return None,
    };
    Some((cpu.parse().ok().filter(|cpu| *cpu < CPUS_MAX)?, count))
}

/// `comm 12 [001] 5678.1: PERF_RECORD_LOST lost 51`
fn perf_lost(line: &str) -> Option<(u32, Option<u64>)> {
    let (_, cpu, tail) = cpu_column(line)?;
    let (_, _, record) = time_column(tail)?;
    let record = record.strip_prefix("PERF_RECORD_LOST")?;
    let (_, count) = record.trim_end().rsplit_once(" lost ")?;
    Some((cpu, count.parse().ok()))
}

/// Whether a line that is no event looks as if it had been one: it has a CPU in
/// brackets, or a time.
pub(super) fn is_like_an_event(line: &str) -> bool {
    if line.starts_with('#') || line.trim_start().starts_with("=>") {
        return false;
    }
    let has_cpu = line.match_indices('[').any(|(at, _)| {
        let digits = line[at + 1..].split_once(']').map(|(digits, _)| digits);
        digits.is_some_and(|digits| digits.len() >= 3 && is_number(digits))
    });
    let is_time = |word: &str| {
        let parts = word.strip_suffix(':').and_then(|word| word.split_once('.'));
        parts.is_some_and(|(seconds, fraction)| is_number(seconds) && is_number(fraction))
    };
    has_cpu || line.split_ascii_whitespace().any(is_time)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The `key=value` pairs of a text: a value ends where the next key begins.
pub(super) fn pairs(text: &str) -> Vec<(&str, &str)> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut value_end = 0;
    for (at, _) in text.match_indices('=') {
        let Some(begin) = key_begin(text, at) else {
            continue;
        };
        // `a=b=c`: the second sign belongs to the value.
        if begin < value_end {
            continue;
        }
        value_end = name_end(text, at + 1, &text[begin..at]).unwrap_or(at + 1);
        if let Some((key, value_at)) = open.replace((&text[begin..at], at + 1)) {
            pairs.push((key, value(&text[value_at..begin])));
        }
        if pairs.len() == PAIRS_MAX {
            break;
        }
    }
    if let Some((key, value_at)) = open {
        pairs.push((key, value(&text[value_at..])));
    }
    pairs
}

/// Where the key behind a task's name begins: a task may call itself `a prio=1`, and its number
/// comes next. None where `key` is no name's, or no number follows.
fn name_end(text: &str, value_at: usize, key: &str) -> Option<usize> {
    let prefix = key.strip_suffix("comm")?;
    let mut numbers = text[value_at..].rmatch_indices("pid=");
    numbers.find_map(|(at, _)| {
        let before = text[value_at..value_at + at].strip_suffix(prefix)?;
        before.ends_with(' ').then_some(value_at + before.len())
    })
}

/// No event has more fields.
const PAIRS_MAX: usize = 64;

/// Where the key before a sign begins; none when no key stands there.
fn key_begin(text: &str, sign: usize) -> Option<usize> {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    let length = bytes[..sign]
        .iter()
        .rev()
        .take_while(|b| is_letter(**b))
        .count();
    let begin = sign - length;
    let first = *bytes.get(begin)?;
    let before = begin.checked_sub(1).map(|at| bytes[at]);
    let is_free = before.is_none_or(|b| matches!(b, b' ' | b'\t' | b'[' | b'(' | b',' | b'{'));
    (length > 0 && !first.is_ascii_digit() && is_free).then_some(begin)
}

/// A value without what stands between it and the next key.
fn value(text: &str) -> &str {
    let text = text.trim_end_matches(['[', '(', '{']).trim();
    let text = text.strip_suffix("==>").unwrap_or(text).trim_end();
    let text = text.strip_suffix(',').unwrap_or(text);
    match text.contains(['[', '(', '{']) {
        true => text,
        false => text.trim_end_matches([']', ')', '}']),
    }
    .trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_line_is_taken_apart() {
        let check = |line: &str, expect: Option<(&str, i32, u32, i64, &str)>| {
            let found = parse(line);
            let found = found.map(|l| (l.comm, l.tid, l.cpu, l.time_ns, l.name));
            assert_eq!(found, expect, "{line}");
        };
        check(
            "  init-1  (  1) [000] d..2.     8.911233: sched_switch: prev_comm=init",
            Some(("init", 1, 0, 8_911_233_000, "sched_switch")),
        );
        check(
            "<idle>-0     (-----) [003] d..2 1234.5: local_timer_entry: vector=236",
            Some(("<idle>", 0, 3, 1_234_500_000_000, "local_timer_entry")),
        );
        check(
            " a [1] b-77   [001]  12.464084123: sys_read(fd: 3, buf: 7ff)",
            Some(("a [1] b", 77, 1, 12_464_084_123, "sys_read")),
        );
        check(
            "bash-1977 [000] .... 17284.993652: sys_close <-system_call_fastpath",
            Some(("bash", 1977, 0, 17_284_993_652_000, "sys_close")),
        );
        check(
            "nc3:        hackbench-13504 [000]  5003.583065: sched_switch:  a:1 [9] S ==> b:2 [9]",
            Some(("hackbench", 13504, 0, 5_003_583_065_000, "sched_switch")),
        );
        check(
            "sh-9 [000] 93252222292: sys_read -> 0x5",
            Some(("sh", 9, 0, 93_252_222_292, "sys_read")),
        );
        check(
            "a b  77 [001]  5678.123456:       sched:sched_switch: prev_comm=a b",
            Some(("a b", 77, 1, 5_678_123_456_000, "sched_switch")),
        );
        check(
            ":-1  12/77 [001]  5678.123456:   1 irq:irq_handler_exit: irq=1 ret=handled",
            Some((":-1", 77, 1, 5_678_123_456_000, "irq_handler_exit")),
        );
        check(
            "swapper     0 [001]  5678.1: 250000 cpu-clock:  ffffffff81 x+0x1 ([kernel])",
            Some(("swapper", 0, 1, 5_678_100_000_000, "cpu-clock")),
        );
        for line in [
            "",
            "\tffffffff8120 do_syscall_64+0x3b ([kernel.kallsyms])",
            "# tracer: nop",
            " => do_syscall_64",
            "cpus=8",
            "a-1 [0] 1.2.3: x: y",
        ] {
            check(line, None);
        }
        check("a-1 [99999] 1.2: x: y", None);
        check("a-1 [000] 99999999999999.000000: x: y", None);
    }

    #[test]
    fn a_value_ends_where_the_next_key_begins() {
        let check = |text: &str, expect: &[(&str, &str)]| assert_eq!(pairs(text), expect, "{text}");
        check(
            "prev_comm=a b prev_state=R+ ==> next_comm=x=y next_pid=7",
            &[
                ("prev_comm", "a b"),
                ("prev_state", "R+"),
                ("next_comm", "x=y"),
                ("next_pid", "7"),
            ],
        );
        check(
            "prev_comm=w prio=1 prev_pid=4 ==> next_comm=a next_pid=5 b next_pid=7",
            &[
                ("prev_comm", "w prio=1"),
                ("prev_pid", "4"),
                ("next_comm", "a next_pid=5 b"),
                ("next_pid", "7"),
            ],
        );
        check(
            "comm=a pid=1 child_comm=b x=1 child_pid=2",
            &[
                ("comm", "a"),
                ("pid", "1"),
                ("child_comm", "b x=1"),
                ("child_pid", "2"),
            ],
        );
        check("vec=9 [action=RCU]", &[("vec", "9"), ("action", "RCU")]);
        check("a=1, b=(2)", &[("a", "1"), ("b", "(2)")]);
        check("B|12|name", &[]);
        check("==", &[]);
        check("a=", &[("a", "")]);
    }

    #[test]
    fn lost_events_are_read_with_their_number() {
        assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), Some((1, Some(12))));
        assert_eq!(lost(" CPU:0 [EVENTS DROPPED]"), Some((0, None)));
        assert_eq!(lost("CPU:2 [7 EVENTS DROPPED]"), Some((2, Some(7))));
        assert_eq!(lost("CPU:x [LOST 12 EVENTS]"), None);
        let of_perf = " rustc 21179 [001]  8677.800063462: PERF_RECORD_LOST lost 51";
        assert_eq!(lost(of_perf), Some((1, Some(51))));
        let samples = of_perf.replace("LOST ", "LOST_SAMPLES ");
        assert_eq!(lost(&samples), Some((1, Some(51))));
    }
}
