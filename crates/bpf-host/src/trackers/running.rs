//! A running tracker: programs in the kernel, a ring of hits, counters.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abi::raw;
use abi::trackers::{
    ONLY_MAX, RawConfig, RawOpen, RawPairKey, RawPairOpen, RawTracked, SERIES_MAX, WIDE_KEYS_MAX,
    decode_tracked, decode_tracked_hit, open_of_pair,
};
use event::evidence::tracked::TrackedHit;
use event::{Error, ErrorKind, Instant, Result};
use libbpf_rs::{Link, MapCore, MapFlags, Object, OpenObject, RingBuffer, RingBufferBuilder};

use super::pair::{self, Pair, PairSeen, decode_seen, with_code};
use super::statistics::{self, KeySum, Losses, TrackerStatistics};
use super::{OpenIn, Tracker, software};
use crate::config::WatchConfig;
use crate::features::{Features, has_tracepoint, vmlinux};
use crate::kernel::preempt_count_offset;
use crate::members;
use crate::object;
use crate::sampled_cost::{CostSampler, OF_A_WATCH, WatchCost};
use crate::statistics::recursion_misses;
use crate::watch::{attach_iterator, run_iterator};

/// The programs that know a task from its birth on.
const KNOW_TASKS: [&str; 3] = [MAKE_GROUP, "task_newtask", "task_rename"];
const MAKE_GROUP: &str = "cgroup_mkdir";
const RESOLVE: &str = "resolve_tasks";
const CHECK_OPEN: &str = "check_open";

/// The question to a tracker.
#[derive(Clone, Debug, Default)]
pub struct TrackerConfig {
    /// Targets, CPUs, threshold, time-out and limits, as for the chain; what else it holds is the
    /// chain's own.
    pub watch: WatchConfig,
    /// Only intervals of these keys; none for all. At most 32.
    pub only: Vec<u64>,
    /// Take stacks of what is over the threshold.
    pub stacks: bool,
    /// The events of the tracker of a pair, which has none of its own.
    pub pair: Option<Pair>,
    /// Count by intervals of time, for [`TrackerWatch::turn`].
    pub turns: bool,
}

/// A running tracker. Dropping it detaches its programs; nothing of it outlives the process.
pub struct TrackerWatch {
    // Dropped in this order: the programs are detached before their maps go.
    _links: Vec<Link>,
    resolve: Link,
    check_open: Option<Link>,
    ring: RingBuffer<'static>,
    received: Received,
    /// What an oracle is sent.
    seen: Option<(RingBuffer<'static>, Received)>,
    pub(super) object: Object,
    pub(super) tracker: &'static Tracker,
    waiting_ns: u64,
    /// What was reported open, by address: when it began.
    reported: HashMap<Vec<u8>, u64>,
    storage_failures_seen: AtomicU64,
    /// Which half of the counters is written, and what was lost until it was.
    pub(super) side: u32,
    pub(super) lost_before: u64,
    cost: Mutex<CostSampler>,
}

impl TrackerWatch {
    /// Loads and attaches a tracker. When it returns, every later interval is seen.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a question without an answer,
    /// [`ErrorKind::PermissionDenied`] and [`ErrorKind::Unsupported`] with the fact that explains
    /// it.
    pub fn start(tracker: &'static Tracker, config: &TrackerConfig) -> Result<TrackerWatch> {
        let mut raw = config.watch.to_raw()?;
        members::fill_namespace(&mut raw);
        let mut own = own_config(tracker, config, &raw)?;
        if raw.waiting_ns > 0 && tracker.open == OpenIn::Nowhere {
            return Err(no_time_out(tracker));
        }
        if let Some((kind, found, fix)) = Features::probe_basics().explanation() {
            let what = format!("cannot run the tracker {}", tracker.name);
            return Err(Error::new(kind, what).found(found).fix(fix));
        }
        let btf = vmlinux();
        let present = |name: &str| btf.as_ref().is_some_and(|btf| has_tracepoint(btf, name));
        if let Some(refusal) = tracker.refusal(&tracker.missing(present)) {
            return Err(refusal);
        }
        own.preempt_count_offset = btf.as_ref().map_or(0, preempt_count_offset);
        let (pair, action) = (config.pair.as_ref(), config.watch.action.as_ref());
        let object = tracker.object.unpacked()?;
        let mut opened = match pair {
            Some(pair) => object::open_with(&with_code(&object, pair)?, action)?,
            None => object::open_with(&object, action)?,
        };
        object::configure(&mut opened, &raw)?;
        prepare_maps(&mut opened, tracker, &own, config)?;
        let object = object::load_with(opened, action, |program| match program {
            RESOLVE => true,
            CHECK_OPEN => raw.waiting_ns > 0,
            MAKE_GROUP => raw.group_names_length > 0 && present(program),
            _ if tracker.for_stacks.contains(&program) => config.stacks && present(program),
            _ if is_at_software_event(tracker, program) => true,
            _ if pair.is_some_and(|pair| pair.uses(program)) => true,
            _ => present(program),
        })?;
        config.watch.members.fill_map(&object)?;
        let (ring, received) = open_ring(&object, "tracker_hits")?;
        let oracle = pair.and_then(|pair| pair.oracle_bytes);
        let seen = oracle
            .map(|_| open_ring(&object, "pair_seen"))
            .transpose()?;
        let (mut links, resolve) = attach(tracker, &object)?;
        if let Some(pair) = pair {
            links.extend(pair.attach(&object)?);
        }
        let looks = raw.waiting_ns > 0 && tracker.open == OpenIn::Tasks;
        Ok(TrackerWatch {
            _links: links,
            resolve,
            check_open: looks
                .then(|| attach_iterator(&object, CHECK_OPEN))
                .transpose()?,
            ring,
            received,
            seen,
            object,
            tracker,
            waiting_ns: raw.waiting_ns,
            reported: HashMap::new(),
            storage_failures_seen: AtomicU64::new(0),
            side: 0,
            lost_before: 0,
            cost: Mutex::new(CostSampler::new(OF_A_WATCH)?),
        })
    }

