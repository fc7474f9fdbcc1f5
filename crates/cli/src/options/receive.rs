//! What `rtscope receive` was asked to do, and where a recording goes besides.

use std::path::PathBuf;

use event::{Error, ErrorKind, Result};
use relay::{PORT, To, Token};

use super::words::parse_size;
use crate::flags::{Receive, RecordTo};

/// What may wait for another host where nothing else is said, and at least: a packet.
const SPOOL_DEFAULT_BYTES: u64 = 256 << 20;
const SPOOL_MIN_BYTES: u64 = 4 << 20;

/// Where a recording goes besides.
///
/// # Errors
/// For what is no address or no size; when the token cannot be read.
pub fn to(typed: &RecordTo) -> Result<Option<To>> {
    let Some(address) = &typed.to else {
        let unused = [
            typed.token_file.as_ref().map(|_| "--token-file"),
            typed.spool.as_ref().map(|_| "--spool"),
        ];
        return match unused.into_iter().flatten().next() {
            None => Ok(None),
            Some(flag) => Err(
                Error::new(ErrorKind::InvalidInput, "nothing goes to another host")
                    .found(format!("{flag} without --to"))
                    .fix("add --to HOST, or leave it away"),
            ),
        };
    };
    let Some(file) = &typed.token_file else {
        return Err(
            Error::new(ErrorKind::InvalidInput, "no token for the other host")
                .found(format!("--to {address}"))
                .fix("--token-file FILE, a copy of the file that rtscope receive has"),
        );
    };
    let spool_bytes = match &typed.spool {
        Some(text) => parse_size("--spool", text)?,
        None => SPOOL_DEFAULT_BYTES,
    };
    if spool_bytes < SPOOL_MIN_BYTES {
        return Err(
            Error::new(ErrorKind::InvalidInput, "the spool is too small")
                .found(format!("{spool_bytes} bytes"))
                .fix("give --spool 4M or more"),
        );
    }
    To::new(address, Token::read(file)?, spool_bytes).map(Some)
}

/// A receiver, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Where it listens.
    pub listen: String,
    /// The folder of the traces.
    pub output: PathBuf,
    /// The file of the token.
    pub token_file: PathBuf,
}

impl ReceiveOptions {
    /// From what was typed.
    pub fn new(typed: &Receive) -> ReceiveOptions {
        let listen = typed.listen.clone();
        let output = typed.output.clone();
        ReceiveOptions {
            listen: listen.unwrap_or_else(|| format!("127.0.0.1:{PORT}")),
            output: output.unwrap_or_else(|| "rtscope-received".into()),
            token_file: typed.token_file.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_needs_an_address_a_token_and_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        Token::read_or_make(&file).expect("made");
        let check = |to: &str, token: bool, spool: Option<&str>, expect: Option<&str>| {
            let typed = RecordTo {
                to: Some(to.to_owned()),
                token_file: token.then(|| file.clone()),
                spool: spool.map(str::to_owned),
            };
            let error = super::to(&typed).err();
            if let Some(error) = &error {
                assert!(error.value_found().is_some() && error.fixed_by().is_some());
            }
            let what = error.as_ref().map(Error::what);
            assert_eq!(what, expect, "{to}");
        };
        check("logger", true, None, None);
        check("logger:1", true, Some("4M"), None);
        check(
            "logger",
            true,
            Some("4095K"),
            Some("the spool is too small"),
        );
        check("logger", false, None, Some("no token for the other host"));
        check(":1", true, None, Some("not an address to stream to"));
        let spool_alone = RecordTo {
            spool: Some("4M".to_owned()),
            ..RecordTo::default()
        };
        let error = super::to(&spool_alone).expect_err("without a host");
        assert_eq!(error.value_found(), Some("--spool without --to"));
        assert!(super::to(&RecordTo::default()).expect("nothing").is_none());
    }
}
