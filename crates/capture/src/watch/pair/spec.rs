//! `EVENT[/FILTER]`: which event, and where its filter begins.

use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};

/// An event as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec<'t> {
    /// All of it.
    pub text: &'t str,
    /// What happens.
    pub what: What<'t>,
    /// Where the filter begins.
    pub filter_at: Option<usize>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What<'t> {
    /// `sched_switch`, `sched:sched_switch`
    Tracepoint(&'t str),
    /// `uprobe:FILE:FUNCTION`, `uretprobe:FILE:FUNCTION`
    Function {
        file: PathBuf,
        function: &'t str,
        returns: bool,
    },
    /// `usdt:FILE:PROVIDER:NAME`
    Mark {
        file: PathBuf,
        provider: &'t str,
        name: &'t str,
    },
}

const FIX: &str = "give a tracepoint as in sched_switch, uprobe:FILE:FUNCTION, \
                   uretprobe:FILE:FUNCTION or usdt:FILE:PROVIDER:NAME; a filter follows a slash";

fn invalid(what: &str, text: &str) -> Error {
    let error = Error::new(ErrorKind::InvalidInput, what);
    error.found(format!("'{text}'")).fix(FIX)
}

impl Spec<'_> {
    pub(super) fn parse(text: &str) -> Result<Spec<'_>> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind @ ("uprobe" | "uretprobe" | "usdt"), rest)) => (kind, rest),
            _ => return Spec::tracepoint(text),
        };
        let (file, behind) = file(rest).ok_or_else(|| {
            let typed = rest.split(':').next().unwrap_or_default();
            let error = Error::new(ErrorKind::NotFound, "no such program or library");
            error.found(format!("'{typed}'")).fix(FIX)
        })?;
        let (name, filter_at) = filter(text, behind);
        let what = match kind {
            "usdt" => match name.split_once(':') {
                Some((provider, name)) if !provider.is_empty() && !name.is_empty() => What::Mark {
                    file,
                    provider,
                    name,
                },
                _ => return Err(invalid("no mark is named", text)),
            },
            _ if name.is_empty() => return Err(invalid("no function is named", text)),
            _ => What::Function {
                file,
                function: name,
                returns: kind == "uretprobe",
            },
        };
        Ok(Spec {
            text,
            what,
            filter_at,
        })
    }

    fn tracepoint(text: &str) -> Result<Spec<'_>> {
        let (name, filter_at) = filter(text, text);
        if name.is_empty() {
            return Err(invalid("no event is named", text));
        }
        Ok(Spec {
            text,
            what: What::Tracepoint(name),
            filter_at,
        })
    }
}

/// The name before the first slash of `rest`, the end of `text`, and where the filter behind it
/// begins.
fn filter<'t>(text: &str, rest: &'t str) -> (&'t str, Option<usize>) {
    match rest.split_once('/') {
        Some((name, filter)) => (name.trim(), Some(text.len() - filter.len())),
        None => (rest.trim(), None),
    }
}

/// The file that `rest` begins with, up to the first colon that makes it one, and what is behind.
fn file(rest: &str) -> Option<(PathBuf, &str)> {
    let ends = rest.char_indices().filter(|(_, c)| *c == ':');
    let ends = ends.map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().find_map(|end| {
        let behind = rest.get(end + 1..).unwrap_or_default();
        find_file(&rest[..end]).map(|file| (file, behind))
    })
}

/// A name without a slash is a program of the path.
fn find_file(name: &str) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let here = || PathBuf::from(name);
    let found = match name.contains('/') {
        true => Some(here()),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders: Vec<_> = std::env::split_paths(&path).collect();
            let mut found = folders.iter().map(|folder| folder.join(name));
            found.find(|file| file.is_file()).or_else(|| Some(here()))
        }
    };
    found.filter(|file| Path::is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_from_its_filter() {
        let check = |text: &str, what: What<'_>, filter: Option<&str>| {
            let spec = Spec::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(spec.what, what, "{text}");
            assert_eq!(spec.filter_at.map(|at| &text[at..]), filter, "{text}");
        };
        check("sched_switch", What::Tracepoint("sched_switch"), None);
        let full = What::Tracepoint("sched:sched_switch");
        check(
            "sched:sched_switch/prev_tid / 2 == 7",
            full,
            Some("prev_tid / 2 == 7"),
        );
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a:b c");
        std::fs::write(&file, "").expect("a file");
        let typed = file.display();
        let function = |returns| What::Function {
            file: file.clone(),
            function: "main",
            returns,
        };
        check(&format!("uprobe:{typed}:main"), function(false), None);
        check(
            &format!("uretprobe:{typed}:main/ret < 0"),
            function(true),
            Some("ret < 0"),
        );
        let mark = What::Mark {
            file: file.clone(),
            provider: "app",
            name: "begin",
        };
        check(&format!("usdt:{typed}:app:begin/arg0"), mark, Some("arg0"));
    }
}
