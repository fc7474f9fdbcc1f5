//! What goes over the wire: frames of a length, a kind and fields, little-endian.

use std::fmt;

/// The most bytes of a frame before the other side has shown that it has the token.
pub const STRANGER_BYTES_MAX: usize = 512;
/// The same afterwards: the data of one, and what stands around it.
pub const FRAME_BYTES_MAX: usize = DATA_BYTES_MAX + 64;
/// The most bytes of a file in one frame.
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a text.
const TEXT_BYTES_MAX: usize = 1024;
/// The first bytes of each connection.
const MAGIC: [u8; 8] = *b"rtscope\x01";
/// Bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;

/// Why a side ends the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its version is another.
    Version,
    /// The token is another.
    Token,
    /// A name is not allowed, or another's.
    Name,
    /// What was said makes no sense there.
    Order,
    /// There is no room, for now.
    Full,
    /// The other side cannot write, for now.
    Io,
    /// The same recording connected anew.
    Replaced,
}

impl Reason {
    const ALL: [Reason; 7] = [
        Reason::Version,
        Reason::Token,
        Reason::Name,
        Reason::Order,
        Reason::Full,
        Reason::Io,
        Reason::Replaced,
    ];

    fn number(self) -> u8 {
        Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .unwrap_or(0) as u8
    }

    /// Whether trying again may help.
    pub fn passes(self) -> bool {
        matches!(self, Reason::Full | Reason::Io | Reason::Replaced)
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The receiver's first word.
    Welcome { version: u16, nonce: [u8; 16] },
    /// The sender's first word: who it is, and that it has the token.
    Hello {
        version: u16,
        nonce: [u8; 16],
        recording: [u8; 16],
        host: String,
        proof: [u8; 32],
    },
    /// The receiver has the token too.
    Known { proof: [u8; 32] },
    /// The conversation ends.
    Refused { reason: Reason, text: String },
    /// A trace begins, or goes on, under a number that this connection gives it.
    Archive { archive: u32, name: String },
    /// The receiver has a folder for it.
    Ready { archive: u32 },
    /// A file of it; a whole one is replaced at once, others grow.
    Open {
        file: u32,
        archive: u32,
        is_whole: bool,
        path: String,
    },
    /// So many bytes of the file are there.
    Have { file: u32, size_bytes: u64 },
    /// Bytes of a file at its end.
    Data {
        file: u32,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A whole file is complete at this size: it takes its place.
    Put { file: u32, size_bytes: u64 },
    /// Up to here a file was written.
    Ack { file: u32, size_bytes: u64 },
    /// What happened before this instant is in the trace.
    Until { archive: u32, time_ns: i64 },
    /// The trace ends.
    Finish {
        archive: u32,
        is_whole: bool,
        events: u64,
        lost: u64,
    },
    /// The trace is not wanted.
    Forget { archive: u32 },
    /// The trace has its final name, or is forgotten.
    Finished { archive: u32 },
    /// Is somebody there?
    Ping,
    /// Yes.
    Pong,
}

/// What is no frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Its length is beyond what is allowed.
    Length(u64),
    /// There is no such kind.
    Kind(u8),
    /// Its fields do not fill it, or go beyond its end.
    Fields(u8),
    /// The connection does not begin with our magic bytes.
    Magic,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Length(length) => write!(f, "a frame of {length} bytes"),
            FrameError::Kind(kind) => write!(f, "a frame of the unknown kind {kind}"),
            FrameError::Fields(kind) => write!(f, "a frame of kind {kind} with broken fields"),
            FrameError::Magic => f.write_str("bytes that are not this protocol"),
        }
    }
}

