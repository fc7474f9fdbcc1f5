//! The receiver's side of a conversation, without a socket: bytes of a sender in, bytes for it out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use event::{Error, ErrorKind, Result};

use crate::VERSION;
use crate::auth::{Agreed, Nonce, Proof, Side, Token, is_same, random};
use crate::frame::{Decoder, Frame, Reason, begin};
use crate::name::{self, is_name};
use crate::store::{Found, Incoming, Recording, RecordingId, Store, lock, say_until};
use crate::told::Told;

/// A connection has no more traces and no more files.
const ARCHIVES_MAX: usize = 4096;
const FILES_MAX: usize = 65_536;

/// One conversation with a sender.
#[derive(Debug)]
pub struct Peer {
    store: Arc<Store>,
    token: Token,
    nonce: Nonce,
    decoder: Decoder,
    known: Option<Known>,
    frames: u64,
    /// What is to be told to whoever runs the receiver.
    told: Vec<Told>,
}

/// A sender that has the token.
#[derive(Debug)]
struct Known {
    id: RecordingId,
    recording: Arc<Mutex<Recording>>,
    generation: u64,
    archives: HashMap<u32, Archive>,
    files: HashMap<u32, (u32, Incoming)>,
}

#[derive(Debug)]
struct Archive {
    name: String,
    /// Where it is written; none when it is complete.
    staged: Option<PathBuf>,
    bytes: u64,
}

/// Why a conversation ends: what the sender is told, and what the receiver's user is.
#[derive(Debug)]
pub struct Refusal {
    /// For the sender's program.
    pub reason: Reason,
    /// For people.
    pub text: String,
}

impl Refusal {
    fn new(reason: Reason, text: impl Into<String>) -> Refusal {
        let text = text.into();
        Refusal { reason, text }
    }
}

/// What the operating system refused.
impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let reason = match error.kind() {
            ErrorKind::StorageFull => Reason::Full,
            ErrorKind::AlreadyExists => Reason::Name,
            ErrorKind::InvalidInput => Reason::Order,
            _ => Reason::Io,
        };
        let what = match reason {
            Reason::Full => "the receiver's disk is full".to_owned(),
            _ => error.to_string(),
        };
        Refusal::new(reason, what)
    }
}

impl Peer {
    /// A conversation that writes into `store`; says its first word.
    ///
    /// # Errors
    /// When nothing random can be had.
    pub fn new(store: Arc<Store>, token: Token, out: &mut Vec<u8>) -> Result<Peer> {
        let nonce = random()?;
        begin(out);
        let version = VERSION;
        Frame::Welcome { version, nonce }.write(out);
        Ok(Peer {
            store,
            token,
            nonce,
            decoder: Decoder::new(),
            known: None,
            frames: 0,
            told: Vec::new(),
        })
    }

    /// A conversation with a sender that has shown that it has the token: for whoever tries what
    /// such a sender can do.
    ///
    /// # Errors
    /// When nothing random can be had.
    pub fn trusting(store: Arc<Store>, recording: RecordingId, host: &str) -> Result<Peer> {
        let nothing = Token::new(&random::<32>()?)
            .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a token that is too short"))?;
        let mut peer = Peer::new(store, nothing, &mut Vec::new())?;
        peer.welcome(recording, host.to_owned(), Box::new(|| ()));
        Ok(peer)
    }

    /// Whether the sender has shown that it has the token.
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether it has begun to say something that it did not end.
    pub fn is_within(&self) -> bool {
        self.decoder.is_within()
    }

    /// How many frames it has said.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// What happened since this was asked last.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// Takes bytes of the sender; answers are added to `out`. `hang_up` ends this connection when
    /// the same recording comes on another.
    ///
    /// # Errors
    /// Why the conversation is over; the sender is told in `out`.
    pub fn take(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        hang_up: &dyn Fn() -> Box<dyn FnOnce() + Send>,
    ) -> std::result::Result<(), Refusal> {
        self.decoder.push(bytes);
        let mut take = || -> std::result::Result<(), Refusal> {
            loop {
                let frame = self.decoder.next_frame();
                match frame.map_err(|error| Refusal::new(Reason::Order, error.to_string()))? {
                    None => return Ok(()),
                    Some(frame) => self.frame(frame, out, hang_up)?,
                }
            }
        };
        take().inspect_err(|refusal| {
            let refused = Frame::Refused {
                reason: refusal.reason,
                text: refusal.text.clone(),
            };
            refused.write(out);
        })
    }

