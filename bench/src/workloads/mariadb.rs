//! Transactions of a database: Debian's MariaDB behind a socket of its own, asked by sysbench.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::programs::{Load, Program, Server};
use super::sysbench;
use crate::child;
use crate::options::Options;

const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// The server goes before its folder.
struct Database {
    _server: Server,
    _data: tempfile::TempDir,
    transactions: Program,
}

pub(super) fn start(options: &Options) -> Result<Box<dyn Load>> {
    let data = tempfile::tempdir()?;
    let (folder, socket) = (data.path().join("data"), data.path().join("socket"));
    let at = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let own = ["--no-defaults", "--user=root", &at("datadir", &folder)];
    let mut install = Command::new("mariadb-install-db");
    child::output(
        install
            .args(own)
            .args(["--skip-test-db", "--auth-root-authentication-method=normal"]),
    )?;
    let mut command = Command::new("mariadbd");
    command
        .args(own)
        .args(["--skip-networking", &at("socket", &socket)]);
    command.arg(at("pid-file", &data.path().join("pid")));
    let asks = || answers(&at("socket", &socket), "select 1").is_ok();
    let server = Server::start(&mut command, STARTS_WITHIN, asks)?;
    answers(&at("socket", &socket), "create database sbtest")?;
    let events = format!("--events={}", options.pick(2_500, 10));
    let rows = format!("--table-size={}", options.pick(10_000, 100));
    let words = [
        "oltp_read_write",
        "--db-driver=mysql",
        "--mysql-user=root",
        &at("mysql-socket", &socket),
        "--tables=1",
        &rows,
        "--threads=4",
        "--time=0",
        &events,
    ];
    let transactions = sysbench::program(&words)?;
    child::run(&mut transactions.command(&["prepare"]))?;
    Ok(Box::new(Database {
        _server: server,
        _data: data,
        transactions,
    }))
}

fn answers(socket: &str, question: &str) -> Result<String> {
    let mut command = Command::new("mariadb");
    child::output(command.args([
        "--no-defaults",
        "--user=root",
        socket,
        "--execute",
        question,
    ]))
}

impl Load for Database {
    fn run_s(&self) -> Result<f64> {
        self.transactions.run_s()
    }
}
