//! `rtscope cat`: the events of a trace, a line each, in time order.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use event::{Error, ErrorKind, Result, TimeRange};
use expr::{Expr, Filter};
use report::{EventLines, EventText, EventTextOptions, EventTimes};
use symbols::UserSymbols;
use trace::{Cursor, Damage, Item, Lost, Trace};

use crate::exit::{Outcome, write_error};
use crate::flags::Cat;
use crate::options::CatOptions;
use crate::paint::Paint;
use crate::verbs::ahead::{Ahead, Entry};
use crate::verbs::follow::follow;
use crate::verbs::passing::pass;
use crate::verbs::{opened, window};

/// Output is written in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;
/// Most lines are shorter.
pub(super) const LINE_BYTES: usize = 4 << 10;

/// Runs the verb.
pub fn run(typed: &Cat, paint: Paint) -> Result<Outcome> {
    let options = CatOptions::new(typed)?;
    if options.live {
        return live(&options, paint);
    }
    let trace = opened::open_all(&options.roots, &options.open)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    window::warn_outside(range, &trace);
    let filter = options.filter.as_ref();
    let filter = filter.map(|expr| compile(expr, &trace)).transpose()?;
    let text = looks(&options, paint);
    let mut print = Print {
        options: &options,
        filter,
        out: Out::new(options.output.as_deref())?,
        complete: true,
    };
    let printed = print.all(&trace, range, text);
    // What was understood is delivered first.
    print.out.flush()?;
    printed?;
    // The program ends: the system takes back at once what many classes take long to give back.
    std::mem::forget(trace);
    Ok(match print.complete {
        true => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}

/// Prints a trace that is being written.
fn live(options: &CatOptions, paint: Paint) -> Result<Outcome> {
    let mut print = Print {
        options,
        filter: None,
        out: Out::new(options.output.as_deref())?,
        complete: true,
    };
    let text = looks(options, paint);
    let followed = match &options.passing {
        Some(passing) => pass(&mut print, text, passing),
        None => follow(&mut print, text),
    };
    print.out.flush()?;
    followed?;
    Ok(match print.complete {
        true => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}

/// How lines look: colours are for terminals, unless somebody insists.
fn looks(options: &CatOptions, paint: Paint) -> EventTextOptions {
    let color = match options.output {
        None => paint.is_on(),
        Some(_) => false,
    };
    EventTextOptions {
        color,
        ..options.text
    }
}

/// A print-out as it goes on.
pub(super) struct Print<'t> {
    pub options: &'t CatOptions,
    pub filter: Option<Filter>,
    pub out: Out,
    complete: bool,
}

impl Print<'_> {
    fn all(&mut self, trace: &Trace, range: TimeRange, text: EventTextOptions) -> Result<()> {
        if self.options.debug_info {
            return self.with_names(trace, range, text);
        }
        if self.filter.is_some() {
            // It must see all streams in order, to know which task runs.
            return self.walk(
                cursor(trace, range, self.filter.as_ref()),
                &mut EventText::new(trace, text),
            );
        }
        let options = self.options;
        let wanted = |cpu| window::wants(&options.window, cpu);
        std::thread::scope(
            |scope| match Ahead::start(scope, trace, range, text, wanted) {
                Some(ahead) => self.in_order(ahead, EventTimes::new(text)),
                None => self.walk(trace.cursor(range), &mut EventText::new(trace, text)),
            },
        )
    }

    /// With names of code behind its addresses.
    fn with_names(
        &mut self,
        trace: &Trace,
        range: TimeRange,
        text: EventTextOptions,
    ) -> Result<()> {
        let mut names = UserSymbols::read(trace)?;
        if names.is_empty() && trace.symbols().is_empty() {
            self.out
                .say("no address gets a name: the trace tells of no process's programs")?;
        }
        let mut lines = EventText::new(trace, text).with_names(&mut names);
        let walked = self.walk(cursor(trace, range, self.filter.as_ref()), &mut lines);
        for problem in names.problems() {
            self.out.say(problem)?;
        }
        walked
    }

    /// With all lines from one thread.
    pub fn walk(&mut self, mut cursor: Cursor<'_>, text: &mut EventText<'_>) -> Result<()> {
        cursor.each(|item| match item {
            Item::Event(event) => {
                // The filter sees every CPU: it learns from all of them which task runs.
                let matches = self.filter.as_mut().is_none_or(|f| f.matches(event));
                if matches && window::wants(&self.options.window, event.cpu()) {
                    text.write(event, &mut self.out.text);
                    self.out.write_piece()?;
                }
                Ok(())
            }
            Item::Lost(lost) => self.lost(lost),
            Item::Damage(damage) => self.damage(damage),
        })
    }

    /// With the lines that several threads write ahead.
    fn in_order(&mut self, ahead: Ahead, mut times: EventTimes) -> Result<()> {
        ahead.each(|entry| match entry {
            Entry::Line(time, rest) => {
                if let Some(time) = time {
                    times.write(time, &mut self.out.text);
                }
                self.out.text.bytes(rest);
                self.out.write_piece()
            }
            Entry::Lost(lost) => self.lost(&lost),
            Entry::Damage(damage) => self.damage(&damage),
        })
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        self.complete = false;
        if let Some(filter) = &mut self.filter {
            filter.lost(lost.cpu);
        }
        self.out.say(&describe(lost))
    }

    fn damage(&mut self, damage: &Damage) -> Result<()> {
        if self.options.live {
            // A packet that is being written: its events come with the next look.
            return Ok(());
        }
        self.complete = false;
        if !self.options.keep_going {
            return Err(unreadable(damage));
        }
        let Damage {
            file,
            offset_bytes,
            reason,
        } = damage;
        let text = format!("unreadable: {file} at byte {offset_bytes}: {reason}");
        self.out.say(&text)
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
        .fix("--keep-going goes on with the next packet")
}

/// Where lines go: in pieces, and with what is said about them in its place.
pub(super) struct Out {
    text: EventLines,
    to: Box<dyn Write>,
    name: String,
}

impl Out {
    fn new(path: Option<&Path>) -> Result<Out> {
        let to: Box<dyn Write> = match path {
            None => Box::new(std::io::stdout().lock()),
            Some(path) => Box::new(File::create(path).map_err(|error| write_error(path, error))?),
        };
        Ok(Out {
            text: EventLines::with_room_for(PIECE_BYTES + LINE_BYTES),
            to,
            name: path.map_or("to stdout".to_owned(), |path| path.display().to_string()),
        })
    }

    #[inline]
    fn write_piece(&mut self) -> Result<()> {
        match self.text.text().len() >= PIECE_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn flush(&mut self) -> Result<()> {
        let text = self.text.text();
        let written = self.to.write_all(text).and_then(|()| self.to.flush());
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
    let named = expr.naming_functions(|meant| trace.symbols().ranges(meant));
    let filter = Filter::new(&named, trace.classes())?;
    for note in filter.program().notes() {
        eprintln!("warning: {note:#}");
    }
    Ok(filter)
}

/// A walk over the events that the filter must see.
pub(super) fn cursor<'t>(
    trace: &'t Trace,
    range: TimeRange,
    filter: Option<&Filter>,
) -> Cursor<'t> {
    match filter {
        Some(filter) => trace.cursor_of(range, |class| filter.wants(class)),
        None => trace.cursor(range),
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
        trace::LossCause::Silent => "none of the traces was recorded then",
        _ => "the trace does not say why",
    };
    format!(
        "lost: {count}{cpu} between {} and {}: {cause}",
        lost.range.begin, lost.range.end
    )
}
