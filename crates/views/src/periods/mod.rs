//! Periods over events: which open and close, with what they keep.
//!
//! The language is `expr`'s; here it meets the classes of a trace. Each event first closes periods,
//! the innermost first, then opens new ones; a period that ends takes its children with it.

mod cond;
mod value;

use event::{ClassId, EventClass, Record};
use expr::period::{Capture, EventPart, Period, Periods};

use cond::{Cond, Context, Keeps, Maker, Operand};
use value::Place;

pub use value::Kept;

/// A capture that was taken: its name, and the value if there was one.
pub type Captured = Vec<(String, Option<Kept>)>;

/// What happened to a period. Each has a number of its own.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// It opened.
    Begin {
        id: u64,
        /// The place of its definition.
        def: usize,
        parent: Option<u64>,
        captured: &'a Captured,
    },
    /// It closed: by itself, or with its parent or the trace.
    End {
        id: u64,
        completed: bool,
        captured: Captured,
    },
}

/// Periods that never close are not kept beyond so many.
const OPEN_MAX: usize = 1 << 20;

/// A period that is open.
#[derive(Debug)]
struct Open {
    id: u64,
    def: usize,
    /// What its definition and its children's speak of.
    kept: Vec<Option<Kept>>,
    children: Vec<Open>,
}

/// A definition and what it is in each class.
#[derive(Debug, Default)]
struct Def {
    children: Vec<usize>,
    keeps: Keeps,
}

/// A definition in one class.
#[derive(Debug)]
struct Bound {
    begin: Cond,
    end: Cond,
    begin_captures: Vec<(String, Option<Operand>)>,
    end_captures: Vec<(String, Option<Operand>)>,
    /// Where the values are that a period keeps when it begins.
    keeps: Vec<Option<Place>>,
}

/// Matches periods over the events of one trace, given in time order.
#[derive(Debug)]
pub(crate) struct Matcher {
    defs: Vec<Def>,
    roots: Vec<usize>,
    /// By class, then by definition; none for classes in which nothing begins or ends.
    bound: Vec<Option<Vec<Bound>>>,
    open: Vec<Open>,
    open_count: usize,
    next_id: u64,
    /// Periods that did not open because too many were open.
    pub refused: u64,
}

impl Matcher {
    pub fn new(periods: &Periods, classes: &[EventClass]) -> Matcher {
        let mut defs: Vec<Def> = periods.list().iter().map(|_| Def::default()).collect();
        let mut roots = Vec::new();
        for place in 0..defs.len() {
            match periods.parent(place) {
                Some(parent) => defs[parent].children.push(place),
                None => roots.push(place),
            }
        }
        // What a period must keep is known when all classes were looked at.
        let mut bound: Vec<Vec<Bound>> = Vec::with_capacity(classes.len());
        for class in classes {
            let in_class = (0..defs.len()).map(|place| bind(periods, place, class, &mut defs));
            bound.push(in_class.collect());
        }
        for (class, in_class) in classes.iter().zip(&mut bound) {
            for (def, bound) in defs.iter().zip(in_class) {
                let place = |part: &EventPart| Place::bind(part, class);
                bound.keeps = def.keeps.parts().iter().map(place).collect();
            }
        }
        let matters = |bound: &Bound| bound.begin.can_hold() || bound.end.can_hold();
        let bound = bound
            .into_iter()
            .map(|in_class| in_class.iter().any(matters).then_some(in_class));
        Matcher {
            defs,
            roots,
            bound: bound.collect(),
            open: Vec::new(),
            open_count: 0,
            next_id: 0,
            refused: 0,
        }
    }

