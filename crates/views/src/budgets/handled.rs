//! Handlers of interrupts and softirqs, and timers' functions, for budgets of how long they run and
//! how late they are called.

use std::collections::{HashMap, HashSet, VecDeque};

use event::evidence::slack_floor;
use event::{Duration, Error, ErrorKind, Result};
use expr::{Glob, Text};
use kernel_state::bind::{Families, Handler, Known};
use kernel_state::{Kernel, OtherClocks, ProcId, softirq_name};
use trace::EventView;

/// What is meant by its name or its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    name: Glob,
    number: Option<i64>,
}

impl Called {
    /// Reads a number, or a name in which `*`, `?` and `[a-z]` mean what they do in a shell.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when it is empty.
    pub fn parse(text: &str) -> Result<Called> {
        if text.is_empty() {
            let error = Error::new(ErrorKind::InvalidInput, "a budget has no name");
            let fix =
                "name it, as in 'irq 36', 'irq virtio*', 'softirq NET_RX', 'system call futex'";
            return Err(error.found("''").fix(fix));
        }
        Ok(Called {
            name: Glob::new(&Text::new(text)),
            number: text.parse().ok(),
        })
    }

    /// Whether it means what has this name and number.
    pub fn means(&self, name: &str, number: Option<i64>) -> bool {
        match (self.number, number) {
            (Some(wanted), Some(number)) => wanted == number,
            _ => self.name.matches(name.as_bytes()),
        }
    }
}

/// A handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Which {
    /// Of the interrupt with this number, and which of the devices' that share it
    /// ([`kernel_state::Actions`]).
    Irq(i64, usize),
    /// Of a vector, see [`event::evidence::Step::id`].
    Vector(i32),
    /// Of the softirq with this vector.
    Softirq(i64),
}

impl Which {
    /// Whether its ends are recorded.
    pub fn has_ends(self, families: &Families) -> bool {
        match self {
            Which::Irq(..) => families.irq_exit,
            Which::Vector(_) => true,
            Which::Softirq(_) => families.softirq_exit,
        }
    }

    /// As people read it, and its number where it has one.
    pub fn name(self, kernel: &Kernel) -> (String, Option<i64>) {
        match self {
            Which::Irq(number, action) => {
                let name = kernel.irq_actions().at(number, action);
                (name.to_owned(), Some(number))
            }
            Which::Vector(number) => {
                let name = kernel.binding().unlisted.name(number);
                (name.unwrap_or_default().to_owned(), None)
            }
            Which::Softirq(number) => {
                let name = u32::try_from(number).ok().and_then(softirq_name);
                (name.unwrap_or_default().to_owned(), Some(number))
            }
        }
    }
}

/// What an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handled {
    /// A handler that began then.
    Handler(Which, i64),
    /// A handler that was not seen to begin, and since when it has run at least; none where nobody
    /// knows.
    Unbegun(Which, Option<i64>),
    /// The wait for the function of a timer that was due then; who set it, as far as it is known.
    Timer(Option<ProcId>, i64),
}

/// A timer that was set.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// In its own clock.
    expires_ns: i64,
    /// What it wakes is due so much earlier; 0: the slack is too little to count.
    slack_ns: i64,
    /// When it was set.
    at_ns: i64,
    owner: Option<ProcId>,
}

/// Timers that are kept; a trace without expiries would let them grow for ever.
const TIMERS_MAX: usize = 1 << 16;
/// A timer that is pending over more sets of its clock than these is not followed over the first.
const CLOCK_SETS_MAX: usize = 16;
/// A wake-up by a later timer is not put down to it: that was set again where nobody saw it.
const LATENESS_NS_MAX: i64 = 10_000_000_000;

/// Follows all handlers and timers.
#[derive(Debug, Default)]
pub(super) struct Handlers {
    /// Else timers alone are followed.
    all: bool,
    open: HashMap<(u32, Which), i64>,
    /// CPUs that went from one task to another: what had begun before the recording is over.
    switched: HashSet<u32>,
    /// Handlers whose end was not recorded, and since when they ran.
    missed: Vec<(Which, i64)>,
    timers: HashMap<u64, Set>,
    /// The timer whose function ran last on a CPU: it may be set again before anything else is.
    expired: HashMap<u32, (u64, Option<ProcId>)>,
    clocks: OtherClocks,
    /// When a clock was seen to have been set forward, and by how much.
    clock_sets: VecDeque<(i64, Duration)>,
    /// The timer whose function runs on a CPU was due then.
    due_ns: Vec<Option<i64>>,
    /// From which slack on what a timer wakes is due before it.
    slack_floor_ns: i64,
}

