//! Who may ask: this machine, with the token, by GET.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use server::{Listening, Served, View, listen};
use testkit::{SyntheticTrace, Task};

struct Open {
    listening: Listening,
    host: String,
    token: String,
}

fn open() -> Open {
    let trace = SyntheticTrace::new().at(5).run(Task::fair(7, "a")).build();
    let view = Arc::new(View::of(trace, "made up".to_owned()));
    view.build(&AtomicBool::new(false));
    let listening = listen(Arc::new(Served::new(view)), 0).expect("it listens");
    let (host, token) = listening.url["http://".len()..]
        .split_once("/?token=")
        .expect("a URL");
    Open {
        host: host.to_owned(),
        token: token.to_owned(),
        listening,
    }
}

/// What comes back, headers and all; an error of the connection is an empty answer.
fn send(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).expect("a connection");
    let mut answer = Vec::new();
    stream.write_all(request.as_bytes()).ok();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(open: &Open, host: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    send(&open.host, &request)
}

#[test]
fn only_who_knows_the_token_and_asks_this_machine_is_answered() {
    let open = open();
    let (host, token) = (&open.host, &open.token);
    let check = |host: &str, path: &str, expect: u16| {
        let answer = get(&open, host, path);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expect} ")),
            "{path}: {answer}"
        );
    };
    assert!(open.listening.url.starts_with("http://127.0.0.1:"));
    check(host, &format!("/api/v1/info?token={token}"), 200);
    check(host, "/api/v1/info", 401);
    check(host, "/api/v1/info?token=", 401);
    check(host, &format!("/api/v1/info?token={}", &token[1..]), 401);
    check(host, &format!("/api/v1/info?token={token}0"), 401);
    // A name that somebody else's server gave to this machine's address.
    check(
        "attacker.example",
        &format!("/api/v1/info?token={token}"),
        403,
    );
    check(host, "/", 200);
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/app.js/../x",
    ] {
        check(host, path, 401);
        check(host, &format!("{path}?token={token}"), 404);
    }
}

#[test]
fn the_name_of_the_scheme_may_be_in_any_case_and_its_token_counts_before_that_of_the_url() {
    let open = open();
    let check = |authorization: &str, query: &str, expect: u16| {
        let (host, token) = (&open.host, &open.token);
        let request = format!(
            "GET /api/v1/info?{query} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Authorization: {authorization}\r\n\r\n"
        );
        let answer = send(host, &request.replace("TOKEN", token));
        let status = format!("HTTP/1.1 {expect} ");
        assert!(answer.starts_with(&status), "{authorization}: {answer}");
    };
    check("Bearer TOKEN", "", 200);
    check("bearer TOKEN", "", 200);
    check("BEARER  TOKEN", "", 200);
    check("Basic TOKEN", "", 401);
    check("Bearer", "", 401);
    check("TOKEN", "", 401);
    check("bearer x", "token=TOKEN", 401);
    check("Basic eDp5", "token=TOKEN", 200);
}

#[test]
fn it_only_reads_and_survives_what_is_no_question() {
    let open = open();
    let head = format!("HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", open.host);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let path = format!("/api/v1/info?token={}", open.token);
        let answer = send(&open.host, &format!("{method} {path} {head}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    }
    let long = "x".repeat(1 << 20);
    for request in [
        format!("GET /{long} {head}\r\n"),
        format!("GET / {head}Long: {long}\r\n\r\n"),
        "\0\0\0\r\n\r\n".to_owned(),
        "GET".to_owned() + "\r\n\r\n",
    ] {
        let answer = send(&open.host, &request);
        assert!(!answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let answer = get(
        &open,
        &open.host,
        &format!("/api/v1/info?token={}", open.token),
    );
    assert!(answer.contains("rtscope.view"), "{answer}");
    assert!(answer.contains("content-security-policy"), "{answer}");
}
