//! A process's file of rings, mapped to be read, and its switches to be changed in one step.
//!
//! A copy out of a mapping costs a third of what `pread` takes, which looks up every page, and a
//! look at one word of it no system call: so a recorder looks at a thousand rings at once. But who
//! truncates the file takes the pages away, and a read of them is SIGBUS. So each mapping is on a
//! list: our handler puts zeros in the place of a listed mapping that lost its pages, and takes
//! note. Faults of all others go where they went before us.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::param::page_size;

/// So many mappings can be on the list, three of each process; the files of more processes are read
/// by `pread`.
const GUARDED_MAX: usize = 12288;
/// More is read by `pread`: where a process made holes, reading them by a mapping takes memory.
const BYTES_MAX: u64 = 1 << 30;

/// A mapping on the list.
struct Guarded {
    /// Where it begins and ends in memory; free while both are 0. The begin is stored last.
    begin: AtomicUsize,
    end: AtomicUsize,
    /// Whether it lost its pages.
    is_broken: AtomicBool,
}

/// Where the next free place is looked for: behind the last that was taken.
static NEXT: AtomicUsize = AtomicUsize::new(0);

static GUARDED: [Guarded; GUARDED_MAX] = [const {
    Guarded {
        begin: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_broken: AtomicBool::new(false),
    }
}; GUARDED_MAX];

/// What becomes of the SIGBUS of others.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, before the handler that reads it is installed.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::uninit()));

impl Guarded {
    /// Takes a free place for the mapping of `bytes` at `begin`.
    fn take(begin: usize, bytes: usize) -> Option<&'static Guarded> {
        let claim = |guarded: &&Guarded| {
            let free = &guarded.end;
            free.compare_exchange(0, begin + bytes, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let next = NEXT.load(Ordering::Relaxed) % GUARDED_MAX;
        let (before, behind) = GUARDED.split_at(next);
        let place = behind
            .iter()
            .chain(before)
            .position(|guarded| claim(&guarded))?;
        let place = (next + place) % GUARDED_MAX;
        NEXT.store(place + 1, Ordering::Relaxed);
        let taken = &GUARDED[place];
        taken.is_broken.store(false, Ordering::Relaxed);
        taken.begin.store(begin, Ordering::Release);
        Some(taken)
    }

    fn give_back(&self) {
        self.begin.store(0, Ordering::Release);
        self.end.store(0, Ordering::Release);
    }
}

/// Installs the handler, once.
fn guard() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler does only what a handler may: it loads and stores atomics, and calls
        // mmap and sigaction. What it reads is written before it is there.
        unsafe {
            let before = (*BEFORE.0.get()).as_mut_ptr();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// Puts zeros under a listed mapping that lost its pages; what was interrupted then goes on.
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo_t, with the address that was read.
    let address = unsafe { (*info).si_addr() } as usize;
    let of_it = |guarded: &&Guarded| {
        let begin = guarded.begin.load(Ordering::Acquire);
        begin != 0 && (begin..guarded.end.load(Ordering::Acquire)).contains(&address)
    };
    let Some(guarded) = GUARDED.iter().find(of_it) else {
        // Back to where it went before: the instruction is tried again, and meets that.
        // SAFETY: `guard` filled it in before this handler was there.
        unsafe {
            libc::sigaction(
                libc::SIGBUS,
                (*BEFORE.0.get()).as_ptr(),
                std::ptr::null_mut(),
            )
        };
        return;
    };
    guarded.is_broken.store(true, Ordering::Release);
    let begin = guarded.begin.load(Ordering::Acquire);
    let bytes = guarded.end.load(Ordering::Acquire) - begin;
    // SAFETY: the range is that of a mapping of ours, which nobody refers to but by its address.
    let zeros = unsafe {
        rustix::mm::mmap_anonymous(
            begin as *mut c_void,
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
        )
    };
    if zeros.is_err() {
        // SAFETY: as above. Without memory for this there is no way on.
        unsafe {
            libc::sigaction(
                libc::SIGBUS,
                (*BEFORE.0.get()).as_ptr(),
                std::ptr::null_mut(),
            )
        };
    }
}

/// A stretch of a file of rings in memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
    /// The file's offset of the first byte.
    offset: u64,
    is_writable: bool,
    guarded: &'static Guarded,
}

