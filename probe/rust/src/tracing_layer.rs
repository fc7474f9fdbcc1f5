//! tracing's events as `rust_tracing:event`, its spans as `rust_tracing:span_begin` and `span_end`.

use std::fmt::{Debug, Write as _};

use tracing_core::field::{Field, Visit};
use tracing_core::span::Id;
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::{Level, event};

/// A layer for a registry of tracing-subscriber. Values are formatted only while somebody records.
#[derive(Clone, Copy, Debug)]
pub struct TracingLayer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_event(&self, tracing: &Event<'_>, _: Context<'_, S>) {
        let metadata = tracing.metadata();
        let said = || {
            let mut said = Said::default();
            tracing.record(&mut said);
            said.0
        };
        event!(
            Level::Info,
            "rust_tracing",
            "event",
            u8 "log_level" = level(*metadata.level()),
            u32 "line" = metadata.line().unwrap_or(0),
            text "target" = metadata.target(),
            text "msg" = said().as_str()
        );
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let name = context.span(id).map_or("", |span| span.name());
        event!(Level::Info, "rust_tracing", "span_begin",
            x64 "cookie" = id.into_u64(), text "name" = name);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let name = context.span(id).map_or("", |span| span.name());
        event!(Level::Info, "rust_tracing", "span_end",
            x64 "cookie" = id.into_u64(), text "name" = name);
    }
}

/// The message, then the other fields as `name=value`.
#[derive(Default)]
struct Said(String);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let space = if self.0.is_empty() { "" } else { " " };
        // Writing to a String fails only when a value of the program's own does.
        let _ = match field.name() {
            "message" => write!(self.0, "{space}{value:?}"),
            name => write!(self.0, "{space}{name}={value:?}"),
        };
    }
}

fn level(level: tracing_core::Level) -> u8 {
    let level = match level {
        tracing_core::Level::ERROR => Level::Error,
        tracing_core::Level::WARN => Level::Warning,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::DEBUG => Level::DebugLine,
        _ => Level::Debug,
    };
    level as u8
}
