//! `rtscope report`: the reports of lttng-analyses, any number of them in one pass.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::rc::Rc;

use event::{Error, ErrorKind, Instant, Result};
use kernel_state::places;
use report::{
    Calendar, Drawing, LAMI_VERSION, LamiResults, ReportHtml, ReportJson, ReportText, lami_error,
    lami_metadata, picture,
};
use symbols::UserSymbols;
use tempfile::{SpooledTempFile, spooled_tempfile, tempfile};
use trace::{OpenOptions, Root, Trace};
use views::reports::{
    CodeNames, Need, Pass, REPORTS, Report, ReportOptions, Spill, Tick, run_reports,
};

use crate::exit::{Outcome, print, stdout_error, write_error, write_file};
use crate::flags;
use crate::options::{Output, ReportRequest, ReportVerb};
use crate::verbs::{external, filtered, opened, store, window};

/// Runs the verb.
pub fn run(typed: &flags::Report) -> Result<Outcome> {
    match ReportVerb::new(typed)? {
        ReportVerb::Store(path, window) => return store::report_store(&path, &window),
        ReportVerb::List => {
            let names = REPORTS.iter();
            print(
                &names
                    .map(|n| format!("{:<16}{}\n", n.name, n.about))
                    .collect::<String>(),
            )?;
        }
        ReportVerb::Metadata(report) => print(&format!("{}\n", lami_metadata(report.kind)))?,
        ReportVerb::External(request) => return external::run(&request),
        ReportVerb::LamiVersion => print(&format!("{}.{}\n", LAMI_VERSION.0, LAMI_VERSION.1))?,
        ReportVerb::Run(request) => {
            let outcome = report(&request);
            if !matches!(request.output, Output::Lami { .. }) {
                return outcome;
            }
            // Who reads LAMI takes any code but 0 for a failure, and wants its reason as JSON.
            if let Err(error) = &outcome {
                print(&format!("{}\n", lami_error(&error.to_string())))?;
            }
            return outcome.map(|_| Outcome::Fine);
        }
    }
    Ok(Outcome::Fine)
}

fn report(request: &ReportRequest) -> Result<Outcome> {
    let roots: Vec<Root> = request.traces.iter().map(Root::from).collect();
    let options = OpenOptions {
        intersection: request.intersection,
        ..OpenOptions::default()
    };
    let trace = opened::open_all(&roots, &options)?;
    if request.intersection {
        check_intersection(&trace)?;
    }
    let mut asked = within(request, &trace)?;
    let reports: Vec<Report> = request.reports.iter().map(|(_, report)| *report).collect();
    let symbols = code_names(&reports, &trace)?;
    if let Some(symbols) = &symbols {
        asked.code = named_by(symbols, &trace);
    }
    let blind = warn_of_needs(&reports, &trace);
    let matches_nothing = match &asked.events {
        // Said here what looks like a mistake in it; the pass binds it again.
        Some(filter) => {
            let filter = filtered::compile(filter, &trace)?;
            let mut classes = trace.classes().iter();
            !classes.any(|class| filter.program().wants(class.id) != expr::Wants::Never)
        }
        None => false,
    };
    let pass = match &request.output {
        Output::Text => text(request, &trace, &reports, &asked)?,
        Output::Json => json(request, &trace, &reports, &asked)?,
        Output::Html(path) => html(request, &trace, &reports, &asked, path)?,
        Output::Svg(path) => svg(request, &trace, &reports, &asked, path)?,
        Output::Lami { test: true, .. } => Pass::default(),
        Output::Lami { progress, .. } => lami(&trace, &reports, &asked, *progress)?,
    };
    warn(&pass);
    for problem in symbols.iter().flat_map(|s| s.borrow().problems().to_vec()) {
        note!("warning: {problem}");
    }
    let nothing = warn_of_nothing(&pass, &asked, &trace);
    // What lies in a hole nobody knows, and what was not recorded neither.
    let nothing = nothing || matches_nothing;
    Ok(match pass.holes + pass.damages > 0 || blind || nothing {
        false => Outcome::Fine,
        true => Outcome::Inconclusive,
    })
}

/// The names of applications' functions and locks, where a report is about them.
fn code_names(reports: &[Report], trace: &Trace) -> Result<Option<Rc<RefCell<UserSymbols>>>> {
    let wanted = reports.iter().any(|report| report.kind.names_code);
    let symbols = wanted.then(|| UserSymbols::read(trace)).transpose()?;
    Ok(symbols.map(|symbols| Rc::new(RefCell::new(symbols))))
}

fn named_by(symbols: &Rc<RefCell<UserSymbols>>, trace: &Trace) -> CodeNames {
    let wall_offset = trace.info().wall_offset;
    let at = move |wall_ns| Instant::from_ns(wall_ns) - wall_offset;
    let (functions, objects) = (Rc::clone(symbols), Rc::clone(symbols));
    CodeNames::new(
        move |pid, at_ns, address| {
            let place = functions.borrow_mut().place(pid, at(at_ns), address)?;
            place.name().map(str::to_owned)
        },
        move |pid, at_ns, address| objects.borrow_mut().object(pid, at(at_ns), address),
    )
}

