//! Which events a recording would have: of the kernel, and of programs that run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use capture::{EventSelection, Listed, UserConfig};
use event::Result;
use ftrace::{EventName, Tracefs};
use ring::{EventDescription, FieldDescription, FieldKind, Number};

use crate::exit::{Outcome, stdout_error};
use crate::options::RecordOptions;

/// Of processes with the same events, so many are told by their ids.
const PIDS_MAX: usize = 8;

/// Prints them.
pub(super) fn list(options: &RecordOptions) -> Result<Outcome> {
    let (mut text, mut absent) = (String::new(), Vec::new());
    if options.kernel {
        absent = of_kernel(options, &mut text)?;
    }
    if let Some(user) = &options.user {
        absent.extend(of_programs(user, &mut text)?);
    }
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    for absent in absent {
        note!("{absent}");
    }
    Ok(Outcome::Fine)
}

fn of_kernel(options: &RecordOptions, text: &mut String) -> Result<Vec<String>> {
    let available = Tracefs::find()?.available_events()?;
    let selected = EventSelection::new(&options.events).resolve(&available)?;
    for EventName { system, name } in &selected.events {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{system}:{name}");
    }
    let absent = selected.absent.iter();
    Ok(absent
        .map(|absent| format!("this kernel has no {absent}"))
        .collect())
}

fn of_programs(user: &UserConfig, text: &mut String) -> Result<Vec<String>> {
    let (listed, mut told) = capture::list(user)?;
    if listed.is_empty() && told.is_empty() {
        let words = user.words().join(", ");
        told.push(format!("no program that runs has an event of '{words}'"));
    }
    text.push_str(&listing(&listed));
    Ok(told)
}

/// Processes of one name with the same events stand together.
fn listing(listed: &[Listed]) -> String {
    let mut groups: BTreeMap<(&str, String), Vec<i32>> = BTreeMap::new();
    for process in listed {
        let events = process.events.iter().map(line).collect();
        groups
            .entry((&process.name, events))
            .or_default()
            .push(process.pid);
    }
    let mut text = String::new();
    for ((name, events), pids) in groups {
        let shown: Vec<_> = pids.iter().take(PIDS_MAX).map(i32::to_string).collect();
        let more = match pids.len().checked_sub(PIDS_MAX) {
            Some(more) if more > 0 => format!(" and {more} more"),
            _ => String::new(),
        };
        let _ = write!(text, "{name} ({}{more})\n{events}", shown.join(", "));
    }
    text
}

/// An event with its level, as `--user` takes it, and its fields.
fn line(event: &EventDescription) -> String {
    let level = capture::LOG_LEVELS
        .get(usize::from(event.level))
        .unwrap_or(&"?");
    let fields: Vec<_> = event.fields.iter().map(field).collect();
    let name = event.full_name();
    let line = format!("  {name}:{level}  {}", fields.join(", "));
    format!("{}\n", line.trim_end())
}

fn field(field: &FieldDescription) -> String {
    let name = &field.name;
    let hidden = if field.hidden { " (filters alone)" } else { "" };
    let kind = match &field.kind {
        FieldKind::Number(number) => number_name(number),
        FieldKind::Enumeration(..) => "enumeration".to_owned(),
        FieldKind::Text => "text".to_owned(),
        FieldKind::Characters(count) => format!("text of {count}"),
        FieldKind::Array(number, count) => {
            format!("{count} of {}", number_name(number))
        }
        FieldKind::Sequence(number) => format!("sequence of {}", number_name(number)),
    };
    format!("{name}: {kind}{hidden}")
}

fn number_name(number: &Number) -> String {
    let letter = match number.integer() {
        Some(integer) if integer.signed => 'i',
        Some(_) => 'u',
        None => 'f',
    };
    format!("{letter}{}", u32::from(number.size_bytes) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_name_with_the_same_events_stand_together() {
        let process = |name: &str, pid: i32, level: u8| {
            let mut event = EventDescription::new(1, "npt", "loop");
            event.level = level;
            event.fields.push(FieldDescription {
                name: "what".to_owned(),
                kind: FieldKind::Text,
                hidden: level == 3,
            });
            Listed {
                pid,
                name: name.to_owned(),
                events: vec![event],
            }
        };
        let check = |listed: &[Listed], expect: &str| assert_eq!(listing(listed), expect);
        check(&[], "");
        let npt = "  npt:loop:debug  what: text\n";
        check(
            &[
                process("b", 3, 14),
                process("a", 2, 14),
                process("b", 1, 14),
            ],
            &format!("a (2)\n{npt}b (3, 1)\n{npt}"),
        );
        let many: Vec<_> = (0..10).map(|pid| process("a", pid, 14)).collect();
        check(
            &many,
            &format!("a (0, 1, 2, 3, 4, 5, 6, 7 and 2 more)\n{npt}"),
        );
        let error = "a (7)\n  npt:loop:err  what: text (filters alone)\n";
        check(&[process("a", 7, 3)], error);
    }
}
