//! What BPF read as events happened, in the order of one CPU: an event has the last record that is
//! not younger than it, where that is of its task.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;

use abi::contexts::RawContext;
use abi::raw;
use event::{Error, Result};

/// So much of a file is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// One CPU's records.
#[derive(Debug, Default)]
pub struct Moments {
    /// Those that came and are not over.
    queue: VecDeque<RawContext>,
    current: Option<RawContext>,
    /// From then on the ring was full: what came, nobody knows until the next record.
    full_from_ns: Option<u64>,
    /// Where more come from.
    file: Option<(File, usize)>,
    /// Bytes of a record that has not come whole.
    rest: Vec<u8>,
}

impl Moments {
    /// Those that were kept in `file`, each of so many bytes.
    pub fn kept(file: File, record_bytes: usize) -> Moments {
        Moments {
            file: Some((file, record_bytes.max(1))),
            ..Moments::default()
        }
    }

    /// Adds whole records, each of so many bytes.
    pub fn add(&mut self, bytes: &[u8], record_bytes: usize, is_full: bool) {
        for record in bytes.chunks_exact(record_bytes.max(1)) {
            let mut whole = [0; size_of::<RawContext>()];
            let length = record.len().min(whole.len());
            whole[..length].copy_from_slice(&record[..length]);
            self.queue.extend(raw::read::<RawContext>(&whole));
        }
        if !bytes.is_empty() {
            self.full_from_ns = None;
        }
        if let Some(last) = self.queue.back().or(self.current.as_ref())
            && is_full
        {
            self.full_from_ns = Some(last.time_ns);
        }
    }

    /// What is known of the task `tid` at an instant; none where nothing is. Instants never fall.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn at(&mut self, time_ns: u64, tid: i32) -> Result<Option<&RawContext>> {
        self.read_until(time_ns)?;
        while let Some(next) = self.queue.front().filter(|next| next.time_ns <= time_ns) {
            // One that an interrupt's came before is behind it in the ring.
            let is_older = |current: &RawContext| next.time_ns < current.time_ns;
            if !self.current.as_ref().is_some_and(is_older) {
                self.current = Some(*next);
            }
            self.queue.pop_front();
        }
        let Some(current) = self.current.as_ref().filter(|current| current.tid == tid) else {
            return Ok(None);
        };
        // What was lost came behind this record.
        let is_in_hole = match (self.queue.front(), self.full_from_ns) {
            (Some(next), _) => next.lost > current.lost,
            (None, Some(full_ns)) => time_ns > full_ns,
            (None, None) => false,
        };
        Ok((!is_in_hole).then_some(current))
    }

    /// Reads on until a record is younger, so that what was lost before it is known.
    fn read_until(&mut self, time_ns: u64) -> Result<()> {
        while self.queue.back().is_none_or(|last| last.time_ns <= time_ns) {
            let Some((mut file, record_bytes)) = self.file.take() else {
                return Ok(());
            };
            let mut bytes = std::mem::take(&mut self.rest);
            let known = bytes.len();
            bytes.resize(known + CHUNK_BYTES, 0);
            let read = file.read(&mut bytes[known..]);
            let read = read.map_err(|error| Error::io("cannot read kept contexts", error))?;
            bytes.truncate(known + read);
            let whole = bytes.len() / record_bytes * record_bytes;
            self.add(&bytes[..whole], record_bytes, false);
            self.rest = bytes.split_off(whole);
            if read > 0 {
                self.file = Some((file, record_bytes));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD_BYTES: usize = std::mem::offset_of!(RawContext, ids);

    fn records(all: &[(u64, u64, i32)]) -> Vec<u8> {
        let record = |(time_ns, lost, tid): &(u64, u64, i32)| RawContext {
            time_ns: *time_ns,
            lost: *lost,
            tid: *tid,
            prio: *time_ns as i32,
            ..RawContext::default()
        };
        let bytes = |of: &(u64, u64, i32)| raw::bytes(&record(of))[..RECORD_BYTES].to_vec();
        all.iter().flat_map(bytes).collect()
    }

    fn check(moments: &mut Moments, time_ns: u64, tid: i32, expect: Option<i32>) {
        let found = moments.at(time_ns, tid).expect("read");
        assert_eq!(found.map(|found| found.prio), expect, "{time_ns} {tid}");
    }

    #[test]
    fn an_event_has_the_last_record_before_it_that_is_of_its_task() {
        let mut moments = Moments::default();
        moments.add(
            &records(&[(10, 0, 1), (20, 0, 2), (30, 0, 2)]),
            RECORD_BYTES,
            false,
        );
        check(&mut moments, 9, 1, None);
        check(&mut moments, 10, 1, Some(10));
        check(&mut moments, 19, 1, Some(10));
        check(&mut moments, 19, 3, None);
        check(&mut moments, 25, 2, Some(20));
        check(&mut moments, 40, 2, Some(30));
        // The program of an interrupt ran within that of its task.
        moments.add(&records(&[(51, 0, 2), (50, 0, 2)]), RECORD_BYTES, false);
        check(&mut moments, 52, 2, Some(51));
    }

    #[test]
    fn where_records_were_lost_nothing_is_known_until_the_next() {
        let mut moments = Moments::default();
        moments.add(&records(&[(10, 0, 1), (20, 3, 1)]), RECORD_BYTES, false);
        check(&mut moments, 15, 1, None);
        check(&mut moments, 20, 1, Some(20));
        moments.add(&records(&[(30, 3, 1)]), RECORD_BYTES, true);
        check(&mut moments, 30, 1, Some(30));
        check(&mut moments, 31, 1, None);
        moments.add(&records(&[(40, 4, 1)]), RECORD_BYTES, false);
        check(&mut moments, 35, 1, None);
        check(&mut moments, 41, 1, Some(40));
    }

    #[test]
    fn records_that_were_kept_are_read_as_they_are_needed() {
        let all: Vec<_> = (1..5000).map(|time| (time * 10, 0, 1)).collect();
        let mut bytes = records(&all);
        // The last one was cut.
        bytes.truncate(bytes.len() - 1);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("contexts");
        std::fs::write(&path, bytes).expect("written");
        let mut moments = Moments::kept(File::open(path).expect("there"), RECORD_BYTES);
        check(&mut moments, 11, 1, Some(10));
        assert!(moments.queue.len() < 2000, "{}", moments.queue.len());
        check(&mut moments, 30_005, 1, Some(30_000));
        check(&mut moments, 60_000, 1, Some(49_980));
    }
}
