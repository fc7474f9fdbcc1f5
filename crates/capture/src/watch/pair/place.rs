//! Events of this machine: where a program is attached to them, and where their fields are.

use std::mem::offset_of;
use std::path::{Path, PathBuf};

use abi::trackers::{PAIR_ARGUMENTS, RawPairFrame};
use bpf_host::trackers::PairPlace;
use event::{ClassId, EventClass, Field, FieldType, Integer, Result, Scope};
use expr::kernel::{Layout, Place};
use ftrace::Tracefs;
use ftrace::lttng::{Plan, Source};
use symbols::Places;

use super::spec::{Spec, What};
use crate::kernel_filter::with_contents;
use crate::programs;
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

/// The first of the files that are meant in which there is what is looked for.
fn function_of(file: &str, function: &str, returns: bool) -> Result<Event> {
    let files = programs::files(file)?;
    let mut met = Vec::new();
    for path in &files {
        let places = match Places::read(path) {
            Ok(places) => places,
            // Of a process's files some are no programs.
            Err(_) if files.len() > 1 => continue,
            Err(error) => return Err(error),
        };
        let offsets = programs::offsets(path, &places, function)?;
        if !offsets.is_empty() {
            return Ok(of_function(path, offsets, function, returns));
        }
        met.push(places);
    }
    Err(programs::no_function(file, function, &met))
}

fn of_function(path: &Path, offsets: Vec<u64>, function: &str, returns: bool) -> Event {
    let place = PairPlace::Function {
        file: path.to_owned(),
        offsets,
        returns,
    };
    let short = path.file_name().unwrap_or_default().to_string_lossy();
    let result = [("ret".to_owned(), PAIR_ARGUMENTS - 1)];
    let arguments = (0..REGISTERS).map(|place| (format!("arg{place}"), place));
    match returns {
        true => of_program(format!("{short}:{function} (return)"), place, result),
        false => of_program(format!("{short}:{function}"), place, arguments),
    }
}

/// The file that has the mark, or the first one: libbpf says that it is not there.
fn mark_of(file: &str, provider: &str, name: &str) -> Result<Event> {
    let mut files = programs::files(file)?;
    let has_it = |path: &PathBuf| {
        Places::read(path).is_ok_and(|places| {
            let mut markers = places.markers.iter();
            markers.any(|marker| marker.provider == provider && marker.name == name)
        })
    };
    let at = files.iter().position(has_it).unwrap_or_default();
    let place = PairPlace::Mark {
        file: files.swap_remove(at),
        provider: provider.to_owned(),
        name: name.to_owned(),
    };
    let arguments = (0..PAIR_ARGUMENTS).map(|place| (format!("arg{place}"), place));
    Ok(of_program(format!("{provider}:{name}"), place, arguments))
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
