//! What several readers are fed through.

/// More items than any input can hold: a walk that is longer goes around in a circle.
pub(super) const ITEMS_MAX: u64 = 4 << 20;

/// A file in memory under a name that can be opened like any other.
pub(crate) struct MemoryFile(std::fs::File);

impl MemoryFile {
    /// An empty one.
    pub fn new() -> Option<Self> {
        // SAFETY: the name is a text with its end, and the descriptor is ours alone.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"fuzz".as_ptr(), libc::MFD_CLOEXEC);
            (descriptor >= 0).then(|| std::os::fd::FromRawFd::from_raw_fd(descriptor))
        };
        file.map(MemoryFile)
    }

    /// Gives it this content.
    pub fn set(&mut self, bytes: &[u8]) -> std::io::Result<std::path::PathBuf> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::FileExt;
        self.0.set_len(0)?;
        self.0.write_all_at(bytes, 0)?;
        Ok(format!("/proc/self/fd/{}", self.0.as_raw_fd()).into())
    }
}

/// Walks over everything in a trace, and reads every field of every event.
pub(crate) fn walk(trace: &::trace::Trace) {
    let _ = (trace.parts(), trace.range(), trace.symbols());
    let mut cursor = trace.cursor(event::TimeRange::ALL);
    let mut items = 0;
    while let Ok(Some(item)) = cursor.next() {
        items += 1;
        assert!(items < ITEMS_MAX, "a walk without end");
        let ::trace::Item::Event(event) = item else {
            continue;
        };
        let class = &trace.classes()[event.class().0 as usize];
        for place in 0..class.fields.len() {
            let id = event::FieldId(place as u16);
            std::hint::black_box((event.i64(id), event.f64(id), event.text(id).len()));
            std::hint::black_box(event.value(id));
        }
    }
    // Somewhere in the middle, without what comes before.
    if let Some(range) = trace.range() {
        let half = (range.begin.as_ns() / 2).saturating_add(range.end.as_ns() / 2);
        let begin = event::Instant::from_ns(half);
        let mut cursor = trace.cursor(event::TimeRange {
            begin,
            end: event::Instant::MAX,
        });
        for _ in 0..4 {
            if !matches!(cursor.next(), Ok(Some(_))) {
                break;
            }
        }
    }
}
