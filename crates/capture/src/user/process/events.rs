//! What a process describes while it is recorded: wanted events are switched on, and get classes.

use std::ops::Range;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::Result;
use expr::Expr;
use ring::Switch;

use super::{Common, Process};
use crate::clock::Effort;
use crate::user::filter::{self, Compiled};
use crate::user::wanted::{self, Verdict};
use crate::user::{app_contexts, metadata, refusals};

/// Descriptions that took longer are made way for others, each time but the first few.
const DESCRIBED_MAX: StdDuration = StdDuration::from_millis(5);
const DESCRIBED_SLOWLY_MAX: u32 = 3;
const REST_FACTOR: u32 = 4;
/// Why an event has no filter, and is not recorded.
const NO_ROOM: &str = "no room for more filters";

impl Process {
    /// What the process says of events that it cannot have.
    fn take_new_notes(&mut self, common: &Common) {
        let (table, rules) = (self.file.table(), &common.wanted.rules);
        let new = &table.notes[self.notes_read..];
        let told = new.iter().filter_map(|note| refusals::noted(note, rules));
        self.problems.extend(told);
        let of_process = new.iter().filter(|note| refusals::is_of_process(note));
        self.untold.extend(of_process.map(refusals::explained_note));
        self.notes_read = table.notes.len();
        let is_wanted = |event| wanted::verdict(rules, event) != Verdict::Unwanted;
        if !self.untold.is_empty() && table.events.iter().any(is_wanted) {
            let told = std::mem::take(&mut self.untold).into_iter();
            let is_new = |line: &String| !self.problems.contains(line);
            let told: Vec<_> = told.filter(is_new).collect();
            self.problems.extend(told);
        }
    }

    /// New descriptions: switches what is wanted, and makes classes of them.
    pub(super) fn take_new_events(&mut self, common: &Common) -> Result<()> {
        if !self.file.has_new_descriptions()? {
            return Ok(());
        }
        let effort = Effort::begin();
        let new = self.file.read_table()?;
        self.take_new_notes(common);
        if new.is_empty() {
            return Ok(());
        }
        self.take_events(new, common)?;
        let took = effort.spent();
        if took > DESCRIBED_MAX {
            self.described_slowly += 1;
            let rests = self.described_slowly > DESCRIBED_SLOWLY_MAX;
            self.rests_until = rests.then(|| StdInstant::now() + took * REST_FACTOR);
        }
        Ok(())
    }

    fn take_events(&mut self, new: Range<usize>, common: &Common) -> Result<()> {
        self.desk.learn(&self.file);
        let events = self.file.table().events[new.clone()].iter();
        self.described += events.map(|event| 1 + event.fields.len()).sum::<usize>();
        let mut ready = Vec::new();
        for place in new {
            let event = &self.file.table().events[place];
            match wanted::verdict(&common.wanted.rules, event) {
                Verdict::Unwanted => (),
                Verdict::Wanted => ready.push((place, Switch::On)),
                Verdict::If(expr) => match self.filter(place, &expr)? {
                    Ok(switch) => ready.push((place, switch)),
                    Err(problem) => {
                        let event = &self.file.table().events[place];
                        let name = format!("{}: {}", self.file.name(), event.full_name());
                        self.problems.push(format!("{name}: {problem}"));
                    }
                },
            }
        }
        self.switch_on(ready, common)?;
        let (classes, log_levels) = metadata::described(self.file.table());
        if let Some((writer, meta)) = &mut self.trace {
            meta.streams[0].classes = classes;
            meta.streams[0].log_levels = log_levels;
            writer.update(meta)?;
            for stream in self
                .lanes
                .iter_mut()
                .filter_map(|lane| lane.stream.as_mut())
            {
                writer.teach(stream);
            }
        }
        Ok(())
    }

    /// In one go, behind what takes time: who sees one of them recorded takes all for recorded.
    fn switch_on(&mut self, ready: Vec<(usize, Switch)>, common: &Common) -> Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        self.give_size(common)?;
        self.problems.extend(self.undersized.take());
        self.say_contexts(&ready, common);
        self.bound_memory(common)?;
        for (place, switch) in ready {
            self.switched.push(place);
            let event = &self.file.table().events[place];
            if !self.file.switch(event, switch)? {
                let name = format!("{}: {}", self.file.name(), event.full_name());
                self.problems.push(format!("{name}: {NO_ROOM}"));
            }
        }
        if let (Some(errno), false) = (self.file.without_memory(), self.lacks_memory) {
            self.lacks_memory = true;
            let (layout, folder) = (self.file.layout(), self.directory.path());
            let most = common.wanted.user_bytes;
            self.problems
                .push(refusals::without_memory(layout, errno, (folder, most)));
        }
        // The first that is switched on gives rings their memory.
        let mode = self.file.mode()?;
        self.add_lanes(mode, common)?;
        self.awaited = self.file.awaited()?;
        Ok(())
    }

    /// Says, once, where events that are `ready` have not the contexts that were asked for.
    fn say_contexts(&mut self, ready: &[(usize, Switch)], common: &Common) {
        if self.lacks_contexts {
            return;
        }
        let (file, wanted) = (&self.file, &common.wanted.app_contexts);
        let events = ready.iter().map(|(place, _)| &file.table().events[*place]);
        let missing = app_contexts::missing(wanted, events, file.layout());
        self.lacks_contexts = missing.is_some();
        self.problems.extend(missing);
    }

    /// Prepares the event at `place` for being recorded where `expr` holds; gives how it is to be
    /// switched, or the reason why it cannot be.
    fn filter(&mut self, place: usize, expr: &Expr) -> Result<std::result::Result<Switch, String>> {
        let (file, contexts) = (&self.file, &mut self.contexts);
        let event = &file.table().events[place];
        let namespace = |place| contexts.namespace(place, file);
        let filter = filter::compile(expr, event, file.layout().pid, namespace);
        Ok(match filter {
            Ok(Compiled::Process(filter)) => match file.place_filter(&filter)? {
                Some(place) => Ok(Switch::Filtered(place)),
                None => Err(NO_ROOM.to_owned()),
            },
            Ok(Compiled::Recorder(filter)) => {
                contexts.want_threads(file);
                self.filters.insert(place, *filter);
                Ok(Switch::On)
            }
            Err(error) => Err(error.to_string()),
        })
    }
}
