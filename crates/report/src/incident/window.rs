//! The picture of a window: what each CPU did around a late activation, and its task.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnosis::{LateActivation, TermKind, Verdict};
use event::Duration;
use timeline::{Index, Kind, Segment, Track};

use crate::xml::escaped;

/// Sizes in units of the picture.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 60.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
const AXIS: f64 = 20.0;
/// A piece is drawn as wide as this at least.
const PIECE_MIN: f64 = 0.4;
/// A piece has its task's name from this width on, and this much of it.
const NAMED_MIN: f64 = 40.0;
const CHAR: f64 = 6.2;
/// CPUs that are drawn.
const CPUS_MAX: usize = 12;
/// What is shown before and after, as a share of the latency.
const MARGIN_SHARE: i64 = 20;

/// From when to when, in nanoseconds of the wall clock, and who is told from the others.
struct Window<'a> {
    index: &'a Index,
    begin_ns: i64,
    end_ns: i64,
    victim: i32,
    culprits: Vec<i32>,
    is_irq_culprit: bool,
}

/// The picture; none where the index knows nothing of that time.
pub(super) fn picture(
    index: &Index,
    offset_ns: i64,
    late: &LateActivation,
    verdict: &Verdict,
) -> Option<String> {
    let origin_ns = late.origin.as_ns().saturating_add(offset_ns);
    let end_ns = late.end.as_ns().saturating_add(offset_ns);
    let margin_ns = (end_ns.saturating_sub(origin_ns) / MARGIN_SHARE).max(1_000);
    let named = verdict.culprits.iter().filter(|_| verdict.conclusive);
    let tasks = named.clone().filter_map(|culprit| culprit.kind.task());
    let is_irq =
        |kind: &TermKind| matches!(kind, TermKind::Hardirq { .. } | TermKind::Softirq { .. });
    let window = Window {
        index,
        begin_ns: origin_ns.saturating_sub(margin_ns),
        end_ns: end_ns.saturating_add(margin_ns),
        victim: late.task.tid.0,
        culprits: tasks.map(|task| task.tid.0).collect(),
        is_irq_culprit: named.clone().any(|culprit| is_irq(&culprit.kind)),
    };
    (window.end_ns > index.begin_ns && window.begin_ns < index.end_ns).then_some(())?;
    let rows = rows(&window, late);
    let height = rows.len() as f64 * ROW + AXIS;
    let title = escaped(format!(
        "what every CPU did while {} was late",
        late.task.comm
    ));
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n");
    for (place, (name, pieces)) in rows.iter().enumerate() {
        let top = place as f64 * ROW;
        let base = top + BAR + 2.0;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{:.1}\">{}</text><line class=\"base\" x1=\"{LEFT}\" y1=\"{base}\" \
             x2=\"{WIDTH}\" y2=\"{base}\"/>{pieces}",
            top + 15.0,
            escaped(name),
            pieces = pieces.svg(top + 2.0)
        );
    }
    for at_ns in [origin_ns, end_ns] {
        let x = window.x(at_ns);
        let _ = writeln!(
            svg,
            "<line class=\"edge\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
            height - AXIS
        );
    }
    let (left, right) = (window.x(origin_ns), window.x(end_ns));
    let latency = Duration::from_ns(end_ns - origin_ns);
    let _ = writeln!(
        svg,
        "<text class=\"axis\" x=\"{left:.1}\" y=\"{y:.1}\">0</text>\
         <text class=\"axis\" x=\"{right:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{latency}</text>\
         </svg>",
        y = height - 5.0
    );
    Some(svg)
}

/// The late task first, then the CPU it ended on, then the others.
fn rows(window: &Window<'_>, late: &LateActivation) -> Vec<(String, Pieces)> {
    let mut rows = Vec::new();
    let tasks = &window.index.tasks;
    let victim = tasks.iter().position(|task| task.tid == window.victim);
    if let Some(track) = victim.and_then(|place| window.index.threads.get(place)) {
        let name: String = late.task.comm.chars().take(9).collect();
        rows.push((name, window.thread(track)));
    }
    let mut cpus: Vec<usize> = (0..window.index.cpus.len()).collect();
    let here = late.cpu.0 as usize;
    let in_chain = |cpu: usize| late.steps.iter().any(|step| step.cpu.0 as usize == cpu);
    cpus.sort_by_key(|cpu| (*cpu != here, !in_chain(*cpu), *cpu));
    for cpu in cpus.into_iter().take(CPUS_MAX) {
        let track = &window.index.cpus[cpu];
        rows.push((format!("CPU {cpu}"), window.cpu(track)));
    }
    rows
}

