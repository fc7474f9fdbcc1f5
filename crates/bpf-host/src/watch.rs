//! A running watch: programs in the kernel, a ring of hits, rings of evidence.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use abi::{SleepsInside, raw};
use event::evidence::{EndKind, PreemptionModel};
use event::{Duration, Error, ErrorKind, Result, Tid};
use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object};

use crate::config::WatchConfig;
use crate::cycles;
use crate::evidence::EvidenceRings;
use crate::features::{Features, vmlinux};
use crate::kernel::{self, PerCpuOffsets};
use crate::late::LateRing;
use crate::members;
use crate::object;
use crate::ring::HitRing;
use crate::sampled_cost::{CostSampler, OF_A_WATCH, WatchCost};
use crate::statistics::{self, Statistics};
use crate::steal::StealReader;

/// The programs that know a task from its birth on.
const KNOW_TASKS: [&str; 3] = ["cgroup_mkdir", "task_newtask", "task_rename"];
/// The programs that hand chains on.
const WAKE_TASKS: [&str; 2] = ["sched_waking", "sched_wakeup_new"];
/// The iterators: one gives the tasks that exist their storage, the other looks for waiting
/// targets.
const RESOLVE: &str = "resolve_tasks";
const CHECK_WAITING: &str = "check_waiting";
/// Those that look at what is open: once when the watch begins, and when it ends.
const BEGIN_OPEN: &str = "begin_open";
const CHECK_OPEN: &str = "check_open";
/// Reads every CPU's steal, where the kernel has it.
const READ_STEAL: &str = "read_steal";

/// A running watch. Dropping it detaches its programs; nothing of it outlives the process.
pub struct Watch {
    // Dropped in this order: the programs are detached before their maps go.
    wakes: Vec<Link>,
    switches: Vec<Link>,
    links: Vec<Link>,
    resolve: Link,
    waiting: Option<Link>,
    open: Link,
    steal: StealReader,
    evidence: EvidenceRings,
    object: Object,
    storage_failures_seen: AtomicU64,
    cost: Mutex<CostSampler>,
}

