//! An evaluation as one page that needs no other file and no script.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    PERCENTILES, cpu, eval_hash, exceedances_sentence, explaining, interruptions, loads, parts,
    svg, tail_sentence, threads, us, verdict_sentence,
};
use crate::xml::{escaped, escaped_lines};

/// Follows the reader's choice of light or dark.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--paper:#fff;\
--bar:#3b6ea5;--bad:#b3261e;--good:#1a7f37}@media(prefers-color-scheme:dark){:root{\
--ink:#e6edf3;--soft:#9aa4ae;--line:#3a424b;--paper:#12161b;--bar:#7aa7d9;--bad:#ff8078;\
--good:#56d364}}body{overflow-wrap:break-word;font:15px/1.5 system-ui,sans-serif;color:var(--ink);\
background:var(--paper);max-width:1340px;margin:2rem auto;padding:0 1.5rem}h1{\
font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}h3{font-size:1rem;\
margin:1.2rem 0 .3rem}.soft{color:var(--soft)}.pass{color:var(--good)}\
.fail,.inconclusive{color:var(--bad)}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .7rem;\
text-align:right;border-bottom:1px solid var(--line)}th:first-child,td:first-child{\
text-align:left}td.text,th.text{text-align:left}.figures td,.facts td:first-child{\
white-space:nowrap}.figures th,.figures td{padding:.2rem .3rem}.scroll{overflow-x:auto}\
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));\
gap:1rem 2rem;align-items:start}.two>.scroll{min-width:0}figure{margin:0}\
figcaption{color:var(--soft);font-size:.85rem}.verdict{font-size:1.15rem;font-weight:600;\
padding:.6rem 1rem;border-left:4px solid;border-radius:4px;\
background:color-mix(in srgb,currentColor 9%,transparent)}\
svg{width:100%;max-width:660px;height:auto}svg text{fill:var(--soft);\
font-size:11px}svg rect{fill:var(--bar)}svg rect.over{fill:var(--bad)}\
polyline{fill:none;stroke:var(--bar);stroke-width:1.5}.axis{\
stroke:var(--soft);fill:none}.grid{stroke:var(--line);stroke-width:.5}.budget{\
stroke:var(--bad);stroke-dasharray:4 3}pre{white-space:pre-wrap;\
background:color-mix(in srgb,var(--ink) 6%,transparent);padding:.8rem;border-radius:6px}code{\
font-size:.92em}\
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;\
--bar:#3b6ea5;--bad:#b3261e;--good:#1a7f37}body{max-width:none;margin:0;padding:0;\
font-size:10pt}.scroll{overflow:visible}table{font-size:8.5pt}.figures{font-size:7pt;width:100%}\
.figures th,.figures td{padding:.2rem .15rem;white-space:normal}.text,code{overflow-wrap:anywhere}\
h2,h3,h2+p,figcaption{break-after:avoid}figure,tr{break-inside:avoid}.two{display:block}\
svg{max-width:130mm}\
*{print-color-adjust:exact}}";

/// The whole page, from the JSON object of an evaluation.
pub fn eval_html(evaluation: &Value) -> String {
    let mut body = head(evaluation);
    body += &summary(evaluation);
    body += &pictures(evaluation);
    body += &parts::html(evaluation);
    body += &loads::loads_html(evaluation);
    body += &worst(evaluation);
    body += &hardware(&evaluation["hw"]);
    body += &machine(evaluation);
    body += &made(evaluation);
    page("rtscope measure eval", &body)
}

/// A page around its body.
pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

fn words(value: &Value) -> String {
    escaped_lines(value.as_str().unwrap_or("–"))
}

fn head(evaluation: &Value) -> String {
    let class = escaped(evaluation["verdict"].as_str().unwrap_or("none"));
    let facts = &evaluation["machine"]["facts"];
    let names = loads::loads(evaluation).iter().map(loads::name);
    let loads = match names.map(escaped).collect::<Vec<_>>() {
        loads if loads.is_empty() => "under no load".to_owned(),
        loads => format!("under {}", loads.join(", ")),
    };
    let seconds = evaluation["elapsed_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let mut text = format!(
        "<h1>Is this machine fit for real time?</h1>\n<p class=\"soft\">{}, Linux {}, preemption \
         {}; {seconds:.0} s, {loads}</p>\n<p class=\"verdict {class}\">{}</p>\n",
        words(&evaluation["began"]),
        words(&facts["machine"]["kernel_release"]),
        words(&facts["scheduler"]["preemption"]),
        escaped(verdict_sentence(evaluation)),
    );
    for (what, value) in [
        ("Machine", &evaluation["machine"]["identity"]["host"]),
        ("Note", &evaluation["annotation"]),
    ] {
        if value.is_string() {
            let _ = writeln!(text, "<p>{what}: {}</p>", words(value));
        }
    }
    for line in interruptions(evaluation) {
        let _ = writeln!(text, "<p class=\"fail\">{}</p>", escaped(&line));
    }
    text
}

