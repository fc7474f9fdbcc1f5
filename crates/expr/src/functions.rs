//! Names of kernel functions in filters: where an event has an address, its function is meant.

use event::is_function_field;

use crate::ast::{CompareOp, Cond, Expr, FieldRef, Literal, MatchOp, Operand, Root, Text};
use crate::pattern::Matcher;
use crate::span::Span;

/// Whether a name is meant.
pub type IsMeant<'m> = dyn Fn(&str) -> bool + 'm;

impl Expr {
    /// The same where a text that stands beside an address of code also means the function that
    /// has this address: `function == "tick_nohz_handler"`. `ranges` gives where the functions are
    /// whose names are meant, begin and end; it is asked only when there is such a text.
    pub fn naming_functions(&self, ranges: impl Fn(&IsMeant<'_>) -> Vec<(u64, u64)>) -> Expr {
        Expr {
            root: named(&self.root, &ranges),
            text: self.text.clone(),
        }
    }
}

type Ranges<'r> = dyn Fn(&IsMeant<'_>) -> Vec<(u64, u64)> + 'r;

fn named(cond: &Cond, ranges: &Ranges<'_>) -> Cond {
    let all = |conds: &[Cond]| conds.iter().map(|cond| named(cond, ranges)).collect();
    match cond {
        Cond::All(conds) => Cond::all(all(conds)),
        Cond::Any(conds) => Cond::any(all(conds)),
        Cond::Not(inner) => Cond::Not(named(inner, ranges).into()),
        Cond::Compare(op, left, right) => {
            let sides = [(left, right), (right, left)];
            let found = sides
                .into_iter()
                .find_map(|(field, text)| Some((function_field(field)?, text_of(text)?)));
            match (op, found) {
                (CompareOp::Equal, Some((field, text))) => {
                    either(cond, field, &ranges(&equal(text)))
                }
                (CompareOp::NotEqual, Some((field, text))) => {
                    neither(cond, field, &ranges(&equal(text)))
                }
                _ => cond.clone(),
            }
        }
        Cond::Match(op, operand, pattern) => match function_field(operand) {
            Some(field) => either(cond, field, &ranges(&matching(*op, &pattern.text))),
            None => cond.clone(),
        },
        Cond::In(operand, list) => match function_field(operand) {
            Some(field) => {
                let texts = list.iter().filter_map(text_of);
                let found = texts.flat_map(|text| ranges(&equal(text)));
                either(cond, field, &found.collect::<Vec<_>>())
            }
            None => cond.clone(),
        },
        Cond::Present(_) | Cond::True(_) => cond.clone(),
    }
}

fn function_field(operand: &Operand) -> Option<&FieldRef> {
    let Operand::Field(field) = operand else {
        return None;
    };
    let (Root::Auto(name) | Root::Scoped(_, name)) = &field.root else {
        return None;
    };
    (field.steps.is_empty() && is_function_field(name)).then_some(field)
}

fn text_of(operand: &Operand) -> Option<&Text> {
    match operand {
        Operand::Literal(Literal::Text(text), _) => Some(text),
        _ => None,
    }
}

/// Whether a name equals a text, in which stars stand for anything.
fn equal(text: &Text) -> Box<IsMeant<'_>> {
    match text.has_star() {
        true => {
            let matcher = Matcher::stars(text);
            Box::new(move |name| matcher.matches(name.as_bytes()))
        }
        false => Box::new(|name| name.as_bytes() == text.bytes),
    }
}

fn matching(op: MatchOp, text: &Text) -> Box<IsMeant<'_>> {
    match Matcher::new(op, text) {
        Ok(matcher) => Box::new(move |name| matcher.matches(name.as_bytes())),
        // What is no pattern is told where it is compiled.
        Err(_) => Box::new(|_| false),
    }
}

