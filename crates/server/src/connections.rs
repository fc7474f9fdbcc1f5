//! The connections of a server: so many at once, and who holds one without a question gives it to
//! the next who comes. No client keeps others out, nor takes all files that the process may open.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A browser has six to a server.
const CONNECTIONS_MAX: usize = 64;
/// Before the next try, when the process has no file to open left.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Accepts connections; the oldest end when there are too many.
pub(crate) struct Connections {
    listener: TcpListener,
    /// The oldest first. Dropped, it ends its connection.
    open: VecDeque<oneshot::Sender<()>>,
}

impl Connections {
    pub(crate) fn new(listener: TcpListener) -> Connections {
        Connections {
            listener,
            open: VecDeque::new(),
        }
    }

    fn take(&mut self, stream: TcpStream) -> Connection {
        self.open.retain(|open| !open.is_closed());
        while self.open.len() >= CONNECTIONS_MAX {
            self.open.pop_front();
        }
        let (end, ended) = oneshot::channel();
        self.open.push_back(end);
        Connection { stream, ended }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => return (self.take(stream), address),
                Err(_) => tokio::time::sleep(TRY_AGAIN).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One that ends when its place is given to another.
pub(crate) struct Connection {
    stream: TcpStream,
    ended: oneshot::Receiver<()>,
}

impl Connection {
    /// What waits for the client fails once the place is taken.
    fn unless_ended<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending if Pin::new(&mut self.ended).poll(context).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            polled => polled,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.unless_ended(context, polled)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_ended(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_ended(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.unless_ended(context, polled)
    }
}
