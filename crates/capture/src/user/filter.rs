//! Filters for traced processes: from the filter language to what a process evaluates before an
//! event is written (`probe/include/rtscope/filter.h`); or, where they ask what only the recorder
//! knows, to what the recorder evaluates before it writes the event into the trace.

use abi::filters::{self as code, Filter, Instruction};
use abi::rings;
use ctf::writer::PayloadWriter;
use event::{ClassId, Cpu, Error, ErrorKind, EventClass, Result};
use expr::steps::{Ask, Step};
use expr::{BinaryOp, CompareOp, Expr, Filter as Question, GlobPart, Program, UnaryOp};
use ring::{EventDescription, FieldKind, Number};

use super::classes;
use super::contexts::Context;
use super::written::{self, Written};

/// What a field of the class is to the process.
#[derive(Clone, Copy)]
enum Source<'e> {
    /// The process's id, which does not change.
    Pid,
    Tid,
    /// The number of elements of a sequence.
    Count(usize),
    /// A field of the description.
    Own(usize, &'e FieldKind),
    /// What does not change while the process lives.
    Constant(u64),
    /// What the recorder alone knows.
    Recorder,
}

/// Who evaluates a filter.
pub(super) enum Compiled {
    /// The process, before an event is written: its bytes.
    Process(Vec<u8>),
    /// The recorder, before it is written into the trace.
    Recorder(Box<ByRecorder>),
}

/// A filter that asks for a name or a priority: events pass through the rings first.
pub(super) struct ByRecorder {
    question: Question,
    class: EventClass,
    places: Vec<(usize, usize)>,
    contexts: Vec<Context>,
}

impl ByRecorder {
    /// The contexts that it wants to see behind the fields.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Whether an event passes whose fields, and then its contexts, `payload` holds.
    pub fn passes(&mut self, payload: &PayloadWriter, cpu: Cpu) -> bool {
        let bytes = payload.bytes();
        written::find(&self.class, bytes, &mut self.places)
            && self
                .question
                .matches(&Written::new(&self.class, bytes, &self.places, cpu))
    }
}

/// The filter for an event of the process `pid`, whose namespaces `namespace` tells.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for what neither a process nor the recorder can evaluate.
pub(super) fn compile(
    expr: &Expr,
    event: &EventDescription,
    pid: i32,
    namespace: impl FnMut(usize) -> u64,
) -> Result<Compiled> {
    let (class, sources) = whole_class(event, namespace);
    let program = Program::compile(expr, &[class])?;
    let steps = program.steps(ClassId(0))?;
    if steps
        .iter()
        .any(|step| matches!(asked(step, &sources), Some(Source::Recorder)))
    {
        return by_recorder(expr, event, &steps, &sources);
    }
    let mut assembler = Assembler {
        event,
        sources: &sources,
        pid,
        instructions: Vec::new(),
        constants: Vec::new(),
        jumps: Vec::new(),
    };
    // Where each step begins: one may be several instructions.
    let mut begins = Vec::with_capacity(steps.len());
    for step in &steps {
        begins.push(assembler.instructions.len() as u32);
        assembler.step(step)?;
    }
    for (place, step) in &assembler.jumps {
        assembler.instructions[*place].target = begins[*step];
    }
    assembler.finish().map(Compiled::Process)
}

/// The field that a step asks for.
fn asked<'e>(step: &Step, sources: &[Source<'e>]) -> Option<Source<'e>> {
    match step {
        Step::Field { field, .. } | Step::Text(field) => sources.get(usize::from(field.0)).copied(),
        _ => None,
    }
}

