//! Names of code behind the fields that are addresses of it, in the groups of babeltrace2.

use event::{EventClass, Field, FieldId, FieldType, Scope};
use symbols::{CodePlace, UserSymbols};
use trace::{EventView, Trace};

use super::line::EventLines;

/// A field that is an address in the code of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeField {
    address: FieldId,
    /// The field with the process, or what the trace says of all of its events.
    pid: Result<FieldId, i32>,
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
        if !is_code || !matches!(field.ty, FieldType::Integer(_)) {
            return None;
        }
        let known = || trace.environment_of(class.id).get("vpid")?.parse().ok();
        let pid = match class.field("vpid") {
            Some(pid) => Ok(pid),
            None => Err(known()?),
        };
        Some(CodeField {
            address: id,
            pid,
            is_ip: field.name == "ip",
        })
    }

    /// Writes the group, where something is known of the address.
    pub fn write(
        &self,
        event: &EventView<'_>,
        names: &mut UserSymbols,
        name: &str,
        line: &mut EventLines,
    ) {
        let pid = self
            .pid
            .map_or_else(|pid| pid, |field| event.i64(field) as i32);
        if let Some(place) = names.place(pid, event.time(), event.u64(self.address)) {
            let prefix = if self.is_ip {
                String::new()
            } else {
                format!("{name}_")
            };
            line.bytes(group(&prefix, &place).as_bytes());
        }
    }
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
