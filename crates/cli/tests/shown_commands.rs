//! What the pages and the helps show can be pasted: every command in them is one that the program
//! takes, with flags that it has.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use cli::flags::Arguments;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The repository's pages. What changed in the past is told in the words of then.
fn pages() -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "*.md"])
        .current_dir(root())
        .output()
        .expect("git starts");
    let listed = String::from_utf8(output.stdout).expect("utf-8");
    let pages = listed.lines().filter(|page| *page != "CHANGELOG.md");
    pages.map(str::to_owned).collect()
}

/// The commands in a page's blocks of code and between its backticks.
fn shown_in_page(text: &str) -> Vec<String> {
    let mut shown = Vec::new();
    for (place, part) in text.split("```").enumerate() {
        if place % 2 == 1 {
            shown.extend(shown_in_lines(part));
        } else {
            let between = part.split('`').skip(1).step_by(2);
            // Words with … are a form to fill in, not a command.
            let whole = between.filter(|code| !code.contains('…') && !code.contains('['));
            shown.extend(whole.filter_map(command_in));
        }
    }
    shown
}

/// The commands of `lines`, each with the lines that it goes on in.
fn shown_in_lines(lines: &str) -> Vec<String> {
    let mut shown = Vec::new();
    let mut begun = String::new();
    for line in lines.lines() {
        let line = line.trim_start();
        let goes_on = line.strip_suffix('\\');
        begun.push_str(goes_on.unwrap_or(line));
        begun.push('\n');
        let quote_is_open = shlex::split(&begun).is_none() && command_in(&begun).is_some();
        if goes_on.is_none() && !quote_is_open {
            shown.extend(command_in(&begun));
            begun.clear();
        }
    }
    shown
}

fn command_in(text: &str) -> Option<String> {
    let text = text.trim_start().trim_start_matches("$ ");
    let text = text.trim_start_matches("sudo ").replace('\n', " ");
    text.starts_with("rtscope ").then_some(text)
}

/// The words of a command, up to a pipe, the background or what the page says of it.
fn words(command: &str) -> Vec<String> {
    // What a help says of a command stands behind several blanks.
    let command = command.split("   ").next().unwrap_or(command);
    let words = shlex::split(command).expect("a command of a shell");
    let ends = |word: &String| !matches!(word.as_str(), "|" | "&" | ">" | "2>&1");
    words.into_iter().take_while(ends).collect()
}

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
    for page in pages() {
        let text = std::fs::read_to_string(root().join(&page)).expect("a page");
        for command in shown_in_page(&text) {
            problems.extend(problem(&page, &command));
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
