//! From a trace and a question to the answer.

use std::collections::{BTreeMap, BTreeSet};

use event::{Cpu, Duration, Error, ErrorKind, Instant, Prio, Result, TimeRange};
use kernel_state::TaskFilter;
use trace::{Trace, TraceInfo};

use crate::crosscheck::align;
use crate::finding::{Diagnosis, Grade, Group, LateActivation, Warning};
use crate::kin;
use crate::ledger::{Account, ledger};
use crate::model::{Candidate, End, Model, Version, What, begin_at};
use crate::query::Query;
use crate::thread_names::ThreadNames;
use crate::verdict;
use crate::waits::waited_since;
use crate::warnings::{record_command, warnings};
use event::evidence::PreemptionModel;
use event::evidence::{EndKind, Hit, Step, StepKind, TaskRef};

/// Finds the late activations that `query` asks for, and says who made them late.
///
/// Where the evidence holds hits that the query means, those are the late activations; else they
/// are found in the kernel events. Where nobody is named and no real-time task was activated,
/// every task is judged, and a warning says so.
///
/// # Errors
/// A query without meaning, a trace without the events that a diagnosis rests on, or one that the
/// operating system refuses to read.
pub fn diagnose(trace: &Trace, query: &Query) -> Result<Diagnosis> {
    query.check()?;
    let found = answer(Model::read(trace, query)?, trace, query)?;
    let basis = &found.basis;
    if query.tasks.is_explicit() || basis.activations > 0 || basis.hits > 0 {
        return Ok(found);
    }
    let everybody = Query {
        tasks: TaskFilter::parse(&["*"])?,
        ..query.clone()
    };
    let mut found = answer(Model::read(trace, &everybody)?, trace, &everybody)?;
    found.basis.tasks_named = false;
    found.warnings.push(Warning {
        what: "no real-time task was activated there: every task was judged".to_owned(),
        remedy: "--task NAME or --process NAME judges yours".to_owned(),
    });
    Ok(found)
}

fn answer(mut model: Model, trace: &Trace, query: &Query) -> Result<Diagnosis> {
    if !model.families.switch && !model.families.hit {
        return Err(
            Error::new(ErrorKind::Unsupported, "this trace cannot be diagnosed")
                .found("no sched_switch events")
                .fix(record_command(trace.info())),
        );
    }
    let preemption = preemption_model(trace.info());
    let mut hits = wanted_hits(&model, query);
    let left_out = match hits.len() {
        0 => model.basis.left_out,
        all => all.saturating_sub(query.worst) as u64,
    };
    if query.worst > 0 {
        hits.truncate(query.worst);
    }
    let mut activations: Vec<LateActivation> = if hits.is_empty() {
        model
            .candidates
            .iter()
            .filter_map(|late| from_candidate(&model, late, preemption))
            .collect()
    } else {
        hits.into_iter()
            .map(|hit| from_hit(&model, hit, preemption))
            .collect()
    };
    model.basis.open_call = open_call(&model, trace.info(), query);
    if model.basis.open_call.is_some() {
        activations.clear();
    }
    // A hit may be one only with what its task did not wait for.
    activations.retain(|late| query.threshold.is_none_or(|over| late.latency() >= over));
    for late in &mut activations {
        late.unseen_max = verdict::unseen_max(&model, late);
    }
    activations.sort_by_key(|late| (-late.latency().as_ns(), late.end));
    model.basis.left_out = match query.worst {
        0 => 0,
        _ => left_out,
    };
    let groups = group(&model, trace.info(), &activations, query);
    let mut warnings = warnings(&model, trace.info(), &activations);
    if model.basis.judged.is_empty() && query.tasks.names_processes() {
        warnings.push(Warning {
            what:
                "of a process a recording knows the name of its first thread and of its program's \
                   file, and not the script that it runs"
                    .to_owned(),
            remedy: "--process python3, or whatever runs the script; rtscope report schedtop \
                     names the threads"
                .to_owned(),
        });
    }
    Ok(Diagnosis {
        activations,
        groups,
        warnings,
        basis: model.basis,
    })
}

/// What the application said as this snapshot was taken, and nothing was longer than is usual: who
/// asks for nobody by name is told no other thing than the watch said.
fn open_call(model: &Model, info: &TraceInfo, query: &Query) -> Option<String> {
    let is_asked = query.tasks.is_explicit() || query.threshold.is_some();
    let said = info.environment.get("rtscope_open_call");
    said.filter(|_| !is_asked && model.evidence.hits.is_empty())
        .cloned()
}

