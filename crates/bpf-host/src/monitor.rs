//! The phases of every real-time task's wake-ups, counted in the kernel, an interval at a time.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};

use abi::monitor::{
    GROUPS_MAX, PHASES_MAX, PHASES_ROOM, Phase, PhaseSeries, RawConfig, RawLinear, RawLosses,
    RawSeries, RawSums, decode_series, has_samples,
};
use abi::raw;
use event::{Cpu, Error, ErrorKind, Result, TaskPattern};
use libbpf_rs::{Link, MapCore, Object, OpenObject};
use memmap2::{MmapOptions, MmapRaw};

use crate::config::{Targets, WatchConfig};
use crate::features::{Features, has_tracepoint, vmlinux};
use crate::kernel::{self, PerCpuOffsets};
use crate::members::Members;
use crate::object;
use crate::sampled_cost::{CostSampler, Pace};
use crate::statistics::recursion_misses;
use crate::watch::{attach_iterator, run_iterator};

/// Maps of the shared headers that trackers use and the monitor does not.
const OF_TRACKERS_TOO: [&str; 2] = ["late_ones", "watch_floor"];
const MAKE_GROUP: &str = "cgroup_mkdir";
/// The programs that know a task from its birth on, and a group before it has one.
const KNOW_TASKS: [&str; 3] = [MAKE_GROUP, "task_newtask", "task_rename"];
/// Without these there are no phases.
const NEEDED: [&str; 5] = [
    "sched_waking",
    "sched_wakeup",
    "sched_switch",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
];
const RETURN: &str = "sys_exit";
/// Each measured moment ends with the next look.
const MOMENTS: Pace = Pace {
    first: std::time::Duration::ZERO,
    later: std::time::Duration::ZERO,
    every: std::time::Duration::from_secs(60),
};
const RESOLVE: &str = "resolve_tasks";
/// No program that began before a barrier is still running after it.
const BARRIER_GLOBAL: libc::c_int = 1;
/// Where the kernel has no such barrier (CPUs without a tick): programs take microseconds.
const INSTEAD_OF_BARRIER: std::time::Duration = std::time::Duration::from_millis(50);

/// Whose phases are counted, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorConfig {
    /// Tasks beside the real-time ones, counted as a group of their own.
    pub named: Vec<TaskPattern>,
    /// Tasks that are counted as those that are named, by where they are.
    pub members: Members,
    /// Count every task.
    pub every_task: bool,
    /// Count the return to user space too, at the price of a program at every system call's end.
    pub until_return: bool,
    /// Count real-time tasks in buckets of a microsecond too, as OSADL's kernels do.
    pub linear: bool,
    /// Hooks that no program is called for, as a kernel leaves calls out: for tests.
    #[doc(hidden)]
    pub left_out: &'static [&'static str],
}

/// OSADL's form of a phase on one CPU: buckets of a microsecond that are not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearSeries {
    /// Where.
    pub cpu: Cpu,
    /// The phase, by number.
    pub phase: u8,
    /// Microseconds and counts; the last bucket has what is longer.
    pub counts: Vec<(u16, u32)>,
}

/// What was not measured in an interval, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorLosses {
    /// Tasks that the kernel had no storage for when asked; they are known from the next interval.
    pub storage_failures: u64,
    /// Samples whose two clocks differ by more than they are long.
    pub unpaired: u64,
    /// Longest samples of which only the length is known.
    pub worst_missed: u64,
    /// Samples that no program saw: they are counted, by the kernel's own accounts.
    pub hidden: u64,
    /// Activations that no program saw, and whose length nobody knows.
    pub unseen: u64,
    /// Events that the kernel left out because a program would have interrupted itself.
    pub recursion: u64,
}

impl MonitorLosses {
    fn since(self, before: MonitorLosses) -> MonitorLosses {
        MonitorLosses {
            storage_failures: self
                .storage_failures
                .saturating_sub(before.storage_failures),
            unpaired: self.unpaired.saturating_sub(before.unpaired),
            worst_missed: self.worst_missed.saturating_sub(before.worst_missed),
            hidden: self.hidden.saturating_sub(before.hidden),
            unseen: self.unseen.saturating_sub(before.unseen),
            recursion: self.recursion.saturating_sub(before.recursion),
        }
    }
}

