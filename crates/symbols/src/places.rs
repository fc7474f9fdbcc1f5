//! Where code of a file can be probed: its functions, and the markers that SystemTap's macros left
//! (USDT). The file is read piece by piece and never mapped; nothing in it is believed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use event::{Error, ErrorKind, Result};

use crate::demangle::is_called;

/// Sizes of a 64-bit file's headers, symbols and so on; how many sections a sound file may have.
const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: usize = 24;
const SECTIONS_MAX: u16 = 4096;
/// No table is larger.
const TABLE_BYTES_MAX: u64 = 1 << 30;
/// Kinds of segments, sections and symbols.
const LOAD: u32 = 1;
/// What is said of a segment that is run.
const EXECUTABLE: u32 = 1;
const SYMTAB: u32 = 2;
const NOTE: u32 = 7;
const DYNSYM: u32 = 11;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;
/// The kind of a note with a marker.
const MARKER: u32 = 3;

/// A function and where it begins in its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where its first instruction is in the file.
    pub offset: u64,
    /// How long it is; zero when nobody says.
    pub size_bytes: u64,
    /// Its code chooses another function when the program is linked, and that one is called
    /// (`STT_GNU_IFUNC`).
    pub is_indirect: bool,
}

/// A marker (USDT) of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Whose it is.
    pub provider: String,
    /// What it is called.
    pub name: String,
    /// Where its instruction is in the file.
    pub offset: u64,
    /// Where the counter is in the file that says whether anybody listens.
    pub semaphore_offset: Option<u64>,
    /// Its arguments, as in `-4@%edi 8@-8(%rbp)`.
    pub arguments: String,
}

/// What of a file can be probed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Its functions, by name.
    pub functions: Vec<Function>,
    /// Its markers, in the order of the file.
    pub markers: Vec<Marker>,
    /// Whether it has no table of its own functions, only of those that it offers to others.
    pub is_stripped: bool,
}

/// A section of a file.
pub(crate) struct Section {
    name: u32,
    kind: u32,
    /// Where it wants to lie.
    pub address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// A part of the file that is loaded.
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
    is_code: bool,
}

/// The parts of a file that is an executable or a library, read as they are asked for.
pub(crate) struct Elf {
    bytes: Bytes,
    sections: Vec<Section>,
    segments: Vec<Segment>,
    names: Vec<u8>,
    machine: u16,
}

enum Bytes {
    Of(File),
    /// No file has them.
    Read(Vec<u8>),
}

impl Bytes {
    fn length(&self) -> Option<u64> {
        match self {
            Bytes::Of(file) => file.metadata().ok().map(|facts| facts.len()),
            Bytes::Read(bytes) => Some(bytes.len() as u64),
        }
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> Option<()> {
        match self {
            Bytes::Of(file) => file.read_exact_at(into, offset).ok(),
            Bytes::Read(bytes) => {
                let rest = bytes.get(usize::try_from(offset).ok()?..)?;
                into.copy_from_slice(rest.get(..into.len())?);
                Some(())
            }
        }
    }
}

impl Places {
    /// Those of the file at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when it is no 64-bit little-endian ELF file; otherwise what the
    /// operating system says.
    pub fn read(path: &Path) -> Result<Places> {
        let elf = Elf::open(path)?;
        let mut places = Places {
            is_stripped: !elf.sections.iter().any(|section| section.kind == SYMTAB),
            ..Places::default()
        };
        for section in &elf.sections {
            if section.kind == NOTE && elf.name(section) == b".note.stapsdt" {
                elf.markers(section, &mut places.markers);
            }
        }
        places.functions = elf.all_functions();
        places.functions.sort();
        places.functions.dedup();
        Ok(places)
    }
}

impl Places {
    /// The functions that `typed` names, each place once: by the linker's names or, where it knows
    /// none, by those that C++ and Rust have.
    pub fn named(&self, typed: &str) -> Vec<&Function> {
        let all = self.functions.iter();
        let mut named: Vec<_> = all.filter(|function| function.name == typed).collect();
        if named.is_empty() {
            let all = self.functions.iter();
            named.extend(all.filter(|function| is_called(&function.name, typed)));
        }
        named.sort_by_key(|function| function.offset);
        named.dedup_by_key(|function| function.offset);
        named
    }
}

impl Elf {
    pub(crate) fn open(path: &Path) -> Result<Elf> {
        let unreadable = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        let file = File::open(path).map_err(unreadable)?;
        Elf::of_file(file).ok_or_else(|| {
            let what = "not a 64-bit little-endian ELF file";
            Error::new(ErrorKind::Corrupt, what)
                .found(path.display().to_string())
                .fix("name the program or library itself, not a script that starts it")
        })
    }

