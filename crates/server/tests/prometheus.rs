//! Check that a real Prometheus takes the monitor's metrics, that its own checks find nothing to
//! say, and that its quantiles are ours within a bucket. Skipped where there is no Prometheus.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration as Time, Instant};

use abi::monitor::Mode;
use abi::monitor::Phase;
use event::{Cpu, Duration};
use monitor::{Histogram, Interval, Metrics, Run, Scope, Series, Task, Worst};
use server::{Answer, Pages, serve};

/// Four bounds an octave: a quantile may lie anywhere between two.
const BUCKET_SHARE: f64 = 0.25;
/// Eight native bounds an octave, and one of ours.
const NATIVE_SHARE: f64 = 0.0905 + 0.0625;
const READY_MAX: Time = Time::from_secs(60);

struct Served(Arc<Metrics>);

impl Pages for Served {
    fn answer(&self, path: &str, _query: &str, accept: &str) -> Option<Answer> {
        let (content_type, body) = self.0.told_to(accept);
        (path == "/metrics").then_some(Answer {
            status: 200,
            content_type,
            body,
        })
    }
}

/// Samples from 10 us to 1.3 ms, fewer the longer they are, and more of them than 32 bits hold.
fn histogram() -> Histogram {
    let buckets = 160..280u16;
    Histogram(
        buckets
            .map(|bucket| (bucket, (280 - u64::from(bucket)).pow(5)))
            .collect(),
    )
}

/// The longest, a moment ago.
fn worst() -> Worst {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let task = Task {
        name: "control".to_owned(),
        ..Task::default()
    };
    Worst {
        scope: Scope::RealTime,
        phase: Phase::TimerWakeupSwitch.into(),
        cpu: Cpu(0),
        value: Duration::from_us(900),
        at_ns: now.expect("after 1970").as_nanos() as i64,
        timer: None,
        parts: [Duration::ZERO; 3],
        victim: Some(task),
        culprit: None,
        call: None,
        function: None,
        mode: Mode::User,
        stack: Vec::new(),
        key: None,
    }
}

/// What an interval counts.
fn interval() -> Interval {
    Interval {
        series: vec![Series {
            scope: Scope::RealTime,
            phase: Phase::TimerWakeupSwitch.into(),
            cpu: Cpu(0),
            sum: Duration::from_ms(5),
            min: Duration::from_us(10),
            max: Duration::from_ms(1),
            histogram: histogram(),
        }],
        worst: vec![worst()],
        ..Interval::default()
    }
}

fn metrics() -> Arc<Metrics> {
    let (metrics, interval) = (Metrics::new(&Run::default()), interval());
    metrics.add(&interval);
    metrics.closed(&interval, 0, 4096);
    Arc::new(metrics)
}

fn is_there(program: &str) -> bool {
    let tried = Command::new(program).arg("--version").output();
    tried.is_ok_and(|output| output.status.success())
}

