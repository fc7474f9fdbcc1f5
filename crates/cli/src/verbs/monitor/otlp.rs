//! Sends the counts to a collector, in a thread of its own: one that is away may keep a sender
//! waiting, and holds up no interval.

use std::thread::JoinHandle;
use std::time::{Duration as Time, Instant};

use event::Result;
use monitor::Metrics;

use crate::options::OtlpOptions;

/// One request at a time; the next one has all that the last one had.
pub(super) struct Sending {
    otlp: OtlpOptions,
    next: Instant,
    running: Option<JoinHandle<Result<()>>>,
    is_away: bool,
}

impl Sending {
    pub fn new(otlp: &OtlpOptions) -> Sending {
        Sending {
            otlp: otlp.clone(),
            next: Instant::now(),
            running: None,
            is_away: false,
        }
    }

    /// Something was counted: sends it when it is time to.
    pub fn counted(&mut self, metrics: &Metrics) {
        self.look();
        if self.running.is_some() || Instant::now() < self.next {
            return;
        }
        let Some(request) = metrics.otlp() else {
            return;
        };
        self.next = Instant::now() + Time::from_nanos(self.otlp.every.as_ns_unsigned());
        let collector = self.otlp.collector.clone();
        self.running = Some(std::thread::spawn(move || collector.send(&request)));
    }

    /// Says what became of the last request; of several that fail alike the first one.
    fn look(&mut self) {
        let Some(ended) = self.running.take_if(|running| running.is_finished()) else {
            return;
        };
        let to = &self.otlp.to;
        match ended.join() {
            Ok(Ok(())) if std::mem::take(&mut self.is_away) => note!("{to} is there again"),
            Ok(Ok(())) => {}
            Ok(Err(error)) if !std::mem::replace(&mut self.is_away, true) => {
                note!("warning: no metrics are sent; the next ones will have these too\n{error:#}");
            }
            Ok(Err(_)) => {}
            Err(_) => note!("warning: sending to {to} ended badly"),
        }
    }
}
