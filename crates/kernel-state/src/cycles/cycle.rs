//! What is known of one task that a timer of its own wakes: the present cycle, its sleeps, the grid
//! of its releases.

use crate::bind::{Pause, STOPPED_ASLEEP_NS_MAX};
use crate::grid::Grid;
use crate::timer_place::TimerPlace;

/// So many of the usual times between two releases a task may sleep for lengths of time in a cycle:
/// it may try a lock again and again.
const NAPPING_GAPS_MAX: i64 = 16;
/// After that so many sleeps for a length of time are still inside its cycle; more of them are what
/// releases the task from now on.
const NAPS_MAX: u32 = 8;
/// So many sleeps beside the grid of its releases may be inside its cycle.
const BESIDE_MAX: u64 = 64;
/// So many releases in a row on the grid that it had before show that it never left that.
const BACK_MIN: u32 = 3;
/// What is tried again sleeps for as long as before, but for this part of it, and begins within
/// this part of a period behind that.
const AGAIN: i64 = 16;
/// So many of the last times between two releases tell whether these are steady.
const GAPS_MAX: usize = 64;

/// What was found of the cycles of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Cycles in which it slept, and was woken by others or after a length of time.
    pub cycles: u64,
    /// How often it did.
    pub sleeps: u64,
    /// The longest of these cycles, in nanoseconds: its begin and its end.
    pub worst_ns: (i64, i64),
    /// How many of them were longer than each of the limits.
    pub over: Vec<u64>,
}

/// A cycle with sleeps in it.
#[derive(Clone, Copy, Debug)]
pub struct Slept {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub sleeps: u64,
}

/// What a timer calls, where its events say it.
pub type Function = Option<u64>;

/// A timer that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiring {
    pub address: u64,
    pub function: Function,
}

/// Who woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Others,
    Timer(Expiring),
}

/// What is known of a task that a timer has woken.
#[derive(Debug)]
pub(super) struct Cycle {
    /// When the present one began.
    pub begin_ns: Option<i64>,
    /// When a timer released it last.
    pub released_ns: i64,
    /// When that was due, where it is overdue; else the same.
    pub paced_ns: i64,
    /// What that timer calls.
    pub function: Function,
    /// Where that timer lies.
    pub released_at: TimerPlace,
    /// The address of such a timer that the task has armed since it ran last.
    pub armed: Option<u64>,
    /// The timer that it armed last in a call of `futex`.
    pub armed_in_futex: Option<u64>,
    /// When that one is due, also where others have ended its sleep since.
    pub due_ns: Option<i64>,
    /// When it armed that one.
    pub armed_ns: i64,
    /// How long its last sleep beside the grid of its releases was to be.
    pub tried_ns: Option<i64>,
    /// Others ended such a sleep, which was tried again.
    pub tries_again: bool,
    /// The instant for which it set that timer, where that was past, as it had slept for others or
    /// for a length of time meanwhile: it is late since then, or that sleep was its due.
    pub overdue_ns: Option<i64>,
    /// The present cycle began so.
    pub behind: bool,
    /// Since when the last cycle is late, or began, that no length of time released.
    pub from_ns: i64,
    /// When others, or a length of time, last ended a sleep of it.
    pub slept_ns: i64,
    /// When the last sleep began that others ended.
    pub sleep_begin_ns: i64,
    /// That sleep, since whose end all its releases were overdue.
    pub caught_up: Option<(i64, i64)>,
    /// The address of the timer that it set last for a length of time, and not until a moment.
    pub nap: Option<u64>,
    /// So many more of these are sleeps inside its cycle.
    pub naps_left: u32,
    /// It slept with this one armed, and others woke it.
    pub in_time: Option<u64>,
    /// It has armed each timer that released it before it slept.
    pub always_arms: bool,
    /// When it slept last as if its work was done, and whether it still does.
    pub done_ns: i64,
    pub sleeps: bool,
    /// It sleeps inside its work.
    pub inside: bool,
    /// Others woke it last, from a sleep as if its work was done.
    pub by_others: bool,
    /// It was woken on its way to sleep.
    pub pending: Option<By>,
    /// When it was woken last.
    pub woken_ns: i64,
    /// It is stopped.
    pub halted: bool,
    /// It was woken to be stopped: whether it goes on with its sleep then, what it does next tells.
    pub perhaps_asleep: bool,
    /// How often others woke it in the present one.
    pub others: u64,
    /// On which its releases lie.
    pub grid: Grid,
    /// How often it slept until an instant beside that in the present cycle.
    pub beside: u64,
    /// More of these than a cycle has, or for longer: it has another pace, or is inside still.
    strayed: Option<Box<Strayed>>,
    /// The last cycle had such sleeps: it counts if the grid goes on.
    pub perhaps: Option<Slept>,
    pub gaps_ns: Vec<i64>,
    pub releases: u64,
    pub found: Inside,
}