    fn frame(
        &mut self,
        frame: Frame,
        out: &mut Vec<u8>,
        hang_up: &dyn Fn() -> Box<dyn FnOnce() + Send>,
    ) -> std::result::Result<(), Refusal> {
        self.frames += 1;
        if let Some(known) = &mut self.known {
            return known.frame(&self.store, frame, out, &mut self.told);
        }
        let Frame::Hello {
            version,
            nonce,
            recording,
            host,
            proof,
        } = frame
        else {
            return Err(Refusal::new(Reason::Order, "no greeting"));
        };
        if version != VERSION {
            let text = format!("protocol version {version}, ours is {VERSION}");
            return Err(Refusal::new(Reason::Version, text));
        }
        let proof = self.check(&nonce, &recording, &host, &proof)?;
        if !self.welcome(recording, host, hang_up()) {
            return Err(Refusal::new(Reason::Full, "too many recordings"));
        }
        Frame::Known { proof }.write(out);
        Ok(())
    }

    /// Takes in a sender that has the token; false when there are too many.
    fn welcome(
        &mut self,
        recording: RecordingId,
        host: String,
        hang_up: Box<dyn FnOnce() + Send>,
    ) -> bool {
        let joined = self.store.join(recording, &host, hang_up);
        let Some((joined, generation)) = joined else {
            return false;
        };
        self.known = Some(Known {
            id: recording,
            recording: joined,
            generation,
            archives: HashMap::new(),
            files: HashMap::new(),
        });
        self.decoder.trust();
        // One that comes back was told of.
        self.told
            .extend((generation == 1).then_some(Told::Joined { host }));
        true
    }

    /// Whether a sender has the token; gives our proof.
    fn check(
        &self,
        nonce: &Nonce,
        recording: &RecordingId,
        host: &str,
        proof: &Proof,
    ) -> std::result::Result<Proof, Refusal> {
        let agreed = Agreed {
            receiver: &self.nonce,
            sender: nonce,
            recording,
            host,
        };
        if !is_same(proof, &self.token.proof(Side::Sender, &agreed)) {
            return Err(Refusal::new(Reason::Token, "the token is another"));
        }
        match is_name(host) {
            true => Ok(self.token.proof(Side::Receiver, &agreed)),
            false => Err(Refusal::new(Reason::Name, "no name of a host")),
        }
    }
}

/// The connection ends: its recording may come back on another.
impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(known) = &self.known {
            self.store.leave(&known.recording, known.generation);
        }
    }
}

impl Known {
    fn frame(
        &mut self,
        store: &Store,
        frame: Frame,
        out: &mut Vec<u8>,
        told: &mut Vec<Told>,
    ) -> std::result::Result<(), Refusal> {
        // Nobody else writes meanwhile, and not we once another connection has come.
        let recording = Arc::clone(&self.recording);
        let mut recording = lock(&recording);
        if recording.generation != self.generation {
            let text = "the recording came on another connection";
            return Err(Refusal::new(Reason::Replaced, text));
        }
        match frame {
            Frame::Archive { archive, name } => {
                self.begin(store, &mut recording, (archive, name), out)
            }
            Frame::Open {
                file,
                archive,
                is_whole,
                path,
            } => self.open((file, archive), is_whole, &path, out),
            Frame::Data {
                file,
                offset,
                bytes,
            } => self.data(file, offset, &bytes, out),
            Frame::Put { file, size_bytes } => self.put(file, size_bytes, out),
            Frame::Until { archive, time_ns } => Ok(say_until(self.staged(archive)?, time_ns)?),
            Frame::Finish {
                archive,
                is_whole,
                events,
                lost,
            } => {
                self.staged(archive)?;
                let ended = self.end(archive)?;
                let path = store.finish(&mut recording, &ended.name, is_whole)?;
                told.push(Told::Ended {
                    path,
                    is_whole,
                    events,
                    lost,
                    bytes: ended.bytes,
                });
                Frame::Finished { archive }.write(out);
                Ok(())
            }
            Frame::Forget { archive } => {
                self.staged(archive)?;
                let ended = self.end(archive)?;
                store.forget(&mut recording, &ended.name)?;
                Frame::Finished { archive }.write(out);
                Ok(())
            }
            Frame::Ping => {
                Frame::Pong.write(out);
                Ok(())
            }
            _ => Err(Refusal::new(Reason::Order, "a word that no sender says")),
        }
    }

