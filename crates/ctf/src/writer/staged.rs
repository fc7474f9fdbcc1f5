//! Output that appears whole or not at all: written beside its place, then renamed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::write_error;

/// So many that dead processes of one number left beside an output are passed over.
const LEFT_MAX: u32 = 1000;

/// A directory under a temporary name beside its final one; removed when dropped uncommitted.
#[derive(Debug)]
pub struct StagedDir(Staged);

/// A file under a temporary name beside its final one; removed when dropped uncommitted.
#[derive(Debug)]
pub struct StagedFile(Staged);

#[derive(Debug)]
struct Staged {
    target: PathBuf,
    staging: Option<PathBuf>,
}

impl StagedDir {
    /// Makes the temporary directory `.NAME.partial-PID` beside `target`; `.NAME.partial-PID.2`
    /// where a dead process of that number, or one of another namespace, has left the first.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when `target` is there already; otherwise what the operating
    /// system says.
    pub fn create(target: &Path) -> Result<StagedDir> {
        let (staging, ()) = make_new(target, |path| fs::create_dir(path))?;
        Ok(StagedDir(Staged::new(target, staging)))
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the directory its final name; never replaces another. Where somebody made that
    /// meanwhile it is kept under the next that is free, `NAME.2` first.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when somebody did, with the name that it has now; otherwise
    /// what the operating system says.
    pub fn commit(mut self) -> Result<PathBuf> {
        match self.0.give_name() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(self.0.keep_beside().unwrap_or(error))
            }
            given => given,
        }
    }
}

impl StagedFile {
    /// Makes the temporary file beside `target`, named as the directory is, open for writing.
    ///
    /// # Errors
    /// As [`StagedDir::create`].
    pub fn create(target: &Path) -> Result<(File, StagedFile)> {
        let (staging, file) = make_new(target, |path| File::create_new(path))?;
        Ok((file, StagedFile(Staged::new(target, staging))))
    }

    /// Gives the file its final name; never replaces another.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when somebody made the target meanwhile (what was written is
    /// then removed); otherwise what the operating system says.
    pub fn commit(mut self) -> Result<PathBuf> {
        self.0.give_name()
    }
}

/// Makes what has the first temporary name beside `target` that is free. In a container each
/// recorder may have the same number: what a killed one left there keeps no other from recording.
fn make_new<T>(target: &Path, make: impl Fn(&Path) -> std::io::Result<T>) -> Result<(PathBuf, T)> {
    let first = staging_path(target)?;
    let mut staging = first.clone();
    for number in 2..=LEFT_MAX {
        match make(&staging) {
            Ok(made) => return Ok((staging, made)),
            Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => {
                let mut name = first.clone().into_os_string();
                name.push(format!(".{number}"));
                staging = name.into();
            }
            Err(cause) => return Err(write_error(&staging, cause)),
        }
    }
    Err(exists(&staging))
}

/// The temporary name beside `target`, in a directory that exists.
fn staging_path(target: &Path) -> Result<PathBuf> {
    if target.symlink_metadata().is_ok() {
        return Err(exists(target));
    }
    let Some(name) = target.file_name() else {
        return Err(
            Error::new(ErrorKind::InvalidInput, "not a name for an output")
                .found(target.display().to_string())
                .fix("give -o a path that does not exist yet"),
        );
    };
    let name = format!(".{}.partial-{}", name.to_string_lossy(), std::process::id());
    let parent = target.parent();
    if let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|cause| write_error(parent, cause))?;
    }
    Ok(target.with_file_name(name))
}

impl Staged {
    fn new(target: &Path, staging: PathBuf) -> Staged {
        Staged {
            target: target.to_owned(),
            staging: Some(staging),
        }
    }

    fn path(&self) -> &Path {
        self.staging.as_deref().unwrap_or(&self.target)
    }

    fn give_name(&mut self) -> Result<PathBuf> {
        if let Some(staging) = &self.staging {
            rename_new(staging, &self.target)?;
            self.staging = None;
        }
        Ok(self.target.clone())
    }

