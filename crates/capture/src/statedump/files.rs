//! What processes have open and mapped, from `/proc`.

use std::fs;
use std::path::Path;

/// No dump has more, whoever opens how many.
const FILES_MAX: usize = 200_000;
const MAPS_MAX: usize = 1_000_000;
/// Bits of the kernel's `vm_flags`, by the letters of `/proc/PID/maps`.
const MAP_LETTERS: [(char, u64); 4] = [('r', 1), ('w', 2), ('x', 4), ('s', 8)];
/// The kernel counts offsets of maps in pages.
const PAGE_BYTES: u64 = 4096;

/// A descriptor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The process.
    pub pid: i32,
    /// Its number.
    pub fd: i32,
    /// How it was opened.
    pub flags: u32,
    /// Its path, or what the kernel calls it: `socket:[7]`, `pipe:[8]`.
    pub name: String,
}

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMap {
    /// The process.
    pub pid: i32,
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// What may be done with it: the kernel's bits.
    pub flags: u64,
    /// The file's number; 0: none.
    pub inode: u64,
    /// Where in the file it begins, in pages.
    pub page: u64,
}

impl OpenFile {
    /// Bits of the kernel's `fmode_t`: may be read, may be written.
    pub fn mode(&self) -> u32 {
        (self.flags & libc::O_ACCMODE as u32) + 1
    }
}

/// The names in a directory that are numbers.
pub(super) fn numbered(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The descriptors of `pids`. What closes meanwhile is left out.
pub(super) fn open_files(pids: &[i32]) -> Vec<OpenFile> {
    let of_process = |pid: &i32| {
        let process = Path::new("/proc").join(pid.to_string());
        let (links, infos) = (process.join("fd"), process.join("fdinfo"));
        let pid = *pid;
        numbered(&links).into_iter().filter_map(move |fd| {
            let name = fs::read_link(links.join(fd.to_string())).ok()?;
            let info = fs::read_to_string(infos.join(fd.to_string())).ok()?;
            Some(OpenFile {
                pid,
                fd,
                flags: flags(&info)?,
                name: name.to_string_lossy().into_owned(),
            })
        })
    };
    pids.iter().flat_map(of_process).take(FILES_MAX).collect()
}

/// From `/proc/PID/fdinfo/FD`.
fn flags(info: &str) -> Option<u32> {
    let text = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(text.trim(), 8).ok()
}

/// The memory of `pids`.
pub(super) fn memory_maps(pids: &[i32]) -> Vec<MemoryMap> {
    let mut maps = Vec::new();
    for pid in pids {
        let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        maps.extend(text.lines().filter_map(|line| memory_map(*pid, line)));
        if maps.len() >= MAPS_MAX {
            break;
        }
    }
    maps
}

/// From a line of `/proc/PID/maps`: `START-END LETTERS OFFSET DEVICE INODE [PATH]`.
fn memory_map(pid: i32, line: &str) -> Option<MemoryMap> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let letters = words.next()?;
    let given = MAP_LETTERS
        .iter()
        .filter(|(letter, _)| letters.contains(*letter));
    let offset = hexadecimal(words.next()?)?;
    Some(MemoryMap {
        pid,
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        flags: given.map(|(_, bit)| bit).sum(),
        inode: words.nth(1)?.parse().ok()?,
        page: offset / PAGE_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_with_or_without_a_file() {
        let check = |line: &str, expect: Option<(u64, u64, u64, u64, u64)>| {
            let found = memory_map(7, line);
            let found = found.map(|map| (map.start, map.end, map.flags, map.inode, map.page));
            assert_eq!(found, expect, "{line}");
        };
        check(
            "7f0000-7f8000 r-xp 00002000 fe:00 4242   /usr/lib/a name.so",
            Some((0x7f0000, 0x7f8000, 5, 4242, 2)),
        );
        check(
            "1000-2000 rw-s 00000000 00:00 0",
            Some((0x1000, 0x2000, 11, 0, 0)),
        );
        check("1000 rw-s 0 00:00 0", None);
        check("", None);
    }

    #[test]
    fn a_descriptor_says_how_it_was_opened() {
        let check = |text: &str, expect| assert_eq!(flags(text), expect, "{text}");
        check("pos:\t0\nflags:\t0100002\nmnt_id:\t9\n", Some(0o100002));
        check("pos:\t0\n", None);
        let mode = |flags| {
            let name = String::new();
            OpenFile {
                pid: 1,
                fd: 0,
                flags,
                name,
            }
            .mode()
        };
        assert_eq!([0, 1, 2].map(mode), [1, 2, 3]);
    }

    #[test]
    fn this_process_has_its_open_files_and_its_memory() {
        let own = std::process::id() as i32;
        let file = tempfile::NamedTempFile::new().expect("a file");
        let name = file.path().to_string_lossy().into_owned();
        let files = open_files(&[own, i32::MAX]);
        assert!(
            files
                .iter()
                .any(|open| open.name == name && open.mode() == 3),
            "{files:?}"
        );
        let maps = memory_maps(&[own, i32::MAX]);
        let here = this_process_has_its_open_files_and_its_memory as *const () as u64;
        let holds = |map: &&MemoryMap| map.start <= here && here < map.end;
        assert_eq!(maps.iter().find(holds).map(|map| map.flags & 4), Some(4));
    }
}