fn get(host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(host).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, target: &str, features: &str) -> (Running, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let host = format!("127.0.0.1:{}", port.expect("a free port").port());
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: rtscope\n  \
         static_configs: [{{targets: ['{target}']}}]\n"
    );
    std::fs::write(&config, text).expect("a configuration");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={host}"))
        .arg(format!("--enable-feature={features}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    (Running(child.expect("it starts")), host)
}

/// The value of a query, once there is one.
fn query(host: &str, expression: &str) -> f64 {
    query_until(host, expression, |_| true)
}

/// The value of a query, once there is one that fits.
fn query_until(host: &str, expression: &str, fits: impl Fn(f64) -> bool) -> f64 {
    let begun = Instant::now();
    let encoded: String = expression
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    loop {
        let answer = get(host, &format!("/api/v1/query?query={encoded}"));
        let answer = answer.unwrap_or_default();
        let value = answer.rsplit_once("\"value\":[").and_then(|(_, value)| {
            let text = value.split('"').nth(1)?;
            text.parse().ok()
        });
        if let Some(value) = value.filter(|value| fits(*value)) {
            return value;
        }
        assert!(begun.elapsed() < READY_MAX, "{expression}: {answer}");
        std::thread::sleep(Time::from_millis(100));
    }
}

#[test]
fn prometheus_takes_the_metrics_and_its_quantiles_are_ours() {
    let name = "prometheus_takes_the_metrics_and_its_quantiles_are_ours";
    if !is_there("prometheus") {
        return testkit::skip(name, "no prometheus; apt-get install prometheus");
    }
    let listening = serve(Arc::new(Served(metrics())), 0).expect("it listens");
    let target = listening.url["http://".len()..]
        .trim_end_matches('/')
        .to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let (_running, host) = start(folder.path(), &target, "exemplar-storage");
    let series = "{scope=\"realtime\",phase=\"timer_wakeup_switch\"}";
    let samples = query(&host, &format!("rtscope_phase_seconds_count{series}"));
    // Exact as far as Prometheus's own numbers are.
    assert_eq!(samples, histogram().samples() as f64);
    for quantile in [0.5, 0.9, 0.99, 0.999] {
        let expression =
            format!("histogram_quantile({quantile}, rtscope_phase_seconds_bucket{series})");
        let theirs = query(&host, &expression);
        let ours = histogram()
            .quantile(quantile, Duration::from_ms(2000))
            .expect("samples");
        let ours = ours.as_ns() as f64 / 1e9;
        let apart = (theirs - ours).abs() / ours;
        assert!(apart <= BUCKET_SHARE, "{quantile}: {theirs} beside {ours}");
    }
    // Who was late comes along as an exemplar.
    let series =
        "/api/v1/query_exemplars?query=rtscope_phase_seconds_bucket&start=0&end=9999999999";
    let answer = get(&host, series).unwrap_or_default();
    assert!(answer.contains("\"victim\":\"control\""), "{answer}");
    assert!(answer.contains("\"value\":\"0.0009\""), "{answer}");
}

#[test]
fn prometheus_takes_native_histograms_whose_quantiles_are_ours() {
    let name = "prometheus_takes_native_histograms_whose_quantiles_are_ours";
    if !is_there("prometheus") {
        return testkit::skip(name, "no prometheus; apt-get install prometheus");
    }
    let listening = serve(Arc::new(Served(metrics())), 0).expect("it listens");
    let target = listening.url["http://".len()..].trim_end_matches('/');
    let folder = tempfile::tempdir().expect("a folder");
    let features = "native-histograms,exemplar-storage";
    let (_running, host) = start(folder.path(), target, features);
    let series = "rtscope_phase_seconds{scope=\"realtime\",phase=\"timer_wakeup_switch\"}";
    let samples = query(&host, &format!("histogram_count({series})"));
    assert_eq!(samples, histogram().samples() as f64);
    for quantile in [0.5, 0.9, 0.99, 0.999] {
        let theirs = query(&host, &format!("histogram_quantile({quantile}, {series})"));
        let ours = histogram()
            .quantile(quantile, Duration::from_ms(2000))
            .expect("samples");
        let apart = (theirs * 1e9 / ours.as_ns() as f64 - 1.0).abs();
        assert!(
            apart <= NATIVE_SHARE,
            "{quantile}: {theirs} s beside {ours}"
        );
    }
    // What is no histogram comes along.
    assert_eq!(query(&host, "rtscope_monitor_store_bytes"), 4096.0);
}

/// The queries of the dashboard's panels.
fn dashboard_queries() -> Vec<String> {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let dashboard = std::fs::read_to_string(packaging.join("grafana/rtscope-monitor.json"));
    let dashboard: serde_json::Value =
        serde_json::from_str(&dashboard.expect("a file")).expect("json");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let query = |target: &serde_json::Value| target["expr"].as_str().expect("a query").to_owned();
    targets.flatten().map(query).collect()
}

#[test]
fn every_query_of_the_dashboard_has_data_in_a_real_prometheus() {
    let name = "every_query_of_the_dashboard_has_data_in_a_real_prometheus";
    if !is_there("prometheus") {
        return testkit::skip(name, "no prometheus; apt-get install prometheus");
    }
    let metrics = metrics();
    let listening = serve(Arc::new(Served(Arc::clone(&metrics))), 0).expect("it listens");
    let target = listening.url["http://".len()..].trim_end_matches('/');
    let folder = tempfile::tempdir().expect("a folder");
    let (_running, host) = start(folder.path(), target, "exemplar-storage");
    let (ended, end) = std::sync::mpsc::channel::<()>();
    // A rate needs counts that grow.
    let mut counted = interval();
    let mut switches = counted.series[0].clone();
    switches.phase = Phase::Switch.into();
    counted.series.push(switches);
    (counted.head.lost, counted.head.cost) = (1, Duration::from_us(500));
    let counting = std::thread::spawn(move || {
        let pause = Time::from_millis(200);
        while end.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            metrics.add(&counted);
        }
    });
    let queries = dashboard_queries();
    assert!(queries.len() >= 7, "{queries:?}");
    for query in queries {
        let query = query.replace("$__rate_interval", "5s");
        let query = query
            .replace("$instance", ".*")
            .replace("$scope", "realtime");
        assert!(!query.contains('$'), "{query}");
        // Where nothing grows, the quantile of a rate is no number.
        let is_zero_fine = query.contains("unsaved");
        query_until(&host, &format!("max({query})"), |value| {
            value.is_finite() && (value > 0.0 || is_zero_fine)
        });
    }
    drop(ended);
    counting.join().expect("it ends");
}

