//! What a load has done, in a file: a row of little-endian numbers for each of its slots, written
//! whenever one has completed its work, read by whoever measures, without the load's help.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Its name in the load's folder.
pub(super) const FILE: &str = "counters";
/// Counters of a slot.
pub(super) const COUNTERS: usize = 8;
const ROW_BYTES: usize = COUNTERS * 8;

/// The counters of a slot.
pub(super) type Row = [u64; COUNTERS];

/// Writes the row of `slot`.
pub(super) fn write(file: &File, slot: usize, row: &Row) -> Result<()> {
    let bytes: Vec<u8> = row.iter().flat_map(|one| one.to_le_bytes()).collect();
    file.write_all_at(&bytes, (slot * ROW_BYTES) as u64)
}

/// The rows of so many slots; zeros where nothing was written yet.
pub(super) fn read(path: &Path, slots: usize) -> Vec<Row> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let number = |at: usize| {
        let bytes = bytes
            .get(at..at + 8)
            .and_then(|eight| eight.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let row = |slot: usize| std::array::from_fn(|one| number(slot * ROW_BYTES + one * 8));
    (0..slots).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written_and_are_zero_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        assert_eq!(read(&path, 2), [[0; COUNTERS]; 2]);
        let file = File::create(&path).expect("a file");
        write(&file, 1, &[3; COUNTERS]).expect("written");
        assert_eq!(read(&path, 2), [[0; COUNTERS], [3; COUNTERS]]);
        // A row of which a part is there.
        std::fs::write(&path, 7u64.to_le_bytes()).expect("written");
        assert_eq!(read(&path, 1), [[7, 0, 0, 0, 0, 0, 0, 0]]);
    }
}