/// The address lies in one of `ranges`.
fn inside(field: &FieldRef, ranges: &[(u64, u64)]) -> impl Iterator<Item = Cond> {
    ranges.iter().map(|(begin, end)| {
        Cond::All(vec![
            address(field, CompareOp::GreaterEqual, *begin),
            address(field, CompareOp::Less, *end),
        ])
    })
}

fn address(field: &FieldRef, op: CompareOp, address: u64) -> Cond {
    let span: Span = field.span;
    let address = Operand::Literal(Literal::Integer(address), span);
    Cond::Compare(op, Operand::Field(field.clone()), address)
}

/// As it was written, or by the function.
fn either(written: &Cond, field: &FieldRef, ranges: &[(u64, u64)]) -> Cond {
    let by_function = inside(field, ranges);
    Cond::any(
        std::iter::once(written.clone())
            .chain(by_function)
            .collect(),
    )
}

/// For `!=`: as it was written, or an address in none of the functions.
fn neither(written: &Cond, field: &FieldRef, ranges: &[(u64, u64)]) -> Cond {
    let mut conds = vec![Cond::any(vec![
        written.clone(),
        address(field, CompareOp::GreaterEqual, 0),
    ])];
    let found: Vec<Cond> = inside(field, ranges).collect();
    if !found.is_empty() {
        conds.push(Cond::Not(Cond::any(found).into()));
    }
    Cond::all(conds)
}

#[cfg(test)]
mod tests {
    use event::{ClassId, EventClass, Field, FieldType, Integer};

    use super::*;
    use crate::{Program, Wants};

    fn class(ty: FieldType) -> EventClass {
        EventClass {
            id: ClassId(0),
            name: "timer_expire".to_owned(),
            stream: 0,
            fields: vec![Field::payload("function", ty)].into(),
        }
    }

    /// Two functions: `tick` at 0x1000, `tock` at 0x2000.
    fn ranges(is_meant: &IsMeant<'_>) -> Vec<(u64, u64)> {
        let all = [("tick", 0x1000, 0x1100), ("tock", 0x2000, 0x2100)];
        let meant = all.into_iter().filter(|(name, ..)| is_meant(name));
        meant.map(|(_, begin, end)| (begin, end)).collect()
    }

    #[test]
    fn a_text_beside_an_address_means_the_function_there() {
        let check = |text: &str, expect: &str| {
            let expr = Expr::parse(text).expect(text);
            let named = expr.naming_functions(ranges);
            assert_eq!(named.root.to_string(), expect, "{text}");
        };
        let tick = "(function >= 4096 && function < 4352)";
        let tock = "(function >= 8192 && function < 8448)";
        check(
            r#"function == "tick""#,
            &format!(r#"function == "tick" || {tick}"#),
        );
        check(
            r#""t*k" == function"#,
            &format!(r#""t*k" == function || {tick} || {tock}"#),
        );
        check(
            r#"function =~ "^to""#,
            &format!(r#"function =~ "^to" || {tock}"#),
        );
        check(
            r#"function in ("tick", "x", 7)"#,
            &format!(r#"function in ("tick", "x", 7) || {tick}"#),
        );
        check(
            r#"function != "tick""#,
            &format!(r#"(function != "tick" || function >= 0) && !{tick}"#),
        );
        for same in [
            r#"function == "none""#,
            r#"comm == "tick""#,
            "function == 4096",
            "function present",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn an_event_whose_function_is_a_text_matches_as_before() {
        let wants = |ty: FieldType, text: &str| {
            let expr = Expr::parse(text).expect(text).naming_functions(ranges);
            let program = Program::compile(&expr, &[class(ty)]).expect("compiled");
            program.wants(ClassId(0))
        };
        let address = || FieldType::Integer(Integer::hex(64));
        assert_eq!(wants(address(), r#"function == "none""#), Wants::Never);
        assert_ne!(wants(address(), r#"function == "tick""#), Wants::Never);
        assert_ne!(wants(address(), r#"function != "tick""#), Wants::Never);
        assert_ne!(wants(address(), r#"function != "none""#), Wants::Never);
    }
}
