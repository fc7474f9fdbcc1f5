//! The formats: by name, and who writes each.

use std::path::Path;

use ctf::writer::Dialect;
use event::Result;
use trace::Trace;

use crate::csv::Csv;
use crate::ctf_sink::CtfSink;
use crate::json::JsonLines;
use crate::perfetto::Perfetto;
use crate::sink::Sink;
#[cfg(feature = "arrow")]
use crate::tables::{TableFormat, Tables};

/// A format that a trace can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// CTF 1.8, which every reader has.
    Ctf1,
    /// CTF 2.
    Ctf2,
    /// A line of JSON for each event, after a line that names the schema.
    Json,
    /// A directory with a table for each event class.
    Csv,
    /// Perfetto's protobuf trace, for its UI.
    Perfetto,
    /// Parquet files by host, date and event class.
    #[cfg(feature = "arrow")]
    Parquet,
    /// The same as files of Arrow.
    #[cfg(feature = "arrow")]
    Arrow,
}

/// A sink for the events of `trace`; `output` is a path that does not exist yet, or `-` for stdout
/// where the format is one file.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when the output is there already; otherwise what the
/// operating system says.
pub fn sink<'t>(format: Format, trace: &'t Trace, output: &Path) -> Result<Box<dyn Sink + 't>> {
    Ok(match format {
        Format::Ctf1 => Box::new(CtfSink::create(trace, output, Dialect::Ctf18)?),
        Format::Ctf2 => Box::new(CtfSink::create(trace, output, Dialect::Ctf2)?),
        Format::Json => Box::new(JsonLines::create(trace, output)?),
        Format::Csv => Box::new(Csv::create(trace, output)?),
        Format::Perfetto => Box::new(Perfetto::create(trace, output)?),
        #[cfg(feature = "arrow")]
        Format::Parquet => Box::new(Tables::create(trace, output, TableFormat::Parquet)?),
        #[cfg(feature = "arrow")]
        Format::Arrow => Box::new(Tables::create(trace, output, TableFormat::Arrow)?),
    })
}
