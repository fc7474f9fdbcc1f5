//! Events of this machine: where a program is attached to them, and where their fields are.

use std::mem::offset_of;

use abi::trackers::{PAIR_ARGUMENTS, PAIR_SITES, RawPairFrame};
use bpf_host::trackers::{MarkSite, PairPlace};
use event::{ClassId, Error, ErrorKind, EventClass, Field, FieldType, Integer, Result, Scope};
use expr::kernel::{Layout, Place};
use ftrace::Tracefs;
use ftrace::lttng::{Plan, Source};
use symbols::Marker;

use super::mark;
use super::spec::{Spec, What};
use crate::kernel_filter::with_contents;
use crate::programs::{self, ProgramFile};
use crate::select::named_event;

/// Arguments that are passed in registers.
const REGISTERS: usize = 6;

/// An event that was found.
pub(super) struct Event {
    /// What people call it.
    pub name: String,
    pub place: PairPlace,
    pub layout: Layout,
}

impl Event {
    pub(super) fn find(spec: &Spec<'_>) -> Result<Event> {
        match &spec.what {
            What::Tracepoint(name) => tracepoint(name),
            What::Function {
                file,
                function,
                returns,
            } => function_of(file, function, *returns),
            What::Mark {
                file,
                provider,
                name,
            } => mark_of(file, provider, name),
        }
    }
}

/// A tracepoint by the kernel's name or by LTTng's.
fn tracepoint(typed: &str) -> Result<Event> {
    let tracefs = Tracefs::find()?;
    let available = tracefs.available_events()?;
    let event = named_event(typed, &available)?;
    let format = tracefs.format(event)?;
    let (plan, class) = Plan::compile(&format);
    let fields = class.fields.iter().zip(plan.sources());
    let recorded = with_contents(&format, &class.name);
    let places = fields.map(|(field, source)| {
        let has_contents = |recorded: &EventClass| {
            let recorded = recorded
                .field(&field.name)
                .map(|at| &recorded.fields[usize::from(at.0)].ty);
            recorded.is_some_and(|ty| !matches!(ty, FieldType::Integer(_)))
        };
        match recorded.as_ref().is_some_and(has_contents) {
            true => Place::Address,
            false => place(&field.ty, source),
        }
    });
    Ok(Event {
        name: class.name.clone(),
        place: PairPlace::Tracepoint {
            system: event.system.clone(),
            name: event.name.clone(),
        },
        layout: Layout {
            places: places.collect(),
            class,
            in_frame: false,
        },
    })
}

/// Where the tid of the running task is in every record, which programs may not read.
const COMMON_PID_AT: u32 = 4;

fn place(ty: &FieldType, source: Source) -> Place {
    match (ty, source) {
        (
            _,
            Source::Integer {
                at: COMMON_PID_AT, ..
            },
        ) => Place::Current,
        (
            _,
            Source::Integer {
                at,
                bytes,
                signed,
                plus,
            },
        ) => Place::Integer {
            at,
            bytes,
            signed,
            plus,
        },
        (FieldType::Integer(integer), Source::Bytes { at, size }) => Place::Integer {
            at,
            bytes: size as u8,
            signed: integer.signed,
            plus: 0,
        },
        (FieldType::Array { .. }, Source::Bytes { at, .. }) => Place::Elements { at },
        (_, Source::Text { at, size }) => Place::Text { at, size },
        (_, Source::Dynamic { at, relative }) => Place::Dynamic { at, relative },
        _ => Place::Nowhere,
    }
}

/// A function of the first of the files that are meant in which there is one of its name.
fn function_of(typed: &str, function: &str, returns: bool) -> Result<Event> {
    let found = programs::first_with(&programs::files(typed)?, |file, places| {
        let offsets = programs::offsets(&file.path, places, function)?;
        Ok((!offsets.is_empty()).then(|| of_function(file, offsets, function, returns)))
    })?;
    found.map_err(|met| programs::no_function(typed, function, &met))
}

