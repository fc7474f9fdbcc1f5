//! Which fields of the kernel's events are addresses of its code.

const FIELDS: &[&str] = &[
    "function",
    "func",
    "callback",
    "callsite",
    "call_site",
    "caller",
    "caller_ip",
    "handler",
    "ip",
    "parent_ip",
    "location",
    "work_func",
];

/// Whether a field of this name, where it is a number, is the address of a function in events of
/// the kernel.
pub fn is_function_field(name: &str) -> bool {
    FIELDS.contains(&name)
}
