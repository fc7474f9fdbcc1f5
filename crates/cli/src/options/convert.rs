//! What `rtscope convert` was asked to do.

use std::path::PathBuf;

use event::{Error, ErrorKind, Result};
use export::Format;
use expr::Expr;

use super::WindowOptions;
use crate::flags::{self, To};

/// A conversion, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertOptions {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// The format.
    pub format: Format,
    /// Where to.
    pub output: PathBuf,
    /// Where to look.
    pub window: WindowOptions,
    /// Only events that match.
    pub filter: Option<Expr>,
}

impl ConvertOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`event::ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Convert) -> Result<Self> {
        if typed.output.as_os_str() == "-" && !matches!(typed.to, To::Json | To::Perfetto) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "the format is a directory, and stdout is none",
            )
            .found("-o -")
            .mend("name a directory with -o, or choose --to json or --to perfetto"));
        }
        Ok(ConvertOptions {
            traces: typed.trace.clone(),
            format: match typed.to {
                To::Ctf1 => Format::Ctf1,
                To::Ctf2 => Format::Ctf2,
                To::Json => Format::Json,
                To::Csv => Format::Csv,
                To::Perfetto => Format::Perfetto,
                #[cfg(feature = "arrow")]
                To::Parquet => Format::Parquet,
                #[cfg(feature = "arrow")]
                To::Arrow => Format::Arrow,
            },
            output: typed.output.clone(),
            window: WindowOptions::new(&typed.window)?,
            filter: typed.filter.as_deref().map(Expr::parse).transpose()?,
        })
    }
}
