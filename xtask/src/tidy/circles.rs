//! Circles between the files of a crate: files that import each other, straight or through others.
//! Who reads one of them has to read all.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{self, File, Graph};

/// There were 49 when they were first counted. Lower it with each that is opened.
const CIRCLES_MAX: usize = 13;

/// Complains of more circles than there were.
pub fn problems(sources: &[(String, String)]) -> Vec<String> {
    let circles = all(sources);
    if circles.len() <= CIRCLES_MAX {
        return Vec::new();
    }
    let mut problems = vec![format!(
        "{} circles between files of a crate, {CIRCLES_MAX} were known: move what the new one \
         shares into a file below its files",
        circles.len()
    )];
    for circle in &circles {
        problems.push(circle.files.join(" <-> "));
        problems.extend(circle.imports.iter().map(|import| format!("  {import}")));
    }
    problems
}

/// Files that reach each other.
struct Circle {
    /// Their paths.
    files: Vec<String>,
    /// Which of them imports what of which.
    imports: Vec<String>,
}

/// The circles of all crates.
fn all(sources: &[(String, String)]) -> Vec<Circle> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in sources {
        if let Some((folder, inner)) = path.split_once("/src/")
            && inner.ends_with(".rs")
        {
            crates.entry(folder).or_default().push((inner, text));
        }
    }
    let of_crate = |(folder, sources): (&str, Vec<(&str, &str)>)| {
        let files = sources.iter().map(|(path, text)| File::new(path, text));
        let files: Vec<File> = files.collect();
        let graph = imports::graph(&files);
        let inner = |place: usize| sources[place].0;
        let imports = |circle: &[usize]| {
            let mut all = Vec::new();
            for (from, to) in circle
                .iter()
                .flat_map(|from| circle.iter().map(|to| (*from, *to)))
            {
                if let Some(paths) = graph[from].get(&to) {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    all.push(format!(
                        "{} -> {}: {}",
                        inner(from),
                        inner(to),
                        paths.join(", ")
                    ));
                }
            }
            all
        };
        let path = |place: &usize| format!("{folder}/src/{}", inner(*place));
        let circle = |circle: &Vec<usize>| Circle {
            files: circle.iter().map(path).collect(),
            imports: imports(circle),
        };
        circles(&graph).iter().map(circle).collect::<Vec<_>>()
    };
    crates.into_iter().flat_map(of_crate).collect()
}

/// The sets of places that reach each other; those of one place alone are left out.
fn circles(graph: &Graph) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..graph.len()).map(|from| reach(graph, from)).collect();
    let mut found = BTreeSet::new();
    for from in 0..graph.len() {
        let both = |to: &usize| reached[*to].contains(&from);
        let circle: Vec<usize> = reached[from].iter().copied().filter(both).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Whatever is reached from `from` in one step or more.
fn reach(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<usize> = graph[from].keys().copied().collect();
    while let Some(place) = next.pop() {
        if reached.insert(place) {
            next.extend(graph[place].keys());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expect: &[&[&str]]) {
        let named = |(path, text): &(&str, &str)| (format!("a/src/{path}"), (*text).to_owned());
        let sources: Vec<_> = files.iter().map(named).collect();
        let found = all(&sources).into_iter().map(|circle| circle.files);
        let found: Vec<Vec<String>> = found.collect();
        let expect: Vec<Vec<String>> = expect
            .iter()
            .map(|circle| circle.iter().map(|path| format!("a/src/{path}")).collect())
            .collect();
        assert_eq!(found, expect, "{files:?}");
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        check(
            &[
                ("lib.rs", "mod x;\nmod y;\n"),
                ("x.rs", "use crate::y::Y;\npub struct X(Y);\n"),
                ("y.rs", "pub struct Y;\nfn f(x: &super::x::X) {}\n"),
            ],
            &[&["x.rs", "y.rs"]],
        );
        check(
            &[
                ("lib.rs", "mod x;\nmod y;\n"),
                ("x.rs", "use crate::y::Y;\npub struct X(Y);\n"),
                ("y.rs", "pub struct Y;\n"),
            ],
            &[],
        );
    }

    #[test]
    fn a_circle_may_go_through_a_third_file() {
        check(
            &[
                ("lib.rs", "mod x;\nmod y;\nmod z;\n"),
                ("x.rs", "use crate::{y::Y, other::O};\n"),
                ("y.rs", "use super::z;\nfn f() { z::g() }\n"),
                ("z.rs", "use super::x::X;\npub fn g() {}\n"),
            ],
            &[&["x.rs", "y.rs", "z.rs"]],
        );
    }

    #[test]
    fn what_only_hands_a_name_on_is_not_imported() {
        check(
            &[
                ("lib.rs", "mod x;\nmod y;\npub use x::X;\npub use y::Y;\n"),
                ("x.rs", "use crate::Y;\npub struct X(Y);\n"),
                ("y.rs", "pub struct Y;\n"),
            ],
            &[],
        );
        // One that uses what it hands on needs it.
        check(
            &[
                ("m/mod.rs", "mod x;\npub use x::X;\npub struct M(X);\n"),
                ("m/x.rs", "use super::M;\npub struct X;\n"),
                ("lib.rs", "mod m;\n"),
            ],
            &[&["m/mod.rs", "m/x.rs"]],
        );
    }

    #[test]
    fn where_a_name_may_be_seen_is_no_import() {
        let x = "use super::y::Y;\npub(in crate::m) struct X(Y);\n";
        let y = "pub(in crate::m) struct Y;\n";
        let m = "mod x;\nmod y;\nfn f() -> x::X {}\n";
        check(
            &[
                ("lib.rs", "mod m;\n"),
                ("m/mod.rs", m),
                ("m/x.rs", x),
                ("m/y.rs", y),
            ],
            &[],
        );
    }

    #[test]
    fn tests_comments_and_words_of_texts_are_no_imports() {
        check(
            &[
                ("lib.rs", "mod x;\nmod y;\n"),
                ("x.rs", "use crate::y::Y;\npub struct X(Y);\n"),
                (
                    "y.rs",
                    "pub struct Y;\n// crate::x::X\nconst A: &str = \"crate::x::X\";\n\
                     #[cfg(test)]\nmod tests {\n    use crate::x::X;\n}\n",
                ),
            ],
            &[],
        );
    }
}