    /// Which one this is.
    pub fn tracker(&self) -> &'static Tracker {
        self.tracker
    }

    /// Readable while the ring holds hits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's own and lives as long as the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// The hits that are in the ring now, without waiting.
    ///
    /// # Errors
    /// When a record makes no sense, or the system refuses.
    pub fn take(&mut self) -> Result<Vec<TrackedHit>> {
        let received = consume(&self.ring, &self.received)?;
        let hits = received.iter();
        hits.map(|bytes| decode_tracked_hit(bytes)).collect()
    }

    /// What the tracker of a pair with an oracle saw since the last time.
    ///
    /// # Errors
    /// As [`TrackerWatch::take`].
    pub fn take_seen(&mut self) -> Result<Vec<PairSeen>> {
        let Some((ring, received)) = &self.seen else {
            return Ok(Vec::new());
        };
        let received = consume(ring, received)?;
        received.iter().map(|bytes| decode_seen(bytes)).collect()
    }

    /// Looks for what is open for longer than the time-out; each interval is reported once, here
    /// or from [`TrackerWatch::take`]. `now` is the moment on CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the kernel refuses to be looked into.
    pub fn check_open(&mut self, now: Instant) -> Result<Vec<TrackedHit>> {
        if let Some(link) = &self.check_open {
            run_iterator(link)?;
        }
        let open = match self.tracker.open {
            _ if self.waiting_ns == 0 => return Ok(Vec::new()),
            OpenIn::Table => open_entries(&self.object)?,
            OpenIn::Keys => open_pairs(&self.object)?,
            OpenIn::Tasks | OpenIn::Nowhere => return Ok(Vec::new()),
        };
        self.reported.retain(|key, begin_ns| {
            let entry = open.get(key);
            entry.is_some_and(|entry| entry.begin_ns == *begin_ns)
        });
        let mut hits = Vec::new();
        for (key, mut tracked) in open {
            let begin_ns = tracked.begin_ns;
            let waited_ns = (now.as_ns() as u64).saturating_sub(begin_ns);
            if waited_ns < self.waiting_ns || self.reported.contains_key(&key) {
                continue;
            }
            tracked.end_ns = begin_ns + waited_ns;
            tracked.flags = abi::trackers::TRACKED_OPEN;
            hits.push(TrackedHit {
                tracked: decode_tracked(&tracked)?,
                stack: Vec::new(),
                other_stack: Vec::new(),
            });
            self.reported.insert(key, begin_ns);
        }
        Ok(hits)
    }

    /// What was counted since the start. Tasks that were born when the kernel had no storage for
    /// them get it now.
    ///
    /// # Errors
    /// When the kernel refuses to read the counters.
    pub fn statistics(&self) -> Result<TrackerStatistics> {
        let (series, recursion) = (self.tracker.series.len(), recursion_misses(&self.object));
        let mut statistics = TrackerStatistics::read(&self.object, series, recursion)?;
        if self.tracker.open == OpenIn::Keys {
            statistics.pair = Some(statistics::pair_counts(&self.object)?);
        }
        self.resolve_again(&statistics.losses)?;
        Ok(statistics)
    }