    /// Gives it another name beside the target, which is there already; says which. None where that
    /// cannot be done.
    fn keep_beside(&mut self) -> Option<Error> {
        let staging = self.staging.as_ref()?;
        for number in 2..=LEFT_MAX {
            let mut beside = self.target.clone().into_os_string();
            beside.push(format!(".{number}"));
            let beside = PathBuf::from(beside);
            match rename_new(staging, &beside) {
                Ok(()) => {
                    self.staging = None;
                    let (taken, kept) = (self.target.display(), beside.display());
                    let error = Error::new(ErrorKind::AlreadyExists, "the output is there by now")
                        .found(format!("{taken}; what was written is in {kept}"));
                    return Some(error.fix("give each that writes at the same time its own name"));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                Err(_) => return None,
            }
        }
        None
    }
}

/// Gives what lies at `from` the name `to`; never replaces another.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when `to` is there already; otherwise what the operating system
/// says.
pub fn rename_new(from: &Path, to: &Path) -> Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(exists(to)),
        // Some file systems know no flags: a plain rename replaces only an empty directory.
        Err(rustix::io::Errno::INVAL) => match to.symlink_metadata() {
            Ok(_) => Err(exists(to)),
            Err(_) => fs::rename(from, to).map_err(|cause| write_error(to, cause)),
        },
        Err(errno) => Err(write_error(to, errno.into())),
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(staging) = &self.staging {
            // Nobody is left to tell; the leading dot and `partial` say what it is.
            let _ = match staging.is_dir() {
                true => fs::remove_dir_all(staging),
                false => fs::remove_file(staging),
            };
        }
    }
}

fn exists(target: &Path) -> Error {
    Error::new(ErrorKind::AlreadyExists, "the output is there already")
        .found(target.display().to_string())
        .fix("name another output, or remove this one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("trace");
        let staged = StagedDir::create(&target).unwrap();
        fs::write(staged.path().join("metadata"), "x").unwrap();
        assert!(!target.exists());
        drop(staged);
        assert_eq!(
            fs::read_dir(root.path()).unwrap().count(),
            0,
            "nothing is left behind"
        );

        let staged = StagedDir::create(&target).unwrap();
        fs::write(staged.path().join("metadata"), "x").unwrap();
        assert_eq!(staged.commit().unwrap(), target);
        assert!(target.join("metadata").exists());
        assert_eq!(
            StagedDir::create(&target).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn a_directory_whose_name_another_took_is_kept_beside_it_and_said() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("trace.ctf");
        let begin = |text: &str| {
            let staged = StagedDir::create(&target).unwrap();
            fs::write(staged.path().join("metadata"), text).unwrap();
            staged
        };
        let all = ["first", "second", "third"].map(begin);
        for (staged, text) in all.into_iter().zip(["first", "second", "third"]) {
            let path = match staged.commit() {
                Ok(path) => path,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
                    let found = error.value_found().unwrap().to_owned();
                    PathBuf::from(found.split_once(" is in ").unwrap().1)
                }
            };
            let expect = match text {
                "first" => "trace.ctf",
                "second" => "trace.ctf.2",
                _ => "trace.ctf.3",
            };
            assert_eq!(path, root.path().join(expect));
            assert_eq!(fs::read(path.join("metadata")).unwrap(), text.as_bytes());
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_a_dead_process_of_this_number_left_is_kept_and_keeps_nobody_from_writing() {
        let root = tempfile::tempdir().unwrap();
        let check = |target: &Path, left: &[&str]| {
            let first = staging_path(target).unwrap();
            for left in left {
                let path = format!("{}{left}", first.display());
                fs::create_dir(&path).unwrap();
                fs::write(Path::new(&path).join("metadata"), "of somebody else").unwrap();
            }
            let (_, staged) = StagedFile::create(target).unwrap();
            let next = format!("{}.{}", first.display(), left.len() + 1);
            assert_eq!(staged.0.path(), Path::new(&next));
            drop(staged);
            let staged = StagedDir::create(target).unwrap();
            assert_eq!(staged.path(), Path::new(&next));
            staged.commit().unwrap();
            let kept = fs::read(first.join("metadata")).unwrap();
            assert_eq!(kept, b"of somebody else");
        };
        check(&root.path().join("trace"), &[""]);
        check(&root.path().join("other"), &["", ".2", ".3"]);
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out/events.json");
        let (_, staged) = StagedFile::create(&target).unwrap();
        assert!(!target.exists());
        drop(staged);
        let folder = target.parent().unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);

        let (_, staged) = StagedFile::create(&target).unwrap();
        fs::write(&target, "of somebody else").unwrap();
        let refused = staged.commit().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"of somebody else");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }
}
