//! The page of one late activation: whole by itself, and without markup from the trace.

use diagnosis::{Query, diagnose};
use report::{Incident, incident_html, incident_svg};
use testkit::{SyntheticTrace, Task};
use timeline::Builder;
use trace::Trace;

const VICTIM: Task = Task::rt(100, "<b>victim", 50);
const HOG: Task = Task::rt(200, "burner", 60);

fn late_behind_a_hog(turns: i64) -> Trace {
    let mut trace = SyntheticTrace::new().at(20).block(VICTIM, HOG);
    for turn in 0..turns {
        trace = trace
            .at(1_000 + turn * 20_000)
            .irq(9, "eth0")
            .after(2)
            .wake(VICTIM)
            .after(2)
            .irq_end(9);
        trace = trace
            .after(8_000)
            .block(HOG, VICTIM)
            .after(9)
            .block(VICTIM, HOG);
    }
    trace.build()
}

fn page(trace: &Trace, worst: usize) -> String {
    made(trace, worst, incident_html)
}

fn made<T>(trace: &Trace, worst: usize, make: impl Fn(&Incident<'_>) -> T) -> T {
    let query = Query {
        worst,
        ..Query::default()
    };
    let diagnosis = diagnose(trace, &query).expect("a diagnosis");
    let index = Builder::new(trace).walk(|_| true).expect("an index");
    make(&Incident {
        diagnosis: &diagnosis,
        info: trace.info(),
        index: Some(&index),
        trace: "snap<shot",
        command: "rtscope diagnose --html page.html",
        utc: true,
    })
}

#[test]
fn the_page_holds_answer_picture_ledger_chain_basis_text_and_json() {
    let page = page(&late_behind_a_hog(1), 10);
    for part in [
        "burner (tid 200, rt 60) ran ahead of it for 8.000 ms (99.9 %)",
        "taskset -pc 1 200",
        "<svg",
        "class=\"culprit\"",
        "Where 8.005 ms went",
        "The chain",
        "interrupt 9 eth0",
        "made by <code>rtscope diagnose --html page.html</code>",
        "7 events in 8.994 ms",
        "prefers-color-scheme:dark",
        "@media print",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let json = page.split("id=\"rtscope-diagnosis\">").nth(1);
    let json = json.and_then(|rest| rest.split("</script>").next());
    let value: serde_json::Value = serde_json::from_str(json.expect("JSON")).expect("valid");
    assert_eq!(value["schema"], "rtscope.diagnosis");
    assert_eq!(value["activations"][0]["task"]["comm"], "<b>victim");
}

#[test]
fn the_page_takes_no_markup_from_the_trace_and_asks_for_nothing_from_elsewhere() {
    let page = page(&late_behind_a_hog(1), 10);
    for foreign in [
        "<b>victim",
        "snap<shot",
        "http://",
        "https://",
        "src=",
        "NaN",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // The only script is data.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("<script type=\"application/json\""));
}

#[test]
fn a_page_of_thousands_of_late_activations_is_below_a_megabyte() {
    let page = page(&late_behind_a_hog(3_000), 0);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("\"left_out\":true"));
}

#[test]
fn where_nothing_was_late_the_page_says_of_what() {
    let trace = SyntheticTrace::new().at(20).block(VICTIM, HOG).build();
    let page = page(&trace, 10);
    assert!(page.contains("Nothing to judge"), "{page}");
}

#[test]
fn the_picture_alone_is_the_page_s_with_its_own_colours() {
    let trace = late_behind_a_hog(1);
    let picture = made(&trace, 10, incident_svg).expect("a picture");
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="));
    assert!(picture.trim_end().ends_with("</svg>"), "{picture}");
    for part in [
        "--culprit:#c4291c",
        "svg .culprit{",
        "prefers-color-scheme:dark",
    ] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let drawn = picture.split_once("</style>").expect("a style").1;
    assert!(page(&trace, 10).contains(drawn.trim()), "{drawn}");
    assert!(!drawn.contains("<b>victim"), "{drawn}");
}

#[test]
fn nothing_late_has_no_picture() {
    let trace = SyntheticTrace::new().at(20).block(VICTIM, HOG).build();
    assert_eq!(made(&trace, 10, incident_svg), None);
}
