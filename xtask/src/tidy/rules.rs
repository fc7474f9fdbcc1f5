//! The rules themselves. Words that the rules look for are spelt in halves, so that this file
//! passes its own check.

use super::scan::functions;
use super::source::Source;

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;

/// A word that may not appear, where it may after all, and what to do instead.
struct Banned {
    word: &'static str,
    except: &'static [&'static str],
    instead: &'static str,
}

const TOOLS: &[&str] = &[
    "crates/cli/",
    "xtask/",
    "crates/testkit/",
    "bench/",
    "fuzz/",
];

/// Who may open a TCP socket: the server, a test of a tracker of connections, and one that plays an
/// object store.
const CONNECTIONS: &[&str] = &[
    "crates/server/",
    "crates/relay/",
    "bench/",
    "crates/bpf-host/tests/root_more_trackers.rs",
    "crates/fleet/src/collector_tests.rs",
    "crates/fleet/src/s3_tests.rs",
];

const BANNED: &[Banned] = &[
    Banned {
        word: concat!("FIX", "ME"),
        except: &[],
        instead: "fix it, or open an issue",
    },
    Banned {
        word: concat!("dbg", "!("),
        except: &[],
        instead: "delete it",
    },
    Banned {
        word: concat!("todo", "!("),
        except: &[],
        instead: "write it, or leave it out",
    },
    Banned {
        word: concat!("unimplemented", "!("),
        except: &[],
        instead: "write it",
    },
    Banned {
        word: concat!("process::", "exit"),
        except: &["crates/cli/"],
        instead: "return an error: only cli exits the process",
    },
    Banned {
        word: concat!("Tcp", "Listener"),
        except: CONNECTIONS,
        instead: "only server and relay open TCP sockets",
    },
    Banned {
        word: concat!("Tcp", "Stream"),
        except: CONNECTIONS,
        instead: "only server and relay open TCP sockets",
    },
    Banned {
        word: concat!("print", "ln!("),
        except: TOOLS,
        instead: "return data: libraries never print (a build script writes to stdout)",
    },
    Banned {
        word: concat!("bpf_", "printk"),
        except: &[],
        instead: "emit a record: loading such a program switches on a global event for good",
    },
];

/// Paths of one machine have no place in a repository.
const MACHINE_PATHS: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// The licence that C files below a folder name in their first line.
const LICENCES: &[(&str, &str)] = &[
    ("bpf/", "GPL-2.0-only OR BSD-2-Clause"),
    ("probe/", "MIT OR Apache-2.0"),
];

/// Every rule that `source` breaks, a line each.
pub fn problems(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    let extension = source
        .path
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension);
    problems.extend(no_machine_paths(source));
    if matches!(extension, "rs" | "c" | "h") {
        problems.extend(short_lines(source));
        problems.extend(no_banned_words(source));
    }
    if extension == "rs" {
        problems.extend(opens_with_module_comment(source));
        problems.extend(short_functions(source));
    }
    for (folder, licence) in LICENCES {
        if source.path.starts_with(folder) && matches!(extension, "c" | "h") {
            problems.extend(opens_with_licence_and_comment(source, licence));
        }
    }
    problems
}

fn short_lines(source: &Source) -> Vec<String> {
    let too_long = |line: &str| line.replace('\t', "    ").chars().count() > COLUMNS_MAX;
    let lines = source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| too_long(line));
    lines
        .map(|(at, _)| at_line(source, at, "longer than 100 columns"))
        .collect()
}

fn no_banned_words(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for banned in BANNED {
            let allowed = banned
                .except
                .iter()
                .any(|path| source.path.starts_with(path))
                || (source.path.ends_with("build.rs") && banned.word.starts_with("print"))
                || (is_test(source.path) && banned.word.starts_with("print"));
            if line.contains(banned.word) && !allowed {
                let text = format!("'{}': {}", banned.word, banned.instead);
                problems.push(at_line(source, at, &text));
            }
        }
    }
    problems
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/examples/") || path.contains("/benches/")
}

fn no_machine_paths(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        if MACHINE_PATHS.iter().any(|path| line.contains(path)) {
            problems.push(at_line(source, at, "a path of one machine"));
        }
    }
    problems
}

fn opens_with_module_comment(source: &Source) -> Option<String> {
    (!source.text.starts_with("//! ")).then(|| {
        at_line(
            source,
            0,
            "does not open with a '//!' line that says what it is",
        )
    })
}

