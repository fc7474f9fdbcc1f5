//! Check that every declaration of an event that compiles records what it was given, and that the
//! others are refused: by the compiler where it can know, else by name when the program starts.

mod traced;

use std::path::Path;
use std::process::{Command, Output};

use ring::{Directory, FieldKind, RingFile};
use testkit::{Traced, build_traced};
use traced::{Event, build, events, run};

const EVENTS: [(&str, &str); 1] = [("RTSCOPE_EVENTS", "app")];
const COMPILERS: [(&str, &str); 4] = [
    ("gcc", "-std=c11"),
    ("clang", "-std=c11"),
    ("g++", "-std=c++17"),
    ("clang++", "-std=c++17"),
];

/// Builds `source` with each compiler that is there, with and without optimisation.
fn with_every_compiler(name: &str, source: &str, check: impl Fn(&str, &mut RingFile)) {
    let source = &format!("{source}\n");
    for (compiler, standard) in COMPILERS {
        if Command::new(compiler).arg("--version").output().is_err() {
            testkit::skip(name, &format!("no {compiler} here"));
            continue;
        }
        for optimise in ["-O0", "-O2"] {
            let name = format!("{name}-{compiler}{optimise}");
            let program = Traced {
                compiler,
                flags: &[standard, optimise, "-Wpedantic", "-Wshadow"],
                source,
            };
            let program = build_traced(Path::new(env!("CARGO_TARGET_TMPDIR")), &name, program);
            let (_none, untraced) = run(&program, &[]);
            assert_eq!(untraced.len(), 0, "{name}");
            let (_folder, mut files) = run(&program, &EVENTS);
            check(&name, &mut files[0]);
        }
    }
}

/// What the compiler says of a file that has these lines in its main.
fn compile(name: &str, lines: &str) -> Output {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    let text = format!(
        "#include <rtscope/event.h>\nenum {{ COUNT = 3 }};\nint main(void)\n\
         {{ static char memory[5000];\n{lines}\nreturn memory[0]; }}\n"
    );
    std::fs::write(&source, text).expect("the program's text");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-c", "-Werror", "-o", "/dev/null", "-I"]);
    compile.arg(probe.join("include")).arg(&source);
    compile.output().expect("a compiler")
}

#[test]
fn enumerations_keep_their_labels_however_many_there_are() {
    let names = ["one", "two", "three", "four"];
    let check = |length: usize| {
        let labels = |name: &&str| {
            format!("RTSCOPE_ENUMERATION({name}, RTSCOPE_LABEL(\"the_{name}\", 1));\n")
        };
        let field = |name: &&str| format!(", e8(\"{name}\", {name}, 1)");
        let all: String = names[..length].iter().map(labels).collect();
        let fields: String = names[..length].iter().map(field).collect();
        let source = format!(
            "#include <rtscope/event.h>\n{all}int main(void) \
             {{ RTSCOPE_EVENT(app, lights{fields}); \
             return 0; }}"
        );
        with_every_compiler("enumerations", &source, |name, file| {
            assert_eq!(events(file).len(), 1, "{name} with {length}");
            for (field, known) in file.table().events[0].fields.iter().zip(names) {
                let FieldKind::Enumeration(_, labels) = &field.kind else {
                    panic!("{name} with {length}: {field:?}");
                };
                assert_eq!(labels[0].label, format!("the_{known}"), "{name}");
            }
        });
    };
    // With four, 32 bytes apart, the section was a whole number of structs.
    check(2);
    check(4);
}

#[test]
fn labels_may_be_of_an_enum_class_and_of_any_64_bits() {
    let program = Traced {
        compiler: "g++",
        flags: &["-std=c++17", "-O2"],
        source: "#include <rtscope/event.h>\n\
                 enum class light : unsigned long { red, all = ~0ul };\n\
                 #define LIGHT lights\n\
                 RTSCOPE_ENUMERATION(LIGHT, RTSCOPE_LABEL(\"red\", light::red), \
                 RTSCOPE_LABEL(\"all\", light::all));\n\
                 int main() { RTSCOPE_EVENT(app, one, e64(\"light\", LIGHT, light::all)); }",
    };
    let program = build_traced(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        "enum_class",
        program,
    );
    let (_folder, mut files) = run(&program, &EVENTS);
    assert_eq!(events(&mut files[0]).len(), 1);
    let kind = &files[0].table().events[0].fields[0].kind;
    let FieldKind::Enumeration(_, labels) = kind else {
        panic!("{kind:?}");
    };
    let found: Vec<_> = labels.iter().map(|one| (&*one.label, one.first)).collect();
    assert_eq!(found, [("red", 0), ("all", -1)]);
}