impl Frame {
    /// Adds the frame to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        out.push(self.kind());
        self.write_fields(out);
        let length = (out.len() - begin - LENGTH_BYTES) as u32;
        out[begin..begin + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    fn kind(&self) -> u8 {
        match self {
            Frame::Welcome { .. } => 1,
            Frame::Hello { .. } => 2,
            Frame::Known { .. } => 3,
            Frame::Refused { .. } => 4,
            Frame::Archive { .. } => 5,
            Frame::Ready { .. } => 6,
            Frame::Open { .. } => 7,
            Frame::Have { .. } => 8,
            Frame::Data { .. } => 9,
            Frame::Put { .. } => 10,
            Frame::Ack { .. } => 11,
            Frame::Until { .. } => 12,
            Frame::Finish { .. } => 13,
            Frame::Forget { .. } => 14,
            Frame::Finished { .. } => 15,
            Frame::Ping => 16,
            Frame::Pong => 17,
        }
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
        match self {
            Frame::Welcome { version, nonce } => {
                put(&version.to_le_bytes());
                put(nonce);
            }
            Frame::Hello {
                version,
                nonce,
                recording,
                host,
                proof,
            } => {
                put(&version.to_le_bytes());
                put(nonce);
                put(recording);
                put(proof);
                put(&text(host));
            }
            Frame::Known { proof } => put(proof),
            Frame::Refused { reason, text: why } => {
                put(&[reason.number()]);
                put(&text(why));
            }
            Frame::Archive { archive, name } => {
                put(&archive.to_le_bytes());
                put(&text(name));
            }
            Frame::Open {
                file,
                archive,
                is_whole,
                path,
            } => {
                put(&file.to_le_bytes());
                put(&archive.to_le_bytes());
                put(&[u8::from(*is_whole)]);
                put(&text(path));
            }
            Frame::Have { file, size_bytes }
            | Frame::Put { file, size_bytes }
            | Frame::Ack { file, size_bytes } => {
                put(&file.to_le_bytes());
                put(&size_bytes.to_le_bytes());
            }
            Frame::Data {
                file,
                offset,
                bytes,
            } => {
                put(&file.to_le_bytes());
                put(&offset.to_le_bytes());
                put(bytes);
            }
            frame => frame.write_numbers(out),
        }
    }

    /// The fields of a frame that has numbers alone.
    fn write_numbers(&self, out: &mut Vec<u8>) {
        let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
        match self {
            Frame::Until { archive, time_ns } => {
                put(&archive.to_le_bytes());
                put(&time_ns.to_le_bytes());
            }
            Frame::Finish {
                archive,
                is_whole,
                events,
                lost,
            } => {
                put(&archive.to_le_bytes());
                put(&[u8::from(*is_whole)]);
                put(&events.to_le_bytes());
                put(&lost.to_le_bytes());
            }
            Frame::Ready { archive } | Frame::Forget { archive } | Frame::Finished { archive } => {
                put(&archive.to_le_bytes());
            }
            _ => (),
        }
    }

    /// The frame of `kind` with these fields.
    fn read(kind: u8, fields: &[u8]) -> Result<Frame, FrameError> {
        let mut fields = Fields(fields);
        let frame = Frame::read_fields(kind, &mut fields);
        match frame {
            Some(_) if !fields.0.is_empty() => Err(FrameError::Fields(kind)),
            Some(frame) => Ok(frame),
            None if (1..=17).contains(&kind) => Err(FrameError::Fields(kind)),
            None => Err(FrameError::Kind(kind)),
        }
    }

    fn read_fields(kind: u8, fields: &mut Fields<'_>) -> Option<Frame> {
        Some(match kind {
            1 => Frame::Welcome {
                version: u16::from_le_bytes(fields.array()?),
                nonce: fields.array()?,
            },
            2 => Frame::Hello {
                version: u16::from_le_bytes(fields.array()?),
                nonce: fields.array()?,
                recording: fields.array()?,
                proof: fields.array()?,
                host: fields.text()?,
            },
            3 => Frame::Known {
                proof: fields.array()?,
            },
            4 => Frame::Refused {
                reason: *Reason::ALL.get(usize::from(fields.byte()?))?,
                text: fields.text()?,
            },
            5 => Frame::Archive {
                archive: fields.number()?,
                name: fields.text()?,
            },
            7 => Frame::Open {
                file: fields.number()?,
                archive: fields.number()?,
                is_whole: fields.flag()?,
                path: fields.text()?,
            },
            9 => Frame::Data {
                file: fields.number()?,
                offset: u64::from_le_bytes(fields.array()?),
                bytes: fields.rest(),
            },
            8 | 10 | 11 => {
                let file = fields.number()?;
                let size_bytes = u64::from_le_bytes(fields.array()?);
                match kind {
                    8 => Frame::Have { file, size_bytes },
                    10 => Frame::Put { file, size_bytes },
                    _ => Frame::Ack { file, size_bytes },
                }
            }
            12 => Frame::Until {
                archive: fields.number()?,
                time_ns: i64::from_le_bytes(fields.array()?),
            },
            13 => Frame::Finish {
                archive: fields.number()?,
                is_whole: fields.flag()?,
                events: u64::from_le_bytes(fields.array()?),
                lost: u64::from_le_bytes(fields.array()?),
            },
            6 | 14 | 15 => {
                let archive = fields.number()?;
                match kind {
                    6 => Frame::Ready { archive },
                    14 => Frame::Forget { archive },
                    _ => Frame::Finished { archive },
                }
            }
            16 => Frame::Ping,
            17 => Frame::Pong,
            _ => return None,
        })
    }
}

/// A text with its length, cut where it is too long.
fn text(text: &str) -> Vec<u8> {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = (end as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(&text.as_bytes()[..end]);
    bytes
}

/// What is left of a frame's fields.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        if length > TEXT_BYTES_MAX {
            return None;
        }
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }
}

/// Makes frames of bytes as they come. It holds no more than one frame that is allowed, and what
/// was read beyond it.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    begin: usize,
    frame_bytes_max: usize,
    has_magic: bool,
}

impl Decoder {
    /// Of a connection that begins with our magic bytes, from somebody who has shown nothing yet.
    pub fn new() -> Decoder {
        Decoder {
            bytes: Vec::new(),
            begin: 0,
            frame_bytes_max: STRANGER_BYTES_MAX,
            has_magic: false,
        }
    }

    /// The other side has the token: its frames may be large.
    pub fn trust(&mut self) {
        self.frame_bytes_max = FRAME_BYTES_MAX;
    }

    /// Takes bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether part of a frame is there.
    pub fn is_within(&self) -> bool {
        self.begin < self.bytes.len() || !self.has_magic
    }

    /// The next frame; none when its bytes are not there yet.
    ///
    /// # Errors
    /// What is no frame; nothing behind it can be understood.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.bytes[self.begin..];
        let rest = match self.has_magic {
            true => rest,
            false => {
                let seen = rest.len().min(MAGIC.len());
                if rest[..seen] != MAGIC[..seen] {
                    return Err(FrameError::Magic);
                }
                if seen < MAGIC.len() {
                    return Ok(None);
                }
                (self.has_magic, self.begin) = (true, self.begin + MAGIC.len());
                &rest[MAGIC.len()..]
            }
        };
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || length > self.frame_bytes_max {
            return Err(FrameError::Length(length as u64));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        self.begin += LENGTH_BYTES + length;
        Frame::read(frame[0], &frame[1..]).map(Some)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

/// What each side says before its first frame.
pub fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
}
