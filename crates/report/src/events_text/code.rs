//! Names of code behind the fields that are addresses of it, in the groups of babeltrace2.

use event::{EventClass, Field, FieldId, FieldType, Scope, Value, is_function_field};
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
    /// Addresses of calls, the innermost first.
    is_stack: bool,
}

/// The contexts that are call stacks.
const KERNEL_STACK: &str = "callstack_kernel";
const USER_STACK: &str = "callstack_user";

impl CodeField {
    /// None for any other field, and where nobody says which process it is about.
    pub fn new(trace: &Trace, class: &EventClass, id: FieldId, field: &Field) -> Option<CodeField> {
        if let FieldType::Sequence { .. } = field.ty {
            return CodeField::of_stack(class, id, field);
        }
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
            is_stack: false,
        })
    }

    fn of_stack(class: &EventClass, id: FieldId, field: &Field) -> Option<CodeField> {
        let process = || class.field("vpid").or_else(|| class.field("pid"));
        let whose = match field.name.as_str() {
            KERNEL_STACK => Whose::Kernel,
            USER_STACK => Whose::ProcessIn(process()?),
            _ => return None,
        };
        Some(CodeField {
            address: id,
            whose,
            is_ip: false,
            is_stack: true,
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
        if self.is_stack {
            line.bytes(self.stack(event, (names, kernel), name).as_bytes());
            return;
        }
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

impl CodeField {
    /// `, callstack_kernel_debug_info = [ "schedule+0x2e", "do_wait+0x5e" ]`; an address stays one
    /// where nothing is known of it.
    fn stack(
        &self,
        event: &EventView<'_>,
        (names, kernel): (&mut UserSymbols, &Symbols),
        name: &str,
    ) -> String {
        let Value::Array(values) = event.value(self.address) else {
            return String::new();
        };
        let mut is_known = false;
        let mut named = |place: usize, address: u64| {
            let found = match self.whose {
                // Where a call returns to may be the next function.
                Whose::Kernel => kernel
                    .lookup(address.saturating_sub(1))
                    .map(|(function, offset)| format!("{function}+{:#x}", offset + 1)),
                Whose::ProcessIn(field) => {
                    let before = u64::from(place > 0);
                    let (pid, at) = (event.i64(field) as i32, event.time());
                    let found = names.place(pid, at, address.saturating_sub(before));
                    found.map(|place| in_program(&place, before))
                }
                Whose::Process(_) => None,
            };
            is_known |= found.is_some();
            found.unwrap_or_else(|| format!("{address:#x}"))
        };
        let addresses = values.iter().enumerate();
        let words: Vec<String> = addresses
            .filter_map(|(place, value)| match value {
                Value::Unsigned(address) => Some(format!("\"{}\"", named(place, *address))),
                _ => None,
            })
            .collect();
        match is_known {
            true => format!(", {name}_debug_info = [ {} ]", words.join(", ")),
            false => String::new(),
        }
    }
}

/// `main+0x12`, or `robot+0x1170` where no function is known.
fn in_program(place: &CodePlace, before: u64) -> String {
    match &place.function {
        Some((function, offset)) => format!("{function}+{:#x}", offset + before),
        None => format!("{}+{:#x}", place.binary_name(), place.offset + before),
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
