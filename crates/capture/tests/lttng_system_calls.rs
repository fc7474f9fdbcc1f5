//! Our classes of system calls against those that LTTng-modules 2.13 declares, field by field.
//! Needs `RTSCOPE_CORPUS` for LTTng's traces.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use event::{EventClass, Field, FieldType, Integer, Scope};

/// A trace of LTTng-modules 2.13 in the corpus, and its kernel trace inside.
const ARCHIVE: &str = "lab/mixed-rt61-lttng-kernel.tar.xz";
const KERNEL: &str = "mixed-rt61-lttng-kernel/trace/kernel";

/// What LTTng has and we leave out: sets of descriptors, whose contents no report uses, and a
/// structure that ends them. docs/system-calls.md has the reasons.
const LEFT_OUT: &[&str] = &[
    "overflow",
    "fds_length",
    "fds",
    "_fds_length",
    "_readfds_length",
    "readfds",
    "_writefds_length",
    "writefds",
    "_exceptfds_length",
    "exceptfds",
    "op_enum",
];
/// The same of one class: a structure.
const LEFT_OUT_OF: &[(&str, &str)] = &[("syscall_entry_epoll_ctl", "event")];

/// Classes of programs of 32 bits in which LTTng has a pointer where ours have what the same call
/// of 64 bits has.
const AS_IN_64_BITS: &[&str] = &[
    "compat_syscall_entry_accept4",
    "compat_syscall_exit_accept4",
    "compat_syscall_exit_socketpair",
];

fn lttng_classes(corpus: PathBuf) -> BTreeMap<String, EventClass> {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(corpus.join(ARCHIVE));
    tar.arg("-C")
        .arg(scratch.path())
        .arg(format!("{KERNEL}/metadata"));
    assert!(
        tar.status().is_ok_and(|status| status.success()),
        "cannot unpack {ARCHIVE}"
    );
    let files = ctf::reader::TraceFiles::open(&scratch.path().join(KERNEL)).expect("metadata");
    let classes = files.schema().classes.iter();
    let calls = classes.filter(|class| class.name.contains("syscall_"));
    calls
        .map(|class| (class.name.clone(), class.clone()))
        .collect()
}

/// Name and type of a payload field, as far as a reader of values can tell.
fn shape(field: &Field) -> String {
    format!("{}: {}", field.name, shape_of(&field.ty))
}

fn shape_of(ty: &FieldType) -> String {
    let integer = |integer: &Integer| {
        let sign = if integer.signed { 'i' } else { 'u' };
        format!("{sign}{}", integer.size_bits)
    };
    match ty {
        FieldType::Integer(of) | FieldType::Enum(of, _) => integer(of),
        FieldType::String => "string".to_owned(),
        FieldType::Array { element, count } => format!("{}[{count}]", shape_of(element)),
        FieldType::Sequence { element, .. } => format!("{}[]", shape_of(element)),
        other => format!("{other:?}"),
    }
}

fn shapes(class: &EventClass, left_out: bool) -> Vec<String> {
    let is_kept = |field: &&Field| {
        let name = field.name.as_str();
        let is_left_out = LEFT_OUT.contains(&name)
            || LEFT_OUT_OF.contains(&(class.name.trim_start_matches("compat_"), name));
        field.scope == Scope::Payload && !(left_out && is_left_out)
    };
    class.fields.iter().filter(is_kept).map(shape).collect()
}

#[test]
fn every_system_call_that_lttng_knows_has_its_fields_and_more() {
    let Some(corpus) = std::env::var_os("RTSCOPE_CORPUS").map(PathBuf::from) else {
        return testkit::skip(
            "our system calls against LTTng's",
            "RTSCOPE_CORPUS is not set",
        );
    };
    let lttng = lttng_classes(corpus);
    let ours: BTreeMap<_, _> = capture::system_call_classes()
        .into_iter()
        .map(|class| (class.name.clone(), class))
        .collect();
    let (mut same, mut different) = (0, Vec::new());
    let compared = lttng
        .iter()
        .filter(|(name, _)| !AS_IN_64_BITS.contains(&name.as_str()));
    for (name, theirs) in compared {
        let Some(own) = ours.get(name) else {
            different.push(format!("{name}: not ours"));
            continue;
        };
        let (own, theirs) = (shapes(own, false), shapes(theirs, true));
        // Theirs are among ours, in their order.
        let mut rest = own.iter();
        match theirs.iter().all(|field| rest.any(|of| of == field)) {
            true => same += 1,
            false => different.push(format!("{name}\n  ours:  {own:?}\n  LTTng: {theirs:?}")),
        }
    }
    assert_eq!(different, Vec::<String>::new(), "{}", different.join("\n"));
    assert!(same > 1400, "only {same} classes are LTTng's");
}
