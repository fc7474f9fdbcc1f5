//! The commands that the pages show.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The repository's pages. What changed in the past is told in the words of then.
pub fn pages() -> Vec<String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ])
        .current_dir(root())
        .output()
        .expect("git starts");
    let listed = String::from_utf8(output.stdout).expect("utf-8");
    let pages = listed.lines().filter(|page| *page != "CHANGELOG.md");
    let pages = pages.filter(|page| root().join(page).exists());
    pages.map(str::to_owned).collect()
}

/// The text of a page.
pub fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a page")
}

/// The commands in a page's blocks of code and between its backticks.
pub fn shown_in_page(text: &str) -> Vec<String> {
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
pub fn shown_in_lines(lines: &str) -> Vec<String> {
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
    // The head of a help is a form to fill in.
    let is_form = text.contains(" <COMMAND>");
    (text.starts_with("rtscope ") && !is_form).then_some(text)
}

/// The words of a command, up to a pipe, the background or what the page says of it.
pub fn words(command: &str) -> Vec<String> {
    // What a help says of a command stands behind several blanks.
    let command = command.split("   ").next().unwrap_or(command);
    let words = shlex::split(command).expect("a command of a shell");
    let ends = |word: &String| !matches!(word.as_str(), "|" | "&" | ">" | "2>&1" | "||" | "&&");
    words.into_iter().take_while(ends).collect()
}