/// The preemption model as the trace's environment tells it: outright, or in the kernel's version,
/// where PREEMPT_DYNAMIC leaves it open.
fn preemption_model(info: &TraceInfo) -> PreemptionModel {
    let environment = &info.environment;
    let named = environment.get("rtscope_preemption_model");
    if let Some(model) = named.and_then(|name| PreemptionModel::from_name(name)) {
        return model;
    }
    let version = environment.get("kernel_version").map_or("", String::as_str);
    if version.split(' ').any(|word| word == "PREEMPT_RT") {
        return PreemptionModel::Rt;
    }
    PreemptionModel::Unknown
}

/// The hits that the query means, the worst first.
fn wanted_hits<'a>(model: &'a Model, query: &Query) -> Vec<&'a Hit> {
    let mut seen = BTreeSet::new();
    let wanted = |hit: &&Hit| {
        let task = &hit.task;
        // The watch's own filter chose the task: only an explicit question narrows it.
        let meant = !query.tasks.is_explicit() || model.tasks.means(task);
        let here = query.cpus.is_empty()
            || hit
                .steps
                .last()
                .is_some_and(|step| query.cpus.contains(&step.cpu));
        let late = query
            .threshold
            .is_none_or(|threshold| hit.latency() >= threshold);
        meant && here && late && query.range.contains(hit.end) && hit.origin <= hit.end
    };
    let fresh = |hit: &&Hit| seen.insert((hit.id, hit.origin));
    let mut hits: Vec<_> = model
        .evidence
        .hits
        .iter()
        .filter(wanted)
        .filter(fresh)
        .collect();
    hits.sort_by_key(|hit| (-hit.latency().as_ns(), hit.id));
    hits
}

/// A task with the priority with which it waited last: it may have had another one in the end.
fn as_it_waited(task: &TaskRef, steps: &[Step]) -> TaskRef {
    let mut steps = steps.iter();
    let woken = steps.rfind(|step| step.kind == StepKind::Waking && step.id == task.tid.0);
    TaskRef {
        prio: woken.map_or(task.prio, |step| step.prio),
        ..task.clone()
    }
}

fn from_hit(model: &Model, hit: &Hit, preemption: PreemptionModel) -> LateActivation {
    let (mut times_ns, mut checks) = align(model, &hit.steps);
    let mut steps = hit.steps.clone();
    let origin = match waited_since(model, &steps, &times_ns) {
        Some(since) if since > hit.origin => {
            let since = since.min(hit.end);
            let first = begin_at(&mut steps, since);
            times_ns.drain(..first);
            if let Some(begin_ns) = times_ns.first_mut() {
                *begin_ns = (*begin_ns).max(since.as_ns());
            }
            checks.retain(|check| check.step > first);
            checks.iter_mut().for_each(|check| check.step -= first);
            since
        }
        _ => hit.origin,
    };
    let last = steps.last();
    let cpu = last.map_or(Cpu(0), |step| step.cpu);
    // The last step is the end itself, when it is stamped so.
    let end_ns = match (last, times_ns.last()) {
        (Some(step), Some(time_ns)) if step.time == hit.end => *time_ns,
        (_, last_ns) => last_ns.map_or(hit.end.as_ns(), |last_ns| hit.end.as_ns().max(*last_ns)),
    };
    let mut ledger = ledger(
        model,
        &Account {
            origin,
            end: hit.end,
            target: hit.task.tid.0,
            cpu,
            steps: &steps,
            times_ns: &times_ns,
            end_ns,
            waiting: hit.end_kind == EndKind::Waiting,
            watched: Some(hit.end_kind),
            preemption,
        },
    );
    if hit.stale {
        ledger.grade = ledger.grade.max(Grade::Censored);
    }
    if hit.unseen {
        ledger.grade = ledger.grade.max(Grade::Unrecorded);
    }
    let range = TimeRange {
        begin: origin,
        end: hit.end,
    };
    let stolen_max = stolen_max(model, range, cpu, &steps);
    let faults = model.page_faults_of(hit.task.tid.0, range);
    let task = as_it_waited(&hit.task, &steps);
    LateActivation {
        free_meanwhile: free_meanwhile(model, range, cpu, task.prio),
        task,
        origin,
        end: hit.end,
        cpu,
        steps,
        steps_left_out: hit.overflow,
        hit: Some(hit.clone()),
        checks,
        ledger,
        page_faults: faults.count,
        page_faults_max: faults.took_max,
        stolen_max,
        slept_before: None,
        unseen_max: Duration::ZERO,
    }
}

