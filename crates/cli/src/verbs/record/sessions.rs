//! What is asked of sessions: `rtscope record stop|status|rotate|snapshot|clear|dump|list`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

use capture::session::{
    self, ArchiveFacts, DeadSession, Reply, Request, SessionName, SessionState, SessionStatus,
    Sessions, ask,
};
use event::{Error, ErrorKind, Result};
use serde::Serialize;

use super::streamed;
use crate::exit::{Outcome, print};
use crate::flags::{SessionList, SessionOf, SessionSave};
use crate::options::setting;

/// The form of what is printed for programs.
const SCHEMA: &str = "rtscope.session";
const VERSION: u32 = 1;
/// So many archives are shown to people; programs get all.
const SHOWN_MAX: usize = 5;

/// What is printed for programs.
#[derive(Serialize)]
struct Told<'t> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    status: &'t SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrote: Option<&'t ArchiveFacts>,
}

#[derive(Serialize)]
struct ToldAll<'t> {
    schema: &'static str,
    version: u32,
    sessions: &'t [SessionStatus],
}

/// Asks a session, and prints what it says.
pub(super) fn of(request: &Request, typed: &SessionOf) -> Result<Outcome> {
    let name = SessionName::parse(&typed.name)?;
    let sessions = Sessions::of_this_user();
    match ask(&sessions, &name, request) {
        Ok(reply) => answered(request, typed, reply),
        Err(error) if error.kind() == ErrorKind::Interrupted => match request {
            Request::Stop => bury(&sessions, &name, typed, error),
            Request::Status => {
                let dead = session::all_dead(&sessions);
                let dead = dead.into_iter().find(|dead| dead.name == name);
                tell(&dead_status(&dead.ok_or(error)?), None, typed.json)?;
                Ok(Outcome::Inconclusive)
            }
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn answered(request: &Request, typed: &SessionOf, reply: Reply) -> Result<Outcome> {
    if let Some(refusal) = reply.refused {
        return Err(refusal.into_error());
    }
    let (status, wrote) = (&reply.status, reply.wrote.as_ref());
    if typed.json {
        tell(status, wrote, true)?;
    } else {
        print(&done(request, status, wrote))?;
    }
    match (status.state, &status.error) {
        (SessionState::Failed, Some(error)) if *request == Request::Stop => {
            Err(error.clone().into_error())
        }
        (SessionState::Failed, _) => Ok(Outcome::Inconclusive),
        // It goes on, and what it could not do is told.
        (_, Some(_)) if *request == Request::Status => Ok(Outcome::Inconclusive),
        _ => Ok(Outcome::Fine),
    }
}

/// Prints what a session was started with, and whom it tracks now.
pub(super) fn save(typed: &SessionSave) -> Result<Outcome> {
    let name = SessionName::parse(&typed.name)?;
    let sessions = Sessions::of_this_user();
    let asked = ask(&sessions, &name, &Request::Status);
    let known = match sessions.is_there()? {
        true => sessions.settings(&name),
        false => None,
    };
    let Some(mut text) = known.filter(|text| !text.is_empty()) else {
        // Why there is none.
        return match asked {
            Err(error) => Err(error),
            Ok(_) => Err(
                Error::new(ErrorKind::Unsupported, "no settings were kept of it")
                    .found(format!(
                        "the session {name} was started by an older rtscope"
                    ))
                    .fix("stop it, and start it anew"),
            ),
        };
    };
    if let Ok(reply) = asked {
        text = with_tracked(&text, &reply.status.tracks);
    }
    let Some(path) = &typed.output else {
        print(&text)?;
        return Ok(Outcome::Fine);
    };
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|cause| {
        let what = format!("cannot write {}", path.display());
        Error::io(what, cause).fix("give -o a file that does not exist yet")
    })?;
    Ok(Outcome::Fine)
}

/// The settings, with whom the session tracks now.
fn with_tracked(text: &str, tracks: &[String]) -> String {
    if tracks.is_empty() {
        return text.to_owned();
    }
    let line = setting("track", &serde_json::json!(tracks));
    let is_other = |line: &&str| !line.starts_with("track =");
    let others = text
        .lines()
        .filter(is_other)
        .map(|line| line.to_owned() + "\n");
    others.chain([line]).collect()
}

/// What was done, for people.
fn done(request: &Request, status: &SessionStatus, wrote: Option<&ArchiveFacts>) -> String {
    let name = &status.name;
    match request {
        Request::Status => text(status),
        Request::Clear => format!("{name}: what was recorded until now is forgotten\n"),
        Request::Dump => format!("{name}: the state of this machine is in its archive\n"),
        Request::Track(_) | Request::Untrack(_) => {
            let before = wrote.map(|facts| format!("before: {}\n", archive(facts)));
            let tracks = status.tracks.join(", ");
            format!("{name} tracks: {tracks}\n{}", before.unwrap_or_default())
        }
        Request::Rotate | Request::Snapshot => match wrote {
            Some(facts) => format!("{name}: {}\n", archive(facts)),
            None => format!("{name}: nothing was recorded since the last archive\n"),
        },
        Request::Stop => text(status),
    }
}

/// Finishes what a session left that died, or says why not.
fn bury(
    sessions: &Sessions,
    name: &SessionName,
    typed: &SessionOf,
    error: Error,
) -> Result<Outcome> {
    let Some((dead, finished)) = session::bury(sessions, name)? else {
        return Err(error);
    };
    if typed.json {
        tell(&dead_status(&dead), None, true)?;
        return Ok(Outcome::Inconclusive);
    }
    let mut text = format!(
        "{name}: its process {} had died; what it had begun is cleared away\n",
        dead.pid
    );
    // Writing to a String cannot fail.
    for path in &finished {
        let path = path.display();
        let _ = writeln!(
            text,
            "  what it wrote until then: {path}\n  what comes behind the end of each stream was \
             lost; reports count it as unknown"
        );
    }
    let _ = writeln!(text, "  its archives are in {}", dead.output.display());
    print(&text)?;
    Ok(Outcome::Inconclusive)
}

/// Prints all sessions.
pub(super) fn list(typed: &SessionList) -> Result<Outcome> {
    let sessions = Sessions::of_this_user();
    let names = match sessions.is_there()? {
        true => sessions.names(),
        false => Vec::new(),
    };
    let dead = session::all_dead(&sessions);
    let mut all: Vec<SessionStatus> = dead.iter().map(dead_status).collect();
    let mut silent = 0;
    for name in names {
        if dead.iter().any(|dead| dead.name == name) {
            continue;
        }
        match ask(&sessions, &name, &Request::Status) {
            Ok(reply) => all.push(reply.status),
            // It was stopped meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            Err(error) => {
                silent += 1;
                note!("{error:#}");
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if typed.json {
        print_json(&ToldAll {
            schema: SCHEMA,
            version: VERSION,
            sessions: &all,
        })?;
        return Ok(ended(silent));
    }
    let text: String = all.iter().map(line).collect();
    match all.is_empty() && silent == 0 {
        true => print("no session is running\n")?,
        false => print(&text)?,
    }
    Ok(ended(silent))
}

/// How a list ends in which some did not answer.
fn ended(silent: usize) -> Outcome {
    match silent {
        0 => Outcome::Fine,
        _ => Outcome::Inconclusive,
    }
}

fn print_json(told: &impl Serialize) -> Result<Outcome> {
    let text = serde_json::to_string_pretty(told)
        .map_err(|cause| Error::new(ErrorKind::Io, "cannot write JSON").cause(cause))?;
    print(&(text + "\n"))?;
    Ok(Outcome::Fine)
}

fn tell(status: &SessionStatus, wrote: Option<&ArchiveFacts>, json: bool) -> Result<()> {
    if !json {
        return print(&text(status));
    }
    let told = Told {
        schema: SCHEMA,
        version: VERSION,
        status,
        wrote,
    };
    print_json(&told).map(|_| ())
}

fn dead_status(dead: &DeadSession) -> SessionStatus {
    SessionStatus {
        name: dead.name.to_string(),
        state: SessionState::Dead,
        is_flight: false,
        pid: dead.pid,
        begin_wall_ns: dead.begin_wall_ns,
        running_ns: 0,
        output: dead.output.clone(),
        buffer_bytes_per_cpu: 0,
        cpus: Vec::new(),
        tracks: Vec::new(),
        system_calls: None,
        user: None,
        stream: None,
        events: 0,
        lost: 0,
        writing: dead.unfinished.first().map(|left| left.path.clone()),
        writing_bytes: 0,
        archives: Vec::new(),
        removed: 0,
        error: None,
    }
}

/// What a session is doing, in a word or two.
fn doing(status: &SessionStatus) -> String {
    let seconds = status.running_ns as f64 / 1e9;
    match status.state {
        SessionState::Recording => format!("recording for {seconds:.1} s"),
        SessionState::Flight => format!("keeping the newest events for {seconds:.1} s"),
        SessionState::Failed => "ended by an error".to_owned(),
        SessionState::Dead => "its process has died".to_owned(),
        SessionState::Stopped => format!("stopped after {seconds:.1} s"),
    }
}

/// A session in a line.
fn line(status: &SessionStatus) -> String {
    if status.state == SessionState::Dead {
        // What it recorded, nobody counted to the end.
        let (name, output) = (&status.name, status.output.display());
        return format!("{name}: {}: {output}\n", doing(status));
    }
    let fullest = status.cpus.iter().map(|cpu| cpu.fullest_percent);
    let user = status.user.map(|user| user.fullest_percent);
    let fullest = fullest.chain(user).fold(0.0, f64::max);
    let error = status.error.as_ref();
    let error = error.map_or(String::new(), |error| format!("; {}", error.what));
    format!(
        "{}: {}, {} events, {} lost, fullest ring {fullest:.0} %: {}{error}\n",
        status.name,
        doing(status),
        status.events,
        status.lost,
        status.output.display()
    )
}

/// A session as it is now.
pub(super) fn text(status: &SessionStatus) -> String {
    let mut text = format!(
        "{}: {} (process {})\n",
        status.name,
        doing(status),
        status.pid
    );
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(text, "  output:   {}", status.output.display());
    match status.state {
        SessionState::Dead => {
            let left = status.writing.as_ref();
            let left = left.map_or_else(|| "nothing".to_owned(), |path| path.display().to_string());
            let name = &status.name;
            let _ = writeln!(text, "  left:     {left}");
            let _ = writeln!(text, "  fix:      rtscope record stop {name}");
            return text;
        }
        SessionState::Flight => {
            let _ = writeln!(text, "  events:   {} offered to the rings", status.events);
        }
        _ => {
            let _ = writeln!(text, "  events:   {}, {} lost", status.events, status.lost);
        }
    }
    if !status.tracks.is_empty() {
        let _ = writeln!(text, "  tracks:   {}", status.tracks.join(", "));
    }
    rings(&mut text, status);
    if let Some(path) = &status.writing {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let megabytes = status.writing_bytes as f64 / 1e6;
        let _ = writeln!(text, "  writing:  {name}, {megabytes:.1} MB");
    }
    if let Some(stream) = &status.stream {
        text.push_str(&streamed::text(stream, "  "));
    }
    archives(&mut text, status);
    if let Some(error) = &status.error {
        let found = error.found.as_deref().unwrap_or("no more is known");
        let _ = writeln!(text, "  error:    {}: {found}", error.what);
        if let Some(fix) = &error.fix {
            let _ = writeln!(text, "  fix:      {fix}");
        }
    }
    text
}

fn rings(text: &mut String, status: &SessionStatus) {
    let fate = match status.is_flight {
        true => "overwritten",
        false => "lost",
    };
    let first = status.cpus.first().map(|ring| ring.channel.as_str());
    let is_one = status.cpus.iter().all(|ring| Some(&*ring.channel) == first);
    for ring in &status.cpus {
        let channel = match is_one {
            true => String::new(),
            false => format!(" of {}", ring.channel),
        };
        let _ = writeln!(
            text,
            "  CPU {}{channel}:    {:.0} % full, {:.0} % at most; {} events, {} {fate}",
            ring.cpu, ring.filled_percent, ring.fullest_percent, ring.events, ring.lost
        );
    }
    if let Some(calls) = &status.system_calls {
        let _ = writeln!(
            text,
            "  system calls: {} events, {} lost (in rings of their own)",
            calls.events, calls.lost
        );
    }
    if let Some(user) = &status.user {
        let counted = match status.is_flight {
            true => String::new(),
            false => format!(
                "; {} events, {} lost; fullest ring {:.0} %, {:.0} % at most",
                user.events, user.lost, user.filled_percent, user.fullest_percent
            ),
        };
        let _ = writeln!(
            text,
            "  applications: {} processes{counted}",
            user.processes
        );
    }
}

fn archives(text: &mut String, status: &SessionStatus) {
    let count = status.archives.len();
    if count == 0 {
        return;
    }
    let removed = match status.removed {
        0 => String::new(),
        removed => format!(", {removed} removed by --keep"),
    };
    let newest = match count > SHOWN_MAX {
        true => format!("; the newest {SHOWN_MAX}"),
        false => String::new(),
    };
    let _ = writeln!(text, "  archives: {count}{removed}{newest}");
    for facts in &status.archives[count.saturating_sub(SHOWN_MAX)..] {
        let _ = writeln!(text, "    {}", archive(facts));
    }
}

fn archive(facts: &ArchiveFacts) -> String {
    format!(
        "{}: {} events, {} lost, {:.1} MB, {:.1} s",
        facts.path.display(),
        facts.events,
        facts.lost,
        facts.size_bytes as f64 / 1e6,
        (facts.end_wall_ns - facts.begin_wall_ns) as f64 / 1e9
    )
}
