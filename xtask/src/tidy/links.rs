//! Links of the pages: each leads to a file that is there and to a heading that it has; and the
//! book's contents name every page of `docs`.

use std::collections::{BTreeMap, BTreeSet};

/// Where the book's contents are.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Every link of `pages` (path and text) that leads nowhere, a line each. `exists` knows files and
/// folders.
pub fn problems(pages: &BTreeMap<&str, &str>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let anchors: BTreeMap<_, _> = pages
        .iter()
        .map(|(path, text)| (*path, anchors(text)))
        .collect();
    let mut problems = Vec::new();
    for (path, text) in pages {
        for (line, link) in links(text) {
            if let Some(problem) = problem(path, &link, &anchors, &exists) {
                problems.push(format!("{path}:{}: {problem}", line + 1));
            }
        }
    }
    problems.extend(missing_in_contents(pages));
    problems
}

fn problem(
    path: &str,
    link: &str,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    exists: &impl Fn(&str) -> bool,
) -> Option<String> {
    let is_outside = ["http://", "https://", "mailto:"];
    if is_outside.iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        path.to_owned()
    } else {
        joined(path, file)
    };
    if !exists(&target) {
        return Some(format!("the link '{link}' leads to no file: {target}"));
    }
    let known = anchors.get(target.as_str())?;
    (!anchor.is_empty() && !known.contains(anchor))
        .then(|| format!("the link '{link}': {target} has no such heading"))
}

/// Pages of `docs` that the book's contents do not name.
fn missing_in_contents(pages: &BTreeMap<&str, &str>) -> Vec<String> {
    let Some(contents) = pages.get(CONTENTS) else {
        return Vec::new();
    };
    let named: BTreeSet<_> = links(contents)
        .into_iter()
        .map(|(_, link)| joined(CONTENTS, &link))
        .collect();
    let is_page = |path: &&str| path.starts_with("docs/") && *path != CONTENTS;
    let missing = pages.keys().copied().filter(is_page);
    missing
        .filter(|path| !named.contains(*path))
        .map(|path| format!("{path}: {CONTENTS} does not name it"))
        .collect()
}

/// The path that `link` in the file `path` means, from the repository's root.
fn joined(path: &str, link: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The targets of all links and pictures, each with the line that it is in.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, behind)) = after.split_once(')') else {
                break;
            };
            // A title stands behind a blank.
            let target = target.split(' ').next().unwrap_or_default();
            found.push((at, target.to_owned()));
            rest = behind;
        }
    }
    found
}

/// The lines outside of blocks of code, without what stands between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            // Code alone is left out: what a link shows may be code.
            let parts = line.split('`').step_by(2);
            lines.push((at, parts.collect::<Vec<_>>().join("")));
        }
    }
    lines
}

/// The anchors of a page's headings, as the sites that show it make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        let heading = line.trim_start_matches('#');
        if inside || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let first = anchor(heading);
        let again = (1..).map(|count| format!("{first}-{count}"));
        let mut names = std::iter::once(first.clone()).chain(again);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let plain: String = heading.trim().chars().filter(kept).collect();
    plain.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pages: &[(&str, &str)], expect: &[&str]) {
        let pages: BTreeMap<_, _> = pages.iter().copied().collect();
        let exists = |path: &str| pages.contains_key(path) || path == "docs/a.svg";
        assert_eq!(problems(&pages, exists), expect, "{pages:?}");
    }

    #[test]
    fn a_link_leads_to_a_file_that_is_there() {
        check(
            &[("docs/a.md", "[x](b.md) ![p](a.svg)"), ("docs/b.md", "")],
            &[],
        );
        check(
            &[("docs/a.md", "[x](../README.md)"), ("README.md", "")],
            &[],
        );
        let lost = "docs/a.md:2: the link 'c.md' leads to no file: docs/c.md";
        check(&[("docs/a.md", "one\n[`x`](c.md)")], &[lost]);
        let two = "docs/a.md:1: the link '../c.md' leads to no file: c.md";
        check(&[("docs/a.md", "[x](a.md)[y](../c.md)")], &[two]);
        check(&[("a.md", "[x](https://example.org/c.md)")], &[]);
    }

    #[test]
    fn an_anchor_is_a_heading_of_its_page() {
        let text = "# A `b`: c?\n[x](#a-b-c)\n## Twice\n## Twice\n[y](#twice-1)";
        check(&[("a.md", text)], &[]);
        let lost = "a.md:1: the link 'b.md#two': b.md has no such heading";
        check(&[("a.md", "[x](b.md#two)"), ("b.md", "# One")], &[lost]);
        let own = "a.md:1: the link '#none': a.md has no such heading";
        check(&[("a.md", "[x](#none)\n```\n# none\n```")], &[own]);
        check(&[("a.md", "[x](b.md#ä-1)"), ("b.md", "## Ä 1")], &[]);
    }

    #[test]
    fn what_is_code_is_no_link() {
        check(&[("a.md", "`[x](c.md)`\n```\n[x](c.md)\n```")], &[]);
    }

    #[test]
    fn the_contents_name_every_page_of_the_book() {
        let contents = ("docs/SUMMARY.md", "[a](a.md)");
        check(&[contents, ("docs/a.md", ""), ("README.md", "")], &[]);
        let lost = "docs/x/b.md: docs/SUMMARY.md does not name it";
        check(&[contents, ("docs/a.md", ""), ("docs/x/b.md", "")], &[lost]);
    }
}
