//! How much is tested, and how what is tested is built.

use crate::run::Profile;

/// How much to test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    /// The core: within 25 minutes cold on two cores.
    Core,
    /// Long stresses and many repetitions too.
    All,
}

impl Scope {
    /// How programs of tests with privilege and of guests are built.
    pub fn profile(self) -> Profile {
        match self {
            Scope::Core => Profile::Tested,
            Scope::All => Profile::Release,
        }
    }
}
