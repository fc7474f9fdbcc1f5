//! The token: read from a file, never sent. Each side shows that it has it by a keyed hash
//! (HMAC-SHA256, RFC 2104) of what both said at random.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use event::{Error, ErrorKind, Result};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A shorter token could be guessed; a longer one is a mistake.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: u64 = 4096;

/// What one side said at random.
pub type Nonce = [u8; 16];
/// That a side has the token.
pub type Proof = [u8; 32];

/// What both sides have, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

/// Never shown.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token in a file that only its owner may read; spaces around it do not count.
    ///
    /// # Errors
    /// When the file cannot be read, others may read it, or it holds too little or too much.
    pub fn read(path: &Path) -> Result<Token> {
        let shown = path.display();
        let failed = |cause| {
            Error::io(format!("cannot read the token in {shown}"), cause).fix(format!(
                "rtscope receive --token-file {shown} makes one on the receiving host; copy it"
            ))
        };
        let file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        let mode = facts.mode() & 0o7777;
        if mode & 0o077 != 0 {
            let what = format!("others may read the token in {shown}");
            return Err(Error::new(ErrorKind::PermissionDenied, what)
                .found(format!("mode {mode:04o}"))
                .fix(format!("chmod 600 {shown}")));
        }
        let mut bytes = Vec::new();
        let read = file.take(TOKEN_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
        Token::new(bytes.trim_ascii()).ok_or_else(|| {
            let what = format!("what is in {shown} is no token");
            Error::new(ErrorKind::InvalidInput, what)
                .found(format!("{} bytes", bytes.trim_ascii().len()))
                .fix(format!(
                    "remove it, and let rtscope receive --token-file {shown} make one"
                ))
        })
    }

    /// Those bytes; none when they are too few or too many.
    pub fn new(bytes: &[u8]) -> Option<Token> {
        let most = TOKEN_BYTES_MAX as usize;
        let is_token = (TOKEN_BYTES_MIN..=most).contains(&bytes.len());
        is_token.then(|| Token(bytes.to_vec()))
    }

    /// The token in a file, which is made when it is not there. Whether it was made.
    ///
    /// # Errors
    /// As [`Token::read`]; when the file cannot be made.
    pub fn read_or_make(path: &Path) -> Result<(Token, bool)> {
        if fs::symlink_metadata(path).is_ok() {
            return Token::read(path).map(|token| (token, false));
        }
        let failed = |cause| {
            Error::io(format!("cannot make the token {}", path.display()), cause)
                .fix("name another file by --token-file")
        };
        let word: [u8; 32] = random()?;
        let word: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let written = file.and_then(|mut file| writeln!(file, "{word}"));
        written.map_err(failed)?;
        Token::read(path).map(|token| (token, true))
    }

    /// That the `side` of a conversation has the token: a hash of it and of all that was agreed.
    pub(crate) fn proof(&self, side: Side, agreed: &Agreed<'_>) -> Proof {
        let side: &[u8] = match side {
            Side::Sender => b"rtscope sender",
            Side::Receiver => b"rtscope receiver",
        };
        let host_bytes = (agreed.host.len() as u64).to_le_bytes();
        hmac(
            &self.0,
            &[
                side,
                agreed.receiver,
                agreed.sender,
                agreed.recording,
                &host_bytes,
                agreed.host.as_bytes(),
            ],
        )
    }
}

/// Who shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// What both sides said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed<'a> {
    pub receiver: &'a Nonce,
    pub sender: &'a Nonce,
    pub recording: &'a [u8; 16],
    pub host: &'a str,
}

/// Whether two proofs are the same, in a time that tells nothing of where they differ.
pub(crate) fn is_same(one: &Proof, other: &Proof) -> bool {
    one.ct_eq(other).into()
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|cause| Error::io("cannot read /dev/urandom", cause))?;
    Ok(bytes)
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let keyed = Hmac::<Sha256>::new_from_slice(key);
    let mut keyed = keyed.expect("a keyed hash takes keys of every length");
    parts.iter().for_each(|part| keyed.update(part));
    keyed.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_keyed_hash_is_that_of_rfc_4231() {
        let check = |key: &[u8], data: &[&[u8]], expect: &str| {
            let hash = hmac(key, data);
            let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(text, expect);
        };
        check(
            &[0x0b; 20],
            &[b"Hi There"],
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        );
        check(
            b"Jefe",
            &[b"what do ya want ", b"for nothing?"],
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            &[0xaa; 131],
            &[b"Test Using Larger Than Block-Size Key - Hash Key First"],
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
    }

    #[test]
    fn a_proof_is_of_one_side_and_of_all_that_was_said() {
        let token = Token::new(b"0123456789abcdef").expect("a token");
        let agreed = Agreed {
            receiver: &[1; 16],
            sender: &[2; 16],
            recording: &[3; 16],
            host: "host",
        };
        let proof = token.proof(Side::Sender, &agreed);
        assert!(is_same(&proof, &token.proof(Side::Sender, &agreed)));
        let others = [
            token.proof(Side::Receiver, &agreed),
            token.proof(
                Side::Sender,
                &Agreed {
                    receiver: &[9; 16],
                    ..agreed
                },
            ),
            token.proof(
                Side::Sender,
                &Agreed {
                    sender: &[9; 16],
                    ..agreed
                },
            ),
            token.proof(
                Side::Sender,
                &Agreed {
                    recording: &[9; 16],
                    ..agreed
                },
            ),
            token.proof(
                Side::Sender,
                &Agreed {
                    host: "hosu",
                    ..agreed
                },
            ),
            Token::new(b"0123456789abcdeg")
                .expect("a token")
                .proof(Side::Sender, &agreed),
        ];
        for other in others {
            assert!(!is_same(&proof, &other));
        }
    }

    #[test]
    fn a_token_is_in_a_file_of_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let (made, is_new) = Token::read_or_make(&path).expect("made");
        assert!(is_new && made.0.len() == 64);
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (read, is_new) = Token::read_or_make(&path).expect("read");
        assert!(!is_new && read == made && format!("{read:?}") == "Token");
        let check = |bytes: &[u8], mode: u32, expect: Option<ErrorKind>| {
            fs::write(&path, bytes).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            let kind = Token::read(&path).err();
            if let Some(error) = &kind {
                assert!(error.value_found().is_some() && error.fixed_by().is_some());
            }
            assert_eq!(kind.map(|error| error.kind()), expect, "{mode:o}");
        };
        check(b"  sixteen bytes ok\n", 0o600, None);
        check(
            b"sixteen bytes ok\n",
            0o640,
            Some(ErrorKind::PermissionDenied),
        );
        check(
            b"sixteen bytes ok\n",
            0o604,
            Some(ErrorKind::PermissionDenied),
        );
        check(
            b"fifteen bytes k\n\n\n",
            0o600,
            Some(ErrorKind::InvalidInput),
        );
        check(&[b'x'; 4097], 0o600, Some(ErrorKind::InvalidInput));
        fs::remove_file(&path).expect("removed");
        let error = Token::read(&path).expect_err("not there");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