#[test]
fn a_text_has_the_room_that_fixed_fields_leave_and_its_cut_is_marked() {
    // Before it, bytes of the text, those that are kept, and marks.
    let cases = [
        ("array(\"s\", f64, s, 63),", 4999, 3, "..."),
        ("array(\"s\", f64, s, 63), u32(\"n\", 1),", 4999, 0, ".."),
        (
            "array(\"s\", f64, s, 63), nowrite(array(\"t\", u16, s, 3)),",
            1,
            0,
            "",
        ),
        ("array(\"s\", f64, s, 63),", 6, 6, ""),
        ("", 510, 510, ""),
        ("", 511, 507, "..."),
    ];
    let recorded: String = (0..cases.len())
        .map(|place| {
            let (fixed, length, _, _) = cases[place];
            format!(
                "memset(name, 0, 5000);\nmemset(name, 'x', {length});\n\
                 RTSCOPE_EVENT(app, case_{place}, {fixed} text(\"name\", name));\n"
            )
        })
        .collect();
    let source = format!(
        "#include <rtscope/event.h>\nint main(void) {{ static double s[64]; \
         static char name[5000];\n{recorded}return s[0] != 0; }}"
    );
    with_every_compiler("cut_text", &source, |name, file| {
        let found = events(file);
        for (place, (fixed, _, kept, marks)) in cases.iter().enumerate() {
            let known = |event: &&Event| event.0 == format!("app:case_{place}");
            let event = found.iter().find(known).expect("the event");
            let bytes = [vec![b'x'; *kept], marks.as_bytes().to_vec()].concat();
            let last = event.1.last().expect("a field");
            assert_eq!(*last, format!("name={bytes:?}"), "{name} beside {fixed}");
        }
    });
}

#[test]
fn names_are_taken_as_they_are_written() {
    let source = "#include <errno.h>\n#include <rtscope/event.h>\n#include <stdio.h>\n\
        #define PROVIDER app\n#define loop 7\nint main(void) { \
        RTSCOPE_EVENT(app, errno); RTSCOPE_EVENT(PROVIDER, stdin, u8(\"a\", loop)); \
        RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, app, loop); RTSCOPE_PRINT(app, stdout, \"x\"); \
        RTSCOPE_BEGIN(app, loop, 1); RTSCOPE_END(app, loop, 1, u8(\"b\", 1)); \
        RTSCOPE_EVENT(app, 0x1); return 0; }";
    with_every_compiler("names", source, |name, file| {
        let mut found: Vec<_> = events(file).into_iter().map(|event| event.0).collect();
        found.sort();
        let expected = [
            "app:0x1",
            "app:errno",
            "app:loop",
            "app:loop_begin",
            "app:loop_end",
            "app:stdin",
            "app:stdout",
        ];
        assert_eq!(found, expected, "{name}");
    });
}

#[test]
fn counts_may_be_any_constant_and_none() {
    let source = "#include <rtscope/event.h>\nenum { COUNT = 2 };\nint main(void) { \
        const unsigned char all[4] = {1, 2, 3, 4}; RTSCOPE_EVENT(app, counts, \
        array(\"a\", u8, all, COUNT), array(\"b\", u8, all, sizeof all / sizeof *all), \
        chars(\"c\", all, 1u), array(\"none\", u8, (unsigned char *)0, 0), \
        sequence(\"negative\", u8, all, (size_t)-1), u8(\"d\", 5)); return 0; }";
    with_every_compiler("counts", source, |name, file| {
        let fields = [
            "a=[1, 2]",
            "b=[1, 2, 3, 4]",
            "c=[1]",
            "none=[]",
            "negative=[]",
            "d=[5]",
        ];
        assert_eq!(events(file)[0].1, fields, "{name}");
    });
}

fn refused(name: &str, lines: &str, said: &str) {
    let done = compile(name, lines);
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success(), "{lines} is compiled");
    assert!(text.contains(said), "{lines}:\n{text}");
}

fn accepted(name: &str, lines: &str) {
    let done = compile(name, lines);
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{lines}:\n{text}");
}

#[test]
fn fields_that_break_a_limit_are_not_compiled() {
    let fields = |count: usize| {
        let fields = (0..count).map(|place| format!(", u8(\"f{place}\", 0)"));
        format!("RTSCOPE_EVENT(app, many{});", fields.collect::<String>())
    };
    accepted("fields_23", &fields(23));
    refused("fields_24", &fields(24), "more_than_23_fields");
    refused("fields_40", &fields(40), "more_than_23_fields");
    let array = |of: &str, count: i32, more: &str| {
        format!("RTSCOPE_EVENT(app, long, array(\"a\", {of}, memory, {count}){more});")
    };
    let (text, hidden) = (", text(\"t\", memory)", ", nowrite(u64(\"h\", 1))");
    accepted("array_512", &array("u8", 512, ""));
    refused("array_513", &array("u8", 513, ""), "at most 512 elements");
    refused(
        "array_negative",
        &array("u8", -1, ""),
        "at most 512 elements",
    );
    accepted("fixed_4080", &array("u64", 510, ""));
    refused(
        "fixed_4088",
        &array("u64", 510, hidden),
        "at most 4080 bytes",
    );
    accepted("text_510", &array("u8", 510, text));
    refused("text_511", &array("u8", 511, text), "no room for text");
    let both = [text, hidden].concat();
    refused("text_hidden", &array("u8", 510, &both), "no room for text");
    let level = "RTSCOPE_EVENT_LEVEL(256, app, x);";
    refused("level", level, "a level has 8 bits");
}

