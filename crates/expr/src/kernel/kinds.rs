//! What a filter may ask of a field in the kernel, where its recording has more than the record.

use event::{Error, ErrorKind, Result};

use super::coder::{Layout, Place};
use crate::ast::{Cond, FieldRef};
use crate::bind::{Target, Use, resolve};
use crate::parts::{fields, has_text, operands};
use crate::span::pointed;

/// Refuses fields that are addresses of what the recording has, and texts beside numbers: in the
/// kernel nobody would see that they never match.
pub(super) fn check(cond: &Cond, layout: &Layout, text: &str) -> Result<()> {
    match cond {
        Cond::All(parts) | Cond::Any(parts) => {
            let mut parts = parts.iter();
            parts.try_for_each(|part| check(part, layout, text))
        }
        Cond::Not(part) => check(part, layout, text),
        single => {
            let operands = operands(single);
            let mut fields = operands.iter().flat_map(|operand| fields(operand));
            fields.try_for_each(|field| check_field(field, has_text(single), layout, text))
        }
    }
}

fn check_field(reference: &FieldRef, has_text: bool, layout: &Layout, text: &str) -> Result<()> {
    let class = &layout.class;
    let Target::Field { field, ty, .. } = resolve(class, reference) else {
        return Ok(());
    };
    let why = match (layout.places[usize::from(field.0)], Use::of(ty)) {
        (Place::Address, _) => "this field is an address in the program's memory",
        (_, Use::Integer(_)) if has_text => "this field is a number, no text",
        _ => return Ok(()),
    };
    let what = format!("the kernel cannot ask this filter: {why}");
    let error = Error::new(ErrorKind::Unsupported, what).found(pointed(text, reference.span));
    let fix = format!(
        "take another field; or record it: rtscope record --events {0}, then: rtscope cat TRACE \
         --filter '$name == \"{0}\" && …'",
        class.name
    );
    Err(error.fix(fix))
}
