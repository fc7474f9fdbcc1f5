//! The map of a process in its trace: LTTng's statedump of the programs and libraries that it has
//! loaded, so that addresses have names when the process is gone.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::{HeaderKind, PayloadWriter, StreamMeta, StreamWriter, TraceWriter};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, Result};
use ring::{LoadedObject, RingFile};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use symbols::{KERNEL_PAGE, LoadedCode};

use super::contexts;
use super::proc::{Mapping, mapping, maps_rings};

/// The place of the stream in the trace of a process.
const STREAM: usize = 1;
/// The classes of the stream, in their order.
const START: u32 = 0;
const BIN_INFO: u32 = 1;
const BUILD_ID: u32 = 2;
/// How often the kernel is asked what else a process has loaded, and how much later for each that
/// is recorded: what is asked of a thousand takes no more of a CPU than what is asked of a few.
const LOOK_PERIOD: StdDuration = StdDuration::from_secs(1);
const LOOK_SHARE: StdDuration = StdDuration::from_millis(10);
/// A longer list of mappings is not looked at.
const MAPPINGS_BYTES_MAX: u64 = 8 << 20;
/// More programs and libraries of one process are not told.
const OBJECTS_MAX: usize = 4096;
/// The looks at all processes of a directory take one part in this many of the time, and a bit: who
/// maps tens of thousands of pieces of files keeps the recorder from nobody's rings.
const LOOK_PARTS: u32 = 16;
const LOOK_BIT: StdDuration = StdDuration::from_millis(250);

/// The stream class, behind that of the events.
pub(super) fn stream() -> StreamMeta {
    let address = || FieldType::Integer(Integer::hex(64));
    let number = |bits| FieldType::Integer(Integer::le(bits, false));
    let length = "_build_id_length".to_owned();
    let events = [
        ("start", vec![]),
        (
            "bin_info",
            vec![
                Field::payload("baddr", address()),
                Field::payload("memsz", number(64)),
                Field::payload("path", FieldType::String),
                Field::payload("is_pic", number(8)),
                Field::payload("has_build_id", number(8)),
                Field::payload("has_debug_link", number(8)),
            ],
        ),
        (
            "build_id",
            vec![
                Field::payload("baddr", address()),
                Field::payload(&length, number(16)),
                Field::payload(
                    "build_id",
                    FieldType::Sequence {
                        element: FieldType::Integer(Integer::hex(8)).into(),
                        length: length.clone(),
                    },
                ),
            ],
        ),
    ];
    let class = |(place, (name, fields)): (usize, (&str, Vec<Field>))| EventClass {
        id: ClassId(place as u32),
        name: format!("lttng_ust_statedump:{name}"),
        stream: STREAM as u32,
        fields: fields.into(),
    };
    StreamMeta {
        name: "process-map".to_owned(),
        header: HeaderKind::Large,
        classes: events.into_iter().enumerate().map(class).collect(),
        event_context: contexts::fields(&[]),
        has_no_cpu: true,
        ..StreamMeta::default()
    }
}

/// How often the kernel is asked of each of so many processes.
pub(super) fn look_period(processes: usize) -> StdDuration {
    let processes = u32::try_from(processes).unwrap_or(u32::MAX);
    LOOK_PERIOD.saturating_add(LOOK_SHARE.saturating_mul(processes))
}

/// What it may take to ask the kernel for the maps of the processes of a directory.
pub(super) struct LookBudget {
    begin: StdInstant,
    spent: StdDuration,
}

impl Default for LookBudget {
    fn default() -> LookBudget {
        LookBudget {
            begin: StdInstant::now(),
            spent: StdDuration::ZERO,
        }
    }
}

impl LookBudget {
    /// Does `look`, where there is something left for it.
    fn spend(&mut self, look: impl FnOnce()) {
        if self.spent <= self.begin.elapsed() / LOOK_PARTS + LOOK_BIT {
            let begin = StdInstant::now();
            look();
            self.spent += begin.elapsed();
        }
    }
}

/// What a process has loaded, on its way into its trace.
#[derive(Default)]
pub(super) struct ProcessMap {
    /// What was told last of each address where something begins.
    known: BTreeMap<u64, LoadedObject>,
    /// What is not in the trace yet.
    waiting: Vec<LoadedObject>,
    /// How many were told in all.
    told: usize,
    looked: Option<StdInstant>,
    stream: Option<StreamWriter>,
}

