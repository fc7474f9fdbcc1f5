//! The pages of `rtscope view`, of the monitor and of a watch in a browser: from a late task to its
//! culprit. Needs Node.js with the packages of `ui/`, and Chromium; no privilege.

mod story;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration};
use monitor::{
    Appended, Head, Histogram, Interval, Kind, Late as Told, Limits, PageQuestion, Range, Run,
    Scope, Series, Store, Task as Late, Worst, page_json,
};
use server::{Answer, Listening, Pages, Served, View, monitor_page};
use story::{Dialect, IDLE, Story, Thread};
use testkit::SyntheticTrace;

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
    serve_with(trace, &[])
}

fn serve_with(trace: &Path, reports: &[&Path]) -> (Server, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.arg("view").arg(trace).arg("--no-cache");
    for report in reports {
        command.arg("--report").arg(report);
    }
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

/// What a test in a browser needs: Node.js, Chromium, the folder of the page; or why it cannot be.
fn browser() -> Result<(PathBuf, PathBuf, PathBuf), &'static str> {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let node = find(&["node"]).ok_or("no Node.js")?;
    let browser = find(&["chromium", "chromium-browser"]);
    let browser = browser.ok_or("no Chromium: apt-get install chromium")?;
    match ui.join("node_modules/playwright-core").is_dir() && server::has_page() {
        true => Ok((node, browser, ui)),
        false => Err("the page was not built: make ui"),
    }
}

/// Runs a script of `ui/test` against a page; it keeps pictures where `RTSCOPE_PICTURES` says.
fn drive(name: &str, script: &str, url: &str, folder: &Path) {
    let (node, browser, ui) = match browser() {
        Ok(found) => found,
        Err(why) => return testkit::skip(name, why),
    };
    let home = folder.join("home");
    std::fs::create_dir(&home).expect("a home of the browser's own");
    let pictures = std::env::var_os("RTSCOPE_PICTURES").map(PathBuf::from);
    let pictures = pictures.unwrap_or_else(|| folder.to_owned());
    let mut test = Command::new(node);
    test.arg(ui.join("test").join(script));
    test.arg(browser).arg(url).arg(pictures);
    let output = test.env("HOME", home).output().expect("node starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_click_on_a_latency_leads_to_its_culprit_and_a_link_leads_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("trace");
    trace(&dir);
    let (_server, url) = serve(&dir);
    drive("view_page", "page.mjs", &url, folder.path());
}

/// Speaks LAMI: three rows, the first a millisecond behind the begin of the range.
const MINE: &str = r#"
import json, sys
if "--metadata" in sys.argv:
    kinds = ["process", "duration", "timestamp", "time-range", "size", "ratio", "int"]
    columns = [{"title": kind.title(), "class": kind} for kind in kinds]
    table = {"title": "Late <b>", "column-descriptions": columns}
    print(json.dumps({"table-classes": {"late": table}}))
else:
    begin = next(int(word[8:]) for word in sys.argv if word.startswith("--begin="))
    value = lambda kind, value: {"class": kind, "value": value}
    time = lambda us: value("timestamp", begin + us * 1000)
    def row(us, ns):
        span = {"class": "time-range", "begin": time(us), "end": time(us + 4000)}
        who = {"class": "process", "name": "victim\u202e", "tid": 100}
        numbers = [value("size", 2000), value("ratio", 0.25), value("int", 7)]
        return [who, value("duration", ns), time(us), span] + numbers
    rows = [row(1000, 2_000_000), row(2000, 9), row(3000, 900_000)]
    print(json.dumps({"results": [{"class": "late", "data": rows}]}))
"#;

#[test]
fn every_tab_is_taken_out_as_text_and_picture_and_tables_of_others_lead_to_the_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("trace");
    trace(&dir);
    let mine = folder.path().join("mine.py");
    std::fs::write(&mine, MINE).expect("it is written");
    let (_server, url) = serve_with(&dir, &[&mine]);
    drive("view_taken", "taken.mjs", &url, folder.path());
}

