//! Pages of others than a trace: such that anybody on this machine may read, as metrics are, and
//! such that need a token. They only read, and no page from elsewhere can ask.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, header};
use event::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use crate::answer::Answer;
use crate::http::{Listening, bearer, is_same, loopback, send, start, text, token};
use crate::question::Words;

/// Questions that are answered at once.
const AT_ONCE: usize = 2;
/// No page has a longer name.
const PATH_BYTES_MAX: usize = 1024;

/// Who answers.
pub trait Pages: Send + Sync + 'static {
    /// The page at `path`; none when there is none. `accept` is what the client says that it reads.
    fn answer(&self, path: &str, query: &str, accept: &str) -> Option<Answer>;
}

struct Door {
    pages: Arc<dyn Pages>,
    /// What this machine may be called; none: who asks comes from elsewhere.
    hosts: Option<[String; 2]>,
    /// Who asks for anything that is told must know it; none: everybody may ask.
    token: Option<String>,
    places: Semaphore,
}

/// Serves pages on this machine alone, on `port` or, when it is zero, on any that is free.
///
/// # Errors
/// When the port is taken, or the operating system refuses.
pub fn serve(pages: Arc<dyn Pages>, port: u16) -> Result<Listening> {
    open(pages, loopback(port), None, true)
}

/// Serves pages on an address that others can reach, to who knows the token of its owner: it has to
/// come with metrics and with whatever is below `/api/`. The files of a page tell nothing.
///
/// # Errors
/// As [`serve`].
pub fn serve_known(pages: Arc<dyn Pages>, address: SocketAddr, token: String) -> Result<Listening> {
    open(pages, address, Some(token), false)
}

/// The same for who knows the token of the URL, which has to come with whatever is below `/api/`.
///
/// # Errors
/// As [`serve`].
pub fn serve_private(pages: Arc<dyn Pages>, port: u16) -> Result<Listening> {
    open(pages, loopback(port), Some(token()?), true)
}

fn open(
    pages: Arc<dyn Pages>,
    address: SocketAddr,
    token: Option<String>,
    is_local: bool,
) -> Result<Listening> {
    start(address, "rtscope-pages", |hosts| {
        // A token that somebody gave us is for him to know, and for no journal.
        let shown = token.as_ref().filter(|_| is_local);
        let query = shown.map(|token| format!("?token={token}"));
        let door = Arc::new(Door {
            pages,
            hosts: is_local.then_some(hosts),
            token,
            places: Semaphore::new(AT_ONCE),
        });
        let router = Router::new().fallback(ask).with_state(door);
        (router, query.unwrap_or_default())
    })
}

fn refuse(status: u16, what: &str, found: &str, fix: &str) -> Response<Body> {
    let found: String = found.chars().take(80).collect();
    let error = Error::new(ErrorKind::InvalidInput, what);
    let error = error.found(format!("'{found}'")).fix(fix);
    send(Answer::refusal(status, &error), false)
}

/// Whether anything is told there; all else is the page's own files.
fn tells(path: &str) -> bool {
    path.starts_with("/api/") || path == "/metrics"
}

async fn ask(State(door): State<Arc<Door>>, request: Request) -> Response<Body> {
    let (head, _) = request.into_parts();
    let host = text(&head.headers, header::HOST.as_str());
    let is_foreign = |hosts: &[String; 2]| !hosts.iter().any(|known| known == host);
    if door.hosts.as_ref().is_some_and(is_foreign) {
        let fix = "ask by the address that it printed, on this machine";
        return refuse(403, "only this machine is served", host, fix);
    }
    if head.method != Method::GET && head.method != Method::HEAD {
        let found = head.method.as_str();
        return refuse(405, "this server only reads", found, "ask with GET");
    }
    let path = head.uri.path().to_owned();
    if path.len() > PATH_BYTES_MAX {
        return refuse(414, "no page has so long a name", &path, "open /");
    }
    let query = head.uri.query().unwrap_or_default().to_owned();
    if let Some(token) = door.token.as_ref().filter(|_| tells(&path)) {
        let words = Words::parse(&query);
        let told = bearer(&head.headers).unwrap_or(words.text("token"));
        if !is_same(told, token) {
            let fix = "open the URL with its token, as in /?token=TOKEN, or send it as a bearer's";
            return refuse(401, "the token is missing or wrong", "a token", fix);
        }
    }
    let accept = text(&head.headers, header::ACCEPT.as_str()).to_owned();
    let Ok(_place) = door.places.acquire().await else {
        return refuse(503, "the server ends", &path, "start it again");
    };
    let pages = Arc::clone(&door.pages);
    let asked = path.clone();
    let answered = tokio::task::spawn_blocking(move || pages.answer(&asked, &query, &accept));
    let takes_gzip = text(&head.headers, header::ACCEPT_ENCODING.as_str()).contains("gzip");
    match answered.await {
        Ok(Some(answer)) => send(answer, takes_gzip),
        Ok(None) => refuse(404, "there is no such page", &path, "open / or /metrics"),
        Err(_) => refuse(500, "the answer failed", "a panic", "please report it"),
    }
}
