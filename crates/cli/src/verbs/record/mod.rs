//! `rtscope record`: events of the kernel and of applications into a trace, and the worst that they
//! show; sessions that do so in the background.

mod boot;
mod config;
mod list;
mod sessions;
mod start;
mod streamed;

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use capture::capabilities;
use capture::session::{self, StreamStatus};
use capture::{CallsSummary, RecordConfig, RecordSummary, Unfinished, UserSummary};
use diagnosis::{LateActivation, Query, SleepsInside, Until, diagnose, quoted};
use event::{Error, Result, TaskPattern, Tid};
use host::capabilities::Verb;
use relay::Delivered;
use report::judged_text;
use trace::{FILTERED_EVENTS, TRACKED_TASKS, Trace};

use crate::exit::{Outcome, print, print_answer};
use crate::flags::{Record, RecordSession};
use crate::live::Live;
use crate::options::{RecordOptions, Target, TrackOptions};
use crate::signals::{self, Request};
use crate::verbs::room;
use crate::verbs::watch::targets::{Matched, Whom};

/// Who has a CPU.
const SWITCH: &str = "sched_switch";
/// What activations are judged by.
const JUDGED_BY: [&str; 3] = [SWITCH, "sched_waking", "sched_wakeup"];
/// Slow enough to cost nothing.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the verb.
pub fn run(typed: &Record) -> Result<Outcome> {
    if let Some(asked) = &typed.session {
        return of_session(asked);
    }
    if let Some(outcome) = boot::run(typed) {
        return outcome;
    }
    let options = RecordOptions::new(typed)?;
    if !typed.list_events {
        // Before all that takes time: who asks to stop meanwhile gets what there is by then.
        signals::take_over()?;
        signals::heed_terminal()?;
    }
    let capabilities = match options.kernel {
        true => capabilities::gather(),
        false => host::capabilities::gather_cpus(),
    };
    if options.kernel {
        capabilities.require(Verb::Record)?;
    }
    if typed.list_events {
        return list::list(&options);
    }
    let whom = Whom {
        target: Target::Tasks(Vec::new()),
        asked: options.groups.clone(),
        family: None,
    };
    let mut question = Query {
        tasks: options.tasks.clone(),
        until: options.until,
        worst: 1,
        ..Query::default()
    };
    let mut config = config::config(options)?;
    if config.user.is_some() {
        for moved in capture::require_ring_folder()? {
            note!("{moved:#}");
        }
        name_unfinished();
    }
    if typed.flight {
        config.begun = |config| note!("keeping the newest events {}", until(config));
        with_progress("", config.command.is_none(), || {
            capture::fly(&config, &capabilities)
        })?;
        return Ok(Outcome::Fine);
    }
    config.begun = begins;
    let mut members = members_of(&whom, true)?;
    let summary = with_progress("", config.command.is_none(), || {
        capture::record(&config, &capabilities, &capture::own_command_line())
    })?;
    if let Some(delivered) = &summary.delivered {
        return streamed_ending(&summary, delivered, &config);
    }
    if signals::request() == Request::Discard {
        return discard(&summary);
    }
    members.extend(members_of(&whom, false)?);
    members.sort_unstable();
    members.dedup();
    let is_nobody = !whom.asked.is_empty() && members.is_empty();
    let members = members.into_iter().map(TaskPattern::Tid).collect();
    question.tasks = question.tasks.or(members);
    let is_asked = !is_nobody || question.tasks.is_explicit();
    tell(&summary, &config, is_asked.then_some(&question))?;
    Ok(Outcome::Fine)
}

/// Says what was recorded, and then what its worst is: that takes longer.
fn tell(summary: &RecordSummary, config: &RecordConfig, question: Option<&Query>) -> Result<()> {
    print(&ending(summary, config))?;
    // Who asks to stop now has the recording, and waits no longer for its worst.
    signals::keep();
    print(&with_progress("its worst: ", true, || {
        answer(summary, config, question)
    }))
}

/// Says that the recording has begun.
fn begins(config: &RecordConfig) {
    if config.stop.load(Ordering::Acquire) {
        return note!("asked to stop before it began: only this moment is recorded");
    }
    let to = config.to.as_ref();
    let to = to.map_or(String::new(), |to| format!(" to {}", to.address()));
    note!("recording{to} {}", until(config));
}

