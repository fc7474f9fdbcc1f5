//! The table of LTTng's names and types for the kernel's tracepoints: `names.tsv`.

use std::borrow::Cow;

/// The table, kept as data.
const TABLE: &str = include_str!("names.tsv");

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldWriting {
    /// As the format file types it.
    Native,
    /// An integer of this many bits.
    Integer {
        /// Width.
        size_bits: u8,
        /// Whether it is signed.
        signed: bool,
        /// Whether people expect hexadecimal.
        hexadecimal: bool,
    },
    /// A priority: the kernel's minus 100.
    Prio,
    /// A name of a task in 16 bytes.
    Text16,
    /// A text that ends with a zero byte.
    Text,
    /// The letters of a block request as flags.
    Rwbs,
    /// The task that was running (`common_pid`).
    Current,
    /// The thread group of the task in the field.
    ThreadGroup,
    /// Addresses up to the record's end.
    Addresses,
    /// The time that has passed since the instant in this field.
    Since(&'static str),
}

/// One field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldRow {
    /// LTTng's name.
    pub name: &'static str,
    /// The kernel's name.
    pub source: &'static str,
    /// How its value is written.
    pub writing: FieldWriting,
}

/// What LTTng makes of one tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// LTTng's name.
    pub name: String,
    /// Its fields; none when they are the kernel's own.
    pub fields: Option<Vec<FieldRow>>,
}

/// The row of `system:name`; none when LTTng has no other name and types for it than the kernel.
pub(crate) fn lookup(full_name: &str) -> Option<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.into_iter().find_map(|line| row(line, full_name))
}

/// The row of the tracepoint `name` of any system, for texts that do not say which. Patterns that
/// begin with a star would match names of other systems, and are passed over.
pub(crate) fn lookup_name(name: &str) -> Option<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.into_iter().find_map(|line| {
        let (system, pattern) = line.split_once('\t')?.0.split_once(':')?;
        (!pattern.starts_with('*')).then_some(())?;
        row(line, &format!("{system}:{name}"))
    })
}

fn row(line: &'static str, full_name: &str) -> Option<Row> {
    let mut columns = line.split('\t');
    let (pattern, name, fields) = (columns.next()?, columns.next()?, columns.next()?);
    let star = capture(pattern, full_name)?;
    let name = if name.contains('*') {
        Cow::Owned(name.replacen('*', star, 1))
    } else {
        Cow::Borrowed(name)
    };
    let fields = (fields != "*").then(|| {
        fields
            .split(' ')
            .filter(|field| !field.is_empty())
            .filter_map(field)
            .collect()
    });
    Some(Row {
        name: name.into_owned(),
        fields,
    })
}

/// What the pattern's star stands for in `text`; none when it does not match.
fn capture<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        Some((head, tail)) => text.strip_prefix(head)?.strip_suffix(tail),
        None => (pattern == text).then_some(""),
    }
}

fn field(text: &'static str) -> Option<FieldRow> {
    let (names, ty) = text.split_once(':').unwrap_or((text, ""));
    let (name, source) = names.split_once('=').unwrap_or((names, names));
    Some(FieldRow {
        name,
        source,
        writing: writing(ty)?,
    })
}

fn writing(ty: &'static str) -> Option<FieldWriting> {
    if let Some(begin) = ty.strip_prefix("since-") {
        return Some(FieldWriting::Since(begin));
    }
    Some(match ty {
        "" => FieldWriting::Native,
        "prio" => FieldWriting::Prio,
        "text16" => FieldWriting::Text16,
        "string" => FieldWriting::Text,
        "rwbs" => FieldWriting::Rwbs,
        "current" => FieldWriting::Current,
        "tgid" => FieldWriting::ThreadGroup,
        "addresses" => FieldWriting::Addresses,
        integer => {
            let (kind, bits) = integer.split_at_checked(1)?;
            let size_bits = bits.parse().ok()?;
            let (signed, hexadecimal) = (kind == "i", kind == "x");
            FieldWriting::Integer {
                size_bits,
                signed,
                hexadecimal,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_makes_sense() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<_> = line.split('\t').collect();
            assert_eq!(columns.len(), 3, "{line}");
            assert!(columns[0].contains(':'), "{line}");
            assert_eq!(
                columns[0].matches('*').count() > 0,
                columns[1].contains('*'),
                "{line}"
            );
            for text in columns[2].split(' ').filter(|text| *text != "*") {
                let field = field(text);
                assert!(field.is_some(), "{line}: {text}");
                if let Some(FieldWriting::Integer { size_bits, .. }) = field.map(|f| f.writing) {
                    assert!(matches!(size_bits, 8 | 16 | 32 | 64), "{line}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_tracepoint_finds_its_first_line_and_its_star() {
        let check = |full: &str, expect: Option<&str>| {
            assert_eq!(
                lookup(full).map(|row| row.name).as_deref(),
                expect,
                "{full}"
            );
        };
        check("sched:sched_switch", Some("sched_switch"));
        check("irq:softirq_raise", Some("irq_softirq_raise"));
        check(
            "irq_vectors:x86_platform_ipi_entry",
            Some("x86_irq_vectors_ipi_entry"),
        );
        check(
            "irq_vectors:local_timer_exit",
            Some("x86_irq_vectors_local_timer_exit"),
        );
        check("irq_vectors:vector_alloc", None);
        check(
            "timer:hrtimer_expire_entry",
            Some("timer_hrtimer_expire_entry"),
        );
        check("ext4:ext4_sync_file_enter", None);
    }
}