/// What was counted in an interval.
#[derive(Clone, Debug, Default)]
pub struct PhaseInterval {
    /// Every series that has samples.
    pub series: Vec<PhaseSeries>,
    /// OSADL's form, where it was asked for.
    pub linear: Vec<LinearSeries>,
    /// What was not measured.
    pub losses: MonitorLosses,
}

/// Programs in the kernel that count while this lives.
#[derive(Debug)]
pub struct PhaseMonitor {
    // Dropped in this order: the programs are detached before their maps go.
    _links: Vec<Link>,
    resolve: Link,
    maps: Maps,
    object: Object,
    config: MonitorConfig,
    cpus_max: u32,
    side: u32,
    losses: MonitorLosses,
    /// Tasks that are not known yet could not be looked for.
    must_resolve: bool,
    cost: CostSampler,
}

impl PhaseMonitor {
    /// Loads and attaches the programs. When it returns, every task is known and every later
    /// wake-up is counted.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for targets that are too many,
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it.
    pub fn start(config: &MonitorConfig) -> Result<PhaseMonitor> {
        let mut raw = targets(config).to_raw()?;
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            let error = Error::new(kind, "cannot count phases with BPF");
            return Err(error.found(found).fix(fix));
        }
        let btf = vmlinux();
        let present = |name: &str| btf.as_ref().is_some_and(|btf| has_tracepoint(btf, name));
        let needed = NEEDED
            .into_iter()
            .chain(config.until_return.then_some(RETURN));
        refuse_missing(needed.filter(|name| !present(name)).collect())?;
        let offsets = btf.as_ref().map(PerCpuOffsets::of).unwrap_or_default();
        raw.irq_regs_offset = offsets.irq_regs;
        raw.cpus_max = kernel::cpus_max()?;
        let mut opened = object::open(object::MONITOR)?;
        object::configure(&mut opened, &raw)?;
        prepare_maps(&mut opened, config, raw.cpus_max)?;
        let object = object::load(opened, |program| match program {
            RESOLVE => true,
            RETURN => config.until_return,
            MAKE_GROUP => !config.members.group_names.is_empty() && present(program),
            _ => present(program) && !config.left_out.contains(&program),
        })?;
        config.members.fill_map(&object)?;
        let maps = Maps::of(&object)?;
        let (links, resolve) = attach(&object, &maps)?;
        Ok(PhaseMonitor {
            losses: maps.losses(&object),
            maps,
            _links: links,
            resolve,
            object,
            config: config.clone(),
            cpus_max: raw.cpus_max,
            side: 0,
            must_resolve: false,
            cost: CostSampler::new(MOMENTS)?,
        })
    }

    /// Ends the interval and begins the next one: what happens meanwhile is in one of the two.
    pub fn close(&mut self) -> PhaseInterval {
        let side = self.side;
        self.side ^= 1;
        self.maps.side.store(0, self.side);
        wait_for_programs();
        let mut interval = PhaseInterval::default();
        self.take_series(side, &mut interval);
        if self.config.linear {
            self.take_linear(side, &mut interval);
        }
        let losses = self.maps.losses(&self.object);
        interval.losses = losses.since(self.losses);
        self.losses = losses;
        // What was counted is not lost where the kernel refuses to iterate over its tasks now.
        if interval.losses.storage_failures > 0 || self.must_resolve {
            self.must_resolve = run_iterator(&self.resolve).is_err();
        }
        interval
    }

    /// Finds out, for a moment of each minute, what the programs cost: to be called a few times a
    /// second.
    pub fn measure_cost(&mut self) {
        self.cost.look(&self.object);
    }

    /// What the programs cost since the start, by the kernel's own measuring of a moment of each
    /// minute, which is no part of it; zero where that is not allowed.
    pub fn cost_ns(&self) -> u64 {
        self.cost.spent_ns()
    }

    /// Reads and empties the series of a side that nobody writes.
    fn take_series(&self, side: u32, interval: &mut PhaseInterval) {
        for (cpu, group) in
            (0..self.cpus_max).flat_map(|cpu| (0..GROUPS_MAX).map(move |group| (cpu, group)))
        {
            let cpus = side as usize * self.cpus_max as usize + cpu as usize;
            let number = cpus * GROUPS_MAX + group;
            // Most CPUs have nothing of most groups, and all of it takes 22 kilobytes.
            if !self.maps.series.sums(number).iter().any(has_samples) {
                continue;
            }
            let series = Box::new(self.maps.series.load(number));
            let of_phase = |phase: Phase| decode_series(&series, Cpu(cpu), group as u8, phase);
            interval
                .series
                .extend(Phase::ALL.into_iter().filter_map(of_phase));
            self.maps.series.store(number, raw::zeroed());
        }
    }

    fn take_linear(&self, side: u32, interval: &mut PhaseInterval) {
        for (cpu, phase) in
            (0..self.cpus_max).flat_map(|cpu| (0..PHASES_MAX).map(move |phase| (cpu, phase)))
        {
            let number = (side * self.cpus_max + cpu) as usize * PHASES_MAX + phase;
            let linear = self.maps.linear.load(number);
            let counts = linear.counts.iter().enumerate();
            let counts = counts.filter(|(_, count)| **count > 0);
            let counts: Vec<_> = counts
                .map(|(bucket, count)| (bucket as u16, *count))
                .collect();
            if !counts.is_empty() {
                self.maps.linear.store(number, raw::zeroed());
                interval.linear.push(LinearSeries {
                    cpu: Cpu(cpu),
                    phase: phase as u8,
                    counts,
                });
            }
        }
    }
}

