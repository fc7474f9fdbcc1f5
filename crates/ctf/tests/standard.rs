//! Metadata that breaks CTF 1.8 is read all the same, and what it breaks is named with its line.

use ctf::reader::{Schema, TraceFiles};
use testkit::Corpus;

/// Stands before each text below: four lines.
const HEAD: &str = "/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias floating_point { exp_dig = 8; mant_dig = 24; } := real;
trace { major = 1; minor = 8; byte_order = le; };
";
const HEAD_LINES: usize = 4;

/// What is found in a whole text, as `LINE: what`.
fn found(text: &str) -> Vec<String> {
    let schema = Schema::parse(text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    let violations = schema.violations;
    assert_eq!(violations.count, violations.first.len() as u64);
    let line = |v: &ctf::reader::Violation| format!("{}: {}", v.line, v.what);
    violations.first.iter().map(line).collect()
}

/// Reads `text` behind the head: it breaks the standard in this way alone, on its last line.
#[track_caller]
fn check(text: &str, expect: &str) {
    let lines = text.lines().count();
    let expect = format!("{}: {expect}", HEAD_LINES + lines);
    assert_eq!(found(&format!("{HEAD}{text}")), [expect], "{text}");
}

/// Reads `text` behind the head: it keeps to the standard.
#[track_caller]
fn fine(text: &str) {
    let none: [&str; 0] = [];
    assert_eq!(found(&format!("{HEAD}{text}")), none, "{text}");
}

#[test]
fn a_name_is_declared_once_in_its_scope() {
    check("typealias u8 := u8;", "the type 'u8' declared twice");
    check(
        "typedef u8 a[2];\ntypedef u8 a[3];",
        "the type 'a' declared twice",
    );
    check(
        "struct a { u8 x; };\nstruct a { u8 x; };",
        "the type 'struct a' declared twice",
    );
    check(
        "enum e : u8 { A };\nenum e : u8 { B };",
        "the type 'enum e' declared twice",
    );
    check(
        "struct s { u8 x; u8 x; };",
        "the field 'x' twice in one structure",
    );
    let many: String = (0..40).map(|n| format!("u8 f{n}; ")).collect();
    check(
        &format!("struct s {{ {many} u8 f7; }};"),
        "the field 'f7' twice in one structure",
    );
    fine("struct a { typedef u8 b; b x; };\nstruct c { typedef u8 b; b x; };");
    fine("struct s { u8 x; u8 _x; u8 __x; };");
    fine("struct s { u8 x; struct { u8 x; } y; };");
}

#[test]
fn words_of_the_language_are_no_names() {
    check("struct a { u8 trace; };", "the keyword 'trace' as a name");
    check("typedef u8 int;", "the keyword 'int' as a name");
    check(
        "typealias u8 := trace;",
        "the keyword 'trace' as a type's name",
    );
    check(
        "struct a { enum : u8 { x } t; variant <variant> { u8 x; } v; };",
        "the keyword 'variant' in place of a field's name",
    );
    check(
        "struct a { u8 n; u8 data[string]; };",
        "the keyword 'string' in place of a field's name",
    );
    fine("typealias u8 := unsigned long int;");
    fine("struct a { u8 _trace; u8 traces; };");
}

#[test]
fn a_length_is_the_name_of_a_field() {
    check(
        "typedef u8 a[x];",
        "the length 'x' outside of any structure",
    );
    fine("struct a { u8 n; typedef struct { u8 data[n]; } t; t x; };");
    fine("typedef u8 a[stream.event.header.n];");
}

#[test]
fn an_enumeration_has_labels_that_its_integer_can_hold() {
    check("enum e : u8 { };", "an enumeration without labels");
    check(
        "enum e : u8 { a, b = 256 };",
        "the label 'b' of 256 in 8 unsigned bits",
    );
    check(
        "enum e : u8 { a = -1 };",
        "the label 'a' of -1 in 8 unsigned bits",
    );
    check(
        "enum e : integer { size = 8; signed = true; } { a = -128, b = 128 };",
        "the label 'b' of 128 in 8 signed bits",
    );
    check(
        "enum e : u8 { a = 5 ... 3 };",
        "the label 'a' from 5 down to 3",
    );
    fine("enum e : u8 { a = 0 ... 255, b = 3, \"c d\" = 255 };");
    fine("enum e : integer { size = 64; } { a = 18446744073709551615 };");
}

#[test]
fn a_variant_is_selected_by_the_labels_of_an_enumeration() {
    check(
        "struct s { real t; variant <t> { u8 a; } v; };",
        "the selector 't' is no enumeration",
    );
    check(
        "struct s { string t; variant <t> { } v; };",
        "the selector 't' is no enumeration",
    );
    check(
        "struct s { enum : u8 { \" a \" } t; variant <t> { u8 a; } v; };",
        "no choice of the variant is a label of its selector 't'",
    );
    fine("struct s { enum : u8 { a, b } t; variant <t> { u8 a; } v; };");
    fine("struct s { enum : u8 { a } t; variant <t> { u8 a; u8 b; } v; };");
    fine("struct s { enum : u8 { a } t; variant <t> { u8 _a; } v; };");
}

#[test]
fn attributes_have_values_of_their_own_kind() {
    let integer = |attribute: &str, expect: &str| {
        check(
            &format!("typealias integer {{ size = 8; {attribute}; }} := t;"),
            expect,
        );
    };
    integer("align = \"8\"", "\"8\" as the attribute 'align'");
    integer("signed = \"false\"", "\"false\" as the attribute 'signed'");
    integer("signed = maybe", "'maybe' as the attribute 'signed'");
    integer("signed = 2", "2 as the attribute 'signed'");
    integer("base = \"decimal\"", "\"decimal\" as the attribute 'base'");
    integer("base = twelve", "'twelve' as the attribute 'base'");
    integer("base = 7", "7 as the attribute 'base'");
    integer(
        "encoding = \"ascii\"",
        "\"ascii\" as the attribute 'encoding'",
    );
    integer("encoding = true", "'true' as the attribute 'encoding'");
    integer(
        "byte_order = \"le\"",
        "\"le\" as the attribute 'byte_order'",
    );
    check(
        "typealias string { encoding = EBCDIC; } := t;",
        "'EBCDIC' as the attribute 'encoding'",
    );
    check(
        "event { name = \"a\"; id = \"b\"; };",
        "\"b\" as the attribute 'id'",
    );
    check(
        "clock { name = c; freq = \"1\"; };",
        "\"1\" as the attribute 'freq'",
    );
    check(
        "env { a = \"b\" \"c\"; };",
        "two texts one after the other as one value",
    );
    fine(
        "typealias integer { size = 8; base = b; signed = 1; encoding = UTF8; my.own = 3; } := t;",
    );
    fine("typealias integer { size = 8; base = binary; byte_order = network; } := t;");
}

#[test]
fn events_say_their_stream_where_there_are_several() {
    let streams = "stream { id = 0; }; stream { id = 1; };";
    check(
        &format!("{streams}\nevent {{ name = \"a\"; id = 0; }};"),
        "an event without a stream_id where streams are several",
    );
    fine(&format!(
        "{streams}\nevent {{ name = \"a\"; id = 0; stream_id = 1; }};"
    ));
    fine("stream { id = 0; };\nevent { name = \"a\"; id = 0; };");
}

#[test]
fn a_text_begins_with_its_version_and_has_no_zeros() {
    let trace = "trace { major = 1; minor = 8; byte_order = le; };";
    let first = |line: &str| found(&format!("{line}{trace}"));
    let none: [&str; 0] = [];
    assert_eq!(first("/* CTF 1.8 */\n"), none);
    assert_eq!(
        first("/* CTF 1 */\n"),
        ["1: begins with \"/* CTF 1 */\", not with '/* CTF 1.8 */'"]
    );
    assert_eq!(first("").len(), 1);
    check("env { a = \"b\0c\"; };", "a byte of zero in the text");
}

#[test]
fn a_uuid_has_sixteen_bytes() {
    for uuid in [
        "",
        "2a6422d0-6cee-11e0-8c08-cb07d7b3a5642a",
        "\\0a6422d0-6cee-11e0-8c08-cb07d7b3a564",
    ] {
        let text = format!("/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; uuid = \"{uuid}\"; }};");
        let found = found(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("as the attribute 'uuid'"), "{found:?}");
    }
    fine("clock { name = c; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; };");
}

#[test]
fn packets_of_metadata_have_the_byte_order_of_their_trace() {
    let check = |packets_are_big: bool, byte_order: &str, expect: usize| {
        let text = format!("trace {{ major = 1; minor = 8; byte_order = {byte_order}; }};");
        let number = |n: u32| match packets_are_big {
            true => n.to_be_bytes(),
            false => n.to_le_bytes(),
        };
        const HEADER_BYTES: usize = 37;
        let bits = number(((HEADER_BYTES + text.len()) * 8) as u32);
        let mut bytes = number(0x75D1_1D57).to_vec();
        bytes.extend([0; 20]);
        bytes.extend([bits, bits].concat());
        bytes.extend([0, 0, 0, 1, 8]);
        bytes.extend(text.bytes());
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("metadata"), bytes).expect("written");
        let files = TraceFiles::open(dir.path()).expect("read all the same");
        let found = &files.schema().violations.first;
        assert_eq!(found.len(), expect, "{byte_order}: {found:?}");
    };
    check(true, "be", 0);
    check(false, "le", 0);
    check(true, "le", 1);
    check(false, "be", 1);
}

#[test]
fn more_than_a_hundred_are_counted_alone() {
    let text: String = (0..150).map(|_| "typedef u8 int;\n").collect();
    let violations = Schema::parse(&format!("{HEAD}{text}"))
        .expect("read")
        .violations;
    assert_eq!(violations.first.len(), 100);
    // From the second on, the name is declared twice too.
    assert_eq!(violations.count, 150 + 149);
}

#[test]
fn what_other_tracers_wrote_by_the_standard_breaks_nothing() {
    let Some(corpus) = Corpus::find("standard") else {
        return;
    };
    let traces = corpus.ctf_traces();
    for (name, trace) in &traces {
        let Ok(files) = TraceFiles::open(trace) else {
            continue;
        };
        let violations = &files.schema().violations;
        assert_eq!(violations.count, 0, "{name}: {:?}", violations.first);
    }
    assert!(!traces.is_empty());
}
