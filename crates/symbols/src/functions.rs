//! The functions of a program or library, by name.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use blazesym::SymType;
use blazesym::inspect::Inspector;
use blazesym::inspect::source::{Elf, Source};
use event::{Error, ErrorKind, Result};

/// Where in the file at `path` the code of each function begins, by the names of its own tables:
/// those for the linker, and those for other programs. Neither is there in a stripped program.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when it is no ELF file that can be read.
pub fn functions(path: &Path) -> Result<BTreeMap<String, u64>> {
    let mut elf = Elf::new(path);
    elf.debug_syms = false;
    let mut functions = BTreeMap::new();
    let found = Inspector::new().for_each(&Source::Elf(elf), |symbol| {
        if let (SymType::Function, Some(offset)) = (symbol.sym_type, symbol.file_offset) {
            functions.insert(symbol.name.to_string(), offset);
        }
        ControlFlow::Continue(())
    });
    found.map_err(|error| {
        let what = format!("cannot read the functions of {}", path.display());
        let error = Error::new(ErrorKind::Corrupt, what).found(error.to_string());
        error.fix("give a program or a library, no script")
    })?;
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_has_functions_and_what_is_no_program_is_refused() {
        let own = std::env::current_exe().expect("this program");
        let functions = functions(&own).expect("an ELF file");
        assert!(functions.contains_key("main"), "{}", functions.len());
        let refused = super::functions(Path::new("/etc/passwd")).expect_err("no ELF file");
        assert!(refused.fixed_by().is_some());
    }
}
