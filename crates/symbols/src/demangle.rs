//! Names of C++ and Rust functions as their authors write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Whether `typed` is what an author calls the function that the linker knows as `mangled`: with or
/// without its parameters, blanks apart.
pub(crate) fn is_called(mangled: &str, typed: &str) -> bool {
    if mangled.starts_with("_R") || mangled.starts_with("_ZN") {
        let name = rustc_demangle::try_demangle(mangled);
        // Without the hash that makes it unique.
        if name.is_ok_and(|name| format!("{name:#}") == typed) {
            return true;
        }
    }
    if !mangled.starts_with("_Z") {
        return false;
    }
    let Ok(symbol) = Symbol::new(mangled) else {
        return false;
    };
    let whole = DemangleOptions::default().no_return_type();
    [whole.no_params(), whole].iter().any(|options| {
        let name = symbol.demangle_with_options(options);
        name.is_ok_and(|name| without_blanks(&name).eq(without_blanks(typed)))
    })
}

/// What an author calls it, without parameters; as it is, where it is no mangled name.
pub(crate) fn readable(mangled: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(mangled) {
        // Without the hash that makes it unique.
        return format!("{name:#}");
    }
    let options = DemangleOptions::default().no_return_type().no_params();
    let symbol = Symbol::new(mangled).ok();
    let name = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| mangled.to_owned())
}

fn without_blanks(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| *c != ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_called_as_its_author_writes_it() {
        let check = |mangled: &str, typed: &str, expect: bool| {
            assert_eq!(is_called(mangled, typed), expect, "{mangled} {typed}");
        };
        check("_ZN2ns3Foo3barEi", "ns::Foo::bar", true);
        check("_ZN2ns3Foo3barEi", "ns::Foo::bar(int)", true);
        check("_ZN2ns3Foo3barEiPKc", "ns::Foo::bar(int,char const*)", true);
        check("_ZN2ns3Foo3barEi", "ns::Foo::bar(long)", false);
        check("_ZN2ns3Foo3barEi", "Foo::bar", false);
        check("_ZN3app4main17h0123456789abcdefE", "app::main", true);
        check("main", "main", false);
        check("_Znonsense", "_Znonsense", false);
    }
}
