//! ftrace's events under LTTng's names, with LTTng's types and values: one table, `names.tsv`, for
//! what we record and for what we read.

mod compile;
pub(crate) mod names;
mod plan;
mod reading;
mod rwbs;

use std::collections::BTreeSet;

use event::{ClassId, EventClass};

pub use plan::{ArgumentNames, Plan, Source};
pub(crate) use reading::Reading;
pub use reading::RecordRef;

use crate::{EventName, Formats};

/// The class of each event, numbered in the order of `formats`, with the plan that fills it.
///
/// What the table does not know keeps the kernel's names and types. Where two systems share a
/// name, the second is told apart by its system.
pub fn compile(formats: &Formats) -> Vec<(Plan, EventClass)> {
    compile_with(formats, &|_, _| None)
}

/// The same; arguments of system calls have the names and types that `named` gives them.
pub fn compile_with(formats: &Formats, named: ArgumentNames<'_>) -> Vec<(Plan, EventClass)> {
    let mut names = BTreeSet::new();
    let mut compiled = Vec::new();
    for (index, format) in formats.iter().enumerate() {
        let (plan, mut class) = Plan::compile_with(format, named);
        if !names.insert(class.name.clone()) {
            class.name = format!("{}_{}", format.system, format.name);
            names.insert(class.name.clone());
        }
        class.id = ClassId(index as u32);
        compiled.push((plan, class));
    }
    compiled
}

/// What LTTng calls a tracepoint.
pub fn name(event: &EventName) -> String {
    match names::lookup(&event.to_string()) {
        Some(row) => row.name,
        None => compile::plain_name(&event.system, &event.name),
    }
}
