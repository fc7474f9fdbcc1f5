//! `rtscope cat`: the events of a trace, a line each, in time order.

use std::io::Write;

use event::Result;
use expr::{Expr, Filter};
use report::{EventClock, EventText, EventTextOptions};
use trace::{Item, Lost, Trace};

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
    let filter = options.filter.as_ref();
    let mut filter = filter.map(|expr| compile(expr, &trace)).transpose()?;
    let clock = match options.clock_seconds {
        true => EventClock::TraceSeconds,
        false => EventClock::Day,
    };
    let mut events = EventText::new(
        &trace,
        EventTextOptions {
            clock,
            ..EventTextOptions::default()
        },
    );
    let mut text = Vec::with_capacity(PIECE_BYTES + 4096);
    let mut complete = true;
    let mut stdout = std::io::stdout().lock();
    let mut cursor = match &filter {
        Some(filter) => trace.cursor_of(range, |class| filter.wants(class)),
        None => trace.cursor(range),
    };
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => {
                // The filter sees every CPU: it learns from all of them which task runs.
                let matches = filter.as_mut().is_none_or(|f| f.matches(&event));
                if matches && window::wants(&options.window, event.cpu()) {
                    events.write(&event, &mut text);
                }
            }
            Item::Lost(lost) => {
                complete = false;
                if let Some(filter) = &mut filter {
                    filter.lost(lost.cpu);
                }
                // In its place among the events, as a line that no event looks like.
                note(&mut text, &describe(&lost));
            }
            Item::Damage(damage) => {
                complete = false;
                let place = format!("{} at byte {}", damage.file, damage.offset_bytes);
                note(
                    &mut text,
                    &format!("unreadable: {place}: {}", damage.reason),
                );
            }
        }
        if text.len() >= PIECE_BYTES {
            stdout.write_all(&text).map_err(stdout_error)?;
            text.clear();
        }
    }
    stdout.write_all(&text).map_err(stdout_error)?;
    Ok(if complete {
        Outcome::Fine
    } else {
        Outcome::Inconclusive
    })
}

/// The filter for this trace; what looks like a mistake in it is said at once.
pub(super) fn compile(expr: &Expr, trace: &Trace) -> Result<Filter> {
    let filter = Filter::new(expr, trace.classes())?;
    for note in filter.program().notes() {
        eprintln!("warning: {note:#}");
    }
    Ok(filter)
}

/// A line that no event looks like.
fn note(text: &mut Vec<u8>, note: &str) {
    text.extend_from_slice(b"# ");
    text.extend_from_slice(note.as_bytes());
    text.push(b'\n');
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
