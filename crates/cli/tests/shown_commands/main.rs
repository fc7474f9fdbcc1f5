//! What the pages and the helps show can be pasted: every command in them is one that the program
//! takes, with flags that it has; those that read a trace are run; and what the book shows as
//! printed is what the program prints.

mod executed;
mod pages;
mod printed;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use cli::flags::Arguments;
use pages::{page, pages, shown_in_lines, shown_in_page, words};

/// What the program says against `command`, which stands in `place`.
fn problem(place: &str, command: &str) -> Option<String> {
    let mut words = words(command);
    // `help VERB` is another spelling of `VERB --help`; VERB stands for any.
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.retain(|word| word != "VERB");
        words.push("--help".to_owned());
    }
    let error = Arguments::try_parse_from(words).err()?;
    // The feature is an optional one of the build.
    let needs_feature = cfg!(not(feature = "arrow")) && command.contains("--to parquet");
    // Help and version are fine to show; a sentence may name a verb without its trace.
    let is_fine = !error.use_stderr()
        || matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
    let first = error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    (!is_fine && !needs_feature).then(|| format!("{place}: {command}: {first}"))
}

#[test]
fn every_command_of_the_pages_is_one_that_the_program_takes() {
    let mut count = 0;
    let mut problems = Vec::new();
    for path in pages() {
        for command in shown_in_page(&page(&path)) {
            problems.extend(problem(&path, &command));
            count += 1;
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(count > 100, "the pages show {count} commands");
}

/// The examples of `command` and of the verbs below it.
fn examples(command: &mut clap::Command) -> Vec<String> {
    let help = command.render_long_help().to_string();
    let part = help.split("Example").nth(1).unwrap_or_default();
    let mut shown = shown_in_lines(part.trim_start_matches(['s', ':', ' ']));
    for verb in command.get_subcommands_mut() {
        shown.extend(examples(verb));
    }
    shown
}

#[test]
fn every_example_of_a_help_is_one_that_the_program_takes() {
    let examples = examples(&mut Arguments::command());
    let problems: Vec<_> = examples
        .iter()
        .filter_map(|example| problem("help", example))
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
    let count = examples.len();
    assert!(count > 50, "the helps show {count} examples");
}

#[test]
fn a_command_goes_on_behind_a_backslash_and_inside_quotes() {
    let shown = shown_in_page(
        "a\n```sh\nsudo rtscope cat T \\\n  --filter 'a\n b' | head\n```\n`rtscope info T`",
    );
    let read: Vec<_> = shown.iter().map(|command| words(command)).collect();
    assert_eq!(read[0], ["rtscope", "cat", "T", "--filter", "a b"]);
    assert_eq!(read[1], ["rtscope", "info", "T"]);
}