fn discard(summary: &RecordSummary) -> Result<Outcome> {
    let removed = std::fs::remove_dir_all(&summary.path);
    removed.map_err(|error| Error::io("cannot discard the recording", error))?;
    note!("discarded");
    Ok(Outcome::Fine)
}

fn of_session(typed: &RecordSession) -> Result<Outcome> {
    match typed {
        RecordSession::Start(start) => start::start(start),
        RecordSession::Serve(start) => start::serve(start),
        RecordSession::Stop(of) => sessions::of(&session::Request::Stop, of),
        RecordSession::Status(of) => sessions::of(&session::Request::Status, of),
        RecordSession::Rotate(of) => sessions::of(&session::Request::Rotate, of),
        RecordSession::Snapshot(of) => sessions::of(&session::Request::Snapshot, of),
        RecordSession::Clear(of) => sessions::of(&session::Request::Clear, of),
        RecordSession::Dump(of) => sessions::of(&session::Request::Dump, of),
        RecordSession::Track(track) => {
            let whom = track.whom.clone();
            // A word that can name nobody is told here.
            TrackOptions::of_session(&whom)?;
            sessions::of(&session::Request::Track(whom), &track.of)
        }
        RecordSession::Untrack(untrack) => {
            let whom = untrack.whom.clone();
            sessions::of(&session::Request::Untrack(whom), &untrack.of)
        }
        RecordSession::Save(save) => sessions::save(save),
        RecordSession::List(list) => sessions::list(list),
    }
}

/// The threads that belong to the groups that were asked for, now; who they are is said once. A
/// trace does not know control groups.
fn members_of(whom: &Whom, says: bool) -> Result<Vec<Tid>> {
    if whom.asked.is_empty() {
        return Ok(Vec::new());
    }
    let matched = Matched::find(whom)?;
    if says {
        note_text!("{}", matched.text());
    }
    Ok(matched.tids())
}

/// Names the traces that killed recorders left. Only their session files know where these are, and
/// the next recorder removes them.
fn name_unfinished() {
    for Unfinished { path, pid, .. } in capture::left_by_killed_recorders(None) {
        let path = quoted(&path.display().to_string());
        note!(
            "a recorder that was killed (process {pid}) left its trace unfinished: \
             rtscope recover {path}"
        );
    }
}

/// Runs `record` while a line says for how long; a command has the terminal to itself.
fn with_progress<T>(what: &'static str, wanted: bool, record: impl FnOnce() -> T) -> T {
    let live = Live::new(wanted);
    let (over, is_over) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let begin = Instant::now();
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(PROGRESS_INTERVAL) {
                live.line(&format!("{what}{:.1} s", begin.elapsed().as_secs_f64()));
            }
        });
        let result = record();
        drop(over);
        result
    })
}

fn until(config: &RecordConfig) -> String {
    match (&config.command, config.duration) {
        (Some(command), _) => format!("until {} ends", command[0].display()),
        (None, Some(duration)) => format!("for {duration}"),
        (None, None) => "until Ctrl-C".to_owned(),
    }
}

/// What was recorded, what was lost, and what can be done about that.
fn ending(summary: &RecordSummary, config: &RecordConfig) -> String {
    let path = summary.path.display();
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    if !summary.cpus.is_empty() {
        let _ = writeln!(
            text,
            "recorded {} events in {} on {} CPUs, {} lost, {:.1} MB: {path}",
            summary.events(),
            summary.duration,
            summary.cpu_count(),
            summary.lost(),
            summary.size_bytes() as f64 / 1e6
        );
    }
    channels(&mut text, summary, config);
    calls(&mut text, &summary.calls);
    contexts(&mut text, summary);
    applications(&mut text, summary, config);
    for absent in &summary.absent {
        let _ = writeln!(text, "this kernel has no {absent}");
    }
    for left_out in &summary.left_out {
        let _ = writeln!(text, "{left_out}");
    }
    let command = summary.command.map_or(String::new(), |end| end.to_string());
    if !command.is_empty() {
        let _ = writeln!(text, "{command}");
    }
    let of_rings = summary.cpus.iter().map(|cpu| cpu.statistics.lost());
    if of_rings.sum::<u64>() + summary.calls.lost > 0 && summary.delivered.is_none() {
        text.push_str(&advice(summary, config));
    }
    text
}