impl Watch {
    /// Loads and attaches what the question needs. When it returns, every task is known and every
    /// later wake-up is seen.
    ///
    /// # Errors [`ErrorKind::InvalidInput`] for a question without an answer,
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it.
    pub fn start(config: &WatchConfig) -> Result<(Watch, HitRing)> {
        let mut raw = config.to_raw()?;
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            let error = Error::new(kind, "cannot watch with BPF")
                .found(found)
                .fix(fix);
            return Err(error);
        }
        let btf = vmlinux().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "cannot read the kernel's own types")
                .found("/sys/kernel/btf/vmlinux is not BTF")
                .fix("boot a kernel with CONFIG_DEBUG_INFO_BTF=y")
        })?;
        let offsets = PerCpuOffsets::of(&btf);
        raw.steal_offset = offsets.steal;
        raw.irq_regs_offset = offsets.irq_regs;
        raw.rq_offset = offsets.rq;
        raw.cpus_max = kernel::cpus_max()?;
        raw.softirqs_in_tasks = u8::from(kernel::preemption_model() == PreemptionModel::Rt);
        members::fill_namespace(&mut raw);

        let mut opened = object::open_with(&object::WATCH.unpacked()?, config.action.as_ref())?;
        object::configure(&mut opened, &raw)?;
        object::size_arrays(
            &mut opened,
            &["resched", "evidence", "steals"],
            raw.cpus_max,
        )?;
        let present = |section: &str| {
            let name = format!("btf_trace_{section}");
            btf.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&name)
                .is_some()
        };
        let object = object::load_with(opened, config.action.as_ref(), |program| {
            wanted(config, program, present)
        })?;
        config.members.fill_map(&object)?;
        let ring = HitRing::open(&object, config.threshold)?;
        let steal = StealReader::open(&object, raw.steal_offset != 0);
        let evidence = EvidenceRings::map(&object)?;
        let (links, resolve) = attach(&object)?;
        let switches = object::attach(&object, switches)?;
        // Last: no chain begins before all that it may pass through is seen.
        let wakes = object::attach(&object, wakes)?;
        run_iterator(&attach_iterator(&object, BEGIN_OPEN)?)?;
        let open = attach_iterator(&object, CHECK_OPEN)?;
        let waiting = config
            .waiting_after
            .map(|_| attach_iterator(&object, CHECK_WAITING))
            .transpose()?;
        let watch = Watch {
            wakes,
            switches,
            links,
            resolve,
            waiting,
            open,
            steal,
            evidence,
            object,
            storage_failures_seen: AtomicU64::new(0),
            cost: Mutex::new(CostSampler::new(OF_A_WATCH)?),
        };
        watch.spent();
        Ok((watch, ring))
    }

    /// Looks for targets that wait for longer than asked; each comes as a hit from
    /// [`HitRing::take`], once per wait. Call it now and then from a housekeeping CPU; it walks
    /// over all tasks.
    ///
    /// # Errors
    /// When the kernel refuses the iteration.
    pub fn check_waiting(&self) -> Result<()> {
        self.waiting.as_ref().map_or(Ok(()), run_iterator)
    }

    /// Looks for activations that are over the threshold and not over: each comes as a hit that
    /// still waits. For the end of a watch, after which nobody would see their end.
    ///
    /// # Errors
    /// When the kernel refuses the iteration.
    pub fn check_open(&self) -> Result<()> {
        run_iterator(&self.open)
    }

    /// What was counted since the start. Tasks that were born when the kernel had no storage for
    /// them get it now.
    ///
    /// # Errors
    /// When the kernel refuses to read the counters.
    pub fn statistics(&self) -> Result<Statistics> {
        let statistics = Statistics::read(&self.object)?;
        let failures = statistics.storage_failures;
        if self.storage_failures_seen.swap(failures, Ordering::Relaxed) != failures {
            run_iterator(&self.resolve)?;
        }
        Ok(statistics)
    }

    /// Targets that their own timer wakes steadily and that others woke in between, where an
    /// activation is judged to its end; whole after [`Watch::check_open`].
    ///
    /// # Errors
    /// When the kernel refuses to read them.
    pub fn sleeps_inside(&self) -> Result<Vec<SleepsInside>> {
        cycles::read(&self.object)
    }

    /// Begins anew with what [`Watch::sleeps_inside`] tells.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn forget_cycles(&self) -> Result<()> {
        cycles::forget(&self.object)
    }

    /// What our programs have cost since the start; to be called a few times a second.
    pub fn spent(&self) -> WatchCost {
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        cost.of(&self.object)
    }

    /// The ring of late activations that the limits hold back; for one reader.
    ///
    /// # Errors
    /// When the system refuses to map it.
    pub fn late_ones(&self) -> Result<LateRing> {
        LateRing::open(&self.object)
    }

    /// The rings of evidence, for whoever must read them before they are overwritten.
    pub fn evidence(&self) -> EvidenceRings {
        self.evidence.clone()
    }

    /// What reads every CPU's steal, for whoever takes the evidence of a hit.
    pub fn steal(&self) -> StealReader {
        self.steal.clone()
    }

    /// What a task is called in our own PID namespace, by the kernel's number of it; none where
    /// that is the same, or not known.
    pub fn id_in_namespace(&self, task: Tid) -> Option<Tid> {
        let ids = object::map(&self.object, "ids").ok()?;
        let found = ids.lookup(&task.0.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(Tid(i32::from_ne_bytes(found.try_into().ok()?)))
    }

    /// The number of programs that are attached.
    pub fn programs(&self) -> usize {
        self.links.len() + self.switches.len() + self.wakes.len()
    }

    /// For tests: how many steps the verifier took for each program.
    #[doc(hidden)]
    pub fn verified_steps(&self) -> Vec<(String, u32)> {
        statistics::verified_steps(&self.object)
    }

    /// For tests: no wake-up is seen while `meanwhile` runs, and no switch where these are hidden
    /// too, as where the kernel calls no program.
    ///
    /// # Errors
    /// When the kernel refuses to attach the programs again.
    #[doc(hidden)]
    pub fn without_wake_ups(&mut self, switches_too: bool, meanwhile: impl FnOnce()) -> Result<()> {
        self.wakes.clear();
        if switches_too {
            self.switches.clear();
        }
        meanwhile();
        if switches_too {
            self.switches = object::attach(&self.object, switches)?;
        }
        self.wakes = object::attach(&self.object, wakes)?;
        Ok(())
    }

    /// Own run time of each program, if the question asked for it: key 2 × program + changed.
    pub(crate) fn profile(&self, key: u32) -> Result<Vec<raw::Profile>> {
        object::per_cpu(&self.object, "profiles", key)
    }
}

