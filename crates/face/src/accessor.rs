//! Fields bound by name once, for every class that has one of that name.

use event::{ClassId, Error, ErrorKind, EventClass, FieldId, FieldType, Result};
use trace::{EventView, Trace};

/// How a field is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`EventView::u64`].
    Unsigned,
    /// [`EventView::i64`].
    Signed,
    /// [`EventView::f64`].
    Float,
    /// [`EventView::text`].
    Text,
    /// Only [`EventView::value`] gives it: wide texts, blobs, arrays, structures, variants.
    Other,
}

impl Kind {
    /// The kind of a type.
    pub fn of(ty: &FieldType) -> Kind {
        match ty {
            FieldType::Integer(integer)
            | FieldType::Enum(integer, _)
            | FieldType::Bool(integer)
            | FieldType::Flags(integer, _) => match integer.signed {
                true => Kind::Signed,
                false => Kind::Unsigned,
            },
            FieldType::Float { .. } => Kind::Float,
            FieldType::String | FieldType::Text { .. } => Kind::Text,
            FieldType::Sequence { element, .. } if is_character(element) => Kind::Text,
            _ => Kind::Other,
        }
    }
}

/// Whether elements of this type are the bytes of a text.
fn is_character(ty: &FieldType) -> bool {
    matches!(ty, FieldType::Integer(int) if int.text && int.size_bits == 8 && int.align_bits == 8)
}

/// A field by its name in every class that has it.
#[derive(Clone, Debug)]
pub struct Accessor {
    /// By class.
    places: Box<[Option<(FieldId, Kind)>]>,
}

impl Accessor {
    /// Binds `name`, looked up in the order of [`event::Scope`] in each class.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no class has it, with the name that is most like it.
    pub fn bind(trace: &Trace, name: &str) -> Result<Accessor> {
        let place = |class: &EventClass| {
            let field = class.field(name)?;
            Some((field, Kind::of(&class.fields[usize::from(field.0)].ty)))
        };
        let places: Box<[_]> = trace.classes().iter().map(place).collect();
        if places.iter().all(Option::is_none) {
            return Err(unknown_field(trace, name));
        }
        Ok(Accessor { places })
    }

    /// Binds one field of one class.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such class or no such field.
    pub fn at(trace: &Trace, class: ClassId, field: FieldId) -> Result<Accessor> {
        let found = trace.classes().get(class.0 as usize);
        let ty = found.and_then(|class| Some(&class.fields.get(usize::from(field.0))?.ty));
        let Some(ty) = ty else {
            let what = "no such field in the trace";
            return Err(Error::new(ErrorKind::NotFound, what)
                .found(format!("class {}, field {}", class.0, field.0))
                .fix("take the numbers of classes and fields from the trace itself"));
        };
        let mut places = vec![None; trace.classes().len()];
        places[class.0 as usize] = Some((field, Kind::of(ty)));
        Ok(Accessor {
            places: places.into(),
        })
    }

    /// The field's place in a class, and how it is asked for; none when the class lacks it.
    #[inline]
    pub fn place(&self, class: ClassId) -> Option<(FieldId, Kind)> {
        *self.places.get(class.0 as usize)?
    }

    /// An integer field, sign-extended when it is signed; none when the event has no such field
    /// or when it is no integer.
    #[inline]
    pub fn i64(&self, event: &EventView<'_>) -> Option<i64> {
        match self.place(event.class())? {
            (field, Kind::Signed | Kind::Unsigned) => Some(event.i64(field)),
            _ => None,
        }
    }

    /// A floating point field; none when the event has no such field or when it is no float.
    #[inline]
    pub fn f64(&self, event: &EventView<'_>) -> Option<f64> {
        match self.place(event.class())? {
            (field, Kind::Float) => Some(event.f64(field)),
            _ => None,
        }
    }

    /// The bytes of a text field; none when the event has no such field or when it is no text.
    #[inline]
    pub fn text<'e>(&self, event: &EventView<'e>) -> Option<&'e [u8]> {
        match self.place(event.class())? {
            (field, Kind::Text) => Some(event.text(field)),
            _ => None,
        }
    }
}

/// A name that no class has.
pub(crate) fn unknown_field(trace: &Trace, name: &str) -> Error {
    let what = format!("no event of this trace has a field '{name}'");
    let fields = trace.classes().iter().flat_map(|class| class.fields.iter());
    let fix = match expr::nearest(name, fields.map(|field| field.name.as_str())) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "'rtscope cat' shows the events with their fields".to_owned(),
    };
    Error::new(ErrorKind::NotFound, what).fix(fix)
}
