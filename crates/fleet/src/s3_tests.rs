//! An object store of a few lines, over loopback: it keeps what is put, and fails when it is told
//! to. `tests/peers/s3.sh` pushes to a real one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// What the store has, and what it does next.
#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// Refuses each request from now on with this status and code.
    refuses: Option<(u16, &'static str)>,
    /// So many requests more it is too busy for.
    busy: usize,
    /// Hangs up in the middle of a request's body.
    hangs_up: bool,
    /// Queries that came without a signature.
    unsigned: usize,
}

struct Server {
    state: Arc<Mutex<State>>,
    address: String,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        // Ends with the process; each connection is one request.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &shared);
            }
        });
        Server { state, address }
    }

    fn store(&self, prefix: &str) -> ObjectStore {
        let place = S3Place {
            endpoint: Some(self.address.clone()),
            ..S3Place::read(&format!("s3://fleet/{prefix}")).expect("a bucket")
        };
        ObjectStore::new(&place, Credentials::new("key", "secret")).expect("a store")
    }

    fn state<R>(&self, read: impl FnOnce(&mut State) -> R) -> R {
        read(&mut self.state.lock().expect("no test failed"))
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request).ok();
    let (mut bytes, mut goes_on) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            bytes = length.trim().parse().unwrap_or(0);
        }
        goes_on |= line.starts_with("expect: 100-continue");
    }
    if goes_on {
        let mut stream = reader.get_ref();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok();
    }
    let mut state = state.lock().expect("no test failed");
    let mut body = vec![0; if state.hangs_up { bytes / 2 } else { bytes }];
    reader.read_exact(&mut body).ok();
    if state.hangs_up {
        return;
    }
    let (status, text) = answer(&mut state, &request, body);
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    reader.get_ref().write_all((head + &text).as_bytes()).ok();
}

fn answer(state: &mut State, request: &str, body: Vec<u8>) -> (u16, String) {
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    state.unsigned += usize::from(!query.contains("X-Amz-Signature="));
    if state.busy > 0 {
        state.busy -= 1;
        return (503, "<Error><Code>SlowDown</Code></Error>".to_owned());
    }
    if let Some((status, code)) = state.refuses {
        let text = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
        return (status, text);
    }
    let key = path.trim_start_matches("/fleet/").replace("%3D", "=");
    match method {
        "PUT" => {
            state.objects.insert(key, body);
            (200, String::new())
        }
        _ if query.contains("list-type=2") => (200, list(state, query)),
        _ => match state.objects.get(&key) {
            Some(bytes) => (200, String::from_utf8_lossy(bytes).into_owned()),
            None => (404, "<Error><Code>NoSuchKey</Code></Error>".to_owned()),
        },
    }
}

/// A page of one name, so that every list has several.
fn list(state: &State, query: &str) -> String {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, text) = pairs.find(|(key, _)| *key == name)?;
        Some(text.replace("%2F", "/").replace("%3D", "="))
    };
    let prefix = value("prefix").unwrap_or_default();
    let after = value("continuation-token").unwrap_or_default();
    let mut keys = state.objects.keys();
    let mut keys = keys
        .by_ref()
        .filter(|key| key.starts_with(&prefix) && **key > after);
    let key = keys.next();
    let next = keys.next().and(key);
    let contents = key.map(|key| format!("<Contents><Key>{key}</Key></Contents>"));
    let next = next.map(|key| format!("<NextContinuationToken>{key}</NextContinuationToken>"));
    format!(
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <IsTruncated>{}</IsTruncated>{}{}</ListBucketResult>",
        next.is_some(),
        contents.unwrap_or_default(),
        next.unwrap_or_default()
    )
}

#[test]
fn a_bucket_and_what_goes_before_names_are_read_from_one_text() {
    let check = |text: &str, expect: Option<(&str, &str)>| {
        let place = S3Place::read(text);
        let read = place
            .as_ref()
            .map(|at| (at.bucket.as_str(), at.prefix.as_str()));
        assert_eq!(read, expect, "{text}");
    };
    check("s3://fleet", Some(("fleet", "")));
    check("s3://fleet/a/b/", Some(("fleet", "a/b")));
    check("s3:///a", None);
    check("gs://fleet", None);
    check("/mnt/fleet", None);
}

