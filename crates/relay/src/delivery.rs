//! The sender: a thread that connects, sends, and connects again, until all is delivered.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as StdInstant};

use event::{Error, ErrorKind, Result};
use rustix::fs::{FallocateFlags, fallocate};

use crate::PORT;
use crate::auth::{Token, random};
use crate::book::{Book, Figures};
use crate::courier::{Courier, Sender};
use crate::name::host_name;
use crate::receiver::is_passing;
use crate::rest::{self, Rest};
use crate::route::Route;

/// So long a connection may take to come about, and a receiver to answer.
const CONNECT_MAX: Duration = Duration::from_secs(3);
const GREETING_MAX: Duration = Duration::from_secs(5);
/// Between two tries.
const RETRY_PERIOD: Duration = Duration::from_millis(400);
/// Between two looks at the spool, while nobody says anything.
const LOOK_PERIOD: Duration = Duration::from_millis(40);
/// How often the receiver is asked whether it is there, and how long it may be silent.
const PING_PERIOD: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;

/// Where recordings go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct To {
    address: String,
    token: Token,
    spool_bytes: u64,
}

impl To {
    /// To `HOST[:PORT]`; so many bytes may wait on this disk.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when that is no address.
    pub fn new(address: &str, token: Token, spool_bytes: u64) -> Result<To> {
        let after_brackets = address.rsplit_once(']').map_or(address, |(_, rest)| rest);
        let is_bare_v6 = !address.starts_with('[') && address.matches(':').count() > 1;
        let port = after_brackets.rsplit_once(':').map(|(_, port)| port);
        let host = address.strip_suffix(after_brackets).unwrap_or_default();
        let is_empty = after_brackets.starts_with(':') && host.is_empty();
        let is_bad = port.is_some_and(|port| !is_port(port));
        if is_bare_v6 || is_empty || is_bad || address.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "not an address to stream to")
                .found(format!("'{address}'"))
                .fix("--to HOST or --to HOST:PORT, as in --to logger:7423 or --to [fe80::1]:7423"));
        }
        Ok(To {
            address: match port {
                Some(_) => address.to_owned(),
                None => format!("{address}:{PORT}"),
            },
            token,
            spool_bytes,
        })
    }

    /// The address, with its port.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Traces that are delivered while they are written.
#[derive(Debug)]
pub struct Delivery {
    book: Arc<Book>,
    shared: Arc<Shared>,
    address: String,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// No trace comes any more.
    is_closing: AtomicBool,
    /// Nobody waits any more.
    is_given_up: AtomicBool,
    /// Why there is no connection.
    trouble: Mutex<Option<Error>>,
}

/// How a delivery ended.
#[derive(Debug)]
pub struct Delivered {
    /// Where to.
    pub address: String,
    /// How much.
    pub figures: Figures,
    /// What the other side did not get, on this disk.
    pub rest: Vec<Rest>,
    /// Why not.
    pub trouble: Option<Error>,
}

impl Delivery {
    /// Connects, and delivers from now on what routes tell of; traces wait below `folder`, which is
    /// there. `in_thread` is called in the thread that does so.
    ///
    /// # Errors
    /// When the receiver cannot be reached or refuses, or the spool's file system cannot give back
    /// room within a file.
    pub fn start(
        to: &To,
        folder: &Path,
        in_thread: impl FnOnce() + Send + 'static,
    ) -> Result<Delivery> {
        can_free(folder)?;
        let sender = Sender {
            token: to.token.clone(),
            host: host_name(),
            recording: random()?,
        };
        let book = Arc::new(Book::new(to.spool_bytes));
        let shared = Arc::new(Shared::default());
        let mut line = Line {
            address: to.address.clone(),
            book: Arc::clone(&book),
            shared: Arc::clone(&shared),
            sender,
        };
        let first = line.connect()?;
        let work = move || {
            in_thread();
            line.deliver(first);
        };
        let thread = std::thread::Builder::new().name("rtscope-relay".to_owned());
        let thread = thread.spawn(work);
        Ok(Delivery {
            book,
            shared,
            address: to.address.clone(),
            thread: Mutex::new(Some(
                thread.map_err(|cause| Error::io("cannot start a thread", cause))?,
            )),
        })
    }