    /// Intervals that were not counted since the start, or more; of tasks as in
    /// [`TrackerWatch::statistics`].
    pub(super) fn uncounted(&self) -> Result<u64> {
        let losses = Losses::read(&self.object, recursion_misses(&self.object))?;
        self.resolve_again(&losses)?;
        Ok(losses.uncounted())
    }

    /// Looks for the tasks that the kernel had no storage for when it was asked last.
    fn resolve_again(&self, losses: &Losses) -> Result<()> {
        let failures = losses.storage_failures;
        match self.storage_failures_seen.swap(failures, Ordering::Relaxed) != failures {
            true => run_iterator(&self.resolve),
            false => Ok(()),
        }
    }

    /// The sums by key, those with the longest intervals first.
    ///
    /// # Errors
    /// When the kernel refuses to read them.
    pub fn keys(&self) -> Result<Vec<KeySum>> {
        statistics::keys(&self.object)
    }

    /// What the programs have cost since the start; to be called a few times a second.
    pub fn spent(&self) -> WatchCost {
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        cost.of(&self.object)
    }
}

fn is_at_software_event(tracker: &Tracker, program: &str) -> bool {
    let mut programs = tracker.software_events.iter();
    programs.any(|(name, _)| *name == program)
}

fn no_time_out(tracker: &Tracker) -> Error {
    let what = format!("the tracker {} has no time-out", tracker.name);
    Error::new(ErrorKind::InvalidInput, what)
        .found("nobody can look at what is open before it ends")
        .fix("leave --timeout away; --over reports it when it ends")
}

/// `shared` is the configuration that it stands beside.
fn own_config(
    tracker: &Tracker,
    config: &TrackerConfig,
    shared: &raw::Config,
) -> Result<RawConfig> {
    let mut raw: RawConfig = raw::zeroed();
    raw.threshold_ns = shared.threshold_ns;
    raw.waiting_ns = shared.waiting_ns;
    raw.prio_max = shared.prio_max;
    raw.target_kind = shared.target_kind;
    raw.cpus_filtered = shared.cpus_filtered;
    raw.turns = u8::from(config.turns);
    let name = tracker.name.bytes().take(raw.name.len() - 1);
    for (place, byte) in raw.name.iter_mut().zip(name) {
        *place = byte;
    }
    if config.only.len() > ONLY_MAX {
        let what = format!("a tracker takes at most {ONLY_MAX} keys");
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(config.only.len().to_string())
            .fix("name fewer with --only, or leave it away"));
    }
    raw.only[..config.only.len()].copy_from_slice(&config.only);
    raw.only_length = config.only.len() as u32;
    raw.stacks = u8::from(config.stacks);
    let oracle = config.pair.as_ref().and_then(|pair| pair.oracle_bytes);
    raw.oracle = u8::from(oracle.is_some());
    Ok(raw)
}

/// Leaves out the maps that the tracker does not use, and writes its configuration.
fn prepare_maps(
    opened: &mut OpenObject,
    tracker: &Tracker,
    own: &RawConfig,
    config: &TrackerConfig,
) -> Result<()> {
    let pair = config.pair.as_ref();
    let refused = |error| object::explain("prepare", &error);
    for mut map in opened.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if object::is_of_chain(&name) {
            map.set_autocreate(false).map_err(refused)?;
        }
        if name == "tracker_open" && tracker.open != OpenIn::Table {
            // Nothing is kept in it: preallocated it would be megabytes.
            map.set_max_entries(1).map_err(refused)?;
        }
        if name == "tracker_series" && !config.turns {
            map.set_max_entries(SERIES_MAX as u32).map_err(refused)?;
        }
        if name == "tracker_keys" && tracker.has_history() {
            map.set_max_entries(disk_rows()).map_err(refused)?;
        }
        if let (Some(bytes), "pair_seen") = (pair.and_then(|pair| pair.oracle_bytes), &*name) {
            map.set_max_entries(bytes).map_err(refused)?;
        }
        if let (Some(pair), pair::MARKS_MAP) = (pair, &*name) {
            let sites = pair.site_count().max(1);
            map.set_max_entries(sites as u32).map_err(refused)?;
        }
        if name == ".rodata.tracker"
            && let Some(place) = map.initial_value_mut()
        {
            let bytes = raw::bytes(own);
            place[..bytes.len()].copy_from_slice(bytes);
        }
    }
    Ok(())
}

