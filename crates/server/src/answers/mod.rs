//! What the API answers, as types: the server fills them, the page's are written from them.

mod diagnosed;
mod own;
mod shape;

use std::fmt::Write;

pub use diagnosed::{
    Activation, Advice, Diagnosis, Frame, Group, Ledger, SeenStack, Step, TaskRef, Term, Verdict,
    Warning,
};
pub use own::{
    Cell, Counter, Counters, EventRow, Events, Facts, Fields, Info, IrqCell, Late, Latencies, Loss,
    Losses, Marks, Moment, Names, ProcessCell, Progress, Range, Report, ReportColumn, ReportName,
    ReportTable, Reports, RowAt, Stat, Stats, Tasks, TrackRow, Tracks, User,
};
use shape::Declared;

const HEAD: &str = "// What the API answers. Written by `cargo xtask reference` from \
                    crates/server/src/answers: change it there.\n";
/// Who writes the page for people.
const HEAD_FOR_PEOPLE: &str = "# What the API of the trace's page answers

`GET /api/v1/NAME` of `rtscope view`; [view.md](../view.md#the-api) has the words of each question.
Version 1. Times are integers in nanoseconds after the trace's first event, but where a key says
otherwise. This page and `ui/src/answers.ts`, the same for TypeScript, are written by `cargo xtask
reference` from the server's own types.
";

fn declared() -> impl Iterator<Item = Declared> {
    own::own().into_iter().chain(diagnosed::diagnosed())
}

/// The types as TypeScript has them: `ui/src/answers.ts`.
pub fn typescript() -> String {
    let mut out = HEAD.to_owned();
    for one in declared() {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "\n/** {} */", one.about.trim());
        let _ = writeln!(out, "export interface {} {{", one.name);
        for key in &one.keys {
            let may = one.is_open && key.shape.ends_with("| null");
            let mark = if may { "?" } else { "" };
            let _ = writeln!(out, "  /** {} */", key.about.trim());
            let _ = writeln!(out, "  {}{mark}: {};", key.name, key.shape);
        }
        out.push_str("}\n");
    }
    let _ = writeln!(out, "\n/** What a cell of a table holds. */");
    let _ = writeln!(out, "export type Cell = {};", Cell::SHAPES);
    out
}

/// The same for people: `docs/format/view-answers.md`.
pub fn for_people() -> String {
    let mut out = HEAD_FOR_PEOPLE.to_owned();
    for one in declared() {
        let more = match one.is_open {
            true => " An answer has more keys than these.",
            false => "",
        };
        let _ = writeln!(out, "\n## {}\n\n{}{more}\n", one.name, one.about.trim());
        out.push_str("| key | type | what |\n|---|---|---|\n");
        for key in &one.keys {
            let shape = key.shape.replace('|', "or");
            let _ = writeln!(out, "| `{}` | {shape} | {} |", key.name, key.about.trim());
        }
    }
    let shapes = Cell::SHAPES.replace('|', "or");
    let _ = writeln!(out, "\n## Cell\n\nWhat a cell of a table holds: {shapes}.");
    out
}
