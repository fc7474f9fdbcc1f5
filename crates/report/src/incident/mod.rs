//! One late activation as a page for a ticket: the answer, a picture of its window, the evidence,
//! the machine, and the same as text and JSON. The page needs no other file and runs no script.

mod evidence;
mod style;
mod window;

use std::fmt::Write as _;

use diagnosis::{Diagnosis, Group, LateActivation, Verdict};
use serde_json::Value;
use timeline::Index;
use trace::TraceInfo;

use crate::count::of_late;
use crate::diagnosis_text::wall_text;
use crate::xml::{escaped, escaped_lines};
use crate::{TextStyle, diagnosis_json, diagnosis_text};

/// A page of 1 MB holds both, and what lies around them.
const TEXT_BYTES_MAX: usize = 200 << 10;
const JSON_BYTES_MAX: usize = 500 << 10;
/// Facts of the trace that are shown, and how long each may be.
const FACTS_MAX: usize = 100;
const FACT_CHARS_MAX: usize = 200;

/// What a page is made of.
#[derive(Clone, Copy, Debug)]
pub struct Incident<'a> {
    /// The answer. The page is about the first activation of its first cause.
    pub diagnosis: &'a Diagnosis,
    /// Facts of the machine and the tracer.
    pub info: &'a TraceInfo,
    /// What every CPU did; without it the page has no picture.
    pub index: Option<&'a Index>,
    /// The trace, as the user named it.
    pub trace: &'a str,
    /// The command that made the page.
    pub command: &'a str,
    /// Times of day in UTC, not in the zone of this machine.
    pub utc: bool,
}

/// The page.
pub fn incident_html(incident: &Incident<'_>) -> String {
    let found = first(incident.diagnosis);
    let title = found.map_or_else(
        || "No late activation was found".to_owned(),
        |(_, late)| title(late),
    );
    let mut body = String::new();
    match found {
        Some((group, late)) => {
            body += &head(incident, group, late);
            body += &advice(&group.verdict);
            body += &window(incident, group, late);
            body += &evidence::ledger(late, &group.verdict);
            body += &evidence::chain(late);
            body += &evidence::stacks(&group.verdict);
            body += &evidence::excluded(&group.verdict);
            body += &evidence::further(incident.diagnosis);
        }
        None => body += &nothing(incident),
    }
    body += &basis(incident);
    body += &machine(incident.info);
    body += &enclosed(incident);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title><style>{}{}{}</style></head>\n<body>\n{body}</body></html>\n",
        escaped(title),
        style::COLORS,
        style::PICTURE,
        style::STYLE
    )
}

/// The picture of the page alone, as a file; none where there is nothing to draw.
pub fn incident_svg(incident: &Incident<'_>) -> Option<String> {
    let (group, late) = first(incident.diagnosis)?;
    let picture = drawn(incident, group, late)?;
    let inside = picture.strip_prefix("<svg ")?;
    let (attributes, rest) = inside.split_once('>')?;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>\n<style>{}{}\
         svg{{background:var(--paper)}}</style>{rest}",
        style::COLORS,
        style::PICTURE
    ))
}

/// What both are about: the first activation of the first cause.
fn first(diagnosis: &Diagnosis) -> Option<(&Group, &LateActivation)> {
    let group = diagnosis.groups.first()?;
    let place = group.members.first()?;
    Some((group, diagnosis.activations.get(*place)?))
}

fn title(late: &LateActivation) -> String {
    let (task, latency) = (&late.task.comm, late.latency());
    match late.parts() {
        Some(_) => format!("{task} needed {latency}"),
        None => format!("{task} was late by {latency}"),
    }
}

fn nothing(incident: &Incident<'_>) -> String {
    let text = diagnosis_text(incident.diagnosis, &TextStyle::default());
    let first = text.lines().next().unwrap_or_default();
    format!(
        "<h1>No late activation was found</h1>\n<p>{}</p>\n",
        escaped(first)
    )
}