    /// The way of the trace below `root`, which is to be called `name` over there.
    ///
    /// # Errors
    /// What the operating system says of the folder.
    pub fn route(&self, root: &Path, name: &str) -> Result<Route> {
        rest::mark_spool(root)?;
        Ok(Route::new(&self.book, root, &crate::name::plain(name)))
    }

    /// Where to, with the port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How far it is.
    pub fn figures(&self) -> Figures {
        self.book.lock().figures
    }

    /// Why there is no connection.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.shared.trouble.lock();
        let trouble = trouble.unwrap_or_else(PoisonError::into_inner);
        trouble.as_ref().map(ToString::to_string)
    }

    /// Waits until all is delivered, at most `patience` without anything getting through, or until
    /// `is_enough`. What did not get through becomes traces on this disk.
    pub fn finish(&self, patience: Duration, is_enough: impl Fn() -> bool) -> Delivered {
        self.shared.is_closing.store(true, Ordering::Release);
        let progress = || {
            let inner = self.book.lock();
            (inner.figures.delivered_bytes, inner.archives.len())
        };
        let (mut last, mut since) = (progress(), StdInstant::now());
        while !self.is_over() {
            let now = progress();
            if now != last {
                (last, since) = (now, StdInstant::now());
            }
            if since.elapsed() > patience || is_enough() {
                break;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        self.end();
        let figures = self.figures();
        let rest = rest::keep(self.book.take_rest());
        let trouble = self.shared.trouble.lock();
        let trouble = trouble.unwrap_or_else(PoisonError::into_inner).take();
        Delivered {
            address: self.address.clone(),
            figures,
            rest,
            trouble,
        }
    }

    fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn end(&self) {
        self.shared.is_given_up.store(true, Ordering::Release);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic there was told there.
            let _ = thread.join();
        }
    }
}

/// Its recorder failed: nobody waits.
impl Drop for Delivery {
    fn drop(&mut self) {
        self.end();
    }
}

/// Who connects.
struct Line {
    address: String,
    book: Arc<Book>,
    shared: Arc<Shared>,
    sender: Sender,
}

type Connected = (TcpStream, Courier);

