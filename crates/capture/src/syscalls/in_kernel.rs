//! System calls as the kernel's tracepoints have them, by the names and types that they have with
//! their contents: a call that is recorded with a filter of its own reads like all others.

use std::collections::HashMap;

use event::{Base, Integer};
use ftrace::{EventFormat, FormatField};

use super::table::{self, Call, CallField, CallType, Source};

/// How the names of what is no argument begin: the call's number before them, and contents that
/// newer kernels put behind them.
const NOT_ARGUMENTS: &str = "__";

/// The table, by the names of calls.
pub(crate) struct InKernel {
    calls: HashMap<&'static str, Call>,
}

impl InKernel {
    /// Of programs of 64 bits: the kernel's tracepoints tell no others.
    pub fn new() -> InKernel {
        let native = table::calls().filter(|call| call.number.is_some());
        InKernel {
            calls: native.map(|call| (call.name, call)).collect(),
        }
    }

    /// The rows of the call whose entry or exit `format` is.
    fn rows(&self, format: &EventFormat) -> &[CallField] {
        let rows = |way: &str, of: fn(&Call) -> &[CallField]| {
            let name = format.name.strip_prefix(way)?;
            self.calls.get(name).map(of)
        };
        rows("sys_enter_", |call| &call.entry)
            .or_else(|| rows("sys_exit_", |call| &call.exit))
            .unwrap_or_default()
    }

    /// What the kernel has of the field `name` of a call.
    pub fn field<'f>(&self, format: &'f EventFormat, name: &str) -> Option<&'f FormatField> {
        let own = format.fields.iter().find(|field| field.name == name);
        let by_row = || {
            let row = self.rows(format).iter().find(|row| row.name == name)?;
            argument(format, row)
        };
        own.or_else(by_row)
    }

    /// How an argument is called and written with the call's contents.
    pub fn named(&self, format: &EventFormat, own: &FormatField) -> Option<(String, Integer)> {
        let is_own = |row: &&CallField| argument(format, row).is_some_and(|field| field == own);
        let row = self.rows(format).iter().find(is_own)?;
        let integer = match row.ty {
            CallType::Integer {
                size_bits,
                signed,
                hexadecimal,
            } => Integer {
                base: match hexadecimal {
                    true => Base::Hexadecimal,
                    false => Base::Decimal,
                },
                ..Integer::le(size_bits, signed)
            },
            // A text is an address here.
            _ => Integer::hex(64),
        };
        Some((row.name.to_owned(), integer))
    }
}

/// The kernel's field for the argument that a row is taken from, where that is the value itself.
fn argument<'f>(format: &'f EventFormat, row: &CallField) -> Option<&'f FormatField> {
    let is_argument = |field: &&FormatField| !field.name.starts_with(NOT_ARGUMENTS);
    let is_itself = matches!(row.ty, CallType::Integer { .. } | CallType::Text);
    match row.source {
        Source::Argument(number) if is_itself => {
            let mut arguments = format.fields.iter().filter(is_argument);
            arguments.nth(number.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use event::EventClass;
    use ftrace::{Formats, PageLayout};

    use super::*;

    fn format(name: &str, arguments: &[&str]) -> EventFormat {
        let mut text = format!(
            "name: {name}\nID: 7\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
             \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
        );
        for (place, argument) in arguments.iter().enumerate() {
            let at = 16 + 8 * place;
            text += &format!("\tfield:{argument};\toffset:{at};\tsize:8;\tsigned:0;\n");
        }
        EventFormat::parse("syscalls", &text).expect("a format")
    }

    fn class(format: &EventFormat) -> EventClass {
        let formats = Formats::new(PageLayout::LP64, vec![format.clone()]);
        let table = InKernel::new();
        let mut compiled =
            ftrace::lttng::compile_with(&formats, &|format, field| table.named(format, field));
        compiled.remove(0).1
    }

    #[test]
    fn a_call_of_the_kernels_own_event_has_the_fields_that_it_has_with_its_contents() {
        let check = |name: &str, arguments: &[&str], left_out: &[&str]| {
            let found = class(&format(name, arguments));
            let mut classes = crate::syscalls::system_call_classes().into_iter();
            let expect = classes.find(|class| class.name == found.name);
            let expect = expect.expect("it is in the table");
            let is_here = |field: &&event::Field| !left_out.contains(&&*field.name);
            let expect: Vec<_> = expect.fields.iter().filter(is_here).collect();
            assert_eq!(found.fields.iter().collect::<Vec<_>>(), expect, "{name}");
        };
        let mmap = [
            "unsigned long addr",
            "unsigned long len",
            "unsigned long prot",
            "unsigned long flags",
            "unsigned long fd",
            "unsigned long off",
        ];
        check("sys_enter_mmap", &mmap, &["prot_names", "flags_names"]);
        let kill = ["pid_t pid", "int sig"];
        check("sys_enter_kill", &kill, &["sig_names"]);
        check("sys_enter_close", &["unsigned int fd"], &[]);
    }

    #[test]
    fn a_filter_finds_what_the_kernel_has_of_a_field_by_its_recorded_name() {
        let table = InKernel::new();
        let format = format(
            "sys_enter_lseek",
            &["unsigned int fd", "off_t offset", "unsigned int origin"],
        );
        let name = |name: &str| table.field(&format, name).map(|field| field.name.as_str());
        assert_eq!(name("whence"), Some("origin"));
        assert_eq!(name("fd"), Some("fd"));
        assert_eq!(name("whence_names"), None);
    }
}
