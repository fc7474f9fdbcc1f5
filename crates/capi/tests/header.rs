//! The header and the source say the same: every prototype, every constant, every structure.

use std::collections::BTreeMap;

use rtscope::error::{ABI_VERSION, KINDS};
use rtscope::trace::{FIELD_KINDS, SCOPES};
use rtscope::walk::{CAUSES, ITEMS};

const HEADER: &str = include_str!("../include/rtscope.h");
const WRAPPER: &str = include_str!("../include/rtscope.hpp");
const SOURCES: [&str; 7] = [
    include_str!("../src/lib.rs"),
    include_str!("../src/error.rs"),
    include_str!("../src/trace.rs"),
    include_str!("../src/walk.rs"),
    include_str!("../src/table.rs"),
    include_str!("../src/writer.rs"),
    include_str!("../src/diagnose.rs"),
];

/// Rust's types, and how the header spells them.
const TYPES: &[(&str, &str)] = &[
    ("c_int", "int"),
    ("u8", "void"),
    ("u32", "uint32_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("f64", "double"),
    ("usize", "size_t"),
    ("c_char", "char"),
    ("Bytes", "struct rtscope_bytes"),
    ("CError", "struct rtscope_error"),
    ("CTrace", "struct rtscope_trace"),
    ("CField", "struct rtscope_field"),
    ("CWalk", "struct rtscope_walk"),
    ("CTable", "struct rtscope_table"),
    ("CWriter", "struct rtscope_writer"),
    ("OpenOptions", "struct rtscope_open_options"),
    ("CQuestion", "struct rtscope_question"),
    ("Select", "struct rtscope_select"),
    ("Loss", "struct rtscope_loss"),
    ("Damage", "struct rtscope_bad_bytes"),
    ("ArrowSchema", "struct ArrowSchema"),
    ("ArrowArray", "struct ArrowArray"),
    ("ArrowArrayStream", "struct ArrowArrayStream"),
];

/// A Rust type as C spells it, without spaces around stars.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(inner) = rust.strip_prefix("*const ") {
        return match inner.strip_prefix('*') {
            Some(_) => format!("{}const*", c_type(inner)),
            None => format!("const {}*", c_type(inner)),
        };
    }
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(inner));
    }
    let found = TYPES.iter().find(|(name, _)| *name == rust);
    found
        .unwrap_or_else(|| panic!("no C type for '{rust}'"))
        .1
        .to_owned()
}

/// `name` → its types, the result first.
type Prototypes = BTreeMap<String, Vec<String>>;

fn rust_prototypes() -> Prototypes {
    let mut found = Prototypes::new();
    for source in SOURCES {
        for (place, _) in source.match_indices("extern \"C\" fn ") {
            let text = &source[place + "extern \"C\" fn ".len()..];
            let (name, rest) = text.split_once('(').unwrap();
            let (arguments, rest) = rest.split_once(')').unwrap();
            if name.starts_with('$') {
                continue;
            }
            let result = rest.trim_start().strip_prefix("->");
            let result = result.map_or("void".to_owned(), |r| c_type(r.split('{').next().unwrap()));
            let arguments = arguments
                .split(',')
                .filter_map(|argument| argument.split_once(':'));
            let mut types = vec![result];
            types.extend(arguments.map(|(_, ty)| c_type(ty)));
            found.insert(name.to_owned(), types);
        }
    }
    for (name, ty, is_list) in setters() {
        let mut types: Vec<String> = ["int", "struct rtscope_writer*", "uint32_t", "uint32_t"]
            .map(str::to_owned)
            .into();
        match is_list {
            true => types.extend([format!("const {}*", c_type(&ty)), "size_t".to_owned()]),
            false => types.push(c_type(&ty)),
        }
        types.push("struct rtscope_error**".to_owned());
        found.insert(name, types);
    }
    found
}