/// Rows of disks are large: room for as many as this machine's disks have operations of two kinds,
/// and for some that come later.
fn disk_rows() -> u32 {
    const OF_A_DISK: usize = 16;
    const ROWS_MIN: usize = 64;
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten();
    let has_room = |disk: &std::fs::DirEntry| {
        let size = std::fs::read_to_string(disk.path().join("size"));
        size.is_ok_and(|size| size.trim() != "0")
    };
    let disks = disks.flatten().filter(has_room).count();
    (disks * OF_A_DISK).clamp(ROWS_MIN, WIDE_KEYS_MAX) as u32
}

type Received = Arc<Mutex<Vec<Vec<u8>>>>;

fn open_ring(object: &Object, name: &str) -> Result<(RingBuffer<'static>, Received)> {
    let refused = |error| object::explain("read", &error);
    let received = Received::default();
    let kept = Arc::clone(&received);
    let keep = move |bytes: &[u8]| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(bytes.to_vec());
        0
    };
    let map = object::map(object, name)?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, keep).map_err(refused)?;
    Ok((builder.build().map_err(refused)?, received))
}

/// What is in a ring now, without waiting.
fn consume(ring: &RingBuffer<'static>, received: &Received) -> Result<Vec<Vec<u8>>> {
    if let Err(error) = ring.consume()
        && error.kind() != libbpf_rs::ErrorKind::Interrupted
    {
        return Err(object::explain("read the ring of", &error));
    }
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *received))
}

/// Newcomers first, then those who are there, so that no task is seen before it is known; ends
/// before beginnings, so that nothing stays open.
fn attach(tracker: &Tracker, object: &Object) -> Result<(Vec<Link>, Link)> {
    let knows = |program: &str| KNOW_TASKS.contains(&program);
    let ends = |program: &str| program.ends_with("_exit") || program.ends_with("_end");
    let mut links = object::attach(object, knows)?;
    let resolve = attach_iterator(object, RESOLVE)?;
    resolve_all(object, &resolve)?;
    links.extend(object::attach(object, ends)?);
    for (program, event) in tracker.software_events {
        links.extend(software::attach(object, program, *event)?);
    }
    // The programs of a pair are attached by it, where it says.
    let others = |program: &str| !knows(program) && !ends(program);
    links.extend(object::attach(object, others)?);
    Ok((links, resolve))
}

/// The kernel takes storage from a small reserve that it refills behind our back, so that one pass
/// may not be enough.
fn resolve_all(object: &Object, resolve: &Link) -> Result<()> {
    const PASSES: u32 = 100;
    const REFILL: std::time::Duration = std::time::Duration::from_millis(1);
    let failures = || {
        let losses = object::per_cpu::<abi::trackers::RawLosses>(object, "tracker_losses", 0)?;
        Ok::<u64, Error>(losses.iter().map(|one| one.storage_failures).sum())
    };
    let mut passes = 0..PASSES;
    loop {
        let before = failures()?;
        run_iterator(resolve)?;
        if failures()? == before {
            break;
        }
        if passes.next().is_none() {
            return Ok(());
        }
        std::thread::sleep(REFILL);
    }
    // What failed before the last pass was made good by it.
    let zero = vec![raw::bytes(&raw::zeroed::<abi::trackers::RawLosses>()).to_vec(); cpus()?];
    object::map(object, "tracker_losses")?
        .update_percpu(&0u32.to_ne_bytes(), &zero, MapFlags::ANY)
        .map_err(|error| object::explain("reset", &error))
}

fn cpus() -> Result<usize> {
    libbpf_rs::num_possible_cpus().map_err(|error| object::explain("size", &error))
}

/// What is open now, by address.
fn open_entries(object: &Object) -> Result<HashMap<Vec<u8>, RawTracked>> {
    let map = object::map(object, "tracker_open")?;
    let entry = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        Some((key, raw::read::<RawOpen>(&value)?.tracked))
    };
    Ok(map.keys().filter_map(entry).collect())
}

/// The same of a pair, by key.
fn open_pairs(object: &Object) -> Result<HashMap<Vec<u8>, RawTracked>> {
    let map = object::map(object, "pair_open")?;
    let entry = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        let raw_key: RawPairKey = raw::read(&key)?;
        let open: RawPairOpen = raw::read(&value)?;
        Some((key, open_of_pair(&raw_key, &open)))
    };
    Ok(map.keys().filter_map(entry).collect())
}
