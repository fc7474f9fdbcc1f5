//! Compiled programs as this one carries them: compressed, since all of them are 3 MB of it.

use std::io::Read;

use event::Result;
use flate2::read::ZlibDecoder;

use crate::object;

/// No object of ours comes near it.
const BYTES_MAX: u64 = 64 << 20;

/// A BPF object, as `build.rs` compressed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed(&'static [u8]);

impl Packed {
    pub(crate) const fn new(bytes: &'static [u8]) -> Packed {
        Packed(bytes)
    }

    /// The object itself, in memory of its own: aligned as libelf wants it.
    pub(crate) fn unpacked(self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        ZlibDecoder::new(self.0)
            .take(BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| object::foreign(&format!("it cannot be unpacked: {error}")))?;
        Ok(bytes)
    }
}

/// The object of `bpf/NAME.bpf.c`.
macro_rules! packed {
    ($($part:literal),+) => {
        $crate::packed::Packed::new(include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $($part,)+
            ".bpf.o.z"
        )))
    };
}
pub(crate) use packed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_unpacked_whole_and_what_is_broken_is_an_error() {
        let packed = object::EMPTY;
        let bytes = packed.unpacked().expect("an object");
        assert!(bytes.starts_with(b"\x7fELF"), "{:?}", &bytes[..4]);
        for end in 0..packed.0.len() {
            let cut = Packed::new(&packed.0[..end]).unpacked();
            let error = cut.expect_err("a part of it is no object");
            assert!(error.fixed_by().is_some(), "{error:#}");
        }
    }
}
