//! `rtscope convert` onto a disk that fills up: one clear error, and nothing is left behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use ctf::writer::{PayloadWriter, TraceWriter};
use event::{Cpu, Field, FieldType, Instant};
use testkit::{event_class, one_stream_class};

/// More events than the disk has room for, in every format.
fn write(dir: &Path) {
    let text = Field::payload("text", FieldType::String);
    let meta = one_stream_class(vec![event_class(0, "note", vec![text])], 0);
    let mut trace = TraceWriter::create(dir, &meta).expect("a trace");
    let mut stream = trace.stream(0, Cpu(0)).expect("a stream");
    for number in 0..20_000 {
        let mut payload = PayloadWriter::new();
        payload.string(&format!(
            "{number} is not repeated, and so is not compressed away"
        ));
        let time = Instant::from_ns(number * 1_000);
        stream.event(0, time, payload.bytes()).expect("written");
    }
    stream.finish().expect("written");
}

/// A file system of 256 KiB, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let dir = tempfile::tempdir().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "rtscope-test"]);
        let mounted = mount
            .arg(dir.path())
            .status()
            .is_ok_and(|status| status.success());
        mounted.then_some(SmallDisk(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_left() {
    let _held = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    write(&trace);
    let Some(disk) = SmallDisk::mount() else {
        return testkit::skip("a full disk is said", "no tmpfs can be mounted here");
    };
    for to in ["json", "csv", "ctf1", "ctf2", "perfetto"] {
        let output = disk.0.path().join("out");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        command
            .arg("convert")
            .arg(&trace)
            .args(["--to", to, "-o"])
            .arg(&output);
        let done = command.output().expect("rtscope starts");
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{to}: {stderr}");
        assert!(stderr.contains("free some space"), "{to}: {stderr}");
        let left = fs::read_dir(disk.0.path()).expect("the disk").count();
        assert_eq!(left, 0, "{to} leaves something behind");
    }
}