fn from_candidate(
    model: &Model,
    late: &Candidate,
    preemption: PreemptionModel,
) -> Option<LateActivation> {
    let task = model.tasks.version(late.version)?.task_ref();
    let mut steps = model.steps(late.node);
    let origin = steps.first()?.time;
    let (end, cpu) = (Instant::from_ns(late.end_ns), Cpu(late.cpu));
    let last = match late.end {
        End::Seen | End::Inferred | End::Doubtful => Some(StepKind::SwitchIn),
        End::Blocked => Some(StepKind::Blocked),
        End::Waiting | End::Open => None,
    };
    let is_open = last.is_none();
    if let Some(kind) = last {
        let (id, comm) = (task.tid.0, task.comm.clone());
        let prio: Prio = task.prio;
        steps.push(Step {
            time: end,
            kind,
            cpu,
            id,
            prio,
            comm,
        });
    }
    let task = as_it_waited(&task, &steps);
    let times_ns: Vec<i64> = steps.iter().map(|step| step.time.as_ns()).collect();
    let account = Account {
        origin,
        end,
        target: task.tid.0,
        cpu,
        steps: &steps,
        times_ns: &times_ns,
        end_ns: late.end_ns,
        waiting: is_open,
        watched: None,
        preemption,
    };
    let mut ledger = ledger(model, &account);
    let may_go_on = matches!(late.end, End::Waiting | End::Open) && model.doubted.contains(&cpu);
    if late.doubtful || may_go_on {
        ledger.grade = ledger.grade.max(Grade::Unrecorded);
    }
    let (hit, checks, steps_left_out) = (None, vec![], 0);
    let range = TimeRange { begin: origin, end };
    let stolen_max = stolen_max(model, range, cpu, &steps);
    let faults = model.page_faults_of(task.tid.0, range);
    let free_meanwhile = free_meanwhile(model, range, cpu, task.prio);
    Some(LateActivation {
        task,
        origin,
        end,
        cpu,
        steps,
        steps_left_out,
        hit,
        checks,
        ledger,
        page_faults: faults.count,
        page_faults_max: faults.took_max,
        free_meanwhile,
        stolen_max,
        slept_before: late.slept_before(),
        unseen_max: Duration::ZERO,
    })
}

/// Late activations of one cause together, the cause with the most late time first. Where no task
/// was named, the longest one comes first, behind the others what tasks worked themselves, and last
/// what only the kernel's own threads waited for. Ordinary threads of a process with real-time
/// ones stand behind these.
fn group(
    model: &Model,
    info: &TraceInfo,
    activations: &[LateActivation],
    query: &Query,
) -> Vec<Group> {
    let mut by_cause: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let names = ThreadNames::of(model);
    let called = |task: &TaskRef| names.stable(model, task);
    for (place, late) in activations.iter().enumerate() {
        by_cause
            .entry(verdict::signature(info, late, called))
            .or_default()
            .push(place);
    }
    let is_open = !query.tasks.is_explicit();
    let is_kernels = |member: usize| model.tasks.is_kernels_task(&activations[member].task);
    let latency = |member: &usize| activations[*member].latency();
    let mut causes: Vec<_> = by_cause.into_iter().collect();
    let ordinary: Vec<bool> = activations
        .iter()
        .map(|late| kin::is_ordinary(model, late))
        .collect();
    for (_, members) in &mut causes {
        members.sort_by_key(|member| (is_open && is_kernels(*member), ordinary[*member]));
    }
    causes.sort_by_key(|(signature, members)| {
        let first = members.first().filter(|_| is_open);
        let by = match first {
            Some(first) => latency(first),
            None => members.iter().map(latency).sum(),
        };
        (
            first.is_some_and(|first| is_kernels(*first)),
            // Nobody waits for them.
            members.iter().all(|member| ordinary[*member]),
            // Where no task was named, the work of one that always works for long is no news.
            is_open && signature == verdict::OWN_WORK,
            -by.as_ns(),
        )
    });
    let group = |(signature, members): (String, Vec<usize>)| {
        let first = activations.get(*members.first()?)?;
        Some(Group {
            signature,
            worst: members.iter().map(latency).max()?,
            verdict: verdict::verdict(model, info, first),
            members,
        })
    };
    causes.into_iter().filter_map(group).collect()
}

/// Whether the machine of the trace was virtual, as far as the trace says.
pub(crate) fn is_virtual(info: &TraceInfo) -> bool {
    match info.environment.get("rtscope_virtualised") {
        Some(said) => said == "1",
        // A foreign trace may name the machine.
        None => info
            .environment
            .iter()
            .any(|(key, value)| names_machine(key) && is_hypervisors(value)),
    }
}