impl ProcessMap {
    /// What the process itself noted: all that was loaded when a program or library with events
    /// came.
    pub fn note(&mut self, file: &mut RingFile) -> Result<()> {
        for object in file.read_objects()? {
            self.add(object);
        }
        Ok(())
    }

    /// Of a process that notes itself what it has loaded when it starts: who did so in the
    /// recording that began at `begin_ns` is not asked about at once.
    pub fn of(file: &RingFile, begin_ns: u64) -> ProcessMap {
        ProcessMap {
            looked: (file.layout().begin_ns >= begin_ns).then(StdInstant::now),
            ..ProcessMap::default()
        }
    }

    /// What the kernel says, once in so long: a library without events tells nobody that it came.
    /// Only of processes of our own pid namespace; of others what they noted must do.
    pub fn ask_kernel(&mut self, file: &RingFile, period: StdDuration, budget: &mut LookBudget) {
        let is_due = self.looked.is_none_or(|at| at.elapsed() >= period);
        if is_due && self.told < OBJECTS_MAX {
            budget.spend(|| self.look(file));
        }
    }

    /// At the end of a recording, the same.
    pub fn look_last(&mut self, file: &RingFile, budget: &mut LookBudget) {
        self.ask_kernel(file, StdDuration::ZERO, budget);
    }

    /// The same at once.
    pub fn look(&mut self, file: &RingFile) {
        self.looked = Some(StdInstant::now());
        // A process that just ended has no mappings any more.
        let path = format!("/proc/{}/maps", file.layout().pid);
        let mut text = String::new();
        let read = std::fs::File::open(path)
            .and_then(|maps| maps.take(MAPPINGS_BYTES_MAX).read_to_string(&mut text));
        if read.is_err() || text.len() as u64 == MAPPINGS_BYTES_MAX {
            return;
        }
        let mappings: Vec<Mapping<'_>> = text.lines().filter_map(mapping).collect();
        if !maps_rings(&mappings, file) {
            return;
        }
        let now_ns = crate::clock::monotonic().as_ns().max(0) as u64;
        for (object, inode) in mapped_objects(&mappings).into_iter().take(OBJECTS_MAX) {
            let end = object.begin.saturating_add(object.size_bytes);
            // None of them overlaps another.
            let before_end = self.known.range(..end).rev().map(|(_, known)| known);
            let reaches = |known: &&LoadedObject| end_of(known) > object.begin;
            let mut there = before_end.take_while(reaches).peekable();
            let is_known = there.peek().is_some() && there.all(|known| known.path == object.path);
            if !is_known && is_there(&object, inode) {
                self.add(LoadedObject {
                    noticed_ns: now_ns,
                    build_id: build_id(&object, inode).unwrap_or_default(),
                    ..object
                });
            }
        }
    }

    fn add(&mut self, object: LoadedObject) {
        if self.told >= OBJECTS_MAX {
            return;
        }
        self.told += 1;
        let before_end = self.known.range(..end_of(&object)).rev();
        let reaches = |(_, known): &(&u64, &LoadedObject)| end_of(known) > object.begin;
        let gone: Vec<u64> = before_end.take_while(reaches).map(|(at, _)| *at).collect();
        for at in gone {
            self.known.remove(&at);
        }
        self.known.insert(object.begin, object.clone());
        self.waiting.push(object);
    }

    /// All of it is new to the next trace.
    pub fn tell_again(&mut self) {
        self.waiting = self.known.values().cloned().collect();
    }

