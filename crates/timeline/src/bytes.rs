//! An index as bytes, for whoever keeps it, and back. Bytes from outside are hostile: what is not
//! exactly what [`Index::to_bytes`] writes is refused.

use std::io::{self, Write};

use crate::index::{Index, Loss, TaskFacts};
use crate::latency::Activation;
use crate::series::Series;
use crate::state::State;
use crate::track::Track;
use crate::users::{UserTrack, UserWhat};

const MAGIC: &[u8; 8] = b"RTSCOPEI";
/// Grows when the bytes, or what the numbers in them mean, change.
const VERSION: u32 = 4;

impl Index {
    /// All of it; `key` is what it was made of, by the caller's own reckoning.
    pub fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        self.write(key, &mut bytes).ok();
        bytes
    }

    /// The same, written as it comes: an index may be much larger than the memory that is left.
    ///
    /// # Errors
    /// As `out` has them.
    pub fn write(&self, key: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let mut out = Writer::new(out);
        out.put(MAGIC);
        out.u32(VERSION);
        out.text(key);
        out.i64(self.begin_ns);
        out.i64(self.end_ns);
        out.i64(self.events as i64);
        out.i64(self.damages as i64);
        out.list(&self.cpus, Writer::track);
        out.list(&self.threads, Writer::track);
        out.list(&self.tasks, |out, task| {
            out.i64(task.tid.into());
            out.option(task.pid.map(i64::from));
            out.option(task.prio.map(i64::from));
            out.text(task.comm.as_bytes());
        });
        for family in [&self.activations, &self.irqs, &self.softirqs, &self.calls] {
            let mut before_ns = 0;
            out.list(family, |out, one| {
                out.short(i128::from(one.end_ns) - i128::from(before_ns));
                out.short(one.latency_ns.into());
                // The one task that is none is as short as the others.
                for number in [one.task.wrapping_add(1), one.cpu, one.what] {
                    out.short(number.into());
                }
                before_ns = one.end_ns;
            });
        }
        out.i64(self.irq_names.len() as i64);
        for (irq, name) in &self.irq_names {
            out.u32(*irq);
            out.text(name.as_bytes());
        }
        out.list(&self.call_names, |out, name| out.text(name.as_bytes()));
        out.list(&self.frequencies, Writer::series);
        out.list(&self.idle_states, Writer::series);
        out.list(&self.users, Writer::user);
        out.list(&self.user_names, |out, name| out.text(name.as_bytes()));
        out.list(&self.losses, |out, loss| {
            out.option(loss.cpu.map(i64::from));
            out.i64(loss.begin_ns);
            out.i64(loss.end_ns);
            out.option(loss.count.map(|count| count as i64));
            out.u32(loss.cause.into());
        });
        out.list(&self.checkpoints, |out, (at_ns, skip)| {
            out.i64(*at_ns);
            out.u32(*skip);
        });
        out.end()
    }

    /// What [`Index::to_bytes`] wrote with this `key`; none for anything else.
    pub fn from_bytes(bytes: &[u8], key: &[u8]) -> Option<Index> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut from = Reader(content.strip_prefix(MAGIC)?);
        if from.u32()? != VERSION || from.text()? != key {
            return None;
        }
        let index = Index {
            begin_ns: from.i64()?,
            end_ns: from.i64()?,
            events: from.i64()? as u64,
            damages: from.i64()? as u64,
            cpus: from.list(Reader::track)?,
            threads: from.list(Reader::track)?,
            tasks: from.list(Reader::task)?,
            activations: from.family()?,
            irqs: from.family()?,
            softirqs: from.family()?,
            calls: from.family()?,
            irq_names: from
                .list(|from| Some((from.u32()?, from.string()?)))?
                .into_iter()
                .collect(),
            call_names: from.list(Reader::string)?,
            frequencies: from.list(Reader::series)?,
            idle_states: from.list(Reader::series)?,
            users: from.list(Reader::user)?,
            user_names: from.list(Reader::string)?,
            losses: from.list(Reader::loss)?,
            checkpoints: from.list(|from| Some((from.i64()?, from.u32()?)))?,
            blocks: Default::default(),
        };
        from.0.is_empty().then_some(index)
    }
}

