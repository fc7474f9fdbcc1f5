//! sysbench's three of the seed's table: a CPU, memory, files. As many events in each run.

use anyhow::Result;

use super::programs::{Load, Program};
use crate::child;
use crate::options::Options;

const PROGRAM: &str = "sysbench";

pub(super) fn cpu(options: &Options) -> Result<Box<dyn Load>> {
    let events = format!("--events={}", options.pick(16_000, 20));
    boxed(&[
        "cpu",
        "--cpu-max-prime=10000",
        "--threads=2",
        "--time=0",
        &events,
    ])
}

pub(super) fn memory(options: &Options) -> Result<Box<dyn Load>> {
    let total = format!("--memory-total-size={}", options.pick("24G", "64M"));
    boxed(&["memory", "--threads=2", "--time=0", &total])
}

/// Random reads and writes of files that it makes first, with an fsync after each hundred.
pub(super) fn file(options: &Options) -> Result<Box<dyn Load>> {
    let events = format!("--events={}", options.pick(160_000, 200));
    let words = [
        "fileio",
        "--file-total-size=64M",
        "--file-num=8",
        "--file-test-mode=rndrw",
        "--threads=2",
        "--time=0",
        &events,
    ];
    let files = program(&words)?;
    child::run(&mut files.command(&["prepare"]))?;
    Ok(Box::new(files))
}

/// sysbench with these words, in an empty folder.
pub(super) fn program(words: &[&str]) -> Result<Program> {
    Ok(Program {
        name: PROGRAM,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        folder: tempfile::tempdir()?,
    })
}

fn boxed(words: &[&str]) -> Result<Box<dyn Load>> {
    Ok(Box::new(program(words)?))
}
