//! A program with the memory that it needs: which task runs where.

use event::{ClassId, Cpu, EventClass, Record, Result};

use crate::ast::Expr;
use crate::program::{Program, Wants};
use crate::tasks::Tasks;

/// A filter over the events of one trace, given in time order.
#[derive(Debug)]
pub struct Filter {
    program: Program,
    /// Only when the program asks for them.
    tasks: Option<Tasks>,
}

impl Filter {
    /// Compiles `expr` against the classes of a trace.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn new(expr: &Expr, classes: &[EventClass]) -> Result<Filter> {
        let program = Program::compile(expr, classes)?;
        let tasks = program.needs_tasks().then(|| Tasks::new(classes));
        Ok(Filter { program, tasks })
    }

    /// The program alone.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether events of the class must be given: some may match, or they say which task runs.
    pub fn wants(&self, class: ClassId) -> bool {
        let learns = |tasks: &Tasks| tasks.wants(class);
        self.program.wants(class) != Wants::Never || self.tasks.as_ref().is_some_and(learns)
    }

    /// Whether an event matches. Give it every event of the classes that it
    /// [wants](Filter::wants), also of CPUs that are not looked at: it learns from them which task
    /// runs.
    #[inline]
    pub fn matches(&mut self, record: &impl Record) -> bool {
        let Some(tasks) = &mut self.tasks else {
            return self.program.matches(record, None);
        };
        let matches = self.program.matches(record, tasks.on(record.cpu()));
        tasks.observe(record);
        matches
    }

    /// Events are missing here: what was known of that CPU, or of all, holds no more.
    pub fn lost(&mut self, cpu: Option<Cpu>) {
        if let Some(tasks) = &mut self.tasks {
            tasks.forget(cpu);
        }
    }
}
