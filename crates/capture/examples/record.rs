//! Records the default events while a command runs: the smallest use of this crate.

use std::process::ExitCode;

use capture::{EventSelection, RecordConfig, facts, own_command_line, record};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(output), Some(events)) = (words.next(), words.next()) else {
        eprintln!("usage: record OUTPUT EVENTS COMMAND…");
        return ExitCode::FAILURE;
    };
    let config = RecordConfig {
        events: EventSelection::new([events.to_string_lossy()]),
        command: Some(words.collect()),
        ..RecordConfig::new(output)
    };
    match record(&config, &facts::gather(), &own_command_line()) {
        Ok(summary) => {
            println!(
                "{}: {} events, {} lost",
                summary.path.display(),
                summary.events(),
                summary.lost()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
