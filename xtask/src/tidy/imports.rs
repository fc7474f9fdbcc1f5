//! Which file of a crate imports which, read from its text: `use`, and paths that begin with
//! `crate`, `super`, `self` or a module of the file's own.

use std::collections::{BTreeMap, BTreeSet};

/// A source file of a crate.
pub struct File {
    /// Its module: `["a", "b"]` for `a/b.rs` and `a/b/mod.rs`.
    module: Vec<String>,
    /// What its `use` statements say.
    uses: Vec<Use>,
    /// The paths in the rest of its code.
    paths: BTreeSet<Vec<String>>,
    /// All words of the rest of its code.
    words: BTreeSet<String>,
}

/// One path of a `use` statement.
struct Use {
    path: Vec<String>,
    /// What the path is called here.
    name: String,
    /// Whether others may take it from here.
    is_public: bool,
}

impl File {
    /// Reads the file at `path` below `src`.
    pub fn new(path: &str, text: &str) -> File {
        let code = code(text);
        let (uses, rest) = split_uses(&code);
        let tokens = tokens(&rest);
        let paths = paths(&tokens);
        let words = tokens.into_iter().map(str::to_owned).collect();
        File {
            module: module(path),
            uses,
            paths,
            words,
        }
    }
}

/// For each file the places of those that it imports, with the paths by which it does.
pub type Graph = Vec<BTreeMap<usize, BTreeSet<String>>>;

/// Who imports whom.
pub fn graph(files: &[File]) -> Graph {
    let places = files.iter().enumerate();
    let places = places.map(|(place, file)| (file.module.clone(), place));
    let house = House {
        files,
        places: places.collect(),
    };
    let imports = |(place, file): (usize, &File)| {
        let used = |taken: &&Use| !taken.is_public || file.words.contains(&taken.name);
        let taken = file.uses.iter().filter(used).map(|taken| &taken.path);
        let all = taken.chain(&file.paths);
        let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for path in all {
            let imported = house.find(place, path, DEPTH_MAX);
            if let Some(imported) = imported.filter(|imported| *imported != place) {
                found.entry(imported).or_default().insert(path.join("::"));
            }
        }
        found
    };
    files.iter().enumerate().map(imports).collect()
}

/// A name is handed on through so many files at most.
const DEPTH_MAX: usize = 8;

struct House<'a> {
    files: &'a [File],
    places: BTreeMap<Vec<String>, usize>,
}

impl House<'_> {
    /// The file that defines what `path` names in the file at `from`.
    fn find(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let mut module = self.files[from].module.clone();
        let mut words = path.iter().map(String::as_str).peekable();
        match words.peek().copied()? {
            "crate" => {
                module.clear();
                words.next();
            }
            "self" => drop(words.next()),
            "super" => {}
            first => {
                let child = child(&module, first);
                // A crate, or what another `use` brought here.
                self.places.get(&child)?;
            }
        }
        while words.next_if_eq(&"super").is_some() {
            module.pop()?;
        }
        let mut place = *self.places.get(&module)?;
        for word in words {
            let below = child(&module, word);
            if let Some(inner) = self.places.get(&below) {
                (module, place) = (below, *inner);
                continue;
            }
            let handed_on = self.files[place].uses.iter();
            let handed_on = handed_on.filter(|taken| taken.name == word && depth > 0);
            let mut found = handed_on.map(|taken| self.find(place, &taken.path, depth - 1));
            return found.next().unwrap_or(Some(place));
        }
        Some(place)
    }
}

fn child(module: &[String], name: &str) -> Vec<String> {
    let mut child = module.to_vec();
    child.push(name.to_owned());
    child
}

fn module(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
    let is_own = |last: &String| last == "mod" || last == "lib" || last == "main";
    if module.last().is_some_and(is_own) {
        module.pop();
    }
    module
}

/// The text without comments, texts and the tests at its end.
fn code(text: &str) -> String {
    let tests = text.find("\n#[cfg(test)]\nmod ");
    let is_inside = |at: &usize| {
        let line = text[*at..].lines().nth(2).unwrap_or_default();
        line.ends_with('{')
    };
    let text = &text[..tests.filter(is_inside).unwrap_or(text.len())];
    let mut code = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '/' if rest.peek() == Some(&'/') => {
                while rest.next_if(|letter| *letter != '\n').is_some() {}
            }
            '"' => {
                while let Some(letter) = rest.next()
                    && letter != '"'
                {
                    if letter == '\\' {
                        rest.next();
                    }
                }
            }
            // A quote between quotes begins no text.
            '\'' if rest.next_if_eq(&'"').is_some() => {}
            letter => code.push(letter),
        }
    }
    code
}

/// The `use` statements, and all else.
fn split_uses(code: &str) -> (Vec<Use>, String) {
    let (mut uses, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let begin = line.trim_start();
        let is_public = begin.starts_with("pub");
        if begin.ends_with(';') && (begin.starts_with("mod ") || begin.contains(" mod ")) {
            continue;
        }
        let begin = match begin.split_once("use ") {
            Some(("" | "pub " | "pub(crate) " | "pub(super) ", begin)) => begin,
            _ => {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        };
        let mut tree = begin.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push_str(line);
        }
        let tree: String = tree.split(';').next().unwrap_or_default().to_owned();
        expand(&[], &tree, is_public, &mut uses);
    }
    (uses, rest)
}

/// A path for each leaf of the tree of a `use` statement.
fn expand(prefix: &[String], tree: &str, is_public: bool, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        let words = head.split("::").map(str::trim);
        prefix.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        for part in parts(inner) {
            expand(&prefix, part, is_public, uses);
        }
        return;
    }
    let (path, name) = match tree.split_once(" as ") {
        Some((path, name)) => (path, Some(name.trim())),
        None => (tree, None),
    };
    let mut words = prefix.to_vec();
    words.extend(path.split("::").map(|word| word.trim().to_owned()));
    if words.len() > 1
        && words
            .last()
            .is_some_and(|word| word == "self" || word == "*")
    {
        words.pop();
    }
    let own = words.last().cloned().unwrap_or_default();
    uses.push(Use {
        name: name.map_or(own, str::to_owned),
        path: words,
        is_public,
    });
}

/// What stands between the commas of a tree's outer level.
fn parts(tree: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Words, and `::` between them.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            false if rest.starts_with("::") => 2,
            false => first.len_utf8(),
        };
        if !first.is_whitespace() {
            tokens.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    tokens
}

/// Every path of two words or more.
fn paths(tokens: &[&str]) -> BTreeSet<Vec<String>> {
    let mut paths = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = &tokens[..at];
        let mut path = vec![tokens[at].to_owned()];
        while tokens.get(at + 1) == Some(&"::") && at + 2 < tokens.len() {
            path.push(tokens[at + 2].to_owned());
            at += 2;
        }
        at += 1;
        // Where a name may be seen is no import.
        let is_visibility = before.ends_with(&["pub", "(", "in"]);
        if path.len() > 1 && !is_visibility {
            paths.insert(path);
        }
    }
    paths
}