    /// None when it is none.
    pub(crate) fn of_file(file: File) -> Option<Elf> {
        Elf::of(Bytes::Of(file))
    }

    /// The same of what lies in memory.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Option<Elf> {
        Elf::of(Bytes::Read(bytes))
    }

    fn of(bytes: Bytes) -> Option<Elf> {
        let mut head = [0; 64];
        bytes.read_exact_at(&mut head, 0)?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let mut elf = Elf {
            bytes,
            sections: Vec::new(),
            segments: Vec::new(),
            names: Vec::new(),
            machine: short(&head, 18),
        };
        let segments = elf.table(long(&head, 32), short(&head, 56), SEGMENT_BYTES);
        elf.segments = segments
            .chunks_exact(SEGMENT_BYTES)
            .filter(|segment| word(segment, 0) == LOAD)
            .map(|segment| Segment {
                offset: long(segment, 8),
                address: long(segment, 16),
                size: long(segment, 32),
                is_code: word(segment, 4) & EXECUTABLE != 0,
            })
            .collect();
        let sections = elf.table(long(&head, 40), short(&head, 60), SECTION_BYTES);
        let sections = sections.chunks_exact(SECTION_BYTES).map(|section| Section {
            name: word(section, 0),
            kind: word(section, 4),
            address: long(section, 16),
            offset: long(section, 24),
            size: long(section, 32),
            link: word(section, 40),
        });
        elf.sections = sections.collect();
        let names = elf.sections.get(usize::from(short(&head, 62)));
        elf.names = names.map(|section| elf.bytes(section)).unwrap_or_default();
        Some(elf)
    }

    /// The machine that it is for, as such files name it.
    pub(crate) fn machine(&self) -> u16 {
        self.machine
    }

    /// Whether what is in the file at `offset` is run.
    pub(crate) fn is_code(&self, offset: u64) -> bool {
        let holds = |segment: &Segment| {
            let inside = offset.checked_sub(segment.offset);
            segment.is_code && inside.is_some_and(|inside| inside < segment.size)
        };
        self.segments.iter().any(holds)
    }

    /// The bytes of the file from `offset` on: so many, or as many as there are.
    pub(crate) fn read_up_to(&self, offset: u64, size: u64) -> Vec<u8> {
        let behind = self.bytes.length().unwrap_or(0).saturating_sub(offset);
        self.read(offset, size.min(behind))
    }

    /// The section of this name, and its bytes.
    pub(crate) fn section(&self, name: &[u8]) -> Option<(&Section, Vec<u8>)> {
        let mut sections = self.sections.iter();
        let section = sections.find(|section| self.name(section) == name)?;
        Some((section, self.bytes(section)))
    }

