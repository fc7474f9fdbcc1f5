//! What is done at each late sample: a function of one's own in the kernel, refused before anything
//! is measured or called when a sample is late, and only then.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// What an action needs of libbpf's header, which is not everywhere.
const HELPERS: &str = "\
#define SEC(name) __attribute__((section(name), used))
static long (*const bpf_send_signal)(__u32 sig) = (void *)109;
";
/// The end of a measurement that nobody ends.
const WHOLE: &str = "40s";

/// An object with this action, as its author would build it.
fn action(folder: &Path, name: &str, body: &str) -> PathBuf {
    let helpers = folder.join("bpf");
    std::fs::create_dir_all(&helpers).expect("a folder");
    std::fs::write(helpers.join("bpf_helpers.h"), HELPERS).expect("written");
    let source = folder.join(format!("{name}.bpf.c"));
    let text = format!(
        "#include <linux/types.h>\n#include <linux/bpf.h>\n#include <rtscope/action.bpf.h>\n\
         char LICENSE[] SEC(\"license\") = \"GPL\";\nRTS_ACTION(hit) {{ {body} }}\n"
    );
    std::fs::write(&source, text).expect("written");
    let object = folder.join(format!("{name}.bpf.o"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/include");
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let status = Command::new(clang)
        .args(["-target", "bpf", "-O2", "-g", "-c", "-o"])
        .args([&object, &source])
        .arg(format!("-I{}", folder.display()))
        .arg(format!("-I{}", include.display()))
        .arg(format!(
            "-I/usr/include/{}-linux-gnu",
            std::env::consts::ARCH
        ))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{body}");
    object
}

fn measure(words: &str, object: &Path, folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    let own: Vec<&str> = words.split_whitespace().collect();
    let at = own.iter().position(|word| *word == "--");
    let (before, behind) = own.split_at(at.unwrap_or(own.len()));
    command.arg("measure").args(before);
    command.arg("--bpf-action").arg(object).args(behind);
    let output = command.current_dir(folder).output();
    output.expect("rtscope starts")
}

fn object_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

#[test]
fn a_function_in_the_kernel_ends_the_measurement_at_the_first_late_sample() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // As Ctrl-C would; the task that is current is the one that was late.
    let ends = action(
        folder.path(),
        "ends",
        "if (hit->task.tid >= 0 && hit->end_ns > hit->begin_ns) bpf_send_signal(2); return 0;",
    );
    let check = |words: &str| {
        let output = measure(words, &ends, folder.path());
        let found = object_of(&output);
        assert_eq!(found["complete"], false, "{words}: {output:?}");
        // A sample was over the limit, whoever ended it.
        assert_eq!(output.status.code(), Some(2), "{words}");
    };
    check(&format!(
        "cyclic --cpu 0 --over 1us --for {WHOLE} --json --worst 3"
    ));
    check(&format!(
        "eval --cpu 0 --budget 1us --load none --no-hw --for {WHOLE} --json --worst 3"
    ));
}

#[test]
fn an_application_is_ended_by_a_function_at_its_first_late_activation() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let ends = action(folder.path(), "ends", "bpf_send_signal(9); return 0;");
    let program = env!("CARGO_BIN_EXE_rtscope");
    let words = format!(
        "eval --budget 1us --load none --for {WHOLE} --json --worst 3 -- {program} measure cyclic \
         --cpu 0 --for {WHOLE} --json"
    );
    let output = measure(&words, &ends, folder.path());
    let found = object_of(&output);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let ended = found["workload"]["ended"].as_str().unwrap_or_default();
    assert!(ended.contains("signal: 9"), "{}", found["workload"]);
}

#[test]
fn a_function_is_not_called_where_no_sample_is_late() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let kills = action(folder.path(), "kills", "bpf_send_signal(9); return 0;");
    let words = "cyclic --cpu 0 --over 30s --for 2s --json";
    let output = measure(words, &kills, folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = object_of(&output);
    assert_eq!(found["complete"], true, "{found}");
}

#[test]
fn what_is_no_function_is_refused_before_anything_is_measured() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let refused = action(
        folder.path(),
        "refused",
        "return *(volatile int *)(hit->key);",
    );
    let text = folder.path().join("text.o");
    std::fs::write(&text, "no object").expect("written");
    let check = |words: &str, object: &Path, expect: &str| {
        let output = measure(words, object, folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains(expect), "{words}: {said}");
        assert!(said.contains("fix: "), "{words}: {said}");
        // An evaluation makes it before its loads begin.
        let made = folder.path().join("rtscope-eval").exists();
        assert!(!made, "{words}: it had begun");
    };
    let program = env!("CARGO_BIN_EXE_rtscope");
    let application = format!("eval --budget 1ms --load none -- {program} measure cyclic --for 1s");
    for words in [
        "cyclic --over 1ms --for 1s",
        "eval --budget 1ms --load none --no-hw --for 4s",
        &application,
    ] {
        check(
            words,
            &folder.path().join("none.o"),
            "cannot read the action",
        );
        check(words, &text, "is no BPF object");
        check(words, &refused, "the kernel refuses the action");
    }
    let unlimited = "cyclic --for 1s";
    check(unlimited, &refused, "no sample is late without a threshold");
}