/// A filter over what is in records, and all contexts.
fn by_recorder(
    expr: &Expr,
    event: &EventDescription,
    steps: &[Step],
    sources: &[Source<'_>],
) -> Result<Compiled> {
    for step in steps {
        if let Some(Source::Own(place, _)) = asked(step, sources)
            && event.fields[place].hidden
        {
            let name = &event.fields[place].name;
            return Err(refuse(format!(
                "{name}, which is in no record, beside what the recorder alone knows"
            )));
        }
        if let Step::Field { index: Some(_), .. } = step {
            return Err(refuse(
                "an element of an array beside what the recorder alone knows",
            ));
        }
    }
    let mut class = classes::class(event, 0);
    let contexts = Context::all();
    let with_contexts = contexts.iter().map(|one| one.field());
    class.fields = class.fields.iter().cloned().chain(with_contexts).collect();
    Ok(Compiled::Recorder(Box::new(ByRecorder {
        question: Question::new(expr, std::slice::from_ref(&class))?,
        class,
        places: Vec::new(),
        contexts,
    })))
}

/// The class with all contexts and the fields that are in no record, as filters see it.
fn whole_class(
    event: &EventDescription,
    mut namespace: impl FnMut(usize) -> u64,
) -> (EventClass, Vec<Source<'_>>) {
    let mut seen = event.clone();
    for field in &mut seen.fields {
        field.hidden = false;
    }
    let mut class = classes::class(&seen, 0);
    let mut fields = class.fields.to_vec();
    let mut sources = Vec::new();
    for (place, field) in event.fields.iter().enumerate() {
        if let FieldKind::Sequence(_) = field.kind {
            sources.push(Source::Count(place));
        }
        sources.push(Source::Own(place, &field.kind));
    }
    for context in Context::all() {
        sources.push(match context {
            Context::Vpid => Source::Pid,
            Context::Vtid => Source::Tid,
            // A word of the language, which has it without a field.
            Context::Cpu => continue,
            Context::Ip => Source::Constant(event.code_address),
            Context::Namespace(place) => Source::Constant(namespace(place)),
            Context::Procname | Context::Prio | Context::Policy | Context::Id(_) => {
                Source::Recorder
            }
        });
        fields.push(context.field());
    }
    class.fields = fields.into();
    (class, sources)
}

struct Assembler<'e> {
    event: &'e EventDescription,
    sources: &'e [Source<'e>],
    pid: i32,
    instructions: Vec<Instruction>,
    constants: Vec<u8>,
    /// Instructions that jump, and the step that they mean.
    jumps: Vec<(usize, usize)>,
}

fn refuse(found: impl Into<String>) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "a filter inside of an application cannot do this",
    )
    .found(found)
}

