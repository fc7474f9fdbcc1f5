//! Command lines that make no sense, as errors in three parts: what failed, what was typed, what to
//! type instead.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind as Kind};
use event::{Error, ErrorKind};

use super::elsewhere;

/// What helps more than the usage of a verb: the verb, the flag or word that is missing or was not
/// expected, and what to type.
const HINTS: [(&str, &str, &str); 6] = [
    (
        "record",
        "--raw",
        "--to sends CTF alone, without --raw; or record --raw -o PAGES, copy that folder to the \
         other host, and there: rtscope convert PAGES --to ctf -o TRACE",
    ),
    (
        "record start",
        "--raw",
        "a session writes CTF alone, without --raw; rtscope record --raw -o PAGES keeps pages \
         until Ctrl-C or for --duration DUR",
    ),
    (
        "check",
        "--rule",
        "--rule 'response of TASK within 5ms', or --task TASK --over 5ms",
    ),
    ("check", "--over", "--task TASK and --over DUR go together"),
    ("check", "--task", "--task TASK and --over DUR go together"),
    (
        "convert",
        "--output",
        "-o FILE; -o - is the standard output",
    ),
];

/// What a command line of `program` has wrong; `words` are those behind the program's name.
pub(super) fn explained(mistake: &clap::Error, program: &Command, words: &[String]) -> Error {
    let verb = verb(mistake, program, words);
    let help = match verb.as_str() {
        "" => "rtscope -h lists the verbs".to_owned(),
        verb => format!("rtscope {verb} -h says what it takes"),
    };
    let argument = texts(mistake, ContextKind::InvalidArg);
    let value = texts(mistake, ContextKind::InvalidValue).join(" ");
    let named = argument.first().cloned().unwrap_or_default();
    let error = |what: String| Error::new(ErrorKind::InvalidInput, what);
    match mistake.kind() {
        Kind::UnknownArgument => unknown(mistake, &named, &verb, &help),
        Kind::InvalidSubcommand => {
            let typed = texts(mistake, ContextKind::InvalidSubcommand).join(" ");
            let near = texts(mistake, ContextKind::SuggestedSubcommand);
            error("there is no such verb".to_owned())
                .found(quoted(&typed))
                .fix(match elsewhere::verb(&typed) {
                    Some(meant) => format!("{meant}; {help}"),
                    None => perhaps(&near, &help),
                })
        }
        Kind::InvalidValue if value.is_empty() => error(format!("{named} has no value"))
            .found("nothing behind it")
            .fix(choices(mistake).unwrap_or(help)),
        Kind::InvalidValue => error(format!("{named} does not take this"))
            .found(quoted(&value))
            .fix(choices(mistake).unwrap_or(help)),
        Kind::ValueValidation => {
            let why = std::error::Error::source(mistake).map(ToString::to_string);
            let why = match why.as_deref() {
                // Of the standard library's parser, in its own words.
                Some("invalid digit found in string") => "give a whole number",
                Some(why) => why,
                None => "give another value",
            };
            error(format!("{named} does not take this"))
                .found(quoted(&value))
                .fix(format!("{why}; {help}"))
        }
        Kind::ArgumentConflict => {
            let other = texts(mistake, ContextKind::PriorArg).join(", ");
            error("these cannot stand together".to_owned())
                .found(match other.is_empty() || other == named {
                    true => format!("{named}, twice"),
                    false => format!("{named}, {other}"),
                })
                .fix(match hint(&verb, &argument) {
                    Some(hint) => hint.to_owned(),
                    None => format!("leave one of them away; {help}"),
                })
        }
        Kind::MissingRequiredArgument => error("something is missing".to_owned())
            .found(format!("no {}", argument.join(", no ")))
            .fix(hint(&verb, &argument).map_or_else(|| usage(mistake, &help), str::to_owned)),
        _ => error("the command line makes no sense".to_owned())
            .found(first_line(mistake))
            .fix(help),
    }
}

fn unknown(mistake: &clap::Error, typed: &str, verb: &str, help: &str) -> Error {
    let error = |what: &str| Error::new(ErrorKind::InvalidInput, what).found(quoted(typed));
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if typed.strip_prefix('-').is_some_and(is_number) {
        return error("no value may be below zero").fix(format!("leave the '-' away; {help}"));
    }
    let meant = elsewhere::flag(verb, typed).map(|meant| format!("{meant}; {help}"));
    let near = texts(mistake, ContextKind::SuggestedArg);
    if typed.starts_with('-') {
        let hint = hint(verb, &[typed.to_owned()]).map(str::to_owned);
        let fix = hint.or(meant).unwrap_or_else(|| perhaps(&near, help));
        return error("there is no such flag").fix(fix);
    }
    let usage = usage(mistake, help);
    let hint = hint(verb, &[typed.to_owned()]).map(str::to_owned);
    let fix = hint.or(meant).unwrap_or(usage);
    error("this is one word too many").fix(fix)
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

fn perhaps(near: &[String], help: &str) -> String {
    match near {
        [] => help.to_owned(),
        near => format!("perhaps {} is meant; {help}", near.join(" or ")),
    }
}

fn hint(verb: &str, arguments: &[String]) -> Option<&'static str> {
    let is_it = |flag: &str| arguments.iter().any(|one| one.contains(flag));
    let mut hints = HINTS.iter();
    let found = hints.find(|(of, flag, _)| *of == verb && is_it(flag));
    found.map(|(_, _, fix)| *fix)
}

/// The values that a flag takes, if there are only some.
fn choices(mistake: &clap::Error) -> Option<String> {
    let valid = texts(mistake, ContextKind::ValidValue);
    (!valid.is_empty()).then(|| format!("choose from: {}", valid.join(", ")))
}