fn summary(evaluation: &Value) -> String {
    let mut text = String::from(
        "<h2>Latencies in us</h2>\n<div class=\"scroll\"><table class=\"figures\"><tr><th></th>\
         <th>samples</th><th>max</th><th>min</th><th>median</th><th>mode</th><th>mean</th>\
         <th>deviation</th>",
    );
    for (_, name) in &PERCENTILES[1..] {
        let _ = write!(text, "<th>{name}</th>");
    }
    text += "<th>range</th><th>missed</th></tr>\n";
    for thread in threads(evaluation) {
        let over = thread["max_ns"].as_i64() > evaluation["budget_ns"].as_i64();
        let class = match over && evaluation["budget_ns"].is_i64() {
            true => " class=\"fail\"",
            false => "",
        };
        // The longest first: a narrow window shows what is decided by.
        let _ = write!(
            text,
            "<tr><td>{}</td><td>{}</td><td{class}>{}</td>",
            cpu(thread),
            thread["samples"],
            us(&thread["max_ns"])
        );
        for key in ["min_ns", "median_ns", "mode_ns", "mean_ns", "deviation_ns"] {
            let _ = write!(text, "<td>{}</td>", us(&thread[key]));
        }
        for (_, name) in &PERCENTILES[1..] {
            let found = &thread["percentiles"][name];
            let between = match found.is_null() {
                true => String::new(),
                false => format!(
                    "<br><small class=\"soft\">{} to {}</small>",
                    us(&found["low_ns"]),
                    us(&found["high_ns"])
                ),
            };
            let _ = write!(text, "<td>{}{between}</td>", us(&found["value_ns"]));
        }
        let range = us(&thread["range_ns"]);
        let missed = &thread["missed"];
        let _ = writeln!(text, "<td>{range}</td><td>{missed}</td></tr>");
    }
    text += "</table></div>\n<p class=\"soft\">Below a percentile: where it lies with 95 % \
             confidence, samples taken as independent. – is a percentile that fewer than ten \
             samples lie above, or that lies beyond the histogram.</p>\n";
    for thread in threads(evaluation) {
        if let Some(sentence) = explaining::plain_sentence(thread) {
            let _ = writeln!(text, "<p>{}: {sentence}</p>", cpu(thread));
        }
    }
    text += "<h2>What this run can show of the tail</h2>\n<ul>\n";
    for thread in threads(evaluation) {
        let sentence = escaped(tail_sentence(thread));
        let _ = writeln!(text, "<li>{}: {sentence}</li>", cpu(thread));
    }
    text + "</ul>\n"
}

fn pictures(evaluation: &Value) -> String {
    let axis = svg::axis(threads(evaluation).iter());
    let budget_ns = evaluation["budget_ns"].as_f64();
    let elapsed_ns = evaluation["elapsed_ns"].as_f64().unwrap_or(1.0);
    let mut text = String::from(
        "<h2>Samples by latency, and the longest over time</h2>\n<p class=\"soft\">All scales of \
         latencies and counts are in decades; the dashed line is the budget.</p>\n",
    );
    for thread in threads(evaluation) {
        let _ = write!(
            text,
            "<h3>{}</h3>\n<div class=\"two\">{}{}</div>\n",
            cpu(thread),
            svg::histogram(thread, axis, budget_ns),
            svg::series(thread, elapsed_ns, budget_ns)
        );
    }
    text
}

