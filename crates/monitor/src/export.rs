//! The store as text for other tools: a table, lines of JSON, blocks for gnuplot.

use std::fmt::Write as _;
use std::io::Write;

use abi::monitor::Mode;
use event::{Duration, Error, Result};
use serde_json::{Value, json};

use crate::interval::{Interval, Run, Scope, Series, Worst};
use crate::late::{late_json, task_json};
use crate::store::{Range, Store};
use crate::wall::wall_text;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row for each interval, scope, phase and CPU.
    Csv,
    /// A line for each interval, with everything.
    Json,
    /// A block for each scope, phase and CPU: microseconds and samples, over the whole range.
    Gnuplot,
}

/// The schema of the lines.
const SCHEMA: &str = "rtscope.monitor";
const SCHEMA_VERSION: u32 = 1;
const COLUMNS: &str = "begin,end,host,kernel,boot_id,scope,phase,cpu,samples,min_ns,mean_ns,\
                       max_ns,p50_ns,p99_ns,p99_9_ns,worst_at,victim,victim_tid,victim_prio,\
                       culprit,culprit_tid,culprit_prio,call,function,key";

/// Writes the intervals of `range`.
///
/// # Errors
/// When the store cannot be read or `out` takes no more.
pub fn export(store: &Store, range: Range, format: Format, out: &mut dyn Write) -> Result<()> {
    let failed = |cause| Error::io("cannot write the export", cause);
    let runs = store.runs()?;
    let run = |number: i64| {
        let found = runs.iter().find(|(of, _)| *of == number);
        found.map(|(_, run)| run.clone()).unwrap_or_default()
    };
    match format {
        Format::Csv => {
            writeln!(out, "{COLUMNS}").map_err(failed)?;
            store.read(range, |number, interval| {
                let rows = csv(&run(number), &interval);
                out.write_all(rows.as_bytes()).map_err(failed)
            })
        }
        Format::Json => store.read(range, |number, interval| {
            writeln!(out, "{}", json(&run(number), &interval)).map_err(failed)
        }),
        Format::Gnuplot => {
            let mut sum = Interval::default();
            store.read(range, |_, interval| {
                sum.append(interval);
                Ok(())
            })?;
            out.write_all(gnuplot(&sum).as_bytes()).map_err(failed)
        }
    }
}

/// Quoted where it must be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn csv(run: &Run, interval: &Interval) -> String {
    let mut rows = String::new();
    let head = &interval.head;
    for series in &interval.series {
        let worst = interval.worst_of(series.scope, series.phase.clone());
        let worst = worst.filter(|worst| worst.cpu == series.cpu);
        let samples = series.histogram.samples().max(1);
        let quantile = |quantile| {
            let found = series.histogram.quantile(quantile, series.max);
            found.map_or(0, Duration::as_ns)
        };
        let cells = [
            wall_text(head.begin_ns),
            wall_text(head.end_ns),
            cell(&run.host),
            cell(&run.kernel),
            cell(&run.boot_id),
            series.scope.name().to_owned(),
            series.phase.name().to_owned(),
            series.cpu.0.to_string(),
            series.histogram.samples().to_string(),
            series.min.as_ns().to_string(),
            (series.sum.as_ns() / samples as i64).to_string(),
            series.max.as_ns().to_string(),
            quantile(0.5).to_string(),
            quantile(0.99).to_string(),
            quantile(0.999).to_string(),
            worst.map_or_else(String::new, |worst| wall_text(worst.at_ns)),
        ];
        let _ = write!(rows, "{}", cells.join(","));
        for task in [
            worst.and_then(|worst| worst.victim.as_ref()),
            worst.and_then(|worst| worst.culprit.as_ref()),
        ] {
            match task {
                Some(task) => {
                    let _ = write!(rows, ",{},{},{}", cell(&task.name), task.tid, task.prio);
                }
                None => rows.push_str(",,,"),
            }
        }
        let texts = worst.map(|worst| [&worst.call, &worst.function, &worst.key]);
        let texts = texts.unwrap_or([&None; 3]);
        let texts = texts.map(|text| cell(text.as_deref().unwrap_or_default()));
        let _ = writeln!(rows, ",{}", texts.join(","));
    }
    rows
}

