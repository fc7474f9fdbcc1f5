//! The sender's side of a conversation, without a socket: bytes of the receiver in, bytes for it
//! out.
//!
//! Of each trace it sends rounds: how far the trace is known to be whole, then the metadata as they
//! are now, then all packets that are there, and behind these that instant. So whoever reads over
//! there finds, for each packet, metadata that describe it, and before each instant all that
//! happened until then.

mod files;

use std::sync::Arc;

use event::{Error, ErrorKind, Result};

use crate::VERSION;
use crate::auth::{Agreed, Nonce, Side, Token, is_same, random};
use crate::book::{Book, End};
use crate::frame::{Decoder, Frame, begin};
use files::{Files, out_of_order};

/// Who talks.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub token: Token,
    pub host: String,
    pub recording: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The receiver did not say anything yet.
    Waiting,
    /// It is to show that it has the token.
    Greeted,
    /// It has.
    Known,
}

/// One conversation of a sender.
#[derive(Debug)]
pub struct Courier {
    book: Arc<Book>,
    sender: Sender,
    decoder: Decoder,
    phase: Phase,
    nonces: (Nonce, Nonce),
    /// What was sent.
    files: Files,
    /// What is to be said besides.
    out: Vec<u8>,
}

impl Courier {
    /// # Errors
    /// When nothing random can be had.
    pub(crate) fn new(book: Arc<Book>, sender: Sender) -> Result<Courier> {
        let mut out = Vec::new();
        begin(&mut out);
        Ok(Courier {
            files: Files::new(Arc::clone(&book)),
            book,
            sender,
            decoder: Decoder::new(),
            phase: Phase::Waiting,
            nonces: ([0; 16], random()?),
            out,
        })
    }

    /// Whether the receiver has shown that it has the token.
    pub fn is_known(&self) -> bool {
        self.phase == Phase::Known
    }

    /// Asks whether somebody is there.
    pub fn ping(&mut self) {
        if self.is_known() {
            Frame::Ping.write(&mut self.out);
        }
    }

    /// Takes bytes that the receiver sent.
    ///
    /// # Errors
    /// Why the conversation is over.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.decoder.push(bytes);
        loop {
            let frame = self.decoder.next_frame().map_err(|error| {
                let what = "the receiver says what no receiver says";
                Error::new(ErrorKind::Corrupt, what)
                    .found(error.to_string())
                    .fix("name the address of rtscope receive of this version by --to")
            })?;
            match frame {
                Some(frame) => self.frame(frame)?,
                None => return Ok(()),
            }
        }
    }

    fn frame(&mut self, frame: Frame) -> Result<()> {
        if let Frame::Refused { reason, text } = frame {
            let kind = match reason.passes() {
                true => ErrorKind::Interrupted,
                false => ErrorKind::PermissionDenied,
            };
            return Err(Error::new(kind, "the receiver refuses this recording")
                .found(text)
                .fix("see what rtscope receive says there"));
        }
        match (self.phase, frame) {
            (Phase::Waiting, Frame::Welcome { version, nonce }) => self.greet(version, nonce),
            (Phase::Greeted, Frame::Known { proof }) => {
                let expect = self.sender.token.proof(Side::Receiver, &self.agreed());
                if !is_same(&proof, &expect) {
                    return Err(Error::new(
                        ErrorKind::PermissionDenied,
                        "the receiver does not have our token",
                    )
                    .found("its proof is wrong")
                    .fix("copy the token file of the receiving host, or name the right --to"));
                }
                self.decoder.trust();
                self.phase = Phase::Known;
                Ok(())
            }
            (Phase::Known, frame) => self.answer(&frame),
            (_, frame) => Err(out_of_order(&frame)),
        }
    }

    fn agreed(&self) -> Agreed<'_> {
        Agreed {
            receiver: &self.nonces.0,
            sender: &self.nonces.1,
            recording: &self.sender.recording,
            host: &self.sender.host,
        }
    }

    fn greet(&mut self, version: u16, nonce: Nonce) -> Result<()> {
        if version != VERSION {
            let what = "the receiver speaks another version of the protocol";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!("version {version}, ours is {VERSION}"))
                .fix("run the same version of rtscope on both hosts"));
        }
        self.nonces.0 = nonce;
        let proof = self.sender.token.proof(Side::Sender, &self.agreed());
        let hello = Frame::Hello {
            version: VERSION,
            nonce: self.nonces.1,
            recording: self.sender.recording,
            host: self.sender.host.clone(),
            proof,
        };
        hello.write(&mut self.out);
        self.phase = Phase::Greeted;
        Ok(())
    }

    /// Of a receiver that has the token.
    fn answer(&mut self, frame: &Frame) -> Result<()> {
        match *frame {
            Frame::Ready { archive } => {
                if let Some(sent) = self.files.archives.get_mut(&archive) {
                    sent.is_ready = true;
                }
                Ok(())
            }
            Frame::Have { file, size_bytes } => self.files.has(file, size_bytes, true),
            Frame::Ack { file, size_bytes } => self.files.has(file, size_bytes, false),
            Frame::Finished { archive } => {
                self.files.archives.remove(&archive);
                // Removed outside of the book's lock.
                drop(self.book.is_over(archive));
                Ok(())
            }
            Frame::Pong => Ok(()),
            ref frame => Err(out_of_order(frame)),
        }
    }

    /// What is to be sent now; nothing when it waits for the receiver, or for its recorder.
    ///
    /// # Errors
    /// What the operating system says of the spool's files.
    pub fn give(&mut self, out: &mut Vec<u8>) -> Result<()> {
        out.append(&mut self.out);
        if !self.is_known() {
            return Ok(());
        }
        let numbers: Vec<u32> = self.book.lock().archives.keys().copied().collect();
        for number in numbers {
            if !self.files.has_room() {
                break;
            }
            self.give_archive(number, out)?;
        }
        Ok(())
    }

    fn give_archive(&mut self, number: u32, out: &mut Vec<u8>) -> Result<()> {
        let (name, end) = match self.book.lock().archives.get(&number) {
            Some(archive) => (archive.name.clone(), archive.end),
            None => return Ok(()),
        };
        let sent = self.files.archives.entry(number).or_default();
        if !sent.is_announced {
            sent.is_announced = true;
            let archive = number;
            Frame::Archive { archive, name }.write(out);
        }
        if !sent.is_ready || sent.is_finished {
            return Ok(());
        }
        match end {
            Some(End::Forgotten) => {
                sent.is_finished = true;
                Frame::Forget { archive: number }.write(out);
                return Ok(());
            }
            Some(End::Gone) => (),
            _ => {
                match self.files.give_files(number, end.is_some(), out) {
                    // Who wrote it took it away, or somebody else did.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        self.book.is_gone(number);
                        return Ok(());
                    }
                    given => given?,
                }
            }
        }
        let Some(sent) = self.files.archives.get_mut(&number) else {
            return Ok(());
        };
        let (is_whole, events, lost) = match end {
            Some(End::Whole { events, lost }) => (true, events, lost),
            Some(End::Cut { events, lost }) => (false, events, lost),
            Some(End::Gone) => (false, 0, 0),
            Some(End::Forgotten) | None => return Ok(()),
        };
        if sent.has_all || end == Some(End::Gone) {
            sent.is_finished = true;
            let finish = Frame::Finish {
                archive: number,
                is_whole,
                events,
                lost,
            };
            finish.write(out);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "courier_tests.rs"]
mod tests;
