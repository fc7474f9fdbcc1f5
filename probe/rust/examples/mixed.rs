//! Everything that the crate can: a macro, a log line, a span of tracing with an event in it.
//! `rtscope record --user 'mixed,rust_log,rust_tracing' -- target/debug/examples/mixed`

use rtscope_probe::{Level, LogSink, TracingLayer, event};
use tracing_subscriber::layer::SubscriberExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    event!(
        Level::Info,
        "mixed",
        "rust",
        i32 "answer" = 42,
        f64 "half" = 0.5,
        text "what" = "text"
    );
    log::set_logger(&LogSink)?;
    log::set_max_level(log::LevelFilter::Trace);
    log::warn!("late by {} ns", 1500);
    let subscriber = tracing_subscriber::registry().with(TracingLayer);
    tracing::subscriber::set_global_default(subscriber)?;
    let span = tracing::info_span!("cycle");
    let _inside = span.enter();
    tracing::error!(late_ns = 1500, "late");
    Ok(())
}
