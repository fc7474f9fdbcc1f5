//! For how long a test of `rtscope measure` goes on.

use clap::Args;

/// For how long a test goes on that ends by itself.
#[derive(Clone, Debug, Args)]
pub struct Length {
    /// End after this
    #[arg(
        long = "for",
        alias = "duration",
        value_name = "DUR",
        default_value = "10s"
    )]
    pub run_for: String,
}