fn head(incident: &Incident<'_>, group: &Group, late: &LateActivation) -> String {
    let verdict = &group.verdict;
    let class = if verdict.conclusive { "known" } else { "doubt" };
    let mut text = format!(
        "<h1>{}</h1>\n<p class=\"verdict {class}\">{}</p>\n<p class=\"soft\">",
        escaped(title(late)),
        escaped(&verdict.sentence)
    );
    // Writing to a String cannot fail, here and below.
    match wall_ns(incident.info, late) {
        Some(wall_ns) => {
            let at = wall_text(wall_ns, incident.utc);
            let zone = if incident.utc { " UTC" } else { "" };
            let _ = write!(text, "{at}{zone}, {} s of the trace's clock", late.end);
        }
        None => {
            let _ = write!(text, "At {} s of the trace's clock", late.end);
        }
    }
    if let Some(host) = incident.info.environment.get("hostname") {
        let _ = write!(text, ", on {}", escaped(host));
    }
    if group.members.len() > 1 {
        let share = of_late(group.members.len(), incident.diagnosis);
        let _ = write!(text, "; {share} activations have this cause");
    }
    text += ".</p>\n";
    if let Some(parts) = late.parts() {
        let (before, own, rest) = (parts.before, parts.own_work, parts.put_off);
        let _ = writeln!(
            text,
            "<p>Before it ran {before}; its own work {own}; waiting in between {rest}.</p>"
        );
    }
    text
}

/// When it ended by the wall clock, where the trace knows that.
fn wall_ns(info: &TraceInfo, late: &LateActivation) -> Option<i64> {
    let known = info.wall_offset != event::Duration::ZERO;
    known.then(|| (late.end + info.wall_offset).as_ns())
}

fn advice(verdict: &Verdict) -> String {
    let unadvised = verdict.unadvised.iter().map(|cause| {
        let cause = escaped(cause);
        format!("<p>no advice is known against this cause: {cause}</p>\n")
    });
    let unadvised: String = unadvised.collect();
    if verdict.advice.is_empty() {
        return unadvised;
    }
    let which = match verdict.advice.iter().all(|advice| advice.alone) {
        true => "any one of these",
        false => "one for each cause",
    };
    let mut text = format!("{unadvised}<h2>What to change <small>({which})</small></h2>\n<dl>\n");
    for advice in &verdict.advice {
        let (command, because) = (escaped(&advice.command), escaped(&advice.because));
        let _ = writeln!(
            text,
            "<dt><code>{command}</code></dt><dd>because {because}</dd>"
        );
    }
    if let Some(first) = verdict.advice.first() {
        let check = escaped(&first.then_check);
        let _ = writeln!(text, "<dt><code>{check}</code></dt><dd>to check</dd>");
    }
    text + "</dl>\n"
}

fn drawn(incident: &Incident<'_>, group: &Group, late: &LateActivation) -> Option<String> {
    let offset_ns = incident.info.wall_offset.as_ns();
    window::picture(incident.index?, offset_ns, late, &group.verdict)
}

fn window(incident: &Incident<'_>, group: &Group, late: &LateActivation) -> String {
    let Some(picture) = drawn(incident, group, late) else {
        return String::new();
    };
    format!(
        "<h2>The window</h2>\n<figure>{picture}<figcaption>Each row is a CPU or the late task. \
         <b class=\"victim\">■</b> {}, <b class=\"culprit\">■</b> what made it late, \
         <b class=\"task\">■</b> other tasks, <b class=\"irq\">■</b> interrupts and softirqs, \
         <b class=\"waits\">■</b> it waits for a CPU, <b class=\"unknown\">■</b> not \
         known.</figcaption></figure>\n",
        escaped(&late.task.comm)
    )
}

