//! The receiver: a thread for each connection, and what is told of them.

use std::io::{ErrorKind as Io, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use event::{Error, ErrorKind, Result};

use crate::auth::Token;
use crate::frame::{Frame, Reason, begin};
use crate::peer::Peer;
use crate::store::{AWAY_MAX, Store};
use crate::strangers::Strangers;
use crate::told::Told;

/// No more connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// So long a stranger may take to show that it has the token.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// A sender says something every second; one that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// No frame takes longer, and no answer.
const FRAME_MAX: Duration = Duration::from_secs(30);
/// Between two looks at the clock, and at whether to end.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Between two looks for new connections.
const ACCEPT_PERIOD: Duration = Duration::from_millis(50);
const READ_BYTES: usize = 256 << 10;
/// More refusals in a minute are counted, and not told one by one.
const REFUSALS_MAX: u64 = 20;

/// What came in altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Traces that are whole.
    pub whole: u64,
    /// Traces of which something is missing at the end.
    pub cut: u64,
    /// Events, as recorders counted.
    pub events: u64,
    /// The same of those that were lost.
    pub lost: u64,
    /// Connections that were refused, or ended by us.
    pub refused: u64,
}

/// Who listens for senders.
#[derive(Debug)]
pub struct Receiver {
    listener: TcpListener,
    address: SocketAddr,
    store: Arc<Store>,
    token: Token,
}

impl Receiver {
    /// Listens at `listen`; traces come in below `root`.
    ///
    /// # Errors
    /// When that is no address, it is taken, or the folder cannot be made.
    pub fn bind(listen: &str, root: &Path, token: Token) -> Result<Receiver> {
        let failed = |cause| {
            Error::io(format!("cannot listen at {listen}"), cause)
                .fix("name another by --listen ADDR:PORT")
        };
        let addresses: Vec<SocketAddr> = listen.to_socket_addrs().map_err(failed)?.collect();
        let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Receiver {
            address: listener.local_addr().map_err(failed)?,
            listener,
            store: Arc::new(Store::open(root)?),
            token,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes what senders send until `stop` is raised; `tell` is told what happens.
    ///
    /// # Errors
    /// When nobody can be heard any more.
    pub fn run(&self, stop: &AtomicBool, tell: &(dyn Fn(&Told) + Sync)) -> Result<Received> {
        let desk = Desk {
            tell,
            received: Mutex::default(),
        };
        let count = AtomicUsize::new(0);
        let strangers = Strangers::default();
        let mut number = 0;
        let ran = std::thread::scope(|scope| {
            while !stop.load(Ordering::Acquire) {
                self.settle(AWAY_MAX, &desk);
                let (stream, from) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    Err(cause) if is_passing(&cause) => {
                        std::thread::sleep(ACCEPT_PERIOD);
                        continue;
                    }
                    Err(cause) => {
                        return Err(Error::io("cannot take connections any more", cause));
                    }
                };
                if count.load(Ordering::Acquire) >= CONNECTIONS_MAX {
                    let Some(silent) = strangers.hang_up() else {
                        desk.refuse(from, &format!("{CONNECTIONS_MAX} are connected"));
                        is_full(stream);
                        continue;
                    };
                    desk.refuse(silent, "others came before it greeted");
                }
                count.fetch_add(1, Ordering::AcqRel);
                number += 1;
                strangers.came(number, from, &stream);
                let (count, desk, strangers) = (&count, &desk, &strangers);
                scope.spawn(move || {
                    let on_known = || strangers.left(number);
                    if let Err(error) = self.talk(stream, stop, desk, &on_known) {
                        desk.refuse(from, &error.to_string());
                    }
                    strangers.left(number);
                    count.fetch_sub(1, Ordering::AcqRel);
                });
            }
            Ok(())
        });
        self.settle(Duration::ZERO, &desk);
        let received = *lock(&desk.received);
        ran.map(|()| received.0)
    }

    fn settle(&self, away_min: Duration, desk: &Desk<'_>) {
        for path in self.store.settle(away_min) {
            desk.tell(Told::Left { path });
        }
    }

    /// One conversation; `on_known` is called when the sender has shown that it has the token.
    fn talk(
        &self,
        mut stream: TcpStream,
        stop: &AtomicBool,
        desk: &Desk<'_>,
        on_known: &dyn Fn(),
    ) -> Result<()> {
        let failed = |cause| Error::io("cannot talk to a sender", cause);
        stream.set_nonblocking(false).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK_PERIOD)).map_err(failed)?;
        stream.set_write_timeout(Some(FRAME_MAX)).map_err(failed)?;
        // Who acknowledges late is waited for; nothing else depends on it.
        let _ = stream.set_nodelay(true);
        let mut out = Vec::new();
        let mut peer = Peer::new(Arc::clone(&self.store), self.token.clone(), &mut out)?;
        let other = stream.try_clone().map_err(failed)?;
        let hang_up = || -> Box<dyn FnOnce() + Send> {
            let other = other.try_clone();
            Box::new(move || {
                let _ = other.map(|other| other.shutdown(std::net::Shutdown::Both));
            })
        };
        let mut buffer = vec![0; READ_BYTES];
        let mut clock = Clock::new(StdInstant::now());
        let mut was_known = false;
        while !stop.load(Ordering::Acquire) {
            // Who goes away needs no answer.
            if stream.write_all(&out).is_err() {
                return Ok(());
            }
            out.clear();
            let read = match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(cause) if is_passing(&cause) => 0,
                Err(_) => return Ok(()),
            };
            let taken = peer.take(&buffer[..read], &mut out, &hang_up);
            desk.tell_all(peer.take_told());
            if peer.is_known() && !was_known {
                was_known = true;
                on_known();
            }
            if let Err(refusal) = taken {
                let _ = stream.write_all(&out);
                return Err(Error::new(ErrorKind::InvalidInput, refusal.text));
            }
            clock.look(StdInstant::now(), &peer, read)?;
        }
        Ok(())
    }
}