fn of_function(file: &ProgramFile, offsets: Vec<u64>, function: &str, returns: bool) -> Event {
    let place = PairPlace::Function {
        file: file.path.clone(),
        offsets,
        returns,
    };
    let short = file.short();
    let result = [("ret".to_owned(), PAIR_ARGUMENTS - 1)];
    let arguments = (0..REGISTERS).map(|place| (format!("arg{place}"), place));
    match returns {
        true => of_program(format!("{short}:{function} (return)"), place, result),
        false => of_program(format!("{short}:{function}"), place, arguments),
    }
}

/// A mark of the first of the files that are meant that has it.
fn mark_of(typed: &str, provider: &str, name: &str) -> Result<Event> {
    let found = programs::first_with(&programs::files(typed)?, |file, places| {
        let is_meant = |of: &&Marker| of.provider == provider && of.name == name;
        let markers: Vec<&Marker> = places.markers.iter().filter(is_meant).collect();
        if markers.len() > PAIR_SITES {
            let what = format!("the mark {provider}:{name} is in too many places");
            let found = format!("{} places, {PAIR_SITES} have room", markers.len());
            let fix = "take a mark or a function that is in fewer";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(found)
                .fix(fix));
        }
        Ok((!markers.is_empty()).then(|| of_mark(file, &markers)))
    })?;
    found.map_err(|met| programs::no_marker(typed, (provider, name), &met))
}

/// A mark in all places that it has in its file.
fn of_mark(file: &ProgramFile, markers: &[&Marker]) -> Event {
    let arguments: Vec<_> = markers
        .iter()
        .map(|marker| mark::arguments(marker))
        .collect();
    let sites = markers.iter().zip(&arguments);
    let sites = sites.map(|(marker, arguments)| MarkSite {
        offset: marker.offset,
        semaphore_offset: marker.semaphore_offset.unwrap_or(0),
        arguments: mark::site(arguments),
    });
    let place = PairPlace::Mark {
        file: file.path.clone(),
        sites: sites.collect(),
    };
    let fields = (0..mark::common(&arguments)).map(|number| (format!("arg{number}"), number));
    let first = markers[0];
    let mut event = of_program(format!("{}:{}", first.provider, first.name), place, fields);
    for (number, place) in event.layout.places.iter_mut().enumerate() {
        if !mark::is_readable(&arguments, number) {
            *place = Place::Unreadable;
        }
    }
    event
}

/// An event of a program: its fields are what the kernel's program reads of its registers.
fn of_program(
    name: String,
    place: PairPlace,
    fields: impl IntoIterator<Item = (String, usize)>,
) -> Event {
    let (fields, places): (Vec<_>, Vec<_>) = fields
        .into_iter()
        .map(|(name, place)| {
            let at = offset_of!(RawPairFrame, arguments) + place * size_of::<u64>();
            let field = Field {
                name: name.as_str().into(),
                scope: Scope::Payload,
                ty: FieldType::Integer(Integer::le(64, true)),
            };
            let place = Place::Integer {
                at: at as u32,
                bytes: 8,
                signed: true,
                plus: 0,
            };
            (field, place)
        })
        .unzip();
    let class = EventClass {
        id: ClassId(0),
        name: name.clone(),
        stream: 0,
        fields: fields.into(),
    };
    Event {
        name,
        place,
        layout: Layout {
            class,
            places,
            in_frame: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_in_its_file_or_refused_with_the_reason() {
        let own = std::env::current_exe().expect("this program");
        let own = own.to_str().expect("a name");
        let found = function_of(own, "main", false).expect("it has one");
        assert_eq!(found.layout.class.fields.len(), REGISTERS);
        let refused = function_of(own, "mainn", false).err().expect("none");
        assert!(refused.fixed_by().is_some_and(|fix| fix.contains("main")));
    }
}
