//! What code was found at work, and who called it: by the call frame information of the files, as
//! debuggers do it, and a piece of the stack. Files are read piece by piece and never mapped: whose
//! they are may cut them off meanwhile.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow, X86_64,
};

use crate::demangle::readable;
use crate::places::Elf;

/// How the kernel's page of functions is called, which is in every process and in no file.
pub const KERNEL_PAGE: &str = "[vdso]";
/// It is not larger.
const KERNEL_PAGE_BYTES_MAX: u64 = 64 << 10;
/// More callers are not looked for.
const CALLERS_MAX: usize = 32;
const WORD_BYTES: u64 = 8;

/// Where a thread was, and what lies on its stack there.
#[derive(Clone, Copy, Debug)]
pub struct FoundAt<'a> {
    /// The instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The register that many functions count from (`rbp`).
    pub frame_pointer: u64,
    /// From the stack pointer on.
    pub words: &'a [u64],
}

/// A piece of a file as it lies in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedCode {
    /// From where on.
    pub begin: u64,
    /// Up to where.
    pub end: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// The file, by a path that we can open, or [`KERNEL_PAGE`].
    pub path: PathBuf,
}

/// What the files say of their code.
#[derive(Debug, Default)]
pub struct CodeFiles {
    files: HashMap<PathBuf, Option<CodeFile>>,
}

/// One file's.
struct CodeFile {
    elf: Elf,
    /// By their begin in the file.
    functions: Vec<crate::Function>,
    /// Call frame information, and where it wants to lie.
    frames: Option<(u64, Vec<u8>)>,
    /// Where in that each function's is.
    places: Option<(u64, Vec<u8>)>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The registers that callers are found by.
#[derive(Clone, Copy, Debug)]
struct Frame {
    instruction: u64,
    stack_pointer: u64,
    /// None where nobody knows it any more.
    frame_pointer: Option<u64>,
}

impl CodeFiles {
    /// The code that was found at work, and its callers, the innermost first: each by an address
    /// inside of the call. They end where a file says nothing, or the words do.
    pub fn callers(&mut self, loaded: &[LoadedCode], found: FoundAt<'_>) -> Vec<u64> {
        let mut addresses = vec![found.instruction];
        let mut frame = Frame {
            instruction: found.instruction,
            stack_pointer: found.stack_pointer,
            frame_pointer: Some(found.frame_pointer),
        };
        // Elsewhere the registers are others.
        while cfg!(target_arch = "x86_64") && addresses.len() < CALLERS_MAX {
            let Some(caller) = self.caller(loaded, frame, found) else {
                break;
            };
            // A stack shrinks with each return, and nothing returns to nowhere.
            if caller.stack_pointer <= frame.stack_pointer || caller.instruction == 0 {
                break;
            }
            frame = Frame {
                instruction: caller.instruction - 1,
                ..caller
            };
            addresses.push(frame.instruction);
        }
        addresses
    }

    /// `plan+0x12 (robot)`, or `robot+0x1170` where no function is known; empty where nothing is.
    pub fn name(&mut self, loaded: &[LoadedCode], address: u64) -> String {
        let Some((code, offset)) = place(loaded, address) else {
            return String::new();
        };
        let file = code.path.file_name().unwrap_or_default().to_string_lossy();
        match self.file(&code.path).and_then(|file| file.function(offset)) {
            Some((name, inside)) => format!("{}+{inside:#x} ({file})", readable(name)),
            None => format!("{file}+{offset:#x}"),
        }
    }

    fn file(&mut self, path: &Path) -> Option<&CodeFile> {
        let entry = self.files.entry(path.to_owned());
        entry
            .or_insert_with_key(|path| CodeFile::read(path))
            .as_ref()
    }

