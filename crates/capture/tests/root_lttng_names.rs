//! Our classes against those that LTTng-modules 2.13 declares, class by class. Needs root for this
//! kernel's formats, and `RTSCOPE_CORPUS` for LTTng's traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use capture::{EventSelection, KernelClasses};
use event::{EventClass, Field, FieldType, Integer, Scope};
use ftrace::{Formats, Tracefs};

/// A trace of LTTng-modules 2.13 in the corpus, and its kernel trace inside.
const ARCHIVE: &str = "lab/mixed-rt61-lttng-kernel.tar.xz";
const KERNEL: &str = "mixed-rt61-lttng-kernel/trace/kernel";

/// Fields that LTTng has and the kernel's tracepoint has not: they are left out.
const BEYOND_THE_KERNEL: &[(&str, &str)] = &[
    ("sched_process_fork", "parent_ns_inum"),
    ("sched_process_fork", "_vtids_length"),
    ("sched_process_fork", "vtids"),
    ("sched_process_fork", "child_ns_inum"),
    ("sched_stat_runtime", "vruntime"),
    ("kmem_mm_page_alloc", "page"),
    ("kmem_mm_page_alloc_extfrag", "page"),
    ("kmem_mm_page_alloc_zone_locked", "page"),
    ("kmem_mm_page_free", "page"),
    ("kmem_mm_page_free_batched", "page"),
];

fn lttng_classes(corpus: &Path, scratch: &Path) -> BTreeMap<String, EventClass> {
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(corpus.join(ARCHIVE))
        .arg("-C")
        .arg(scratch);
    let status = tar.arg(format!("{KERNEL}/metadata")).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cannot unpack {ARCHIVE}"
    );
    let files = ctf::reader::TraceFiles::open(&scratch.join(KERNEL)).expect("LTTng's metadata");
    let classes = files.schema().classes.iter();
    classes
        .map(|class| (class.name.clone(), class.clone()))
        .collect()
}

/// Name and type of a payload field, as far as a reader of values can tell.
fn shape(field: &Field) -> String {
    format!("{}: {}", field.name, shape_of(&field.ty))
}

fn shape_of(ty: &FieldType) -> String {
    let integer = |integer: &Integer| {
        format!(
            "{}{}",
            if integer.signed { 'i' } else { 'u' },
            integer.size_bits
        )
    };
    match ty {
        FieldType::Integer(of) | FieldType::Enum(of, _) => integer(of),
        FieldType::Text { size_bytes } => format!("text[{size_bytes}]"),
        FieldType::String => "string".to_owned(),
        FieldType::Array { element, count } => format!("{}[{count}]", shape_of(element)),
        FieldType::Sequence { element, .. } => format!("{}[]", shape_of(element)),
        other => format!("{other:?}"),
    }
}

fn shapes(class: &EventClass) -> Vec<String> {
    let beyond =
        |field: &&Field| !BEYOND_THE_KERNEL.contains(&(class.name.as_str(), field.name.as_str()));
    let payload = class
        .fields
        .iter()
        .filter(|field| field.scope == Scope::Payload);
    payload.filter(beyond).map(shape).collect()
}

#[test]
fn every_event_that_lttng_knows_has_lttngs_fields_and_types() {
    let _lock = testkit::privileged();
    let Some(corpus) = std::env::var_os("RTSCOPE_CORPUS").map(PathBuf::from) else {
        testkit::skip("our classes against LTTng's", "RTSCOPE_CORPUS is not set");
        return;
    };
    let scratch = tempfile::tempdir().expect("a directory");
    let lttng = lttng_classes(&corpus, scratch.path());
    let tracefs = Tracefs::find().expect("tracefs is mounted");
    let available = tracefs.available_events().expect("a list of events");
    let compare = |selection: EventSelection| {
        let selected = selection.resolve(&available).expect("sets");
        let formats = Formats::load(&tracefs, &selected.events).expect("formats");
        let ours = KernelClasses::compile(&formats);
        let (mut same, mut different) = (0, Vec::new());
        for class in ours.classes() {
            let Some(theirs) = lttng.get(&class.name) else {
                continue;
            };
            if shapes(class) == shapes(theirs) {
                same += 1;
            } else {
                let (ours, theirs) = (shapes(class).join(", "), shapes(theirs).join(", "));
                different.push(format!(
                    "{}\n  ours:  {ours}\n  LTTng: {theirs}",
                    class.name
                ));
            }
        }
        (same, different)
    };
    let check = |selection: EventSelection, at_least: u32| {
        let (same, different) = compare(selection);
        assert_eq!(different, Vec::<String>::new(), "{}", different.join("\n"));
        assert!(same >= at_least, "only {same} classes are known to LTTng");
    };
    check(EventSelection::default(), 30);
    let sets = [
        "sched",
        "irq",
        "softirq",
        "timer",
        "trap",
        "block",
        "signal",
        "workqueue",
        "mm",
    ];
    check(EventSelection::new(sets), 70);
}
