//! Walks beside each other: over CTF streams, over recordings of ftrace, and over the time in which
//! none of them ran.

use event::TimeRange;

use crate::ctf_cursor::CtfCursor;
use crate::ftrace_cursor::FtraceCursor;
use crate::{Disorder, EventView, Item, Lost};

pub(crate) struct BesideCursor<'a> {
    ctf: Option<CtfCursor<'a>>,
    ftrace: Option<FtraceCursor<'a>>,
    /// Those to come, in the order of time.
    silences: &'a [Lost],
    range: TimeRange,
    /// Which of them handed out last.
    last: Walked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walked {
    Ctf,
    Ftrace,
    Silence,
}

impl<'a> BesideCursor<'a> {
    /// All of them inside `range`.
    pub fn new(
        ctf: Option<CtfCursor<'a>>,
        ftrace: Option<FtraceCursor<'a>>,
        silences: &'a [Lost],
        range: TimeRange,
    ) -> Self {
        BesideCursor {
            ctf,
            ftrace,
            silences,
            range,
            last: Walked::Ctf,
        }
    }

    #[inline(never)]
    pub fn next(&mut self) -> Option<Item<'_>> {
        let ctf_ns = self.ctf.as_mut().and_then(CtfCursor::settle);
        let ftrace_ns = self.ftrace.as_mut().and_then(FtraceCursor::settle);
        let silence_ns = self.silence().map(|lost| lost.range.begin.as_ns());
        // At one instant the silence comes first: it begins behind the last event of who fell
        // silent.
        let all = [
            (silence_ns, Walked::Silence),
            (ctf_ns, Walked::Ctf),
            (ftrace_ns, Walked::Ftrace),
        ];
        let there = all
            .into_iter()
            .filter_map(|(ns, walked)| Some((ns?, walked)));
        (_, self.last) = there.min_by_key(|(ns, _)| *ns)?;
        match self.last {
            Walked::Ctf => self.ctf.as_mut()?.take(),
            Walked::Ftrace => self.ftrace.as_mut()?.take(),
            Walked::Silence => {
                let (first, others) = self.silences.split_first()?;
                self.silences = others;
                Some(Item::Lost(*first))
            }
        }
    }

    /// The next silence that touches the range.
    fn silence(&mut self) -> Option<&'a Lost> {
        let (range, silences) = (self.range, self.silences);
        let is_inside = |lost: &Lost| range.begin <= lost.range.end && lost.range.begin < range.end;
        let next = silences.iter().position(is_inside);
        self.silences = &silences[next.unwrap_or(silences.len())..];
        self.silences.first()
    }

    pub fn event(&self) -> Option<EventView<'_>> {
        match self.last {
            Walked::Ctf => self.ctf.as_ref()?.event(),
            Walked::Ftrace => self.ftrace.as_ref()?.event(),
            Walked::Silence => None,
        }
    }

    pub fn disorder(&self) -> Disorder {
        let ctf = self.ctf.as_ref().map(CtfCursor::disorder);
        let ftrace = self.ftrace.as_ref().map(FtraceCursor::disorder);
        let all = || [ctf, ftrace].into_iter().flatten();
        Disorder {
            packets: all().map(|one| one.packets).sum(),
            events: all().map(|one| one.events).sum(),
        }
    }
}