impl Assembler<'_> {
    fn push(&mut self, op: u8, [a, b, c]: [u8; 3], value: u64) {
        self.instructions.push(Instruction {
            op,
            a,
            b,
            c,
            target: 0,
            value,
        });
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Pass => self.push(code::PASS, [0; 3], 0),
            Step::Drop => self.push(code::DROP, [0; 3], 0),
            Step::Field { into, field, index } => {
                return self.number(*into, self.sources[usize::from(field.0)], *index);
            }
            Step::Integer(into, value) => self.integer(*into, *value)?,
            Step::Float(into, value) => self.push(code::FLOAT, [*into, 0, 0], value.to_bits()),
            Step::Cpu(into) => self.push(code::FACT, [*into, 0, 0], 0),
            Step::Unary(into, op) => {
                let op = u8::from(*op == UnaryOp::Invert);
                self.push(code::UNARY, [*into, op, 0], 0);
            }
            Step::Binary(into, op, right) => {
                self.push(code::BINARY, [*into, binary(*op), *right], 0);
            }
            Step::Text(field) => return self.text(self.sources[usize::from(field.0)]),
            Step::If { test, when, target } => {
                self.jumps.push((self.instructions.len(), *target));
                self.ask(test, u8::from(*when))?;
            }
        }
        Ok(())
    }

    fn integer(&mut self, into: u8, value: i128) -> Result<()> {
        let (bits, signed) = match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => (value, 0),
            (_, Ok(value)) => (value as u64, 1),
            _ => return Err(refuse(format!("the number {value}"))),
        };
        self.push(code::INTEGER, [into, signed, 0], bits);
        Ok(())
    }

    fn number(&mut self, into: u8, source: Source<'_>, index: Option<u32>) -> Result<()> {
        let load = |assembler: &mut Self, number: Number| {
            let big_endian = u8::from(number.big_endian);
            assembler.push(code::LOAD, [into, number.code, big_endian], 0);
        };
        match (source, index) {
            (Source::Pid, None) => self.integer(into, self.pid.into())?,
            (Source::Tid, None) => self.push(code::FACT, [into, 1, 0], 0),
            (Source::Constant(value), None) => self.integer(into, value.into())?,
            (Source::Count(place), None) => {
                self.go_to(place);
                self.push(code::LOAD, [into, rings::FIELD_U8 + 1, 0], 0);
            }
            (Source::Own(place, FieldKind::Number(n) | FieldKind::Enumeration(n, _)), None) => {
                self.go_to(place);
                load(self, *n);
            }
            (Source::Own(place, FieldKind::Array(number, count)), Some(index))
                if index < *count =>
            {
                self.go_to(place);
                let bytes = u64::from(index) * u64::from(number.size_bytes);
                self.push(code::SKIP, [0; 3], bytes);
                load(self, *number);
            }
            _ => return Err(refuse("an element of a sequence, or beyond an array")),
        }
        Ok(())
    }

    fn text(&mut self, source: Source<'_>) -> Result<()> {
        match source {
            Source::Own(place, FieldKind::Text) => {
                self.go_to(place);
                self.push(code::TEXT, [0; 3], 0);
            }
            Source::Own(place, FieldKind::Characters(count)) => {
                self.go_to(place);
                self.push(code::TEXT, [1, 0, 0], (*count).into());
            }
            _ => return Err(refuse("a text that is none")),
        }
        Ok(())
    }

    /// The cursor to a field: over all before it in its part.
    fn go_to(&mut self, place: usize) {
        let hidden = self.event.fields[place].hidden;
        self.push(code::PLACE, [u8::from(hidden), 0, 0], 0);
        let mut skipped = 0;
        let event = self.event;
        for field in event.fields[..place].iter().filter(|f| f.hidden == hidden) {
            match field.kind.size_bytes() {
                Some(bytes) => skipped += bytes as u64,
                None => {
                    self.skip(&mut skipped);
                    let element = field.kind.element_bytes() as u8;
                    self.push(code::SKIP_COUNTED, [element, 0, 0], 0);
                }
            }
        }
        self.skip(&mut skipped);
    }

    fn skip(&mut self, bytes: &mut u64) {
        if *bytes > 0 {
            self.push(code::SKIP, [0; 3], *bytes);
        }
        *bytes = 0;
    }

    fn constant(&mut self, bytes: &[u8]) -> u64 {
        let at = self.constants.len() as u64;
        self.constants.extend_from_slice(bytes);
        at | (bytes.len() as u64) << 32
    }

    fn ask(&mut self, ask: &Ask, when: u8) -> Result<()> {
        match ask {
            Ask::Compare(op, left, right) => {
                self.push(
                    code::IF_COMPARE,
                    [*left, compare(*op), when],
                    (*right).into(),
                );
            }
            Ask::NotZero(register) => self.push(code::IF_NOT_ZERO, [*register, 0, when], 0),
            Ask::HasValue(register) => self.push(code::IF_VALUE, [*register, 0, when], 0),
            Ask::Text(op, bytes) => {
                let constant = self.constant(bytes);
                self.push(code::IF_TEXT, [0, compare(*op), when], constant);
            }
            Ask::Contains(bytes) => {
                let constant = self.constant(bytes);
                self.push(code::IF_LIKE, [0, 0, when], constant);
            }
            Ask::Glob(parts) => {
                let constant = self.constant(&pattern(parts)?);
                self.push(code::IF_LIKE, [0, 1, when], constant);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<u8>> {
        if self.instructions.len() > code::INSTRUCTIONS_MAX {
            return Err(refuse(format!("{} instructions", self.instructions.len())));
        }
        let mut bytes = Vec::with_capacity(size_of::<Filter>());
        bytes.extend((self.instructions.len() as u32).to_le_bytes());
        bytes.extend((self.constants.len() as u32).to_le_bytes());
        bytes.extend(self.instructions.iter().flat_map(Instruction::bytes));
        bytes.extend(self.constants);
        Ok(bytes)
    }
}

/// A shell pattern as its parts' bytes.
fn pattern(parts: &[GlobPart]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            GlobPart::Any => bytes.push(code::ANY),
            GlobPart::One => bytes.push(code::ONE),
            GlobPart::Byte(byte) => bytes.extend([code::BYTE, *byte]),
            GlobPart::Set { negated, ranges } => {
                let length = u8::try_from(ranges.len())
                    .map_err(|_| refuse(format!("a set of {} ranges", ranges.len())))?;
                bytes.extend([code::SET, u8::from(!negated), length]);
                bytes.extend(ranges.iter().flat_map(|(first, last)| [*first, *last]));
            }
        }
    }
    Ok(bytes)
}

fn compare(op: CompareOp) -> u8 {
    match op {
        CompareOp::Equal => code::EQUAL,
        CompareOp::NotEqual => code::NOT_EQUAL,
        CompareOp::Less => code::LESS,
        CompareOp::LessEqual => code::LESS_EQUAL,
        CompareOp::Greater => code::GREATER,
        CompareOp::GreaterEqual => code::GREATER_EQUAL,
    }
}

fn binary(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Add => code::ADD,
        BinaryOp::Subtract => code::SUBTRACT,
        BinaryOp::Multiply => code::MULTIPLY,
        BinaryOp::Divide => code::DIVIDE,
        BinaryOp::Remainder => code::REMAINDER,
        BinaryOp::And => code::AND,
        BinaryOp::Or => code::OR,
        BinaryOp::Xor => code::XOR,
        BinaryOp::ShiftLeft => code::SHIFT_LEFT,
        BinaryOp::ShiftRight => code::SHIFT_RIGHT,
    }
}
