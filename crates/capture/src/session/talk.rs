//! What is asked of a session, and its answers: a line of JSON each, over its socket.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use event::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::place::{Place, socket};
use super::status::{ArchiveFacts, Refusal, SessionStatus};
use super::{SessionName, Sessions};

/// No request is longer, and no answer.
const REQUEST_BYTES_MAX: u64 = 4096;
const REPLY_BYTES_MAX: u64 = 64 << 20;
/// Who connects and says nothing is not waited for.
const SILENCE_MAX: StdDuration = StdDuration::from_secs(5);
/// More are not answered at the same time.
const TALKS_MAX: usize = 64;

/// What is asked of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// How it is.
    Status,
    /// End the present archive, and go on in another.
    Rotate,
    /// Write what the rings hold.
    Snapshot,
    /// Forget what was recorded since the last archive, or what the rings hold.
    Clear,
    /// Write the state of the machine into the present archive.
    Dump,
    /// Record what these do too, in another archive.
    Track(Vec<String>),
    /// Record no more what these do, in another archive; without a word: of all of them.
    Untrack(Vec<String>),
    /// End.
    Stop,
}

impl Request {
    /// So long its answer may take.
    fn patience(&self) -> StdDuration {
        StdDuration::from_secs(match self {
            Request::Status => 20,
            Request::Rotate | Request::Snapshot | Request::Clear | Request::Dump => 120,
            Request::Track(_) | Request::Untrack(_) => 120,
            Request::Stop => 900,
        })
    }
}

/// A session's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// How it is then.
    pub status: SessionStatus,
    /// The archive or snapshot that was written.
    pub wrote: Option<ArchiveFacts>,
    /// Why not.
    pub refused: Option<Refusal>,
}

/// A request with whoever waits for its answer.
pub(super) struct Asked {
    pub request: Request,
    pub reply: Sender<Reply>,
}

/// Asks the session `name` of `sessions`.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is none of that name; [`ErrorKind::Interrupted`] when its
/// process is gone, or goes before it has answered; when it does not answer; as
/// [`Sessions::is_there`].
pub fn ask(sessions: &Sessions, name: &SessionName, request: &Request) -> Result<Reply> {
    let is_known = sessions.is_there()?;
    let Some(facts) = sessions.facts(name).filter(|_| is_known) else {
        return Err(unknown(sessions, name));
    };
    let gone = || {
        if sessions.facts(name).is_none() {
            // It was stopped while we asked.
            return unknown(sessions, name);
        }
        let what = format!("the session {name} has died");
        Error::new(ErrorKind::Interrupted, what)
            .found(format!("process {} does not answer", facts.pid))
            .fix(format!("rtscope record stop {name} finishes its archive"))
    };
    let directory = File::open(sessions.folder(name)).map_err(|_| gone())?;
    let mut stream = UnixStream::connect(socket(&directory)).map_err(|_| gone())?;
    let refused = |cause| Error::io(format!("cannot talk to the session {name}"), cause);
    let set = stream.set_read_timeout(Some(request.patience()));
    set.map_err(refused)?;
    let mut line = serde_json::to_string(request).unwrap_or_default();
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(|_| gone())?;
    let mut answer = String::new();
    let read = BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut answer);
    match read {
        Err(cause) if is_timeout(&cause) => {
            let what = format!("the session {name} does not answer");
            let (seconds, pid) = (request.patience().as_secs(), facts.pid);
            return Err(Error::new(ErrorKind::Io, what)
                .found(format!("process {pid} said nothing for {seconds} s"))
                .fix(format!(
                    "is it stopped? kill -CONT {pid}; or kill -9 {pid}, and rtscope record stop \
                     {name}"
                )));
        }
        Err(_) | Ok(0) => return Err(gone()),
        Ok(_) => (),
    }
    serde_json::from_str(&answer).map_err(|cause| {
        let what = format!("the session {name} answers in words that are not known here");
        Error::new(ErrorKind::Corrupt, what)
            .found(cause.to_string())
            .fix("ask it by the version of rtscope that started it")
    })
}

fn is_timeout(cause: &std::io::Error) -> bool {
    use std::io::ErrorKind as Io;
    matches!(cause.kind(), Io::WouldBlock | Io::TimedOut)
}

fn unknown(sessions: &Sessions, name: &SessionName) -> Error {
    let names: Vec<String> = sessions.names().iter().map(ToString::to_string).collect();
    let found = match &names[..] {
        [] => "no session is running".to_owned(),
        names => format!("these are: {}", names.join(", ")),
    };
    Error::new(
        ErrorKind::NotFound,
        format!("there is no session called {name}"),
    )
    .found(found)
    .fix(format!(
        "rtscope record start {name}; root's sessions need sudo"
    ))
}

/// Answers on the socket of a session.
pub(super) struct Listener {
    inner: UnixListener,
}

impl Listener {
    /// Listens in the folder of the session.
    pub fn bind(place: &Place) -> Result<Listener> {
        let failed = |cause| Error::io("cannot listen for requests to the session", cause);
        let path = place.socket();
        // The lock is ours: what is there, a dead session left.
        let _ = std::fs::remove_file(&path);
        let inner = UnixListener::bind(&path).map_err(failed)?;
        Ok(Listener { inner })
    }

    /// Takes requests to `asked`, each from a thread of its own, for as long as the process lives.
    pub fn answer(self, asked: Sender<Asked>) -> Talks {
        let talks = Talks::default();
        let all = talks.clone();
        std::thread::spawn(move || {
            for stream in self.inner.incoming().flatten() {
                if !talks.begin() {
                    continue;
                }
                let (asked, talks) = (asked.clone(), talks.clone());
                std::thread::spawn(move || {
                    // Who goes away meanwhile needs no answer.
                    let _ = talk(stream, &asked);
                    talks.end();
                });
            }
        });
        all
    }
}

/// How many are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Talks(Arc<(Mutex<usize>, Condvar)>);

impl Talks {
    fn begin(&self) -> bool {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = *count < TALKS_MAX;
        *count += usize::from(is_room);
        is_room
    }

    fn end(&self) {
        let mut count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        self.0.1.notify_all();
    }

    /// Waits until all have their answers, within reason.
    pub fn wait(&self) {
        let count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .1
            .wait_timeout_while(count, 2 * SILENCE_MAX, |count| *count > 0);
        drop(waited);
    }
}

/// One request and its answer.
fn talk(stream: UnixStream, asked: &Sender<Asked>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line).map_err(std::io::Error::other)?;
    let (reply, replied) = channel();
    let sent = asked.send(Asked { request, reply });
    sent.map_err(|_| std::io::ErrorKind::BrokenPipe)?;
    let reply = replied.recv().map_err(|_| std::io::ErrorKind::BrokenPipe)?;
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    (&stream).write_all(text.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Both)
}
