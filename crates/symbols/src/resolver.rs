//! From a binary and a place in it to function, file and line, by the files of this disk.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use event::{Error, ErrorKind, Instant, Result};
use trace::Trace;

use crate::elf;
use crate::maps::{Binary, ProcessMaps};

/// Where distributions put the debugging information of their packages.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";
/// So many answers are remembered; then all are forgotten.
const ANSWERS_MAX: usize = 1 << 18;

/// What lies at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// The path of the program or library, as the process called it.
    pub binary: String,
    /// Bytes from the begin of the binary in memory.
    pub offset: u64,
    /// The function that the compiler made, without its C++ or Rust mangling, and the bytes from
    /// its begin; `None` where no file on this disk says it.
    pub function: Option<(String, u64)>,
    /// How many bytes it spans, where the file says it.
    pub size_bytes: Option<u64>,
    /// Functions that the compiler put into it at this place, the innermost last.
    pub inlined: Vec<String>,
    /// The source file's name and the line; `None` without debugging information.
    pub source: Option<(String, u32)>,
}

impl CodePlace {
    /// The binary without its folder.
    pub fn binary_name(&self) -> &str {
        self.binary.rsplit('/').next().unwrap_or_default()
    }

    /// The innermost function.
    pub fn name(&self) -> Option<&str> {
        let inlined = self.inlined.last().map(String::as_str);
        inlined.or(self.function.as_ref().map(|(name, _)| name.as_str()))
    }
}

/// `main+0x12 (robot.c:17)`, or `robot+0x1170` where no function is known.
impl fmt::Display for CodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, self.inlined.last()) {
            (Some(_), Some(inlined)) => write!(f, "{inlined}")?,
            (Some((name, offset)), None) => write!(f, "{name}+{offset:#x}")?,
            (None, _) => write!(f, "{}+{:#x}", self.binary_name(), self.offset)?,
        }
        match &self.source {
            Some((file, line)) => write!(f, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

/// A file that says what is in a binary.
struct Described {
    /// Where the binary wants to lie, in its own count.
    first_address: u64,
    /// It, or its debugging information.
    source: Source<'static>,
    /// The symbols of the same file alone.
    symbols: Source<'static>,
}

/// What lies where in the processes of a trace.
pub struct UserSymbols {
    maps: ProcessMaps,
    symbolizer: Symbolizer,
    described: HashMap<Arc<Binary>, Option<Described>>,
    answers: HashMap<(Arc<Binary>, u64), CodePlace>,
    problems: Vec<String>,
}

impl fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserSymbols")
            .field("maps", &self.maps)
            .finish_non_exhaustive()
    }
}

impl UserSymbols {
    /// Takes the maps of processes out of `trace`. Files are opened when an address needs them.
    ///
    /// # Errors
    /// What reading the trace says.
    pub fn read(trace: &Trace) -> Result<UserSymbols> {
        Ok(UserSymbols::new(ProcessMaps::read(trace)?))
    }

