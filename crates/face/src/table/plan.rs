//! Which columns a table has, and which fields of which class go where.

use std::collections::HashMap;
use std::sync::Arc;

use event::{EventClass, Field, FieldId, FieldType, Result};
use expr::{Program, Wants};
use trace::{EventView, Trace};

use super::column::Column;
use super::kind::ColumnKind;
use crate::accessor::{Kind, unknown_field};
use crate::fields::visible_fields;

/// What every event has: time on the trace's clock, wall clock, CPU, name.
const TIME: &str = "time_ns";
const WALL_TIME: &str = "wall_time";
const CPU: &str = "cpu";
const NAME: &str = "event";
/// These come first when nobody chose.
const COMMON: [&str; 3] = [TIME, CPU, NAME];

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Plan {
    pub columns: Vec<ColumnPlan>,
    /// Columns that every event has a value for, or none by itself.
    pub common: Box<[(usize, Source)]>,
    /// By class: what its events put where.
    pub moves: Vec<Box<[Move]>>,
    /// The names of all events, each once.
    pub names: Arc<[String]>,
    /// By class: its place in the names.
    pub name_places: Box<[u32]>,
}

/// One column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub name: String,
    pub kind: ColumnKind,
    pub source: Source,
}

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    Time,
    WallTime,
    Cpu,
    Name,
    /// Each class has its own [`Move`].
    Field,
}

/// A field of a class and the column that it goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub column: u32,
    pub field: FieldId,
    pub load: Load,
}

/// How a value is loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    Bits,
    Float,
    Text,
    Value,
}

impl Plan {
    /// The named columns, or all: of the classes that `program` can want.
    ///
    /// # Errors
    /// [`event::ErrorKind::NotFound`] for a column that no class has.
    pub fn new(trace: &Trace, program: Option<&Program>, names: Option<&[String]>) -> Result<Plan> {
        let wanted = |class: &EventClass| {
            program.is_none_or(|program| program.wants(class.id) != Wants::Never)
        };
        let mut columns = ColumnSet::default();
        match names {
            None => {
                COMMON.iter().for_each(|name| columns.add_common(name));
                for class in trace.classes().iter().filter(|class| wanted(class)) {
                    for (_, field) in visible_fields(class) {
                        columns.add_field(field);
                    }
                }
            }
            Some(names) => {
                for name in names {
                    columns.add_common(name);
                    let field = field_of_column(name);
                    for class in trace.classes().iter().filter(|class| wanted(class)) {
                        let found = class.field(field);
                        let found = found.and_then(|id| class.fields.get(usize::from(id.0)));
                        found.into_iter().for_each(|field| columns.add_field(field));
                    }
                    let known = |class: &EventClass| class.field(field).is_some();
                    if !columns.places.contains_key(name) {
                        if !trace.classes().iter().any(known) {
                            return Err(unknown_field(trace, field));
                        }
                        // Some class has it, though none that the filter wants.
                        columns.add(name.clone(), ColumnKind::Text, Source::Field);
                    }
                }
            }
        }
        let moves = trace.classes().iter().map(|class| columns.moves(class));
        let common = columns.columns.iter().enumerate();
        let common = common.map(|(place, column)| (place, column.source));
        let common = common
            .filter(|(_, source)| *source != Source::Field)
            .collect();
        let (names, name_places) = event_names(trace);
        Ok(Plan {
            moves: moves.collect(),
            columns: columns.columns,
            common,
            names,
            name_places,
        })
    }

    /// Adds an event as row number `row`; returns by how many bytes that have no fixed place the
    /// columns grew.
    #[inline]
    pub fn add_row(
        &self,
        trace: &Trace,
        event: &EventView<'_>,
        columns: &mut [Column],
        row: usize,
    ) -> usize {
        let class = event.class().0 as usize;
        for (place, source) in &self.common {
            let column = &mut columns[*place];
            match source {
                Source::Field => {}
                Source::Time => column.push_bits(event.time().as_ns() as u64),
                Source::WallTime => column.push_bits(trace.wall_ns(event.time()) as u64),
                Source::Cpu => match event.cpu() {
                    Some(cpu) => column.push_bits(u64::from(cpu.0)),
                    None => column.pad(row + 1),
                },
                Source::Name => {
                    let place = self.name_places.get(class).copied();
                    column.push_bits(u64::from(place.unwrap_or(0)));
                }
            }
        }
        let moves = self.moves.get(class).map_or(&[][..], |moves| &**moves);
        let grown = moves.iter().map(|field| field.apply(event, columns, row));
        grown.sum()
    }
}

