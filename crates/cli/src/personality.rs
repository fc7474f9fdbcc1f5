//! The names of the peers' commands: `lttng-cputop` is `rtscope report cputop`, and `cyclictest`
//! is `rtscope measure cyclic --cyclictest`.

use std::ffi::OsString;
use std::path::Path;

/// The command line with a peer's name replaced by the verb that it stands for, be it the
/// program's own name (a link) or the name of a report.
pub fn words(mut words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let Some(program) = words.next() else {
        return Vec::new();
    };
    let name = Path::new(&program).file_name();
    let by_link = name.and_then(|name| name.to_str()).and_then(report);
    let mut all = vec![program.clone()];
    if name.is_some_and(|name| name == "cyclictest") {
        all.extend(["measure", "cyclic", "--cyclictest"].map(OsString::from));
        all.extend(words);
        return all;
    }
    if let Some((report, lami)) = by_link {
        all.extend(["report".into(), report.into()]);
        all.extend(AS_PEER.map(OsString::from));
        all.extend(lami.then(|| "--lami".into()));
        all.extend(words);
        return all;
    }
    all.extend(words.by_ref().take(1));
    // `rtscope help watch` is `rtscope watch --help`.
    if all.get(1).is_some_and(|verb| verb == "help") {
        all.pop();
        all.extend(words);
        all.push("--help".into());
        return all;
    }
    if all.last().is_some_and(|verb| verb == "report")
        && let Some(word) = words.next()
    {
        match word.to_str().and_then(report) {
            Some((report, lami)) => {
                all.push(report.into());
                all.extend(AS_PEER.map(OsString::from));
                all.extend(lami.then(|| "--lami".into()));
            }
            None => all.push(word),
        }
    }
    all.extend(words);
    all
}

/// Who uses the peer's name wants the peer's text.
const AS_PEER: [&str; 2] = ["--as", "lttng-analyses"];

/// The report that a command of lttng-analyses stands for, and whether it prints LAMI.
fn report(name: &str) -> Option<(String, bool)> {
    let name = name.strip_prefix("lttng-")?;
    Some(match name.strip_suffix("-mi") {
        Some(name) => (name.to_owned(), true),
        None => (name.to_owned(), false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_peer_becomes_a_report() {
        let check = |typed: &str, expect: &str| {
            let typed = typed.split(' ').map(OsString::from);
            let found: Vec<_> = words(typed).into_iter().collect();
            let expect: Vec<OsString> = expect.split(' ').map(OsString::from).collect();
            assert_eq!(found, expect);
        };
        let link = "/usr/bin/lttng-cputop";
        check(
            &format!("{link} --gmt t"),
            &format!("{link} report cputop --as lttng-analyses --gmt t"),
        );
        let link = "lttng-schedtop-mi";
        check(
            &format!("{link} t"),
            &format!("{link} report schedtop --as lttng-analyses --lami t"),
        );
        check(
            "rtscope report lttng-iolog-mi t",
            "rtscope report iolog --as lttng-analyses --lami t",
        );
        check("rtscope report iolog t", "rtscope report iolog t");
        check("rtscope cat lttng-trace", "rtscope cat lttng-trace");
        check("rtscope help watch", "rtscope watch --help");
        check("rtscope help measure loop", "rtscope measure loop --help");
        check("rtscope help", "rtscope --help");
        check("rtscope cat help", "rtscope cat help");
        check("rtscope", "rtscope");
        check(
            "cyclictest -t2 -q",
            "cyclictest measure cyclic --cyclictest -t2 -q",
        );
    }
}
