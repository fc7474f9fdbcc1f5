//! The page of a trace that is still recorded: what came since is read, and what is gone is said.
//! No privilege.

mod story;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Served, View, ViewOptions};
use story::{Dialect, IDLE, Story, Thread};

const ONE: Thread = (100, "one", 20);
const TURNS: u64 = 40;
/// It is said within seconds; a busy machine may want more.
const PATIENCE: Duration = Duration::from_secs(90);

/// So many switches, in packets of ten.
fn story(turns: u64) -> Story {
    let mut story = Story::default();
    for turn in 0..turns {
        let us = 1_000 * turn;
        story = story.at(us + 10, 0).switch(IDLE, 0, ONE);
        story = story.at(us + 500, 0).switch(ONE, 1, IDLE);
        if turn % 5 == 4 {
            // A packet ends, and nothing is lost.
            story = story.at(us + 600, 0).loses(0);
        }
    }
    story
}

/// What is served while the trace changes.
struct Door(Arc<Served>);

impl Door {
    /// The status of an answer, and what it says.
    fn ask(&self, question: &str) -> (u16, Value) {
        let (path, words) = question.split_once('?').unwrap_or((question, ""));
        let answer = self.0.view().answer(&format!("/api/v1/{path}"), words);
        let value = serde_json::from_slice(&answer.body).expect("JSON");
        (answer.status, value)
    }

    /// Asks what is known until it `is_so`.
    fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (_, info) = self.ask("info");
            if is_so(&info) {
                return info;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {info:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn what_is_added_to_a_trace_is_read_and_what_is_gone_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (dir, early) = (folder.path().join("trace"), folder.path().join("early"));
    story(TURNS).write(&dir, Dialect::TODAY);
    story(TURNS / 2).write(&early, Dialect::TODAY);
    let read = |dir: &Path| std::fs::read(dir.join("channel0_0")).expect("a stream");
    let (whole, begin) = (read(&dir), read(&early));
    assert!(whole.starts_with(&begin), "packets that were written stay");
    let stream = dir.join("channel0_0");
    std::fs::write(&stream, &begin).expect("a shorter stream");

    let options = ViewOptions {
        cache: Some(folder.path().join("kept")),
        ..ViewOptions::default()
    };
    let view = View::open(std::slice::from_ref(&dir), options).expect("a trace");
    let door = Door(Arc::new(Served::new(Arc::new(view))));
    let (served, stop) = (Arc::clone(&door.0), Arc::new(AtomicBool::new(false)));
    let raised = Arc::clone(&stop);
    let keeper = std::thread::spawn(move || served.keep_up(&raised));
    let info = door.wait("the first reading", |info| info["progress"]["done"] == true);
    assert_eq!(info["events"], TURNS, "{info:#}");
    assert_eq!(
        (&info["grown"], &info["stale"]),
        (&false.into(), &false.into())
    );

    let mut file = OpenOptions::new()
        .append(true)
        .open(&stream)
        .expect("the stream");
    file.write_all(&whole[begin.len()..]).expect("room for it");
    // What was read before can be asked for all the while.
    let (status, rows) = door.ask("events?first=0&count=5");
    assert_eq!(
        (status, rows["rows"].as_array().map(Vec::len)),
        (200, Some(5))
    );
    let info = door.wait("reading again", |info| info["generation"] == 1);
    assert_eq!(info["events"], 2 * TURNS, "{info:#}");
    assert_eq!(
        (&info["grown"], &info["stale"]),
        (&false.into(), &false.into())
    );
    let (status, rows) = door.ask(&format!("events?first={}&count=5", 2 * TURNS - 1));
    assert_eq!(
        (status, rows["rows"].as_array().map(Vec::len)),
        (200, Some(1))
    );

    std::fs::remove_dir_all(&dir).expect("it was there");
    let info = door.wait("that it is gone", |info| info["stale"] == true);
    assert_eq!(info["events"], 2 * TURNS, "what is known stays");
    let (status, refused) = door.ask("events?first=0&count=5");
    assert_eq!(status, 409, "{refused:#}");
    let (status, tracks) = door.ask("tracks");
    assert_eq!((status, &tracks["total"]), (200, &1.into()));

    // It comes back, longer than the one before.
    story(TURNS + 20).write(&dir, Dialect::TODAY);
    let info = door.wait("the one that is there now", |info| info["generation"] == 2);
    assert_eq!(info["events"], 2 * (TURNS + 20), "{info:#}");
    stop.store(true, Ordering::Relaxed);
    keeper.join().expect("it ends");
    let kept = std::fs::read_dir(folder.path().join("kept")).expect("a cache");
    assert_eq!(kept.count(), 1, "no file is left unfinished");
}
