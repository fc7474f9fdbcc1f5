//! Filters of a recording: from the language of every verb to the kernel's own words.

use std::collections::BTreeMap;

use event::{Error, ErrorKind, EventClass, FieldType, Integer, Result};
use expr::Expr;
use expr::words::{Kind as InKernel, Layout, Source as KernelField, in_kernel_words};
use ftrace::lttng::{Plan, Source};
use ftrace::{EventFormat, EventName, FormatField, Formats, Kind, Scalar};

use crate::syscalls;

/// The system of tracepoints that have an event for each call.
const SYSTEM: &str = "syscalls";
/// The kernel's `TASK_COMM_LEN`.
const COMM_BYTES: u32 = 16;
/// Types that the kernel's filter takes for texts of the kernel.
const POINTERS_TO_TEXT: [&str; 2] = ["char *", "const char *"];

/// What each event's `filter` file is to hold. Where several filters are of one event, it is
/// recorded when one of them holds, as with LTTng's event rules; none when one always holds.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for what cannot be read, [`ErrorKind::NotFound`] for a field that
/// the event lacks, [`ErrorKind::Unsupported`] for what the kernel cannot answer exactly.
pub(crate) fn filters<'c>(
    typed: &'c [(EventName, String)],
    formats: &Formats,
) -> Result<BTreeMap<&'c EventName, String>> {
    let mut found: BTreeMap<&EventName, Option<String>> = BTreeMap::new();
    for (event, text) in typed {
        let full_name = event.to_string();
        let mut all = formats.iter();
        let Some(format) = all.find(|format| format.full_name() == full_name) else {
            return Err(not_recorded(event, text));
        };
        let words = in_kernel_words(&Expr::parse(text)?, text, &layout(format))?;
        let joined = match (found.remove(event), words) {
            (None, words) => words,
            (Some(Some(before)), Some(words)) => Some(format!("({before}) || ({words})")),
            _ => None,
        };
        found.insert(event, joined);
    }
    let found = found.into_iter();
    Ok(found
        .filter_map(|(event, words)| Some((event, words?)))
        .collect())
}

/// Refuses a filter of an event that does not come.
pub(crate) fn not_recorded(event: &EventName, text: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, "a filter on an event not recorded")
        .found(format!("{event}: {text}"))
        .fix(format!("add --events {event}"))
}

/// The event as the recording has it without a filter, and what the kernel has of it.
fn layout(format: &EventFormat) -> Layout {
    let (plan, class) = Plan::compile(format);
    let mut layout = Layout::new(&class.name);
    match with_contents(format, &class.name) {
        Some(recorded) => {
            let calls = syscalls::InKernel::new();
            for field in recorded.fields.iter() {
                let own = calls.field(format, &field.name);
                let source = argument(own, &field.name, &field.ty);
                layout.add(&field.name, field.ty.clone(), source);
            }
        }
        None => {
            for (field, source) in class.fields.iter().zip(plan.sources()) {
                let source = self::source(format, &field.name, source);
                layout.add(&field.name, field.ty.clone(), source);
            }
        }
    }
    add_kernel_names(&mut layout, format, &plan, &class);
    add_running(&mut layout);
    layout
}

/// Who runs at the event: the kernel notes the number with each, and its filters know the name.
fn add_running(layout: &mut Layout) {
    let tid = KernelField {
        name: "common_pid".to_owned(),
        kind: InKernel::Integer {
            bits: 32,
            signed: true,
            plus: 0,
        },
    };
    layout.add_context("tid", FieldType::Integer(Integer::le(32, true)), tid);
    let size_bytes = COMM_BYTES;
    let name = KernelField {
        name: "COMM".to_owned(),
        kind: InKernel::Text { size: size_bytes },
    };
    layout.add_context("procname", FieldType::Text { size_bytes }, name);
}

/// A system call with its contents, as it is recorded where BPF may be.
pub(crate) fn with_contents(format: &EventFormat, name: &str) -> Option<EventClass> {
    let mut classes = syscalls::system_call_classes().into_iter();
    (format.system == SYSTEM).then(|| classes.find(|class| class.name == name))?
}

