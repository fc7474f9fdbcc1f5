//! A trace.dat: pages of an instance of our own, packed by `trace-cmd restore`, so that the global
//! instance stays as it is.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use ftrace::{EventName, Instance, Tracefs};

use crate::child;
use crate::load::{self, Load};

/// What a scheduling trace has.
const EVENTS: [&str; 4] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
];
const GROUPS: u32 = 2;
const FDS: u32 = 2;

/// Records into rings of `ring_bytes` a CPU for `seconds`, and packs what is in them then.
pub fn record(dir: &Path, ring_bytes: usize, seconds: f64) -> Result<()> {
    load::require()?;
    fs::create_dir_all(dir)?;
    let tracefs = Tracefs::find()?;
    let instance = Instance::create(&tracefs)?;
    instance.set_buffer_size(ring_bytes)?;
    for name in EVENTS {
        instance.enable(&EventName::parse(name).context("no name of an event")?)?;
    }
    let load = Load::start(GROUPS, FDS)?;
    instance.start()?;
    sleep(Duration::from_secs_f64(seconds));
    instance.stop()?;
    drop(load);
    let layout = tracefs.page_layout()?;
    let mut pages = Vec::new();
    for cpu in instance.cpus() {
        let path = dir.join(format!("cpu{}", cpu.0));
        let mut file = BufWriter::new(File::create(&path)?);
        let mut pipe = instance.open_pipe(*cpu, &layout)?;
        let mut page = vec![0; pipe.page_size_bytes()];
        while pipe.read_page(&mut page)? {
            file.write_all(&page)?;
        }
        file.flush()?;
        pages.push(path);
    }
    let head = dir.join("head");
    let restore = |words: &[&str], output: &Path, pages: &[PathBuf]| {
        let mut command = Command::new("trace-cmd");
        command.arg("restore").args(words).arg("-o").arg(output);
        child::output(command.args(pages))
    };
    restore(&["-c"], &head, &[])?;
    let head_path = head.display().to_string();
    restore(&["-i", &head_path], &file(dir), &pages)?;
    for path in pages.iter().chain([&head]) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The file in the directory that [`record`] was given.
pub fn file(dir: &Path) -> PathBuf {
    dir.join("trace.dat")
}