    /// Over maps that are known.
    pub fn new(maps: ProcessMaps) -> UserSymbols {
        UserSymbols {
            maps,
            symbolizer: Symbolizer::builder().enable_auto_reload(false).build(),
            described: HashMap::new(),
            answers: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Whether the trace tells of no process's map.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// The process of a thread, as the state dump of the kernel's events says it; the thread's own
    /// number where nothing does, which is right for a first thread.
    pub fn process_of(&self, tid: i32) -> i32 {
        self.maps.process_of(tid)
    }

    /// What lay at `address` of the process `pid` (as it saw itself) at the instant `at`; `None`
    /// where the trace knows of nothing there.
    pub fn place(&mut self, pid: i32, at: Instant, address: u64) -> Option<CodePlace> {
        let mapped = self.maps.find(pid, at, address)?;
        let (binary, offset) = (Arc::clone(&mapped.binary), address - mapped.begin);
        let key = (binary, offset);
        if let Some(answer) = self.answers.get(&key) {
            return Some(answer.clone());
        }
        let place = self.look(&key.0, offset);
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.clear();
        }
        self.answers.insert(key, place.clone());
        Some(place)
    }

    /// The object, such as a static mutex, that lay at `address`, as in `queue` or `queue+0x18`;
    /// `None` where no file says that one reaches there, as of what was allocated.
    pub fn object(&mut self, pid: i32, at: Instant, address: u64) -> Option<String> {
        let place = self.place(pid, at, address)?;
        let (name, offset) = place.function?;
        // A mark without a length, such as `__bss_start`, holds nothing.
        let holds = place.size_bytes.is_some_and(|size| offset < size);
        holds.then(|| match offset {
            0 => name,
            offset => format!("{name}+{offset:#x}"),
        })
    }

    /// Files that could not be used, and why; each is said once.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn look(&mut self, binary: &Arc<Binary>, offset: u64) -> CodePlace {
        if !self.described.contains_key(binary) {
            let described = describe(binary);
            if let Err(error) = &described {
                self.problems.push(error.to_string());
            }
            self.described.insert(Arc::clone(binary), described.ok());
        }
        let mut place = CodePlace {
            binary: binary.path.clone(),
            offset,
            ..CodePlace::default()
        };
        let Some(Some(described)) = self.described.get(binary) else {
            return place;
        };
        let address = described.first_address.wrapping_add(offset);
        let find = |source| {
            let input = Input::VirtOffset(address);
            self.symbolizer.symbolize_single(source, input).ok()
        };
        let Some(found) = find(&described.source) else {
            return place;
        };
        if let Some(symbol) = found.as_sym() {
            // A function in several pieces, one of them cold, is said to begin nowhere: each piece
            // is a symbol of its own.
            let piece = (symbol.addr == 0)
                .then(|| find(&described.symbols))
                .flatten();
            let piece = piece.as_ref().and_then(Symbolized::as_sym);
            let named = piece.unwrap_or(symbol);
            place.function = Some((named.name.to_string(), named.offset as u64));
            place.size_bytes = named.size.map(|size| size as u64);
            let inlined = symbol.inlined.iter();
            place.inlined = inlined.clone().map(|one| one.name.to_string()).collect();
            let innermost = inlined.rev().find_map(|one| one.code_info.as_ref());
            let code = innermost.or(symbol.code_info.as_deref());
            place.source = code.and_then(|code| {
                let file = code.file.to_string_lossy().into_owned();
                code.line.map(|line| (file, line))
            });
        }
        place
    }
}

/// The file that says what is in `binary`, when this disk has the build that was traced.
fn describe(binary: &Binary) -> Result<Described> {
    let path = Path::new(&binary.path);
    if !path.is_absolute() {
        // As the kernel's page of functions, which no file has.
        return Err(
            Error::new(ErrorKind::NotFound, "no file to name functions by")
                .found(format!("'{}'", binary.path)),
        );
    }
    let debug = debug_file(&binary.build_id).filter(|path| path.exists());
    let own = elf::build_id(path);
    let is_same = binary.build_id.is_empty() || own.as_ref() == Some(&binary.build_id);
    if !path.exists() && debug.is_none() {
        return Err(
            Error::new(ErrorKind::NotFound, "no file to name functions by")
                .found(format!("{} is not there", path.display()))
                .fix("read the trace where the program is, or install its debugging symbols"),
        );
    }
    if !is_same && debug.is_none() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "the program is not the one that was traced",
        )
        .found(format!(
            "{} has the build id {}, traced was {}",
            path.display(),
            own.map_or("none".to_owned(), |id| hexadecimal(&id)),
            hexadecimal(&binary.build_id)
        ))
        .fix("keep the build that was traced, or install its debugging symbols"));
    }
    let file = debug.unwrap_or_else(|| path.to_owned());
    let mut symbols = Elf::new(&file);
    symbols.debug_syms = false;
    Ok(Described {
        first_address: elf::first_address(&file)?,
        source: Source::Elf(Elf::new(file)),
        symbols: Source::Elf(symbols),
    })
}

/// Where debugging information of this build would be.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let text = hexadecimal(build_id);
    let (first, rest) = text
        .split_at_checked(2)
        .filter(|(_, rest)| !rest.is_empty())?;
    Some(
        Path::new(DEBUG_FILES)
            .join(first)
            .join(format!("{rest}.debug")),
    )
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
