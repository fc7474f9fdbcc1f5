//! Periods one by one, for logs and tops that ask of no other ones: each is forgotten at its end.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::period::Period;
use crate::periods::{Captured, Kept, Turn};
use crate::reports::log::{Bytes, Record};
use crate::reports::options::{ReportOptions, Views};
use crate::reports::sorted_log::SortedLog;
use crate::reports::top::Top;

/// A period, and how many began before it.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    rank: u64,
    pub period: Period,
}

impl Ord for Plain {
    fn cmp(&self, other: &Plain) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl PartialOrd for Plain {
    fn partial_cmp(&self, other: &Plain) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Plain {}

impl PartialEq for Plain {
    fn eq(&self, other: &Plain) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Record for Plain {
    fn write(&self, to: &mut Vec<u8>) {
        let period = &self.period;
        [self.rank as i64, period.def as i64].write(to);
        [period.begin_ns, period.end_ns].write(to);
        write_captured(&period.begin_captures, to);
        write_captured(&period.end_captures, to);
    }

    fn read(from: &mut Bytes<'_>) -> Plain {
        let [rank, def, begin_ns, end_ns] = Record::read(from);
        let period = Period {
            begin_ns,
            end_ns,
            // Only those are kept.
            completed: true,
            begin_captures: read_captured(from),
            end_captures: read_captured(from),
            ..Period::new(def as usize)
        };
        Plain {
            rank: rank as u64,
            period,
        }
    }
}

/// What stands before a kept value.
const NONE: i64 = 0;
const INTEGER: i64 = 1;
const FLOAT: i64 = 2;
const TEXT: i64 = 3;

fn write_captured(captured: &Captured, to: &mut Vec<u8>) {
    (captured.len() as i64).write(to);
    for (name, value) in captured {
        write_bytes(name.as_bytes(), to);
        match value {
            None => NONE.write(to),
            Some(Kept::Integer(value)) => {
                INTEGER.write(to);
                to.extend(value.to_le_bytes());
            }
            Some(Kept::Float(value)) => [FLOAT, value.to_bits() as i64].write(to),
            Some(Kept::Text(text)) => {
                TEXT.write(to);
                write_bytes(text, to);
            }
        }
    }
}

fn read_captured(from: &mut Bytes<'_>) -> Captured {
    let count = from.integer();
    let one = |_| {
        let name = String::from_utf8_lossy(from.bytes()).into_owned();
        let value = match from.integer() {
            INTEGER => Some(Kept::Integer(i128::from_le_bytes(from.array()))),
            FLOAT => Some(Kept::Float(f64::from_bits(from.integer() as u64))),
            TEXT => Some(Kept::Text(from.bytes().into())),
            _ => None,
        };
        (name, value)
    };
    (0..count).map(one).collect()
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    (bytes.len() as i64).write(to);
    to.extend(bytes);
}

/// The periods that are wanted, of which only the open ones are in memory.
#[derive(Debug)]
pub(super) struct PlainLog {
    views: Views,
    begun: u64,
    /// By the number that the matcher gave them.
    open: HashMap<u64, Plain>,
    pub log: SortedLog<Plain>,
    pub top: Top<Plain>,
}

impl PlainLog {
    pub fn new(options: &ReportOptions, views: Views) -> PlainLog {
        PlainLog {
            views,
            begun: 0,
            open: HashMap::new(),
            log: SortedLog::new(&options.spill),
            top: Top::new(options.limit),
        }
    }

    /// Takes in what happened to a period; `wants` says of one that ended whether it is in the
    /// log, and whether in the top.
    pub fn turn(&mut self, turn: &Turn<'_>, now_ns: i64, wants: impl Fn(&Period) -> (bool, bool)) {
        match turn {
            Turn::Begin {
                id, def, captured, ..
            } => {
                let period = Period {
                    begin_ns: now_ns,
                    begin_captures: (*captured).clone(),
                    ..Period::new(*def)
                };
                let rank = self.begun;
                self.begun += 1;
                self.open.insert(*id, Plain { rank, period });
            }
            Turn::End {
                id,
                completed,
                captured,
            } => {
                let Some(mut plain) = self.open.remove(id) else {
                    return;
                };
                plain.period.end_ns = now_ns;
                plain.period.completed = *completed;
                plain.period.end_captures = captured.clone();
                let (in_log, in_top) = wants(&plain.period);
                if in_top && self.views.top {
                    let ns = plain.period.duration_ns();
                    self.top.push(ns, plain.rank, plain.clone());
                }
                if in_log && self.views.log {
                    self.log.push(plain);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_read_as_it_was_written() {
        let kept = [
            Some(Kept::Integer(-5)),
            Some(Kept::Integer(i128::from(u64::MAX))),
            Some(Kept::Float(0.5)),
            Some(Kept::Text(b"jackd\xff".as_slice().into())),
            None,
        ];
        let captured = kept.into_iter().zip(["a", "b", "c", "comm", ""]);
        let plain = Plain {
            rank: 3,
            period: Period {
                begin_ns: -1,
                end_ns: 7,
                completed: true,
                begin_captures: captured
                    .map(|(kept, name)| (name.to_owned(), kept))
                    .collect(),
                ..Period::new(2)
            },
        };
        let mut bytes = Vec::new();
        plain.write(&mut bytes);
        let mut bytes = Bytes(&bytes);
        let read = Plain::read(&mut bytes);
        assert_eq!(format!("{read:?}"), format!("{plain:?}"));
        assert!(bytes.0.is_empty());
    }
}
