//! Command lines as getopt_long(3) reads them, for programs whose place we take: options in one
//! word, values in the same word or the next, long names cut short, and its own complaints.

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It has none.
    Nothing,
    /// It needs one.
    Value,
    /// It has one only in the same word.
    MayHave,
}

/// An option.
#[derive(Debug, PartialEq, Eq)]
pub struct Opt {
    /// Its long name; empty without one.
    pub long: &'static str,
    /// Its letter.
    pub letter: Option<char>,
    /// Whether it has a value.
    pub takes: Takes,
}

/// An option that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Which one.
    pub opt: &'static Opt,
    /// Its value.
    pub value: Option<&'a str>,
    /// The next word: some programs take it as the value of an option that may have one.
    pub next: Option<&'a str>,
}

/// What a word that is no option, nor the value of one, means to those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing: options may stand anywhere.
    Any,
    /// There are none.
    OptionsFirst,
}

impl Order {
    /// As everywhere on Linux, and with `POSIXLY_CORRECT` as POSIX has it.
    pub fn of_environment() -> Order {
        match std::env::var_os("POSIXLY_CORRECT") {
            Some(_) => Order::OptionsFirst,
            None => Order::Any,
        }
    }
}

/// The options in `words`, in their order; other words are left out. Of the first that is none,
/// what getopt_long says: whoever reads on as it goes may have given up before.
pub fn read<'a>(
    program: &str,
    table: &'static [Opt],
    words: &'a [String],
    order: Order,
) -> (Vec<Found<'a>>, Option<String>) {
    let mut all = Vec::new();
    let refused = read_into(&mut all, table, words, order).err();
    (all, refused.map(|what| format!("{program}: {what}")))
}

fn read_into<'a>(
    all: &mut Vec<Found<'a>>,
    table: &'static [Opt],
    words: &'a [String],
    order: Order,
) -> Result<(), String> {
    let mut at = 0;
    while let Some(word) = words.get(at).map(String::as_str) {
        at += 1;
        let found = match word.strip_prefix("--") {
            Some("") => break,
            Some(long) => vec![long_option(table, long)],
            None if word.len() > 1 && word.starts_with('-') => letters(table, &word[1..]),
            None if order == Order::OptionsFirst => break,
            None => continue,
        };
        for option in found {
            let (opt, mut value) = option?;
            if opt.takes == Takes::Value && value.is_none() {
                value = words.get(at).map(String::as_str);
                at += 1;
                if value.is_none() {
                    return Err(lacks_value(opt, word));
                }
            }
            let next = words.get(at).map(String::as_str);
            all.push(Found { opt, value, next });
        }
    }
    Ok(())
}

type Read<'a> = Result<(&'static Opt, Option<&'a str>), String>;

fn lacks_value(opt: &Opt, word: &str) -> String {
    match (word.starts_with("--"), opt.letter) {
        (false, Some(letter)) => format!("option requires an argument -- '{letter}'"),
        _ => format!("option '--{}' requires an argument", opt.long),
    }
}

/// `name` or `name=value`; a name may be cut short where that leaves one.
fn long_option<'a>(table: &'static [Opt], typed: &'a str) -> Read<'a> {
    let (name, value) = match typed.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (typed, None),
    };
    let begins = |opt: &&Opt| !opt.long.is_empty() && opt.long.starts_with(name);
    let candidates: Vec<&'static Opt> = table.iter().filter(begins).collect();
    let exact = candidates.iter().find(|opt| opt.long == name);
    let opt = match (exact, &candidates[..]) {
        (Some(opt), _) => *opt,
        (None, [opt]) => *opt,
        (None, []) => return Err(format!("unrecognized option '--{typed}'")),
        (None, several) => {
            let names = several.iter().map(|opt| format!(" '--{}'", opt.long));
            let names: String = names.collect();
            let what = format!("option '--{typed}' is ambiguous; possibilities:{names}");
            return Err(what);
        }
    };
    if opt.takes == Takes::Nothing && value.is_some() {
        return Err(format!("option '--{}' doesn't allow an argument", opt.long));
    }
    Ok((opt, value))
}

/// Letters in one word, up to the first that may have a value: the rest is that.
fn letters<'a>(table: &'static [Opt], word: &'a str) -> Vec<Read<'a>> {
    let mut found = Vec::new();
    for (place, letter) in word.char_indices() {
        let Some(opt) = table.iter().find(|opt| opt.letter == Some(letter)) else {
            found.push(Err(format!("invalid option -- '{letter}'")));
            break;
        };
        let rest = Some(&word[place + letter.len_utf8()..]).filter(|rest| !rest.is_empty());
        if opt.takes != Takes::Nothing {
            found.push(Ok((opt, rest)));
            break;
        }
        found.push(Ok((opt, None)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn opt(long: &'static str, letter: Option<char>, takes: Takes) -> Opt {
        Opt {
            long,
            letter,
            takes,
        }
    }

    static TABLE: &[Opt] = &[
        opt("smp", Some('S'), Takes::Nothing),
        opt("smi", None, Takes::Nothing),
        opt("spike", None, Takes::Value),
        opt("spike-nodes", None, Takes::Value),
        opt("priority", Some('p'), Takes::Value),
        opt("threads", Some('t'), Takes::MayHave),
        opt("", Some('n'), Takes::Nothing),
    ];

    #[test]
    fn words_are_read_as_getopt_long_reads_them() {
        let check = |words: &str, expect: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            let found = match read("me", TABLE, &words, Order::Any) {
                (found, None) => {
                    let one = |one: &Found<'_>| {
                        let name = match one.opt.long {
                            "" => one.opt.letter.map_or(String::new(), String::from),
                            long => long.to_owned(),
                        };
                        match one.value {
                            Some(value) => format!("{name}={value}"),
                            None => name,
                        }
                    };
                    found.iter().map(one).collect::<Vec<_>>().join(" ")
                }
                (_, Some(refused)) => refused,
            };
            assert_eq!(found, expect, "{words:?}");
        };
        check("-Sp90 -n", "smp priority=90 n");
        check("-S -p 90 x -t5 -t 5", "smp priority=90 threads=5 threads");
        check("--prio=7 --thr=3 --spike 9", "priority=7 threads=3 spike=9");
        check("--spike-n=4 -- -S", "spike-nodes=4");
        check("-p -S", "priority=-S");
        check("", "");
        check("-z", "me: invalid option -- 'z'");
        check("-Szp", "me: invalid option -- 'z'");
        check("-p", "me: option requires an argument -- 'p'");
        check("--prio", "me: option '--priority' requires an argument");
        check("--zap=1", "me: unrecognized option '--zap=1'");
        check("--smp=1", "me: option '--smp' doesn't allow an argument");
        let ambiguous = "me: option '--sm' is ambiguous; possibilities: '--smp' '--smi'";
        check("--sm", ambiguous);
        check("--sm=1", &ambiguous.replace("--sm'", "--sm=1'"));
        let words = ["-t".to_owned(), "5".to_owned()];
        let (found, _) = read("me", TABLE, &words, Order::Any);
        assert_eq!(found[0].next, Some("5"));
        // As the value of an option that may have one the next word is read by the program alone.
        let words = ["-S", "-p", "9", "-t", "5", "-n"].map(str::to_owned);
        let count = |order| read("me", TABLE, &words, order).0.len();
        assert_eq!((count(Order::Any), count(Order::OptionsFirst)), (4, 3));
    }
}
