//! The table of events: what each record of an id means.

use std::ops::Range;

use abi::rings::{self, Entry, Plain};

use crate::described::{Enumerations, described, enumeration, note};
use crate::description::{EventDescription, FieldKind, Note};

/// The fields of all events of a process; more cost a recorder more than they tell anybody.
const ALL_FIELDS_MAX: usize = 1 << 16;
/// The labels of all fields, which are written anew for each, and the bytes of their texts.
const ALL_LABELS_MAX: usize = 1 << 14;
const ALL_LABELS_BYTES_MAX: usize = 1 << 20;
/// So many notes are kept.
const NOTES_MAX: usize = 1 << 10;
/// So many problems.
const PROBLEMS_MAX: usize = 1 << 10;

/// Why an entry of the table was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableProblem {
    /// Where in the table.
    pub offset: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// All events that a process has described so far.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order of their appearance.
    pub events: Vec<EventDescription>,
    /// In the order of their appearance.
    pub notes: Vec<Note>,
    /// What was left out.
    pub problems: Vec<TableProblem>,
    /// Bytes that were read.
    pub read_bytes: usize,
    /// By name, the last that was described.
    enumerations: Enumerations,
    /// Of all events: fields, labels, and the bytes of these.
    fields: usize,
    labels: usize,
    labels_bytes: usize,
    /// For each id, one more than the place of its event; 0 where there is none.
    places: Vec<u32>,
}

impl Table {
    /// Where among the events the one with this id is.
    #[inline]
    pub fn place_of(&self, id: u16) -> Option<usize> {
        let place = self.places.get(usize::from(id))?;
        place.checked_sub(1).map(|place| place as usize)
    }

    /// Takes an event, when there is room for it. Without its labels a field is still a number.
    fn add(&mut self, mut event: EventDescription, at: usize) {
        if self.fields + event.fields.len() > ALL_FIELDS_MAX {
            return self.problem(at, "more fields than a process can have");
        }
        self.fields += event.fields.len();
        for field in &mut event.fields {
            let FieldKind::Enumeration(number, labels) = &field.kind else {
                continue;
            };
            let bytes: usize = labels.iter().map(|label| label.label.len()).sum();
            self.labels += labels.len();
            self.labels_bytes += bytes;
            if self.labels > ALL_LABELS_MAX || self.labels_bytes > ALL_LABELS_BYTES_MAX {
                self.labels -= labels.len();
                self.labels_bytes -= bytes;
                field.kind = FieldKind::Number(*number);
                self.problem(at, "more labels than a process can have");
            }
        }
        let id = usize::from(event.id);
        if self.places.len() <= id {
            self.places.resize(id + 1, 0);
        }
        self.events.push(event);
        self.places[id] = self.events.len() as u32;
    }

    /// Reads the entries in `bytes`, the complete part of the table from `self.read_bytes` on.
    /// Returns the places of the new events.
    pub fn extend(&mut self, bytes: &[u8]) -> Range<usize> {
        let first = self.events.len();
        let mut at = 0;
        while let Some(entry) = bytes.get(at..).and_then(Entry::from_bytes) {
            let header = size_of::<Entry>();
            let total = entry.entry_bytes as usize;
            let text = entry.text_bytes as usize;
            let sound = total.is_multiple_of(8) && text <= total.saturating_sub(header);
            let body = bytes.get(at..at.saturating_add(total));
            let (true, Some(body)) = (sound && total >= header, body) else {
                self.problem(at, "an entry of impossible length");
                // Where the next one begins is not known.
                at = bytes.len();
                break;
            };
            let text = &body[header..header + text];
            if entry.kind == rings::ENTRY_ENUMERATION {
                match enumeration(text) {
                    Ok((name, labels)) => {
                        self.enumerations.insert(name, labels);
                    }
                    Err(what) => self.problem(at, what),
                }
                at += total;
                continue;
            }
            if entry.kind == rings::ENTRY_NOTE {
                match note(text) {
                    Ok(note) if self.notes.len() < NOTES_MAX => self.notes.push(note),
                    Ok(_) => self.problem(at, "more notes than a process can have"),
                    Err(what) => self.problem(at, what),
                }
                at += total;
                continue;
            }
            match described(&entry, text, &self.enumerations) {
                Ok(event) if self.place_of(event.id).is_some() => {
                    self.problem(at, "an id for the second time");
                }
                Ok(event) => self.add(event, at),
                Err(what) => self.problem(at, what),
            }
            at += total;
        }
        self.read_bytes += at;
        first..self.events.len()
    }

    fn problem(&mut self, at: usize, what: &'static str) {
        let offset = self.read_bytes + at;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(TableProblem { offset, what });
        }
    }
}
