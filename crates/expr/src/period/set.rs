//! All periods of one question: their names, their parents and what to keep of them.

use event::{Error, ErrorKind, Result};

use super::{Captures, EventOf, Period};

/// Definitions that fit together; a parent stands before its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Periods {
    list: Vec<Period>,
    /// The place of each one's parent.
    parents: Vec<Option<usize>>,
}

/// Each is asked at every event.
const PERIODS_MAX: usize = 256;

impl Periods {
    /// Reads definitions and captures, as `--period` and `--period-captures` take them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when one cannot be read, when two have one name, or when a
    /// parent of a capture's value is missing; [`ErrorKind::NotFound`] for a parent or a period
    /// that was not defined before.
    pub fn parse(periods: &[impl AsRef<str>], captures: &[impl AsRef<str>]) -> Result<Periods> {
        let mut all = Periods::default();
        for text in periods {
            all.add(Period::parse(text.as_ref())?)?;
        }
        for text in captures {
            all.capture(Captures::parse(text.as_ref())?)?;
        }
        Ok(all)
    }

    /// Adds a definition.
    ///
    /// # Errors
    /// As [`Periods::parse`].
    pub fn add(&mut self, period: Period) -> Result<()> {
        if self.list.len() >= PERIODS_MAX {
            let what = format!("there are more than {PERIODS_MAX} periods");
            return Err(Error::new(ErrorKind::InvalidInput, what).fix("ask in several runs"));
        }
        if let Some(name) = &period.name
            && self.place(name).is_some()
        {
            let what = format!("two periods are called '{name}'");
            let error = Error::new(ErrorKind::InvalidInput, what).found(period.to_string());
            return Err(error.fix("give one another name"));
        }
        let parent = match &period.parent {
            None => None,
            Some(name) => Some(self.place(name).ok_or_else(|| self.no_period(name))?),
        };
        self.parents.push(parent);
        self.list.push(period);
        Ok(())
    }

    /// Adds captures to the period that they name.
    ///
    /// # Errors
    /// As [`Periods::parse`].
    pub fn capture(&mut self, captures: Captures) -> Result<()> {
        let refused = |what: String, fix: &str| {
            let error = Error::new(ErrorKind::InvalidInput, what);
            Err(error.found(captures.to_string()).fix(fix))
        };
        let name = &captures.period;
        let place = self.place(name).ok_or_else(|| self.no_period(name))?;
        let period = &mut self.list[place];
        if !period.begin_captures.is_empty() || !period.end_captures.is_empty() {
            return refused(
                format!("the captures of '{name}' are given twice"),
                "join them",
            );
        }
        let mut values = captures.begin.iter().chain(&captures.end);
        if period.parent.is_none() && values.any(|c| c.value.of == EventOf::ParentBegin) {
            return refused(
                format!("the period '{name}' has no parent"),
                "capture $begin.$evt.…",
            );
        }
        period.begin_captures = captures.begin;
        period.end_captures = captures.end;
        Ok(())
    }

    /// The definitions, in their order.
    pub fn list(&self) -> &[Period] {
        &self.list
    }

    /// The place of the parent of the definition at `place`, which is before it.
    pub fn parent(&self, place: usize) -> Option<usize> {
        self.parents.get(place).copied().flatten()
    }

    /// The names from the outermost parent to the definition at `place`, as in `switch/irq`; a
    /// definition without a name gives an empty one.
    pub fn path(&self, place: usize) -> String {
        let mut names = Vec::new();
        let mut next = Some(place);
        while let Some(place) = next {
            let name = self
                .list
                .get(place)
                .and_then(|period| period.name.as_deref());
            names.push(name.unwrap_or_default());
            next = self.parent(place);
        }
        names.reverse();
        names.join("/")
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.list
            .iter()
            .position(|period| period.name.as_deref() == Some(name))
    }

    fn no_period(&self, name: &str) -> Error {
        let names: Vec<&str> = self.list.iter().filter_map(|p| p.name.as_deref()).collect();
        let found = match names.is_empty() {
            true => "none has a name".to_owned(),
            false => names.join(", "),
        };
        let what = format!("no period before this is called '{name}'");
        Error::new(ErrorKind::NotFound, what)
            .found(found)
            .fix("define it first, with --period")
    }
}