/// What the programs count, mapped: an interval is closed without a system call for each series.
#[derive(Debug)]
struct Maps {
    side: Mapped<u32>,
    series: Mapped<RawSeries>,
    linear: Mapped<RawLinear>,
    losses: Mapped<RawLosses>,
}

impl Maps {
    fn of(object: &Object) -> Result<Maps> {
        Ok(Maps {
            side: Mapped::of(object, ".bss.side")?,
            series: Mapped::of(object, "monitor_series")?,
            linear: Mapped::of(object, "monitor_linear")?,
            losses: Mapped::of(object, "monitor_losses")?,
        })
    }

    fn losses(&self, object: &Object) -> MonitorLosses {
        let mut sum = MonitorLosses {
            recursion: recursion_misses(object),
            ..MonitorLosses::default()
        };
        for one in (0..self.losses.length).map(|cpu| self.losses.load(cpu)) {
            sum.storage_failures += one.storage_failures;
            sum.unpaired += one.unpaired;
            sum.worst_missed += one.worst_missed;
            sum.hidden += one.hidden;
            sum.unseen += one.unseen;
        }
        sum
    }
}

/// An array of the kernel's programs in our own memory.
#[derive(Debug)]
struct Mapped<T> {
    memory: MmapRaw,
    length: usize,
    values: PhantomData<T>,
}

impl<T: raw::Plain> Mapped<T> {
    fn of(object: &Object, name: &str) -> Result<Mapped<T>> {
        let map = object::map(object, name)?;
        let length = map.max_entries() as usize;
        let memory = MmapOptions::new()
            .len(length * Self::stride())
            .map_raw(map.as_fd().as_raw_fd());
        let failed = |cause| Error::io(format!("cannot map {name}"), cause).fix("rtscope doctor");
        Ok(Mapped {
            memory: memory.map_err(failed)?,
            length,
            values: PhantomData,
        })
    }

    /// The kernel gives every value a multiple of eight bytes.
    const fn stride() -> usize {
        size_of::<T>().next_multiple_of(8)
    }

    fn place(&self, number: usize) -> *mut T {
        assert!(number < self.length, "{number} of {}", self.length);
        // SAFETY: within the mapping, as its length says.
        unsafe { self.memory.as_mut_ptr().add(number * Self::stride()).cast() }
    }

    /// Of no length but of whole words is a value of the programs.
    const WORDS: usize = {
        assert!(size_of::<T>().is_multiple_of(size_of::<u32>()));
        size_of::<T>() / size_of::<u32>()
    };

    /// Word by word: of a volatile value as a whole the compiler writes out each word's
    /// instructions, 300 kB of them for the largest.
    fn load(&self, number: usize) -> T {
        let mut value = raw::zeroed::<T>();
        let from = self.place(number).cast::<u32>();
        let to = (&raw mut value).cast::<u32>();
        for word in 0..Self::WORDS {
            // SAFETY: both hold so many words; the place is aligned to eight bytes and holds a
            // plain value, and what a program writes meanwhile makes another one of it.
            unsafe { to.add(word).write(from.add(word).read_volatile()) }
        }
        value
    }