impl Handlers {
    /// Follows all handlers, or timers alone; the least that a budget of a response allows.
    pub fn new(all: bool, least: Option<Duration>) -> Handlers {
        Handlers {
            all,
            slack_floor_ns: slack_floor(least.unwrap_or_default()).as_ns(),
            ..Handlers::default()
        }
    }

    /// Takes an event in; the kernel has taken it in before.
    pub fn event(&mut self, event: &EventView<'_>, kernel: &Kernel) -> Option<Handled> {
        let bound = kernel.binding().get(event.class()).copied()?;
        let Known::Handler(handler) = bound.known else {
            return None;
        };
        let (cpu, now_ns) = (kernel.place(&bound, event)?, kernel.now_ns());
        match handler.of(event)? {
            Handler::HrtimerStart {
                hrtimer,
                expires,
                soft,
                ..
            } => {
                let expires_ns = event.i64(expires);
                let slack_ns = soft.map_or(0, |soft| expires_ns.saturating_sub(event.i64(soft)));
                let timer = (event.u64(hrtimer), expires_ns, slack_ns);
                self.sets(cpu, timer, kernel);
            }
            Handler::HrtimerCancel { hrtimer } => {
                self.timers.remove(&event.u64(hrtimer));
            }
            Handler::HrtimerExpireEntry { hrtimer, now, .. } => {
                return self.expires(cpu, event.u64(hrtimer), event.i64(now), now_ns);
            }
            Handler::HrtimerExpireExit => self.leaves(cpu),
            handler if self.all => return self.handler(handler, event, cpu, kernel),
            _ => {}
        }
        None
    }

    fn handler(
        &mut self,
        handler: Handler,
        event: &EventView<'_>,
        cpu: u32,
        kernel: &Kernel,
    ) -> Option<Handled> {
        let now_ns = kernel.now_ns();
        match handler {
            Handler::IrqEntry { irq, name } => {
                let (irq, actions) = (event.i64(irq), kernel.irq_actions());
                let name = name.map_or(&b""[..], |name| event.text(name));
                let action = actions.place(irq, name).unwrap_or_default();
                self.begins(cpu, Which::Irq(irq, action), now_ns);
            }
            Handler::IrqExit { irq } => {
                let irq = event.i64(irq);
                let is_it = |which: &Which| matches!(which, Which::Irq(open, _) if *open == irq);
                let mut open = self.open.keys();
                let open = open.find(|(on, which)| *on == cpu && is_it(which));
                let which = open.map_or(Which::Irq(irq, 0), |(_, which)| *which);
                return Some(self.ends(cpu, which, kernel));
            }
            Handler::VectorEntry(number) => self.begins(cpu, Which::Vector(number), now_ns),
            Handler::VectorExit(number) => {
                return Some(self.ends(cpu, Which::Vector(number), kernel));
            }
            Handler::SoftirqEntry { vec } => {
                self.begins(cpu, Which::Softirq(event.i64(vec)), now_ns);
            }
            Handler::SoftirqExit { vec } => {
                return Some(self.ends(cpu, Which::Softirq(event.i64(vec)), kernel));
            }
            _ => {}
        }
        None
    }

    /// A CPU goes from one task to another: no interrupt's handler runs there any more.
    pub fn switches(&mut self, cpu: u32) {
        self.leaves(cpu);
        self.switched.insert(cpu);
        let missed = &mut self.missed;
        self.open.retain(|(on, which), begin_ns| {
            let goes_on = *on != cpu || matches!(which, Which::Softirq(_));
            if !goes_on {
                missed.push((*which, *begin_ns));
            }
            goes_on
        });
    }

    /// Handlers of which that was found since the last time.
    pub fn missed(&mut self) -> Vec<(Which, i64)> {
        std::mem::take(&mut self.missed)
    }

    /// No timer's function runs on a CPU.
    pub fn leaves(&mut self, cpu: u32) {
        if let Some(due_ns) = self.due_ns.get_mut(cpu as usize) {
            *due_ns = None;
        }
    }

    /// When the timer was due whose function runs on a CPU.
    pub fn due_on(&self, cpu: u32) -> Option<i64> {
        self.due_ns.get(cpu as usize).copied().flatten()
    }

    /// Events were lost: timers may have been set anew unseen.
    pub fn lost(&mut self) {
        self.timers.clear();
        self.expired.clear();
        self.due_ns.clear();
    }

