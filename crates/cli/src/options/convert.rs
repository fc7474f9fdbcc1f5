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
        let To(format) = typed.to;
        if typed.output.as_os_str() == "-" && !format.is_file() {
            let files = Format::ALL.iter().filter(|format| format.is_file());
            let files = files.map(|format| format!("--to {}", format.name()));
            let files = files.collect::<Vec<_>>().join(" or ");
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "the format is a directory, and stdout is none",
            )
            .found("-o -")
            .fix(format!("name a directory with -o, or choose {files}")));
        }
        Ok(ConvertOptions {
            traces: typed.trace.clone(),
            format,
            output: typed.output.clone(),
            window: WindowOptions::new(&typed.window)?,
            filter: typed.filter.as_deref().map(Expr::parse).transpose()?,
        })
    }
}
