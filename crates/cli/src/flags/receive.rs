//! `rtscope receive`, and how a recording is sent there.

use std::path::PathBuf;

use clap::Args;

/// Where a recording goes besides, here and in sessions.
#[derive(Clone, Debug, Default, Args)]
pub struct RecordTo {
    /// To rtscope receive on another host, while it is recorded
    ///
    /// Nothing stays on this disk but what the other host does not have yet; docs/streaming.md.
    #[arg(long, value_name = "HOST[:PORT]", hide_short_help = true)]
    pub to: Option<String>,
    /// The file with the token that both hosts have
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// So much may wait here while the other host is away (default: 256M)
    ///
    /// Events that find no room are lost, and counted in the trace.
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub spool: Option<String>,
}

/// What was typed after `receive`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Receive {
    /// Where to listen (default: 127.0.0.1:7423)
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// The folder of the traces, below each host's name (default: rtscope-received)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The file with the token that senders must have; made when it is not there
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  rtscope receive --token-file token -o traces
  sudo rtscope record --to logger --token-file token        on the other hosts
  rtscope cat --live traces/HOST/NAME                       while it comes in

What a token does not protect, and how to put it inside of ssh or WireGuard: docs/streaming.md.";