/// What the kernel has of a field of a system call, where it has something: its `own`.
fn argument(own: Option<&FormatField>, name: &str, ty: &FieldType) -> KernelField {
    let kind = match (own, ty) {
        (Some(own), FieldType::Integer(_)) => kind_of(own, 0, u32::MAX),
        (Some(_), _) => InKernel::Address,
        (None, _) => InKernel::Other,
    };
    let name = own.map_or(name, |own| &own.name).to_owned();
    KernelField { name, kind }
}

fn source(format: &EventFormat, name: &str, source: Source) -> KernelField {
    let (at, plus, kept) = match source {
        Source::Integer { at, plus, .. } => (at, plus, u32::MAX),
        Source::Bytes { at, .. } | Source::Dynamic { at, .. } => (at, 0, u32::MAX),
        Source::Text { at, size } => (at, 0, size),
        Source::Made => (u32::MAX, 0, 0),
    };
    let mut own = format.fields.iter().chain(&format.common);
    match own.find(|own| own.offset_bytes == at) {
        Some(own) => KernelField {
            name: own.name.clone(),
            kind: kind_of(own, plus, kept),
        },
        None => KernelField {
            name: name.to_owned(),
            kind: InKernel::Other,
        },
    }
}

/// A field that is `plus` more in the recording, where a text has `kept` bytes at most.
fn kind_of(own: &FormatField, plus: i64, kept: u32) -> InKernel {
    match own.kind {
        Kind::One(Scalar::Integer { .. }) if POINTERS_TO_TEXT.contains(&own.c_type.as_str()) => {
            InKernel::Address
        }
        Kind::One(Scalar::Integer {
            size_bytes, signed, ..
        }) => InKernel::Integer {
            bits: size_bytes * 8,
            signed,
            plus,
        },
        Kind::Array {
            element: Scalar::Character,
            count,
        } if (1..=kept).contains(&count) => InKernel::Text { size: count },
        Kind::Dynamic {
            element: Scalar::Character,
            ..
        } => InKernel::Dynamic,
        _ => InKernel::Other,
    }
}

/// What the kernel calls otherwise than LTTng, with LTTng's values; and what LTTng leaves out.
fn add_kernel_names(layout: &mut Layout, format: &EventFormat, plan: &Plan, class: &EventClass) {
    for own in format.fields.iter().chain(&format.common) {
        let offset = |source: &Source| match *source {
            Source::Integer { at, .. }
            | Source::Bytes { at, .. }
            | Source::Text { at, .. }
            | Source::Dynamic { at, .. } => Some(at),
            Source::Made => None,
        };
        let place = plan
            .sources()
            .position(|source| offset(&source) == Some(own.offset_bytes));
        let known =
            place.and_then(|place| Some((class.fields.get(place)?, plan.sources().nth(place)?)));
        match (known, own.kind) {
            (Some((field, from)), _) => {
                let source = source(format, &own.name, from);
                layout.add_alias(&own.name, field.ty.clone(), source);
            }
            (None, kind) => {
                let Some(ty) = native(kind) else { continue };
                let kind = kind_of(own, 0, u32::MAX);
                let name = own.name.clone();
                layout.add_alias(&own.name, ty, KernelField { name, kind });
            }
        }
    }
}

