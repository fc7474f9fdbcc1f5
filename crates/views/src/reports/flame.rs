//! Where call stacks spent their time, from events at the entry and the exit of functions, and in
//! which call stacks events happened that carry them.

use std::rc::Rc;

use super::event_stacks::{EventStacks, thread_name};
use super::kind::{Answers, Lami, PLAIN, ReportKind, Told};
use super::needs::FUNCTIONS;
use super::options::{ReportOptions, Views};
use super::ordered::Ordered;
use super::question::Question;
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use kernel_state::{Change, FunctionId, Kernel, Topic, Topics};

const STACKS: TableClass = TableClass {
    name: "stacks",
    title: "Call stacks",
    columns: &[
        Column::new("stack", "Stack", Kind::Text),
        Column::new("self", "Own time", Kind::Duration),
        Column::count("count", "Calls", "calls"),
    ],
};
const EVENT_STACKS: TableClass = TableClass {
    name: "event-stacks",
    title: "Call stacks of events",
    columns: &[
        Column::new("stack", "Stack", Kind::Text),
        Column::count("count", "Events", "events"),
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "flame",
    reports: &[(
        "flamegraph",
        Views::ALWAYS,
        "call stacks and their time, for flamegraph.pl",
    )],
    classes: &[&STACKS, &EVENT_STACKS],
    needs: &[FUNCTIONS],
    lami: Lami {
        title: "Call stacks",
        description: "Call stacks and their own time",
        tags: &["call-stack"],
    },
    names_code: true,
    told: &[Told::Stacks],
    answers: Answers::Window(|asked| Box::new(Flame::new(asked.options))),
    ..PLAIN
};

/// Deeper calls are counted for their caller.
const DEPTH_MAX: usize = 1024;
/// More different stacks are counted for their callers.
const NODES_MAX: usize = 1 << 20;

/// A function as it was called by its node's parent.
#[derive(Debug)]
struct Node {
    function: Option<FunctionId>,
    parent: usize,
    own_ns: i64,
    calls: u64,
    /// Of the first of them.
    called_ns: i64,
}

#[derive(Debug)]
struct Frame {
    node: usize,
    function: FunctionId,
}

#[derive(Debug, Default)]
struct Thread {
    frames: Vec<Frame>,
    /// Up to when the time of the innermost function is counted; none behind a loss, up to the
    /// next event of the thread.
    since_ns: Option<i64>,
    root: usize,
}

impl Thread {
    /// How much of the time up to now is that of the innermost function.
    fn counts(&self, now_ns: i64) -> i64 {
        self.since_ns
            .map_or(0, |since_ns| (now_ns - since_ns).max(0))
    }
}

/// The question over one window.
#[derive(Debug)]
pub(super) struct Flame {
    options: Rc<ReportOptions>,
    nodes: Vec<Node>,
    children: Ordered<(usize, FunctionId), usize>,
    threads: Ordered<i32, Thread>,
    events: EventStacks,
}

impl Flame {
    pub fn new(options: Rc<ReportOptions>) -> Flame {
        Flame {
            options,
            nodes: Vec::new(),
            children: Ordered::default(),
            threads: Ordered::default(),
            events: EventStacks::default(),
        }
    }

    fn wants(&self, kernel: &Kernel, tid: i32) -> bool {
        match kernel.find(tid) {
            Some(id) => self.options.wants_process(kernel, kernel.process(id)),
            None => self.options.wants_unseen(tid),
        }
    }

    fn call(&mut self, now_ns: i64, tid: i32, function: FunctionId) {
        let place = self.nodes.len();
        let nodes = &mut self.nodes;
        let thread = self.threads.entry(tid).or_insert_with(|| {
            nodes.push(Node {
                function: None,
                parent: place,
                own_ns: 0,
                calls: 0,
                called_ns: now_ns,
            });
            Thread {
                frames: Vec::new(),
                since_ns: Some(now_ns),
                root: place,
            }
        });
        let above = thread.frames.last().map(|frame| frame.node);
        if let Some(above) = above {
            nodes[above].own_ns += thread.counts(now_ns);
        }
        thread.since_ns = Some(now_ns);
        let parent = above.unwrap_or(thread.root);
        let is_full = thread.frames.len() >= DEPTH_MAX || nodes.len() >= NODES_MAX;
        let known = self.children.get(&(parent, function)).copied();
        let node = match (known, is_full) {
            (Some(node), _) => node,
            (None, true) => parent,
            (None, false) => {
                nodes.push(Node {
                    function: Some(function),
                    parent,
                    own_ns: 0,
                    calls: 0,
                    called_ns: now_ns,
                });
                self.children.insert((parent, function), nodes.len() - 1);
                nodes.len() - 1
            }
        };
        self.nodes[node].calls += 1;
        if thread.frames.len() < DEPTH_MAX {
            thread.frames.push(Frame { node, function });
        }
    }

    /// An exit without its entry says nothing; entries without their exits end with their caller.
    fn leave(&mut self, now_ns: i64, tid: i32, function: Option<FunctionId>) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let is_it = |frame: &Frame| function.is_none_or(|function| frame.function == function);
        let Some(place) = thread.frames.iter().rposition(is_it) else {
            return;
        };
        if let Some(top) = thread.frames.last() {
            self.nodes[top.node].own_ns += thread.counts(now_ns);
        }
        thread.since_ns = Some(now_ns);
        thread.frames.truncate(place);
    }

    /// Events were lost: what was called and left meanwhile nobody knows.
    fn lose(&mut self, from_ns: i64) {
        for thread in self.threads.values_mut() {
            if let Some(top) = thread.frames.last() {
                self.nodes[top.node].own_ns += thread.counts(from_ns);
            }
            thread.since_ns = None;
        }
    }

    fn name(&self, kernel: &Kernel, function: FunctionId, at_ns: i64) -> String {
        let named = |pid| self.options.code.function(pid, at_ns, function.address);
        let name = function.pid.and_then(named);
        name.unwrap_or_else(|| kernel.function_name(function))
    }

    /// The functions from the outermost to the innermost, with semicolons between.
    fn stack(&self, kernel: &Kernel, thread: &str, node: usize) -> String {
        let mut names = Vec::new();
        let mut place = node;
        while let Some(function) = self.nodes[place].function {
            let called_ns = self.nodes[place].called_ns;
            names.push(self.name(kernel, function, called_ns).replace(';', ":"));
            place = self.nodes[place].parent;
        }
        names.push(thread.replace(';', ":"));
        names.reverse();
        names.join(";")
    }

    fn root_of(&self, node: usize) -> usize {
        let mut place = node;
        while self.nodes[place].parent != place {
            place = self.nodes[place].parent;
        }
        place
    }
}

