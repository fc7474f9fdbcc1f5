//! An index as bytes, for whoever keeps it, and back. Bytes from outside are hostile: what is not
//! exactly what [`Index::to_bytes`] writes is refused.

use crate::index::{Index, Loss, TaskFacts};
use crate::latency::Activation;
use crate::state::State;
use crate::track::Track;

const MAGIC: &[u8; 8] = b"RTSCOPEI";
/// Grows when the bytes, or what the numbers in them mean, change.
const VERSION: u32 = 2;

impl Index {
    /// All of it; `key` is what it was made of, by the caller's own reckoning.
    pub fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.0.extend_from_slice(MAGIC);
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
            out.list(family, |out, one| {
                out.i64(one.end_ns);
                out.i64(one.latency_ns);
                for number in [one.task, one.cpu, one.what] {
                    out.u32(number);
                }
            });
        }
        out.i64(self.irq_names.len() as i64);
        for (irq, name) in &self.irq_names {
            out.u32(*irq);
            out.text(name.as_bytes());
        }
        out.list(&self.call_names, |out, name| out.text(name.as_bytes()));
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
        let sum = checksum(&out.0);
        out.i64(sum as i64);
        out.0
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
            activations: from.list(Reader::activation)?,
            irqs: from.list(Reader::activation)?,
            softirqs: from.list(Reader::activation)?,
            calls: from.list(Reader::activation)?,
            irq_names: from
                .list(|from| Some((from.u32()?, from.string()?)))?
                .into_iter()
                .collect(),
            call_names: from.list(Reader::string)?,
            losses: from.list(Reader::loss)?,
            checkpoints: from.list(|from| Some((from.i64()?, from.u32()?)))?,
        };
        from.0.is_empty().then_some(index)
    }
}

/// FNV-1a over words of eight bytes: tells a damaged file, not a forged one.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0100_0000_01b3);
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let sum = words.fold(0xcbf2_9ce4_8422_2325, mix);
    let rest = rest.iter().map(|byte| u64::from(*byte));
    mix(rest.fold(sum, mix), bytes.len() as u64)
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn i64(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn option(&mut self, number: Option<i64>) {
        self.u32(number.is_some().into());
        self.i64(number.unwrap_or(0));
    }

    fn text(&mut self, text: &[u8]) {
        self.i64(text.len() as i64);
        self.0.extend_from_slice(text);
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Writer, &T)) {
        self.i64(list.len() as i64);
        list.iter().for_each(|item| each(self, item));
    }

    fn track(&mut self, track: &Track) {
        let (begins_ns, states, end_ns) = track.parts();
        self.list(begins_ns, |out, begin| out.i64(*begin));
        self.list(states, |out, state| out.u32(state.0));
        self.i64(end_ns);
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

    fn activation(&mut self) -> Option<Activation> {
        Some(Activation {
            end_ns: self.i64()?,
            latency_ns: self.i64()?,
            task: self.u32()?,
            cpu: self.u32()?,
            what: self.u32()?,
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
        let begins_ns = self.list(Reader::i64)?;
        let states = self.list(|from| from.u32().map(State))?;
        Track::of_parts(begins_ns, states, self.i64()?)
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
