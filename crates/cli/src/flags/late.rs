//! Which late samples of a measurement are explained, and what is done at each.

use std::path::PathBuf;

use clap::Args;

/// What is done at each late sample that is explained.
#[derive(Clone, Debug, Default, Args)]
pub struct Actions {
    /// Run CMD at each explained sample, with its JSON on stdin
    #[arg(long, value_name = "CMD", help_heading = "What to say")]
    #[arg(hide_short_help = true)]
    pub exec: Option<String>,
    /// Call the function of this BPF object in the kernel at each late sample
    #[arg(long, value_name = "FILE", help_heading = "What to say")]
    #[arg(hide_short_help = true)]
    pub bpf_action: Option<PathBuf>,
}

/// So many late samples are explained unless somebody says it.
pub const WORST_DEFAULT: usize = 20;

/// How many late samples can be explained: each has a snapshot.
pub fn worst_count() -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser;

    clap::value_parser!(u64)
        .range(1..=1000)
        .map(|count| count as usize)
}
