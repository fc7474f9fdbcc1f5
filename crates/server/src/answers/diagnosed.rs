//! What the page reads of a diagnosis. `rtscope.diagnosis` has more; a test reads real ones as
//! these.

use super::own::Range;
use super::shape::{Declared, Key, Shape, answers};

answers! {
    diagnosed, open: true;

    /// A task in a diagnosis.
    TaskRef {
        /// Its thread's id.
        tid: i32,
        /// Its name.
        comm: String,
        /// Its priority on LTTng's scale.
        prio: i32,
        /// Its priority as people say it.
        priority: String,
    }

    /// A part of the time that an activation took.
    Term {
        /// Its name for programs.
        kind: String,
        /// What it is, for people.
        text: String,
        /// Who it is about.
        task: Option<TaskRef>,
        /// How long.
        duration_ns: i64,
        /// Of all the activation's time, 0 to 1.
        share: f64,
        /// In how many pieces.
        pieces: u64,
        /// The CPU of most of it.
        cpu: u32,
        /// From the first piece's begin to the last one's end.
        range: Range,
    }

    /// Where an activation's time went.
    Ledger {
        /// How good the evidence is.
        grade: String,
        /// Whether a verdict can stand on it.
        good: bool,
        /// All of it.
        total_ns: i64,
        /// What the evidence does not explain.
        unexplained_ns: i64,
        /// Its parts, the longest first.
        terms: Vec<Term>,
    }

    /// A step of the chain that led to the activation.
    Step {
        /// When.
        time_ns: i64,
        /// On which CPU.
        cpu: u32,
        /// What happened.
        kind: String,
        /// Whom it is about, where it is a task.
        comm: String,
        /// The number of the task, the interrupt or the softirq.
        id: i64,
    }

    /// A late activation.
    Activation {
        /// Whose.
        task: TaskRef,
        /// When its chain began.
        origin_ns: i64,
        /// When it ended.
        end_ns: i64,
        /// How long that took.
        latency_ns: i64,
        /// Where it ended.
        cpu: u32,
        /// The chain.
        steps: Vec<Step>,
        /// Where the time went.
        ledger: Ledger,
    }

    /// What to change.
    Advice {
        /// Why this is offered, for programs.
        rule: String,
        /// Why it would help.
        because: String,
        /// The command that does it.
        command: String,
        /// The command that shows whether it helped.
        then_check: String,
    }

    /// A function on a stack.
    Frame {
        /// Where, in hexadecimal digits.
        address: String,
        /// Its name and how far in, where the trace tells that; else nothing.
        symbol: String,
    }

    /// What was under way in the kernel.
    SeenStack {
        /// Of what.
        what: String,
        /// The innermost function first.
        stack: Vec<Frame>,
    }

    /// Who did it.
    Verdict {
        /// In one sentence.
        sentence: String,
        /// Whether the evidence proves it.
        conclusive: bool,
        /// What to change; any one of these.
        advice: Vec<Advice>,
        /// Stacks that support it.
        stacks: Vec<SeenStack>,
    }

    /// Activations that were late for one cause.
    Group {
        /// Their places among the activations.
        members: Vec<usize>,
        /// Of the worst of them.
        verdict: Verdict,
    }

    /// What makes the diagnosis doubtful.
    Warning {
        /// What.
        what: String,
        /// What helps.
        remedy: String,
    }

    /// `late`, `ledger`: what the page reads of `rtscope.diagnosis`, times after the first event.
    Diagnosis {
        /// The version of `rtscope.diagnosis`.
        version: u32,
        /// The worst first.
        activations: Vec<Activation>,
        /// By cause.
        groups: Vec<Group>,
        /// What makes it doubtful.
        warnings: Vec<Warning>,
    }
}
