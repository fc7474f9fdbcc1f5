//! Names of code in applications, from whoever can open files: an analysis opens none.

use std::fmt;
use std::rc::Rc;

/// What is asked: the process, the instant (nanoseconds since 1970, UTC), the address.
type Namer = dyn Fn(i32, i64, u64) -> Option<String>;

/// Names the functions of applications; the default names none.
#[derive(Clone, Default)]
pub struct CodeNames(Option<Rc<Namer>>);

impl CodeNames {
    /// Names by `namer`: of a process, an instant in nanoseconds since 1970 (UTC) and an address.
    pub fn new(namer: impl Fn(i32, i64, u64) -> Option<String> + 'static) -> CodeNames {
        CodeNames(Some(Rc::new(namer)))
    }

    /// The function that lay at `address` of the process `pid` at `at_ns`.
    pub(super) fn name(&self, pid: i32, at_ns: i64, address: u64) -> Option<String> {
        self.0.as_ref()?(pid, at_ns, address)
    }
}

impl fmt::Debug for CodeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CodeNames").field(&self.0.is_some()).finish()
    }
}

/// The same source of names.
impl PartialEq for CodeNames {
    fn eq(&self, other: &CodeNames) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(another)) => Rc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        }
    }
}