impl Window<'_> {
    fn x(&self, at_ns: i64) -> f64 {
        let length = self.end_ns.saturating_sub(self.begin_ns).max(1) as f64;
        let since = at_ns.clamp(self.begin_ns, self.end_ns) - self.begin_ns;
        LEFT + since as f64 / length * (WIDTH - LEFT)
    }

    fn pieces(
        &self,
        track: &Track,
        what: impl Fn(&Segment) -> Option<(&'static str, String)>,
    ) -> Pieces {
        let mut pieces = Pieces::default();
        for segment in track.segments(self.begin_ns, self.end_ns) {
            let Some((class, name)) = what(&segment) else {
                continue;
            };
            pieces.add(
                class,
                &name,
                self.x(segment.begin_ns),
                self.x(segment.end_ns),
            );
        }
        pieces
    }

    fn cpu(&self, track: &Track) -> Pieces {
        self.pieces(track, |segment| {
            let state = segment.state;
            let task = state.detail().and_then(|place| {
                let place = usize::try_from(place).ok()?;
                self.index.tasks.get(place)
            });
            match state.kind() {
                Kind::Idle => None,
                Kind::Irq | Kind::Softirq if self.is_irq_culprit => {
                    Some(("culprit", String::new()))
                }
                Kind::Irq | Kind::Softirq => Some(("irq", String::new())),
                Kind::Unknown => Some(("unknown", "?".to_owned())),
                _ => match task {
                    Some(task) if task.tid == self.victim => Some(("victim", task.comm.clone())),
                    Some(task) if self.culprits.contains(&task.tid) => {
                        Some(("culprit", task.comm.clone()))
                    }
                    Some(task) => Some(("task", task.comm.clone())),
                    None => Some(("unknown", "?".to_owned())),
                },
            }
        })
    }

    fn thread(&self, track: &Track) -> Pieces {
        self.pieces(track, |segment| match segment.state.kind() {
            Kind::Idle => None,
            Kind::Run | Kind::Call => Some(("victim", "runs".to_owned())),
            Kind::Runnable => Some(("waits", "waits for a CPU".to_owned())),
            Kind::Irq | Kind::Softirq => Some(("irq", String::new())),
            Kind::Unknown => Some(("unknown", "?".to_owned())),
        })
    }
}

/// The pieces of a row: one path for each class, so that many pieces cost few bytes.
#[derive(Default)]
struct Pieces {
    /// Begins and ends, those that touch put together.
    spans: BTreeMap<&'static str, Vec<(f64, f64)>>,
    names: Vec<(f64, String)>,
}

impl Pieces {
    fn add(&mut self, class: &'static str, name: &str, begin: f64, end: f64) {
        let spans = self.spans.entry(class).or_default();
        match spans.last_mut() {
            // No picture shows a smaller gap.
            Some(last) if begin - last.1 < PIECE_MIN => last.1 = last.1.max(end),
            _ => spans.push((begin, end.max(begin + PIECE_MIN))),
        }
        if end - begin >= NAMED_MIN {
            let count = ((end - begin - 6.0) / CHAR) as usize;
            let name: String = name.chars().take(count).collect();
            self.names.push((begin + 4.0, name));
        }
    }

    fn svg(&self, top: f64) -> String {
        let mut svg = String::new();
        for (class, spans) in &self.spans {
            let _ = write!(svg, "<path class=\"{class}\" d=\"");
            for (begin, end) in spans {
                let width = end - begin;
                let _ = write!(svg, "M{begin:.1} {top:.0}h{width:.1}v{BAR}h-{width:.1}z");
            }
            svg += "\"/>";
        }
        for (x, name) in &self.names {
            let (y, name) = (top + 13.0, escaped(name));
            let _ = write!(
                svg,
                "<text class=\"on\" x=\"{x:.1}\" y=\"{y:.0}\">{name}</text>"
            );
        }
        svg
    }
}