/// What the answer rests on.
fn basis(incident: &Incident<'_>) -> String {
    let diagnosis = incident.diagnosis;
    let basis = &diagnosis.basis;
    let mut text = String::from("<h2>What this rests on</h2>\n<ul>\n");
    for warning in &diagnosis.warnings {
        let (what, remedy) = (escaped(&warning.what), escaped(&warning.remedy));
        let _ = writeln!(text, "<li class=\"doubt\">{what}: {remedy}</li>");
    }
    let length = basis.window.map(|window| window.duration().to_string());
    let length = length.unwrap_or_else(|| "no time".to_owned());
    let _ = writeln!(
        text,
        "<li>{} events in {length}; {} lost, in {}; {} not understood</li>",
        basis.events,
        basis.lost,
        kernel_state::places(basis.holes),
        crate::count::counted_with(basis.damaged, "stretch of bytes", "stretches of bytes")
    );
    let judged = crate::judged_text(&basis.judged);
    if !judged.is_empty() {
        let count = crate::count::counted(basis.activations, "activation");
        let until = basis.until.name();
        let _ = writeln!(
            text,
            "<li>{count} judged, until {until}, of {}</li>",
            escaped(judged)
        );
    }
    let (trace, command) = (escaped(incident.trace), escaped(incident.command));
    let _ = writeln!(text, "<li>trace <code>{trace}</code></li>");
    let _ = writeln!(text, "<li>made by <code>{command}</code></li>\n</ul>");
    text
}

fn machine(info: &TraceInfo) -> String {
    let mut text = String::from(
        "<h2>The machine and the recording</h2>\n<div class=\"scroll\"><table>\n<tbody>\n",
    );
    for (key, value) in info.environment.iter().take(FACTS_MAX) {
        let value: String = value.chars().take(FACT_CHARS_MAX).collect();
        let (key, value) = (escaped(key.replace('_', " ")), escaped(value));
        let _ = writeln!(text, "<tr><td>{key}</td><td>{value}</td></tr>");
    }
    text + "</tbody></table></div>\n"
}

/// The same for terminals and for programs.
fn enclosed(incident: &Incident<'_>) -> String {
    let style = TextStyle {
        verbose: true,
        trace: Some(incident.trace.to_owned()),
        wall_offset: wall_offset(incident.info),
        utc: incident.utc,
        ..TextStyle::default()
    };
    let mut text = diagnosis_text(incident.diagnosis, &style);
    if text.len() > TEXT_BYTES_MAX {
        let ends = (0..=TEXT_BYTES_MAX).rev();
        let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text += "\n… the rest is left out of the page";
    }
    // Nothing in it may end the element that it is in.
    let json = json(incident.diagnosis).replace('<', "\\u003c");
    format!(
        "<details><summary>As text</summary>\n<pre>{}</pre></details>\n\
         <details><summary>As JSON</summary><p class=\"soft\">In this file: the element \
         <code>rtscope-diagnosis</code>, schema rtscope.diagnosis version 1.</p></details>\n\
         <script type=\"application/json\" id=\"rtscope-diagnosis\">{json}</script>\n",
        escaped_lines(&text)
    )
}

/// Wall clock minus trace clock, where the trace knows it.
fn wall_offset(info: &TraceInfo) -> Option<event::Duration> {
    let offset = info.wall_offset;
    (offset != event::Duration::ZERO).then_some(offset)
}

/// As much of the JSON as the page has space for: the first activations are the ones it is about.
fn json(diagnosis: &Diagnosis) -> String {
    let mut value = diagnosis_json(diagnosis);
    let mut text = value.to_string();
    while text.len() > JSON_BYTES_MAX {
        let Some(Value::Array(activations)) = value.get_mut("activations") else {
            break;
        };
        if activations.len() <= 1 {
            value["activations"] = Value::Array(Vec::new());
        } else {
            activations.truncate(activations.len() / 2);
        }
        value["left_out"] = true.into();
        let was = text.len();
        text = value.to_string();
        if text.len() == was {
            break;
        }
    }
    text
}