/// The options with the range that was asked for.
fn within(request: &ReportRequest, trace: &Trace) -> Result<ReportOptions> {
    window::known_cpus(&request.window, trace)?;
    let range = window::resolve(&request.window, trace)?;
    let wall = |instant: Instant| trace.wall_ns(instant);
    Ok(ReportOptions {
        begin_ns: (range.begin > Instant::MIN).then(|| wall(range.begin)),
        end_ns: (range.end < Instant::MAX).then(|| wall(range.end)),
        spill: Spill::new(tempfile),
        ..request.options.clone()
    })
}

/// Refuses traces whose streams share no time.
fn check_intersection(trace: &Trace) -> Result<()> {
    for part in trace.parts() {
        let ranges = || part.streams.iter().filter_map(|stream| stream.range);
        let begin = ranges().map(|range| range.begin).max();
        let end = ranges().map(|range| range.end).min();
        if let (Some(begin), Some(end)) = (begin, end)
            && begin > end
        {
            let what = "Trace has no intersection. Use --no-intersection to override";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("a stream ends at {end}, another begins at {begin}"))
                .fix("add --no-intersection"));
        }
    }
    Ok(())
}

fn calendar(request: &ReportRequest, trace: &Trace) -> Calendar {
    let calendar = Calendar {
        utc: request.window.utc,
        dated: false,
    };
    let over_midnight = trace.range().is_some_and(|range| {
        calendar.are_apart(trace.wall_ns(range.begin), trace.wall_ns(range.end))
    });
    Calendar {
        dated: over_midnight,
        ..calendar
    }
}

fn text(
    request: &ReportRequest,
    trace: &Trace,
    reports: &[Report],
    asked: &ReportOptions,
) -> Result<Pass> {
    let calendar = calendar(request, trace);
    let texts = reports.iter();
    let mut texts: Vec<_> = texts
        .map(|report| ReportText::new(*report, calendar))
        .collect();
    run_reports(trace, reports, asked, |tick: Tick| {
        if texts.len() > 1 && !tick.continues {
            print(&format!("== {} ==\n", request.reports[tick.report].0))?;
        }
        print(&texts[tick.report].tick(&tick))
    })
}

fn names(request: &ReportRequest) -> Vec<&'static str> {
    request.reports.iter().map(|(name, _)| *name).collect()
}

fn json(
    request: &ReportRequest,
    trace: &Trace,
    reports: &[Report],
    asked: &ReportOptions,
) -> Result<Pass> {
    let names = names(request);
    let out = BufWriter::new(io::stdout().lock());
    let mut json = ReportJson::new(&names, out).map_err(stdout_error)?;
    let pass = run_reports(trace, reports, asked, |tick| {
        json.tick(&tick).map_err(stdout_error)
    })?;
    json.finish(&pass).map_err(stdout_error)?;
    Ok(pass)
}

/// A file for what waits until all is there: in memory while it is short, without a name else.
fn spool() -> SpooledTempFile {
    spooled_tempfile(SPOOL_BYTES)
}

const SPOOL_BYTES: usize = 1 << 20;

fn spool_error(error: io::Error) -> Error {
    Error::io("cannot keep results in a temporary file", error)
        .fix("make room in the folder for temporary files, or name one: TMPDIR=FOLDER")
}

fn html(
    request: &ReportRequest,
    trace: &Trace,
    reports: &[Report],
    asked: &ReportOptions,
    path: &Path,
) -> Result<Pass> {
    let names = names(request);
    let mut page = ReportHtml::new(&names, calendar(request, trace), spool());
    let pass = run_reports(trace, reports, asked, |tick| {
        page.tick(&tick).map_err(spool_error)
    })?;
    let traces = request.traces.iter();
    let traces: Vec<_> = traces.map(|path| path.display().to_string()).collect();
    let out = File::create(path).map_err(|error| write_error(path, error))?;
    page.finish(&traces.join(" "), &pass, BufWriter::new(out))
        .map_err(|error| write_error(path, error))?;
    Ok(pass)
}

