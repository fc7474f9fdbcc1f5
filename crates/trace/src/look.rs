//! Which classes have events, by a look at a trace's first ones.

use event::{ClassId, Result, TimeRange};

use crate::{Item, Trace};

/// So many events at most are looked at to learn which classes a trace has, see [`Trace::look`].
pub const LOOK_EVENTS_MAX: u64 = 1 << 15;

/// What a look has met.
#[derive(Debug)]
pub(crate) struct Met {
    /// In the order of their first events.
    classes: Vec<ClassId>,
    /// All events were looked at.
    is_all: bool,
}

impl Met {
    fn of(trace: &Trace) -> Result<Met> {
        let mut is_met = vec![false; trace.classes().len()];
        let (mut classes, mut seen) = (Vec::new(), 0);
        trace.cursor(TimeRange::ALL).each_while(|item| {
            if let Item::Event(event) = item {
                seen += 1;
                let class = event.class();
                match is_met.get_mut(class.0 as usize) {
                    Some(is_met) if !*is_met => {
                        *is_met = true;
                        classes.push(class);
                    }
                    _ => {}
                }
            }
            seen < LOOK_EVENTS_MAX
        })?;
        let is_all = seen < LOOK_EVENTS_MAX;
        Ok(Met { classes, is_all })
    }
}

impl Trace {
    /// Looks at which classes have events: a trace declares more than it has, trace-cmd all of the
    /// kernel's. Ends once `is_enough` says so of a class, or at [`LOOK_EVENTS_MAX`], which is
    /// short beside a walk over a large trace. Whether all events were seen. Events are looked at
    /// once, however many ask.
    ///
    /// # Errors
    /// As [`crate::Cursor::next`].
    pub fn look(&self, is_enough: impl FnMut(ClassId) -> bool) -> Result<bool> {
        let met = match self.met.get() {
            Some(met) => met,
            None => {
                let met = Met::of(self)?;
                self.met.get_or_init(|| met)
            }
        };
        let is_enough = met.classes.iter().copied().any(is_enough);
        Ok(!is_enough && met.is_all)
    }
}
