//! Names of what lies where in applications, from whoever can open files: an analysis opens none.

use std::fmt;
use std::rc::Rc;

/// What is asked: the process, the instant (nanoseconds since 1970, UTC), the address.
type Namer = dyn Fn(i32, i64, u64) -> Option<String>;

/// Names what lies at addresses of applications; the default names nothing.
#[derive(Clone, Default)]
pub struct CodeNames {
    functions: Option<Rc<Namer>>,
    objects: Option<Rc<Namer>>,
}

impl CodeNames {
    /// Names by `function`, which names the functions, and by `object`, which names what programs
    /// keep at fixed places, such as a static mutex: of a process, an instant in nanoseconds since
    /// 1970 (UTC) and an address.
    pub fn new(
        function: impl Fn(i32, i64, u64) -> Option<String> + 'static,
        object: impl Fn(i32, i64, u64) -> Option<String> + 'static,
    ) -> CodeNames {
        CodeNames {
            functions: Some(Rc::new(function)),
            objects: Some(Rc::new(object)),
        }
    }

    /// The function that lay at `address` of the process `pid` at `at_ns`.
    pub(super) fn function(&self, pid: i32, at_ns: i64, address: u64) -> Option<String> {
        self.functions.as_ref()?(pid, at_ns, address)
    }

    /// The object that lay there.
    pub(super) fn object(&self, pid: i32, at_ns: i64, address: u64) -> Option<String> {
        self.objects.as_ref()?(pid, at_ns, address)
    }
}

impl fmt::Debug for CodeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_some = self.functions.is_some();
        f.debug_tuple("CodeNames").field(&is_some).finish()
    }
}

/// The same source of names.
impl PartialEq for CodeNames {
    fn eq(&self, other: &CodeNames) -> bool {
        let same = |one: &Option<Rc<Namer>>, another: &Option<Rc<Namer>>| match (one, another) {
            (Some(one), Some(another)) => Rc::ptr_eq(one, another),
            (None, None) => true,
            _ => false,
        };
        same(&self.functions, &other.functions) && same(&self.objects, &other.objects)
    }
}
