//! The lines of a print-out, with what is missing between them said in its place.

use event::{Error, ErrorKind, Result, TimeRange};
use expr::Filter;
use report::{EventText, EventTextOptions, EventTimes};
use symbols::UserSymbols;
use trace::{Cursor, Damage, Item, Lost, Trace};

use super::ahead::{Ahead, Entry};
use super::out::Out;
use crate::exit::Outcome;
use crate::options::CatOptions;
use crate::verbs::filtered::cursor;
use crate::verbs::window;

/// A print-out as it goes on.
pub(super) struct Print<'t> {
    pub options: &'t CatOptions,
    pub filter: Option<Filter>,
    pub out: Out,
    complete: bool,
}

impl<'t> Print<'t> {
    /// Goes to where the options say.
    pub fn new(options: &'t CatOptions, filter: Option<Filter>) -> Result<Print<'t>> {
        Ok(Print {
            options,
            filter,
            out: Out::new(options.output.as_deref())?,
            complete: true,
        })
    }

    /// Whether all was printed that there was.
    pub fn outcome(&self) -> Outcome {
        match self.complete {
            true => Outcome::Fine,
            false => Outcome::Inconclusive,
        }
    }

    /// All events of a range.
    pub fn all(&mut self, trace: &Trace, range: TimeRange, text: EventTextOptions) -> Result<()> {
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
