//! Requests to an object store or a collector of metrics, by the program `curl`: its TLS,
//! certificates and proxies are those that the distribution keeps up to date.
//!
//! A signed address is a secret for as long as it holds: it goes to curl by stdin, never by its
//! arguments, which every user can read.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use event::{Error, ErrorKind, Result};
use rustix::fs::{MemfdFlags, memfd_create};

/// Of an answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// How long a server may keep silent before a request is given up.
const SILENT_S: u32 = 30;
/// A server that sends little by little is given up too; its address holds as long.
const WHOLE_S: u32 = 15 * 60;
/// How long a server that is busy is left alone before it is asked again, each time.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// Whether a server says of itself that it may answer another time.
fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its HTTP status.
    pub status: u16,
    /// What came with it; text that is not UTF-8 is replaced.
    pub body: String,
}

/// Fetches what is at this address.
///
/// # Errors
/// When no answer comes, or there is no `curl`.
pub(crate) fn get(address: &str) -> Result<Answer> {
    unless_busy(|| run(address, "", None))
}

/// Posts JSON there, with a token if the server wants one.
///
/// # Errors
/// As [`get`].
pub(crate) fn post(address: &str, json: &str, token: Option<&str>) -> Result<Answer> {
    let body = kept("rtscope-post", json.as_bytes())?;
    let bearer = token.map(|token| format!("header = \"Authorization: Bearer {token}\"\n"));
    let more = format!(
        "data-binary = \"@/proc/self/fd/{}\"\nheader = \"Content-Type: application/json\"\n{}",
        body.as_raw_fd(),
        bearer.unwrap_or_default()
    );
    unless_busy(|| run(address, &more, Some(&body)))
}

/// Asks again while the server is busy. Not by curl's own means: it would print what it was told
/// before as well.
fn unless_busy(mut ask: impl FnMut() -> Result<Answer>) -> Result<Answer> {
    for pause in PAUSES {
        let answer = ask()?;
        if !is_busy(answer.status) {
            return Ok(answer);
        }
        std::thread::sleep(pause);
    }
    ask()
}

/// Puts these bytes there.
///
/// # Errors
/// As [`get`].
pub(crate) fn put(address: &str, bytes: &[u8]) -> Result<Answer> {
    let body = kept("rtscope-put", bytes)?;
    let upload = format!("upload-file = \"/proc/self/fd/{}\"\n", body.as_raw_fd());
    // Each curl opens it anew, at its begin.
    unless_busy(|| run(address, &upload, Some(&body)))
}

/// Bytes as a file for curl, which is on no disk.
fn kept(name: &str, bytes: &[u8]) -> Result<File> {
    let failed = |cause: std::io::Error| Error::io("cannot keep a file for curl", cause);
    // No `CLOEXEC`: curl reads it. A file has a length, which object stores ask for before the
    // bytes.
    let body = memfd_create(name, MemfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut body = File::from(body);
    body.write_all(bytes).map_err(failed)?;
    Ok(body)
}

/// `_body` stays open until curl has read it.
fn run(address: &str, more: &str, _body: Option<&File>) -> Result<Answer> {
    let config = format!(
        "url = \"{address}\"\n{more}silent\nshow-error\ngloboff\nproto = \"=http,https\"\n\
         connect-timeout = {SILENT_S}\nspeed-limit = 1\nspeed-time = {SILENT_S}\n\
         max-time = {WHOLE_S}\nmax-filesize = {ANSWER_BYTES_MAX}\n\
         write-out = \"\\n%{{http_code}}\"\n"
    );
    // A service's capabilities are no business of curl's.
    rustix::thread::clear_ambient_capability_set().ok();
    let started = Command::new("curl")
        // Not the user's own settings, which may print what is not the answer.
        .args(["--disable", "--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|cause| {
        Error::io("cannot start curl, which makes the requests", cause).fix("apt install curl")
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // Where curl has ended already its exit code says why.
        stdin.write_all(config.as_bytes()).ok();
    }
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(ANSWER_BYTES_MAX).read_to_end(&mut stdout).ok();
    }
    let output = child.wait_with_output();
    let output = output.map_err(|cause| Error::io("cannot wait for curl", cause))?;
    answer(&Output { stdout, ..output })
}

/// What curl printed: the body, and the status in a line of its own.
fn answer(output: &Output) -> Result<Answer> {
    let silent = |found: String| {
        let fix = "mend the way there; what is in the store waits for it";
        let error = Error::new(ErrorKind::Io, "the server gives no answer");
        Err(error.found(found).fix(fix))
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return silent(said.trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((body, status)) = text.rsplit_once('\n') else {
        return silent("curl printed nothing".to_owned());
    };
    match status.parse() {
        Ok(status) => Ok(Answer {
            status,
            body: body.to_owned(),
        }),
        Err(_) => silent(format!("a status '{status}'")),
    }
}
