//! The armed thread: sleeps until a hit, copies the recorder's pages, lets it run again.
//!
//! Its name is the recorder's trigger: the kernel stops the recorder when it is about to wake this
//! thread. So nothing but a hit should wake it while the recorder runs: it waits without a timeout,
//! all periodic work is done elsewhere, and whoever finds that the recorder stands still rings.
//! While it copies pages it may wait for memory or a lock, and is no trigger, as a fair task.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use bpf_host::{EvidenceRings, Gone, HitRing, StealReader, Watch};
use event::evidence::{Evidence, Hit};
use event::{Cpu, Duration, Error, ErrorKind, Instant, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::pages::Pages;
use crate::recorder::Recorder;
use crate::{clock, housekeeping};

use super::calls::{Called, Listener};

/// Hits of one moment, with the pages that the recorder held.
#[derive(Debug)]
pub(super) struct Caught {
    pub(super) hits: Vec<Hit>,
    /// None without a recorder.
    pub(super) pages: Option<Pages>,
    /// What the rings held then, for a snapshot: on a busy machine newer records take the place of
    /// those of this hit long before it is written.
    pub(super) evidence: Vec<Evidence>,
    /// What they did not hold any more.
    pub(super) gone: Vec<Gone>,
    /// Whether the recorder stood still already when we came.
    pub(super) stopped_by_kernel: bool,
    /// When the recorder ran again.
    pub(super) running: Instant,
    /// The call that these are the answer to.
    pub(super) called: Option<Called>,
}

/// What the kernel's watch saw beside the hits.
pub(super) struct Witness {
    evidence: EvidenceRings,
    steal: StealReader,
    /// What was in the rings, where hits wait until they are called for.
    kept: Option<Kept>,
}

/// Records of the moment before.
#[derive(Default)]
struct Kept {
    seen: Vec<u64>,
    records: Vec<Evidence>,
    /// What was overwritten between two looks.
    gone: Vec<Gone>,
}

/// Nobody calls for what is older.
const KEPT_FOR: Duration = Duration::from_ms(3_000);

impl Witness {
    pub(super) fn of(watch: &Watch, keeps: bool) -> Witness {
        Witness {
            evidence: watch.evidence(),
            steal: watch.steal(),
            kept: keeps.then(Kept::default),
        }
    }

    /// Keeps what came, before newer records take its place.
    fn keep(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        let oldest = clock::monotonic() - KEPT_FOR;
        // A record that is read twice, because one before it was being written, is there once.
        let found = self.evidence.read_new(&mut kept.seen);
        let new = found.records.into_iter();
        let new = new.filter(|record| !kept.records.contains(record));
        let new: Vec<Evidence> = new.collect();
        kept.records.extend(new);
        kept.records.retain(|record| record.time() >= oldest);
        kept.gone.extend(found.gone);
        kept.gone.retain(|gone| gone.before >= oldest);
    }

    /// What there is for a snapshot.
    fn records(&mut self) -> (Vec<Evidence>, Vec<Gone>) {
        self.steal.record();
        self.keep();
        match &self.kept {
            Some(kept) => (kept.records.clone(), kept.gone.clone()),
            None => {
                let found = self.evidence.read();
                (found.records, found.gone)
            }
        }
    }
}

/// A running armed thread.
pub(super) struct Armed {
    thread: JoinHandle<Result<()>>,
    wake: OwnedFd,
    over: Arc<AtomicBool>,
}

/// The name of the armed thread, which is the recorder's trigger. At most 15 bytes: the largest
/// process id has seven digits.
pub(super) fn thread_name() -> String {
    format!("rtscope/{}", std::process::id())
}

impl Armed {
    /// Starts the thread; from now on it owns the ring and the recorder.
    pub(super) fn start(
        ring: HitRing,
        recorder: Option<(Recorder, Witness)>,
        choice: Choice,
        cpus: &[Cpu],
        sender: Sender<Caught>,
    ) -> Result<Armed> {
        let refused = |cause: std::io::Error| Error::io("cannot start the armed thread", cause);
        let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| refused(errno.into()))?;
        let woken = wake.try_clone().map_err(refused)?;
        let over = Arc::new(AtomicBool::new(false));
        let bell = Bell {
            rung: woken,
            over: over.clone(),
        };
        let cpus = cpus.to_vec();
        let thread = std::thread::Builder::new()
            .name(thread_name())
            .spawn(move || {
                housekeeping::pin(&cpus);
                housekeeping::be_prompt();
                wait_and_catch(ring, recorder, choice, &bell, &sender)
            })
            .map_err(refused)?;
        Ok(Armed { thread, wake, over })
    }

    /// Has the thread look after the recorder. Whatever wakes it without letting it run (a stop
    /// signal and its end) is a hit to the trigger, and to nobody else.
    pub(super) fn look(&self) {
        // A counter that cannot take the 1 is above zero already, which wakes as well.
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).ok();
    }

    /// Ends the thread and gives what it ended with.
    pub(super) fn join(self) -> Result<()> {
        self.over.store(true, Ordering::Release);
        self.look();
        let panicked = |_| Error::new(ErrorKind::Io, "the armed thread panicked");
        self.thread.join().map_err(panicked)?
    }
}

/// Which hits are caught.
#[derive(Debug)]
pub(super) enum Choice {
    /// All that the kernel sends.
    All,
    /// Only worse ones than the least of the worst.
    Worst(Worst),
    /// Those that are called for.
    Called(Listener),
}

