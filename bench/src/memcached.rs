//! What a watch of a named, busy server costs: Debian's memcached, asked over loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::accounted::Accounted;
use crate::background::Background;
use crate::child;
use crate::options::Options;
use crate::report::{Bar, Cell, Table, number, text};
use crate::stats::{Comparison, Random, median};

const SERVER: &str = "memcached";
const CONNECTIONS: u64 = 4;
/// Of the programs, with the watch's own process, where the busy task is named.
const SHARE_PERCENT_MAX: f64 = 2.0;
const VALUE: &[u8] = &[b'x'; 100];
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// A way to watch, and whether the bar is on it.
const WAYS: [(&str, &[&str], bool); 4] = [
    ("watch", &["watch"], true),
    (
        "watch --task mc-worker",
        &["watch", "--task", "mc-worker"],
        true,
    ),
    (
        "watch --process memcached",
        &["watch", "--process", SERVER],
        true,
    ),
    (
        "watch wakeup --task mc-worker",
        &["watch", "wakeup", "--task", "mc-worker"],
        false,
    ),
];

/// A running server; ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Result<Server> {
        let free = TcpListener::bind(("127.0.0.1", 0))?;
        let port = free.local_addr()?.port();
        drop(free);
        let mut command = Command::new(SERVER);
        command
            .args(["-u", "root", "-l", "127.0.0.1", "-t", "2", "-p"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().context("cannot start memcached")?;
        let server = Server { child, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begin.elapsed() > STARTS_WITHIN {
                bail!("memcached does not answer");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// How long so many requests take, over four connections at once.
    fn requests(&self, count: u64) -> Result<f64> {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CONNECTIONS)
                .map(|_| scope.spawn(|| self.client(count / CONNECTIONS)))
                .collect();
            clients.into_iter().try_for_each(|client| {
                client
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))?
            })
        })?;
        Ok(begin.elapsed().as_secs_f64())
    }

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

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
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

/// Accounted cost and wall-clock of each way; nothing where there is no memcached.
pub fn measure(options: &Options) -> Result<Option<(Table, Vec<Bar>)>> {
    if !child::exists(SERVER) {
        return Ok(None);
    }
    let (rounds, count) = (options.pick(24, 1), options.pick(10_000, 200));
    let server = Server::start()?;
    server.requests(count)?;
    let mut alone_s = Vec::new();
    let mut beside_s = vec![Vec::new(); WAYS.len()];
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..rounds {
        for place in random.shuffled(WAYS.len() + 1) {
            let Some((_, words, _)) = WAYS.get(place) else {
                alone_s.push(server.requests(count)?);
                continue;
            };
            let mut command = Command::new(&options.rtscope);
            command
                .args(*words)
                .args(["--json", "--no-snapshot", "--over", "50ms"]);
            let background = Background::start(command)?;
            beside_s[place].push(server.requests(count)?);
            let end: Value = serde_json::from_str(&background.finish()?)
                .context("the watch's last line is no JSON")?;
            costs[place].extend(Accounted::from_end_line(&end).map(|cost| cost.share_percent()));
        }
    }
    let mut rows = vec![row("none", &alone_s, None, Cell::None)];
    let mut bars = Vec::new();
    for (place, (name, _, is_promised)) in WAYS.iter().enumerate() {
        let pairs = alone_s.iter().copied().zip(beside_s[place].iter().copied());
        let change = Comparison::of(&pairs.collect::<Vec<_>>());
        let change = change.map_or(Cell::None, |change| text(change.words()));
        let cost = median(&costs[place]);
        rows.push(row(name, &beside_s[place], cost, change));
        bars.extend(is_promised.then(|| Bar {
            what: format!("memcached beside {name}"),
            found: cost,
            limit: SHARE_PERCENT_MAX,
            unit: "% of all CPUs",
        }));
    }
    let columns = vec![
        "beside memcached",
        "accounted, %",
        "10,000 requests, ms (median)",
        "change, % (95 % interval)",
    ];
    Ok(Some((Table { columns, rows }, bars)))
}

fn row(name: &str, times_s: &[f64], cost: Option<f64>, change: Cell) -> Vec<Cell> {
    let time = median(times_s).map_or(Cell::None, |s| number(s * 1e3, 1));
    let cost = cost.map_or(Cell::None, |percent| number(percent, 2));
    vec![text(name), cost, time, change]
}
