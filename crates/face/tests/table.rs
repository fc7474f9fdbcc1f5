//! Tables: which columns, how many rows, and what a reader of Arrow's structures is told.

use std::sync::Arc;

use event::{Cpu, ErrorKind};
use expr::Expr;
use face::Selection;
use face::table::Batches;
use testkit::{SAMPLE_EVENTS, write_sample};
use trace::Trace;

fn sample() -> (tempfile::TempDir, Arc<Trace>) {
    let dir = tempfile::tempdir().unwrap();
    write_sample(dir.path()).unwrap();
    let trace = Trace::open(dir.path()).unwrap();
    (dir, Arc::new(trace))
}

fn filtered(filter: &str) -> Selection {
    Selection {
        filter: Some(Expr::parse(filter).unwrap()),
        ..Selection::default()
    }
}

#[test]
fn a_table_has_the_columns_of_the_events_that_can_be_in_it() {
    let (_dir, trace) = sample();
    let check = |selection: Selection, columns: Option<&[&str]>, expect: &str| {
        let names: Option<Vec<String>> =
            columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let batches = Batches::new(&trace, selection, names.as_deref(), 0).unwrap();
        assert_eq!(batches.columns().collect::<Vec<_>>().join(" "), expect);
    };
    let all = "time_ns cpu event id user status load level key sizes_length sizes";
    check(Selection::default(), None, all);
    let begin = filtered("$name == \"app:request_begin\"");
    check(begin.clone(), None, "time_ns cpu event id user");
    check(begin.clone(), Some(&["user", "time_ns"]), "user time_ns");
    check(begin, Some(&["wall_time", "load"]), "wall_time load");
}

#[test]
fn a_column_that_no_event_has_is_refused_with_the_name_next_to_it() {
    let (_dir, trace) = sample();
    let names = ["statsu".to_owned()];
    let refused = Batches::new(&trace, Selection::default(), Some(&names), 0);
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.fixed_by(), Some("did you mean 'status'?"));
}

#[test]
fn batches_have_the_size_asked_for_and_count_what_is_missing() {
    let (_dir, trace) = sample();
    let check = |selection: Selection, rows_max: usize, expect: &[usize]| {
        let mut batches = Batches::new(&trace, selection, None, rows_max).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            rows.push(batch.len());
        }
        assert_eq!(rows, expect);
        let tally = batches.tally();
        assert_eq!(tally.rows, expect.iter().sum::<usize>() as u64);
        assert_eq!((tally.lost_events, tally.lost_places), (7, 1));
    };
    check(Selection::default(), 0, &[SAMPLE_EVENTS as usize]);
    check(Selection::default(), 128, &[128, 128, 44]);
    check(filtered("status < 0"), 0, &[10]);
    check(filtered("status > 0"), 0, &[]);
    let cpu = Selection {
        cpus: vec![Cpu(1)],
        ..Selection::default()
    };
    check(cpu, 100, &[100, 50]);
}