/// Traces that are odd: of no event, of hundreds of CPUs with hostile names, of very many threads,
/// of one event, of events that are missing on no CPU that anybody knows.
fn odd_traces() -> [SyntheticTrace; 5] {
    let fair = |tid| testkit::Task::fair(tid, "a <b>\u{202e}&'\"");
    let long = "x<img src=x>\u{202e}".repeat(4_000);
    let text = event::Value::Text(long.clone().into());
    let hostile = SyntheticTrace::new().environment("hostname", &long);
    let mut hostile = hostile.at(10).event("note", &[("msg", text)]);
    for cpu in 0..400 {
        let tid = 1_000 + cpu as i32;
        hostile = hostile.after(1).cpu(cpu).run(fair(tid));
    }
    let mut crowd = SyntheticTrace::new();
    for thread in 0..100_000 {
        let tid = 1_000 + thread as i32;
        crowd = crowd
            .at(10 + thread)
            .waking(testkit::Task::fair(tid, "w"), 0);
    }
    let one = SyntheticTrace::new().at(10).cpu(0).run(fair(7));
    let lossy = SyntheticTrace::new().at(10).cpu(0).run(fair(7));
    let lossy = lossy.lost_on(None, 20_000, 900_000).at(1_000).run(fair(8));
    [SyntheticTrace::new(), hostile, crowd, one, lossy]
}

#[test]
fn the_page_of_an_odd_trace_is_usable_in_every_tab() {
    let folder = tempfile::tempdir().expect("a folder");
    let served: Vec<Listening> = odd_traces()
        .into_iter()
        .map(|trace| {
            let view = Arc::new(View::of(trace.build(), "odd \u{202e}<b>".to_owned()));
            view.build(&AtomicBool::new(false));
            server::listen(Arc::new(Served::new(view)), 0).expect("it listens")
        })
        .collect();
    let urls: Vec<&str> = served.iter().map(|served| &*served.url).collect();
    drive("odd_traces", "odd.mjs", &urls.join(","), folder.path());
}

/// Frequencies, idle states, and an application that says what it does.
fn with_an_application() -> SyntheticTrace {
    use event::Value;
    let app = testkit::Task::fair(7, "app");
    let power = |trace: SyntheticTrace, name: &str, cpu: u64, state: u64| {
        let fields = [("state", state), ("cpu_id", cpu)];
        let fields = fields.map(|(name, value)| (name, Value::Unsigned(value)));
        trace.event(name, &fields)
    };
    let mut trace = SyntheticTrace::new().at(1).block(testkit::Task::IDLE, app);
    for turn in 0..200 {
        let khz = 800_000 + turn % 7 * 300_000;
        trace = power(trace.after(100), "power_cpu_frequency", 1, khz);
        trace = power(trace.after(50), "power_cpu_idle", 0, turn % 4);
        let cookie = ("cookie", Value::Unsigned(turn));
        let level = ("level", Value::Signed(turn as i64 % 50 - 5));
        trace = trace.in_task(Some(app.tid)).after(20);
        trace = trace.event("app:frame_begin", &[cookie.clone(), level]);
        let end = trace.after(30 + turn as i64 % 40);
        trace = end.event("app:frame_end", &[cookie]).in_task(None);
        trace = power(trace.after(50), "power_cpu_idle", 0, 0xffff_ffff);
    }
    trace
}

#[test]
fn frequencies_spans_counters_and_columns_are_shown_and_a_link_brings_them_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = with_an_application().build();
    let view = Arc::new(View::of(trace, "an application".to_owned()));
    view.build(&AtomicBool::new(false));
    let served = server::listen(Arc::new(Served::new(view)), 0).expect("it listens");
    drive("view_beside", "beside.mjs", &served.url, folder.path());
}

/// Two threads that wake each other, five times each.
fn ping_pong() -> SyntheticTrace {
    let (one, other) = (
        testkit::Task::fair(100, "one"),
        testkit::Task::fair(101, "other"),
    );
    let mut trace = SyntheticTrace::new().shows_timers().at(10).run(one);
    for _ in 0..5 {
        trace = trace.after(100).waking(other, 0).after(5);
        trace = trace.block(one, other).after(100).waking(one, 0);
        trace = trace.after(5).block(other, one);
    }
    trace.after(100).block(one, testkit::Task::IDLE)
}

#[test]
fn an_arrow_between_neighbours_says_who_woke_whom() {
    let folder = tempfile::tempdir().expect("a folder");
    let view = Arc::new(View::of(ping_pong().build(), "two".to_owned()));
    view.build(&AtomicBool::new(false));
    let served = server::listen(Arc::new(Served::new(view)), 0).expect("it listens");
    drive("view_arrows", "arrows.mjs", &served.url, folder.path());
}

