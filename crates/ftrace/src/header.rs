//! `events/header_page`: where the words of a sub-buffer stand on this kernel.

use event::{Error, ErrorKind, Result};

use crate::bytes::Order;
use crate::decl;

/// The layout of a sub-buffer's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Offset of the commit word.
    pub commit_offset_bytes: usize,
    /// Width of the commit word: 4 or 8.
    pub commit_size_bytes: usize,
    /// Offset of the first event.
    pub data_offset_bytes: usize,
    /// Room for events; the sub-buffer is this and `data_offset_bytes` long.
    pub data_size_bytes: usize,
    /// Whether the kernel is big-endian.
    pub big_endian: bool,
}

impl PageLayout {
    /// A 64-bit kernel with sub-buffers of 4 KiB.
    pub const LP64: PageLayout = PageLayout {
        commit_offset_bytes: 8,
        commit_size_bytes: 8,
        data_offset_bytes: 16,
        data_size_bytes: 4080,
        big_endian: false,
    };

    /// Reads the text of `events/header_page`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when a word is missing or out of place.
    pub fn parse(text: &str) -> Result<Self> {
        let corrupt = || {
            Error::new(ErrorKind::Corrupt, "cannot understand events/header_page")
                .found(text.lines().next().unwrap_or("an empty file").trim())
                .fix("rtscope doctor")
        };
        let (mut commit, mut data) = (None, None);
        for line in text.lines() {
            match place(line) {
                Some(("commit", offset, size)) => commit = Some((offset, size)),
                Some(("data", offset, size)) => data = Some((offset, size)),
                _ => {}
            }
        }
        let ((commit_offset, commit_size), (data_offset, data_size)) =
            commit.zip(data).ok_or_else(corrupt)?;
        let sound = matches!(commit_size, 4 | 8)
            && commit_offset >= 8
            && data_offset >= commit_offset + commit_size
            && data_offset <= 64
            && (16..1 << 24).contains(&data_size);
        sound.then_some(()).ok_or_else(corrupt)?;
        Ok(PageLayout {
            commit_offset_bytes: commit_offset,
            commit_size_bytes: commit_size,
            data_offset_bytes: data_offset,
            data_size_bytes: data_size,
            big_endian: cfg!(target_endian = "big"),
        })
    }

    /// The same of a kernel with this byte order; the text does not say it, and means this machine.
    pub fn with_order(self, order: Order) -> Self {
        PageLayout {
            big_endian: order == Order::Big,
            ..self
        }
    }

    /// The byte order of all numbers in pages and records.
    #[inline]
    pub fn order(&self) -> Order {
        match self.big_endian {
            true => Order::Big,
            false => Order::Little,
        }
    }

    /// The whole sub-buffer: what one read of `trace_pipe_raw` yields.
    pub fn page_size_bytes(&self) -> usize {
        self.data_offset_bytes + self.data_size_bytes
    }
}

/// Name, offset and size of one line.
fn place(line: &str) -> Option<(&str, usize, usize)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let name = decl::parse(parts.next()?.strip_prefix("field:")?)?.name;
    let (mut offset, mut size) = (None, None);
    for (key, value) in parts.filter_map(|part| part.split_once(':')) {
        match key {
            "offset" => offset = value.parse::<u32>().ok(),
            "size" => size = value.parse::<u32>().ok(),
            _ => {}
        }
    }
    Some((name, offset? as usize, size? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_the_places_of_commit_and_data() {
        let text = |data: u32| {
            format!(
                "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                 \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                 \tfield: char data;\toffset:16;\tsize:{data};\tsigned:0;\n"
            )
        };
        assert_eq!(PageLayout::parse(&text(4080)).ok(), Some(PageLayout::LP64));
        let large = PageLayout::parse(&text(65_520)).expect("a large sub-buffer is sound");
        assert_eq!(large.page_size_bytes(), 65_536);
        assert!(PageLayout::parse(&text(0)).is_err());
        assert!(PageLayout::parse("").is_err());
    }
}
