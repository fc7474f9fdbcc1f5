//! What a signature calls a task. Some programs call each of their threads after a piece of what it
//! works on, as a compiler does: such names mean nothing by themselves, and there may be hundreds.
//! Their process's name stands for them.

use std::collections::{HashMap, HashSet};

use event::evidence::TaskRef;

use crate::model::Model;
use crate::signature::stable_task;

/// A word that is shorter is a word.
const DRAWN_LENGTH_MIN: usize = 8;
/// So many letters without a vowel are no word, with digits inside and without.
const BARE_LETTERS_MIN: [usize; 2] = [5, 7];
/// So many threads whose names differ in their last word alone are a pool, if most of them were
/// drawn: then the others were, too.
const POOL_MIN: usize = 4;

/// The threads of a trace whose names mean nothing by themselves.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    /// Processes of which the names of this form were drawn.
    pools: HashSet<(i32, String)>,
}

impl ThreadNames {
    /// The threads that `model` knows.
    pub fn of(model: &Model) -> ThreadNames {
        let mut forms: HashMap<(i32, String), HashSet<String>> = HashMap::new();
        for task in model.tasks.known() {
            let process = model.tasks.process_of(task.tid.0);
            let Some(process) = process.filter(|process| *process != task.tid) else {
                continue;
            };
            let name = stable_task(&task.comm);
            forms
                .entry((process.0, form(&name)))
                .or_default()
                .insert(name);
        }
        let is_pool = |names: &HashSet<String>| {
            let drawn = names.iter().filter(|name| is_drawn(name)).count();
            names.len() >= POOL_MIN && 2 * drawn > names.len()
        };
        let pools = forms.into_iter().filter(|(_, names)| is_pool(names));
        ThreadNames {
            pools: pools.map(|(of, _)| of).collect(),
        }
    }

    /// A task without what another run numbers or draws anew.
    pub fn stable(&self, model: &Model, task: &TaskRef) -> String {
        let name = stable_task(&task.comm);
        let process = model.tasks.process_of(task.tid.0);
        let of = process.map(|process| (process.0, form(&name)));
        if !is_drawn(&name) && !of.is_some_and(|of| self.pools.contains(&of)) {
            return name;
        }
        let leader = model.tasks.leader_of(task.tid.0);
        let leader = leader.map(|leader| stable_task(&event::plain_text(leader)));
        let named = leader.filter(|leader| !leader.is_empty() && !is_drawn(leader));
        named.unwrap_or_else(|| form(&name))
    }
}

/// A name without its last word.
fn form(name: &str) -> String {
    let end = name.trim_end_matches(char::is_alphanumeric);
    format!("{end}*")
}

/// Whether a word of a name was drawn rather than thought of.
fn is_drawn(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.any(is_drawn_word)
}

/// Digits in two places of it, or too many letters in a row without a vowel. Digits at its end are
/// a number.
fn is_drawn_word(word: &str) -> bool {
    let digits = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
    if word.len() < DRAWN_LENGTH_MIN || !word.is_ascii() || stem.is_empty() {
        return false;
    }
    let places = stem
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let is_bare = |c: char| c.is_ascii_alphabetic() && !"aeiouyAEIOUY".contains(c);
    let bare = word.split(|c| !is_bare(c)).map(str::len).max();
    let least = BARE_LETTERS_MIN[usize::from(!digits(stem))];
    places.count() >= 2 || bare.is_some_and(|bare| bare >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_name_is_told_from_one_that_somebody_thought_of() {
        let check = |name: &str, expect: bool| assert_eq!(is_drawn(name), expect, "{name}");
        check("opt 3jk4hfgw0s5", true);
        check("0bw4xm2wq9x3", true);
        check("a7f30c9e21bd", true);
        check("opt", false);
        check("mp3player", false);
        check("h264parse0", false);
        check("http2server", false);
        check("ros2_control_no", false);
        check("Thread-12345678", false);
        check("worker12345678", false);
        check("dbus-daemon", false);
        check("kworker/*H", false);
        check("synchronizer", false);
        check("rhythmbox", false);
        check("GstPlaybackThrd", false);
        check("1234567890", false);
        check("", false);
    }

    #[test]
    fn the_form_of_a_name_is_all_but_its_last_word() {
        let check = |name: &str, expect: &str| assert_eq!(form(name), expect);
        check("opt 3jk4hfgw0s5", "opt *");
        check("0bw4xm2wq9x3", "*");
        check("pool-", "pool-*");
    }
}