    /// All functions, by the tables of symbols.
    pub(crate) fn all_functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for section in &self.sections {
            if matches!(section.kind, SYMTAB | DYNSYM) {
                self.functions(section, &mut functions);
            }
        }
        functions
    }

    fn table(&self, offset: u64, count: u16, entry_bytes: usize) -> Vec<u8> {
        self.read(
            offset,
            u64::from(count.min(SECTIONS_MAX)) * entry_bytes as u64,
        )
    }

    /// Bytes of the file; none when they are not there, or too many.
    fn read(&self, offset: u64, size: u64) -> Vec<u8> {
        let end = offset.checked_add(size);
        let length = self.bytes.length();
        let is_there = end.is_some_and(|end| length.is_some_and(|length| end <= length));
        if !is_there || size > TABLE_BYTES_MAX {
            return Vec::new();
        }
        let mut bytes = vec![0; size as usize];
        match self.bytes.read_exact_at(&mut bytes, offset) {
            Some(()) => bytes,
            None => Vec::new(),
        }
    }

    fn bytes(&self, section: &Section) -> Vec<u8> {
        self.read(section.offset, section.size)
    }

    fn name(&self, section: &Section) -> &[u8] {
        text_at(&self.names, section.name as usize)
    }

    /// Where what lies at `address` is in the file.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            address
                .checked_sub(segment.address)
                .is_some_and(|inside| inside < segment.size)
        };
        let segment = self.segments.iter().find(holds)?;
        segment.offset.checked_add(address - segment.address)
    }

    /// Where what is in the file at `offset` wants to lie.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let mut places = self.segments.iter().filter_map(|segment| {
            let inside = offset.checked_sub(segment.offset)?;
            let address = segment.address.checked_add(inside)?;
            (inside < segment.size).then_some(address)
        });
        places.next()
    }

    fn functions(&self, section: &Section, functions: &mut Vec<Function>) {
        let names = self.sections.get(section.link as usize);
        let names = names.map(|section| self.bytes(section)).unwrap_or_default();
        for symbol in self.bytes(section).chunks_exact(SYMBOL_BYTES) {
            let kind = symbol[4] & 15;
            let is_function = matches!(kind, FUNCTION | INDIRECT_FUNCTION);
            let is_here = short(symbol, 6) != 0;
            let name = text_at(&names, word(symbol, 0) as usize);
            // Of a library, `read@@GLIBC_2.2.5` in the larger table.
            let name = name.split(|byte| *byte == b'@').next().unwrap_or_default();
            let (true, Ok(name)) = (is_function && is_here, std::str::from_utf8(name)) else {
                continue;
            };
            if let (false, Some(offset)) = (name.is_empty(), self.offset_of(long(symbol, 8))) {
                functions.push(Function {
                    name: name.to_owned(),
                    offset,
                    size_bytes: long(symbol, 16),
                    is_indirect: kind == INDIRECT_FUNCTION,
                });
            }
        }
    }

    fn markers(&self, section: &Section, markers: &mut Vec<Marker>) {
        let base = self
            .sections
            .iter()
            .find(|section| self.name(section) == b".stapsdt.base");
        let base = base.map(|section| section.address);
        let bytes = self.bytes(section);
        let mut rest = &bytes[..];
        while let Some((head, behind)) = rest.split_at_checked(12) {
            let size = |at| (word(head, at) as usize).checked_next_multiple_of(4);
            let (Some(name_bytes), Some(size_bytes)) = (size(0), size(4)) else {
                return;
            };
            let Some((name, behind)) = behind.split_at_checked(name_bytes) else {
                return;
            };
            let Some((note, behind)) = behind.split_at_checked(size_bytes) else {
                return;
            };
            rest = behind;
            if word(head, 8) == MARKER && name.starts_with(b"stapsdt\0") {
                markers.extend(self.marker(note, base));
            }
        }
    }

    fn marker(&self, note: &[u8], base: Option<u64>) -> Option<Marker> {
        let texts = note.get(24..)?;
        let mut texts = texts.split(|byte| *byte == 0);
        let mut text = || std::str::from_utf8(texts.next()?).ok().map(str::to_owned);
        let (provider, name, arguments) = (text()?, text()?, text()?);
        // A file that was moved after it was linked says so by the place of one section.
        let moved = base.map_or(0, |base| base.wrapping_sub(long(note, 8)));
        let semaphore = long(note, 16);
        Some(Marker {
            provider,
            name,
            offset: self.offset_of(long(note, 0).wrapping_add(moved))?,
            semaphore_offset: (semaphore != 0)
                .then(|| self.offset_of(semaphore.wrapping_add(moved)))
                .flatten(),
            arguments,
        })
    }
}

/// The text that begins at `at` and ends with a zero; empty when there is none.
fn text_at(bytes: &[u8], at: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn short(bytes: &[u8], at: usize) -> u16 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_this_program_is_where_its_code_is() {
        let own = std::env::current_exe().expect("this program");
        let places = Places::read(&own).expect("an ELF file");
        assert!(!places.is_stripped);
        let named = |name: &str| places.functions.iter().find(|of| of.name == name);
        let main = named("main").expect("every program has one");
        let bytes = std::fs::read(&own).expect("read");
        assert!((main.offset as usize) < bytes.len());
    }

    #[test]
    fn what_is_no_program_is_refused_and_half_of_one_has_no_places() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        for bytes in [&b""[..], b"#!/bin/sh\n", &[0; 100]] {
            std::fs::write(&path, bytes).expect("written");
            let error = Places::read(&path).expect_err("no program");
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.fixed_by().is_some());
        }
        let own = std::env::current_exe().expect("this program");
        let bytes = std::fs::read(&own).expect("read");
        for end in [64, 1000, bytes.len() / 2, bytes.len() - 10] {
            std::fs::write(&path, &bytes[..end]).expect("written");
            // Whatever it finds, it comes back.
            let _ = Places::read(&path).expect("its head is whole");
        }
        let mut hostile = bytes[..64].to_vec();
        for at in [32, 40] {
            hostile[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        }
        hostile[56..64].copy_from_slice(&[0xff; 8]);
        std::fs::write(&path, &hostile).expect("written");
        assert_eq!(Places::read(&path).expect("a head").functions, []);
    }
}
