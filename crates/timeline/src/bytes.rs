//! An index in a file, for whoever keeps it, and back. Blocks come first, as the walk makes them;
//! behind them stands what is read when the file is opened. Bytes from outside are hostile: what
//! is not exactly what was written is refused, and of a damaged block nobody knows what it held.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::activation::{Activation, ROWS};
use crate::index::{Index, Loss, TaskFacts};
use crate::kept::{self, Kept, Lent, Spill, checksum};
use crate::series::Series;
use crate::state::{Kind, State};
use crate::timed::{self, Timed};
use crate::track::{self, Sums, Track};
use crate::users::{UserTrack, UserWhat};

const MAGIC: &[u8; 8] = b"RTSCOPEI";
/// Grows when the bytes, or what the numbers in them mean, change.
const VERSION: u64 = 6;
/// At the end: how long the part before it is that is read first, its sum, and [`MAGIC`].
const END_BYTES: u64 = 24;

/// Where the blocks of an index go that is kept in this file.
pub(crate) fn begun(file: File) -> Spill {
    let mut spill = Spill::to(Lent::new(file), 0);
    spill.put(MAGIC);
    spill
}

/// The file that a walk has put its blocks into.
#[derive(Debug)]
pub struct Spilled(pub(crate) Spill);

impl Spilled {
    /// Writes what [`Index::open`] wants besides; `key` is what the index was made of, by the
    /// caller's own reckoning.
    ///
    /// # Errors
    /// As the file had them.
    pub fn keep(self, index: &Index, key: &[u8]) -> io::Result<()> {
        let mut out = Writer {
            out: Vec::new(),
            spill: self.0,
            room: Vec::new(),
        };
        out.number(VERSION);
        out.text(key);
        out.index(index)?;
        let (mut spill, head) = (out.spill, out.out);
        spill.put(&head);
        spill.put(&(head.len() as u64).to_le_bytes());
        spill.put(&checksum(&head).to_le_bytes());
        spill.put(MAGIC);
        spill.finish()
    }
}

impl Index {
    /// What [`Spilled::keep`] wrote with this `key`; none for anything else. Blocks are read as
    /// they are asked for.
    pub fn open(file: File, key: &[u8]) -> Option<Index> {
        let lent = Lent::new(file);
        let end_at = lent.size_bytes().ok()?.checked_sub(END_BYTES)?;
        let mut end = [0; END_BYTES as usize];
        lent.read(&mut end, end_at).ok()?;
        let (length, rest) = end.split_first_chunk::<8>()?;
        let (sum, magic) = rest.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(*length);
        let head_at = end_at.checked_sub(length).filter(|_| magic == MAGIC)?;
        let mut head = vec![0; usize::try_from(length).ok()?];
        lent.read(&mut head, head_at).ok()?;
        if checksum(&head) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut from = Reader {
            bytes: &head,
            lent: &lent,
        };
        if from.number()? != VERSION || from.text()? != key {
            return None;
        }
        let index = from.index()?;
        from.bytes.is_empty().then_some(index)
    }
}

struct Writer {
    out: Vec<u8>,
    spill: Spill,
    room: Vec<u8>,
}

impl Writer {
    fn index(&mut self, index: &Index) -> io::Result<()> {
        for number in [index.begin_ns, index.end_ns] {
            self.signed(number);
        }
        self.number(index.events);
        self.number(index.damages);
        for tracks in [&index.cpus, &index.threads] {
            self.number(tracks.len() as u64);
            tracks.iter().try_for_each(|track| self.track(track))?;
        }
        self.list(&index.tasks, |out, task| {
            out.signed(task.tid.into());
            out.option(task.pid.map(i64::from));
            out.option(task.prio.map(i64::from));
            out.text(task.comm.as_bytes());
        });
        for family in [
            &index.activations,
            &index.irqs,
            &index.softirqs,
            &index.calls,
        ] {
            self.timed(family)?;
        }
        self.number(index.irq_names.len() as u64);
        for (irq, name) in &index.irq_names {
            self.number((*irq).into());
            self.text(name.as_bytes());
        }
        let text = |out: &mut Writer, text: &String| out.text(text.as_bytes());
        self.list(&index.call_names, text);
        self.list(&index.frequencies, Writer::series);
        self.list(&index.idle_states, Writer::series);
        self.number(index.users.len() as u64);
        index.users.iter().try_for_each(|user| self.user(user))?;
        self.list(&index.user_names, text);
        self.list(&index.losses, |out, loss| {
            out.option(loss.cpu.map(i64::from));
            out.signed(loss.begin_ns);
            out.signed(loss.end_ns);
            out.option(loss.count.map(|count| count as i64));
            out.number(loss.cause.into());
        });
        self.list(&index.checkpoints, |out, (at_ns, skip)| {
            out.signed(*at_ns);
            out.number((*skip).into());
        });
        Ok(())
    }

    fn number(&mut self, number: u64) {
        kept::put(&mut self.out, number);
    }

