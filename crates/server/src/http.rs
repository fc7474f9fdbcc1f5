//! HTTP around the API: who may ask, and how answers travel.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response, header};
use event::{Error, ErrorKind, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::{Semaphore, oneshot};

use crate::answer::Answer;
use crate::connections::Connections;
use crate::page;
use crate::question::Words;
use crate::served::Served;

/// Questions that are answered at once.
const AT_ONCE: usize = 4;
/// Shorter answers are sent as they are.
const COMPRESSED_BYTES_MIN: usize = 4096;
const TOKEN_BYTES: usize = 16;
/// Nothing from elsewhere, and nothing that is not a file of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Who asks must know this.
struct Door {
    served: Arc<Served>,
    token: String,
    hosts: [String; 2],
    places: Semaphore,
}

/// A server that listens; it ends when this is dropped.
pub struct Listening {
    /// What to open in a browser.
    pub url: String,
    /// Ends the server.
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves a view on this machine alone, on `port` or, when it is zero, on any that is free.
///
/// # Errors
/// When the port is taken, or the operating system refuses.
pub fn listen(served: Arc<Served>, port: u16) -> Result<Listening> {
    let token = token()?;
    start(loopback(port), "rtscope-view", |hosts| {
        let door = Arc::new(Door {
            served,
            token: token.clone(),
            hosts,
            places: Semaphore::new(AT_ONCE),
        });
        (
            Router::new().fallback(ask).with_state(door),
            format!("?token={token}"),
        )
    })
}

/// A port of this machine alone.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Listens there, in a thread of that name. `router` is told what this machine may be called by who
/// asks on it, and says what follows the address in the URL.
pub(crate) fn start(
    address: SocketAddr,
    thread: &str,
    router: impl FnOnce([String; 2]) -> (Router, String),
) -> Result<Listening> {
    let failed = |error| match address.ip().is_loopback() {
        true => Error::io(
            format!("cannot listen on port {} of this machine", address.port()),
            error,
        )
        .fix("give another one, or none: --port 0"),
        false => Error::io(format!("cannot listen on {address}"), error)
            .fix("give an address of this machine, and a port that nobody has: ip address"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(thread)
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Error::io("cannot start the server's thread", error))?;
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind(address))
        .map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let port = address.port();
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let (router, query) = router(hosts);
    let (stop, stopped) = oneshot::channel::<()>();
    runtime.spawn(async move {
        let server = axum::serve(Connections::new(listener), router);
        let server = server.with_graceful_shutdown(async move {
            // Dropped: the end, too.
            let _ = stopped.await;
        });
        // An error of a connection ends that connection; of the listener, nobody is left to tell.
        let _ = server.await;
    });
    Ok(Listening {
        url: format!("http://{address}/{query}"),
        stop: Some(stop),
        runtime: Some(runtime),
    })
}

/// What nobody can guess.
pub(crate) fn token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::io("cannot read /dev/urandom", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let differs = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differs == 0
}

async fn ask(State(door): State<Arc<Door>>, request: Request) -> Response<Body> {
    let (head, _) = request.into_parts();
    let refuse = |status, what: &str, found: &str, fix: &str| {
        let found: String = found.chars().take(80).collect();
        let error = Error::new(ErrorKind::InvalidInput, what);
        send(
            Answer::refusal(status, &error.found(format!("'{found}'")).fix(fix)),
            false,
        )
    };
    let host = text(&head.headers, header::HOST.as_str());
    if !door.hosts.iter().any(|known| known == host) {
        let fix = "open the URL that rtscope view printed";
        return refuse(403, "only this machine is served", host, fix);
    }
    if head.method != Method::GET && head.method != Method::HEAD {
        let found = head.method.as_str().to_owned();
        return refuse(405, "this server only reads", &found, "ask with GET");
    }
    let path = head.uri.path().to_owned();
    if let Some(file) = page::file(&path) {
        return send(file, false);
    }
    let query = head.uri.query().unwrap_or_default().to_owned();
    let words = Words::parse(&query);
    let told = bearer(&head.headers).unwrap_or(words.text("token"));
    if !is_same(told, &door.token) {
        let fix = "open the URL that rtscope view printed, with its token";
        return refuse(401, "the token is missing or wrong", "a token", fix);
    }
    let Ok(_place) = door.places.acquire().await else {
        return refuse(
            503,
            "the server ends",
            "a question",
            "start rtscope view again",
        );
    };
    let view = door.served.view();
    let answered = tokio::task::spawn_blocking(move || view.answer(&path, &query)).await;
    let takes_gzip = text(&head.headers, header::ACCEPT_ENCODING.as_str()).contains("gzip");
    match answered {
        Ok(answer) => send(answer, takes_gzip),
        Err(_) => refuse(500, "the answer failed", "a panic", "please report it"),
    }
}

/// The token that a client sends beside its question. The scheme's name may be in any case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str()).split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

pub(crate) fn send(answer: Answer, takes_gzip: bool) -> Response<Body> {
    let mut response = Response::builder()
        .status(answer.status)
        .header(header::CONTENT_TYPE, answer.content_type)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::CONTENT_SECURITY_POLICY, POLICY)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header("cross-origin-resource-policy", "same-origin");
    let mut body = answer.body;
    if takes_gzip && body.len() >= COMPRESSED_BYTES_MIN {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        if encoder.write_all(&body).is_ok()
            && let Ok(smaller) = encoder.finish()
        {
            body = smaller;
            response = response.header(header::CONTENT_ENCODING, "gzip");
        }
    }
    response.body(Body::from(body)).unwrap_or_default()
}
