//! The page of `rtscope view` in a browser: from a late task to its culprit. Needs Node.js with the
//! packages of `ui/`, and Chromium; no privilege.

mod story;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use story::{Dialect, IDLE, Story, Thread};

const VICTIM: Thread = (100, "victim", 49);
const HOG: Thread = (200, "hog <img>", 39);
const FAIR: Thread = (300, "fair", 120);

/// Every 10 ms an interrupt wakes the victim, behind a hog; in the end events are lost.
fn trace(dir: &Path) {
    let mut story = Story::default().at(10, 0).switch(VICTIM, 1, FAIR);
    story = story.at(20, 1).switch(FAIR, 1, IDLE);
    for turn in 0..40 {
        let us = 1_000 + turn * 10_000;
        story = story.at(us, 0).switch(FAIR, 0, HOG);
        story = story
            .at(us + 10, 0)
            .irq(9, "eth0")
            .at(us + 12, 0)
            .wakeup(VICTIM, 0);
        story = story.at(us + 14, 0).irq_end(9);
        story = story.at(us + 500 + turn * 3, 0).switch(HOG, 1, VICTIM);
        story = story.at(us + 700, 0).switch(VICTIM, 1, FAIR);
    }
    story = story.loses(5).at(500_000, 0).switch(FAIR, 0, HOG);
    story.write(dir, Dialect::TODAY);
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn serve(trace: &Path) -> (Server, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("view").arg(trace).arg("--no-cache");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Server(command.spawn().expect("rtscope starts"));
    let out = server.0.stdout.take().expect("its output");
    let mut url = String::new();
    BufReader::new(out).read_line(&mut url).expect("its URL");
    (server, url.trim().to_owned())
}

fn find(names: &[&str]) -> Option<PathBuf> {
    names.iter().find_map(|name| which::which(name).ok())
}

#[test]
fn a_click_on_a_latency_leads_to_its_culprit_and_a_link_leads_there_again() {
    let skip = |why: &str| testkit::skip("view_page", why);
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let Some(node) = find(&["node"]) else {
        return skip("no Node.js");
    };
    let Some(browser) = find(&["chromium", "chromium-browser"]) else {
        return skip("no Chromium: apt-get install chromium");
    };
    if !ui.join("node_modules/playwright-core").is_dir() || !server::has_page() {
        return skip("the page was not built: make ui");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (dir, home) = (folder.path().join("trace"), folder.path().join("home"));
    std::fs::create_dir(&home).expect("a home of the browser's own");
    trace(&dir);
    let (_server, url) = serve(&dir);
    let pictures = std::env::var_os("RTSCOPE_PICTURES").map(PathBuf::from);
    let pictures = pictures.unwrap_or_else(|| folder.path().to_owned());
    let mut test = Command::new(node);
    test.arg(ui.join("test/page.mjs"))
        .arg(browser)
        .arg(&url)
        .arg(pictures);
    let output = test.env("HOME", home).output().expect("node starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
