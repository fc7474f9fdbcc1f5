//! What a collector is asked, and what comes of its answers.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

#[test]
fn an_address_has_a_path_and_what_is_none_is_refused() {
    let check = |typed: &str, expect: &str| {
        let collector = Collector::new(typed, None).expect("an address");
        assert_eq!(collector.address, expect);
    };
    check("http://h:4318", "http://h:4318/v1/metrics");
    check("http://h:4318/", "http://h:4318/v1/metrics");
    check("https://h/a/b", "https://h/a/b");
    for typed in [
        "",
        "h:4318",
        "http://",
        "file:///etc/passwd",
        "http://h\"\nurl=x",
        "http://a b",
    ] {
        assert!(Collector::new(typed, None).is_err(), "{typed}");
    }
}

/// What a server that answers so was asked, and what came of it.
fn sent(answer: &'static str) -> (String, Result<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut asked = Vec::new();
        let mut bytes = [0; 4096];
        while !String::from_utf8_lossy(&asked).ends_with("{\"a\":1}") {
            let read = stream.read(&mut bytes).expect("it reads");
            assert!(read > 0, "it ended early");
            asked.extend_from_slice(&bytes[..read]);
        }
        stream.write_all(answer.as_bytes()).expect("it answers");
        String::from_utf8_lossy(&asked).into_owned()
    });
    let token = Some("secret".to_owned());
    let collector = Collector::new(&format!("http://{address}"), token).expect("an address");
    let came = collector.send(&serde_json::json!({ "a": 1 }));
    (server.join().expect("it ends"), came)
}

#[test]
fn a_request_is_posted_with_its_token_and_a_refusal_is_said() {
    let (asked, came) = sent("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    came.expect("it was taken");
    assert!(asked.starts_with("POST /v1/metrics "), "{asked}");
    assert!(asked.contains("Content-Type: application/json"), "{asked}");
    assert!(asked.contains("Authorization: Bearer secret"), "{asked}");
    let check = |answer: &'static str, words: &str| {
        let (_, came) = sent(answer);
        let error = came.expect_err(answer);
        assert!(
            error
                .value_found()
                .is_some_and(|found| found.contains(words)),
            "{error:#}"
        );
    };
    check(
        "HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nwho?",
        "HTTP 401: who?",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 47\r\n\r\n\
         {\"partialSuccess\":{\"rejectedDataPoints\":\"3\"}}  ",
        "rejectedDataPoints",
    );
}
