//! CSV (RFC 4180): a directory with a table for each event class that has events, and one for the
//! losses. The columns of a class are its time, its CPU and its fields.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctf::is_packet_bookkeeping;
use ctf::writer::{StagedDir, write_error};
use event::{EventClass, Result, Scope};
use trace::{EventView, Lost, Trace};

use crate::sink::{Sink, cause_word};
use crate::value::{FieldJson, push};

/// The losses' table; a class of this name gets a number.
const LOSSES: &str = "__losses";
/// A table is appended to its file in pieces of about this size; no file is kept open, because a
/// trace may have more classes than a process may have files.
const PIECE_BYTES: usize = 64 << 10;

/// Tables, opened when their first event comes.
pub(crate) struct Csv<'t> {
    trace: &'t Trace,
    dir: StagedDir,
    tables: Vec<Option<Table>>,
    losses: Option<Table>,
    names: HashSet<String>,
    cell: Vec<u8>,
}

struct Table {
    path: PathBuf,
    rows: Vec<u8>,
    fields: Vec<FieldJson>,
}

impl<'t> Csv<'t> {
    pub fn create(trace: &'t Trace, path: &Path) -> Result<Self> {
        Ok(Csv {
            trace,
            dir: StagedDir::create(path)?,
            tables: (0..trace.classes().len()).map(|_| None).collect(),
            losses: None,
            names: HashSet::from([LOSSES.to_owned()]),
            cell: Vec::new(),
        })
    }

    fn open(&mut self, place: usize) {
        let trace = self.trace;
        if let Some(class) = trace.classes().get(place) {
            let name = unique(&file_name(&class.name), &mut self.names);
            let (head, fields) = columns(class);
            self.tables[place] = Some(Table::new(&self.dir, &name, &head, fields));
        }
    }
}

/// The class's name, or that with a number where two differ only in what a file cannot say.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 1;
    while !taken.insert(candidate.to_lowercase()) {
        number += 1;
        candidate = format!("{name}-{number}");
    }
    candidate
}

/// Letters, digits and what harms no shell: everything else is an underscore.
pub(crate) fn file_name(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | ':') => c,
        '.' => '.',
        _ => '_',
    };
    let name: String = name.chars().take(120).map(plain).collect();
    match name.starts_with('.') || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

/// The fields that are columns, by unique names: a context's field that is called as one of the
/// payload is told from it by its scope.
fn columns(class: &EventClass) -> (Vec<u8>, Vec<FieldJson>) {
    let mut head = b"time_ns,wall_ns,cpu".to_vec();
    let mut fields = Vec::new();
    for (place, field, name) in named_fields(class) {
        head.push(b',');
        quote(name.as_bytes(), &mut head);
        fields.push(FieldJson::new(place, field));
    }
    head.extend_from_slice(b"\r\n");
    (head, fields)
}

/// The fields of a class with names that are unique among them and beside `time_ns`, `wall_ns` and
/// `cpu`.
pub(crate) fn named_fields(class: &EventClass) -> Vec<(usize, &event::Field, String)> {
    let mut taken: HashSet<String> = ["time_ns", "wall_ns", "cpu"].map(str::to_owned).into();
    let mut named = Vec::new();
    for (place, field) in class.fields.iter().enumerate() {
        if is_packet_bookkeeping(field) {
            continue;
        }
        let scope = match field.scope {
            Scope::Payload => "fields",
            Scope::EventContext => "context",
            Scope::StreamContext => "stream_context",
            Scope::PacketContext => "packet_context",
            Scope::EventHeader | Scope::PacketHeader => "header",
        };
        let name = match taken.contains(&field.name.to_lowercase()) {
            true => unique(&format!("{scope}.{}", field.name), &mut taken),
            false => unique(&field.name, &mut taken),
        };
        named.push((place, field, name));
    }
    named
}

/// Appends a cell; in quotes when it holds what would end it.
fn quote(cell: &[u8], out: &mut Vec<u8>) {
    let plain = !cell
        .iter()
        .any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if plain {
        return out.extend_from_slice(cell);
    }
    out.push(b'"');
    for byte in cell {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

impl Table {
    fn new(dir: &StagedDir, name: &str, head: &[u8], fields: Vec<FieldJson>) -> Table {
        Table {
            path: dir.path().join(format!("{name}.csv")),
            rows: head.to_owned(),
            fields,
        }
    }

    /// Writes the rows when they are many.
    fn relieve(&mut self) -> Result<()> {
        match self.rows.len() < PIECE_BYTES {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(&self.rows))
            .map_err(|cause| write_error(&self.path, cause))?;
        self.rows.clear();
        Ok(())
    }
}

impl Sink for Csv<'_> {
    fn event(&mut self, event: &EventView<'_>) -> Result<()> {
        let place = event.class().0 as usize;
        if self.tables.get(place).is_some_and(Option::is_none) {
            self.open(place);
        }
        let Some(Some(table)) = self.tables.get_mut(place) else {
            return Ok(());
        };
        let row = &mut table.rows;
        match event.is_timed() {
            true => {
                let (ns, wall) = (event.time().as_ns(), self.trace.wall_ns(event.time()));
                push(row, format_args!("{ns},{wall},"));
            }
            false => row.extend_from_slice(b",,"),
        }
        if let Some(cpu) = event.cpu() {
            push(row, format_args!("{}", cpu.0));
        }
        for field in &table.fields {
            row.push(b',');
            self.cell.clear();
            field.write_plain(event, &mut self.cell);
            quote(&self.cell, row);
        }
        row.extend_from_slice(b"\r\n");
        table.relieve()
    }

    fn lost(&mut self, lost: &Lost) -> Result<()> {
        let table = self.losses.get_or_insert_with(|| {
            let head = b"begin_ns,end_ns,cpu,count,cause\r\n";
            Table::new(&self.dir, LOSSES, head, Vec::new())
        });
        let cpu = lost.cpu.map_or(String::new(), |cpu| cpu.0.to_string());
        let count = lost.count.map_or(String::new(), |count| count.to_string());
        let (begin, end) = (lost.range.begin.as_ns(), lost.range.end.as_ns());
        let cause = cause_word(lost.cause);
        let row = format!("{begin},{end},{cpu},{count},{cause}\r\n");
        table.rows.extend_from_slice(row.as_bytes());
        table.relieve()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        for table in self.tables.iter_mut().flatten().chain(&mut self.losses) {
            table.flush()?;
        }
        self.dir.commit().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_only_when_it_must() {
        let check = |cell: &str, expect: &str| {
            let mut out = Vec::new();
            quote(cell.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect);
        };
        check("irq/24-snd", "irq/24-snd");
        check("a,b", "\"a,b\"");
        check("say \"a\"\n", "\"say \"\"a\"\"\n\"");
        check("", "");
    }

    #[test]
    fn two_classes_never_share_a_file() {
        let mut taken = HashSet::new();
        assert_eq!(unique(&file_name("a/b"), &mut taken), "a_b");
        assert_eq!(unique(&file_name("a_b"), &mut taken), "a_b-2");
        assert_eq!(unique(&file_name("A_B"), &mut taken), "A_B-3");
        assert_eq!(file_name("../x"), "_.._x");
        assert_eq!(file_name(""), "_");
    }
}