/// The names of the events, each once, and for each class which it has.
fn event_names(trace: &Trace) -> (Arc<[String]>, Box<[u32]>) {
    let mut places = HashMap::new();
    let mut names = Vec::new();
    let mut place = |class: &EventClass| {
        *places.entry(class.name.clone()).or_insert_with(|| {
            names.push(class.name.clone());
            names.len() as u32 - 1
        })
    };
    let by_class = trace.classes().iter().map(&mut place).collect();
    (names.into(), by_class)
}

/// A field that has the name of what every event has goes to a column with a `_` behind it.
fn column_of_field(name: &str) -> String {
    let taken = common(name).is_some();
    format!("{name}{}", if taken { "_" } else { "" })
}

fn field_of_column(name: &str) -> &str {
    let bare = name.strip_suffix('_');
    bare.filter(|bare| common(bare).is_some()).unwrap_or(name)
}

fn common(name: &str) -> Option<(ColumnKind, Source)> {
    let signed = true;
    match name {
        TIME => Some((ColumnKind::Integer { bits: 64, signed }, Source::Time)),
        WALL_TIME => Some((ColumnKind::WallTime, Source::WallTime)),
        CPU => Some((ColumnKind::Integer { bits: 32, signed }, Source::Cpu)),
        NAME => Some((ColumnKind::Name, Source::Name)),
        _ => None,
    }
}

#[derive(Default)]
struct ColumnSet {
    columns: Vec<ColumnPlan>,
    places: HashMap<String, usize>,
}

impl ColumnSet {
    fn add_common(&mut self, name: &str) {
        if let Some((kind, source)) = common(name) {
            self.add(name.to_owned(), kind, source);
        }
    }

    fn add(&mut self, name: String, kind: ColumnKind, source: Source) {
        if let Some(place) = self.places.get(&name) {
            let column = &mut self.columns[*place];
            if column.source == Source::Field {
                column.kind = std::mem::replace(&mut column.kind, ColumnKind::Text).with(kind);
            }
            return;
        }
        self.places.insert(name.clone(), self.columns.len());
        self.columns.push(ColumnPlan { name, kind, source });
    }

    fn add_field(&mut self, field: &Field) {
        let name = column_of_field(&field.name);
        self.add(name, ColumnKind::of(&field.ty), Source::Field);
    }

    fn moves(&self, class: &EventClass) -> Box<[Move]> {
        let to = |(place, field): (usize, &Field)| {
            let first = class.field(&field.name)?;
            let column = *self.places.get(&column_of_field(&field.name))?;
            let kind = &self.columns.get(column)?.kind;
            (usize::from(first.0) == place).then(|| Move {
                column: column as u32,
                field: first,
                load: Load::of(&field.ty, kind),
            })
        };
        class.fields.iter().enumerate().filter_map(to).collect()
    }
}

impl Load {
    /// The fast ways are for values that go into the column as they are.
    fn of(ty: &FieldType, column: &ColumnKind) -> Load {
        let bool_type = matches!(ty, FieldType::Bool(_));
        match (Kind::of(ty), column) {
            (Kind::Signed | Kind::Unsigned, ColumnKind::Integer { .. }) if !bool_type => Load::Bits,
            (Kind::Float, ColumnKind::Float) => Load::Float,
            (Kind::Text, ColumnKind::Text) => Load::Text,
            _ => Load::Value,
        }
    }
}

impl Move {
    /// Puts the field's value where it belongs, as value number `row`; returns by how many bytes
    /// that have no fixed place the column grew.
    #[inline]
    fn apply(&self, event: &EventView<'_>, columns: &mut [Column], row: usize) -> usize {
        let column = &mut columns[self.column as usize];
        if column.len < row {
            column.pad(row);
        }
        match self.load {
            Load::Bits => column.push_bits(event.u64(self.field)),
            Load::Float => column.push_float(event.f64(self.field)),
            Load::Text => {
                let text = event.text(self.field);
                column.push_blob(text);
                return text.len();
            }
            Load::Value => {
                let before = column.size_bytes();
                column.push_value(&event.value(self.field));
                return column.size_bytes() - before;
            }
        }
        0
    }
}
