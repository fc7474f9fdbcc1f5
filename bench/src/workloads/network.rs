//! iperf3 from one network namespace into another one, by a pair of virtual cards.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::programs::{Load, Server};
use crate::child;
use crate::options::Options;

const ADDRESS: &str = "192.0.2.1";
const STARTS_WITHIN: Duration = Duration::from_secs(5);

/// Two namespaces and what connects them; gone with this.
struct Namespaces {
    server: String,
    client: String,
}

impl Namespaces {
    fn make() -> Result<Namespaces> {
        let name = |what: &str| format!("rtscope-bench-{}-{what}", std::process::id());
        let both = Namespaces {
            server: name("server"),
            client: name("client"),
        };
        // Their names are short: a card's has 15 bytes at most.
        let (server, client) = (both.server.as_str(), both.client.as_str());
        ip(&["netns", "add", server])?;
        ip(&["netns", "add", client])?;
        let pair = ["link", "add", "veth0", "netns", server, "type", "veth"];
        ip(&[&pair[..], &["peer", "name", "veth0", "netns", client]].concat())?;
        for (namespace, address) in [(server, "192.0.2.1/24"), (client, "192.0.2.2/24")] {
            ip(&["-n", namespace, "address", "add", address, "dev", "veth0"])?;
            ip(&["-n", namespace, "link", "set", "veth0", "up"])?;
        }
        Ok(both)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            ip(&["netns", "delete", namespace]).ok();
        }
    }
}

/// The server goes before its namespace.
struct Network {
    _server: Server,
    namespaces: Namespaces,
    bytes: &'static str,
}

pub(super) fn start(options: &Options) -> Result<Box<dyn Load>> {
    let namespaces = Namespaces::make()?;
    let mut command = within(&namespaces.server);
    command.args(["iperf3", "--server", "--bind", ADDRESS]);
    let server = Server::start(&mut command, STARTS_WITHIN, || listens(&namespaces.server))?;
    Ok(Box::new(Network {
        _server: server,
        namespaces,
        bytes: options.pick("3G", "1M"),
    }))
}

/// Whether somebody listens in this namespace.
fn listens(namespace: &str) -> bool {
    let said = child::output(within(namespace).args(["cat", "/proc/net/tcp"]));
    // The state 0A is TCP_LISTEN (include/net/tcp_states.h).
    said.is_ok_and(|table| {
        table
            .lines()
            .any(|line| line.split_whitespace().nth(3) == Some("0A"))
    })
}

impl Load for Network {
    fn run_s(&self) -> Result<f64> {
        let mut command = within(&self.namespaces.client);
        command.args(["iperf3", "--client", ADDRESS, "--bytes", self.bytes]);
        Ok(child::run(&mut command)?.wall.as_secs_f64())
    }
}

fn within(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

fn ip(words: &[&str]) -> Result<()> {
    child::output(Command::new("ip").args(words)).map(drop)
}
