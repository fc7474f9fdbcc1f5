//! The page that is inside of the program, when it was built where Node.js is.

use crate::answer::Answer;

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Whether this program has the page.
pub fn has_page() -> bool {
    !FILES.is_empty()
}

const WITHOUT: &str = "<!doctype html><meta charset=utf-8><title>rtscope</title>\
<h1>This rtscope was built without its page</h1>\
<p>Node.js 18 or later was not there when it was built. Install it, then in the source:</p>\
<pre>make ui build</pre>\
<p>The API of docs/view.md is here all the same.</p>";

/// A file of the page of a trace.
pub(crate) fn file(path: &str) -> Option<Answer> {
    named(path, "index.html")
}

/// A file of the monitor's page, which is `/`.
pub fn monitor_page(path: &str) -> Option<Answer> {
    named(path, "monitor.html")
}

/// A file of the page of a watch, which is `/`.
pub fn hits_page(path: &str) -> Option<Answer> {
    named(path, "hits.html")
}

/// A file of the pages; at `/` the one that is called `first`.
fn named(path: &str, first: &str) -> Option<Answer> {
    let name = match path {
        "/" => first,
        path => path.strip_prefix('/')?,
    };
    let content_type = match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => "application/octet-stream",
    };
    let found = FILES.iter().find(|(known, _)| *known == name);
    let body = match found {
        Some((_, bytes)) => bytes.to_vec(),
        None if name == first => WITHOUT.as_bytes().to_vec(),
        None => return None,
    };
    Some(Answer {
        status: 200,
        content_type,
        body,
    })
}
