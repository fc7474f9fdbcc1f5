//! Words that TSDL keeps for itself.

/// All of them (CTF 1.8, section C.1.2).
const KEYWORDS: [&str; 25] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
];

/// Those of them that name C's own types, or parts of such names.
pub(crate) const C_TYPE_WORDS: [&str; 10] = [
    "char", "const", "double", "float", "int", "long", "short", "signed", "unsigned", "void",
];

/// Whether a word may not be a name.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}
