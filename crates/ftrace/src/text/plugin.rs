//! Scheduler events as the plugin of libtraceevent writes them (`plugin_sched_switch.c`): what
//! `trace-cmd report` prints by default, and `perf script` where it finds that plugin.

/// A field's name as the kernel has it, and its value.
type Pair<'a> = (&'static str, &'a str);

/// The fields of such an event; none where it is not written so.
pub(super) fn pairs<'a>(name: &str, text: &'a str) -> Option<Vec<Pair<'a>>> {
    match name {
        "sched_switch" => switch(text),
        "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => wakeup(text),
        _ => None,
    }
}

/// `hog:50 [39] S ==> vic:44 [49]`; names may have an arrow, too.
fn switch(text: &str) -> Option<Vec<Pair<'_>>> {
    const ARROW: &str = " ==> ";
    text.match_indices(ARROW).take(8).find_map(|(at, _)| {
        let (prev, state) = text[..at].trim_end().rsplit_once(' ')?;
        let is_state = !state.is_empty() && state.bytes().all(|b| b.is_ascii_alphabetic());
        let [comm, pid, prio] = task(prev).filter(|_| is_state)?;
        let mut pairs = vec![("prev_comm", comm), ("prev_pid", pid), ("prev_prio", prio)];
        let [comm, pid, prio] = task(&text[at + ARROW.len()..])?;
        pairs.push(("prev_state", state));
        pairs.extend([("next_comm", comm), ("next_pid", pid), ("next_prio", prio)]);
        Some(pairs)
    })
}

/// `vic:44 [49] CPU:000`, with `success=1` before the CPU on old kernels.
fn wakeup(text: &str) -> Option<Vec<Pair<'_>>> {
    let (who, cpu) = text.rsplit_once(" CPU:")?;
    is_number(cpu).then_some(())?;
    let who = match who.rsplit_once(" success=") {
        Some((who, success)) if is_number(success) => who,
        _ => who,
    };
    let [comm, pid, prio] = task(who)?;
    Some(vec![
        ("comm", comm),
        ("pid", pid),
        ("prio", prio),
        ("target_cpu", cpu),
    ])
}

/// `comm:pid [prio]`
fn task(text: &str) -> Option<[&str; 3]> {
    let (who, prio) = text.trim().strip_suffix(']')?.rsplit_once(" [")?;
    let (comm, pid) = who.rsplit_once(':')?;
    let is_prio = is_number(prio.strip_prefix('-').unwrap_or(prio));
    (is_number(pid) && is_prio).then_some([comm, pid, prio])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn the_plugins_text_has_the_kernels_fields() {
        let check = |name: &str, text: &str, expect: Option<&str>| {
            let found = pairs(name, text).map(|pairs| {
                let one = |(key, value): (&str, &str)| format!("{key}={value}");
                pairs.into_iter().map(one).collect::<Vec<_>>().join("|")
            });
            assert_eq!(found.as_deref(), expect, "{name}: {text}");
        };
        check(
            "sched_switch",
            "hog:50 [39] S ==> swapper/0:0 [120]",
            Some(
                "prev_comm=hog|prev_pid=50|prev_prio=39|prev_state=S|\
                 next_comm=swapper/0|next_pid=0|next_prio=120",
            ),
        );
        check(
            "sched_switch",
            "a ==> b:50 [39] S ==> kworker/u8:1:44 [-1]",
            Some(
                "prev_comm=a ==> b|prev_pid=50|prev_prio=39|prev_state=S|\
                 next_comm=kworker/u8:1|next_pid=44|next_prio=-1",
            ),
        );
        let woken = Some("comm=vic|pid=44|prio=49|target_cpu=001");
        check("sched_wakeup", "vic:44 [49] CPU:001", woken);
        check("sched_wakeup_new", "vic:44 [49] success=1 CPU:001", woken);
        check(
            "sched_wakeup",
            "comm=vic pid=44 prio=49 target_cpu=001",
            None,
        );
        check("sched_switch", "hog:x [39] S ==> vic:44 [49]", None);
        check("sched_switch", "hog:50 [39] ==> vic:44 [49]", None);
        check("irq_handler_entry", "vic:44 [49] CPU:001", None);
    }
}