    /// The frame that called this one.
    fn caller(&mut self, loaded: &[LoadedCode], frame: Frame, found: FoundAt<'_>) -> Option<Frame> {
        let (code, offset) = place(loaded, frame.instruction)?;
        let file = self.file(&code.path)?;
        let address = file.elf.address_of(offset)?;
        let mut context = UnwindContext::new();
        let row = file.row(&mut context, address)?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let base = frame.register(*register)?.checked_add_signed(*offset)?;
        let word = |offset: i64| {
            let at = base.checked_add_signed(offset)?;
            let bytes = at.checked_sub(found.stack_pointer)?;
            found.words.get((bytes / WORD_BYTES) as usize).copied()
        };
        let Some(RegisterRule::Offset(back)) = row.register(X86_64::RA) else {
            return None;
        };
        let frame_pointer = match row.register(X86_64::RBP) {
            Some(RegisterRule::Offset(offset)) => word(offset),
            // Nobody said that it was changed.
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => frame.frame_pointer,
            _ => None,
        };
        Some(Frame {
            instruction: word(back)?,
            stack_pointer: base,
            frame_pointer,
        })
    }
}

/// The code at an address, and where that is in its file.
fn place(loaded: &[LoadedCode], address: u64) -> Option<(&LoadedCode, u64)> {
    let mut codes = loaded.iter();
    let code = codes.find(|code| (code.begin..code.end).contains(&address))?;
    Some((code, code.offset.checked_add(address - code.begin)?))
}

impl Frame {
    fn register(&self, register: Register) -> Option<u64> {
        match register {
            X86_64::RSP => Some(self.stack_pointer),
            X86_64::RBP => self.frame_pointer,
            _ => None,
        }
    }
}

impl CodeFile {
    fn read(path: &Path) -> Option<CodeFile> {
        let elf = match path == Path::new(KERNEL_PAGE) {
            true => Elf::of_bytes(kernel_page()?)?,
            false => Elf::of_file(File::open(path).ok()?)?,
        };
        let mut functions = elf.all_functions();
        functions.sort_by_key(|function| function.offset);
        let section = |name: &[u8]| {
            let found = elf.section(name);
            found.map(|(section, bytes)| (section.address, bytes))
        };
        Some(CodeFile {
            functions,
            frames: section(b".eh_frame"),
            places: section(b".eh_frame_hdr"),
            elf,
        })
    }

    /// How to find the caller of the code at this address. Large files have hundreds of thousands
    /// of functions: without the table of their places each of them is looked at.
    fn row<'c>(
        &self,
        context: &'c mut UnwindContext<usize>,
        address: u64,
    ) -> Option<&'c UnwindTableRow<usize>> {
        let (begin, bytes) = self.frames.as_ref()?;
        let section = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(*begin);
        let cie = EhFrame::<Slice<'_>>::cie_from_offset;
        if let Some((at, header)) = &self.places {
            let bases = bases.clone().set_eh_frame_hdr(*at);
            let header = EhFrameHdr::new(header, LittleEndian).parse(&bases, WORD_BYTES as u8);
            if let Some(table) = header.as_ref().ok().and_then(|header| header.table()) {
                let row = table.unwind_info_for_address(&section, &bases, context, address, cie);
                return row.ok();
            }
        }
        let row = section.unwind_info_for_address(&bases, context, address, cie);
        row.ok()
    }

    /// The function around this place of the file, and how far in it that is.
    fn function(&self, offset: u64) -> Option<(&str, u64)> {
        let end = self.functions.partition_point(|one| one.offset <= offset);
        let mut before = self.functions[..end].iter().rev();
        let holds = |one: &&crate::Function| offset - one.offset < one.size_bytes;
        let function = before.next().filter(holds)?;
        Some((&function.name, offset - function.offset))
    }
}

impl std::fmt::Debug for CodeFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeFile").finish_non_exhaustive()
    }
}

