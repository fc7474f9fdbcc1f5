//! `rtscope record --to` and `rtscope receive` as two hosts, in two network namespaces: a link that
//! is cut, a receiver that is killed. Needs root.

mod recorded;
mod session;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use recorded::run;
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Two namespaces with a link between them; gone when this is dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// None where there are no namespaces.
    fn new() -> Option<Hosts> {
        let names = ["a", "b"].map(|end| format!("rtscope-{}-{end}", std::process::id()));
        let hosts = Hosts { names };
        let [a, b] = &hosts.names;
        let is_done = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&[
                "-n", a, "link", "add", "wire", "type", "veth", "peer", "wire", "netns", b,
            ])
            && ip(&["-n", a, "address", "add", "10.99.0.1/24", "dev", "wire"])
            && ip(&["-n", b, "address", "add", "10.99.0.2/24", "dev", "wire"])
            && ip(&["-n", b, "link", "set", "wire", "up"])
            && hosts.link("up");
        is_done.then_some(hosts)
    }

    /// The link is `up` or `down`.
    fn link(&self, state: &str) -> bool {
        ip(&["-n", &self.names[0], "link", "set", "wire", state])
    }

    /// A command on a host.
    fn on(&self, place: usize, command: &Command) -> Command {
        // ip netns exec would mount a /sys of its own, without tracefs.
        let mut on = Command::new("nsenter");
        on.arg(format!("--net=/run/netns/{}", self.names[place]));
        on.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => on.env(name, value),
                None => on.env_remove(name),
            };
        }
        on
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "delete", name]);
        }
    }
}

fn ip(words: &[&str]) -> bool {
    let ran = Command::new("ip")
        .args(words)
        .stderr(Stdio::null())
        .status();
    ran.is_ok_and(|status| status.success())
}

/// A receiver, and what it says.
struct Receiver {
    child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Receiver {
    fn start(hosts: &Hosts, folder: &Path, token: &Path) -> Receiver {
        let mut receive = Command::new(RTSCOPE);
        receive
            .args(["receive", "--listen", "10.99.0.2:7423", "-o"])
            .arg(folder);
        receive.arg("--token-file").arg(token);
        let mut receive = hosts.on(1, &receive);
        let mut child = receive
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(child.stderr.take().expect("its words")).lines();
        let mut receiver = Receiver { child, said };
        receiver.await_word("listening");
        receiver
    }

    /// The next line with this word.
    fn await_word(&mut self, word: &str) -> String {
        let mut lines = self.said.by_ref().map(|line| line.expect("text"));
        lines.find(|line| line.contains(word)).expect("it is said")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // SIGKILL: what it wrote is to be readable without its last words.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The trace of the session that comes in.
fn incoming(folder: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(folder).ok()?;
    let host = hosts.flatten().next()?.path();
    let mut traces = std::fs::read_dir(host).ok()?.flatten();
    traces.next().map(|entry| entry.path())
}

/// Waits until the other host has what happened before now.
fn await_received(folder: &Path) {
    let now = session::monotonic_ns();
    let until = || {
        let bytes = std::fs::read(incoming(folder)?.join(".written-until")).ok()?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    };
    while until().is_none_or(|until| until < now) {
        std::thread::yield_now();
    }
}

fn read_by_babeltrace2(path: &Path) {
    if recorded::exists("babeltrace2") {
        let text = run(Command::new("babeltrace2").arg(path));
        assert!(text.contains("sched_switch"), "{text}");
    }
}

/// Starts the session on the first host.
fn start(hosts: &Hosts, night: &Night, token: &Path) -> std::process::Output {
    let words = ["start", "night", "--events", "sched", "--to", "10.99.0.2"];
    let mut start = night.command(&words);
    start.arg("--token-file").arg(token);
    start.arg("-o").arg(night.output());
    hosts.on(0, &start).output().expect("it starts")
}

/// A process more; its id.
fn fork() -> i64 {
    let mut child = Command::new("true").spawn().expect("a child");
    child.wait().expect("it ends");
    i64::from(child.id())
}

/// The events and losses that the session tells at its end.
fn counts(said: &str) -> String {
    let mut lines = said.lines();
    let line = lines.find_map(|line| line.trim().strip_prefix("events:"));
    let (events, lost) = line.expect("a line").trim().split_once(", ").expect("two");
    format!("{events} events, {lost}")
}

fn each_is_there_once(path: &Path, children: &[i64]) {
    let text = run(Command::new(RTSCOPE)
        .args(["cat", "--filter", "$name == \"sched_process_fork\""])
        .arg(path));
    for child in children {
        let count = text.matches(&format!("child_tid = {child},")).count();
        assert_eq!(count, 1, "{child}: {text}");
    }
}

#[test]
fn a_session_arrives_whole_over_a_link_that_is_cut_and_a_receiver_that_is_killed() {
    let _alone = testkit::privileged();
    let Some(hosts) = Hosts::new() else {
        return testkit::skip("a session arrives whole", "no network namespaces here");
    };
    let night = Night::new();
    let (folder, token) = (night.scene.beside("received"), night.scene.beside("token"));
    let mut receiver = Receiver::start(&hosts, &folder, &token);
    let other = night.scene.beside("other-token");
    let script = "umask 077; echo 0123456789abcdef0123 >\"$0\"";
    run(Command::new("sh").args(["-c", script]).arg(&other));
    let refused = start(&hosts, &night, &other);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("the token is another"), "{said}");
    receiver.await_word("the token is another");
    let started = start(&hosts, &night, &token);
    assert!(started.status.success(), "{started:?}");
    let mut children = vec![fork()];
    await_received(&folder);
    // Readable as it is, by others too.
    read_by_babeltrace2(&incoming(&folder).expect("a trace"));
    assert!(hosts.link("down"));
    children.push(fork());
    drop(receiver);
    assert!(hosts.link("up"));
    let mut receiver = Receiver::start(&hosts, &folder, &token);
    children.push(fork());
    await_received(&folder);
    let stop = hosts.on(0, &night.command(&["stop", "night"])).output();
    let stop = stop.expect("it stops");
    let said = String::from_utf8_lossy(&stop.stdout).into_owned();
    assert!(stop.status.success(), "{said}");
    let line = receiver.await_word(" events, ");
    assert!(line.contains(&counts(&said)), "{line}\n{said}");
    assert!(said.contains("streamed:"), "{said}");
    let path = incoming(&folder).expect("a trace");
    each_is_there_once(&path, &children);
    read_by_babeltrace2(&path);
    let left = std::fs::read_dir(night.output()).expect("a folder").count();
    assert_eq!(left, 0, "nothing stays here");
}
