//! Rules about control groups: their quotas, their weights, their memory.

use event::evidence::TaskRef;

use super::{Case, quoted};
use crate::model::{GroupOf, WEIGHT_USUAL};
use crate::quota::weight;
use crate::term::{Short, TermKind};

/// What a group's share of the CPU may be at most, as the kernel counts it.
const SHARES_MAX: f64 = 100.0 * WEIGHT_USUAL;

/// Whose group a cause is about.
fn whose<'a>(case: &'a Case<'_>, of: &'a Option<TaskRef>) -> &'a TaskRef {
    of.as_ref().unwrap_or(&case.late.task)
}

/// `echo value > folder/file`.
fn write(value: &str, group: &GroupOf, file: &str) -> String {
    format!(
        "echo {value} > {}",
        quoted(&format!("{}/{file}", group.folder))
    )
}

/// Of the group that was out of it, where the evidence has that; else of the innermost one that has
/// a quota: a machine has one of two interfaces for the CPU's control groups, mounted anywhere.
pub(super) fn lift_quota(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::Quota { of } = &case.culprit.kind else {
        return None;
    };
    let task = whose(case, of);
    if let Some(group) = case.model.groups.out_of_quota(task.tid.0) {
        let because = format!("{} used up its share of the CPU", group.folder);
        let is_second = group
            .weight
            .as_ref()
            .is_none_or(|(file, ..)| file == "cpu.weight");
        let command = match is_second {
            true => write("max", group, "cpu.max"),
            false => write("-1", group, "cpu.cfs_quota_us"),
        };
        return Some((because, command));
    }
    let because = format!(
        "{}'s control group, or one above it, used up its share of the CPU (if this changes \
         nothing, one further above has a limit, too)",
        task.comm
    );
    let groups = format!("/proc/{}/cgroup", task.tid);
    let command = format!(
        "v2=$(awk '$3 == \"cgroup2\" {{print $2; exit}}' /proc/mounts)\
         $(sed -n s/^0:://p {groups}); \
         v1=$(awk '$3 == \"cgroup\" && $4 ~ /,cpu(,|$)/ {{print $2; exit}}' /proc/mounts)\
         $(sed -nE 's/^[0-9]+:([^:]*,)?cpu(,[^:]*)?://p' {groups}); \
         while grep -sq ^max $v2/cpu.max; do v2=${{v2%/*}}; done; \
         while grep -sq ^- $v1/cpu.cfs_quota_us; do v1=${{v1%/*}}; done; \
         if [ -e $v2/cpu.max ]; then echo max > $v2/cpu.max; \
         else echo -1 > $v1/cpu.cfs_quota_us; fi"
    );
    Some((because, command))
}

/// As much as the task's nice value alone would give it, and no less than others have.
pub(super) fn raise_weight(case: &Case<'_>) -> Option<(String, String)> {
    let TermKind::GroupWeight { of } = &case.culprit.kind else {
        return None;
    };
    let task = whose(case, of);
    let nice = task.prio.nice()?;
    let wanted = weight(nice).clamp(WEIGHT_USUAL, SHARES_MAX);
    let lighter = case.model.groups.lighter_than(task.tid.0, nice);
    let lightest = lighter.first()?;
    let (file, value, usual) = lightest.weight.as_ref()?;
    let because = format!(
        "{file} of {} is {value}, others have {usual}: that, and not the nice value, is {}'s share \
         of the CPU beside tasks of other groups",
        lightest.folder, task.comm
    );
    let commands = lighter
        .iter()
        .filter_map(|group| raise(group, nice, wanted));
    let commands: Vec<String> = commands.collect();
    Some((because, commands.join("; ")))
}

/// How one group gets that weight.
fn raise(group: &GroupOf, nice: i32, wanted: f64) -> Option<String> {
    let (file, _, usual) = group.weight.as_ref()?;
    Some(match file.as_str() {
        // A session has a nice value.
        "autogroup" => format!("echo {} > {}", nice.min(0), quoted(&group.folder)),
        "cpu.idle" => write("0", group, file),
        _ => {
            let value = wanted * *usual as f64 / WEIGHT_USUAL;
            write(&format!("{value:.0}"), group, file)
        }
    })
}

pub(super) fn lift_memory_limit(case: &Case<'_>) -> Option<(String, String)> {
    let is_of_group = matches!(
        case.culprit.kind,
        TermKind::Reclaim {
            short: Short::Group
        }
    );
    let tid = case.late.task.tid.0;
    let group = case
        .model
        .groups
        .out_of_memory(tid)
        .filter(|_| is_of_group)?;
    let (file, limit, used) = group.memory.as_ref()?;
    let mebibytes = |bytes: &u64| bytes.div_ceil(1 << 20);
    let because = format!(
        "{} may have {} MiB ({file}) and had {} of them behind the miss, what it wrote to files \
         among them; or give it as much as it needs, or let it keep and write less",
        group.folder,
        mebibytes(limit),
        mebibytes(used)
    );
    let lifted = match file.as_str() {
        "memory.limit_in_bytes" => "-1",
        _ => "max",
    };
    Some((because, write(lifted, group, file)))
}