/// The late samples that were looked at one by one, the longest first.
fn worst(evaluation: &Value) -> String {
    let mut hits: Vec<&Value> = evaluation["worst"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let is_behind = |hit: &Value| hit["behind_sample"] == true;
    hits.sort_by_key(|hit| (is_behind(hit), std::cmp::Reverse(latency_ns(hit))));
    let mut text = String::from("<h2>The longest, and where their time went</h2>\n");
    let sentences = [
        exceedances_sentence(evaluation),
        explaining::sentence(evaluation),
    ];
    for sentence in sentences.into_iter().flatten() {
        let _ = writeln!(text, "<p>{}</p>", escaped(&sentence));
    }
    if hits.is_empty() {
        return text
            + "<p class=\"soft\">None: no sample was over the limit, or none was asked for.</p>\n";
    }
    for hit in hits {
        let verdict = &hit["diagnosis"]["verdict"];
        let sentence = verdict["sentence"].as_str().map(str::to_owned);
        let sentence = sentence.unwrap_or_else(|| not_explained(hit));
        let _ = writeln!(text, "<h3>{}</h3>", escaped(&sentence));
        if is_behind(hit) {
            text += "<p class=\"soft\">No sample: the thread was on time, and then kept from its \
                     next sleep, as by who lets it rest.</p>\n";
        }
        let activations = hit["diagnosis"]["activations"].as_array();
        let Some(ledger) = activations
            .and_then(|all| all.first())
            .map(|one| &one["ledger"])
        else {
            continue;
        };
        text += "<div class=\"scroll\"><table><tr><th>where it went</th><th>us</th></tr>\n";
        for sum in ledger["sums"].as_array().into_iter().flatten() {
            let (name, length) = (words(&sum["text"]), us(&sum["duration_ns"]));
            let _ = writeln!(text, "<tr><td>{name}</td><td>{length}</td></tr>");
        }
        text += "</table></div>\n";
        for advice in verdict["advice"].as_array().into_iter().flatten() {
            let (command, because) = (words(&advice["command"]), words(&advice["because"]));
            let _ = writeln!(text, "<pre>{command}\n  because {because}</pre>");
        }
    }
    text
}

fn latency_ns(hit: &Value) -> i64 {
    let activations = hit["diagnosis"]["activations"].as_array();
    let first = activations.and_then(|all| all.first());
    first
        .and_then(|one| one["latency_ns"].as_i64())
        .or_else(|| hit["hit"]["latency_ns"].as_i64())
        .unwrap_or(0)
}

/// Of a late sample whose cause nobody looked for.
fn not_explained(hit: &Value) -> String {
    let why = hit["not_explained"].as_str();
    let why = why.or_else(|| hit["snapshot_error"].as_str());
    let why = why.unwrap_or("there is no snapshot of it");
    format!(
        "{} us late, and not explained: {why}",
        us(&hit["hit"]["latency_ns"])
    )
}

/// What a thread that never sleeps lost, and who took it.
fn hardware(hw: &Value) -> String {
    let Some(cpus) = hw["cpus"].as_array() else {
        return "<h2>Gaps of a thread that never sleeps</h2>\n<p class=\"soft\">Not measured.</p>\n"
            .into();
    };
    let mut text = format!(
        "<h2>Gaps of a thread that never sleeps, over {} us</h2>\n<div class=\"two\">\
         <div class=\"scroll\">\
         <table><tr><th></th><th>looked s</th><th>gaps</th><th>longest us</th></tr>\n",
        us(&hw["threshold_ns"])
    );
    for one in cpus {
        let seconds = one["looped_ns"].as_f64().unwrap_or(0.0) / 1e9;
        let (gaps, longest) = (&one["gaps"], us(&one["longest_ns"]));
        let name = cpu(one);
        let _ = writeln!(
            text,
            "<tr><td>{name}</td><td>{seconds:.1}</td><td>{gaps}</td><td>{longest}</td></tr>"
        );
    }
    text += "</table></div>\n<div class=\"scroll\"><table><tr><th>who took them</th><th>CPU</th>\
             <th>gaps</th><th>total us</th><th>longest us</th></tr>\n";
    for noise in hw["noise"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            words(&noise["name"]),
            noise["cpu"],
            noise["gaps"],
            us(&noise["total_ns"]),
            us(&noise["longest_ns"])
        );
    }
    text + "</table></div></div>\n"
}

/// What makes the figures doubtful, with the fix of each, and the facts.
fn machine(evaluation: &Value) -> String {
    let machine = &evaluation["machine"];
    let mut text = String::from("<h2>The machine</h2>\n");
    let doubts = machine["doubts"].as_array().into_iter().flatten();
    let mut rows = String::new();
    for doubt in doubts {
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\"><code>{}</code></td></tr>",
            words(&doubt["what"]),
            words(&doubt["found"]),
            words(&doubt["fix"])
        );
    }
    if !rows.is_empty() {
        text += "<div class=\"scroll\"><table><tr><th>what makes tasks late here</th>\
                 <th class=\"text\">found</th><th class=\"text\">fix</th></tr>\n";
        text += &rows;
        text += "</table></div>\n";
    }
    let facts = &machine["facts"];
    let background = &facts["machine"]["background"];
    text += &table("Which it is", &[&machine["identity"]]);
    let set = [&facts["machine"], background, &facts["scheduler"]];
    text += &table("How it is set", &set);
    text + &table(
        "Interrupts that nothing masks, meanwhile",
        &[&machine["unmasked"]],
    )
}