/// Attaches everything, and gives every task its storage; the iterator that does so comes back too.
///
/// The order matters, because each takes its time. Newcomers first, then those who are there: no
/// task is woken before it is known. Exits before entries: no frame stays open. Switches and
/// wake-ups are left to the caller.
fn attach(object: &Object) -> Result<(Vec<Link>, Link)> {
    let knows = |program: &str| KNOW_TASKS.contains(&program);
    let exits = |program: &str| program.ends_with("_exit");
    let mut links = object::attach(object, knows)?;
    let resolve = attach_iterator(object, RESOLVE)?;
    resolve_all(object, &resolve)?;
    links.extend(object::attach(object, exits)?);
    let others =
        |program: &str| !knows(program) && !exits(program) && !switches(program) && !wakes(program);
    links.extend(object::attach(object, others)?);
    Ok((links, resolve))
}

fn switches(program: &str) -> bool {
    program == "sched_switch"
}

fn wakes(program: &str) -> bool {
    WAKE_TASKS.contains(&program)
}

/// Whether a program is needed: the kernel has its tracepoint, and the question uses it.
fn wanted(config: &WatchConfig, program: &str, present: impl Fn(&str) -> bool) -> bool {
    match program {
        RESOLVE | BEGIN_OPEN | CHECK_OPEN => true,
        READ_STEAL => config.late_timer_floor > Duration::ZERO,
        CHECK_WAITING => config.waiting_after.is_some(),
        "cgroup_mkdir" => !config.members.group_names.is_empty() && present(program),
        "sched_process_exec" | "sched_process_exit" => {
            config.members.family.is_some() && present(program)
        }
        "sys_exit" => config.end == EndKind::UserReturn && present(program),
        "sched_set_need_resched_tp" => config.late_timer_floor > Duration::ZERO && present(program),
        // Without these there is no watch: a failure to load them must be an error, not a silence.
        "sched_switch" | "sched_waking" | "task_newtask" => true,
        _ => present(program),
    }
}

pub(crate) fn attach_iterator(object: &Object, name: &str) -> Result<Link> {
    let mut programs = object.progs_mut();
    let program = programs
        .find(|program| program.name() == name)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "the embedded BPF object has no such program",
            )
            .found(name)
        })?;
    program
        .attach()
        .map_err(|error| object::explain("attach", &error))
}

/// Gives every task its storage. The kernel takes it from a small reserve that it refills behind
/// our back, so that one pass may not be enough; what is left is counted, and is tried again later.
fn resolve_all(object: &Object, resolve: &Link) -> Result<()> {
    const PASSES: u32 = 100;
    const REFILL: std::time::Duration = std::time::Duration::from_millis(1);
    let mut failures = 0;
    for _ in 0..PASSES {
        run_iterator(resolve)?;
        let before = std::mem::replace(&mut failures, Statistics::read(object)?.storage_failures);
        if failures == before {
            break;
        }
        std::thread::sleep(REFILL);
    }
    Ok(())
}

/// The program prints nothing, so that one read to the end runs it over every task.
pub(crate) fn run_iterator(link: &Link) -> Result<()> {
    let refused = |cause| Error::io("cannot iterate over the tasks", cause).fix("rtscope doctor");
    let mut iterator = Iter::new(link).map_err(|error| object::explain("iterate with", &error))?;
    iterator
        .read_to_end(&mut Vec::new())
        .map(drop)
        .map_err(refused)
}
