//! `rtscope cat`: the events of a trace, a line each, in time order.

use std::fmt::Write as _;
use std::io::Write;

use event::{Instant, Result};
use trace::{Item, Lost, Trace};

use crate::event_text::write_event;
use crate::exit::{Outcome, stdout_error};
use crate::flags::Cat;
use crate::options::CatOptions;
use crate::verbs::window;

/// Output is written in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// Runs the verb.
pub fn run(typed: &Cat) -> Result<Outcome> {
    let options = CatOptions::new(typed)?;
    let trace = Trace::open(&options.trace)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    let mut printer = Printer::new(&trace, options.clock_seconds);
    let mut complete = true;
    let mut stdout = std::io::stdout().lock();
    let mut cursor = trace.cursor(range);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                if window::wants(&options.window, event.cpu()) {
                    printer.event(&event);
                }
            }
            Item::Lost(lost) => {
                complete = false;
                // In its place among the events, as a line that no event looks like.
                printer.note(&describe(&lost));
            }
            Item::Damage(damage) => {
                complete = false;
                let place = format!("{} at byte {}", damage.file, damage.offset_bytes);
                printer.note(&format!("unreadable: {place}: {}", damage.reason));
            }
        }
        if printer.text.len() >= PIECE_BYTES {
            stdout
                .write_all(printer.text.as_bytes())
                .map_err(stdout_error)?;
            printer.text.clear();
        }
    }
    stdout
        .write_all(printer.text.as_bytes())
        .map_err(stdout_error)?;
    Ok(if complete {
        Outcome::Fine
    } else {
        Outcome::Inconclusive
    })
}

struct Printer<'a> {
    trace: &'a Trace,
    host: String,
    clock_seconds: bool,
    last: Option<Instant>,
    text: String,
}

impl<'a> Printer<'a> {
    fn new(trace: &'a Trace, clock_seconds: bool) -> Self {
        let host = trace.info().environment.get("hostname");
        let host = host.map(|host| format!("{host} ")).unwrap_or_default();
        let text = String::with_capacity(PIECE_BYTES + 4096);
        Printer {
            trace,
            host,
            clock_seconds,
            last: None,
            text,
        }
    }

    fn event(&mut self, event: &trace::EventView<'_>) {
        let time = event.time();
        self.stamp(time);
        let _ = match self.last {
            Some(last) => write!(
                self.text,
                " (+{}) ",
                Instant::from_ns((time - last).as_ns())
            ),
            None => write!(self.text, " (+?.?????????) "),
        };
        self.last = Some(time);
        self.text.push_str(&self.host);
        if let Some(class) = self.trace.classes().get(event.class().0 as usize) {
            write_event(&mut self.text, class, event);
        }
        self.text.push('\n');
    }

    fn stamp(&mut self, time: Instant) {
        let _ = if self.clock_seconds {
            write!(self.text, "[{time}]")
        } else {
            let ns = self.trace.wall_ns(time);
            let (seconds, ns) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
            let day_seconds = seconds.rem_euclid(86_400);
            let (hours, minutes) = (day_seconds / 3600, day_seconds / 60 % 60);
            write!(
                self.text,
                "[{hours:02}:{minutes:02}:{:02}.{ns:09}]",
                day_seconds % 60
            )
        };
    }

    fn note(&mut self, note: &str) {
        let _ = writeln!(self.text, "# {note}");
    }
}

fn describe(lost: &Lost) -> String {
    let count = lost
        .count
        .map_or("events".to_owned(), |count| format!("{count} events"));
    let cpu = lost.cpu.map_or(String::new(), |cpu| format!(" on {cpu}"));
    let cause = match lost.cause {
        trace::LossCause::Discarded => "the buffer was full",
        trace::LossCause::Overrun => "the reader was overtaken",
        _ => "the trace does not say why",
    };
    format!(
        "lost: {count}{cpu} between {} and {}: {cause}",
        lost.range.begin, lost.range.end
    )
}
