//! `rtscope convert`.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use export::Format;

use super::Window;

/// What was typed after `convert`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Convert {
    /// The traces or snapshots, merged by their wall clocks
    #[arg(required = true)]
    pub trace: Vec<PathBuf>,
    /// The format
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub to: To,
    /// A new path, or - for stdout (json, perfetto)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The part to convert.
    #[command(flatten)]
    pub window: Window,
    /// Only events that match, as in 'next_prio < 0'
    ///
    /// docs/filter.md is the language.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
}

/// A format, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct To(pub Format);

impl ValueEnum for To {
    fn value_variants<'a>() -> &'a [To] {
        static ALL: LazyLock<Vec<To>> =
            LazyLock::new(|| Format::ALL.iter().copied().map(To).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.0.name()).help(self.0.about());
        Some(match self.0 {
            // What every reader has is what people mean.
            Format::Ctf1 => value.alias("ctf"),
            _ => value,
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  rtscope convert TRACE --to ctf1 -o part --begin +1.5s --end +2s
  rtscope convert TRACE --to json -o events.json
  rtscope convert TRACE --to csv -o tables --filter '$name =* \"sched_*\"'
  rtscope convert TRACE --to perfetto -o trace.pftrace
docs/convert.md has the formats. The output appears whole or not at all.";
