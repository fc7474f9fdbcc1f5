//! What the database refuses, as errors in three parts.

use std::path::Path;

use event::{Error, ErrorKind};

/// The store is broken: `found` says where.
pub(crate) fn corrupt(path: &Path, found: String) -> Error {
    let what = format!("the store {} is broken", path.display());
    Error::new(ErrorKind::Corrupt, what)
        .found(found)
        .fix(format!(
            "mv {0} {0}.broken, and start again with a new one; sqlite3 {0}.broken .recover reads \
         what is left",
            path.display()
        ))
}

/// An error of the database in three parts.
pub(crate) fn explain(path: &Path, error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let code = error.sqlite_error_code();
    let found = error.to_string();
    match code {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt(path, found),
        Some(ErrorCode::DiskFull) => {
            let what = format!("no room is left for the store {}", path.display());
            Error::new(ErrorKind::StorageFull, what)
                .found(found)
                .fix("free some room, or allow it less with --keep-size")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            let what = format!("cannot open the store {}", path.display());
            Error::new(ErrorKind::PermissionDenied, what)
                .found(found)
                .fix("make its folder, and run with rights to it")
        }
        _ => {
            let what = format!("cannot use the store {}", path.display());
            Error::new(ErrorKind::Io, what)
                .found(found)
                .fix("look after the disk; 'dmesg' may say more")
        }
    }
}