fn svg(
    request: &ReportRequest,
    trace: &Trace,
    reports: &[Report],
    asked: &ReportOptions,
    path: &Path,
) -> Result<Pass> {
    let mut found = None;
    let mut growing: Option<Drawing> = None;
    let pass = run_reports(trace, reports, asked, |tick| {
        let last = tick.tables.len().saturating_sub(1);
        for (place, table) in tick.tables.iter().enumerate() {
            if found.is_some() {
                break;
            }
            let goes_on = tick.goes_on && place == last;
            growing = match growing.take() {
                Some(mut drawing) => {
                    drawing.add(table);
                    Some(drawing)
                }
                None if goes_on => Some(Drawing::new(table)),
                None => {
                    found = picture(table);
                    None
                }
            };
            if !goes_on && let Some(drawing) = growing.take() {
                found = drawing.picture();
            }
        }
        Ok(())
    })?;
    let Some(picture) = found else {
        let what = "the report found nothing to draw";
        return Err(Error::new(ErrorKind::NotFound, what)
            .found(format!("'{}'", request.reports[0].0))
            .fix("look at its text: the same command without --svg"));
    };
    write_file(path, &picture.svg)?;
    Ok(pass)
}

fn lami(trace: &Trace, reports: &[Report], asked: &ReportOptions, progress: bool) -> Result<Pass> {
    if progress {
        print("0 Starting\n")?;
    }
    let mut results = LamiResults::new(reports[0], asked.bins.series, spool);
    let pass = run_reports(trace, reports, asked, |tick| {
        results.tick(&tick).map_err(spool_error)
    })?;
    if progress {
        print("1 Done!\n")?;
    }
    let out = BufWriter::new(io::stdout().lock());
    results.finish(out).map_err(stdout_error)?;
    Ok(pass)
}

/// The needs of these reports that the trace does not meet: it declares no such class, or is so
/// short that a look at all of it finds none of its events.
fn missing(reports: &[Report], trace: &Trace) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for need in reports.iter().flat_map(|report| report.kind.needs) {
        if !needs.contains(need) {
            needs.push(*need);
        }
    }
    let is_declared = |need: &Need| trace.classes().iter().any(|class| need.is_met_by(class));
    let mut unmet: Vec<Need> = needs.iter().copied().filter(is_declared).collect();
    let whole = trace.look(|class| {
        let class = &trace.classes()[class.0 as usize];
        unmet.retain(|need| !need.is_met_by(class));
        unmet.is_empty()
    });
    // A trace that cannot be read is for the walk to report.
    let is_absent = |need: &Need| unmet.contains(need) && matches!(whole, Ok(true));
    needs.retain(|need| !is_declared(need) || is_absent(need));
    needs
}

/// Says which events are not in the trace at all, and how to record them; whether there are such.
fn warn_of_needs(reports: &[Report], trace: &Trace) -> bool {
    let missing = missing(reports, trace);
    for need in &missing {
        let star = |name: &&str| match name.ends_with('_') {
            true => format!("{name}*"),
            false => (*name).to_owned(),
        };
        let names: Vec<String> = need.names.iter().map(star).collect();
        let fix = match need.set {
            "" => "build the program with -finstrument-functions, preload \
                   librtscope-functions.so\n         and rtscope record --user \
                   lttng_ust_cyg_profile -- ./program;\n         of the kernel: rtscope record \
                   --functions 'vfs_*';\n         in which stacks events happened: rtscope record \
                   --context callstack-kernel,callstack-user --events sched_switch"
                .to_owned(),
            set => format!("rtscope record --events {set}"),
        };
        note!(
            "warning: the trace has no {}: what rests on it is missing\n  fix:  {fix}",
            names.join(", no "),
        );
    }
    !missing.is_empty()
}

/// Says why a report has nothing to show where the question is to blame; whether it is.
fn warn_of_nothing(pass: &Pass, asked: &ReportOptions, trace: &Trace) -> bool {
    if pass.events > 0 && pass.events_in_range == 0
        || pass.events == 0 && asked.end_ns.is_some() && trace.range().is_some()
    {
        window::warn_of_range(trace);
        return true;
    }
    for name in &pass.strangers {
        note!(
            "warning: nothing was found, and no thread of the trace is '{name}' at its end\n  \
             fix:  'rtscope report cputop --limit 0' names them all"
        );
    }
    let periods = !asked.periods.list().is_empty() && pass.periods_completed == 0;
    match (periods, pass.periods_begun) {
        (false, _) => {}
        (true, 0) => note!(
            "warning: no period began\n  fix:  look for the events of its begin with \
             'rtscope cat --filter'"
        ),
        (true, begun) => note!(
            "warning: {begun} periods began and none ended\n  fix:  look for the events of its \
             end with 'rtscope cat --filter'"
        ),
    }
    periods || !pass.strangers.is_empty()
}

/// Says what is missing, beside the data.
fn warn(pass: &Pass) {
    if pass.holes > 0 {
        note!(
            "warning: {} events were lost in {}: counts are lower bounds, and what crosses such a \
             place is not counted",
            pass.lost,
            places(pass.holes)
        );
    }
    if pass.periods_refused > 0 {
        let count = pass.periods_refused;
        note!(
            "warning: {count} periods were not followed: too many were open, as if they never end"
        );
    }
    if pass.damages > 0 {
        note!("warning: {} could not be read", places(pass.damages));
    }
}