#[test]
fn what_was_put_is_listed_over_all_pages_and_signed() {
    let server = Server::start();
    let mut store = server.store("a/b");
    store.meet(false).expect("a bucket without a mark gets one");
    store.meet(true).expect("it has one now");
    let long = vec![7; 3 << 20];
    for (name, bytes) in [("one.parquet", &b"1"[..]), ("two", &long), ("three", b"")] {
        let name = format!("v1/phase/date=2026-01-02/host=h/{name}");
        store.put(&name, bytes).expect("put");
    }
    store
        .put("v1/phase/date=2026-01-02/host=h2/other", b"x")
        .expect("put");
    let listed = store
        .list("v1/phase/date=2026-01-02/host=h")
        .expect("a list");
    assert_eq!(listed, ["one.parquet", "three", "two"]);
    assert_eq!(store.list("v1/none").expect("a list"), [""; 0]);
    server.state(|state| {
        assert_eq!(state.unsigned, 0);
        let put = &state.objects["a/b/v1/phase/date=2026-01-02/host=h/two"];
        assert!(*put == long);
    });
}

#[test]
fn a_bucket_that_lost_its_mark_is_not_written_to() {
    let server = Server::start();
    let mut store = server.store("");
    let error = store.meet(true).expect_err("another bucket");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    server.state(|state| assert!(state.objects.is_empty()));
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_what_it_said_before_is_no_part_of_the_answer() {
    let server = Server::start();
    let mut store = server.store("lab");
    store.put("v1/a.parquet", b"rows").expect("put");
    server.state(|state| state.busy = 1);
    assert_eq!(store.list("v1").expect("listed"), ["a.parquet"]);
    server.state(|state| state.busy = 1);
    store.put("v1/b.parquet", b"rows").expect("put");
    let put = server.state(|state| state.objects.get("lab/v1/b.parquet").cloned());
    assert_eq!(put.as_deref(), Some(&b"rows"[..]));
}

#[test]
fn what_the_server_refuses_is_said_with_its_own_words() {
    let check = |status: u16, code: &'static str, kind: ErrorKind| {
        let server = Server::start();
        server.state(|state| state.refuses = Some((status, code)));
        let mut store = server.store("");
        for error in [
            store.meet(false).expect_err("refused"),
            store.put("a", b"a").expect_err("refused"),
            store.list("a").expect_err("refused"),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(format!("{error:#}").contains(code), "{error:#}");
        }
    };
    check(403, "SignatureDoesNotMatch", ErrorKind::PermissionDenied);
    check(404, "NoSuchBucket", ErrorKind::NotFound);
    check(501, "NotImplemented", ErrorKind::Io);
}

#[test]
fn a_server_that_is_away_or_hangs_up_is_an_error_and_leaves_no_object() {
    let server = Server::start();
    server.state(|state| state.hangs_up = true);
    let mut store = server.store("");
    store.put("a", &[1; 100_000]).expect_err("hung up");
    server.state(|state| assert!(state.objects.is_empty()));

    let gone = S3Place {
        endpoint: Some("http://127.0.0.1:1".to_owned()),
        ..S3Place::read("s3://fleet").expect("a bucket")
    };
    let mut store = ObjectStore::new(&gone, Credentials::new("k", "s")).expect("a store");
    let error = store.meet(false).expect_err("nobody is there");
    assert!(format!("{error:#}").contains("no answer"), "{error:#}");
}

#[test]
fn an_address_that_is_none_is_refused_before_any_request() {
    let opened = |endpoint: &str| {
        let place = S3Place {
            endpoint: Some(endpoint.to_owned()),
            ..S3Place::read("s3://fleet").expect("a bucket")
        };
        ObjectStore::new(&place, Credentials::new("k", "s"))
    };
    let check = |endpoint: &str, fix: &str| {
        let error = opened(endpoint).expect_err(endpoint);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{endpoint}");
        assert!(format!("{error:#}").contains(fix), "{error:#}");
    };
    check("", "http://HOST:PORT");
    check("localhost:9000", "http://HOST:PORT");
    check("ftp://host", "http://HOST:PORT");
    check("file:///etc/passwd", "http://HOST:PORT");
    check("https://bücher.example", "xn--bcher-kva");
    opened("https://xn--bcher-kva.example").expect("its name in ASCII");
    opened("http://[::1]:9000").expect("an address");
}