    fn store(&self, number: usize, value: T) {
        let from = (&raw const value).cast::<u32>();
        let to = self.place(number).cast::<u32>();
        for word in 0..Self::WORDS {
            // SAFETY: as above; the memory is ours to write.
            unsafe { to.add(word).write_volatile(from.add(word).read()) }
        }
    }
}

impl Mapped<RawSeries> {
    /// What says whether anything was counted, without the rest.
    fn sums(&self, number: usize) -> [RawSums; PHASES_ROOM] {
        // SAFETY: as for the whole value, of which this is the begin.
        unsafe { (&raw const (*self.place(number)).sums).read_volatile() }
    }
}

/// The targets as the chain's own configuration has them.
fn targets(config: &MonitorConfig) -> WatchConfig {
    let mut named = config.named.clone();
    let targets = if named.is_empty() && config.members.is_empty() {
        Targets::RealTime
    } else {
        named.push(TaskPattern::RealTime);
        Targets::Tasks(named)
    };
    WatchConfig {
        targets,
        members: config.members.clone(),
        ..WatchConfig::default()
    }
}

fn refuse_missing(missing: Vec<&str>) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let what = "this kernel has no hooks for the phases of wake-ups";
    Err(Error::new(ErrorKind::Unsupported, what)
        .found(format!("no tracepoint {}", missing.join(", ")))
        .fix("boot a kernel with CONFIG_TRACEPOINTS=y and CONFIG_HIGH_RES_TIMERS=y"))
}

/// Leaves out the maps that nobody uses, sizes the others and writes the configuration.
fn prepare_maps(opened: &mut OpenObject, config: &MonitorConfig, cpus_max: u32) -> Result<()> {
    let refused = |error| object::explain("prepare", &error);
    let own = RawConfig {
        linear: u8::from(config.linear),
        until_return: u8::from(config.until_return),
        every_task: u8::from(config.every_task),
        ..raw::zeroed()
    };
    for mut map in opened.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if object::is_of_chain(&name) || OF_TRACKERS_TOO.contains(&name.as_str()) {
            map.set_autocreate(false).map_err(refused)?;
        }
        let length = match name.as_str() {
            "monitor_series" => 2 * GROUPS_MAX as u32 * cpus_max,
            "monitor_linear" if config.linear => 2 * PHASES_MAX as u32 * cpus_max,
            "monitor_losses" => cpus_max,
            _ => 0,
        };
        if length > 0 {
            map.set_max_entries(length).map_err(refused)?;
        }
        if name == ".rodata.monitor"
            && let Some(place) = map.initial_value_mut()
        {
            let bytes = raw::bytes(&own);
            place[..bytes.len()].copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// Newcomers first, then those who are there, so that no task is seen before it is known.
fn attach(object: &Object, maps: &Maps) -> Result<(Vec<Link>, Link)> {
    let knows = |program: &str| KNOW_TASKS.contains(&program);
    let mut links = object::attach(object, knows)?;
    let resolve = attach_iterator(object, RESOLVE)?;
    resolve_all(object, maps, &resolve)?;
    links.extend(object::attach(object, |program| !knows(program))?);
    Ok((links, resolve))
}

/// The kernel takes storage from a small reserve that it refills behind our back, so that one pass
/// may not be enough.
fn resolve_all(object: &Object, maps: &Maps, resolve: &Link) -> Result<()> {
    const PASSES: u32 = 100;
    const REFILL: std::time::Duration = std::time::Duration::from_millis(1);
    for _ in 0..PASSES {
        let before = maps.losses(object).storage_failures;
        run_iterator(resolve)?;
        if maps.losses(object).storage_failures == before {
            break;
        }
        std::thread::sleep(REFILL);
    }
    Ok(())
}

/// Waits until every program that began before now is over.
pub(crate) fn wait_for_programs() {
    // SAFETY: a system call without memory.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, BARRIER_GLOBAL, 0, 0) };
    if done != 0 {
        std::thread::sleep(INSTEAD_OF_BARRIER);
    }
}