#[test]
fn names_that_break_a_limit_are_not_compiled() {
    let event = |provider: &str, name: &str| format!("RTSCOPE_EVENT({provider}, {name});");
    refused("dash", &event("app", "a-b"), "error");
    refused("dot", &event("a.b", "x"), "error");
    refused("quoted", &event("app", "\"x\""), "error");
    refused("nameless", &event("app", ""), "a name has 1 to 255 bytes");
    refused("linux", &event("linux", "x"), "_is_a_provider_");
    let long = "x".repeat(256);
    accepted("name_255", &event(&long[1..], &long[1..]));
    refused(
        "name_256",
        &event("app", &long),
        "a name has 1 to 255 bytes",
    );
    refused("provider_256", &event(&long, "x"), "at most 255 bytes");
    let field = |name: &str| format!("RTSCOPE_EVENT(app, x, u8(\"{name}\", 1));");
    let said = "the name of a field has 1 to 255 bytes";
    refused("field_256", &field(&long), said);
    refused("field_0", &field(""), said);
    refused("field_zero", &field("a\\0b"), "no zero");
}

#[test]
fn an_event_that_no_recorder_can_read_is_refused_by_name_and_the_others_are_recorded() {
    let program = build(
        "misnamed",
        "#include <rtscope/event.h>\nint main(void) { RTSCOPE_EVENT(app, good, u8(\"a\", 1)); \
         RTSCOPE_EVENT(app, dash, u8(\"a-b\", 1)); \
         RTSCOPE_EVENT(app, twice, u8(\"a\", 1), nowrite(u8(\"a\", 1))); \
         RTSCOPE_EVENT(app, last, u8(\"a\", 1)); return 0; }",
    );
    let (_folder, mut files) = run(&program, &EVENTS);
    let found: Vec<_> = events(&mut files[0]).into_iter().map(|one| one.0).collect();
    assert_eq!(found, ["app:good", "app:last"]);
    let notes = files[0].table().notes.iter();
    let notes: Vec<_> = notes.map(|note| (&*note.what, &*note.found)).collect();
    assert_eq!(
        notes,
        [
            (
                "there is no event app:dash",
                "a field's name is no identifier: a-b"
            ),
            (
                "there is no event app:twice",
                "two of its fields have the name a"
            ),
        ]
    );
}

#[test]
fn sections_that_do_not_fit_are_refused_and_never_walked() {
    let check = |name: &str, section: &str, flags: &str, data: &str| {
        let program = build(
            name,
            &format!(
                "#include <rtscope/event.h>\n__asm__(\".pushsection {section},\\\"{flags}\\\"\\n\
                 {data}\\n.popsection\");\nRTSCOPE_ENUMERATION(one, RTSCOPE_LABEL(\"a\", 1));\n\
                 int main(void) {{ RTSCOPE_EVENT(app, one, e8(\"a\", one, 1)); return 0; }}"
            ),
        );
        // Without events, it leaves its rings to a recorder that is there.
        let folder = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(folder.path(), owner).expect("a directory");
        directory.announce(&["app".to_owned()]).expect("a session");
        let mut command = Command::new(&program);
        let status = command.env("RTSCOPE_DIR", folder.path()).status();
        assert!(status.expect("it runs").success(), "{name}");
        let mut files = traced::files(folder.path());
        assert_eq!(events(&mut files[0]), [], "{name}");
        assert_eq!(files[0].unregistered().expect("a number"), 1, "{name}");
        let note = &files[0].table().notes[0];
        assert!(
            note.what.starts_with("a program or library has no events"),
            "{note:?}"
        );
    };
    check("long_text", "rtscope_events", "a", ".long 0x7fffffff, 8, 8");
    check(
        "no_switch",
        "rtscope_events",
        "a",
        ".long 1, 0x10000000, 8, 0",
    );
    check("cut_site", "rtscope_events", "a", ".long 1");
    check("no_pointer", "rtscope_enumeration_list", "aw", ".quad 1");
    check("odd_list", "rtscope_enumeration_list", "aw", ".long 1");
}
