//! The monitor as its service runs it: with the unit's user and rights, and told to systemd.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration as Time;

use monitor::{Range, Scope, Store};
use rustix::process::{Pid, Signal, kill_process};

/// Nobody's, as that of a dynamic user is.
const USER: u32 = 61_184;
const HEARD_MAX: Time = Time::from_secs(60);

/// What the unit says after `key=`.
fn said(key: &str) -> String {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let unit = std::fs::read_to_string(packaging.join("rtscope-monitor.service"));
    let unit = unit.expect("a unit");
    let mut lines = unit
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines
        .next()
        .unwrap_or_else(|| panic!("no {key}"))
        .to_owned()
}

/// As setpriv wants them.
fn rights(key: &str) -> String {
    let names = said(key).to_lowercase();
    let names = names.split_whitespace().map(|name| {
        let name = name.strip_prefix("cap_").expect("a capability");
        format!(",+{name}")
    });
    format!("-all{}", names.collect::<String>())
}

/// A monitor as the unit's user, until it is dropped.
struct Service(Child);

impl Service {
    fn start(folder: &Path, settings: &Path, notify: &Path) -> Service {
        let ambient = rights("AmbientCapabilities");
        let mut command = Command::new("setpriv");
        command
            .args([format!("--reuid={USER}"), format!("--regid={USER}")])
            .args(["--clear-groups", "--no-new-privs"])
            .arg(format!(
                "--bounding-set={}",
                rights("CapabilityBoundingSet")
            ))
            .arg(format!("--inh-caps={ambient}"))
            .arg(format!("--ambient-caps={ambient}"));
        let line = said("ExecStart");
        let words = line.split_whitespace().skip(1);
        let words = words.map(|word| match word {
            "/etc/rtscope/monitor.toml" => settings.as_os_str().to_owned(),
            word => word.into(),
        });
        command.arg(env!("CARGO_BIN_EXE_rtscope")).args(words);
        command
            .env("STATE_DIRECTORY", folder)
            .env("NOTIFY_SOCKET", notify);
        Service(command.stdout(Stdio::null()).spawn().expect("it starts"))
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id() as i32).expect("an id");
        kill_process(pid, signal).expect("sent");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until the service says this.
fn hear(socket: &UnixDatagram, expect: &str) {
    let mut heard = [0; 256];
    loop {
        let length = socket.recv(&mut heard).expect("it says something in time");
        let text = String::from_utf8_lossy(&heard[..length]);
        if text.lines().any(|line| line == expect) {
            return;
        }
    }
}

#[test]
fn the_service_counts_with_the_rights_of_its_unit_and_tells_systemd_that_it_lives() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name);
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("set");
    let state = of("state");
    std::fs::create_dir(&state).expect("made");
    chown(&state, Some(USER), Some(USER)).expect("given");
    let settings = of("monitor.toml");
    std::fs::write(&settings, "every = '1s'\nlinear = true\n").expect("written");
    let socket = UnixDatagram::bind(of("notify")).expect("a socket");
    std::fs::set_permissions(of("notify"), PermissionsExt::from_mode(0o777)).expect("set");
    socket.set_read_timeout(Some(HEARD_MAX)).expect("set");
    let mut service = Service::start(&state, &settings, &of("notify"));
    hear(&socket, "READY=1");
    hear(&socket, "WATCHDOG=1");
    assert_eq!(said("ExecReload"), "/bin/kill -HUP $MAINPID");
    std::fs::write(&settings, "every = '2s'\nall = true\n").expect("written");
    service.signal(Signal::HUP);
    hear(&socket, "RELOADING=1");
    hear(&socket, "READY=1");
    for _ in 0..3 {
        hear(&socket, "WATCHDOG=1");
    }
    service.signal(Signal::TERM);
    assert!(service.0.wait().expect("it ends").success());
    let store = Store::open(&state.join("monitor.db")).expect("a store where systemd says");
    let (mut intervals, mut samples, mut function) = (0, 0, false);
    let read = store.read(Range::ALL, |_, interval| {
        intervals += 1;
        let of_all = interval
            .series
            .iter()
            .filter(|series| series.scope == Scope::All);
        samples += of_all.map(|series| series.histogram.samples()).sum::<u64>();
        let mut named = interval
            .worst
            .iter()
            .filter_map(|worst| worst.stack.first());
        // Who may not see addresses has numbers alone.
        function |= named.any(|name| !name.starts_with("0x"));
        Ok(())
    });
    read.expect("it reads");
    assert!(
        intervals >= 3 && samples > 0,
        "{intervals} intervals, {samples} samples"
    );
    let has_stack = |store: &Store| {
        let mut any = false;
        let read = store.read(Range::ALL, |_, one| {
            any |= one.worst.iter().any(|worst| !worst.stack.is_empty());
            Ok(())
        });
        read.expect("it reads");
        any
    };
    assert!(function || !has_stack(&store), "functions have names");
}