    fn signed(&mut self, number: i64) {
        self.number(kept::folded(number));
    }

    fn option(&mut self, number: Option<i64>) {
        self.number(number.is_some().into());
        self.signed(number.unwrap_or(0));
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.out.extend_from_slice(text);
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|item| each(self, item));
    }

    /// Where a block is in the file; one that is not yet is put there.
    fn kept(&mut self, kept: &Kept) -> io::Result<()> {
        let (at, bytes) = match kept {
            Kept::Lent { lent, at, bytes } if self.spill.is_in(lent) => (*at, *bytes),
            kept => {
                let content = kept.read(&mut self.room);
                let content = content.ok_or(io::ErrorKind::InvalidData)?;
                match self.spill.keep(content) {
                    Kept::Lent { at, bytes, .. } => (at, bytes),
                    // The file has failed.
                    Kept::Memory(_) => return Err(io::ErrorKind::StorageFull.into()),
                }
            }
        };
        self.number(at);
        self.number(bytes.into());
        Ok(())
    }

    fn track(&mut self, track: &Track) -> io::Result<()> {
        self.number(track.blocks.len() as u64);
        let (mut begin_ns, mut before) = (0, Sums::default());
        for block in &track.blocks {
            self.signed(block.begin_ns.wrapping_sub(begin_ns));
            for (sum, last) in block.before.iter().zip(before) {
                self.number(sum.wrapping_sub(last));
            }
            (begin_ns, before) = (block.begin_ns, block.before);
            self.kept(&block.kept)?;
        }
        let leaders = track.leaders.first().map_or(&[][..], Vec::as_slice);
        for (state, ns) in leaders.iter().take(track.blocks.len()) {
            self.number(state.0.into());
            self.number(*ns);
        }
        track.before.iter().for_each(|sum| self.number(*sum));
        self.times(&track.begins_ns);
        self.list(&track.states, |out, state| out.number(state.0.into()));
        self.signed(track.end_ns);
        Ok(())
    }

    fn times(&mut self, times_ns: &[i64]) {
        let mut before_ns = 0;
        self.list(times_ns, |out, time| {
            out.signed(time.wrapping_sub(before_ns));
            before_ns = *time;
        });
    }

    fn timed(&mut self, timed: &Timed) -> io::Result<()> {
        self.number(timed.blocks.len() as u64);
        for block in &timed.blocks {
            self.signed(block.end_ns);
            // Most rows are empty: those that are not stand with what they lie behind the last.
            let rows = block.by_row.iter().enumerate();
            let rows: Vec<_> = rows.filter(|(_, count)| **count > 0).collect();
            self.list(&rows, |out, (row, count)| {
                out.number(*row as u64);
                out.number((**count).into());
            });
            self.activation(&block.longest);
            self.kept(&block.kept)?;
        }
        self.list(&timed.open, Writer::activation);
        Ok(())
    }

    fn activation(&mut self, one: &Activation) {
        self.signed(one.end_ns);
        self.signed(one.latency_ns);
        for number in [one.task, one.cpu, one.what] {
            self.number(number.into());
        }
    }

    fn series(&mut self, series: &Series) {
        let (times_ns, values) = series.parts();
        self.times(times_ns);
        self.list(values, |out, value| out.signed(*value));
    }

    fn user(&mut self, user: &UserTrack) -> io::Result<()> {
        self.signed(user.tid.into());
        self.option(user.pid.map(i64::from));
        self.text(user.comm.as_bytes());
        match &user.what {
            UserWhat::Events(series) => {
                self.number(0);
                self.series(series);
                Ok(())
            }
            UserWhat::Spans(lane, track) => {
                self.number(u64::from(*lane) + 1);
                self.track(track)
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    lent: &'a Arc<Lent>,
}

impl<'a> Reader<'a> {
    fn index(&mut self) -> Option<Index> {
        Some(Index {
            begin_ns: self.signed()?,
            end_ns: self.signed()?,
            events: self.number()?,
            damages: self.number()?,
            cpus: self.list(Reader::track)?,
            threads: self.list(Reader::track)?,
            tasks: self.list(Reader::task)?,
            activations: self.timed()?,
            irqs: self.timed()?,
            softirqs: self.timed()?,
            calls: self.timed()?,
            irq_names: self
                .list(|from| Some((from.small()?, from.string()?)))?
                .into_iter()
                .collect(),
            call_names: self.list(Reader::string)?,
            frequencies: self.list(Reader::series)?,
            idle_states: self.list(Reader::series)?,
            users: self.list(Reader::user)?,
            user_names: self.list(Reader::string)?,
            losses: self.list(Reader::loss)?,
            checkpoints: self.list(|from| Some((from.signed()?, from.small()?)))?,
        })
    }

    fn number(&mut self) -> Option<u64> {
        kept::take(&mut self.bytes)
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn signed(&mut self) -> Option<i64> {
        self.number().map(kept::unfolded)
    }

    fn option(&mut self) -> Option<Option<i64>> {
        let is_there = self.number()? != 0;
        let number = self.signed()?;
        Some(is_there.then_some(number))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.to_vec()).ok()
    }

    /// Nothing is allocated for items that are not there.
    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        let mut list = Vec::with_capacity(count.min(self.bytes.len() / 4));
        for _ in 0..count {
            list.push(each(self)?);
        }
        Some(list)
    }

    fn kept(&mut self) -> Option<Kept> {
        Some(Kept::Lent {
            at: self.number()?,
            bytes: self.small()?,
            lent: Arc::clone(self.lent),
        })
    }

    fn sums(&mut self, before: Sums) -> Option<Sums> {
        let mut sums = before;
        for sum in &mut sums {
            *sum = sum.wrapping_add(self.number()?);
        }
        Some(sums)
    }

    fn track(&mut self) -> Option<Track> {
        let (mut begin_ns, mut before) = (0i64, [0; Kind::COUNT]);
        let blocks = self.list(|from| {
            begin_ns = begin_ns.wrapping_add(from.signed()?);
            before = from.sums(before)?;
            let kept = from.kept()?;
            Some(track::Block {
                begin_ns,
                before,
                kept,
            })
        })?;
        let mut leaders = Vec::with_capacity(blocks.len());
        for _ in &blocks {
            leaders.push((State(self.small()?), self.number()?));
        }
        let before = self.sums(Sums::default())?;
        let begins_ns = self.times()?;
        let states = self.list(|from| from.small().map(State))?;
        let end_ns = self.signed()?;
        let blocks_ns = blocks.iter().map(|block| block.begin_ns);
        let all_ns: Vec<i64> = blocks_ns.chain(begins_ns.iter().copied()).collect();
        let is_ordered = all_ns.is_sorted_by(|before, after| before < after);
        let ends = begins_ns.last().is_none_or(|last| *last < end_ns);
        let is_track = is_ordered && ends && begins_ns.len() == states.len();
        // What is in no block yet is never empty behind one.
        if !is_track || begins_ns.is_empty() && !blocks.is_empty() {
            return None;
        }
        let mut track = Track::default();
        (track.blocks, track.leaders) = (blocks, vec![leaders]);
        (track.begins_ns, track.states, track.end_ns) = (begins_ns, states, end_ns);
        track.before = before;
        track.lead();
        Some(track)
    }

    fn times(&mut self) -> Option<Vec<i64>> {
        let mut at_ns = 0i64;
        self.list(|from| {
            at_ns = at_ns.wrapping_add(from.signed()?);
            Some(at_ns)
        })
    }

    fn timed(&mut self) -> Option<Timed> {
        let blocks = self.list(|from| {
            let end_ns = from.signed()?;
            let mut by_row = [0; ROWS];
            for (row, count) in from.list(|from| Some((from.small()?, from.small()?)))? {
                *by_row.get_mut(row as usize)? = u16::try_from(count).ok()?;
            }
            Some(timed::Block {
                end_ns,
                by_row,
                longest: from.activation()?,
                kept: from.kept()?,
            })
        })?;
        let open = self.list(Reader::activation)?;
        let is_ordered = open.is_sorted_by_key(|one| one.end_ns)
            && blocks.is_sorted_by_key(|block| block.end_ns);
        is_ordered.then(|| Timed::of_parts(blocks, open))
    }

    fn activation(&mut self) -> Option<Activation> {
        Some(Activation {
            end_ns: self.signed()?,
            latency_ns: self.signed()?,
            task: self.small()?,
            cpu: self.small()?,
            what: self.small()?,
        })
    }

    fn series(&mut self) -> Option<Series> {
        let times_ns = self.times()?;
        let values = self.list(Reader::signed)?;
        Series::of_parts(times_ns, values)
    }

    fn user(&mut self) -> Option<UserTrack> {
        Some(UserTrack {
            tid: i32::try_from(self.signed()?).ok()?,
            pid: self.option()?.and_then(|pid| i32::try_from(pid).ok()),
            comm: self.string()?,
            what: match self.small()?.checked_sub(1) {
                None => UserWhat::Events(self.series()?),
                Some(lane) => UserWhat::Spans(lane, Box::new(self.track()?)),
            },
        })
    }

    fn task(&mut self) -> Option<TaskFacts> {
        let number = |number: Option<i64>| match number {
            Some(number) => i32::try_from(number).ok().map(Some),
            None => Some(None),
        };
        Some(TaskFacts {
            tid: i32::try_from(self.signed()?).ok()?,
            pid: number(self.option()?)?,
            prio: number(self.option()?)?,
            comm: self.string()?,
        })
    }

    fn loss(&mut self) -> Option<Loss> {
        Some(Loss {
            cpu: self.option()?.map(|cpu| cpu as u32),
            begin_ns: self.signed()?,
            end_ns: self.signed()?,
            count: self.option()?.map(|count| count as u64),
            cause: self.number()? as u8,
        })
    }
}