/// The worst of what was recorded, and what to type next. `question`: none where nobody was there
/// whom it asks for.
fn answer(summary: &RecordSummary, config: &RecordConfig, question: Option<&Query>) -> String {
    let typed = quoted(&summary.path.display().to_string());
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    if config.raw {
        // Nothing is known of its events yet.
        let _ = writeln!(text, "next:  rtscope convert {typed} --to ctf -o TRACE");
        return text;
    }
    if summary.cpus.is_empty() {
        let _ = writeln!(text, "next:  rtscope cat {typed}");
        return text;
    }
    let Some(question) = question else {
        text.push_str(
            "nothing judged: no task of what was named was there at the begin or at the end\n",
        );
        let _ = writeln!(text, "next:  rtscope diagnose {typed}");
        return text;
    };
    let next = match worst(summary, question) {
        Ok(found) => {
            text.push_str(&found);
            "diagnose"
        }
        // The recording is fine; only this line about it is not.
        Err(error) => {
            let _ = writeln!(text, "its worst latency is not known: {error}");
            "cat"
        }
    };
    let _ = writeln!(text, "next:  rtscope {next} {typed}");
    text
}

/// The end of a recording that another host has.
fn streamed_ending(
    summary: &RecordSummary,
    delivered: &Delivered,
    config: &RecordConfig,
) -> Result<Outcome> {
    let stream = StreamStatus::ended(delivered);
    let text = ending(summary, config) + &streamed::text(&stream, "");
    print_answer(&text)?;
    match stream.rest.is_empty() {
        true => Ok(Outcome::Fine),
        false => Ok(Outcome::Inconclusive),
    }
}

/// What could not be read beside events.
fn contexts(text: &mut String, summary: &RecordSummary) {
    let of_cpus = summary.cpus.iter().map(|cpu| cpu.written.unread);
    let unread = of_cpus.sum::<u64>() + summary.calls.unread;
    if unread > 0 {
        let _ = writeln!(
            text,
            "{unread} events have no values of contexts: nobody could read them at events of \
             probes and functions, or there was no room; a larger --buffer has more"
        );
    }
}

/// What was left out of system calls, and what recording them cost, where the kernel counts that.
fn calls(text: &mut String, calls: &CallsSummary) {
    if calls.left_out > 0 {
        let count = calls.left_out;
        let _ = writeln!(
            text,
            "left out: {count} entries and exits of system calls by rtscope itself"
        );
    }
    if let Some(refused) = &calls.refused {
        let _ = writeln!(text, "system calls are without their contents: {refused}");
    }
    if calls.run_ns > 0 {
        let average_ns = calls.run_ns as f64 / calls.runs.max(1) as f64;
        let runs = calls.runs;
        let _ = writeln!(
            text,
            "recording system calls took {average_ns:.0} ns each, {runs} times"
        );
    }
}

/// What applications gave, a line each, and who was refused.
pub fn processes(text: &mut String, user: &UserSummary) {
    for process in &user.processes {
        let _ = write!(
            text,
            "{} ({}): {} events, {} lost, {:.1} MB",
            process.name,
            process.pid,
            process.events,
            process.lost(),
            process.size_bytes as f64 / 1e6
        );
        let causes = ring::LOSS_NAMES.iter().zip(process.losses);
        for (cause, lost) in causes.filter(|(_, lost)| *lost > 0) {
            let _ = write!(text, "; {cause}: {lost}");
        }
        if process.malformed > 0 {
            let _ = write!(text, "; {} records were malformed", process.malformed);
        }
        if process.unregistered > 0 {
            let _ = write!(text, "; {} events found no room", process.unregistered);
        }
        text.push('\n');
    }
    for refused in &user.refused {
        let _ = writeln!(text, "not recorded: {refused}");
    }
}

/// What came in each channel, where there are several.
fn channels(text: &mut String, summary: &RecordSummary, config: &RecordConfig) {
    let count = config.channels.len();
    for number in (0..=count).filter(|number| count > 0 && (*number > 0 || config.has_first)) {
        // One of system calls alone has none of ftrace's.
        if !summary.cpus.iter().any(|cpu| cpu.channel == number) {
            continue;
        }
        let (events, lost) = summary.of_channel(number);
        let name = config.channel_name(number);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "  {name}: {events} events, {lost} lost");
    }
    let CallsSummary { events, lost, .. } = summary.calls;
    if count > 0 && events + lost > 0 {
        let _ = writeln!(
            text,
            "  system calls: {events} events, {lost} lost (in rings of their own)"
        );
    }
}