/// How the verb is called, and where to read on.
fn usage(mistake: &clap::Error, help: &str) -> String {
    match usage_line(mistake) {
        Some(line) => format!("{line}; {help}"),
        None => help.to_owned(),
    }
}

fn usage_line(mistake: &clap::Error) -> Option<String> {
    let usage = texts(mistake, ContextKind::Usage).join(" ");
    let words = usage.split_whitespace().filter(|word| *word != "Usage:");
    let line = words.collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// The verb that was typed, with the one below it; empty where there is none.
fn verb(mistake: &clap::Error, program: &Command, words: &[String]) -> String {
    let line = usage_line(mistake).unwrap_or_default();
    let of_usage = line.split_whitespace().skip(1);
    let is_verb = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let verb = of_usage.take_while(is_verb).collect::<Vec<_>>().join(" ");
    if !verb.is_empty() || mistake.kind() == Kind::InvalidSubcommand {
        return verb;
    }
    let (mut typed, mut below) = (Vec::new(), program);
    for word in words {
        if let Some(found) = below.find_subcommand(word) {
            typed.push(found.get_name());
            below = found;
        }
    }
    typed.join(" ")
}

fn first_line(mistake: &clap::Error) -> String {
    let text = mistake.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn texts(mistake: &clap::Error, kind: ContextKind) -> Vec<String> {
    match mistake.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::flags::Arguments;

    #[track_caller]
    fn check(line: &str, what: &str, found: &str, fix: &str) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let typed = std::iter::once("rtscope".to_owned()).chain(words.clone());
        let mistake = Arguments::try_parse_from(typed).expect_err(line);
        let error = explained(&mistake, &Arguments::command(), &words);
        assert_eq!(error.what(), what, "{line}");
        assert_eq!(error.value_found(), Some(found), "{line}");
        let said = error.fixed_by().unwrap_or_default();
        assert!(said.contains(fix), "{line}: {said}");
    }

    #[test]
    fn a_word_of_another_tracer_is_told_by_its_name_here() {
        let (flag, verb) = ("there is no such flag", "there is no such verb");
        check("record -e sched", flag, "'-e'", "--events SET");
        check("record start x -k", flag, "'-k'", "--events SET");
        check("record -g -- x", flag, "'-g'", "--context callstack-kernel");
        check("record -P 7", flag, "'-P'", "--track pid:4711");
        check("create x", verb, "'create'", "rtscope record start NAME");
        check(
            "enable-event -k x",
            verb,
            "'enable-event'",
            "rtscope record start NAME",
        );
        check("script", verb, "'script'", "rtscope cat TRACE");
        let many = "this is one word too many";
        check(
            "record create x",
            many,
            "'create'",
            "rtscope record start NAME",
        );
        // Of other verbs it is only unknown.
        check("cat -e x T", flag, "'-e'", "rtscope cat -h");
    }

    #[test]
    fn a_word_that_nobody_knows_is_refused_in_three_parts() {
        let below = "no value may be below zero";
        check(
            "diagnose T --over -1ms",
            below,
            "'-1'",
            "rtscope diagnose -h",
        );
        check(
            "diagnose T --tusk x",
            "there is no such flag",
            "'--tusk'",
            "--task",
        );
        check(
            "diagnose T --zzz",
            "there is no such flag",
            "'--zzz'",
            "rtscope diagnose -h",
        );
        let many = "this is one word too many";
        check("snapshot A B", many, "'A'", "rtscope snapshot");
        check(
            "diagnos T",
            "there is no such verb",
            "'diagnos'",
            "perhaps diagnose is meant",
        );
        check("zzzz", "there is no such verb", "'zzzz'", "rtscope -h");
    }

    #[test]
    fn a_value_that_a_verb_below_another_does_not_take_has_the_help_of_both() {
        check(
            "measure cyclic --samples 0",
            "--samples <N> does not take this",
            "'0'",
            "rtscope measure cyclic -h",
        );
    }

    #[test]
    fn what_is_missing_or_takes_another_value_is_told_with_what_to_type() {
        let missing = "something is missing";
        let both = "--task TASK --over 5ms";
        check("check T", missing, "no --rule <RULE>", both);
        check(
            "check T --over 3ms",
            missing,
            "no --task <TASK>, no --rule <RULE>",
            both,
        );
        check("check --rule x", missing, "no <TRACES>...", "rtscope check");
        check("convert T --to json", missing, "no --output <OUT>", "-o -");
        check("diagnose", missing, "no <TRACE>...", "rtscope diagnose");
        let not = |flag: &str| format!("{flag} does not take this");
        check(
            "diagnose T --until x",
            &not("--until <END>"),
            "'x'",
            "block, switch-in",
        );
        check(
            "diagnose T --worst x",
            &not("--worst <N>"),
            "'x'",
            "number; rtscope diagnose -h",
        );
        check(
            "diagnose T --over",
            "--over <DUR> has no value",
            "nothing behind it",
            "rtscope diagnose -h",
        );
        let together = "these cannot stand together";
        check(
            "record --raw --to host:1",
            together,
            "--raw, --to <HOST[:PORT]>",
            "rtscope convert PAGES --to ctf",
        );
        check(
            "record start x --raw",
            "there is no such flag",
            "'--raw'",
            "rtscope record --raw -o PAGES",
        );
        check(
            "diagnose T --task x --tid 5",
            together,
            "--task <TASK>, --tid <TID>",
            "leave one",
        );
        check(
            "diagnose T --json --json",
            together,
            "--json, twice",
            "leave one",
        );
    }
}
