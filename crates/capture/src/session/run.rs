//! A session's process: it takes the name, answers, records until it is stopped, and is gone.

use std::sync::mpsc::channel;

use event::Result;
use host::capabilities::Capabilities;

use super::desk::Desk;
use super::place::Facts;
use super::status::{Refusal, SessionState, SessionStatus};
use super::talk::Listener;
use super::{SessionConfig, Sessions, flight, rotating};
use crate::housekeeping;

/// Runs the session in this process, until somebody stops it; `ready` is called when all that was
/// asked for is recorded from then on.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when a session has the name; else why it could not begin.
/// Once it is ready, an error is told to whoever asks, until the session is stopped.
pub fn serve(
    config: &SessionConfig,
    capabilities: &Capabilities,
    sessions: &Sessions,
    ready: impl FnOnce(&SessionStatus),
) -> Result<()> {
    let place = sessions.take(&config.name)?;
    let listener = Listener::bind(&place)?;
    let (to_desk, asked) = channel();
    let cpus = housekeeping::cpus(&capabilities.machine, config.record.cpus.as_deref());
    let mut desk = Desk::new(config, cpus, asked, Box::new(ready))?;
    place.tell(&Facts {
        pid: std::process::id(),
        output: config.output.clone(),
        begin_wall_ns: desk.begin_wall_ns(),
        flight: config.flight,
        settings: config.settings.clone(),
    })?;
    let talks = listener.answer(to_desk);
    let ran = match config.flight {
        true => flight::run(&mut desk, capabilities),
        false => rotating::run(&mut desk, capabilities),
    };
    let mut state = SessionState::Stopped;
    if let Err(error) = ran {
        if !desk.was_ready() {
            return Err(error);
        }
        state = SessionState::Failed;
        desk.error = Some(Refusal::from(&error));
        desk.wait_to_be_stopped();
    }
    desk.deliver();
    // The name is free before anybody hears that it is.
    drop(place);
    desk.answer_all(state);
    talks.wait();
    Ok(())
}