/// Says that there is no room for now. Who does not take that learns it from the closed connection.
fn is_full(mut stream: TcpStream) {
    let mut out = Vec::new();
    begin(&mut out);
    let refused = Frame::Refused {
        reason: Reason::Full,
        text: format!("{CONNECTIONS_MAX} are connected"),
    };
    refused.write(&mut out);
    let _ = stream.write_all(&out);
}

/// How long a sender takes.
struct Clock {
    begin: StdInstant,
    heard: StdInstant,
    /// Since when a frame is under way, and how many came before it.
    frame: (StdInstant, u64),
}

impl Clock {
    fn new(now: StdInstant) -> Clock {
        Clock {
            begin: now,
            heard: now,
            frame: (now, 0),
        }
    }

    /// Whether it takes too long.
    fn look(&mut self, now: StdInstant, peer: &Peer, read: usize) -> Result<()> {
        if read > 0 {
            self.heard = now;
        }
        if peer.frames() != self.frame.1 || !peer.is_within() {
            self.frame = (now, peer.frames());
        }
        let slow = |what: &str| Err(Error::new(ErrorKind::InvalidInput, what));
        if !peer.is_known() && now - self.begin > GREETING_MAX {
            return slow("did not greet in time");
        }
        if now - self.heard > SILENCE_MAX {
            return slow("was silent for too long");
        }
        if now - self.frame.0 > FRAME_MAX {
            return slow("is too slow");
        }
        Ok(())
    }
}

/// Where it is told what happens.
struct Desk<'t> {
    tell: &'t (dyn Fn(&Told) + Sync),
    received: Mutex<(Received, Minute)>,
}

/// Refusals of a minute.
#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    begin: Option<StdInstant>,
    refused: u64,
}

