//! A cold release build.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::child;
use crate::options::Options;
use crate::report::{Bar, Report, Table, number, text};

const MINUTES_MAX: f64 = 6.0;

/// Builds into an empty folder. Small, it builds only the smallest room.
pub fn measure(options: &Options) -> Result<Report> {
    let package = options.pick("cli", "event");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    child::run(cargo(&root).args(["fetch", "--locked"]))?;
    let target = tempfile::tempdir()?;
    let mut build = cargo(&root);
    build.args(["build", "--locked", "--release", "--package", package]);
    let taken = child::run(build.env("CARGO_TARGET_DIR", target.path()))?;
    let (wall_s, cpu_s) = (taken.wall.as_secs_f64(), taken.cpu.as_secs_f64());
    let found = (!options.small).then_some(wall_s / 60.0);
    Ok(Report {
        title: "A cold build",
        command: "bench build".into(),
        setting: format!(
            "`cargo build --release --package {package}` into an empty target folder, sources \
             downloaded before."
        ),
        tables: vec![Table {
            columns: vec!["package", "wall, s", "CPU, s"],
            rows: vec![vec![text(package), number(wall_s, 0), number(cpu_s, 0)]],
        }],
        bars: vec![Bar {
            what: "cold build".into(),
            found,
            limit: MINUTES_MAX,
            unit: "min",
        }],
        remarks: Vec::new(),
    })
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}
