//! Flags, verbs and exit codes: the one crate that prints and that ends the process.
//!
//! Flags are parsed in two levels: `flags` is what was typed, `options` is what it means. The first
//! touches no system, so that help and completions need neither root nor a kernel feature.

// `note!` tells on stderr, and does not panic where nobody reads it.
#![deny(clippy::print_stderr)]

#[macro_use]
mod note;

mod completions;
pub mod demo;
mod exit;
pub mod flags;
mod generate;
mod keys;
mod live;
pub mod options;
mod paint;
mod personality;
mod screen;
pub mod signals;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use flags::{Arguments, Command};

/// The whole program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(personality::words(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return flags::finish_early(&error),
    };
    signals::outlive_file_limit();
    let paint = paint::Paint::of_stderr(arguments.color);
    exit::finish(dispatch(arguments), paint)
}

fn dispatch(arguments: Arguments) -> event::Result<exit::Outcome> {
    if let Some(kind) = arguments.generate {
        return generate::run(kind, arguments.of.as_deref());
    }
    let paint = paint::Paint::choose(arguments.color);
    match arguments.command {
        None => flags::print_short_help(),
        Some(Command::Doctor(doctor)) => verbs::doctor::run(&doctor, paint),
        Some(Command::Record(record)) => verbs::record::run(&record),
        Some(Command::Receive(typed)) => verbs::receive::run(&typed),
        Some(Command::Snapshot(snapshot)) => verbs::rings::snapshot(&snapshot),
        Some(Command::Recover(recover)) => verbs::rings::recover(&recover),
        Some(Command::Demo(typed)) => demo::run::run(&typed, paint),
        Some(Command::Measure(typed)) => verbs::measure::run(&typed, paint),
        Some(Command::Monitor(typed)) => verbs::monitor::run(&typed),
        Some(Command::Shield(typed)) => verbs::shield::run(&typed),
        Some(Command::Tune(typed)) => verbs::tune::run(&typed),
        Some(Command::Watch(watch)) => verbs::watch::run(&watch, paint),
        Some(Command::Diagnose(typed)) => verbs::diagnose::run(&typed, paint),
        Some(Command::Cat(cat)) => verbs::cat::run(&cat, paint),
        Some(Command::Convert(typed)) => verbs::convert::run(&typed),
        Some(Command::Info(info)) => verbs::info::run(&info),
        Some(Command::Check(typed)) => verbs::check::run(&typed),
        Some(Command::Diff(typed)) => verbs::diff::run(&typed),
        Some(Command::View(typed)) => verbs::view::run(&typed),
        Some(Command::Report(report)) => verbs::report::run(&report),
        Some(Command::DemoPart(part)) => demo::part::run(&part),
        Some(Command::LoadPart(part)) => verbs::measure::load_part(&part),
    }
}