// SAFETY: what is not read alone is changed by atomics, and the mapping is taken down when its one
// owner goes.
unsafe impl Send for Mapping {}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded")
            .field("is_broken", &self.is_broken)
            .finish_non_exhaustive()
    }
}

impl Mapping {
    /// Maps `bytes` of `file` from `offset` on, to be read. `None` where that cannot be done, or
    /// costs too much memory: `pread` does without.
    pub fn new(file: &File, offset: u64, bytes: u64) -> Option<Mapping> {
        Mapping::with(file, offset, bytes, ProtFlags::READ)
    }

    /// The same, also for [`Mapping::exchange`].
    pub fn writable(file: &File, offset: u64, bytes: u64) -> Option<Mapping> {
        Mapping::with(file, offset, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn with(file: &File, offset: u64, bytes: u64, access: ProtFlags) -> Option<Mapping> {
        if bytes > BYTES_MAX || !offset.is_multiple_of(page_size() as u64) {
            return None;
        }
        guard();
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        // SAFETY: a new mapping, at no address of our choice.
        let begin = unsafe {
            let shared = MapFlags::SHARED;
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access, shared, file, offset)
        };
        let begin = NonNull::new(begin.ok()?.cast::<u8>())?;
        // Read once, in order: no page of it is worth to be remembered as used. A kernel that does
        // not know this goes without.
        // SAFETY: advice on a mapping of ours changes nothing in it.
        let _ = unsafe {
            rustix::mm::madvise(begin.as_ptr().cast(), bytes, rustix::mm::Advice::Sequential)
        };
        let Some(guarded) = Guarded::take(begin.as_ptr() as usize, bytes) else {
            // SAFETY: it was made above, and nobody knows of it.
            let _ = unsafe { rustix::mm::munmap(begin.as_ptr().cast(), bytes) };
            return None;
        };
        Some(Mapping {
            begin,
            bytes,
            offset,
            is_writable: access.contains(ProtFlags::WRITE),
            guarded,
        })
    }

    /// Copies `bytes` that lie at `offset` of the file, all of which were mapped, to the end of
    /// `into`. They may be written meanwhile.
    ///
    /// # Errors
    /// As `read_exact` at the end of a file, when the file no longer reaches there.
    pub fn copy(&self, offset: u64, bytes: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let begin = self.place(offset, bytes)?;
        into.reserve(bytes);
        // SAFETY: the range was checked against the mapping, and `into` has room. Other processes
        // may write there: bytes alone are taken, each once, and nothing is believed of them.
        unsafe {
            let from = self.begin.as_ptr().add(begin);
            let end = into.as_mut_ptr().add(into.len());
            end.copy_from_nonoverlapping(from, bytes);
            into.set_len(into.len() + bytes);
        }
        self.check()
    }

    /// The word at `offset` of the file, in one load. It may be written meanwhile.
    ///
    /// # Errors
    /// As [`Mapping::copy`]; for what is no whole word, too.
    pub fn word(&self, offset: u64) -> io::Result<u64> {
        let word = self.atomic(offset)?.load(Ordering::Relaxed);
        self.check().map(|()| u64::from_le(word))
    }

    /// Puts `to` in the place of the word at `offset` if that is `from`; whether it was. Another
    /// process may do the same: one of both succeeds.
    ///
    /// # Errors
    /// As [`Mapping::word`]; for what is mapped to be read alone, too.
    pub fn exchange(&self, offset: u64, from: u64, to: u64) -> io::Result<bool> {
        if !self.is_writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (from, to) = (from.to_le(), to.to_le());
        // What the new word leads to was written before.
        let order = (Ordering::Release, Ordering::Relaxed);
        let done = self
            .atomic(offset)?
            .compare_exchange(from, to, order.0, order.1);
        self.check().map(|()| done.is_ok())
    }

    fn atomic(&self, offset: u64) -> io::Result<&AtomicU64> {
        let place = self.place(offset, size_of::<u64>())?;
        if !place.is_multiple_of(size_of::<u64>()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the range was checked against the mapping, which begins at a page and stays for
        // as long as `self`, and the place is aligned. Other processes may write there; whatever
        // they do is a value.
        Ok(unsafe { AtomicU64::from_ptr(self.begin.as_ptr().add(place).cast::<u64>()) })
    }

    /// Where `bytes` are that lie at `offset` of the file.
    fn place(&self, offset: u64, bytes: usize) -> io::Result<usize> {
        let place = offset.checked_sub(self.offset);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let place = place.filter(|place| {
            let end = place.checked_add(bytes);
            end.is_some_and(|end| end <= self.bytes)
        });
        place.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Fails where what was read may be the zeros of our handler.
    fn check(&self) -> io::Result<()> {
        match self.guarded.is_broken.load(Ordering::Acquire) {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guarded.give_back();
        // SAFETY: it was mapped with these bounds, and nobody reads it any more.
        let _ = unsafe { rustix::mm::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("room");
        file
    }

    #[test]
    fn what_is_mapped_is_what_is_in_the_file() {
        let page = page_size();
        let bytes: Vec<u8> = (0..4 * page).map(|place| (place % 251) as u8).collect();
        let file = file(&bytes);
        let mapping = Mapping::new(&file, page as u64, 2 * page as u64).expect("a mapping");
        let check = |begin: usize, end: usize| {
            let mut found = Vec::new();
            let copied = mapping.copy(begin as u64, end - begin, &mut found);
            match begin >= page && end <= 3 * page {
                true => assert_eq!(found, bytes[begin..end]),
                false => assert!(copied.is_err(), "{begin}..{end}"),
            }
        };
        check(page, page + 1);
        check(page + 7, 3 * page);
        check(page - 1, page + 5);
        check(2 * page, 3 * page + 1);
        let word = |place: usize| mapping.word(place as u64).ok();
        for place in [page, 2 * page + 8, 3 * page - 8] {
            let expect = bytes[place..]
                .first_chunk()
                .copied()
                .map(u64::from_le_bytes);
            assert_eq!(word(place), expect, "{place}");
        }
        for place in [page - 8, page + 4, 3 * page - 4, 3 * page, usize::MAX] {
            assert_eq!(word(place), None, "{place}");
        }
        assert!(Mapping::new(&file, 8, 8).is_none(), "not at a page");
        assert!(Mapping::new(&file, 0, BYTES_MAX + 1).is_none(), "too large");
    }

    #[test]
    fn a_file_that_is_truncated_under_a_mapping_is_an_error_and_no_signal() {
        let page = page_size();
        let bytes = vec![7; 4 * page];
        let (cut, whole) = (file(&bytes), file(&bytes));
        let map = |file| Mapping::new(file, 0, 4 * page as u64).expect("a mapping");
        let (of_cut, of_whole) = (map(&cut), map(&whole));
        let mut found = Vec::new();
        of_cut.copy(0, 2 * page, &mut found).expect("all there");
        cut.set_len(page as u64).expect("truncated");
        assert!(of_cut.copy(page as u64, page, &mut found).is_err());
        // From then on nothing of it is believed.
        assert!(of_cut.copy(0, page, &mut found).is_err());
        assert!(of_cut.word(0).is_err());
        found.clear();
        of_whole
            .copy(0, 4 * page, &mut found)
            .expect("another file");
        assert_eq!(found, bytes);
    }

    #[test]
    fn a_word_is_exchanged_where_it_is_what_was_expected() {
        let file = file(&7_u64.to_le_bytes());
        let page = page_size() as u64;
        file.set_len(page).expect("a page");
        let map = || Mapping::writable(&file, 0, page).expect("a mapping");
        let (one, other) = (map(), map());
        assert!(one.exchange(0, 7, 8).expect("in the file"));
        assert!(!other.exchange(0, 7, 9).expect("in the file"));
        assert_eq!(other.word(0).expect("in the file"), 8);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0).expect("in the file");
        assert_eq!(u64::from_le_bytes(bytes), 8);
        for place in [4, page - 4, page] {
            assert!(one.exchange(place, 0, 1).is_err(), "{place}");
        }
        let read = Mapping::new(&file, 0, page).expect("a mapping");
        assert!(read.exchange(0, 8, 9).is_err(), "to be read alone");
        // A write behind the end is an error, and no signal.
        file.set_len(0).expect("truncated");
        assert!(one.exchange(0, 8, 9).is_err());
    }

    #[test]
    fn a_place_on_the_list_is_used_again() {
        let file = file(&[1; 8]);
        let page = page_size() as u64;
        let all: Vec<_> = (0..GUARDED_MAX + 10)
            .filter_map(|_| Mapping::new(&file, 0, page))
            .collect();
        assert!(all.len() <= GUARDED_MAX);
        drop(all);
        assert!(Mapping::new(&file, 0, page).is_some());
    }
}
