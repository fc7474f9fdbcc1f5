//! What a C compiler says of a header's records, beside what Rust says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One line of the comparison: a C expression and the number that Rust expects of it.
pub type Claims = Vec<(String, usize)>;

/// Adds the size of a record and the offsets of its fields.
macro_rules! claim {
    ($claims:ident, $rust:ty, $c:literal, [$($field:ident),* $(,)?]) => {
        $claims.push((format!("sizeof(struct {})", $c), size_of::<$rust>()));
        $(
            let field = stringify!($field).trim_start_matches("r#");
            let c = format!("__builtin_offsetof(struct {}, {field})", $c);
            $claims.push((c, offset_of!($rust, $field)));
        )*
    };
}

pub(crate) use claim;

/// Compares the claims with what the header at `header` (from the repository's root) means to
/// `cc`, with `flags` before it.
pub fn check(name: &str, header: &str, claims: &Claims) {
    let header = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(header);
    let mut source = format!(
        "#include <stdio.h>\n#include \"{}\"\nint main(void) {{\n",
        header.display()
    );
    for (expression, _) in claims {
        writeln!(source, "printf(\"%lu\\n\", (unsigned long)({expression}));").unwrap();
    }
    source.push_str("return 0; }\n");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (c, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&c, source).unwrap();
    let built = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(&c)
        .status();
    assert!(built.expect("a C compiler named cc is needed").success());
    let output = Command::new(&program).output().unwrap();
    let said: Vec<usize> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|n| n.parse().unwrap())
        .collect();

    assert_eq!(said.len(), claims.len());
    for ((expression, rust), c) in claims.iter().zip(said) {
        assert_eq!(*rust, c, "{expression}");
    }
}