fn native(kind: Kind) -> Option<FieldType> {
    match kind {
        Kind::One(Scalar::Integer {
            size_bytes, signed, ..
        }) => Some(FieldType::Integer(Integer::le(size_bytes * 8, signed))),
        Kind::Array {
            element: Scalar::Character,
            count,
        } => Some(FieldType::Text { size_bytes: count }),
        Kind::Dynamic {
            element: Scalar::Character,
            ..
        } => Some(FieldType::String),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ftrace::PageLayout;

    use super::*;

    const COMMON: &str = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

    fn format(system: &str, name: &str, fields: &[(&str, u32, u32, u32)]) -> EventFormat {
        let mut text = format!("name: {name}\nID: {}\nformat:\n{COMMON}", name.len());
        for (declared, at, size, signed) in fields {
            text += &format!("\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{signed};\n");
        }
        EventFormat::parse(system, &text).expect("a format")
    }

    fn formats() -> Formats {
        let switch = [
            ("pid_t prev_pid", 24, 4, 1),
            ("char next_comm[16]", 40, 16, 0),
            ("pid_t next_pid", 56, 4, 1),
            ("int next_prio", 60, 4, 1),
        ];
        let call = [
            ("int __syscall_nr", 8, 4, 1),
            ("int dfd", 16, 8, 0),
            ("const char * filename", 24, 8, 0),
        ];
        let list = [
            format("sched", "sched_switch", &switch),
            format("syscalls", "sys_enter_openat", &call),
        ];
        Formats::new(PageLayout::LP64, list)
    }

    fn words(typed: &[(&str, &str)]) -> Result<Vec<String>> {
        let event = |name: &str| EventName::parse(name).expect("a name");
        let typed = typed
            .iter()
            .map(|(name, text)| (event(name), (*text).to_owned()));
        let typed: Vec<_> = typed.collect();
        Ok(filters(&typed, &formats())?.into_values().collect())
    }

    #[track_caller]
    fn check(event: &str, filter: &str, expect: &str) {
        let words = words(&[(event, filter)]).expect(filter);
        assert_eq!(words, [expect], "{filter}");
    }

    #[test]
    fn a_filter_in_the_recordings_names_and_scale_is_in_the_kernels_for_the_kernel() {
        let switch = "sched:sched_switch";
        check(switch, "next_tid == 5", "next_pid == 5");
        check(switch, "next_pid == 5", "next_pid == 5");
        check(switch, "next_prio == 20", "next_prio == 120");
        check(switch, "$tid == 5", "prev_pid == 5");
        check(switch, "common_pid != 0", "common_pid != 0");
        check(switch, "next_comm == \"g\\x74\"", "next_comm == \"gt\"");
        let call = "syscalls:sys_enter_openat";
        check(
            call,
            "dfd == 3",
            "dfd & 1 && dfd & 2 && !(dfd & 4294967292)",
        );
    }

    #[test]
    fn who_runs_at_an_event_is_known_to_the_kernel_too() {
        let call = "syscalls:sys_enter_openat";
        check(call, "$tid == 5", "common_pid == 5");
        check(call, "$ctx.tid != 5", "common_pid != 5");
        check(call, "$procname == \"jackd\"", "COMM == \"jackd\"");
        check(call, "$ctx.procname == \"jack*\"", "COMM ~ \"\\jack*\"");
        // A switch is of the task that it takes away.
        check("sched:sched_switch", "$ctx.tid == 5", "prev_pid == 5");
    }

    #[test]
    fn of_several_filters_of_one_event_any_may_hold() {
        let event = "sched:sched_switch";
        let both = words(&[(event, "next_tid == 1"), (event, "next_tid == 2")]);
        assert_eq!(both.expect("two"), ["(next_pid == 1) || (next_pid == 2)"]);
        let always = words(&[(event, "next_tid == 1"), (event, "$name == \"sched_*\"")]);
        assert!(always.expect("one always holds").is_empty());
    }

    #[test]
    fn what_the_record_lacks_and_the_recording_has_is_refused() {
        let check = |event: &str, filter: &str, what: &str| {
            let error = words(&[(event, filter)]).expect_err(filter);
            assert!(error.what().contains(what), "{filter}: {error}");
            assert!(error.fixed_by().is_some(), "{filter}");
        };
        let call = "syscalls:sys_enter_openat";
        check(
            call,
            "filename == \"/etc/*\"",
            "an address in the program's memory",
        );
        check(call, "filename != 0", "an address in the program's memory");
        check(call, "flags_names contains \"O_RDWR\"", "no such text");
        check("sched:sched_waking", "tid == 1", "not recorded");
    }
}
