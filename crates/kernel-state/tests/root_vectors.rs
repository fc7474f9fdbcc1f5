//! Whether this kernel has interrupts that the table of vectors lacks.

use std::path::Path;

use event::vectors::VECTORS;

const GROUPS: [&str; 2] = ["irq_vectors", "ipi"];

/// What `_entry` and `_exit` follow, of the events of a group.
fn pairs(events: &Path, group: &str) -> Vec<String> {
    let folder = std::fs::read_dir(events.join(group)).into_iter().flatten();
    let names = folder
        .flatten()
        .map(|entry| entry.file_name().into_string());
    let names = names.filter_map(Result::ok);
    let begun = names.filter_map(|name| name.strip_suffix("_entry").map(str::to_owned));
    begun.collect()
}

#[test]
fn every_vector_of_this_kernel_is_in_the_table() {
    let _privileged = testkit::privileged();
    let name = "every_vector_of_this_kernel_is_in_the_table";
    let folders = [
        "/sys/kernel/tracing/events",
        "/sys/kernel/debug/tracing/events",
    ];
    let mut folders = folders.iter().map(Path::new);
    let Some(events) = folders.find(|folder| folder.join("sched").exists()) else {
        testkit::skip(name, "tracefs is not mounted");
        return;
    };
    let found: Vec<String> = GROUPS
        .iter()
        .flat_map(|group| pairs(events, group))
        .collect();
    if found.is_empty() {
        testkit::skip(name, "this kernel has no events of vectors");
        return;
    }
    for event in found {
        let is_known = VECTORS.iter().any(|vector| vector.event == event);
        assert!(
            is_known,
            "{event} is no line of crates/event/src/vectors.rs"
        );
    }
}
