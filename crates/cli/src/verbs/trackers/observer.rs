//! What trackers print: each report, one live line, and how it ended.

use std::fs::File;
use std::io::Write;

use capture::watch::{TrackerReport, TrackersObserver, TrackersOptions, TrackersStatus};
use event::{Error, Result};
use serde_json::Value;

use views::reports::request::Explained;

use super::{history, json, request, text};
use crate::exit::{tell, write_error};
use crate::live::Live;
use crate::options::TrackerOptions;
use crate::paint::Paint;
use crate::signals::{self, Request};
use crate::verbs::board::Board;
use crate::verbs::watch::{Command, Orphan, Running, whom_text};

/// Prints what the trackers see.
pub(super) struct Observer {
    json: bool,
    extent: text::Extent,
    log: Option<(std::path::PathBuf, File)>,
    exec: Option<String>,
    running: Running,
    paint: Paint,
    live: Live,
    sequence: u64,
    beginning: String,
    /// It was said that nothing matches.
    told_of_silence: bool,
    command: Option<Command>,
    /// The screen, with `--tui`.
    board: Option<Board>,
}

impl Observer {
    /// # Errors
    /// When the file of `--log` cannot be opened, or there is no terminal for a screen.
    pub(super) fn new(
        options: &TrackerOptions,
        asked: &TrackersOptions,
        paint: Paint,
    ) -> Result<Self> {
        let log = options.log.as_ref().map(|path| {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| write_error(path, error))?;
            Ok::<_, Error>((path.clone(), file))
        });
        let beginning = beginning(options, asked);
        let board = options.tui.then(|| Board::open(&beginning));
        Ok(Observer {
            json: options.watch.json,
            extent: text::Extent {
                hist: options.hist,
                suppressed: options.watch.over.is_some(),
            },
            log: log.transpose()?,
            exec: options.watch.exec.clone(),
            running: Running::default(),
            paint,
            live: Live::new(!options.watch.json && !options.tui),
            sequence: 0,
            beginning,
            told_of_silence: false,
            command: None,
            board: board.transpose()?,
        })
    }

    /// Lets this command run when all is attached, and ends with it.
    pub(super) fn runs(&mut self, command: Option<Command>) {
        self.command = command;
    }

    /// Prints how the trackers ended.
    ///
    /// # Errors
    /// When stdout or the log refuses.
    pub(super) fn end(&mut self, status: &TrackersStatus) -> Result<()> {
        self.running.finish();
        self.live.clear();
        self.board = None;
        let line = self.numbered(json::end(status));
        self.log(&line)?;
        if self.json {
            return json_line(&line);
        }
        tell(&format!("\n{}", text::end(status, self.extent)))?;
        let orphans = self.orphans();
        let left = self.command.as_mut();
        tell(
            &left
                .and_then(|command| command.left(&orphans))
                .unwrap_or_default(),
        )
    }

    /// Who goes on though the command has ended that started them.
    pub(super) fn orphans(&mut self) -> Vec<Orphan> {
        let command = self.command.as_mut();
        command.map_or_else(Vec::new, Command::orphans)
    }

    /// Prints the last minutes, when it is time to.
    fn tell_history(&mut self, status: &TrackersStatus) -> Result<()> {
        if status.trackers.iter().all(|one| one.history.is_empty()) {
            return Ok(());
        }
        self.live.clear();
        let line = self.numbered(history::json(status));
        self.log(&line)?;
        match self.json {
            true => json_line(&line),
            false => tell(&history::text(status)),
        }
    }

    /// Puts a report on the screen.
    fn pin_up(&mut self, report: &TrackerReport, explained: Option<&Result<Explained>>) {
        let Some(board) = &mut self.board else { return };
        let tracked = &report.hit.tracked;
        let took = tracked.duration();
        let text = text::hit(report);
        let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let below = match explained {
            Some(explained) => request::lines(explained, took),
            None => rest.lines().map(|line| line.trim().to_owned()).collect(),
        };
        let culprit = match explained {
            Some(explained) => request::culprit(explained),
            None => tracked.other.as_ref().map(ToString::to_string),
        };
        board.hit(took, line.to_owned(), below, culprit);
    }

    fn numbered(&mut self, mut line: Value) -> Value {
        line["schema"] = json::SCHEMA.into();
        line["version"] = json::SCHEMA_VERSION.into();
        line["sequence"] = self.sequence.into();
        self.sequence += 1;
        line
    }

    fn log(&mut self, line: &Value) -> Result<()> {
        match &mut self.log {
            Some((path, file)) => {
                writeln!(file, "{line}").map_err(|error| write_error(path, error))
            }
            None => Ok(()),
        }
    }
}

fn json_line(line: &Value) -> Result<()> {
    tell(&format!("{line}\n"))
}

fn beginning(options: &TrackerOptions, asked: &TrackersOptions) -> String {
    let names = asked.trackers.iter().map(|(tracker, config)| {
        let key = options.pair.as_ref().filter(|_| config.pair.is_some());
        key.map_or(tracker.name.to_owned(), |pair| {
            format!("{} by {}", tracker.series[0], pair.key)
        })
    });
    let names: Vec<_> = names.collect();
    let when = match (options.watch.over, options.watch.timeout) {
        (Some(over), None) => format!("over {over:#}"),
        (None, Some(timeout)) => format!("still open after {timeout:#}"),
        (Some(over), Some(timeout)) => format!("over {over:#}, and still open after {timeout:#}"),
        (None, None) => "that is a new worst".to_owned(),
    };
    let whom = match options.every_task {
        true => "every task".to_owned(),
        false => whom_text(&options.watch),
    };
    let names = names.join(", ");
    format!("watching {names} of {whom} for all {when}; Ctrl-C ends it")
}

impl TrackersObserver for Observer {
    fn armed(&mut self) -> Result<()> {
        note!("{}", self.beginning);
        self.command.as_mut().map_or(Ok(()), Command::go)
    }

    fn hit(&mut self, report: &TrackerReport) -> Result<()> {
        self.live.clear();
        if signals::request() == Request::Discard {
            return Ok(());
        }
        let explained = request::explained(report);
        let mut line = json::hit(report);
        if let Some(explained) = &explained {
            line["request"] = request::json(explained);
        }
        let line = self.numbered(line);
        if let Some(command) = &self.exec {
            self.running.start(command, &line.to_string())?;
        }
        self.log(&line)?;
        if self.json {
            return json_line(&line);
        }
        if self.board.is_some() {
            self.pin_up(report, explained.as_ref());
            return Ok(());
        }
        let mut text = text::hit(report);
        if let Some(explained) = &explained {
            text += &request::text(explained, report.hit.tracked.duration());
        }
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        tell(&format!("{}\n{rest}", self.paint.doubtful(first)))
    }

    fn status(&mut self, status: &TrackersStatus) -> Result<bool> {
        self.running.reap();
        let is_over = self.command.as_mut().and_then(Command::ended).is_some();
        let goes_on = signals::request() == Request::GoOn && !is_over;
        if let Some(board) = &mut self.board {
            for (took, line) in text::worst(status) {
                board.worst(took, line);
            }
            let foot = text::foot(status);
            return Ok(board.show(text::kinds(status), foot) && goes_on);
        }
        if !self.told_of_silence
            && let Some(warning) = text::silence(status)
        {
            self.told_of_silence = true;
            self.live.clear();
            note!("warning: {warning}");
        }
        self.tell_history(status)?;
        self.live.line(&text::live(status));
        Ok(goes_on)
    }
}
