//! Connections that have not shown yet that they have the token: when all are taken, the one that
//! has been silent for longest makes way, so that nobody without the token keeps a sender out.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<VecDeque<Stranger>>);

#[derive(Debug)]
struct Stranger {
    number: u64,
    from: SocketAddr,
    stream: TcpStream,
}

impl Strangers {
    /// One more came, as this number. Of whom there is no second handle is not hung up.
    pub fn came(&self, number: u64, from: SocketAddr, stream: &TcpStream) {
        if let Ok(stream) = stream.try_clone() {
            self.all().push_back(Stranger {
                number,
                from,
                stream,
            });
        }
    }

    /// It is none any more: it is known, or has gone.
    pub fn left(&self, number: u64) {
        self.all().retain(|stranger| stranger.number != number);
    }

    /// Hangs up on the one that came first, if there is one; gives where it was.
    pub fn hang_up(&self) -> Option<SocketAddr> {
        let Stranger { from, stream, .. } = self.all().pop_front()?;
        // Who has gone by itself makes way too.
        let _ = stream.shutdown(Shutdown::Both);
        Some(from)
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Stranger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
