//! `rtscope monitor`: counts the phases of wake-ups, an interval after the other, and tells of
//! them.

mod clock;
mod daemon;
mod fleet;
mod names;
mod notify;
mod otlp;
mod pages;
mod tracked;
mod watching;

pub use pages::metrics_page;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use event::{Error, ErrorKind, Result};
use ftrace::Tracefs;
use monitor::{Format, Range, Store, export, export_osadl, report};

use crate::exit::{Outcome, print, stdout_error, write_error};
use crate::flags::{Monitor, MonitorExport, MonitorFormat, MonitorPart, MonitorWhat};
use crate::options::{MonitorOptions, positive_duration, scope, store_path};

/// Runs the verb.
pub fn run(typed: &Monitor) -> Result<Outcome> {
    match &typed.what {
        None if typed.check_config => {
            let options = MonitorOptions::new(typed)?;
            if let (Some(question), Ok(_)) = (&options.pair, Tracefs::find()) {
                // Events that are not there are told now, not when the daemon starts.
                capture::watch::pair(question)?;
            }
            let every = options.every;
            let store = options.store.display();
            print(&format!(
                "fine: an interval every {every:#}, into {store}\n"
            ))?;
            Ok(Outcome::Fine)
        }
        None => daemon::run(typed),
        Some(MonitorWhat::Report(typed)) => {
            let (store, range) = open(&typed.part)?;
            print(&report(&store, range, scope(typed.scope), typed.top)?)?;
            Ok(Outcome::Fine)
        }
        Some(MonitorWhat::Export(typed)) => write_export(typed),
        Some(MonitorWhat::Push(typed)) => fleet::push_now(typed),
    }
}

/// The store and the part of it that was typed.
fn open(typed: &MonitorPart) -> Result<(Store, Range)> {
    let store = Store::open(&store_path(typed.store.as_deref()))?;
    let mut range = Range::ALL;
    if let Some(last) = &typed.last {
        let last = positive_duration("--last", last)?;
        range.begin_ns = clock::wall_ns().saturating_sub(last.as_ns());
    }
    Ok((store, range))
}

/// Where several files go.
fn folder<'t>(typed: &'t MonitorExport, format: &str) -> Result<&'t Path> {
    typed.output.as_deref().ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "several files need a folder")
            .found("no --output")
            .fix(format!("give one: --to {format} -o DIR"))
    })
}

fn write_export(typed: &MonitorExport) -> Result<Outcome> {
    let (store, range) = open(&typed.part)?;
    let format = match typed.to {
        MonitorFormat::Csv => Format::Csv,
        MonitorFormat::Json => Format::Json,
        MonitorFormat::Gnuplot => Format::Gnuplot,
        MonitorFormat::Osadl => {
            export_osadl(&store, range, folder(typed, "osadl")?)?;
            return Ok(Outcome::Fine);
        }
        MonitorFormat::Parquet => {
            ::fleet::export_parquet(&store, range, folder(typed, "parquet")?)?;
            return Ok(Outcome::Fine);
        }
    };
    match &typed.output {
        Some(path) => {
            let file = File::create(path).map_err(|error| write_error(path, error))?;
            let mut out = BufWriter::new(file);
            export(&store, range, format, &mut out)?;
            out.flush().map_err(|error| write_error(path, error))?;
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            export(&store, range, format, &mut out)?;
            out.flush().map_err(stdout_error)?;
        }
    }
    Ok(Outcome::Fine)
}