fn opens_with_licence_and_comment(source: &Source, licence: &str) -> Option<String> {
    let mut lines = source.text.lines();
    let first = lines.next().unwrap_or_default();
    let comment = lines.next().unwrap_or_default();
    let licence_is_there = first.contains(&format!("SPDX-License-Identifier: {licence}"));
    let comment_is_there = comment.starts_with("//") || comment.starts_with("/*");
    (!licence_is_there || !comment_is_there).then(|| {
        at_line(
            source,
            0,
            "opens not with the SPDX line and a comment that says what it is",
        )
    })
}

fn short_functions(source: &Source) -> Vec<String> {
    functions(source.text)
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
        .map(|function| {
            let text = format!("fn {} has {} lines, 70 fit", function.name, function.lines);
            at_line(source, function.first_line, &text)
        })
        .collect()
}

/// Checks that each path in backticks (it has a `/` and no space) exists.
pub fn named_files_exist(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2) {
            let is_path = name.contains('/') && !name.contains([' ', ':', '*', '<', '$']);
            if is_path && !name.starts_with('/') && !exists(name) {
                problems.push(at_line(
                    source,
                    at,
                    &format!("names '{name}', which is not there"),
                ));
            }
        }
    }
    problems
}

fn at_line(source: &Source, index: usize, text: &str) -> String {
    format!("{}:{}: {text}", source.path, index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expect: &[&str]) {
        assert_eq!(problems(&Source { path, text }), expect, "{path}: {text}");
    }

    #[test]
    fn a_rust_file_opens_with_what_it_is() {
        check("crates/a/src/b.rs", "//! A thing.\n", &[]);
        check(
            "crates/a/src/b.rs",
            "use std::fs;\n",
            &["crates/a/src/b.rs:1: does not open with a '//!' line that says what it is"],
        );
    }

    #[test]
    fn lines_have_at_most_100_columns() {
        let fits = format!("//! {}\n", "x".repeat(96));
        check("a.rs", &fits, &[]);
        let wide = format!("//! {}\n", "µ".repeat(97));
        check("a.rs", &wide, &["a.rs:1: longer than 100 columns"]);
    }

    #[test]
    fn functions_have_at_most_70_lines() {
        let function = |body: usize| format!("//! X\nfn f() {{\n{}}}\n", "    g();\n".repeat(body));
        check("a.rs", &function(68), &[]);
        check(
            "a.rs",
            &function(69),
            &["a.rs:2: fn f has 71 lines, 70 fit"],
        );
    }

    #[test]
    fn banned_words_name_what_to_do_instead() {
        let exit = concat!("//! X\nstd::process::", "exit(1);\n");
        check("crates/cli/src/main.rs", exit, &[]);
        let problem = concat!(
            "crates/trace/src/a.rs:2: 'process::",
            "exit': return an error: only cli exits the process"
        );
        check("crates/trace/src/a.rs", exit, &[problem]);
        let print = concat!("//! X\nprint", "ln!(\"\");\n");
        check("crates/bpf-host/build.rs", print, &[]);
        check("crates/cli/src/a.rs", print, &[]);
        assert_eq!(
            problems(&Source {
                path: "crates/trace/src/a.rs",
                text: print
            })
            .len(),
            1
        );
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_text() {
        let text = concat!("see /ho", "me/me/trace\n");
        check("README.md", text, &["README.md:1: a path of one machine"]);
        check("README.md", "see crates/event\n", &[]);
    }

    #[test]
    fn a_c_file_opens_with_its_folders_licence_and_what_it_is() {
        let licence = "// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n";
        check("bpf/a.bpf.c", &format!("{licence}/* Chains. */\n"), &[]);
        let problem =
            "bpf/a.bpf.c:1: opens not with the SPDX line and a comment that says what it is";
        check("bpf/a.bpf.c", &format!("{licence}\n"), &[problem]);
        check("bpf/a.bpf.c", "/* Chains. */\n", &[problem]);
        let other = "/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n/* Rings. */\n";
        check("probe/src/a.c", other, &[]);
        check("bpf/a.bpf.c", other, &[problem]);
    }

    #[test]
    fn a_file_named_in_the_map_exists() {
        let source = Source {
            path: "ARCHITECTURE.md",
            text: "`bpf/` and `crates/gone/` `a b/c`",
        };
        let problems = named_files_exist(&source, |name| name == "bpf/");
        assert_eq!(
            problems,
            ["ARCHITECTURE.md:1: names 'crates/gone/', which is not there"]
        );
    }
}