impl Line {
    /// A receiver that has shown that it has the token.
    fn connect(&mut self) -> Result<Connected> {
        let address = &self.address;
        let failed = |cause| {
            Error::io(format!("cannot reach {address}"), cause)
                .fix("start rtscope receive --listen there, and see whether a firewall is between")
        };
        let mut addresses = address.to_socket_addrs().map_err(failed)?;
        let mut tried = Err(std::io::ErrorKind::NotFound.into());
        let stream = loop {
            match addresses.next() {
                Some(one) => tried = TcpStream::connect_timeout(&one, CONNECT_MAX),
                None => break tried.map_err(failed)?,
            }
            if tried.is_ok() {
                break tried.map_err(failed)?;
            }
        };
        let set = stream.set_read_timeout(Some(LOOK_PERIOD));
        set.and_then(|()| stream.set_write_timeout(Some(SILENCE_MAX)))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(failed)?;
        let mut connected = (
            stream,
            Courier::new(Arc::clone(&self.book), self.sender.clone())?,
        );
        let begin = StdInstant::now();
        let mut buffer = [0; 1024];
        while !connected.1.is_known() {
            if begin.elapsed() > GREETING_MAX || self.is_given_up() {
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            exchange(&mut connected, &mut buffer)?;
        }
        Ok(connected)
    }

    fn is_given_up(&self) -> bool {
        self.shared.is_given_up.load(Ordering::Acquire)
    }

    /// Delivers, over this connection and those that come after it.
    fn deliver(&mut self, first: Connected) {
        let mut connection = Ok(first);
        while !self.is_given_up() {
            match connection.and_then(|connected| self.talk(connected)) {
                Ok(()) => return,
                Err(error) => self.is_in_trouble(error),
            }
            self.pause();
            connection = self.connect();
        }
    }

    fn is_in_trouble(&self, error: Error) {
        let mut inner = self.book.lock();
        inner.figures.cuts += u64::from(inner.figures.is_connected);
        inner.figures.is_connected = false;
        drop(inner);
        let trouble = self.shared.trouble.lock();
        *trouble.unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn pause(&self) {
        let begin = StdInstant::now();
        while begin.elapsed() < RETRY_PERIOD && !self.is_given_up() {
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Sends until all is delivered.
    fn talk(&self, mut connected: Connected) -> Result<()> {
        self.book.lock().figures.is_connected = true;
        let trouble = self.shared.trouble.lock();
        *trouble.unwrap_or_else(PoisonError::into_inner) = None;
        let mut buffer = vec![0; READ_BYTES];
        let (mut heard, mut asked) = (StdInstant::now(), StdInstant::now());
        while !self.is_given_up() {
            if exchange(&mut connected, &mut buffer)? {
                heard = StdInstant::now();
            }
            if heard.elapsed() > SILENCE_MAX {
                let what = format!("{} does not answer any more", self.address);
                return Err(Error::new(ErrorKind::Io, what)
                    .found(format!("silent for {} s", SILENCE_MAX.as_secs())));
            }
            if asked.elapsed() > PING_PERIOD {
                asked = StdInstant::now();
                connected.1.ping();
            }
            // Asked first: no trace comes behind it.
            let is_closing = self.shared.is_closing.load(Ordering::Acquire);
            if is_closing && self.book.lock().archives.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Sends what is to be sent, and takes what comes within a look's time. Whether anything came.
fn exchange((stream, courier): &mut Connected, buffer: &mut [u8]) -> Result<bool> {
    let failed =
        |cause| Error::io("the connection ended", cause).fix("see what rtscope receive says there");
    let mut out = Vec::new();
    courier.give(&mut out)?;
    // What the receiver said last tells why it does not take more.
    let written = stream.write_all(&out);
    match stream.read(buffer) {
        Ok(0) => Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
        Ok(read) => {
            courier.take(&buffer[..read])?;
            written.map_err(failed).map(|()| true)
        }
        Err(cause) if is_passing(&cause) => written.map_err(failed).map(|()| false),
        Err(cause) => Err(failed(cause)),
    }
}

/// Whether room within a file can be given back below `folder`.
fn can_free(folder: &Path) -> Result<()> {
    let path: PathBuf = folder.join(format!(".rtscope-spool-{}", std::process::id()));
    let tried = File::create_new(&path).and_then(|file| {
        let _ = std::fs::remove_file(&path);
        (&file).write_all(&[1; 8192])?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&file, flags, 0, 4096)?)
    });
    tried.map_err(|cause| {
        let what = format!("{} cannot hold a spool", folder.display());
        Error::io(what, cause)
            .fix("give -o a path on a file system whose files can have holes, as ext4 or tmpfs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_that_may_be_left_out() {
        let check = |text: &str, expect: Option<&str>| {
            let token = Token::new(&[7; 32]).expect("a token");
            let to = To::new(text, token, 1);
            assert_eq!(to.ok().as_ref().map(To::address), expect, "{text}");
        };
        check("logger", Some("logger:7423"));
        check("logger:99", Some("logger:99"));
        check("10.0.0.1", Some("10.0.0.1:7423"));
        check("[fe80::1]", Some("[fe80::1]:7423"));
        check("[fe80::1]:5", Some("[fe80::1]:5"));
        for bad in [
            "",
            ":5",
            "logger:",
            "logger:0",
            "logger:65536",
            "logger:x",
            "fe80::1",
        ] {
            check(bad, None);
        }
    }
}
