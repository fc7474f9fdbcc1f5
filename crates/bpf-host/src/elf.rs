//! What we ask of somebody's BPF object before libbpf sees it: its sections, its functions, its
//! licence. Bytes from outside: what does not fit is not there.

/// An object for BPF, as far as it is understood.
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section<'a>>,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub name: &'a str,
    kind: u32,
    /// Where its header is.
    header_at: usize,
    offset: u64,
    size: u64,
    /// For symbols, the section of their names.
    link: u32,
}

/// A function that others can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub name: &'a str,
    /// The section that it lies in.
    pub section: &'a str,
}

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const RELOCATABLE: u64 = 1;
const MACHINE_BPF: u64 = 247;
const SECTION_HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: usize = 24;
const SYMBOL_TABLE: u32 = 2;
const SYMBOL_IS_FUNCTION: u8 = 2;
const SYMBOL_IS_LOCAL: u8 = 0;
/// Where the offset and the size stand in a section's header.
const OFFSET_AT: usize = 24;
const SIZE_AT: usize = 32;
/// More sections than any object has.
const SECTIONS_MAX: u64 = 10_000;

/// A number of so many bytes.
fn number(bytes: &[u8], at: u64, length: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    let mut value = [0; 8];
    value[..length].copy_from_slice(bytes);
    Some(u64::from_le_bytes(value))
}

/// The text that begins there.
fn text(bytes: &[u8], at: u64) -> Option<&str> {
    let bytes = bytes.get(usize::try_from(at).ok()?..)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

impl<'a> Elf<'a> {
    /// Reads an object; what is no BPF object is told in words.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Elf<'a>, String> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("it does not begin as an ELF file".to_owned());
        }
        let machine = number(bytes, 18, 2);
        let is_bpf = bytes.get(4) == Some(&CLASS_64)
            && bytes.get(5) == Some(&LITTLE_ENDIAN)
            && number(bytes, 16, 2) == Some(RELOCATABLE)
            && machine == Some(MACHINE_BPF);
        if !is_bpf {
            let machine = machine.unwrap_or_default();
            return Err(format!("an ELF file for the machine {machine}, BPF is 247"));
        }
        let sections = Elf::sections(bytes).ok_or("its sections are damaged")?;
        Ok(Elf { bytes, sections })
    }

    fn sections(bytes: &'a [u8]) -> Option<Vec<Section<'a>>> {
        let (table, count) = (number(bytes, 40, 8)?, number(bytes, 60, 2)?);
        let names = number(bytes, 62, 2)?;
        let header = |index: u64| table.checked_add(index.checked_mul(SECTION_HEADER_BYTES)?);
        let names_at = number(bytes, header(names)?.checked_add(24)?, 8)?;
        let section = |index: u64| {
            let at = header(index)?;
            let name = number(bytes, at, 4)?;
            Some(Section {
                name: text(bytes, names_at.checked_add(name)?)?,
                kind: number(bytes, at + 4, 4)? as u32,
                header_at: usize::try_from(at).ok()?,
                offset: number(bytes, at + OFFSET_AT as u64, 8)?,
                size: number(bytes, at + SIZE_AT as u64, 8)?,
                link: number(bytes, at + 40, 4)? as u32,
            })
        };
        (0..count.min(SECTIONS_MAX)).map(section).collect()
    }

    /// The section of this name.
    pub(crate) fn section(&self, name: &str) -> Option<Section<'a>> {
        let mut sections = self.sections.iter().copied();
        sections.find(|section| section.name == name)
    }

    /// What a section holds.
    fn data(&self, section: &Section<'_>) -> Option<&'a [u8]> {
        let begin = usize::try_from(section.offset).ok()?;
        let end = begin.checked_add(usize::try_from(section.size).ok()?)?;
        self.bytes.get(begin..end)
    }

    /// What a section of text says, up to its end.
    pub(crate) fn text_of(&self, name: &str) -> Option<&'a str> {
        text(self.data(&self.section(name)?)?, 0)
    }

    /// The functions that others can call.
    pub(crate) fn functions(&self) -> Vec<Function<'a>> {
        let mut sections = self.sections.iter();
        let Some(table) = sections.find(|section| section.kind == SYMBOL_TABLE) else {
            return Vec::new();
        };
        let names = self.sections.get(table.link as usize);
        let (Some(symbols), Some(names)) =
            (self.data(table), names.and_then(|names| self.data(names)))
        else {
            return Vec::new();
        };
        let function = |symbol: &[u8]| {
            let info = symbol[4];
            if info & 0xf != SYMBOL_IS_FUNCTION || info >> 4 == SYMBOL_IS_LOCAL {
                return None;
            }
            let section = self.sections.get(number(symbol, 6, 2)? as usize)?;
            Some(Function {
                name: text(names, number(symbol, 0, 4)?)?,
                section: section.name,
            })
        };
        let symbols = symbols.chunks_exact(SYMBOL_BYTES);
        symbols.filter_map(function).collect()
    }

    /// The object with other bytes in a section, behind all that it had.
    pub(crate) fn with_section(&self, section: &Section<'_>, data: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        let offset = bytes.len() as u64;
        bytes.extend(data);
        for (at, value) in [(OFFSET_AT, offset), (SIZE_AT, data.len() as u64)] {
            let at = section.header_at + at;
            // The header was read from there.
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count_culprits.bpf.o"));

    #[test]
    fn an_object_is_read_as_its_compiler_wrote_it() {
        let elf = Elf::read(OBJECT).expect("an object");
        let function = Function {
            name: "rtscope_action",
            section: ".text",
        };
        assert_eq!(elf.functions(), [function]);
        assert_eq!(elf.text_of("license"), Some("GPL"));
        let license = elf.section("license").expect("a licence");
        let changed = elf.with_section(&license, b"Dual BSD/GPL\0");
        let elf = Elf::read(&changed).expect("an object");
        assert_eq!(elf.text_of("license"), Some("Dual BSD/GPL"));
        assert_eq!(elf.functions(), [function]);
    }

    #[test]
    fn bytes_that_are_cut_or_changed_anywhere_are_no_panic() {
        let look = |bytes: &[u8]| {
            if let Ok(elf) = Elf::read(bytes) {
                elf.functions();
                elf.text_of("license");
            }
        };
        for end in (0..OBJECT.len()).step_by(7) {
            look(&OBJECT[..end]);
        }
        for at in 0..OBJECT.len() {
            let mut bytes = OBJECT.to_vec();
            bytes[at] ^= 0xff;
            look(&bytes);
        }
        assert!(Elf::read(b"text").is_err());
    }
}
