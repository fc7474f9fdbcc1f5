//! The state dump at the start of a recording: what is open, connected and there already.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// The events of the dump, as JSON.
fn dump(folder: &Path) -> Vec<Value> {
    let (trace, to) = (folder.join("trace"), folder.join("events.json"));
    let run = |words: &[&str], path: &Path, rest: &[&str]| {
        let mut command = Command::new(RTSCOPE);
        let output = command.args(words).arg(path).args(rest).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{output:?}");
    };
    let record = ["record", "--maps", "--events", "sched_switch", "-o"];
    run(&record, &trace, &["--", "true"]);
    let filter = "$name == \"*_statedump_*\"";
    let trace = trace.to_str().expect("UTF-8");
    run(
        &["convert", "--to", "json", "-o"],
        &to,
        &["--filter", filter, trace],
    );
    let text = std::fs::read_to_string(&to).expect("what was converted");
    let json = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(json).collect()
}

#[test]
fn a_recording_begins_with_what_was_there_before() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Open while it is recorded, and opened by nobody meanwhile.
    let open = tempfile::NamedTempFile::new().expect("a file");
    let events = dump(folder.path());
    let own = std::process::id();
    let check = |name: &str, expect: Value| {
        let fields = expect.as_object().expect("an object");
        let holds = |event: &&Value| {
            let of = |(name, value): (&String, &Value)| event["fields"][name] == *value;
            event["name"] == *name && fields.iter().all(of)
        };
        let found = events.iter().find(holds);
        assert!(found.is_some(), "no {name} with {expect}");
    };
    let path = open.path().to_str().expect("UTF-8");
    check(
        "lttng_statedump_file_descriptor",
        // LTTng's readers find the process by its table, older ones by its number.
        json!({"filename": path, "pid": own, "file_table_address": own, "fmode": 3}),
    );
    check(
        "lttng_statedump_process_state",
        json!({"tid": own, "pid": own, "file_table_address": own}),
    );
    check(
        "lttng_statedump_process_state",
        json!({"tid": 2, "pid": 2, "type": 1}),
    );
    check("rtscope_statedump_task", json!({"tid": own, "tgid": own}));
    check("lttng_statedump_vm_map", json!({"pid": own}));
    check("lttng_statedump_network_interface", json!({"name": "lo"}));
    let disks = std::fs::read_dir("/sys/class/block").into_iter().flatten();
    let names: Vec<_> = disks.flatten().map(|disk| disk.file_name()).collect();
    for name in names {
        let name = name.to_string_lossy();
        check("lttng_statedump_block_device", json!({"diskname": name}));
    }
}
