//! Folders of rings before anybody records or looks there: what is wrong with one that was named,
//! and whether there are any rings at all.

use std::fs;
use std::path::Path;

use event::{Error, ErrorKind, Result};
use ring::{Directory, Liveness};

use crate::user::{Whose, directories, is_named, make_way, own};

/// Tells applications and recorders where rings are.
const VARIABLE: &str = "RTSCOPE_DIR";
/// For who named one that is none.
const NAME_ANOTHER: &str = "name the one that RTSCOPE_DIR names for the applications; \
     ls -d /dev/shm/rtscope-* lists others";

/// For who has none.
const ANOTHER: &str = "let RTSCOPE_DIR name another folder, here and for the applications";

/// Checks that there are rings in `asked`, or else where recorders look.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there are none, or no folder; otherwise why the folder that was
/// named is not to be looked into. One that nobody named and that refuses itself is none: the
/// look itself tells it beside what the others hold.
pub fn require_rings(asked: Option<&Path>, whose: Whose) -> Result<()> {
    let is_named = asked.is_some() || std::env::var_os(VARIABLE).is_some();
    let folders = directories(asked);
    let mut alive: usize = 0;
    for (path, owner, _) in &folders {
        let folder = match Directory::open(path, *owner) {
            Ok(folder) => folder,
            Err(error) if is_named => return Err(refused(path, error)),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return Ok(()),
        };
        for name in folder.names()? {
            match folder.rings(&name) {
                Ok(None) => (),
                Ok(Some(rings)) if whose == Whose::Dead && rings.liveness() == Liveness::Alive => {
                    alive += 1;
                }
                Ok(Some(_)) | Err(_) => return Ok(()),
            }
        }
    }
    let paths: Vec<String> = folders
        .iter()
        .map(|(path, ..)| path.display().to_string())
        .collect();
    Err(without(&paths.join(", "), alive))
}

/// No rings in `paths`, or only those of so many processes that live.
fn without(paths: &str, alive: usize) -> Error {
    if alive > 0 {
        return Error::new(ErrorKind::NotFound, "no rings of processes that are gone")
            .found(format!("rings of {alive} living processes in {paths}"))
            .fix("rtscope snapshot takes what the living hold");
    }
    Error::new(ErrorKind::NotFound, "no rings")
        .found(format!("no file rings-* in {paths}"))
        .fix(
            "rtscope record --flight --user 'GLOB' lets applications keep their newest events; \
             they and it need the same RTSCOPE_DIR, or none",
        )
}

/// Checks that a recorder can have our folder of rings: that it is one, or can be made. As root,
/// what another user put in its place is moved away first; gives what was.
///
/// # Errors
/// Why it cannot.
pub fn require_folder() -> Result<Vec<Error>> {
    let moved = make_way(None);
    let ours = directories(None).into_iter().filter(|(.., ours)| *ours);
    for (path, owner, _) in ours {
        match Directory::open(&path, owner) {
            Ok(_) => (),
            Err(error) if error.kind() == ErrorKind::NotFound => require_parent(&path)?,
            Err(error) => {
                require_parent(&path)?;
                return Err(refused(&path, error));
            }
        }
    }
    Ok(moved)
}

/// A folder that is not there is made, those above it are not.
fn require_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => return Ok(()),
    };
    if parent.is_dir() {
        return Ok(());
    }
    let what = format!("cannot make the folder of rings {}", path.display());
    if fs::symlink_metadata(parent).is_ok() {
        return Err(Error::new(ErrorKind::NotFound, what)
            .found(format!("{} is no directory", parent.display()))
            .fix(ANOTHER));
    }
    Err(Error::new(ErrorKind::NotFound, what)
        .found(format!("no such directory: {}", parent.display()))
        .fix(format!("mkdir -p {}", parent.display())))
}

/// Why the folder that was named cannot be taken, from what opening it said.
fn refused(path: &Path, error: Error) -> Error {
    let name = path.display();
    let none = |found: String| {
        let what = format!("no folder of rings: {name}");
        Error::new(error.kind(), what)
            .found(found)
            .fix(NAME_ANOTHER)
    };
    let Ok(status) = fs::symlink_metadata(path) else {
        return match error.kind() {
            ErrorKind::NotFound => none("no such directory".to_owned()),
            _ if path.parent().is_some_and(|parent| parent.is_file()) => {
                none("what is above it is a file, no directory".to_owned())
            }
            _ => error.fix("sudo -u OWNER rtscope … runs it as the owner of that folder"),
        };
    };
    if status.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return none("a symbolic link, which is not followed".to_owned())
            .fix(format!("name what it leads to: {}", target.display()));
    }
    if !status.is_dir() {
        return none("a file, no directory".to_owned());
    }
    let owner = std::os::unix::fs::MetadataExt::uid(&status);
    if owner == rustix::process::geteuid().as_raw() {
        return error.fix(format!("chmod u+rwx,go-w {name}"));
    }
    // Nobody else has a reason to have one of that name.
    if path == own(None).0 && !is_named(None) {
        return error.fix(format!(
            "sudo rm -r {name} (another user took its name), or let RTSCOPE_DIR name a folder of \
             yours, here and for the applications"
        ));
    }
    error.fix(format!("sudo -u '#{owner}' rtscope … runs it as its owner"))
}
