//! Flags of a watch that a trace has no answer to.

use clap::Args;

/// Control groups, which no trace knows: taken to say so, and what helps.
#[derive(Clone, Debug, Default, Args)]
pub struct TraceGroups {
    /// Tasks of this control group
    #[arg(long, value_name = "PATH|NAME", hide = true)]
    pub cgroup: Option<String>,
    /// Tasks of this unit of systemd
    #[arg(long, value_name = "NAME", hide = true)]
    pub unit: Option<String>,
    /// Tasks of this container
    #[arg(long, value_name = "NAME|ID", hide = true)]
    pub container: Option<String>,
}
