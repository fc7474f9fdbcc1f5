//! Events of what keeps a task from its work without a wait for anything: signals that stop it, and
//! the freezer of its control group.

use event::{EventClass, FieldId};
use trace::EventView;

/// What stops tasks, or lets them go on.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// The task on the CPU sent a signal.
    Signal {
        signal: FieldId,
        /// `si_code`: of `SIGCHLD`, what became of the child.
        code: FieldId,
        /// The thread, or one of the process, that it is for.
        tid: FieldId,
    },
    /// The task on the CPU freezes a control group, or ends that.
    Freezer { group: Group, freezes: bool },
    /// A task comes into another control group.
    Moves { tid: FieldId, group: Group },
}

/// A control group, as events name it.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The number of its hierarchy; that of the second version is 0.
    hierarchy: Option<FieldId>,
    path: FieldId,
}

impl Group {
    /// Its path, if it is one of the second version: the freezer of the first has no events.
    pub fn path<'a>(&self, event: &EventView<'a>) -> Option<&'a [u8]> {
        let is_unified = self.hierarchy.is_none_or(|field| event.i64(field) == 0);
        is_unified.then(|| event.text(self.path))
    }
}

pub(super) fn bind(class: &EventClass) -> Option<Stop> {
    let field = |field: &str| class.field(field);
    let group = |hierarchy: &str, path: &str| {
        Some(Group {
            hierarchy: field(hierarchy),
            path: field(path)?,
        })
    };
    let tid = || field("tid").or_else(|| field("pid"));
    Some(match class.kernel_name() {
        "signal_generate" => Stop::Signal {
            signal: field("sig")?,
            code: field("code")?,
            tid: tid()?,
        },
        name @ ("cgroup_freeze" | "cgroup_unfreeze") => Stop::Freezer {
            group: group("root", "path")?,
            freezes: name == "cgroup_freeze",
        },
        "cgroup_attach_task" => Stop::Moves {
            tid: tid()?,
            group: group("dst_root", "dst_path")?,
        },
        // Where a task was as the recording began.
        "rtscope_statedump_cgroup" => Stop::Moves {
            tid: tid()?,
            group: group("", "path")?,
        },
        _ => return None,
    })
}
