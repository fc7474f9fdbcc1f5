//! Lines of events that threads write ahead, each those of some streams; put in order by who reads
//! them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use event::{Cpu, Error, ErrorKind, Result, TimeRange};
use report::{EventBodies, EventLines, EventTextOptions};
use trace::{Cursor, Damage, Item, Lost, Place, Trace};

use super::out::LINE_BYTES;

/// A thread hands over about so much text at once: so little that it is still in the cache when it
/// is read.
const PIECE_BYTES: usize = 64 << 10;
/// So many pieces a thread may be ahead.
const PIECES_AHEAD: usize = 4;

/// What stands between the lines, or one of them.
pub(super) enum Entry<'a> {
    /// A line's time, if it has one, and what follows it.
    Line(Option<i64>, &'a [u8]),
    /// Events are missing here.
    Lost(Lost),
    /// Bytes that could not be understood.
    Damage(Damage),
}

/// The lines of all threads in the order of one walk.
pub(super) struct Ahead {
    shares: Vec<ShareLines>,
}

/// The lines of one thread, from the next one on.
struct ShareLines {
    pieces: Receiver<Result<Piece>>,
    /// Takes back what was read: new memory costs more than what is written into it.
    used: SyncSender<Piece>,
    piece: Piece,
    next: usize,
    /// Where the text of the next line begins.
    begin: usize,
}

/// Lines in the order of one share.
struct Piece {
    text: EventLines,
    entries: Vec<(Place, What)>,
}

impl Default for Piece {
    fn default() -> Self {
        Piece {
            text: EventLines::with_room_for(PIECE_BYTES + LINE_BYTES),
            entries: Vec::with_capacity(PIECE_BYTES / 64),
        }
    }
}

enum What {
    Line { time: Option<i64>, end: usize },
    Lost(Box<Lost>),
    Damage(Box<Damage>),
}

impl Ahead {
    /// Starts as many threads as there are CPUs for us, unless that is one, or the trace has one
    /// stream: then there is nothing to win. Events of CPUs that are not `wanted` get no line.
    pub fn start<'s>(
        scope: &'s Scope<'s, '_>,
        trace: &'s Trace,
        range: TimeRange,
        options: EventTextOptions,
        wanted: impl Fn(Option<Cpu>) -> bool + Copy + Send + 's,
    ) -> Option<Ahead> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let cursors = trace.shares(range, count);
        if cursors.len() < 2 {
            return None;
        }
        let start = |cursor: Cursor<'s>| {
            let (to, pieces) = sync_channel(PIECES_AHEAD);
            let (used, to_use) = sync_channel(PIECES_AHEAD);
            let bodies = EventBodies::new(trace, options);
            scope.spawn(move || write_all(cursor, bodies, wanted, &to, &to_use));
            ShareLines {
                pieces,
                used,
                piece: Piece {
                    text: EventLines::default(),
                    entries: Vec::new(),
                },
                next: 0,
                begin: 0,
            }
        };
        Some(Ahead {
            shares: cursors.into_iter().map(start).collect(),
        })
    }

    /// Hands the entries to `take`, in order.
    ///
    /// # Errors
    /// As [`Cursor::next`], and what `take` returns.
    pub fn each(mut self, mut take: impl FnMut(Entry<'_>) -> Result<()>) -> Result<()> {
        let mut share = 0;
        while share < self.shares.len() {
            match self.shares[share].has_next()? {
                true => share += 1,
                false => drop(self.shares.swap_remove(share)),
            }
        }
        while let Some(first) = self.first() {
            take(self.shares[first].take())?;
            if !self.shares[first].has_next()? {
                self.shares.swap_remove(first);
            }
        }
        Ok(())
    }

    /// Whose next line is the first of all.
    fn first(&self) -> Option<usize> {
        let places = self.shares.iter().map(ShareLines::place).enumerate();
        places
            .min_by_key(|(_, place)| *place)
            .map(|(share, _)| share)
    }
}

impl ShareLines {
    /// Whether there is a next line; waits for it.
    #[inline]
    fn has_next(&mut self) -> Result<bool> {
        while self.next == self.piece.entries.len() {
            let Ok(piece) = self.pieces.recv() else {
                return Ok(false);
            };
            let mut read = std::mem::replace(&mut self.piece, piece?);
            (self.next, self.begin) = (0, 0);
            read.text.clear();
            read.entries.clear();
            // Where it has enough of them this one goes away.
            let _ = self.used.try_send(read);
        }
        Ok(true)
    }

    fn place(&self) -> Option<Place> {
        self.piece.entries.get(self.next).map(|(place, _)| *place)
    }

    /// The next line, which is there.
    #[inline]
    fn take(&mut self) -> Entry<'_> {
        let (_, what) = &self.piece.entries[self.next];
        self.next += 1;
        match what {
            What::Line { time, end } => {
                let text = &self.piece.text.text()[self.begin..*end];
                self.begin = *end;
                Entry::Line(*time, text)
            }
            What::Lost(lost) => Entry::Lost(**lost),
            What::Damage(damage) => Entry::Damage((**damage).clone()),
        }
    }
}

/// Writes the lines of one share, until nobody wants them.
fn write_all(
    mut cursor: Cursor<'_>,
    mut bodies: EventBodies<'_>,
    wanted: impl Fn(Option<Cpu>) -> bool,
    to: &SyncSender<Result<Piece>>,
    used: &Receiver<Piece>,
) {
    let mut piece = Piece::default();
    let walked = cursor.each_placed(|place, item| {
        let what = match item {
            Item::Event(event) if !wanted(event.cpu()) => return Ok(()),
            Item::Event(event) => {
                bodies.write(event, &mut piece.text);
                What::Line {
                    time: bodies.time(event),
                    end: piece.text.text().len(),
                }
            }
            Item::Lost(lost) => What::Lost(Box::new(*lost)),
            Item::Damage(damage) => What::Damage(Box::new(damage.clone())),
        };
        piece.entries.push((place, what));
        if piece.text.text().len() < PIECE_BYTES {
            return Ok(());
        }
        let next = used.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut piece, next);
        to.send(Ok(full))
            .map_err(|_| Error::new(ErrorKind::InvalidInput, "nobody reads further"))
    });
    // Who reads no further misses nothing.
    let _ = to.send(walked.map(|()| piece));
}
