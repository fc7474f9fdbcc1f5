//! What the book shows as printed is what the program prints: blocks of `console`, the reference of
//! flags and reports, pictures. `RTSCOPE_BLESS=1 cargo test -p cli --test shown_commands` writes
//! them anew; review the diff.

use std::fmt::Write as _;
use std::process::{Command, Output};

use clap::CommandFactory;
use cli::flags::Arguments;

use crate::pages::{page, pages, root, words};

/// Where the book's recording is, and the commands of `console` are typed.
const RECORDINGS: &str = "docs/recordings";

fn rtscope(words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).current_dir(root().join(RECORDINGS));
    // Nothing of the reader's terminal and zone decides what is printed.
    command.env_clear().env("COLUMNS", "100").env("TZ", "UTC");
    command.output().expect("rtscope starts")
}

/// What a terminal shows of `words`.
fn printed(words: &[String]) -> String {
    let output = rtscope(words);
    let mut text = String::from_utf8(output.stdout).expect("utf-8");
    text += &String::from_utf8(output.stderr).expect("utf-8");
    text
}

/// Compares the file `path` with `expect`, or writes it.
fn check(path: &str, expect: &str) {
    let file = root().join(path);
    if std::env::var_os("RTSCOPE_BLESS").is_some() {
        std::fs::write(&file, expect).expect("written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expect,
        "{path} is not current\n  fix:  cargo xtask reference\n{}",
        difference(&found, expect)
    );
}

/// The first lines that differ.
fn difference(found: &str, expect: &str) -> String {
    let lines = found.lines().zip(expect.lines());
    let first = lines
        .enumerate()
        .find(|(_, (found, expect))| found != expect);
    first.map_or_else(
        || "one of them is longer".to_owned(),
        |(at, (found, expect))| format!("line {}:\n- {found}\n+ {expect}", at + 1),
    )
}

/// A block of `console`: each command, and below it what it prints.
fn block(text: &str) -> String {
    let mut block = String::new();
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
    for command in commands {
        let words = words(command);
        assert_eq!(words[0], "rtscope", "{command}");
        let _ = writeln!(block, "$ {command}");
        // A page is easier to read without blanks at the ends of lines.
        for line in printed(&words[1..]).lines() {
            let _ = writeln!(block, "{}", line.trim_end());
        }
    }
    block
}

#[test]
fn what_the_book_shows_behind_a_command_is_what_it_prints() {
    let mut count = 0;
    for path in pages().iter().filter(|path| path.starts_with("docs/")) {
        let text = page(path);
        let mut current = String::new();
        for (place, part) in text.split("```").enumerate() {
            let fence = if place == 0 { "" } else { "```" };
            match part.strip_prefix("console\n") {
                Some(shown) if place % 2 == 1 => {
                    count += 1;
                    let _ = write!(current, "{fence}console\n{}", block(shown));
                }
                _ => {
                    let _ = write!(current, "{fence}{part}");
                }
            }
        }
        check(path, &current);
    }
    assert!(count >= 8, "the book shows {count} blocks");
}

/// The pictures of the book, and the commands that draw them.
const PICTURES: &[(&str, &str)] = &[
    ("late-loop.svg", "diagnose late-loop.txt --task ctrl_loop"),
    (
        "late-loop-waits.svg",
        "report schedlog late-loop.txt --task ctrl_loop",
    ),
];

#[test]
fn each_picture_is_what_the_program_draws_from_the_recording() {
    for (name, command) in PICTURES {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        let mut words = shlex::split(command).expect("words");
        words.extend(["--svg".to_owned(), file.display().to_string()]);
        let output = rtscope(&words);
        assert!(output.status.success(), "{command}: {output:?}");
        let picture = std::fs::read_to_string(&file).expect("a picture");
        check(&format!("docs/pictures/{name}"), &picture);
    }
}

/// The long helps of `command` and of the verbs below it.
fn helps(command: &clap::Command, above: &[&str], text: &mut String) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let mut path = above.to_vec();
        path.push(verb.get_name());
        let mut typed: Vec<String> = path.iter().map(|word| (*word).to_owned()).collect();
        let level = "#".repeat(path.len() + 1);
        let name = typed.join(" ");
        typed.push("--help".to_owned());
        let help = printed(&typed);
        let help = help.lines().map(str::trim_end).collect::<Vec<_>>();
        let _ = write!(
            text,
            "\n{level} rtscope {name}\n\n```text\n{}\n```\n",
            help.join("\n").trim_end()
        );
        helps(verb, &path, text);
    }
}

#[test]
fn the_reference_of_the_flags_is_what_the_helps_say() {
    let mut text = String::from(
        "# The verbs and their flags\n\nEvery verb with all of its flags, as `rtscope help VERB` \
         prints them. `cargo xtask reference` writes\nthis page; a test holds it against the \
         program.\n",
    );
    helps(&Arguments::command(), &[], &mut text);
    check("docs/reference/verbs.md", &text);
}

/// The tables of a report, as it tells other programs of them.
fn tables(name: &str) -> String {
    let words = ["report", name, "--lami", "--metadata"].map(str::to_owned);
    let output = rtscope(&words);
    assert!(output.status.success(), "{name}: {output:?}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut text = String::new();
    let classes = value["table-classes"].as_object().expect("tables");
    for class in classes.values() {
        let columns = class["column-descriptions"].as_array().expect("columns");
        let columns: Vec<_> = columns
            .iter()
            .map(|column| {
                let title = column["title"].as_str().unwrap_or_default();
                match column["unit"].as_str() {
                    Some(unit) => format!("{title} ({unit})"),
                    None => title.to_owned(),
                }
            })
            .collect();
        let title = class["title"].as_str().unwrap_or_default();
        let _ = writeln!(text, "- {title}: {}", columns.join(", "));
    }
    text
}

#[test]
fn the_reference_of_the_reports_is_what_they_say_of_themselves() {
    let listed = printed(&["report", "list"].map(str::to_owned));
    let mut text = String::from(
        "# The reports and their columns\n\n\
         What each `rtscope report NAME` answers, and the tables that it gives to other programs \
         (`--lami`).\n[reports.md](../reports.md) says how they count. \
         `cargo xtask reference` writes this page; a test holds it\nagainst the program.\n\n\
         | report | answers |\n|---|---|\n",
    );
    // Reports of one family have the same tables.
    let mut families: Vec<(Vec<&str>, String)> = Vec::new();
    for line in listed.lines() {
        let (name, answers) = line.split_once(' ').expect("a name and what it answers");
        let _ = writeln!(text, "| {name} | {} |", answers.trim());
        let tables = tables(name);
        match families.last_mut().filter(|(_, last)| *last == tables) {
            Some((names, _)) => names.push(name),
            None => families.push((vec![name], tables)),
        }
    }
    for (names, tables) in families {
        let _ = write!(text, "\n## {}\n\n{tables}", names.join(", "));
    }
    check("docs/reference/reports.md", &text);
}
