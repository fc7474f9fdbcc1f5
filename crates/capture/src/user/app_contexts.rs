//! Contexts that an application itself provides, under LTTng's names: `$app.PROVIDER:CONTEXT`.
//!
//! Only the process knows them: it is told of them when it starts, and its events then have a
//! text more for each.

use event::{Error, ErrorKind, Result};
use ring::{EventDescription, Layout};

/// How their names begin.
const PREFIX: &str = "$app.";
/// How the line of a session's file begins that names one; as `probe/src/sessions.c` reads it.
const ANNOUNCED: &str = "!app-context ";
/// So many a process adds to its events.
const CONTEXTS_MAX: usize = 8;

/// One of them, as `PROVIDER:CONTEXT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppContext(String);

impl AppContext {
    fn parse(word: &str) -> Result<AppContext> {
        let name = word.strip_prefix(PREFIX).unwrap_or_default();
        let known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let is_name = |part: &str| !part.is_empty() && part.chars().all(known);
        match name.split_once(':') {
            Some((provider, context)) if is_name(provider) && is_name(context) => {
                Ok(AppContext(name.to_owned()))
            }
            _ => Err(
                Error::new(ErrorKind::InvalidInput, "not a context of an application")
                    .found(format!("'{word}'"))
                    .fix("as in '$app.PROVIDER:CONTEXT': letters, digits, '_', '.' and '-'"),
            ),
        }
    }

    /// As a process reads it.
    pub fn announced(&self) -> String {
        format!("{ANNOUNCED}{}", self.0)
    }

    /// The field that events have of it.
    fn field(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        format!("app_{}", self.0.chars().map(plain).collect::<String>())
    }
}

/// Parts the contexts of applications from `words` such as `procname,$app.a:b`; gives these and
/// the others.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word that can be none, and for too many.
pub(super) fn parted(words: &[String]) -> Result<(Vec<AppContext>, Vec<String>)> {
    let mut contexts: Vec<AppContext> = Vec::new();
    let mut others = Vec::new();
    for word in words
        .iter()
        .flat_map(|words| words.split(','))
        .map(str::trim)
    {
        if !word.starts_with('$') {
            others.push(word.to_owned());
            continue;
        }
        let context = AppContext::parse(word)?;
        if !contexts
            .iter()
            .any(|known| known.field() == context.field())
        {
            contexts.push(context);
        }
    }
    if contexts.len() > CONTEXTS_MAX {
        return Err(
            Error::new(ErrorKind::InvalidInput, "too many contexts of applications")
                .found(format!("{}, {CONTEXTS_MAX} at most", contexts.len()))
                .fix("leave some out"),
        );
    }
    Ok((contexts, others))
}

/// What is to be said where an event of a process that is switched on lacks some of `wanted`.
pub(super) fn missing<'e>(
    wanted: &[AppContext],
    mut events: impl Iterator<Item = &'e EventDescription>,
    layout: &Layout,
) -> Option<String> {
    // Those of the library itself, as tracef's, have none.
    let is_librarys = |event: &EventDescription| event.provider.starts_with("lttng_ust_");
    let lacks = |event: &EventDescription| {
        let has = |name: &str| event.fields.iter().any(|field| field.name == name);
        wanted.iter().find(|context| !has(&context.field()))
    };
    let (event, context) = events.find_map(|event| {
        Some((
            event.full_name(),
            lacks(event).filter(|_| !is_librarys(event))?,
        ))
    })?;
    let what = format!(
        "events of {} ({}) have no {PREFIX}{}",
        layout.name, layout.pid, context.0
    );
    let fix = "start it while the recording runs, with our liblttng-ust.so.1: \
               it is told of contexts when it starts";
    let error = Error::new(ErrorKind::Unsupported, what);
    Some(format!("{:#}", error.found(event).fix(fix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_of_an_application_has_a_provider_and_a_name() {
        let check = |word: &str, expect: Option<(&str, &str)>| {
            let found = AppContext::parse(word).ok();
            let found = found.map(|one| (one.announced(), one.field()));
            let expect = expect.map(|(line, field)| (line.to_owned(), field.to_owned()));
            assert_eq!(found, expect, "{word}");
        };
        check("$app.a:b", Some(("!app-context a:b", "app_a_b")));
        check(
            "$app.a.x:b-1",
            Some(("!app-context a.x:b-1", "app_a_x_b_1")),
        );
        for word in [
            "$app.",
            "$app.a",
            "$app.a:",
            "$app.:b",
            "$app.a:b:c",
            "$app.a:b c",
            "$ap.a:b",
        ] {
            check(word, None);
        }
    }

    #[test]
    fn words_are_parted_and_each_field_is_wanted_once() {
        let words = [
            "procname,$app.a:b".to_owned(),
            "$app.a:b,prio,$app.a_b".to_owned(),
        ];
        assert!(parted(&words).is_err(), "no colon");
        let words = [
            "procname,$app.a:b".to_owned(),
            " $app.a.b:c,prio,$app.a:b.c".to_owned(),
        ];
        let (contexts, others) = parted(&words).expect("contexts");
        let names: Vec<_> = contexts.iter().map(|one| &*one.0).collect();
        assert_eq!(names, ["a:b", "a.b:c"]);
        assert_eq!(others, ["procname", "prio"]);
        let many: Vec<_> = (0..9).map(|n| format!("$app.a:c{n}")).collect();
        assert!(parted(&many).is_err());
        assert!(parted(&many[1..]).is_ok());
    }
}
