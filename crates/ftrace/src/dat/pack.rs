//! Compressed parts of a trace.dat: zstd or zlib, each part by itself.

use std::io::Read;

use event::{Error, ErrorKind, Result};

/// How parts of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Zlib,
    Zstd,
}

impl Packing {
    /// The one of this name, as trace-cmd writes it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] names an algorithm that is not known here.
    pub fn named(name: &str) -> Result<Packing> {
        match name {
            "none" | "" => Ok(Packing::None),
            "zlib" => Ok(Packing::Zlib),
            "zstd" => Ok(Packing::Zstd),
            other => Err(
                Error::new(ErrorKind::Unsupported, "unknown compression of a trace.dat")
                    .found(format!("'{other}'"))
                    .fix("trace-cmd convert --compression zstd -i FILE -o NEW"),
            ),
        }
    }

    /// The `size` bytes that `packed` holds, into `out`; their number when they are others.
    ///
    /// No more than `size` bytes are ever made, whatever `packed` claims.
    pub fn unpack(self, packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        let made = match self {
            Packing::None => {
                out.extend_from_slice(packed);
                Ok(())
            }
            Packing::Zlib => {
                let decoder = flate2::read::ZlibDecoder::new(packed);
                read_up_to(decoder, size, out)
            }
            Packing::Zstd => zstd::stream::read::Decoder::with_buffer(packed)
                .and_then(|decoder| read_up_to(decoder.single_frame(), size, out)),
        };
        made.map_err(|error| format!("compressed bytes, found {error}"))?;
        match out.len() == size {
            true => Ok(()),
            false => Err(format!(
                "{size} bytes after decompression, found {}",
                out.len()
            )),
        }
    }
}

/// Reads one byte more than `size` at most, so that the caller sees when there are too many.
fn read_up_to(source: impl Read, size: usize, out: &mut Vec<u8>) -> std::io::Result<()> {
    out.reserve(size.min(1 << 20));
    source.take(size as u64 + 1).read_to_end(out).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory takes all");
        encoder.finish().expect("memory takes all")
    }

    #[test]
    fn what_was_packed_comes_out_and_never_more_than_was_announced() {
        let bytes = vec![7u8; 100_000];
        let zstd = zstd::stream::encode_all(bytes.as_slice(), 1).expect("memory takes all");
        let mut out = Vec::new();
        for (packing, packed) in [
            (Packing::Zstd, zstd),
            (Packing::Zlib, zlib(&bytes)),
            (Packing::None, bytes.clone()),
        ] {
            assert_eq!(packing.unpack(&packed, bytes.len(), &mut out), Ok(()));
            assert_eq!(out, bytes);
            let short = packing.unpack(&packed, 4096, &mut out);
            assert!(short.is_err(), "{packing:?}");
            if packing != Packing::None {
                assert!(out.len() <= 4097, "{packing:?}");
                assert!(packing.unpack(&packed[..12], 100_000, &mut out).is_err());
            }
            assert!(packing.unpack(b"", 1, &mut out).is_err());
        }
    }

    #[test]
    fn an_unknown_compression_is_named() {
        let error = Packing::named("lzo").expect_err("nobody knows it");
        assert_eq!(error.value_found(), Some("'lzo'"));
    }
}
