//! The tree that a filter is.

use event::Duration;

use crate::span::Span;

/// A filter: a condition on one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The whole condition.
    pub root: Cond,
    /// As it was written, for what is said about it later.
    pub(crate) text: Source,
}

/// The text of an expression; like places, it is no part of the meaning.
#[derive(Clone, Debug)]
pub(crate) struct Source(pub String);

impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

impl Expr {
    /// An expression of its condition alone.
    pub fn new(root: Cond) -> Expr {
        let text = Source(root.to_string());
        Expr { root, text }
    }
}

/// Something that holds for an event or does not.
#[derive(Clone, Debug, PartialEq)]
pub enum Cond {
    /// All hold (`&&`): at least two, none of them an `All`.
    All(Vec<Cond>),
    /// At least one holds (`||`): at least two, none of them an `Any`.
    Any(Vec<Cond>),
    /// It does not hold.
    Not(Box<Cond>),
    /// Two values compare so.
    Compare(CompareOp, Operand, Operand),
    /// A text matches a pattern.
    Match(MatchOp, Operand, Pattern),
    /// A value equals one of the list.
    In(Operand, Vec<Operand>),
    /// The field exists in this event.
    Present(FieldRef),
    /// A number that is not zero.
    True(Operand),
}

impl Cond {
    /// All of `conds`, those of inner `All`s pulled up.
    pub fn all(conds: Vec<Cond>) -> Cond {
        let mut parts = flat(conds, |cond| match cond {
            Cond::All(parts) => Some(std::mem::take(parts)),
            _ => None,
        });
        match parts.len() {
            1 => parts.remove(0),
            _ => Cond::All(parts),
        }
    }

    /// Any of `conds`, those of inner `Any`s pulled up.
    pub fn any(conds: Vec<Cond>) -> Cond {
        let mut parts = flat(conds, |cond| match cond {
            Cond::Any(parts) => Some(std::mem::take(parts)),
            _ => None,
        });
        match parts.len() {
            1 => parts.remove(0),
            _ => Cond::Any(parts),
        }
    }
}

/// Nodes in one row: `open` takes the parts out of those that are rows themselves. The first's own
/// list goes on, so that the time to build a row only grows with its length.
pub(crate) fn flat<T>(nodes: Vec<T>, open: impl Fn(&mut T) -> Option<Vec<T>>) -> Vec<T> {
    let mut row = Vec::new();
    for mut node in nodes {
        match open(&mut node) {
            Some(parts) if row.is_empty() => row = parts,
            Some(parts) => row.extend(parts),
            None => row.push(node),
        }
    }
    row
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl CompareOp {
    /// Whether two values in this order compare so.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Equal => order.is_eq(),
            CompareOp::NotEqual => order.is_ne(),
            CompareOp::Less => order.is_lt(),
            CompareOp::LessEqual => order.is_le(),
            CompareOp::Greater => order.is_gt(),
            CompareOp::GreaterEqual => order.is_ge(),
        }
    }

    /// The operator for the same comparison with its sides exchanged.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Less => CompareOp::Greater,
            CompareOp::LessEqual => CompareOp::GreaterEqual,
            CompareOp::Greater => CompareOp::Less,
            CompareOp::GreaterEqual => CompareOp::LessEqual,
            same => same,
        }
    }
}

/// How a text matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=~`, `matches`: a regular expression is found somewhere in it.
    Regex,
    /// `=*`: a shell pattern covers all of it.
    Glob,
    /// `contains`: the text stands somewhere in it.
    Contains,
}

/// What a text is matched with.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The pattern; for [`MatchOp::Regex`] the expression, with nothing escaped.
    pub text: Text,
    /// Where it was written.
    pub span: Span,
}

/// Bytes in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text {
    /// The bytes, escapes undone.
    pub bytes: Vec<u8>,
    /// Places of `*`, `?` and `[` that were escaped and stand for themselves, in order.
    pub escaped: Vec<u32>,
}

impl Text {
    /// A text in which nothing was escaped.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Text {
        Text {
            bytes: bytes.into(),
            escaped: Vec::new(),
        }
    }

    /// Whether the byte at `place` stands for itself, though it could mean something.
    pub(crate) fn is_escaped(&self, place: usize) -> bool {
        self.escaped.binary_search(&(place as u32)).is_ok()
    }

    /// Whether `==` takes it as a pattern: a star is in it that was not escaped.
    pub fn has_star(&self) -> bool {
        let mut places = self.bytes.iter().enumerate();
        places.any(|(place, byte)| *byte == b'*' && !self.is_escaped(place))
    }
}

/// A value of an event, or one that was written down.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Written down.
    Literal(Literal, Span),
    /// Of the event.
    Field(FieldRef),
    /// Computed from one value.
    Unary(UnaryOp, Box<Operand>, Span),
    /// Computed from two.
    Binary(BinaryOp, Box<Operand>, Box<Operand>),
}

/// A value that was written down.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `42`, `0x2a`, `052`, `0b101010`.
    Integer(u64),
    /// `4.2`, `42e-1`; finite.
    Float(f64),
    /// `25ms`.
    Duration(Duration),
    /// `"jackd"`.
    Text(Text),
}

/// An operation on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `~`
    Invert,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// A value that an event has, or may have.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRef {
    /// Where to look for it.
    pub root: Root,
    /// Further in: members and elements.
    pub steps: Vec<Step>,
    /// Where it was written.
    pub span: Span,
}

/// Where a field reference begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// `name`: a field, in the order of [`event::Scope`]; then what [`Pseudo`] of that name is.
    Auto(String),
    /// `$payload.name`: a field of one scope.
    Scoped(FieldScope, String),
    /// `$app.provider:type`: an application's context of LTTng.
    App(String, String),
    /// `$cpu`: never a field.
    Pseudo(Pseudo),
}

/// A scope as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldScope {
    /// `$payload`
    Payload,
    /// `$ctx`: the event's own context, then the one that its stream gives to all events (where
    /// LTTng puts contexts).
    Context,
    /// `$header`
    Header,
    /// `$stream_ctx`
    StreamContext,
    /// `$pkt_ctx`
    PacketContext,
    /// `$pkt_header`
    PacketHeader,
}

/// A value that every event has, whatever its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pseudo {
    /// `$name`: the event's name.
    Name,
    /// `$cpu`: the CPU of its stream.
    Cpu,
    /// `$tid`: the task that ran there.
    Tid,
    /// `$procname`: that task's name.
    Procname,
    /// `$prio`: that task's priority, on the scale of the trace.
    Prio,
    /// `$time`: nanoseconds of the trace's clock.
    Time,
}

/// A step into a compound value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `.name`: a member of a structure, or the choice of a variant when it is the chosen one.
    Member(String),
    /// `[2]`: an element of an array or sequence.
    Index(u32),
}