#[test]
fn promtool_finds_nothing_to_say_about_metrics_and_alerts() {
    let name = "promtool_finds_nothing_to_say_about_metrics_and_alerts";
    if !is_there("promtool") {
        return testkit::skip(name, "no promtool; apt-get install prometheus");
    }
    let silent = |arguments: &[&str], input: &str| {
        let mut command = Command::new("promtool");
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    };
    silent(&["check", "metrics"], &metrics().text());
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let alerts = packaging.join("prometheus/rtscope-alerts.yml");
    silent(&["check", "rules", alerts.to_str().expect("a text")], "");
    // Every query of the dashboard is one.
    let rule = |(number, query): (usize, String)| {
        let query = query.replace("$__rate_interval", "5m");
        format!("  - {{record: 'query{number}', expr: '{query}'}}\n")
    };
    let rules: String = dashboard_queries()
        .into_iter()
        .enumerate()
        .map(rule)
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rules.yml");
    let text = format!("groups:\n- name: dashboard\n  rules:\n{rules}");
    std::fs::write(&file, text).expect("written");
    silent(&["check", "rules", file.to_str().expect("a text")], "");
}

#[test]
fn a_page_is_for_this_machine_by_get_and_a_taken_port_is_said() {
    let listening = serve(Arc::new(Served(metrics())), 0).expect("it listens");
    let host = listening.url["http://".len()..]
        .trim_end_matches('/')
        .to_owned();
    let check = |request: String, expect: u16| {
        let mut stream = TcpStream::connect(&host).expect("a connection");
        stream.write_all(request.as_bytes()).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let line = answer.lines().next().unwrap_or_default();
        assert!(
            line.starts_with(&format!("HTTP/1.1 {expect} ")),
            "{request}: {line}"
        );
    };
    let ask = |method: &str, path: &str, host: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    check(ask("GET", "/metrics", &host), 200);
    check(ask("HEAD", "/metrics", &host), 200);
    check(ask("GET", "/metrics", "attacker.example"), 403);
    check(ask("POST", "/metrics", &host), 405);
    check(ask("GET", "/../../etc/passwd", &host), 404);
    check(ask("GET", &format!("/{}", "a".repeat(2000)), &host), 414);
    let port = host
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    let refused = serve(Arc::new(Served(metrics())), port.expect("a port"));
    let Err(error) = refused else {
        panic!("the port was free");
    };
    assert!(
        error.fixed_by().expect("a fix").contains("--port"),
        "{error:#}"
    );
}

#[test]
fn who_comes_from_elsewhere_must_know_the_token_for_all_that_is_told() {
    let token = "0123456789abcdef".to_owned();
    let address = "127.0.0.1:0".parse().expect("an address");
    let pages = Arc::new(Served(metrics()));
    let listening = server::serve_known(pages, address, token.clone()).expect("it listens");
    assert!(!listening.url.contains(&token), "it is for no journal");
    let host = listening.url["http://".len()..]
        .trim_end_matches('/')
        .to_owned();
    let check = |path: &str, header: &str, expect: u16| {
        let mut stream = TcpStream::connect(&host).expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: rt7.example:9464\r\n{header}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expect} ")),
            "{path} {header}: {answer}"
        );
    };
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    check("/metrics", &bearer(&token), 200);
    check(&format!("/metrics?token={token}"), "", 200);
    check("/metrics", "", 401);
    check("/metrics", &bearer("0123456789abcdeX"), 401);
    check("/metrics", &bearer(""), 401);
    check("/metrics?token=", "", 401);
    check("/api/v1/monitor", "", 401);
    check("/api/v1/monitor?token=0123", "", 401);
    // Of the page's own files nobody learns anything.
    check("/monitor.css", "", 404);
}

#[test]
fn clients_that_ask_for_nothing_keep_nobody_out() {
    const SILENT: usize = 300;
    let listening = serve(Arc::new(Served(metrics())), 0).expect("it listens");
    let host = listening.url["http://".len()..]
        .trim_end_matches('/')
        .to_owned();
    let silent = |begin: &str| {
        let mut stream = TcpStream::connect(&host).expect("a connection");
        stream.write_all(begin.as_bytes()).ok();
        stream
    };
    let begins = ["", "G", "GET /metrics HTTP/1.1\r\nHost: "];
    let mut held: Vec<_> = begins
        .iter()
        .cycle()
        .take(SILENT)
        .map(|begin| silent(begin))
        .collect();
    let answer = get(&host, "/metrics").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The first of them made place: their files are closed.
    held[0].set_read_timeout(Some(READY_MAX)).expect("set");
    let left = held[0].read(&mut [0]);
    assert!(!matches!(&left, Ok(1..)), "{left:?}");
    let is_waiting = left.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!is_waiting, "it is still open");
}