/// A task's sleeps beside its grid.
#[derive(Debug)]
struct Strayed {
    /// The grid that it had before, and the times between its releases.
    grid: Grid,
    gaps_ns: Vec<i64>,
    /// What was one cycle then.
    slept: Slept,
    /// For when it slept last.
    due_ns: i64,
    /// So often in a row on the grid.
    back: u32,
}

impl Default for Cycle {
    fn default() -> Self {
        Cycle {
            begin_ns: None,
            released_ns: 0,
            paced_ns: 0,
            function: None,
            released_at: TimerPlace::default(),
            armed: None,
            armed_in_futex: None,
            due_ns: None,
            armed_ns: 0,
            tried_ns: None,
            tries_again: false,
            overdue_ns: None,
            behind: false,
            from_ns: i64::MAX,
            slept_ns: i64::MIN,
            sleep_begin_ns: i64::MIN,
            caught_up: None,
            nap: None,
            naps_left: 0,
            in_time: None,
            always_arms: true,
            done_ns: i64::MIN,
            sleeps: false,
            inside: false,
            by_others: false,
            pending: None,
            woken_ns: i64::MIN,
            halted: false,
            perhaps_asleep: false,
            others: 0,
            grid: Grid::default(),
            beside: 0,
            strayed: None,
            perhaps: None,
            gaps_ns: Vec::new(),
            releases: 0,
            found: Inside::default(),
        }
    }
}

impl Cycle {
    /// It sets a timer, for a length of time or until a moment; whether that is no release.
    pub fn arms(&mut self, address: u64, function: Function, is_nap: bool, in_futex: bool) -> bool {
        let is_nap = is_nap || in_futex && self.released_at.is_no_futex();
        if in_futex {
            self.armed_in_futex = Some(address);
        } else if self.was_in_futex(address) {
            self.armed_in_futex = None;
        }
        if self.function == function {
            self.armed = Some(address);
        }
        if is_nap {
            self.nap = Some(address);
        } else if self.nap == Some(address) {
            self.nap = None;
        }
        is_nap
    }

    /// Whether it armed the timer at `address` in a call of `futex`.
    pub fn was_in_futex(&self, address: u64) -> bool {
        self.armed_in_futex == Some(address)
    }

    /// It set its timer for that instant, until a moment where it is no nap.
    pub fn is_due(&mut self, due_ns: i64, now_ns: i64, is_nap: bool) {
        let slept = due_ns < self.slept_ns || self.behind && due_ns < self.released_ns;
        let is_past = !is_nap && self.from_ns < due_ns && due_ns < now_ns && slept;
        self.overdue_ns = is_past.then_some(due_ns);
    }

    /// Whether a sleep, whose timer is at `address` and due as the last one that it armed, is no
    /// wait for a release: its call is none of these, or neither its place nor its time is.
    pub fn slept_elsewhere(&self, address: u64) -> bool {
        if self.tries_again || self.was_in_futex(address) && self.released_at.is_no_futex() {
            return true;
        }
        let is_none = |due_ns| {
            let is_whole = self.grid.is_whole(due_ns, self.done_ns);
            self.is_elsewhere(address, due_ns) || self.grid.is_beside(due_ns) && !is_whole
        };
        self.due_ns.is_some_and(is_none)
    }

    /// Whether a timer at `address` that is due then is none of its releases.
    pub fn is_elsewhere(&self, address: u64, due_ns: i64) -> bool {
        let gap_ns = self.gaps_ns.last().copied();
        let is_early = |gap_ns: i64| (due_ns - self.paced_ns - gap_ns).abs() > gap_ns / 8;
        self.released_at.is_other(address) && gap_ns.is_some_and(is_early)
    }

    /// Whether a sleep until an instant, which is over, was inside the present cycle: it lay beside
    /// the grid of the releases. Many of those are another pace.
    pub fn slept_beside(&mut self, now_ns: i64) -> bool {
        let again = self.is_tried_again();
        let is_beside = |due_ns: &i64| again || self.grid.is_beside(*due_ns);
        let Some(due_ns) = self.due_ns.filter(is_beside) else {
            return false;
        };
        if self.grid.is_whole(due_ns, self.done_ns) {
            // What lay beside the grid before was the way to another one.
            if self.beside > 0 || self.perhaps.is_some() {
                self.leave_out();
            }
            return false;
        }
        let gap_ns = self.gaps_ns.last().copied().unwrap_or(0);
        let is_long = now_ns - self.released_ns > gap_ns * NAPPING_GAPS_MAX;
        if self.begin_ns.is_none() || is_long || self.beside >= BESIDE_MAX {
            self.strays();
            self.leave_out();
            self.grid.forget();
            return false;
        }
        self.beside += 1;
        self.tried_ns = Some(due_ns - self.armed_ns);
        if !again {
            self.sleep_begin_ns = self.done_ns;
        }
        self.slept_ns = now_ns;
        (self.armed, self.sleeps, self.by_others) = (None, false, false);
        true
    }

