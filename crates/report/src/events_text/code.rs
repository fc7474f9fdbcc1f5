//! Names of code behind the fields that are addresses of it, in the groups of babeltrace2.

use event::{EventClass, Field, FieldId, FieldType, Scope, is_function_field};
use symbols::{CodePlace, UserSymbols};
use trace::{EventView, Symbols, Trace};

use super::line::EventLines;

/// Whose code an address is in.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// The field with the process.
    ProcessIn(FieldId),
    /// What the trace says of all of its events.
    Process(i32),
    Kernel,
}

/// A field that is an address of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeField {
    address: FieldId,
    whose: Whose,
    /// How the group behind it is called.
    is_ip: bool,
}

impl CodeField {
    /// None for any other field, and where nobody says which process it is about.
    pub fn new(trace: &Trace, class: &EventClass, id: FieldId, field: &Field) -> Option<CodeField> {
        let of_functions = ["lttng_ust_cyg_profile", "rtscope_patchable:"];
        let is_profile = of_functions.iter().any(|name| class.name.starts_with(name));
        let is_code = match field.scope {
            Scope::StreamContext | Scope::EventContext => field.name == "ip",
            Scope::Payload => {
                matches!(field.name.as_str(), "ip" | "caller" | "call_site")
                    || is_profile && field.name == "addr"
            }
            _ => false,
        };
        let environment = trace.environment_of(class.id);
        let known = || environment.get("vpid")?.parse().ok();
        let is_of_kernel = || {
            environment.get("domain").map(String::as_str) == Some("kernel")
                && field.scope == Scope::Payload
                && is_function_field(&field.name)
        };
        let of_process = class.field("vpid").map(Whose::ProcessIn);
        let of_process = of_process.or_else(|| known().map(Whose::Process));
        let whose = match of_process {
            Some(whose) if is_code => whose,
            None if is_of_kernel() => Whose::Kernel,
            _ => return None,
        };
        matches!(field.ty, FieldType::Integer(_)).then_some(CodeField {
            address: id,
            whose,
            is_ip: field.name == "ip",
        })
    }

    /// Writes the group, where something is known of the address.
    pub fn write(
        &self,
        event: &EventView<'_>,
        (names, kernel): (&mut UserSymbols, &Symbols),
        name: &str,
        line: &mut EventLines,
    ) {
        let prefix = match self.is_ip {
            true => String::new(),
            false => format!("{name}_"),
        };
        let address = event.u64(self.address);
        let pid = match self.whose {
            Whose::ProcessIn(field) => event.i64(field) as i32,
            Whose::Process(pid) => pid,
            Whose::Kernel => {
                if let Some((function, offset)) = kernel.lookup(address) {
                    line.bytes(kernel_group(&prefix, function, offset).as_bytes());
                }
                return;
            }
        };
        if let Some(place) = names.place(pid, event.time(), address) {
            line.bytes(group(&prefix, &place).as_bytes());
        }
    }
}

/// `, function_debug_info = { bin = "[kernel]", func = "tick_nohz_handler+0x0" }`
fn kernel_group(prefix: &str, function: &str, offset: u64) -> String {
    format!(", {prefix}debug_info = {{ bin = \"[kernel]\", func = \"{function}+{offset:#x}\" }}")
}

/// `, debug_info = { bin = "robot+0x1170", func = "main+0x12", src = "robot.c:17" }`
fn group(prefix: &str, place: &CodePlace) -> String {
    let mut text = format!(
        ", {prefix}debug_info = {{ bin = \"{}+{:#x}\"",
        place.binary_name(),
        place.offset
    );
    if let Some((name, offset)) = &place.function {
        text += &format!(", func = \"{name}+{offset:#x}\"");
    }
    if let Some((file, line)) = &place.source {
        text += &format!(", src = \"{file}:{line}\"");
    }
    text + " }"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_says_what_is_known_and_no_more() {
        let place = CodePlace {
            binary: "/opt/robot".to_owned(),
            offset: 0x1170,
            ..CodePlace::default()
        };
        let check = |place: &CodePlace, expect: &str| assert_eq!(group("", place), expect);
        check(&place, ", debug_info = { bin = \"robot+0x1170\" }");
        let named = CodePlace {
            function: Some(("main".to_owned(), 18)),
            source: Some(("robot.c".to_owned(), 17)),
            ..place
        };
        check(
            &named,
            ", debug_info = { bin = \"robot+0x1170\", func = \"main+0x12\", src = \"robot.c:17\" }",
        );
    }
}
