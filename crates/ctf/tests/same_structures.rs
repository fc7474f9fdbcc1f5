//! Structures that several events declare in the same words are worked out once, and only where the
//! words mean the same.

use std::sync::Arc;

use ctf::reader::Schema;
use event::{EventClass, FieldType};

/// The classes of two events of one stream, with declarations before each.
fn classes(before: [&str; 2], structures: [&str; 2]) -> Arc<[EventClass]> {
    let event = |id: usize| {
        format!(
            "{} event {{ name = e{id}; id = {id}; stream_id = 0; fields := {}; }};",
            before[id], structures[id]
        )
    };
    let text = format!(
        "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }};
         stream {{ id = 0; event.header := struct {{ integer {{ size = 8; }} id; }}; }};
         {} {}",
        event(0),
        event(1)
    );
    Schema::parse(&text).unwrap().classes
}

fn are_shared(classes: &[EventClass]) -> bool {
    Arc::ptr_eq(&classes[0].fields, &classes[1].fields)
}

/// The first field of each class, and the last.
fn outer_fields(classes: &[EventClass]) -> [(&FieldType, &str); 2] {
    [0, 1].map(|class| {
        let fields = &classes[class].fields;
        (&fields[0].ty, fields[fields.len() - 1].name.as_str())
    })
}

const NUMBERS: &str = "struct { integer { size = 32; } a; struct { string s; } inside; }";

#[test]
fn the_same_words_are_one_structure() {
    let classes = classes(["", ""], [NUMBERS, NUMBERS]);
    assert!(are_shared(&classes));
    assert_eq!([&classes[0].name, &classes[1].name], ["e0", "e1"]);
    assert_eq!(classes[1].fields.len(), 2);
}

#[test]
fn the_name_of_a_type_means_what_it_means_where_it_stands() {
    let before = [
        "typealias integer { size = 8; } := number;",
        "typealias integer { size = 16; } := number;",
    ];
    let classes = classes(before, ["struct { number n; }"; 2]);
    let sizes = outer_fields(&classes).map(|(ty, _)| match ty {
        FieldType::Integer(integer) => integer.size_bits,
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes, [8, 16]);
}

#[test]
fn an_alignment_behind_the_braces_is_each_structures_own() {
    let aligned = format!("{NUMBERS} align(64)");
    let classes = classes(["", ""], [NUMBERS, &aligned]);
    assert!(!are_shared(&classes));
    assert_eq!(classes[0].fields, classes[1].fields);
}

#[test]
fn braces_in_comments_and_texts_are_none() {
    let check = |structure: &str| {
        let classes = classes(["", ""], [structure, structure]);
        let expect = classes.iter().map(|class| class.fields.len());
        assert_eq!(expect.collect::<Vec<_>>(), [2, 2], "{structure}");
        assert_eq!(outer_fields(&classes).map(|(_, last)| last), ["b", "b"]);
    };
    check("struct { string a; /* } */ string b; }");
    check("struct { string a; /* { */ string b; }");
    check("struct { string a; // }\n string b; }");
    let labels = "enum : integer { size = 8; } { \"}\" = 1, \"{{\" } b";
    check(&format!("struct {{ string a; {labels}; }}"));
}
