//! Users: what they are called, and which threads are theirs.

use event::{Error, ErrorKind, Result, Tid};

use crate::processes::{processes, threads};

/// Where the system's own users are.
const USERS: &str = "/etc/passwd";

/// The number of a user, by that number or by the name in `/etc/passwd`.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a name that is not there; that the file cannot be read.
pub fn id_of(user: &str) -> Result<u32> {
    if let Ok(id) = user.parse() {
        return Ok(id);
    }
    let text = std::fs::read_to_string(USERS)
        .map_err(|cause| Error::io(format!("cannot read {USERS}"), cause))?;
    named(&text, user).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "no such user")
            .found(format!("'{user}', which {USERS} does not have"))
            .fix("give its number, as 'id -u NAME' prints it")
    })
}

fn named(text: &str, user: &str) -> Option<u32> {
    let id = |line: &str| {
        let mut parts = line.split(':');
        let is_its = parts.next() == Some(user);
        parts.nth(1).filter(|_| is_its)?.parse().ok()
    };
    text.lines().find_map(id)
}

/// The threads of all processes but this one that run for one of these users.
pub fn threads_of(users: &[u32]) -> Vec<Tid> {
    let mut found = Vec::new();
    if users.is_empty() {
        return found;
    }
    let own = std::process::id();
    for process in processes().filter(|process| *process != own) {
        // It may be gone by now.
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        if real_user(&status.unwrap_or_default()).is_some_and(|user| users.contains(&user)) {
            found.extend(threads(process).map(|thread| Tid(thread.cast_signed())));
        }
    }
    found
}

/// Whose a process is by the text of its `status`.
fn real_user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_number_and_its_processes_say_it() {
        let text = "root:x:0:0:root:/:/bin/sh\nann:x:1000:100::/:/bin/sh\nbad\n";
        assert_eq!(named(text, "ann"), Some(1000));
        assert_eq!(named(text, "an"), None);
        assert_eq!(named(text, "bad"), None);
        assert_eq!(id_of("42").expect("a number"), 42);
        let nobody = id_of("no such user").expect_err("unknown");
        assert_eq!(nobody.kind(), ErrorKind::NotFound);
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\n";
        assert_eq!(real_user(status), Some(1000));
        let own = rustix::process::getuid().as_raw();
        let threads = threads_of(&[own]);
        assert!(threads.contains(&Tid(std::os::unix::process::parent_id() as i32)));
        assert!(!threads.contains(&Tid(std::process::id() as i32)));
        assert!(threads_of(&[own.wrapping_add(123_456)]).len() < threads.len());
    }
}
