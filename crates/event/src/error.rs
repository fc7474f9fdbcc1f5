//! One error for all libraries: a kind to branch on, and three parts for the person who reads it.

use std::fmt;

/// The result of every fallible function of rtscope's libraries.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller may want to branch on. Text is for people, kinds are for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something named by the user does not exist.
    NotFound,
    /// The user's input has no meaning (an unknown unit, a threshold of zero, …).
    InvalidInput,
    /// Bytes that came from outside break their format.
    Corrupt,
    /// This kernel or machine lacks a feature.
    Unsupported,
    /// The process lacks a privilege.
    PermissionDenied,
    /// The output is there already.
    AlreadyExists,
    /// No room is left on the device.
    StorageFull,
    /// Someone asked us to stop.
    Interrupted,
    /// The operating system refused for another reason.
    Io,
}

/// An error in three parts: what failed, the value that was found, the command that fixes it.
///
/// `{}` prints one line; `{:#}` prints all parts and the chain of causes, a line each.
pub struct Error(Box<Parts>);

struct Parts {
    kind: ErrorKind,
    what: String,
    found: Option<String>,
    fix: Option<String>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error that says what failed.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error(Box::new(Parts {
            kind,
            what: what.into(),
            found: None,
            fix: None,
            cause: None,
        }))
    }

    /// An error of the operating system; its kind follows from `cause`.
    pub fn io(what: impl Into<String>, cause: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match cause.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied => ErrorKind::PermissionDenied,
            Io::AlreadyExists => ErrorKind::AlreadyExists,
            // A quota and a limit of file sizes are full disks for this user and this process.
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::StorageFull,
            Io::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Io,
        };
        Error::new(kind, what).found(cause.to_string()).cause(cause)
    }

    /// Adds the value that was found.
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.0.found = Some(found.into());
        self
    }

    /// Adds the command, or the change, that fixes it.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.0.fix = Some(fix.into());
        self
    }

    /// Adds the cause.
    pub fn cause(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// What to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What failed.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// The value that was found, when there is one to show.
    pub fn value_found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// The command that fixes it, when there is one.
    pub fn fixed_by(&self) -> Option<&str> {
        self.0.fix.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            what, found, fix, ..
        } = &*self.0;
        f.write_str(what)?;
        if !f.alternate() {
            return found
                .as_ref()
                .map_or(Ok(()), |found| write!(f, ": {found}"));
        }
        if let Some(found) = found {
            write!(f, "\n  found: {found}")?;
        }
        if let Some(fix) = fix {
            write!(f, "\n  fix:  {fix}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_three_parts_only_when_asked() {
        let error = Error::new(ErrorKind::PermissionDenied, "cannot load BPF programs")
            .found("uid 1000, no CAP_BPF")
            .fix("sudo rtscope watch …");
        assert_eq!(
            error.to_string(),
            "cannot load BPF programs: uid 1000, no CAP_BPF"
        );
        assert_eq!(
            format!("{error:#}"),
            "cannot load BPF programs\n  found: uid 1000, no CAP_BPF\n  fix:  sudo rtscope watch …"
        );
    }

    #[test]
    fn an_io_error_keeps_its_kind_and_cause() {
        use std::io::ErrorKind as Io;
        for full in [Io::StorageFull, Io::QuotaExceeded, Io::FileTooLarge] {
            let error = Error::io("cannot write the trace", full.into());
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert!(std::error::Error::source(&error).is_some());
        }
    }
}
