//! The formats: what people type, what comes out, who writes it.
//!
//! Adding one is an entry in the table below, beside the file that writes it.

use std::path::Path;

use ctf::writer::Dialect;
use event::Result;
use trace::Trace;

use crate::csv::Csv;
use crate::ctf_sink::CtfSink;
use crate::json::JsonLines;
use crate::perfetto::Perfetto as PerfettoFile;
use crate::sink::Sink;
#[cfg(feature = "arrow")]
use crate::tables::{TableFormat, Tables};

macro_rules! formats {
    ($(
        $(#[$when:meta])?
        $format:ident $name:literal $place:ident $about:literal, $create:expr;
    )*) => {
        /// A format that a trace can be converted to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[$when])? #[doc = $about] $format,)*
        }

        impl Format {
            /// All of them, in the order in which people read them.
            pub const ALL: &[Format] = &[$($(#[$when])? Format::$format,)*];

            /// As people type it.
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[$when])? Format::$format => $name,)*
                }
            }

            /// What comes out, in a line.
            pub fn about(self) -> &'static str {
                match self {
                    $($(#[$when])? Format::$format => $about,)*
                }
            }

            /// Whether it is one file, which may be stdout.
            pub fn is_file(self) -> bool {
                match self {
                    $($(#[$when])? Format::$format => Place::$place == Place::File,)*
                }
            }

            fn create<'t>(self, trace: &'t Trace, output: &Path) -> Result<Box<dyn Sink + 't>> {
                Ok(match self {
                    $($(#[$when])? Format::$format => Box::new($create(trace, output)?),)*
                })
            }
        }
    };
}

/// What an output is.
#[derive(PartialEq)]
enum Place {
    File,
    Directory,
}

formats! {
    Ctf1 "ctf1" Directory "A directory in CTF 1.8, which every reader has", ctf1;
    Ctf2 "ctf2" Directory "A directory in CTF 2", ctf2;
    Json "json" File "A line of JSON for each event; schema rtscope.events version 1",
        JsonLines::create;
    Csv "csv" Directory "A directory with a table for each event class", Csv::create;
    Perfetto "perfetto" File "A file that ui.perfetto.dev opens", PerfettoFile::create;
    #[cfg(feature = "arrow")]
    Parquet "parquet" Directory "Parquet files by host, date and event class", parquet;
    #[cfg(feature = "arrow")]
    Arrow "arrow" Directory "The same as files of Arrow", arrow;
}

fn ctf1(trace: &Trace, output: &Path) -> Result<CtfSink> {
    CtfSink::create(trace, output, Dialect::Ctf18)
}

fn ctf2(trace: &Trace, output: &Path) -> Result<CtfSink> {
    CtfSink::create(trace, output, Dialect::Ctf2)
}

#[cfg(feature = "arrow")]
fn parquet<'t>(trace: &'t Trace, output: &Path) -> Result<Tables<'t>> {
    Tables::create(trace, output, TableFormat::Parquet)
}

#[cfg(feature = "arrow")]
fn arrow<'t>(trace: &'t Trace, output: &Path) -> Result<Tables<'t>> {
    Tables::create(trace, output, TableFormat::Arrow)
}

/// A sink for the events of `trace`; `output` is a path that does not exist yet, or `-` for stdout
/// where the format is one file.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when the output is there already; otherwise what the
/// operating system says.
pub fn sink<'t>(format: Format, trace: &'t Trace, output: &Path) -> Result<Box<dyn Sink + 't>> {
    format.create(trace, output)
}