impl Desk<'_> {
    fn refuse(&self, from: SocketAddr, why: &str) {
        let (from, why) = (from.to_string(), why.to_owned());
        self.tell(Told::Refused { from, why });
    }

    fn tell_all(&self, all: Vec<Told>) {
        all.into_iter().for_each(|told| self.tell(told));
    }

    fn tell(&self, told: Told) {
        let mut locked = lock(&self.received);
        let (received, minute) = &mut *locked;
        let mut is_told = true;
        match &told {
            Told::Joined { .. } => (),
            Told::Ended {
                is_whole,
                events,
                lost,
                ..
            } => {
                *(if *is_whole {
                    &mut received.whole
                } else {
                    &mut received.cut
                }) += 1;
                received.events = received.events.saturating_add(*events);
                received.lost = received.lost.saturating_add(*lost);
            }
            Told::Left { .. } => received.cut += 1,
            Told::Refused { .. } => {
                received.refused += 1;
                let is_over = minute
                    .begin
                    .is_none_or(|begin| begin.elapsed() > Duration::from_secs(60));
                if is_over {
                    *minute = Minute {
                        begin: Some(StdInstant::now()),
                        refused: 0,
                    };
                }
                minute.refused += 1;
                is_told = minute.refused <= REFUSALS_MAX;
            }
        }
        if is_told {
            (self.tell)(&told);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the next try may succeed.
pub(crate) fn is_passing(cause: &std::io::Error) -> bool {
    // What is wrong with one connection, or with our descriptors for now, ends no listener.
    let is_scarce = matches!(cause.raw_os_error(), Some(23 | 24));
    is_scarce
        || matches!(
            cause.kind(),
            Io::WouldBlock | Io::TimedOut | Io::Interrupted | Io::ConnectionAborted
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `seconds` behind `bytes` bring a sender, one that has the token or none; `drips` are
    /// bytes of the same frame, one a second.
    fn check(is_known: bool, bytes: &[u8], drips: bool, seconds: u64, expect: Option<&str>) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Store::open(folder.path()).expect("a folder"));
        let mut out = Vec::new();
        let token = Token::new(&[1; 16]).expect("a token");
        let peer = match is_known {
            true => Peer::trusting(store, [7; 16], "host"),
            false => Peer::new(store, token, &mut out),
        };
        let (mut peer, begin) = (peer.expect("random"), StdInstant::now());
        let mut clock = Clock::new(begin);
        let taken = peer.take(bytes, &mut out, &|| Box::new(|| ()));
        taken.expect("sound so far");
        clock.look(begin, &peer, bytes.len()).expect("in time");
        let mut looked = Ok(());
        for second in 1..=seconds {
            looked = clock.look(
                begin + Duration::from_secs(second),
                &peer,
                usize::from(drips),
            );
        }
        let error = looked.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expect, "{seconds}");
    }

    #[test]
    fn who_says_nothing_makes_way_for_those_who_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let token = Token::new(&[1; 16]).expect("a token");
        let receiver = Receiver::bind("127.0.0.1:0", folder.path(), token).expect("a port");
        let (stop, refused) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let tell = |told: &Told| {
            if let Told::Refused { from, .. } = told {
                lock(&refused).push(from.clone());
            }
        };
        std::thread::scope(|scope| {
            let ran = scope.spawn(|| receiver.run(&stop, &tell));
            let mut all: Vec<TcpStream> = (0..=CONNECTIONS_MAX)
                .map(|_| TcpStream::connect(receiver.address()).expect("it listens"))
                .collect();
            // The last one is welcomed, and the first one's connection ends.
            let mut greeting = Vec::new();
            begin(&mut greeting);
            let mut said = vec![0; greeting.len()];
            let last = &mut all[CONNECTIONS_MAX];
            last.read_exact(&mut said).expect("a welcome");
            assert_eq!(said, greeting);
            let ended = all[0].read_to_end(&mut said);
            ended.expect("it is hung up on");
            let first = all[0].local_addr().expect("its address").to_string();
            assert_eq!(*lock(&refused), [first]);
            stop.store(true, Ordering::Release);
            let received = ran.join().expect("no panic").expect("it listened");
            assert_eq!(received.refused, 1);
        });
    }

    #[test]
    fn silent_and_slow_senders_are_not_waited_for() {
        check(false, b"", false, 10, None);
        check(false, b"", true, 11, Some("did not greet in time"));
        let mut ping = Vec::new();
        begin(&mut ping);
        Frame::Ping.write(&mut ping);
        check(true, &ping, false, 15, None);
        check(true, &ping, false, 16, Some("was silent for too long"));
        check(true, &ping, true, 100, None);
        let half = [&ping[..], &[9, 0]].concat();
        check(true, &half, true, 30, None);
        check(true, &half, true, 31, Some("is too slow"));
    }
}
