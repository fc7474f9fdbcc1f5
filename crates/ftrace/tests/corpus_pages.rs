//! Raw pages of another kernel against that kernel's own text of them. Needs `RTSCOPE_CORPUS`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ftrace::{EventFormat, Formats, Page, PageLayout};

/// Time in microseconds, and the event's name.
type Line = (u64, String);

/// `task-12 [001] d..2. 11.002500: sched_switch: …`: the lines of one CPU.
fn text_lines(text: &str, cpu: u32) -> Vec<Line> {
    let wanted = format!(" [{cpu:03}] ");
    let parse = |line: &str| {
        let mut words = line.split_once(&wanted)?.1.split_ascii_whitespace().skip(1);
        let (seconds, micros) = words.next()?.strip_suffix(':')?.split_once('.')?;
        let time_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        Some((time_us, words.next()?.trim_end_matches(':').to_owned()))
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(parse)
        .collect()
}

fn page_lines(formats: &Formats, bytes: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    for page in bytes.chunks_exact(formats.layout.page_size_bytes()) {
        let page = Page::parse(&formats.layout, page).expect("a sound page");
        for event in page.events() {
            let event = event.expect("a sound record");
            let id = u16::from_le_bytes([event.record[0], event.record[1]]);
            let name = formats.by_id(id).map_or("unknown", |format| &format.name);
            // What user space wrote to `trace_marker` is printed under the writer's name.
            let name = if name == "print" {
                "tracing_mark_write"
            } else {
                name
            };
            // The kernel's text rounds to the nearest microsecond.
            lines.push(((event.time_ns + 500) / 1000, name.to_owned()));
        }
    }
    lines
}

fn load_formats(events: &Path) -> Formats {
    let mut formats = Vec::new();
    for system in fs::read_dir(events).expect("systems").flatten() {
        let name = system.file_name().to_string_lossy().into_owned();
        let Ok(entries) = fs::read_dir(system.path()) else {
            continue;
        };
        for event in entries.flatten() {
            let Ok(text) = fs::read_to_string(event.path().join("format")) else {
                continue;
            };
            formats.push(EventFormat::parse(&name, &text).expect("a sound format"));
        }
    }
    let header = fs::read_to_string(events.join("header_page"));
    let layout = header.map(|text| PageLayout::parse(&text).expect("a sound header"));
    Formats::new(layout.unwrap_or(PageLayout::LP64), formats)
}

fn check(corpus: &Path, name: &str) {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(corpus.join(format!("lab/{name}.tar.xz")))
        .arg("-C")
        .arg(scratch.path());
    assert!(tar.status().is_ok_and(|status| status.success()));
    let root = scratch.path().join(name);
    let formats = load_formats(&root.join("events"));
    let text = fs::read_to_string(root.join("trace.txt")).expect("the kernel's text");
    let mut compared = 0;
    for cpu in 0..2 {
        let path = root.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let found = page_lines(&formats, &fs::read(path).expect("raw pages"));
        let expect = text_lines(&text, cpu);
        let first = found
            .iter()
            .zip(&expect)
            .position(|(found, expect)| found != expect);
        let around = first.map(|at| (at, &found[at], &expect[at]));
        assert_eq!(around, None, "{name}, CPU {cpu}");
        assert_eq!(found.len(), expect.len(), "{name}, CPU {cpu}");
        compared += found.len();
    }
    assert!(compared > 10_000);
}

#[test]
fn every_event_of_a_page_has_the_time_and_name_that_its_kernel_printed() {
    let Some(corpus) = std::env::var_os("RTSCOPE_CORPUS").map(PathBuf::from) else {
        testkit::skip(
            "raw pages against the kernel's text",
            "RTSCOPE_CORPUS is not set",
        );
        return;
    };
    check(&corpus, "jack-rt612-single-ftrace");
    check(&corpus, "memcached-rt612-ftrace");
}
