//! `rtscope cat`: the events of a trace, a line each, in time order.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use event::{Error, ErrorKind, Result};
use expr::{Expr, Filter};
use report::{EventText, EventTextOptions};
use trace::{Cursor, Damage, Item, Lost, Trace};

use crate::exit::Outcome;
use crate::flags::Cat;
use crate::options::CatOptions;
use crate::paint::Paint;
use crate::verbs::window;

/// Output is written in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// Runs the verb.
pub fn run(typed: &Cat, paint: Paint) -> Result<Outcome> {
    let options = CatOptions::new(typed)?;
    let trace = Trace::open_all(&options.roots, &options.open)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    let filter = options.filter.as_ref();
    let filter = filter.map(|expr| compile(expr, &trace)).transpose()?;
    // Colours are for terminals, unless somebody insists.
    let color = match options.output {
        None => paint.is_on(),
        Some(_) => false,
    };
    let cursor = match &filter {
        Some(filter) => trace.cursor_of(range, |class| filter.wants(class)),
        None => trace.cursor(range),
    };
    let mut print = Print {
        options: &options,
        filter,
        events: EventText::new(
            &trace,
            EventTextOptions {
                color,
                ..options.text
            },
        ),
        out: Out::new(options.output.as_deref())?,
        complete: true,
    };
    let printed = print.walk(cursor);
    // What was understood is delivered first.
    print.out.flush()?;
    printed?;
    Ok(match print.complete {
        true => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}

/// A print-out as it goes on.
struct Print<'t> {
    options: &'t CatOptions,
    filter: Option<Filter>,
    events: EventText<'t>,
    out: Out,
    complete: bool,
}

impl Print<'_> {
    fn walk(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        let has_window = !self.options.window.cpus.is_empty();
        while let Some(item) = cursor.next()? {
            match item {
                Item::Event(event) => {
                    // The filter sees every CPU: it learns from all of them which task runs.
                    let matches = self.filter.as_mut().is_none_or(|f| f.matches(&event));
                    let wanted = !has_window || window::wants(&self.options.window, event.cpu());
                    if matches && wanted {
                        self.events.write(&event, &mut self.out.text);
                        self.out.write_piece()?;
                    }
                }
                Item::Lost(lost) => {
                    self.complete = false;
                    if let Some(filter) = &mut self.filter {
                        filter.lost(lost.cpu);
                    }
                    self.out.say(&describe(&lost))?;
                }
                Item::Damage(damage) => {
                    self.complete = false;
                    if !self.options.keep_going {
                        return Err(unreadable(&damage));
                    }
                    let Damage {
                        file,
                        offset_bytes,
                        reason,
                    } = damage;
                    let text = format!("unreadable: {file} at byte {offset_bytes}: {reason}");
                    self.out.say(&text)?;
                }
            }
        }
        Ok(())
    }
}

/// The end of a print-out that was not told to go on.
fn unreadable(damage: &Damage) -> Error {
    let Damage {
        file,
        offset_bytes,
        reason,
    } = damage;
    Error::new(ErrorKind::Corrupt, "the trace cannot be understood further")
        .found(format!("{file} at byte {offset_bytes}: {reason}"))
        .mend("--keep-going goes on with the next packet")
}

/// Where lines go: in pieces, and with what is said about them in its place.
struct Out {
    text: Vec<u8>,
    to: Box<dyn Write>,
    name: String,
}

impl Out {
    fn new(path: Option<&Path>) -> Result<Out> {
        let to: Box<dyn Write> = match path {
            None => Box::new(std::io::stdout().lock()),
            Some(path) => {
                let failed = |cause| Error::io(format!("cannot write {}", path.display()), cause);
                Box::new(File::create(path).map_err(failed)?)
            }
        };
        Ok(Out {
            text: Vec::with_capacity(PIECE_BYTES + 4096),
            to,
            name: path.map_or("to stdout".to_owned(), |path| path.display().to_string()),
        })
    }

    #[inline]
    fn write_piece(&mut self) -> Result<()> {
        match self.text.len() >= PIECE_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.to.write_all(&self.text).and_then(|()| self.to.flush());
        self.text.clear();
        written.map_err(|cause| Error::io(format!("cannot write {}", self.name), cause))
    }

    /// Says on stderr what is missing between the lines before and after.
    fn say(&mut self, text: &str) -> Result<()> {
        self.flush()?;
        eprintln!("warning: {text}");
        Ok(())
    }
}

/// The filter for this trace; what looks like a mistake in it is said at once.
pub(super) fn compile(expr: &Expr, trace: &Trace) -> Result<Filter> {
    let filter = Filter::new(expr, trace.classes())?;
    for note in filter.program().notes() {
        eprintln!("warning: {note:#}");
    }
    Ok(filter)
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