/// An interval as one object.
fn json(run: &Run, interval: &Interval) -> Value {
    let head = &interval.head;
    let linear = interval.linear.iter().map(|(phase, cpu, linear)| {
        json!({ "phase": phase.name(), "cpu": cpu.0, "counts_us": linear.0 })
    });
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "host": run.host,
        "kernel": run.kernel,
        "boot_id": run.boot_id,
        "begin_ns": head.begin_ns,
        "end_ns": head.end_ns,
        "elapsed_ns": head.elapsed.as_ns(),
        "lost": head.lost,
        "hidden": head.hidden,
        "lost_tracked": head.lost_tracked,
        "worst_missed": head.worst_missed,
        "unsaved": head.unsaved,
        "cost_ns": head.cost.as_ns(),
        "histograms": interval.series.iter().map(series_json).collect::<Vec<_>>(),
        "worst": interval.worst.iter().map(worst_json).collect::<Vec<_>>(),
        "late": interval.late.iter().map(late_json).collect::<Vec<_>>(),
        "linear": linear.collect::<Vec<_>>(),
    })
}

fn series_json(series: &Series) -> Value {
    json!({
        "scope": series.scope.name(),
        "phase": series.phase.name(),
        "cpu": series.cpu.0,
        "samples": series.histogram.samples(),
        "sum_ns": series.sum.as_ns(),
        "min_ns": series.min.as_ns(),
        "max_ns": series.max.as_ns(),
        "buckets_ns": series.histogram.bounds_ns().collect::<Vec<_>>(),
    })
}

pub(crate) fn worst_json(worst: &Worst) -> Value {
    json!({
        "scope": worst.scope.name(),
        "phase": worst.phase.name(),
        "cpu": worst.cpu.0,
        "value_ns": worst.value.as_ns(),
        "at_ns": worst.at_ns,
        "timer_ns": worst.timer.map(Duration::as_ns),
        "wakeup_ns": worst.parts[0].as_ns(),
        "switch_ns": worst.parts[1].as_ns(),
        "return_ns": worst.parts[2].as_ns(),
        "victim": worst.victim.as_ref().map(task_json),
        "running_at_the_time": worst.culprit.as_ref().map(task_json),
        "other": worst.phase.other(),
        "key": worst.key,
        "interrupted": worst.phase.phase().map(|_| mode_name(worst.mode)),
        "function": worst.function,
        "call": worst.call,
        "stack": worst.stack,
    })
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Kernel => "kernel",
        Mode::User => "user",
        Mode::Idle => "idle",
        Mode::Enabled => "kernel_interrupts_on",
        Mode::Hidden => "not_seen",
    }
}

/// Blocks that gnuplot's `index` chooses by their names.
fn gnuplot(sum: &Interval) -> String {
    let mut text = String::from("# microseconds (middle of the bucket), samples\n");
    for scope in Scope::ALL {
        for phase in sum.kinds(scope) {
            let of_phase = sum.series.iter();
            let of_phase = of_phase.filter(|one| one.scope == scope && one.phase == phase);
            for series in of_phase {
                let (scope, phase) = (scope.name(), phase.name());
                let _ = writeln!(text, "# {scope}_{phase}_cpu{}", series.cpu.0);
                for (from, to, count) in series.histogram.bounds_ns() {
                    let middle_us = (from + to) as f64 / 2000.0;
                    let _ = writeln!(text, "{middle_us:.3} {count}");
                }
                text.push_str("\n\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::sample;

    #[test]
    fn a_row_of_the_table_has_a_cell_for_each_column() {
        let mut interval = sample(1);
        if let Some(victim) = &mut interval.worst[0].victim {
            victim.name = "a,\"b\"".to_owned();
        }
        let rows = csv(&Run::default(), &interval);
        let quoted = "\"a,\"\"b\"\"\"";
        assert!(rows.contains(quoted), "{rows}");
        let plain = rows.replace(quoted, "x");
        let columns = COLUMNS.split(',').count();
        assert!(
            plain.lines().all(|row| row.split(',').count() == columns),
            "{plain}"
        );
        // On another CPU than the longest sample, nobody is named.
        interval.worst[0].cpu = event::Cpu(0);
        let rows = csv(&Run::default(), &interval);
        assert!(rows.ends_with(",,,,,,,,,,\n"), "{rows}");
        assert!(
            rows.lines().all(|row| row.split(',').count() == columns),
            "{rows}"
        );
    }

    #[test]
    fn a_line_has_every_bucket_and_who_was_late() {
        let line = json(&Run::default(), &sample(2));
        assert_eq!(line["histograms"][0]["samples"], 6);
        assert_eq!(line["histograms"][0]["buckets_ns"][0][2], 3);
        assert_eq!(line["worst"][0]["victim"]["name"], "task7");
        assert_eq!(line["worst"][0]["stack"][1], "g+0x2");
        assert_eq!(line["linear"][0]["counts_us"][1][0], 10240);
    }

    #[test]
    fn gnuplot_gets_a_block_for_each_phase_and_cpu() {
        let text = gnuplot(&sample(0));
        assert!(text.contains("# realtime_switch_cpu1\n"), "{text}");
        let rows = text
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        assert_eq!(rows.count(), 2);
    }
}