/// FNV-1a over words of eight bytes: tells a damaged file, not a forged one.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = mix_rest(mix_words(SUM_OF_NOTHING, words), rest);
    mix(sum, bytes.len() as u64)
}

const SUM_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x0100_0000_01b3)
}

fn mix_words(sum: u64, words: &[[u8; 8]]) -> u64 {
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.fold(sum, mix)
}

fn mix_rest(sum: u64, rest: &[u8]) -> u64 {
    rest.iter().map(|byte| u64::from(*byte)).fold(sum, mix)
}

/// What is held back before it is written.
const HELD_BYTES: usize = 1 << 16;

struct Writer<'w> {
    out: &'w mut dyn Write,
    held: Vec<u8>,
    sum: u64,
    written_bytes: u64,
    failed: Option<io::Error>,
}

impl Writer<'_> {
    fn new(out: &mut dyn Write) -> Writer<'_> {
        Writer {
            out,
            held: Vec::with_capacity(HELD_BYTES + 64),
            sum: SUM_OF_NOTHING,
            written_bytes: 0,
            failed: None,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= HELD_BYTES {
            self.pass_on();
        }
    }

    /// Writes the whole words that are held.
    fn pass_on(&mut self) {
        let (words, _) = self.held.as_chunks::<8>();
        self.sum = mix_words(self.sum, words);
        let whole = words.len() * 8;
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.held[..whole]).err();
        }
        self.written_bytes += whole as u64;
        self.held.drain(..whole);
    }

    /// Writes what is left, and the sum of all.
    fn end(mut self) -> io::Result<()> {
        self.pass_on();
        let bytes = self.written_bytes + self.held.len() as u64;
        let sum = mix(mix_rest(self.sum, &self.held), bytes);
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.out.write_all(&self.held)?;
        self.out.write_all(&sum.to_le_bytes())
    }

    fn u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    fn i64(&mut self, number: i64) {
        self.put(&number.to_le_bytes());
    }

    /// A number in as few groups of seven bits as it needs, the lowest first; its sign is the
    /// lowest bit. Most differences of times take two or three bytes.
    fn short(&mut self, number: i128) {
        let mut rest = ((number << 1) ^ (number >> 127)) as u128;
        while rest >= 0x80 {
            self.held.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.held.push(rest as u8);
    }

    fn option(&mut self, number: Option<i64>) {
        self.u32(number.is_some().into());
        self.i64(number.unwrap_or(0));
    }

    fn text(&mut self, text: &[u8]) {
        self.i64(text.len() as i64);
        self.put(text);
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.i64(list.len() as i64);
        for item in list {
            each(self, item);
            if self.held.len() >= HELD_BYTES {
                self.pass_on();
            }
        }
    }

    fn track(&mut self, track: &Track) {
        let (begins_ns, states, end_ns) = track.parts();
        let mut before_ns = 0;
        self.list(begins_ns, |out, begin| {
            out.short(i128::from(*begin) - i128::from(before_ns));
            before_ns = *begin;
        });
        self.list(states, |out, state| out.short(state.0.into()));
        self.i64(end_ns);
    }

    fn series(&mut self, series: &Series) {
        let (times_ns, values) = series.parts();
        let mut before_ns = 0;
        self.list(times_ns, |out, time| {
            out.short(i128::from(*time) - i128::from(before_ns));
            before_ns = *time;
        });
        self.list(values, |out, value| out.short((*value).into()));
    }

    fn user(&mut self, user: &UserTrack) {
        self.i64(user.tid.into());
        self.option(user.pid.map(i64::from));
        self.text(user.comm.as_bytes());
        match &user.what {
            UserWhat::Events(series) => {
                self.u32(0);
                self.series(series);
            }
            UserWhat::Spans(lane, track) => {
                self.u32(lane.saturating_add(1));
                self.track(track);
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn option(&mut self) -> Option<Option<i64>> {
        let is_there = self.u32()? != 0;
        let number = self.i64()?;
        Some(is_there.then_some(number))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.i64()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.to_vec()).ok()
    }

    /// As [`Writer::short`] writes it.
    fn short(&mut self) -> Option<i128> {
        let mut number = 0u128;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u128::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some((number >> 1) as i128 ^ -((number & 1) as i128));
            }
        }
        None
    }

    fn short_u32(&mut self) -> Option<u32> {
        u32::try_from(self.short()?).ok()
    }

    /// Instants, each as what it is later than the one before.
    fn later(&mut self, before_ns: &mut i64) -> Option<i64> {
        let at_ns = i64::try_from(i128::from(*before_ns) + self.short()?).ok()?;
        *before_ns = at_ns;
        Some(at_ns)
    }

    fn family(&mut self) -> Option<Vec<Activation>> {
        let mut before_ns = 0;
        self.list(|from| {
            Some(Activation {
                end_ns: from.later(&mut before_ns)?,
                latency_ns: i64::try_from(from.short()?).ok()?,
                task: from.short_u32()?.wrapping_sub(1),
                cpu: from.short_u32()?,
                what: from.short_u32()?,
            })
        })
    }

    /// Nothing is allocated for items that are not there.
    fn list<T>(&mut self, mut each: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.i64()?).ok()?;
        let mut list = Vec::with_capacity(count.min(self.0.len() / 4));
        for _ in 0..count {
            list.push(each(self)?);
        }
        Some(list)
    }

    fn track(&mut self) -> Option<Track> {
        let mut before_ns = 0;
        let begins_ns = self.list(|from| from.later(&mut before_ns))?;
        let states = self.list(|from| from.short_u32().map(State))?;
        Track::of_parts(begins_ns, states, self.i64()?)
    }

    fn series(&mut self) -> Option<Series> {
        let mut before_ns = 0;
        let times_ns = self.list(|from| from.later(&mut before_ns))?;
        let values = self.list(|from| i64::try_from(from.short()?).ok())?;
        Series::of_parts(times_ns, values)
    }

    fn user(&mut self) -> Option<UserTrack> {
        Some(UserTrack {
            tid: i32::try_from(self.i64()?).ok()?,
            pid: self.option()?.and_then(|pid| i32::try_from(pid).ok()),
            comm: self.string()?,
            what: match self.u32()?.checked_sub(1) {
                None => UserWhat::Events(self.series()?),
                Some(lane) => UserWhat::Spans(lane, self.track()?),
            },
        })
    }

    fn task(&mut self) -> Option<TaskFacts> {
        let number = |number: Option<i64>| match number {
            Some(number) => i32::try_from(number).ok().map(Some),
            None => Some(None),
        };
        Some(TaskFacts {
            tid: i32::try_from(self.i64()?).ok()?,
            pid: number(self.option()?)?,
            prio: number(self.option()?)?,
            comm: self.string()?,
        })
    }

    fn loss(&mut self) -> Option<Loss> {
        Some(Loss {
            cpu: self.option()?.map(|cpu| cpu as u32),
            begin_ns: self.i64()?,
            end_ns: self.i64()?,
            count: self.option()?.map(|count| count as u64),
            cause: self.u32()? as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_however_long_it_is() {
        let (most, least) = (i128::from(i64::MAX), i128::from(i64::MIN));
        for number in [
            0,
            1,
            -1,
            63,
            64,
            -65,
            300,
            most,
            least,
            most - least,
            least - most,
        ] {
            let mut nowhere = io::sink();
            let mut out = Writer::new(&mut nowhere);
            out.short(number);
            let mut from = Reader(&out.held);
            assert_eq!(from.short(), Some(number));
            assert!(from.0.is_empty());
        }
        assert_eq!(Reader(&[0x80; 20]).short(), None);
        assert_eq!(Reader(&[0x80]).short(), None);
    }
}