    /// Handlers that are under way: on which CPU, and since when.
    pub fn under_way(&self) -> impl Iterator<Item = (u32, Which, i64)> {
        let open = self.open.iter();
        open.map(|((cpu, which), begin_ns)| (*cpu, *which, *begin_ns))
    }

    fn begins(&mut self, cpu: u32, which: Which, now_ns: i64) {
        let before = self.open.insert((cpu, which), now_ns);
        self.missed.extend(before.map(|begin_ns| (which, begin_ns)));
    }

    fn ends(&mut self, cpu: u32, which: Which, kernel: &Kernel) -> Handled {
        match self.open.remove(&(cpu, which)) {
            Some(begin_ns) => Handled::Handler(which, begin_ns),
            None => Handled::Unbegun(which, self.begun_before_ns(cpu, which, kernel)),
        }
    }

    /// Since when a handler that was not seen to begin has run at least: it had begun when the
    /// recording did, unless its CPU has had a switch since, or begins are not recorded.
    fn begun_before_ns(&self, cpu: u32, which: Which, kernel: &Kernel) -> Option<i64> {
        let families = &kernel.families();
        let has_begins = match which {
            Which::Irq(..) => families.irq,
            Which::Vector(_) => families.vector,
            Which::Softirq(_) => families.softirq,
        };
        let begun_ns = kernel.begun_ns(cpu).filter(|_| has_begins)?;
        (!self.switched.contains(&cpu)).then_some(begun_ns)
    }

    fn sets(&mut self, cpu: u32, (timer, expires_ns, slack_ns): (u64, i64, i64), kernel: &Kernel) {
        let again = self.expired.remove(&cpu);
        let again = again.filter(|(expired, _)| *expired == timer);
        let in_handler = self.open.keys().any(|(on, _)| *on == cpu);
        let known = self.timers.get(&timer).and_then(|set| set.owner);
        let owner = match again {
            Some((_, owner)) => owner,
            // Whoever has the CPU meanwhile has nothing to do with it.
            None if in_handler => known,
            None => kernel.current(cpu),
        };
        if self.timers.len() >= TIMERS_MAX {
            self.timers.clear();
        }
        let set = Set {
            expires_ns,
            slack_ns: match slack_ns >= self.slack_floor_ns {
                true => slack_ns,
                false => 0,
            },
            at_ns: kernel.now_ns(),
            owner,
        };
        self.timers.insert(timer, set);
    }

    /// A timer's function is called; its clock shows `base_now_ns`.
    fn expires(&mut self, cpu: u32, timer: u64, base_now_ns: i64, now_ns: i64) -> Option<Handled> {
        let set = self.timers.remove(&timer);
        let owner = set.and_then(|set| set.owner);
        self.expired.insert(cpu, (timer, owner));
        self.leaves(cpu);
        let clock = self.clocks.reads(base_now_ns, now_ns);
        if let Some(by) = clock.set {
            self.clock_sets.truncate(CLOCK_SETS_MAX - 1);
            self.clock_sets.push_front((now_ns, by));
        }
        let set = set?;
        let (ahead_ns, set_by_ns) = match clock.ahead_ns {
            Some(ahead_ns) => (ahead_ns, self.clock_set_since_ns(set.at_ns)),
            None => (0, 0),
        };
        let late_ns = now_ns
            .saturating_add(ahead_ns)
            .saturating_sub(set.expires_ns);
        // One that was set behind its instant is due at once, by its clock at that time.
        let first_ns = set.at_ns.saturating_sub(set_by_ns);
        let due_ns = now_ns.saturating_sub(late_ns.max(0)).max(first_ns);
        // Slack is the owner's doing, and no part of how late the timer was.
        let since_ns = late_ns.saturating_add(set.slack_ns).max(0);
        let release_ns = now_ns.saturating_sub(since_ns).max(first_ns);
        if now_ns - release_ns <= LATENESS_NS_MAX {
            let cpu = cpu as usize;
            self.due_ns.resize(self.due_ns.len().max(cpu + 1), None);
            self.due_ns[cpu] = Some(release_ns);
        }
        Some(Handled::Timer(owner, due_ns))
    }

    /// By how much clocks were set forward since.
    fn clock_set_since_ns(&self, since_ns: i64) -> i64 {
        let sets = self.clock_sets.iter();
        let since = sets.take_while(|(at_ns, _)| *at_ns >= since_ns);
        since.fold(0, |sum_ns, (_, by)| sum_ns.saturating_add(by.as_ns()))
    }
}