/// Who made this and how, and what tells it from a changed one.
fn made(evaluation: &Value) -> String {
    let words = evaluation["made_by"]["command"].as_array();
    let words = words.into_iter().flatten().filter_map(Value::as_str);
    let command = words.collect::<Vec<_>>().join(" ");
    let made_by = serde_json::json!({
        "rtscope": evaluation["made_by"]["version"],
        "command": command,
        "SHA-256 of eval.json": eval_hash(evaluation),
    });
    "<h2>This report</h2>\n".to_owned() + &table("How it was made", &[&made_by])
}

/// What is known of something, a row for each; what has parts of its own is shown elsewhere.
fn table(title: &str, shown: &[&Value]) -> String {
    let mut text = format!("<h3>{title}</h3>\n<div class=\"scroll\"><table class=\"facts\">\n");
    let rows = shown.iter().filter_map(|one| one.as_object()).flatten();
    for (key, value) in rows.filter(|(_, value)| !value.is_object()) {
        let name = key.replace('_', " ");
        let value = escaped(fact(value));
        let _ = writeln!(
            text,
            "<tr><td>{name}</td><td class=\"text\">{value}</td></tr>"
        );
    }
    text + "</table></div>\n"
}

/// A fact in words.
fn fact(value: &Value) -> String {
    match value {
        Value::Null => "not known".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => all.iter().map(fact).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fact_is_said_in_words() {
        let check = |value: Value, expect: &str| assert_eq!(fact(&value), expect);
        check(json!(null), "not known");
        check(json!(false), "no");
        check(json!([]), "none");
        check(json!([0, 1]), "0, 1");
        check(json!("tsc"), "tsc");
        check(json!(950_000), "950000");
    }

    #[test]
    fn the_page_is_whole_and_takes_no_markup_from_the_machine() {
        let page = eval_html(&super::super::tests::sample());
        for expect in [
            "fail: the budget was 5.0 us; the longest was 900.0 us on CPU 1",
            "no &lt;stress-ng&gt;",
            "governor &lt;powersave&gt;",
            "Machine: robot &lt;7&gt;",
            "Note: before &lt;the&gt; fix",
            "rtscope &lt;eval&gt;",
            // Wide tables scroll on a screen, and are whole on paper.
            "@media print{",
            ".scroll{overflow:visible}",
            "</html>",
        ] {
            assert!(page.contains(expect), "{expect}: {page}");
        }
        for foreign in [
            "<script",
            "http://",
            "https://",
            "<stress-ng>",
            "<eval>",
            "<the>",
            "NaN",
        ] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        let svgs = page.matches("<svg").count();
        assert_eq!((svgs, page.matches("</svg>").count()), (5, 5));
        // On a narrow screen each is moved by itself, and not the page.
        let tables = page.matches("<table").count();
        let boxed = page.matches("<div class=\"scroll\"><table").count();
        assert_eq!(
            (tables, page.matches("</table></div>").count()),
            (boxed, boxed)
        );
    }

    #[test]
    fn the_name_of_an_application_is_no_markup_either() {
        let mut evaluation = super::super::tests::sample();
        evaluation["threads"] = json!([]);
        evaluation["workload"] = json!({
            "command": ["./<img src=x>"], "activations": 3, "max_ns": 9_000,
        });
        let both = super::super::compare_html(&evaluation, &evaluation);
        for page in [eval_html(&evaluation), both] {
            assert!(!page.contains("<img"), "{page}");
            assert!(page.contains("&lt;img"), "{page}");
        }
    }

    #[test]
    fn an_empty_object_is_a_page_too() {
        let hollow = json!({
            "workload": {}, "explaining": {}, "exceedances": {}, "hw": {}, "machine": {},
            "threads": [{"plain": {}}], "loads": [{}], "parts": [{}], "gaps": [{}],
        });
        assert!(eval_html(&hollow).ends_with("</html>\n"));
        let page = eval_html(&json!({}));
        assert!(
            page.contains("there are no samples") && page.contains("interrupted"),
            "{page}"
        );
    }
}
