//! House rules on every source file; each rule is one function with a test on good and bad input.

mod circles;
mod imports;
mod links;
mod rules;
mod scan;
mod source;

use std::path::Path;

use anyhow::{Context, Result, bail};

use source::Source;

/// Folders that hold no source of ours.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", ".cache", "__pycache__", "node_modules"];

/// Checks every file below `root`.
pub fn run(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    for path in files(root)? {
        let text = std::fs::read_to_string(root.join(&path));
        // Not text: nothing for these rules.
        let Ok(text) = text else { continue };
        let source = Source {
            path: &path,
            text: &text,
        };
        problems.extend(rules::problems(&source));
        if path == "ARCHITECTURE.md" {
            let exists = |name: &str| root.join(name).exists();
            problems.extend(rules::named_files_exist(&source, exists));
        }
        sources.push((path, text));
    }
    problems.extend(circles::problems(&sources));
    let pages = sources
        .iter()
        .filter(|(path, _)| path.ends_with(".md"))
        .map(|(path, text)| (path.as_str(), text.as_str()));
    let exists = |path: &str| root.join(path).exists();
    problems.extend(links::problems(&pages.collect(), exists));
    if !problems.is_empty() {
        bail!(
            "{} house rules broken\n  {}",
            problems.len(),
            problems.join("\n  ")
        );
    }
    Ok(())
}

/// All files below `root`, as sorted relative paths.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
            let kind = std::fs::symlink_metadata(&path)?.file_type();
            if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                folders.push(path);
            } else if kind.is_file() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                found.push(relative);
            }
        }
    }
    found.sort();
    Ok(found)
}