/// Two CPUs with more to tell than a page has pixels, and a loss on one of them.
fn with_many_stretches() -> SyntheticTrace {
    let mut trace = SyntheticTrace::new().at(10);
    for turn in 0..6_000 {
        let task = testkit::Task::fair(100 + turn / 2 % 7, "worker");
        trace = trace.after(3).cpu(turn as u32 % 2).run(task).after(2);
        if turn % 3 == 0 {
            trace = trace.irq(9, "eth0").after(2).irq_end(9);
        }
        trace = trace
            .after(turn as i64 % 5)
            .block(task, testkit::Task::IDLE);
    }
    trace.lost(20_000, 23_000)
}

#[test]
fn a_timeline_of_many_stretches_is_on_the_screen_what_it_is_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let view = Arc::new(View::of(with_many_stretches().build(), "many".to_owned()));
    view.build(&AtomicBool::new(false));
    let served = server::listen(Arc::new(Served::new(view)), 0).expect("it listens");
    drive("view_columns", "columns.mjs", &served.url, folder.path());
}

/// A store as the monitor serves it.
struct Monitored(Mutex<Store>);

impl Pages for Monitored {
    fn answer(&self, path: &str, query: &str, _accept: &str) -> Option<Answer> {
        if path == "/api/v1/late" && query == "snapshot=hit-0001" {
            let page =
                "<style>p { color: red }</style><p style=\"margin: 0\">the whole answer of it";
            return Some(Answer {
                status: 200,
                content_type: "text/html",
                body: page.as_bytes().to_vec(),
            });
        }
        if path != "/api/v1/monitor" {
            return monitor_page(path);
        }
        let store = self.0.lock().expect("nobody panicked");
        let phase = query
            .split('&')
            .find_map(|word| word.strip_prefix("phase="));
        let phase = phase.and_then(|name| store.kind_named(name).expect("it reads"));
        let question = PageQuestion {
            range: Range::ALL,
            scope: None,
            phase,
        };
        let page = page_json(&store, question).expect("the store is whole");
        Some(Answer {
            status: 200,
            content_type: "application/json",
            body: page.to_string().into_bytes(),
        })
    }
}

/// A minute with one victim, which is later the later the minute is.
fn minute(number: i64) -> Interval {
    const MINUTE: Duration = Duration::from_ms(60_000);
    let task = |tid, prio, name: &str| {
        let name = name.to_owned();
        Some(Late { tid, prio, name })
    };
    let begin_ns = 1_700_000_000_000_000_000 + number * MINUTE.as_ns();
    let (value, short) = (Duration::from_us(300 * (number + 1)), Duration::from_us(20));
    let series = |cpu: u32| Series {
        scope: Scope::All,
        phase: Phase::Switch.into(),
        cpu: Cpu(cpu),
        sum: value,
        min: Duration::from_us(1),
        max: value,
        histogram: Histogram(vec![(150, 4_000), (180 + cpu as u16, 90), (300, 1)]),
    };
    let culprit = match number {
        2 => task(9, 39, "hog"),
        _ => task(0, 120, "swapper/1"),
    };
    let tracked = Kind::tracked("block", "device", "woken by");
    let mut minute = Interval {
        head: Head {
            begin_ns,
            end_ns: begin_ns + MINUTE.as_ns(),
            elapsed: MINUTE,
            ..Head::default()
        },
        series: vec![series(0), series(1)],
        worst: vec![Worst {
            scope: Scope::All,
            phase: Phase::Switch.into(),
            cpu: Cpu(1),
            value,
            at_ns: begin_ns + MINUTE.as_ns() / 2,
            timer: None,
            parts: [short, value - short, Duration::ZERO],
            victim: task(7, 49, "victim <b>"),
            culprit,
            call: Some("clock_nanosleep".to_owned()),
            function: Some("spin_forever+0x1".to_owned()),
            mode: Mode::Kernel,
            stack: vec!["spin_forever+0x1".to_owned()],
            key: None,
        }],
        // Of the second one a watch has the ledger.
        late: (number == 1)
            .then(|| told(begin_ns + MINUTE.as_ns() / 2, value))
            .into_iter()
            .collect(),
        ..Interval::default()
    };
    let longest = Worst {
        phase: tracked.clone(),
        key: Some("vda read".to_owned()),
        call: None,
        ..minute.worst[0].clone()
    };
    let of_tracker = Series {
        phase: tracked,
        ..series(1)
    };
    minute.add_tracked(of_tracker, Some(longest));
    minute
}