/// What to repeat a recording with that lost events: of each channel, and of system calls.
fn advice(summary: &RecordSummary, config: &RecordConfig) -> String {
    let (cpus, memory_bytes) = (summary.cpu_count(), room::memory_bytes());
    let buffer_bytes = config.buffer_bytes_per_cpu as u64;
    if config.channels.is_empty() || summary.calls.lost + summary.of_channel(0).1 > 0 {
        return room::of_kernel(buffer_bytes, cpus, memory_bytes) + "\n";
    }
    let lossy = (1..=config.channels.len()).filter(|number| summary.of_channel(*number).1 > 0);
    let names: Vec<_> = lossy.map(|number| config.channel_name(number)).collect();
    format!(
        "events were lost in {}: repeat with a larger buffer= there, or with fewer events=\n",
        names.join(", ")
    )
}

/// What became of applications.
fn applications(text: &mut String, summary: &RecordSummary, config: &RecordConfig) {
    let user = &summary.user;
    processes(text, user);
    if summary.cpus.is_empty() {
        let _ = writeln!(
            text,
            "recorded {} events of {} processes in {}, {} lost: {}",
            user.events(),
            user.processes.len(),
            summary.duration,
            user.lost(),
            summary.path.display()
        );
    }
    let ring_size = std::env::var(room::RING_SIZE).ok();
    let advice = room::of_applications(user, ring_size.as_deref(), config.command.is_some());
    if let Some(advice) = advice {
        let _ = writeln!(text, "{advice}");
    }
}

/// The verdict on the worst activation of a task that was asked for, and what was looked at.
fn worst(summary: &RecordSummary, question: &Query) -> Result<String> {
    let trace = Trace::open(&summary.path)?;
    let diagnosis = diagnose(&trace, question)?;
    let mut text = String::new();
    // Where no task was named: the longest delay by others, and the longest work.
    for group in &diagnosis.groups {
        let _ = writeln!(text, "worst: {}", group.verdict.sentence);
    }
    let basis = &diagnosis.basis;
    let longest = diagnosis
        .activations
        .iter()
        .map(LateActivation::latency)
        .max();
    let may_be_worse = |found: &&SleepsInside| longest < Some(found.worst.duration());
    for found in basis.inside.iter().filter(may_be_worse) {
        let _ = writeln!(text, "warning: {found}");
    }
    let lack = lack(&trace);
    let whose = match (basis.judged.is_empty(), &lack) {
        (false, _) => judged_text(&basis.judged),
        (true, Some((what, fix))) => format!("{what}, so nobody can be{fix}"),
        (true, None) => nobody(&trace, question.tasks.is_explicit()),
    };
    let _ = writeln!(
        text,
        "judged: {} ({whose}), {}",
        basis.activations,
        to(basis.until)
    );
    if let (false, Some((what, fix))) = (basis.judged.is_empty(), lack) {
        let _ = writeln!(text, "warning: {what}, so others may have been later{fix}");
    }
    Ok(text)
}

/// What the trace lacks by which activations are judged, and what would record it.
fn lack(trace: &Trace) -> Option<(String, &'static str)> {
    let environment = &trace.info().environment;
    let has = |name: &str| trace.classes().iter().any(|class| class.name == name);
    let filtered = environment.get(FILTERED_EVENTS).map_or("", String::as_str);
    let is_filtered = |name: &&&str| filtered.split(',').any(|other| other == **name);
    if let Some(name) = JUDGED_BY.iter().find(is_filtered) {
        return Some((format!("a filter left out events of {name}"), ""));
    }
    let has_wakeups = JUDGED_BY.iter().any(|name| *name != SWITCH && has(name));
    let what = "wake-ups were not recorded".to_owned();
    (!has_wakeups).then_some((what, "; --events sched has them"))
}

/// Why no activation was judged; `is_explicit`: tasks were named.
fn nobody(trace: &Trace, is_explicit: bool) -> String {
    match trace.info().environment.get(TRACKED_TASKS) {
        Some(words) => format!("no such task ran of those of --track {words}"),
        None if is_explicit => "no task that was named ran".to_owned(),
        None => "no task was activated".to_owned(),
    }
}

fn to(until: Until) -> &'static str {
    match until {
        Until::SwitchIn => "to the switch-in, work after it not judged",
        Until::Block => "to the end of the work",
    }
}