    fn begin(
        &mut self,
        store: &Store,
        recording: &mut Recording,
        (archive, name): (u32, String),
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Refusal> {
        let is_new = !self.archives.contains_key(&archive)
            && self.archives.values().all(|other| other.name != name);
        if !is_name(&name) {
            return Err(Refusal::new(Reason::Name, "no name of a trace"));
        }
        if !is_new || self.archives.len() >= ARCHIVES_MAX {
            return Err(Refusal::new(Reason::Order, "a trace begins twice"));
        }
        let staged = match store.trace(&self.id, recording, &name)? {
            Found::Going(staged) => Some(staged),
            Found::Complete => None,
        };
        match staged {
            Some(_) => Frame::Ready { archive }.write(out),
            // Its sender did not hear it when it was said first.
            None => Frame::Finished { archive }.write(out),
        }
        let bytes = 0;
        let begun = Archive {
            name,
            staged,
            bytes,
        };
        self.archives.insert(archive, begun);
        Ok(())
    }

    fn open(
        &mut self,
        (file, archive): (u32, u32),
        is_whole: bool,
        path: &str,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Refusal> {
        let Some(below) = name::path(path) else {
            let text = format!(
                "no name of a file: {:?}",
                path.chars().take(40).collect::<String>()
            );
            return Err(Refusal::new(Reason::Name, text));
        };
        if self.files.contains_key(&file) || self.files.len() >= FILES_MAX {
            return Err(Refusal::new(
                Reason::Order,
                "a file begins twice, or too many do",
            ));
        }
        let incoming = Incoming::open(self.staged(archive)?, &below, is_whole)?;
        let size_bytes = incoming.size_bytes;
        self.files.insert(file, (archive, incoming));
        if !is_whole {
            Frame::Have { file, size_bytes }.write(out);
        }
        Ok(())
    }

    fn data(
        &mut self,
        file: u32,
        offset: u64,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Refusal> {
        let Some((archive, incoming)) = self.files.get_mut(&file) else {
            return Err(Refusal::new(Reason::Order, "bytes of no file"));
        };
        if offset != incoming.size_bytes {
            let text = format!("bytes at {offset} of a file of {}", incoming.size_bytes);
            return Err(Refusal::new(Reason::Order, text));
        }
        incoming.append(bytes)?;
        if let Some(archive) = self.archives.get_mut(archive) {
            archive.bytes += bytes.len() as u64;
        }
        if !incoming.is_whole() {
            let size_bytes = incoming.size_bytes;
            Frame::Ack { file, size_bytes }.write(out);
        }
        Ok(())
    }

    fn put(
        &mut self,
        file: u32,
        size_bytes: u64,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Refusal> {
        // A file that changes comes again under another number.
        let incoming = self.files.remove(&file).map(|(_, incoming)| incoming);
        let incoming = incoming.filter(|file| file.is_whole() && file.size_bytes == size_bytes);
        let Some(mut incoming) = incoming else {
            return Err(Refusal::new(Reason::Order, "the end of no whole file"));
        };
        incoming.put()?;
        Frame::Ack { file, size_bytes }.write(out);
        Ok(())
    }

    /// Where a trace is written.
    fn staged(&self, archive: u32) -> std::result::Result<&PathBuf, Refusal> {
        let archive = self.archives.get(&archive);
        let staged = archive.and_then(|archive| archive.staged.as_ref());
        staged.ok_or_else(|| Refusal::new(Reason::Order, "a trace that did not begin"))
    }

    fn end(&mut self, archive: u32) -> std::result::Result<Archive, Refusal> {
        self.files.retain(|_, (of, _)| *of != archive);
        let ended = self.archives.remove(&archive);
        ended.ok_or_else(|| Refusal::new(Reason::Order, "a trace that did not begin"))
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