    /// Its sleeps lie beside its grid for too long to be counted as one cycle's. If it comes back
    /// to the grid, they were that.
    fn strays(&mut self) {
        if self.strayed.is_some() {
            return;
        }
        // Where it was lost sight of, its last release is known all the same.
        let begin_ns = self.begin_ns.unwrap_or(self.released_ns);
        self.strayed = Some(Box::new(Strayed {
            grid: self.grid.clone(),
            gaps_ns: self.gaps_ns.clone(),
            slept: Slept {
                begin_ns,
                end_ns: self.done_ns,
                sleeps: self.beside + self.others,
            },
            due_ns: begin_ns,
            back: 0,
        }));
    }

    /// It slept until `due_ns`. The cycle from its last release before its sleeps beside the grid
    /// to the end of the work before it is back on that.
    fn comes_back(&mut self, due_ns: i64) -> Option<Slept> {
        let done_ns = self.done_ns;
        let strayed = self.strayed.as_mut()?;
        let is_on = strayed.grid.follows(strayed.due_ns, due_ns);
        strayed.due_ns = due_ns;
        if strayed.back == 0 {
            strayed.slept.end_ns = done_ns;
        }
        if !is_on {
            strayed.back = 0;
            strayed.slept.sleeps += 1;
            return None;
        }
        strayed.back += 1;
        if strayed.back < BACK_MIN {
            return None;
        }
        let strayed = self.strayed.take()?;
        (self.grid, self.gaps_ns) = (strayed.grid, strayed.gaps_ns);
        Some(strayed.slept)
    }

    /// Whether its sleep is the last one, beside the grid, tried again: as long as that, and begun
    /// right behind it. Where it was to end says nothing then.
    pub fn is_tried_again(&self) -> bool {
        let (Some(due_ns), Some(tried_ns)) = (self.due_ns, self.tried_ns) else {
            return false;
        };
        let gap_ns = self.gaps_ns.last().copied().unwrap_or(0);
        let longer_ns = due_ns - self.armed_ns - tried_ns;
        let is_as_long = longer_ns.abs() <= tried_ns / AGAIN;
        let is_behind = self.armed_ns - self.slept_ns <= gap_ns / AGAIN;
        self.beside > 0 && is_as_long && is_behind
    }

    /// Whether a sleep for a length of time, which is over, was inside the present cycle.
    pub fn slept_inside(&mut self, now_ns: i64) -> bool {
        if self.begin_ns.is_none() || self.naps_left == 0 {
            return false;
        }
        let gap_ns = self
            .gaps_ns
            .last()
            .map_or(0, |gap_ns| gap_ns * NAPPING_GAPS_MAX);
        if now_ns - self.released_ns > gap_ns {
            self.naps_left -= 1;
        }
        self.others += 1;
        (self.armed, self.sleeps, self.by_others) = (None, false, false);
        true
    }

    /// A timer releases it. What it gives is a cycle that is known to have been one only now.
    pub fn released(&mut self, now_ns: i64, timer: Expiring, is_nap: bool) -> Option<Slept> {
        (self.tried_ns, self.tries_again) = (None, false);
        self.naps_left = if is_nap { 0 } else { NAPS_MAX };
        let overdue_ns = self.overdue_ns.take();
        self.caught_up = self.caught_up.filter(|_| overdue_ns.is_some());
        let due_ns = self.due_ns.filter(|_| !is_nap);
        let came_back = due_ns.and_then(|due_ns| self.comes_back(due_ns));
        match due_ns {
            Some(due_ns) => self.grid.released(due_ns),
            None => self.grid.forget(),
        }
        let begin_ns = overdue_ns.unwrap_or(now_ns);
        if self.releases > 0 {
            self.note_gap(begin_ns - self.paced_ns);
            // The first was armed before anything was known of it.
            self.always_arms &= self.armed.is_some();
        }
        self.releases += 1;
        self.function = timer.function;
        let in_futex = self.was_in_futex(timer.address);
        let was_known = self.released_at.is_no_futex();
        self.released_at.is_again(timer.address, in_futex);
        if self.released_at.is_no_futex() && !was_known {
            // The time-outs until now were among them.
            self.gaps_ns.clear();
        }
        self.released_ns = now_ns;
        self.begin_ns = Some(begin_ns);
        self.paced_ns = begin_ns;
        if !is_nap {
            self.from_ns = begin_ns;
        }
        self.behind = overdue_ns.is_some();
        self.others += u64::from(self.behind);
        (self.armed, self.in_time, self.sleeps) = (None, None, false);
        (self.due_ns, self.by_others) = (None, false);
        came_back
    }

