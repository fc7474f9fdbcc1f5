//! Counters: an integer field of an event over time, which who looks chooses; and which there are.

use std::sync::Arc;

use event::{ClassId, Error, ErrorKind, EventClass, FieldId, FieldType, Result, Scope, TimeRange};
use timeline::{Series, TrackId};
use trace::Item;

use crate::answers::{Counter, Counters, Fields, Names};
use crate::cache::Change;
use crate::counted::Counted;
use crate::question::Words;
use crate::view::View;

/// Counters of one question.
const COUNTERS_MAX: usize = 16;
/// Numbers of a counter; behind them it is taken to have no more, and says so.
const NUMBERS_MAX: usize = 4_000_000;
/// Fields that are listed.
const FIELDS_MAX: usize = 5_000;
/// Names that are listed.
const NAMES_MAX: usize = 20_000;

impl View {
    /// What the `counters` of a question are; none for one that is not there.
    pub(crate) fn counted(&self, words: &Words, tracks: &[TrackId]) -> Vec<Option<Arc<Counted>>> {
        let is_asked = |place: usize| tracks.contains(&TrackId::Counter(place as u32));
        // What is read now of a trace that has changed would be of another one.
        let mut is_stale = None;
        let mut counter =
            |name: &str| match *is_stale.get_or_insert_with(|| self.change() == Change::Other) {
                true => self.counters.known(name),
                false => self.counter(name).ok(),
            };
        let names = names(words).enumerate();
        names
            .map(|(place, name)| is_asked(place).then(|| counter(name)).flatten())
            .collect()
    }

    /// `counters`: each that is asked for, or why it cannot be had.
    pub(crate) fn counters(&self, words: &Words) -> Counters {
        let counter = |name: &str| {
            let name_told = event::plain_text(name.as_bytes());
            match self.counter(name) {
                Ok(counted) => Counter {
                    name: name_told,
                    count: counted.series.len(),
                    least: counted.extent.map(|(least, _)| least),
                    most: counted.extent.map(|(_, most)| most),
                    cut: counted.cut,
                    error: None,
                },
                Err(error) => Counter {
                    name: name_told,
                    count: 0,
                    least: None,
                    most: None,
                    cut: false,
                    error: Some(format!("{error:#}")),
                },
            }
        };
        Counters {
            counters: names(words).map(counter).collect(),
        }
    }

    fn counter(&self, name: &str) -> Result<Arc<Counted>> {
        let field = self.integer_field(name)?;
        self.counters.get(name, || self.count(&field))
    }

    /// Walks over the classes of an event.
    fn count(&self, of: &[(ClassId, FieldId)]) -> Result<Counted> {
        let field_of = |class: ClassId| of.iter().find(|(id, _)| *id == class);
        let wanted = |class: ClassId| field_of(class).is_some();
        let mut cursor = self.trace.cursor_of(TimeRange::ALL, wanted);
        let (mut series, mut cut, mut extent) = (Series::default(), false, None);
        let mut lost_ns = Vec::new();
        while let Some(item) = cursor.next()? {
            match item {
                Item::Event(event) => {
                    let Some((_, field)) = field_of(event.class()) else {
                        continue;
                    };
                    if series.len() >= NUMBERS_MAX {
                        cut = true;
                        lost_ns.push(self.trace.wall_ns(event.time()));
                        break;
                    }
                    let value = self.integer(&event, *field);
                    let (least, most) = extent.unwrap_or((value, value));
                    extent = Some((value.min(least), value.max(most)));
                    series.push(self.trace.wall_ns(event.time()), value);
                }
                Item::Lost(lost) if lost.hides_what_happened() => {
                    lost_ns.push(self.trace.wall_ns(lost.range.begin));
                }
                Item::Lost(_) | Item::Damage(_) => {}
            }
        }
        series.finish(lost_ns);
        Ok(Counted {
            series,
            cut,
            extent,
        })
    }

    /// What is greater than any signed number is taken for the greatest of these.
    fn integer(&self, event: &trace::EventView<'_>, field: FieldId) -> i64 {
        let class = self.trace.classes().get(event.class().0 as usize);
        let field_of = class.and_then(|class| class.fields.get(usize::from(field.0)));
        match field_of.and_then(|field| integer_of(&field.ty)) {
            Some(integer) if integer.signed => event.i64(field),
            _ => i64::try_from(event.u64(field)).unwrap_or(i64::MAX),
        }
    }

    /// Where `event.field` is, in each class of that event.
    fn integer_field(&self, name: &str) -> Result<Vec<(ClassId, FieldId)>> {
        let found = name.rsplit_once('.').map(|(event, field)| {
            let classes = self.trace.classes().iter();
            let of_event = classes.filter(|class| class.name == event);
            let place = |class: &EventClass| {
                let place = class.field(field)?;
                integer_of(&class.fields[usize::from(place.0)].ty)?;
                Some((class.id, place))
            };
            of_event.filter_map(place).collect::<Vec<_>>()
        });
        let found = found.filter(|found| !found.is_empty());
        found.ok_or_else(|| {
            let told: String = name.chars().take(80).collect();
            Error::new(ErrorKind::InvalidInput, "no integer field of an event")
                .found(format!("'{told}'"))
                .fix("say event.field, as /api/v1/fields lists them")
        })
    }

    /// `fields`: all integer fields of events, as counters are asked for, and all fields' names.
    pub(crate) fn fields(&self) -> Fields {
        let (mut counters, mut columns) = (Vec::new(), Vec::new());
        for class in self.trace.classes() {
            for field in class.fields.iter() {
                if matches!(field.scope, Scope::PacketContext | Scope::PacketHeader) {
                    continue;
                }
                columns.push(field.name.to_string());
                if integer_of(&field.ty).is_some() && counters.len() < FIELDS_MAX {
                    counters.push(format!("{}.{}", class.name, field.name));
                }
            }
        }
        for list in [&mut counters, &mut columns] {
            list.sort_unstable();
            list.dedup();
            list.truncate(FIELDS_MAX);
        }
        Fields { counters, columns }
    }

    /// `names`: of the events and spans of applications, by the numbers in their tracks.
    pub(crate) fn user_names(&self) -> Names {
        let index = self.index();
        let names = index.user_names.iter().take(NAMES_MAX);
        Names {
            names: names.cloned().collect(),
        }
    }
}

fn names(words: &Words) -> impl Iterator<Item = &str> {
    let names = words.text("counters").split(',');
    names.filter(|name| !name.is_empty()).take(COUNTERS_MAX)
}

fn integer_of(ty: &FieldType) -> Option<&event::Integer> {
    match ty {
        FieldType::Integer(integer)
        | FieldType::Enum(integer, _)
        | FieldType::Bool(integer)
        | FieldType::Flags(integer, _) => Some(integer),
        _ => None,
    }
}