    /// Writes what is new, not before `begin`, the trace's own.
    pub fn write(&mut self, writer: &mut TraceWriter, pid: i32, begin: Instant) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => writer.stream(STREAM, Cpu(0))?,
        };
        let is_new = stream.is_new();
        let mut payload = PayloadWriter::new();
        self.waiting.sort_by_key(|object| object.noticed_ns);
        let mut begin = begin.max(stream.end());
        // A process can say of an object that it was noticed in a time to come.
        let now_ns = crate::clock::monotonic().as_ns().max(0);
        let noticed = |ns: u64| Instant::from_ns(ns.min(now_ns as u64) as i64);
        if is_new {
            // Nobody knows which thread it was.
            payload.i32(pid).i32(0);
            let first_ns = self.waiting[0].noticed_ns;
            stream.covers(begin)?;
            begin = begin.max(noticed(first_ns));
            stream.event(START, begin, payload.bytes())?;
        }
        for object in self.waiting.drain(..) {
            begin = begin.max(noticed(object.noticed_ns));
            let has_build_id = u8::from(!object.build_id.is_empty());
            payload.clear().i32(pid).i32(0);
            payload.u64(object.begin).u64(object.size_bytes);
            payload
                .string(&object.path)
                .u8(object.is_moved.into())
                .u8(has_build_id)
                .u8(0);
            stream.event(BIN_INFO, begin, payload.bytes())?;
            if has_build_id != 0 {
                payload.clear().i32(pid).i32(0).u64(object.begin);
                payload
                    .u16(object.build_id.len() as u16)
                    .raw(&object.build_id);
                stream.event(BUILD_ID, begin, payload.bytes())?;
            }
        }
        self.stream = Some(stream);
        Ok(())
    }

    /// Brings what was written to the file.
    pub fn flush(&mut self) -> Result<()> {
        self.stream.as_mut().map_or(Ok(()), StreamWriter::gap)
    }

    /// Where it goes.
    pub fn stream(&mut self) -> Option<&mut StreamWriter> {
        self.stream.as_mut()
    }

    /// Ends the stream, which covers all until `end`: the intersection of the trace's streams stays
    /// what was recorded. Gives its size in bytes.
    pub fn finish(&mut self, end: Instant) -> Result<u64> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(0);
        };
        stream.covers(end.max(stream.end()))?;
        Ok(stream.finish()?.size_bytes)
    }
}

fn end_of(object: &LoadedObject) -> u64 {
    object.begin.saturating_add(object.size_bytes)
}

/// What the process `pid` has in its memory now: programs and libraries whose files are still
/// there. `build_ids` has what was read before, by device and inode.
pub(crate) fn loaded_objects(
    pid: i32,
    build_ids: &mut HashMap<(u32, u32, u64), Vec<u8>>,
) -> Vec<LoadedObject> {
    let mut text = String::new();
    let read = std::fs::File::open(format!("/proc/{pid}/maps"))
        .and_then(|maps| maps.take(MAPPINGS_BYTES_MAX).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let mappings: Vec<Mapping<'_>> = text.lines().filter_map(mapping).collect();
    let mut objects = Vec::new();
    for (object, inode) in mapped_objects(&mappings) {
        if !is_there(&object, inode) {
            continue;
        }
        let of = |m: &&Mapping<'_>| m.begin == object.begin;
        let device = mappings.iter().find(of).map_or((0, 0), |m| m.device);
        let key = (device.0, device.1, inode);
        let id = build_ids
            .entry(key)
            .or_insert_with(|| build_id(&object, inode).unwrap_or_default());
        objects.push(LoadedObject {
            build_id: id.clone(),
            ..object
        });
    }
    objects
}

/// The build id of the object's file, if that is still the file `inode`. Nothing else is opened,
/// waited for or mapped: whoever owns it can put a pipe in its place, or a link to a device, where
/// opening may do something, or cut it off.
fn build_id(object: &LoadedObject, inode: u64) -> Option<Vec<u8>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = rustix::fs::openat(CWD, object.path.as_str(), flags, Mode::empty()).ok()?;
    let facts = rustix::fs::fstat(&place).ok()?;
    let is_file = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
    if !is_file || facts.st_ino != inode {
        return None;
    }
    // By what was looked at: its name may mean another by now.
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    symbols::build_id_of(&std::fs::File::from(file))
}

/// Whether the object's file is still the file `inode`: what was removed or replaced since cannot
/// be read by its name.
fn is_there(object: &LoadedObject, inode: u64) -> bool {
    let facts = std::fs::metadata(&object.path);
    facts.is_ok_and(|facts| facts.ino() == inode)
}

