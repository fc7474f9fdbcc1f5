//! Words that other tracers have, as people type them here, and what they are called here.

/// Verbs of LTTng, trace-cmd and perf.
const VERBS: &[(&[&str], &str)] = &[
    (
        &["create", "start", "enable-event", "enable-channel"],
        "rtscope record start NAME --events SET begins a session; rtscope record -h has the events",
    ),
    (
        &["add-context"],
        "rtscope record --context LIST, as in --context tid,callstack-kernel",
    ),
    (
        &["track", "untrack"],
        "rtscope record --track WHOM, as in --track pid:4711",
    ),
    (
        &["stop", "destroy", "status", "rotate", "clear"],
        "rtscope record stop NAME, as status, rotate, clear; rtscope record list has the names",
    ),
    (
        &["regenerate"],
        "rtscope record dump NAME writes the machine's state once more",
    ),
    (
        &["list"],
        "rtscope record --list-events; rtscope record list has the sessions",
    ),
    (
        &["view", "script", "dump"],
        "rtscope cat TRACE prints it; rtscope report -h has tables",
    ),
    (
        &["extract"],
        "rtscope record start NAME --flight, then rtscope record snapshot NAME",
    ),
    (
        &["stream", "trace"],
        "rtscope cat --live FOLDER/NAME prints what a session writes, as it comes",
    ),
    (
        &["reset"],
        "rtscope doctor --clean removes what a killed recorder left",
    ),
    (
        &["sched"],
        "rtscope record --events sched, then rtscope report schedtop TRACE",
    ),
    (
        &["top", "stat"],
        "rtscope report cputop TRACE, of a recording",
    ),
];

/// Flags and words behind `record`.
const OF_RECORD: &[(&[&str], &str)] = &[
    (
        &[
            "-e",
            "--event",
            "-k",
            "--kernel",
            "--syscall",
            "--tracepoint",
        ],
        "--events SET, as in --events sched:sched_switch,syscall",
    ),
    (&["-u", "--userspace"], "--user 'PROVIDER:*'"),
    (
        &["-p", "-l", "--function", "--graph-funcs", "-G"],
        "--functions 'vfs_*' traces functions, --track pid:4711 one process",
    ),
    (
        &["-P", "--pid", "-t", "-c", "--vpid"],
        "--track pid:4711; --track command -- COMMAND",
    ),
    (
        &["-g", "-T", "--call-graph", "--stack"],
        "--context callstack-kernel,callstack-user; functions are --functions 'vfs_*'",
    ),
    (
        &["-a", "--all-cpus", "--all"],
        "leave it away: all CPUs are recorded; --events all has all events",
    ),
    (
        &["-b", "-m", "--mmap-pages", "--buffer-size", "--subbuf-size"],
        "--buffer SIZE, of each CPU",
    ),
    (
        &["-f"],
        "--filter 'EVENT: EXPR', as in --filter 'sched_switch: next_prio < 0'",
    ),
    (
        &["-N", "--live", "--set-url"],
        "--to HOST --token-file FILE; rtscope receive runs there",
    ),
    (&["-d"], "--duration DUR, as in --duration 10s"),
    (
        &["create", "destroy", "stop-all"],
        "rtscope record start NAME, stop NAME, list",
    ),
];

fn found(table: &[(&[&str], &'static str)], typed: &str) -> Option<&'static str> {
    let is_it = |(words, _): &&(&[&str], &str)| words.contains(&typed);
    table.iter().find(is_it).map(|(_, meant)| *meant)
}

/// What a verb that is none here is called here.
pub(super) fn verb(typed: &str) -> Option<&'static str> {
    found(VERBS, typed)
}

/// What a flag or a word that `verb` does not have is called there.
pub(super) fn flag(verb: &str, typed: &str) -> Option<&'static str> {
    let is_record = verb == "record" || verb.starts_with("record ");
    is_record.then(|| found(OF_RECORD, typed))?
}
