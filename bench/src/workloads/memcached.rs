//! A busy server: Debian's memcached, asked over loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::programs::{Load, Server};
use crate::options::Options;

const CONNECTIONS: u64 = 4;
const VALUE: &[u8] = &[b'x'; 100];
const STARTS_WITHIN: Duration = Duration::from_secs(10);

struct Memcached {
    _server: Server,
    port: u16,
    requests: u64,
}

pub(super) fn start(options: &Options) -> Result<Box<dyn Load>> {
    let free = TcpListener::bind(("127.0.0.1", 0))?;
    let port = free.local_addr()?.port();
    drop(free);
    let mut command = Command::new("memcached");
    command.args([
        "-u",
        "root",
        "-l",
        "127.0.0.1",
        "-t",
        "2",
        "-p",
        &port.to_string(),
    ]);
    let is_there = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    Ok(Box::new(Memcached {
        _server: Server::start(&mut command, STARTS_WITHIN, is_there)?,
        port,
        requests: options.pick(10_000, 200),
    }))
}

impl Load for Memcached {
    /// All requests, over four connections at once.
    fn run_s(&self) -> Result<f64> {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CONNECTIONS)
                .map(|_| scope.spawn(|| self.client(self.requests / CONNECTIONS)))
                .collect();
            clients.into_iter().try_for_each(|client| {
                client
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))?
            })
        })?;
        Ok(begin.elapsed().as_secs_f64())
    }
}

impl Memcached {
    fn client(&self, count: u64) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        write!(stream, "set k 0 0 {}\r\n", VALUE.len())?;
        stream.write_all(VALUE)?;
        stream.write_all(b"\r\n")?;
        let mut answer = [0; 512];
        answer_of(&mut stream, &mut answer, b"STORED\r\n")?;
        for _ in 0..count {
            stream.write_all(b"get k\r\n")?;
            answer_of(&mut stream, &mut answer, b"END\r\n")?;
        }
        Ok(())
    }
}

/// Reads an answer to its end.
fn answer_of(stream: &mut TcpStream, answer: &mut [u8], end: &[u8]) -> Result<()> {
    let mut read = 0;
    while !answer[..read].ends_with(end) {
        let more = stream.read(&mut answer[read..])?;
        if more == 0 {
            bail!("memcached hung up, or said too much");
        }
        read += more;
    }
    Ok(())
}