impl Choice {
    /// How long to wait at most for something new.
    fn wait(&self) -> Option<Duration> {
        match self {
            Choice::Called(listener) => Some(listener.wait(clock::monotonic())),
            _ => None,
        }
    }

    /// Of the hits that came, those that are to be caught, and what called for them.
    fn of(
        &mut self,
        hits: Vec<Hit>,
        ring: &HitRing,
        is_over: bool,
    ) -> Result<(Vec<Hit>, Option<Called>)> {
        match self {
            Choice::All => Ok((hits, None)),
            // Before the pages are copied: meanwhile others may be late.
            Choice::Worst(worst) => {
                for latency in hits.iter().map(Hit::latency) {
                    if let Some(floor) = worst.add(latency) {
                        ring.raise_floor(floor)?;
                    }
                }
                Ok((hits, None))
            }
            Choice::Called(listener) => {
                listener.ended(hits);
                listener.listen();
                let now = match is_over {
                    true => Instant::MAX,
                    false => clock::monotonic(),
                };
                let answer = listener.answer(now);
                let (called, hit) = answer.unzip();
                Ok((hit.flatten().into_iter().collect(), called))
            }
        }
    }
}

/// The longest latencies so far: what is shorter than all of them need not come.
#[derive(Debug)]
pub(super) struct Worst {
    count: usize,
    /// The longest first.
    latencies: Vec<Duration>,
}

impl Worst {
    /// Of so many.
    pub(super) fn new(count: usize) -> Worst {
        Worst {
            count,
            latencies: Vec::new(),
        }
    }

    /// Takes one; gives the shortest of them once there are so many.
    fn add(&mut self, latency: Duration) -> Option<Duration> {
        let place = self.latencies.partition_point(|one| *one >= latency);
        self.latencies.insert(place, latency);
        self.latencies.truncate(self.count);
        let full = self.latencies.len() == self.count;
        self.latencies.last().copied().filter(|_| full)
    }
}

/// How others reach the armed thread.
struct Bell {
    rung: OwnedFd,
    over: Arc<AtomicBool>,
}

fn wait_and_catch(
    mut ring: HitRing,
    mut recorder: Option<(Recorder, Witness)>,
    mut choice: Choice,
    bell: &Bell,
    sender: &Sender<Caught>,
) -> Result<()> {
    let mut over = false;
    while !over {
        // What came while the watch ended is taken too.
        over = woken(&ring, &choice, bell)?;
        let (hits, called) = choice.of(ring.take()?, &ring, over)?;
        let is_news = !hits.is_empty() || called.is_some();
        let is_short = called.as_ref().is_some_and(|called| called.in_short);
        let mut caught = Caught {
            hits,
            called,
            pages: None,
            evidence: vec![],
            gone: vec![],
            stopped_by_kernel: false,
            running: clock::monotonic(),
        };
        if let Some((recorder, witness)) = &mut recorder {
            let is_whole = is_news && !is_short;
            catch(recorder, &mut caught, is_whole)?;
            match is_whole {
                true => (caught.evidence, caught.gone) = witness.records(),
                false => witness.keep(),
            }
        }
        if is_news && sender.send(caught).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sleeps until the ring holds a hit, somebody calls or rings; true when the watch is over.
fn woken(ring: &HitRing, choice: &Choice, bell: &Bell) -> Result<bool> {
    let fd = ring.fd();
    let mut fds = vec![
        PollFd::new(&fd, PollFlags::IN),
        PollFd::new(&bell.rung, PollFlags::IN),
    ];
    if let Choice::Called(listener) = choice {
        fds.push(PollFd::new(listener.calls(), PollFlags::IN));
    }
    let wait = choice.wait().map(|wait| Timespec {
        tv_sec: wait.as_ns() / 1_000_000_000,
        tv_nsec: wait.as_ns() % 1_000_000_000,
    });
    match poll(&mut fds, wait.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(Error::io("cannot wait for hits", errno.into())),
    }
    if fds[1].revents().contains(PollFlags::IN) {
        rustix::io::read(&bell.rung, &mut [0; 8]).ok();
    }
    Ok(bell.over.load(Ordering::Acquire))
}

/// The recorder runs again before its pages are copied: the next hit may be some microseconds away.
fn catch(recorder: &mut Recorder, caught: &mut Caught, is_whole: bool) -> Result<()> {
    caught.stopped_by_kernel = !recorder.is_running()?;
    // Where there is no hit, something else woke us, and the trigger took it for one.
    caught.running = match caught.stopped_by_kernel {
        true => recorder.resume()?,
        false => clock::monotonic(),
    };
    if is_whole {
        // The recorder runs: nobody who is watched is to wait for a copy of some megabytes.
        housekeeping::be_patient();
        let pages = recorder.drain(caught.running);
        housekeeping::be_prompt();
        caught.pages = Some(pages?);
        // Where this thread may not be a real-time one, whatever it waited for was taken for a hit.
        if !recorder.is_running()? {
            recorder.resume()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_shortest_of_the_worst_once_there_are_enough_and_only_rises() {
        let mut worst = Worst::new(3);
        let mut check = |us: i64, expect_us: Option<i64>| {
            let floor = worst.add(Duration::from_us(us));
            assert_eq!(floor.map(|floor| floor.as_ns() / 1000), expect_us, "{us}");
        };
        check(50, None);
        check(20, None);
        check(90, Some(20));
        check(10, Some(20));
        check(60, Some(50));
        check(60, Some(60));
        check(900, Some(60));
        check(901, Some(90));
    }
}