/// The functions that macros make: name, type of the value, whether it is a list.
fn setters() -> Vec<(String, String, bool)> {
    let lines = SOURCES[5].lines().map(str::trim);
    let mut is_list = false;
    let mut found = Vec::new();
    for line in lines {
        is_list |= line == "list_setters!(";
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [name, ty, "=>", _] = words[..]
            && name.starts_with("rtscope_set_")
        {
            found.push((name.to_owned(), ty.to_owned(), is_list));
        }
    }
    assert_eq!(found.len(), 7, "{found:?}");
    found
}

/// The header without comments and lines of the preprocessor.
fn plain_header() -> String {
    let mut text = String::new();
    let mut rest = HEADER;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").unwrap().1;
    }
    text.push_str(rest);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| !line.starts_with("extern \"C\""));
    lines.collect::<Vec<_>>().join("\n")
}

/// `const char *const *paths` → `const char*const*`.
fn without_name(declaration: &str) -> String {
    let words = declaration.replace('*', " * ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut types = words.as_slice();
    if types.len() > 1 && types.last().is_some_and(|word| *word != "*") {
        types = &types[..types.len() - 1];
    }
    let text = types.join(" ");
    text.replace(" *", "*").replace("* ", "*")
}

fn header_prototypes() -> Prototypes {
    let mut found = Prototypes::new();
    for statement in plain_header().split(';') {
        let Some((head, arguments)) = statement.split_once('(') else {
            continue;
        };
        let Some((_, name)) = head.rsplit_once(|c: char| c.is_whitespace() || c == '*') else {
            continue;
        };
        if !name.starts_with("rtscope_") || statement.contains('{') {
            continue;
        }
        let head = head.rsplit_once('}').map_or(head, |(_, last)| last);
        let result = without_name(head);
        let arguments = arguments.trim_end_matches(')').split(',').map(without_name);
        let mut types = vec![result];
        types.extend(arguments.filter(|ty| ty != "void"));
        found.insert(name.to_owned(), types);
    }
    found
}

#[test]
fn every_function_has_one_prototype_in_the_header_with_its_types() {
    let (mut rust, header) = (rust_prototypes(), header_prototypes());
    for types in rust.values_mut() {
        *types = types.iter().map(|ty| ty.replace("* ", "*")).collect();
    }
    let names = |of: &Prototypes| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&rust), names(&header));
    for (name, types) in &rust {
        assert_eq!(types, &header[name], "{name}");
    }
}

#[test]
fn every_constant_has_its_number_in_the_header() {
    let line = |text: &str| HEADER.lines().any(|line| line.trim() == text);
    let mut count = 0;
    for (name, number) in [KINDS, FIELD_KINDS, SCOPES, ITEMS, CAUSES].concat() {
        assert!(line(&format!("{name} = {number},")), "{name} = {number}");
        count += 1;
    }
    assert_eq!(
        HEADER.matches(" = ").count(),
        count,
        "constants that nobody knows"
    );
    assert!(line(&format!("#define RTSCOPE_ABI_VERSION {ABI_VERSION}")));
    let build = include_str!("../build.rs");
    assert!(build.contains(&format!("const ABI_VERSION: u32 = {ABI_VERSION};")));
}

#[test]
fn the_wrapper_reaches_every_function() {
    for name in header_prototypes().keys() {
        let is_version = name.ends_with("_version");
        let has_other_words = name == "rtscope_error_what";
        let is_used = WRAPPER.contains(&format!("{name}("))
            || WRAPPER.contains(&format!("{name},"))
            || WRAPPER.contains(&format!("{name}>"))
            || WRAPPER.contains(&format!("{name})"));
        assert!(is_used || is_version || has_other_words, "{name}");
    }
}

#[test]
fn every_function_that_the_documentation_names_exists() {
    let page = include_str!("../../../docs/library.md");
    let header = header_prototypes();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = page.split(|c| !is_word(c));
    let functions: Vec<&str> = words.filter(|word| word.starts_with("rtscope_")).collect();
    assert!(functions.len() > 20, "{functions:?}");
    for name in functions {
        let is_type = HEADER.contains(&format!("struct {name};"))
            || HEADER.contains(&format!("struct {name} {{"));
        assert!(header.contains_key(name) || is_type, "{name}");
    }
}
