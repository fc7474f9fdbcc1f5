//! What many processes at once cost their recorder: its CPU time and memory, and the memory that
//! their rings take.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::limits::{bar, begin_recorder, cpu_ns, program, until_idle};
use super::scene::Scene;
use crate::child;
use crate::report::{Bar, Table, number, text};

/// So many processes, for four seconds.
const CROWDS: [u32; 3] = [1, 100, 1000];
const EVENTS: u32 = 8;
/// The same where it is only tried.
const CROWDS_SMALL: [u32; 1] = [10];
const EVENTS_SMALL: u32 = 1;
/// Of the recorder of the largest crowd.
const CPU_S_MAX: f64 = 3.0;
const MEMORY_MB_MAX: f64 = 200.0;

struct Cost {
    cpu_s: f64,
    memory_mb: f64,
    /// What starting and ending the processes took, with their four seconds.
    wall_s: f64,
}

/// The table, and the bars of the largest crowd where all were there.
pub(super) fn crowds(scene: &Scene<'_>, is_whole: bool) -> Result<(Table, Vec<Bar>)> {
    let (crowds, events) = match is_whole {
        true => (&CROWDS[..], EVENTS),
        false => (&CROWDS_SMALL[..], EVENTS_SMALL),
    };
    let program = program(scene.folder, "crowd")?;
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for &processes in crowds {
        let cost = cost(scene, &program, (processes, events))?;
        let row = [cost.cpu_s, cost.memory_mb, cost.wall_s].map(|value| number(value, 2));
        rows.push([vec![text(processes.to_string())], row.into()].concat());
        if is_whole && processes == CROWDS[CROWDS.len() - 1] {
            bars = vec![
                bar(
                    "recorder of 1,000 processes, CPU",
                    Some(cost.cpu_s),
                    CPU_S_MAX,
                    "s",
                ),
                bar(
                    "the same, memory",
                    Some(cost.memory_mb),
                    MEMORY_MB_MAX,
                    "MB",
                ),
            ];
        }
    }
    let columns = vec![
        "processes at once",
        "recorder, s of CPU",
        "its memory, MB",
        "wall, s",
    ];
    Ok((Table { columns, rows }, bars))
}

fn cost(scene: &Scene<'_>, program: &Path, (processes, events): (u32, u32)) -> Result<Cost> {
    let (recorder, trace) = begin_recorder(scene)?;
    let pid = recorder.pid();
    let before_ns = cpu_ns(pid)?;
    let mut crowd = Command::new(program);
    crowd.args([processes.to_string(), events.to_string()]);
    let ran = child::run(crowd.env("RTSCOPE_DIR", scene.shared))?;
    let used_ns = until_idle(pid)? - before_ns;
    let memory_mb = largest_bytes(pid)? / 1e6;
    drop(recorder);
    std::fs::remove_dir_all(trace).ok();
    Ok(Cost {
        cpu_s: used_ns / 1e9,
        memory_mb,
        wall_s: ran.wall.as_secs_f64(),
    })
}

/// The most that a process ever had in memory.
fn largest_bytes(pid: u32) -> Result<f64> {
    let said = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = said.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("no VmHWM")?.parse::<f64>()? * 1024.0)
}
