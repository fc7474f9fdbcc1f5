//! Whose events alone are recorded.

use event::{Error, ErrorKind, Result, TaskPattern};
use host::groups::Asked;
use host::users;

/// What comes with a name behind a colon.
const NAMED: [&str; 4] = ["cgroup", "unit", "container", "user"];
/// The word for what a recording runs.
const COMMAND: &str = "command";
/// The word for none, until a session is told whom to track.
const NOBODY: &str = "nobody";

/// Whom `--track` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackOptions {
    /// As it was typed.
    pub words: Vec<String>,
    /// By name, number or priority.
    pub tasks: Vec<TaskPattern>,
    /// By where they are.
    pub groups: Vec<Asked>,
    /// By for whom they run.
    pub users: Vec<u32>,
    /// What the recording runs.
    pub command: bool,
}

impl TrackOptions {
    /// From what was typed; none when that is nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word that can name nobody, [`ErrorKind::NotFound`] for a
    /// user that is not there.
    pub fn new(typed: &[String]) -> Result<Option<TrackOptions>> {
        let mut found = TrackOptions::default();
        for word in typed {
            let named = word.split_once(':').filter(|(_, name)| !name.is_empty());
            match named {
                _ if word == COMMAND => found.command = true,
                _ if word == NOBODY => (),
                None if NAMED
                    .iter()
                    .any(|kind| word.strip_suffix(':') == Some(kind)) =>
                {
                    let what = "--track names nobody";
                    return Err(Error::new(ErrorKind::InvalidInput, what)
                        .found(format!("'{word}'"))
                        .fix(format!("write a name behind it, as in {word}NAME")));
                }
                Some(("cgroup", name)) => found.groups.push(Asked::Cgroup(name.to_owned())),
                Some(("unit", name)) => found.groups.push(Asked::Unit(name.to_owned())),
                Some(("container", name)) => found.groups.push(Asked::Container(name.to_owned())),
                Some(("user", name)) => found.users.push(users::id_of(name)?),
                _ => found.tasks.push(TaskPattern::parse(word)?),
            }
            found.words.push(word.clone());
        }
        Ok((!found.words.is_empty()).then_some(found))
    }

    /// Of a session that runs: nobody where no word is given.
    ///
    /// # Errors
    /// As [`TrackOptions::new`], and as [`TrackOptions::require_no_command`].
    pub fn of_session(words: &[String]) -> Result<TrackOptions> {
        let named = words.iter().filter(|word| *word != NOBODY);
        let named: Vec<String> = named.cloned().collect();
        let found = TrackOptions::new(&named)?.unwrap_or_else(|| TrackOptions {
            words: vec![NOBODY.to_owned()],
            ..TrackOptions::default()
        });
        found.require_no_command().map(|()| found)
    }

    /// Refuses the word for a command where none is run.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when it was typed.
    pub fn require_no_command(&self) -> Result<()> {
        if !self.command {
            return Ok(());
        }
        let what = "--track command is what a recording runs, and this one runs nothing";
        Err(Error::new(ErrorKind::InvalidInput, what)
            .found("no command after '--'")
            .fix("rtscope record --track command -- COMMAND, or --track pid:N"))
    }

    /// Whether others than descendants may join them.
    pub fn has_newcomers(&self) -> bool {
        let is_fixed =
            |task: &TaskPattern| matches!(task, TaskPattern::Tid(_) | TaskPattern::Pid(_));
        let is_open = !self.groups.is_empty() || !self.users.is_empty();
        is_open || !self.tasks.iter().all(is_fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Option<TrackOptions>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        TrackOptions::new(&words)
    }

    #[test]
    fn a_word_names_tasks_a_group_or_the_command() {
        let found = options(&[
            "jackd",
            "unit:nginx",
            "cgroup:a/b",
            "container:db",
            "command",
        ]);
        let found = found.expect("valid").expect("somebody");
        assert!(found.command && found.tasks.len() == 1 && found.has_newcomers());
        let groups = ["unit nginx", "control group a/b", "container db"];
        let shown: Vec<String> = found.groups.iter().map(ToString::to_string).collect();
        assert_eq!(shown, groups);
        assert_eq!(options(&[]).expect("valid"), None);
        assert!(options(&["prio:x"]).is_err());
        assert!(options(&["unit:"]).is_err() && options(&["user:"]).is_err());
        let users = options(&["user:root", "user:7"]).expect("valid");
        assert_eq!(users.expect("somebody").users, [0, 7]);
        assert!(options(&["user:no such user"]).is_err());
        assert!(found.require_no_command().is_err());
        let nobody = options(&["nobody"]).expect("valid").expect("none");
        assert!(nobody.tasks.is_empty() && !nobody.has_newcomers());
        assert_eq!(TrackOptions::of_session(&[]).expect("valid"), nobody);
        let words = ["nobody".to_owned(), "jackd".to_owned()];
        let named = TrackOptions::of_session(&words).expect("valid");
        assert_eq!(named.words, ["jackd"]);
    }

    #[test]
    fn only_descendants_join_a_thread_and_a_command() {
        let check = |words: &[&str], expect: bool| {
            let found = options(words).expect("valid").expect("somebody");
            assert_eq!(found.has_newcomers(), expect, "{words:?}");
        };
        check(&["4711", "pid:12"], false);
        check(&["command"], false);
        check(&["4711", "process:jackd"], true);
        check(&["unit:web"], true);
        check(&["user:0"], true);
    }
}
