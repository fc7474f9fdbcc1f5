//! `EVENT[/FILTER]`: which event, and where its filter begins.

use event::{Error, ErrorKind, Result};

use crate::programs;

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
        file: &'t str,
        function: &'t str,
        returns: bool,
    },
    /// `usdt:FILE:PROVIDER:NAME`
    Mark {
        file: &'t str,
        provider: &'t str,
        name: &'t str,
    },
}

const FIX: &str = "give a tracepoint as in sched_switch, uprobe:FILE:FUNCTION, \
                   uretprobe:FILE:FUNCTION or usdt:FILE:PROVIDER:NAME; a filter follows a slash";

/// There is no file, or nothing behind it.
fn nothing_of(kind: &str, rest: &str) -> Error {
    let typed = rest.split(':').next().unwrap_or_default();
    match (programs::files(typed), kind) {
        (Err(error), _) => error,
        (Ok(_), "usdt") => invalid("no mark is named", rest),
        (Ok(_), _) => invalid("no function is named", rest),
    }
}

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
        let (file, behind) = programs::split(rest).ok_or_else(|| nothing_of(kind, rest))?;
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

    /// The file in which it happens, as it was typed; none of the kernel's own events.
    pub(super) fn file(&self) -> Option<&str> {
        match self.what {
            What::Tracepoint(_) => None,
            What::Function { file, .. } | What::Mark { file, .. } => Some(file),
        }
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
            file: file.to_str().expect("a name"),
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
            file: file.to_str().expect("a name"),
            provider: "app",
            name: "begin",
        };
        check(&format!("usdt:{typed}:app:begin/arg0"), mark, Some("arg0"));
    }
}