/// What a watch said of the victim.
fn told(at_ns: i64, latency: Duration) -> Told {
    Told {
        at_ns,
        latency,
        victim: Some(Late {
            tid: 7,
            prio: 49,
            name: "victim <b>".to_owned(),
        }),
        proven: true,
        sentence: "victim <b> was late: hog ran ahead of it".to_owned(),
        ledger: vec![("run-queue wait behind hog".to_owned(), latency)],
        advice: vec!["taskset -pc 0 9".to_owned()],
        snapshot: Some("/s/hit-0001".to_owned()),
        ..Told::default()
    }
}

#[test]
fn on_the_monitors_page_a_click_on_a_latency_shows_its_parts_and_who_had_the_cpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let limits = Limits {
        age: Duration::from_ns(i64::MAX),
        ..Limits::default()
    };
    let mut store = Store::create(&path, &Run::default(), 0, limits).expect("a store");
    for number in 0..3 {
        assert!(matches!(store.append(minute(number)), Appended::Stored));
    }
    let pages = Monitored(Mutex::new(Store::open(&path).expect("it opens")));
    let listening = server::serve(Arc::new(pages), 0).expect("it listens");
    drive("monitor_page", "monitor.mjs", &listening.url, folder.path());
}

/// What a watch tells of its hits: one, and two once the test has asked for the second.
struct Hits {
    is_second: AtomicBool,
    page: Vec<u8>,
}

impl Pages for Hits {
    fn answer(&self, path: &str, query: &str, _accept: &str) -> Option<Answer> {
        let (content_type, body) = match path {
            "/api/v1/hits" => {
                if query.contains("second=1") {
                    self.is_second.store(true, Ordering::Relaxed);
                }
                let total = 1 + usize::from(self.is_second.load(Ordering::Relaxed));
                let hit = |number: usize| {
                    let sentence = "victim was late: <img src=x> ran ahead of it";
                    serde_json::json!({
                        "number": number,
                        "wall_ns": 1_700_000_000_000_000_000i64,
                        "latency_ns": 520_000,
                        "task": { "name": "victim", "tid": 100, "prio": "rt 50" },
                        "sentence": (number == 1).then_some(sentence),
                        "conclusive": true,
                        "replaces": false,
                        "has_page": number == 1,
                        "snapshot": null,
                    })
                };
                let hits: Vec<_> = (1..=total).map(hit).collect();
                let list = serde_json::json!({ "total": total, "hits": hits });
                ("application/json", list.to_string().into_bytes())
            }
            "/api/v1/hit" if query.contains("number=1") => ("text/html", self.page.clone()),
            path => return server::hits_page(path),
        };
        Some(Answer {
            status: 200,
            content_type,
            body,
        })
    }
}

#[test]
fn on_the_page_of_a_watch_hits_appear_as_they_happen_each_with_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let victim = testkit::Task::rt(100, "victim", 50);
    let hog = testkit::Task::rt(200, "<img src=x>", 60);
    let trace = SyntheticTrace::new().at(10).block(victim, hog);
    let trace = trace.after(5).irq(9, "eth0").after(2).wake(victim);
    let trace = trace.after(2).irq_end(9).after(500).block(hog, victim);
    let trace = trace.after(20).block(victim, testkit::Task::IDLE);
    let view = View::of(trace.build(), "made up".to_owned());
    view.build(&AtomicBool::new(false));
    let latencies = view.answer("/api/v1/latencies", "search=victim&worst=1");
    let latencies: serde_json::Value = serde_json::from_slice(&latencies.body).expect("JSON");
    let worst = &latencies["worst"][0];
    let query = format!("task={}&end={}", worst["task"], worst["end_ns"]);
    let hits = Hits {
        is_second: AtomicBool::new(false),
        page: view.answer("/api/v1/incident", &query).body,
    };
    let listening = server::serve_private(Arc::new(hits), 0).expect("it listens");
    drive("watch_page", "hits.mjs", &listening.url, folder.path());
}
