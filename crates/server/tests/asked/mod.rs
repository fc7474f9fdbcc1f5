//! A view of a made-up trace, and what its API answers.

use std::sync::atomic::AtomicBool;

use serde_json::Value;
use server::View;
use testkit::SyntheticTrace;

/// The view of a trace, with its index.
pub fn view(trace: SyntheticTrace) -> View {
    let view = View::of(trace.build(), "made up".to_owned());
    view.build(&AtomicBool::new(false));
    view
}

/// What it answers, which is no error.
pub fn ask(view: &View, path: &str, query: &str) -> Value {
    let answer = view.answer(&format!("/api/v1/{path}"), query);
    let text = String::from_utf8(answer.body).expect("text");
    assert_eq!(answer.status, 200, "{path}?{query}: {text}");
    serde_json::from_str(&text).expect("json")
}