/// Whether a fact of a trace is about the machine, and not a name that somebody gave.
fn names_machine(key: &str) -> bool {
    const ABOUT: [&str; 8] = [
        "cpu",
        "product",
        "vendor",
        "board",
        "bios",
        "hypervisor",
        "model",
        "note_",
    ];
    let key = key.to_ascii_lowercase();
    ABOUT.iter().any(|about| key.contains(about)) && key != "product_uuid"
}

/// Whether hypervisors call a CPU or a machine so.
fn is_hypervisors(value: &str) -> bool {
    const WORDS: [&str; 9] = [
        "qemu",
        "kvm",
        "kvmkvmkvm",
        "vmware",
        "virtualbox",
        "xen",
        "hyperv",
        "bochs",
        "firecracker",
    ];
    let value = value.to_ascii_lowercase();
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| WORDS.contains(&word)) || value.contains("hyper-v")
}

/// Whether the trace says that what a hypervisor takes is not, or perhaps not, reported.
pub(crate) fn steal_is_unreported(info: &TraceInfo) -> bool {
    let said = info.environment.get("rtscope_steal");
    said.is_some_and(|value| value == "not reported" || value == "unknown")
}

/// What the hypervisor may have taken between two instants from the CPUs of a chain, at most.
fn stolen_max(model: &Model, range: TimeRange, cpu: Cpu, steps: &[Step]) -> Duration {
    let cpus: BTreeSet<Cpu> = steps.iter().map(|step| step.cpu).chain([cpu]).collect();
    let of_cpu = |cpu: Cpu| {
        let timers = model.evidence.late_timers.iter().enumerate();
        let timers = timers.filter(|(_, timer)| timer.cpu == cpu);
        let reach = timers.clone().any(|(_, timer)| timer.time >= range.end);
        let between = |place| model.evidence.steal_between(place, range.begin, range.end);
        let by_timers = timers.map(|(place, _)| between(place).1).sum();
        match model.evidence.steal_of(cpu, range.begin, range.end) {
            Some((_, most)) if reach => most.min(by_timers),
            Some((_, most)) => most,
            None => by_timers,
        }
    };
    cpus.into_iter().map(of_cpu).sum()
}

/// The other CPUs that were free for at least this share of an activation could have served it.
const FREE_SHARE_MIN: f64 = 0.95;

/// The CPUs but `here` that nearly all the time idled or, for a real-time task, ran what it beats.
fn free_meanwhile(model: &Model, range: TimeRange, here: Cpu, prio: Prio) -> Vec<Cpu> {
    let gives_way = |version: &Version| {
        version.tid.is_idle() || prio.is_real_time() && prio.beats(version.prio)
    };
    let is_free = |cpu: &Cpu| {
        let Some(timeline) = model.timeline(*cpu) else {
            return false;
        };
        let mut free_ns = 0;
        timeline.slices(range.begin.as_ns(), range.end.as_ns(), |slice| {
            let version = model.tasks.version(slice.task);
            if slice.occupant.what() == What::Task && version.is_some_and(gives_way) {
                free_ns += slice.end_ns - slice.begin_ns;
            }
        });
        Duration::from_ns(free_ns).share_of(range.end - range.begin) >= FREE_SHARE_MIN
    };
    let cpus = (0..model.timelines.len() as u32).map(Cpu);
    cpus.filter(|cpu| *cpu != here).filter(is_free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{SyntheticTrace, Task};

    const VICTIM: Task = Task::rt(100, "victim", 50);
    const HOG: Task = Task::rt(200, "hog", 60);
    const FAIR: Task = Task::fair(300, "fair");

    /// Every 50 ms an interrupt wakes the victim, now and then behind a hog.
    fn many() -> Trace {
        let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
        for turn in 0..1_000 {
            let us = 1_000 + turn * 50_000;
            let late_us = (turn * 7_919) % 1_009;
            trace = trace.at(us).preempt(FAIR, HOG).after(10);
            trace = trace
                .irq(9, "eth0")
                .after(2)
                .wake(VICTIM)
                .after(2)
                .irq_end(9);
            trace = trace.after(late_us).block(HOG, VICTIM);
            trace = trace.after(20).block(VICTIM, FAIR);
        }
        trace.build()
    }

    #[test]
    fn what_is_forgotten_on_the_way_changes_no_answer() {
        let (trace, query) = (many(), Query::default());
        let whole = Model::read_whole(&trace, &query).expect("it is read");
        let few = Model::read_forgetting(&trace, &query, 64).expect("it is read");
        assert!(few.records() * 4 < whole.records(), "{}", few.records());
        let whole = answer(whole, &trace, &query).expect("an answer");
        assert_eq!(whole.activations.len(), 10);
        assert_eq!(answer(few, &trace, &query).expect("an answer"), whole);
    }
}