    /// Takes in an event and tells what it did.
    pub fn event(&mut self, record: &impl Record, mut tell: impl FnMut(Turn<'_>)) {
        let ClassId(class) = record.class();
        let Some(Some(bound)) = self.bound.get(class as usize) else {
            return;
        };
        let mut open = std::mem::take(&mut self.open);
        let mut closed = 0;
        close(&mut open, &[], bound, record, &mut closed, &mut tell);
        self.open_count -= closed;
        let mut opener = Opener {
            defs: &self.defs,
            bound,
            record,
            next_id: self.next_id,
            room: OPEN_MAX - self.open_count,
            refused: 0,
        };
        let room = opener.room;
        opener.open(None, &mut open, &self.roots, &mut tell);
        self.open_count += room - opener.room;
        self.refused += opener.refused;
        self.next_id = opener.next_id;
        self.open = open;
    }

    /// The trace ends: what is open stays incomplete.
    pub fn finish(&mut self, mut tell: impl FnMut(Turn<'_>)) {
        abandon(std::mem::take(&mut self.open), &mut 0, &mut tell);
        self.open_count = 0;
    }
}

fn bind(periods: &Periods, place: usize, class: &EventClass, defs: &mut [Def]) -> Bound {
    let period: &Period = &periods.list()[place];
    let mut begin = std::mem::take(&mut defs[place].keeps);
    let mut none = Keeps::default();
    let parent_place = periods.parent(place);
    let mut parent = match parent_place {
        Some(parent) => std::mem::take(&mut defs[parent].keeps),
        None => std::mem::take(&mut none),
    };
    let mut maker = Maker {
        class,
        begins: true,
        begin: &mut begin,
        parent: &mut parent,
    };
    let captures = |maker: &mut Maker<'_>, captures: &[Capture]| {
        let one = |capture: &Capture| (capture.name.clone(), maker.operand(&capture.value));
        captures.iter().map(one).collect()
    };
    let begin_cond = maker.cond(&period.begin);
    let begin_captures = captures(&mut maker, &period.begin_captures);
    maker.begins = false;
    let end_cond = maker.cond(&period.end);
    let end_captures = captures(&mut maker, &period.end_captures);
    defs[place].keeps = begin;
    if let Some(place) = parent_place {
        defs[place].keeps = parent;
    }
    Bound {
        begin: begin_cond,
        end: end_cond,
        begin_captures,
        end_captures,
        keeps: Vec::new(),
    }
}

fn captured(
    captures: &[(String, Option<Operand>)],
    record: &impl Record,
    context: Context<'_>,
) -> Captured {
    let load = |operand: &Option<Operand>| operand.as_ref()?.load(record, context);
    let captures = captures.iter();
    captures
        .map(|(name, operand)| (name.clone(), load(operand)))
        .collect()
}

/// Closes what an event closes, the innermost first.
fn close(
    open: &mut Vec<Open>,
    parent: &[Option<Kept>],
    bound: &[Bound],
    record: &impl Record,
    closed: &mut usize,
    tell: &mut impl FnMut(Turn<'_>),
) {
    for period in open.iter_mut().filter(|period| !period.children.is_empty()) {
        let (kept, children) = (&period.kept, &mut period.children);
        close(children, kept, bound, record, closed, tell);
    }
    let ends = |period: &Open| {
        let context = Context {
            begin: &period.kept,
            parent,
        };
        bound[period.def].end.holds(record, context)
    };
    if !open.iter().any(ends) {
        return;
    }
    let all = std::mem::take(open);
    for period in all {
        if !ends(&period) {
            open.push(period);
            continue;
        }
        let context = Context {
            begin: &period.kept,
            parent,
        };
        let captured = captured(&bound[period.def].end_captures, record, context);
        abandon(period.children, closed, tell);
        *closed += 1;
        tell(Turn::End {
            id: period.id,
            completed: true,
            captured,
        });
    }
}

/// Closes periods that did not come to their end.
fn abandon(open: Vec<Open>, closed: &mut usize, tell: &mut impl FnMut(Turn<'_>)) {
    for period in open {
        abandon(period.children, closed, tell);
        *closed += 1;
        tell(Turn::End {
            id: period.id,
            completed: false,
            captured: Vec::new(),
        });
    }
}

/// Opens what an event opens, the outermost first.
struct Opener<'a, R> {
    defs: &'a [Def],
    bound: &'a [Bound],
    record: &'a R,
    next_id: u64,
    room: usize,
    refused: u64,
}

impl<R: Record> Opener<'_, R> {
    fn open(
        &mut self,
        parent: Option<(u64, &[Option<Kept>])>,
        open: &mut Vec<Open>,
        defs: &[usize],
        tell: &mut impl FnMut(Turn<'_>),
    ) {
        let context = Context {
            begin: &[],
            parent: parent.map_or(&[], |(_, kept)| kept),
        };
        for def in defs {
            let bound = &self.bound[*def];
            if !bound.begin.holds(self.record, context) {
                continue;
            }
            if self.room == 0 {
                self.refused += 1;
                continue;
            }
            self.room -= 1;
            let id = self.next_id;
            self.next_id += 1;
            let captured = captured(&bound.begin_captures, self.record, context);
            let load = |place: &Option<Place>| place.as_ref()?.load(self.record);
            open.push(Open {
                id,
                def: *def,
                kept: bound.keeps.iter().map(load).collect(),
                children: Vec::new(),
            });
            tell(Turn::Begin {
                id,
                def: *def,
                parent: parent.map(|(id, _)| id),
                captured: &captured,
            });
        }
        for period in open {
            let defs = self.defs;
            let children = &defs[period.def].children;
            if !children.is_empty() {
                let parent = Some((period.id, &period.kept[..]));
                self.open(parent, &mut period.children, children, tell);
            }
        }
    }
}