impl Question for Flame {
    fn topics(&self) -> Topics {
        Topics::of(&[Topic::Functions, Topic::Runs])
    }

    fn change(&mut self, kernel: &Kernel, change: &Change<'_>) {
        match *change {
            Change::FunctionEntry { tid, function } if self.wants(kernel, tid) => {
                self.call(kernel.now_ns(), tid, function);
            }
            Change::FunctionExit { tid, function } => self.leave(kernel.now_ns(), tid, function),
            Change::Lost { from_ns, .. } => self.lose(from_ns),
            Change::Stacks { tid, .. } if tid.is_none_or(|tid| self.wants(kernel, tid)) => {
                self.events.count(kernel, change);
            }
            _ => {}
        }
    }

    fn finish(&mut self, kernel: &Kernel, span: Span) -> Vec<Table> {
        for thread in self.threads.values_mut() {
            if let Some(top) = thread.frames.last() {
                self.nodes[top.node].own_ns += thread.counts(span.end_ns);
                thread.since_ns = Some(span.end_ns);
            }
        }
        let roots = self.threads.iter();
        let names: Ordered<usize, String> = roots
            .map(|(tid, thread)| (thread.root, thread_name(kernel, *tid)))
            .collect();
        let mut table = span.table(&STACKS);
        for (place, node) in self.nodes.iter().enumerate() {
            if node.function.is_none() {
                continue;
            }
            let thread = names.get(&self.root_of(place)).map_or("", String::as_str);
            table.rows.push(vec![
                Cell::Text(self.stack(kernel, thread, place)),
                Cell::Duration(node.own_ns),
                Cell::Count(node.calls),
            ]);
        }
        let mut of_events = span.table(&EVENT_STACKS);
        for (stack, count) in self.events.rows(kernel, &self.options) {
            let row = vec![Cell::Text(stack), Cell::Count(count)];
            of_events.rows.push(row);
        }
        vec![table, of_events]
    }
}
