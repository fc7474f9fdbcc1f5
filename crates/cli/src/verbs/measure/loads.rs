//! The loads of an evaluation: started, looked at, and what they did.

use std::time::Instant;

use event::{Duration, ErrorKind, Result};
use measure::journal::LoadState;
use measure::load::{self, Load, Proof, Running, Starved, State};

use crate::options::EvalOptions;
use crate::signals;

/// The loads that run, and what is known of those that do not.
pub(super) struct Loads {
    running: Vec<Running>,
    missing: Vec<Proof>,
    starved: Starved,
    begin: Instant,
    look: Duration,
    next: Duration,
    /// What they were at their end, and what they did.
    ended: Option<(Vec<LoadState>, Vec<Proof>)>,
}

impl Loads {
    /// Starts those that were asked for.
    ///
    /// # Errors
    /// For one that was named and is not installed, and what the operating system refused.
    pub(super) fn start(options: &EvalOptions) -> Result<Loads> {
        // From here on Ctrl-C ends a measurement, not us: loads are ended too.
        signals::take_over()?;
        let mut loads = Loads {
            running: Vec::new(),
            missing: Vec::new(),
            starved: Starved::default(),
            begin: Instant::now(),
            look: options.load_look,
            next: Duration::ZERO,
            ended: None,
        };
        for &one in &options.loads {
            match load::start(one, &options.load_plan) {
                Ok(running) => loads.running.push(running),
                Err(error) if error.kind() == ErrorKind::NotFound && !options.loads_named => {
                    let fix = error.fixed_by().unwrap_or_default();
                    let why = format!("{error}; {fix}, or name the others: --load");
                    loads.missing.push(Proof::missing(one, why));
                }
                Err(error) => return Err(error),
            }
        }
        loads.begin = Instant::now();
        Ok(loads)
    }

    /// Looks at them when it is time. Gives what to say of one that ended,
    /// once.
    pub(super) fn look(&mut self) -> Option<String> {
        let now = Duration::from_ns(self.begin.elapsed().as_nanos() as i64);
        if now < self.next {
            return None;
        }
        self.next = now + self.look;
        self.look_at(now)
    }

    fn look_at(&mut self, now: Duration) -> Option<String> {
        let look = |one: &mut Running| {
            let name = one.load().name();
            one.look(now)
                .map(|why| format!("the load {name} died: {why}"))
        };
        // All of them: each looks for itself.
        let ended: Vec<String> = self.running.iter_mut().filter_map(look).collect();
        self.starved.look(now, &self.running);
        (!ended.is_empty()).then(|| {
            let why = ended.join("; ");
            format!("{why}; nothing is proved from here on, Ctrl-C ends it")
        })
    }

    /// What each was until now.
    pub(super) fn states(&self) -> Vec<LoadState> {
        if let Some((states, _)) = &self.ended {
            return states.clone();
        }
        let state = |load: Load, state: &State| LoadState {
            name: load.name().to_owned(),
            state: state.name().to_owned(),
            why: state.why().map(str::to_owned),
        };
        let starved = self.starved.found();
        let running = self
            .running
            .iter()
            .map(|one| match (one.so_far(), &starved) {
                (State::Ran, Some(why)) => state(one.load(), &State::Idle(why.clone())),
                (so_far, _) => state(one.load(), &so_far),
            });
        let missing = self.missing.iter().map(|one| state(one.load, &one.state));
        running.chain(missing).collect()
    }

    /// Ends them, once: what follows a measurement need not wait for its CPU behind them.
    pub(super) fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.look_at(Duration::from_ns(self.begin.elapsed().as_nanos() as i64));
        let states = self.states();
        let starved = self.starved.found();
        self.running.iter_mut().for_each(Running::tell_end);
        let running = std::mem::take(&mut self.running).into_iter();
        let proofs = running.map(|one| {
            let mut proof = one.finish();
            if let Some(why) = &starved {
                proof.starve(why);
            }
            proof
        });
        let proofs = proofs.chain(std::mem::take(&mut self.missing)).collect();
        self.ended = Some((states, proofs));
    }

    /// The same, and says what they did.
    pub(super) fn finish(mut self) -> Vec<Proof> {
        self.end();
        self.ended.map_or_else(Vec::new, |(_, proofs)| proofs)
    }
}