/// As it is in our own memory: the same in all processes.
fn kernel_page() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(KERNEL_PAGE))?;
    let (begin, end) = line.split(' ').next()?.split_once('-')?;
    let begin = u64::from_str_radix(begin, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(begin)?;
    let mut bytes = vec![0; size.min(KERNEL_PAGE_BYTES_MAX) as usize];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, begin).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn callee() -> u64 {
        std::hint::black_box(17)
    }

    #[inline(never)]
    fn caller() -> u64 {
        callee() + 1
    }

    /// Our own code, as a process has it loaded.
    fn loaded() -> Vec<LoadedCode> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("our mappings");
        let code = |line: &str| {
            let mut words = line.split_whitespace();
            let (begin, end) = words.next()?.split_once('-')?;
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let is_code = words.next()?.contains('x');
            let offset = number(words.next()?)?;
            let path = PathBuf::from(words.nth(2)?);
            is_code.then_some(LoadedCode {
                begin: number(begin)?,
                end: number(end)?,
                offset,
                path,
            })
        };
        maps.lines().filter_map(code).collect()
    }

    fn address(function: fn() -> u64) -> u64 {
        function as usize as u64
    }

    #[test]
    fn code_at_work_has_its_callers_by_what_their_files_say_of_the_stack() {
        assert_eq!(caller(), 18);
        let own = std::env::current_exe().expect("this program");
        let own = own.file_name().expect("a name").to_string_lossy();
        let loaded = loaded();
        let mut files = CodeFiles::default();
        // At its first instruction a function has but its return address on the stack.
        let words = [address(caller) + 1, 0];
        let found = FoundAt {
            instruction: address(callee),
            stack_pointer: 0x7000,
            frame_pointer: 0,
            words: &words,
        };
        let addresses = files.callers(&loaded, found);
        assert_eq!(addresses, [address(callee), address(caller)]);
        let names = addresses.iter().map(|at| files.name(&loaded, *at));
        let names: Vec<String> = names.collect();
        for (name, function) in names.iter().zip(["callee", "caller"]) {
            let expect = format!("symbols::callers::tests::{function}+0x0 ({own})");
            assert_eq!(*name, expect);
        }
        // Without the stack nobody knows who called.
        let found = FoundAt {
            words: &[],
            ..found
        };
        assert_eq!(files.callers(&loaded, found), [address(callee)]);
    }

    #[test]
    fn the_table_of_places_finds_what_a_look_at_each_function_finds() {
        let mut file = CodeFile::read(Path::new("/proc/self/exe")).expect("our own file");
        assert!(file.places.is_some(), "linkers make one");
        let offsets: Vec<u64> = file.functions.iter().map(|one| one.offset).collect();
        let known = offsets.iter().step_by(offsets.len() / 50 + 1);
        let known: Vec<u64> = known.filter_map(|at| file.elf.address_of(*at)).collect();
        let rows = |file: &CodeFile| {
            let row = |address: &u64| {
                let mut context = UnwindContext::new();
                file.row(&mut context, *address)
                    .map(|row| format!("{row:?}"))
            };
            known.iter().map(row).collect::<Vec<_>>()
        };
        let by_table = rows(&file);
        file.places = None;
        assert_eq!(by_table, rows(&file));
        assert!(by_table.iter().flatten().count() > 20, "{by_table:?}");
    }

    #[test]
    fn the_kernels_page_says_who_called_it_too() {
        let loaded = loaded();
        let page = loaded
            .iter()
            .find(|code| code.path == Path::new(KERNEL_PAGE));
        let page = page.expect("each process has it").clone();
        let elf = Elf::of_bytes(kernel_page().expect("its bytes")).expect("an ELF file");
        let functions = elf.all_functions();
        let clock = functions.iter().find(|one| one.name == "__vdso_time");
        let instruction = page.begin + clock.expect("a function of it").offset;
        let words = [address(caller) + 1, 0];
        let found = FoundAt {
            instruction,
            stack_pointer: 0x7000,
            frame_pointer: 0,
            words: &words,
        };
        let mut files = CodeFiles::default();
        let addresses = files.callers(&loaded, found);
        assert_eq!(addresses, [instruction, address(caller)]);
        let name = files.name(&loaded, instruction);
        assert!(name.ends_with("+0x0 ([vdso])"), "{name}");
    }

    #[test]
    fn an_address_that_nothing_covers_has_no_name() {
        let mut files = CodeFiles::default();
        assert_eq!(files.name(&loaded(), 1), "");
        let code = LoadedCode {
            begin: 0x1000,
            end: 0x2000,
            offset: 0x3000,
            path: "/nonexistent/robot".into(),
        };
        assert_eq!(files.name(&[code], 0x1170), "robot+0x3170");
    }
}
