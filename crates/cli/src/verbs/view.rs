//! `rtscope view`: serves a page about a trace on this machine until Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use event::{Error, ErrorKind, Result};
use server::{Served, View, ViewOptions, has_page, listen};

use crate::exit::{Outcome, print};
use crate::flags;
use crate::signals;
use crate::verbs::external;

/// Between two looks at whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs the verb.
pub fn run(typed: &flags::View) -> Result<Outcome> {
    let foreign = typed
        .report
        .iter()
        .map(|name| external::for_view(name, &typed.traces));
    let options = ViewOptions {
        foreign: foreign.collect::<Result<_>>()?,
        cache: cache().filter(|_| !typed.no_cache),
        build: format!("{} {}", env!("CARGO_PKG_VERSION"), env!("RTSCOPE_COMMIT")),
    };
    let view = Arc::new(View::open(&typed.traces, options)?);
    let served = Arc::new(Served::new(view));
    let stop = signals::take_over()?;
    let listening = listen(Arc::clone(&served), typed.port)?;
    if !has_page() {
        note!(
            "warning: this rtscope was built without its page; the API is there\n  \
             fix:  install Node.js 18 or later, then 'make build' in the source"
        );
    }
    print(&format!("{}\n", listening.url))?;
    note!("open it in a browser on this machine; Ctrl-C ends it");
    let builder = {
        let (served, stop) = (Arc::clone(&served), Arc::clone(&stop));
        std::thread::Builder::new()
            .name("rtscope-index".to_owned())
            .spawn(move || served.keep_up(&stop))
    };
    let builder = builder.map_err(|error| Error::io("cannot start a thread", error))?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY);
    }
    drop(listening);
    match builder.join() {
        Ok(()) => Ok(Outcome::Fine),
        Err(_) => Err(Error::new(ErrorKind::Corrupt, "the index failed")
            .found("a panic")
            .fix("please report it, with 'rtscope info TRACE'")),
    }
}

/// Where indexes are kept; nowhere for who has no home.
fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    folder.is_absolute().then(|| folder.join("rtscope/view"))
}