    /// The sleep that others ended amid the present cycle, if it was as long as a whole one.
    pub fn slept_through(&self) -> Option<(i64, i64)> {
        let slept = self.others + self.beside > 0;
        let is_amid = self.begin_ns.is_some() && slept && self.by_others;
        let gap_ns = *self.gaps_ns.last().filter(|_| is_amid)?;
        let is_long = self.slept_ns.saturating_sub(self.sleep_begin_ns) >= gap_ns;
        is_long.then_some((self.sleep_begin_ns, self.slept_ns))
    }

    /// The task is gone. Where others woke it last, that was to end it, and no work of its cycle.
    pub fn ends(&mut self, now_ns: i64) {
        let by_others = std::mem::take(&mut self.by_others);
        if !by_others {
            self.done_ns = now_ns;
        } else if self.in_time.take().is_none() {
            self.others = self.others.saturating_sub(1);
        }
        self.sleeps = false;
    }

    /// It was due so much later than the release before. Where a length of time released it in
    /// between, the next may have been due before that.
    pub fn note_gap(&mut self, gap_ns: i64) {
        if gap_ns <= 0 {
            return;
        }
        if self.gaps_ns.len() < GAPS_MAX {
            self.gaps_ns.push(gap_ns);
        } else {
            let place = (self.releases % GAPS_MAX as u64) as usize;
            self.gaps_ns[place] = gap_ns;
        }
    }

    /// It is stopped. What woke it for that was no event that it slept for.
    pub fn stops(&mut self, now_ns: i64) {
        self.halted = true;
        let is_soon = now_ns.saturating_sub(self.woken_ns) <= STOPPED_ASLEEP_NS_MAX;
        if self.perhaps_asleep || !self.by_others || !is_soon {
            return;
        }
        (self.perhaps_asleep, self.by_others) = (true, false);
        match self.in_time.take() {
            Some(timer) => self.armed = Some(timer),
            None => self.others = self.others.saturating_sub(1),
        }
    }

    /// Whether it goes on with the sleep in which it was stopped: it had the CPU for a moment only.
    /// Else others have ended that sleep.
    pub fn goes_on(&mut self, pause: Pause, now_ns: i64) -> bool {
        if !std::mem::take(&mut self.perhaps_asleep) {
            return false;
        }
        self.sleeps = true;
        let is_soon = now_ns.saturating_sub(self.woken_ns) <= STOPPED_ASLEEP_NS_MAX;
        if pause == Pause::Done && is_soon {
            return true;
        }
        self.woken_by_others();
        false
    }

    pub fn woken_by_others(&mut self) {
        if !std::mem::take(&mut self.sleeps) {
            return;
        }
        self.by_others = true;
        if !self.tries_again {
            self.sleep_begin_ns = self.done_ns;
        }
        match self.armed.take() {
            // Whether that was a time-out of its sleep, what it does now tells.
            Some(timer) => self.in_time = Some(timer),
            None => self.others += 1,
        }
    }

    pub fn forget(&mut self) {
        self.leave_out();
        self.from_ns = i64::MAX;
    }

    pub fn leave_out(&mut self) {
        (self.begin_ns, self.caught_up) = (None, None);
        (self.others, self.beside, self.perhaps) = (0, 0, None);
        (self.armed, self.in_time, self.pending) = (None, None, None);
        (self.nap, self.overdue_ns, self.behind) = (None, None, false);
        (self.sleeps, self.inside) = (false, false);
        (self.halted, self.perhaps_asleep) = (false, false);
    }
}

impl Inside {
    /// Counts a cycle.
    pub fn takes(&mut self, slept: Slept, limits_ns: &[i64]) {
        let Slept {
            begin_ns,
            end_ns,
            sleeps,
        } = slept;
        self.cycles += 1;
        self.sleeps += sleeps;
        self.over.resize(limits_ns.len(), 0);
        for (over, limit_ns) in self.over.iter_mut().zip(limits_ns) {
            *over += u64::from(end_ns - begin_ns > *limit_ns);
        }
        if end_ns - begin_ns > self.worst_ns.1 - self.worst_ns.0 {
            self.worst_ns = (begin_ns, end_ns);
        }
    }
}