/// Files with code, each from its first byte on to the end of its last mapping, with its inode.
fn mapped_objects(mappings: &[Mapping<'_>]) -> Vec<(LoadedObject, u64)> {
    let mut objects = Vec::new();
    let mut rest = mappings;
    while let Some(first) = rest.first() {
        let is_same = |m: &&Mapping<'_>| (m.device, m.inode) == (first.device, first.inode);
        let count = rest.iter().take_while(is_same).count();
        let (own, behind) = rest.split_at(count);
        rest = behind;
        let end = own.last().map_or(first.end, |last| last.end);
        let is_object = first.offset == 0 && end > first.begin && own.iter().any(|m| m.is_code);
        if is_object {
            let object = LoadedObject {
                begin: first.begin,
                size_bytes: end - first.begin,
                path: first.path.to_owned(),
                // The program itself was noted by itself: what else comes can lie anywhere.
                is_moved: true,
                ..LoadedObject::default()
            };
            objects.push((object, first.inode));
        }
    }
    objects
}

/// The code of the process whose folder in `/proc` is this, called as we find it: it may have a
/// root of its own. What is no file any more, or another one, is left out.
pub(crate) fn loaded_code(folder: &Path) -> Vec<LoadedCode> {
    let mut text = String::new();
    let read = std::fs::File::open(folder.join("maps"))
        .and_then(|maps| maps.take(MAPPINGS_BYTES_MAX).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let code = |line: &str| match line.ends_with(KERNEL_PAGE) {
        true => kernel_page(line),
        false => file_code(folder, &mapping(line)?),
    };
    text.lines().filter_map(code).collect()
}

fn file_code(folder: &Path, mapping: &Mapping<'_>) -> Option<LoadedCode> {
    let inside = mapping.path.trim_start_matches('/');
    let path = folder.join("root").join(inside);
    let is_same = |facts: &std::fs::Metadata| facts.is_file() && facts.ino() == mapping.inode;
    let is_there = mapping.is_code && std::fs::metadata(&path).is_ok_and(|facts| is_same(&facts));
    is_there.then_some(LoadedCode {
        begin: mapping.begin,
        end: mapping.end,
        offset: mapping.offset,
        path,
    })
}

fn kernel_page(line: &str) -> Option<LoadedCode> {
    let (begin, end) = line.split(' ').next()?.split_once('-')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(LoadedCode {
        begin: hexadecimal(begin)?,
        end: hexadecimal(end)?,
        offset: 0,
        path: KERNEL_PAGE.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_is_not_taken_again_at_once() {
        let mut budget = LookBudget::default();
        let mut looks = 0;
        budget.spend(|| {
            looks += 1;
            std::thread::sleep(LOOK_BIT * 2);
        });
        budget.spend(|| looks += 1);
        assert_eq!(looks, 1);
        budget.begin -= LOOK_BIT * LOOK_PARTS * 2;
        budget.spend(|| looks += 1);
        assert_eq!(looks, 2);
    }

    #[test]
    fn what_stands_in_the_place_of_a_program_is_not_opened() {
        use rustix::fs::inotify;

        let folder = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("our program");
        let program = folder.path().join("program");
        std::fs::copy(own, &program).expect("a copy");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RWXU).expect("a pipe");
        let check = |path: &Path, is_opened: bool| {
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            let watch = inotify::init(flags).expect("a watch");
            inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).expect("a watch");
            let object = LoadedObject {
                path: path.to_string_lossy().into_owned(),
                ..LoadedObject::default()
            };
            let inode = std::os::unix::fs::MetadataExt::ino(&path.metadata().expect("there"));
            build_id(&object, inode);
            let seen = rustix::io::read(&watch, &mut [0; 4096]);
            assert_eq!(seen.is_ok(), is_opened, "{}", path.display());
        };
        check(&program, true);
        check(&pipe, false);
    }

    #[test]
    fn our_own_code_is_among_what_the_kernel_says() {
        let text = std::fs::read_to_string("/proc/self/maps").expect("our mappings");
        let mappings: Vec<_> = text.lines().filter_map(mapping).collect();
        let objects = mapped_objects(&mappings);
        let own = std::env::current_exe().expect("our program");
        let here = our_own_code_is_among_what_the_kernel_says as fn() as usize as u64;
        let mut found = objects.iter().map(|(object, _)| object);
        let found = found.find(|object| Path::new(&object.path) == own);
        let found = found.expect("our program");
        assert!((found.begin..found.begin + found.size_bytes).contains(&here));
    }
}
