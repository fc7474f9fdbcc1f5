//! Which reports were asked for, and of what.

use std::path::PathBuf;

use event::{Cpu, Duration, Error, ErrorKind, Result, TaskPattern};
use expr::Expr;
use expr::period::Periods;
use views::reports::{
    Bins, CodeNames, Groups, Named, REPORTS, Report, ReportOptions, RtRule, Spill, Subject, Views,
    report_named,
};

use super::tasks::{no_groups, processes, tasks};
use super::{TimeWord, WindowOptions};
use crate::flags;

/// What `report` does.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportVerb {
    /// Names all reports.
    List,
    /// Prints what LAMI wants to know without a trace.
    Metadata(Report),
    /// Prints LAMI's version.
    LamiVersion,
    /// What a monitor's store says.
    Store(PathBuf, WindowOptions),
    /// Asks another program, and prints what it says.
    External(Box<ExternalRequest>),
    /// Reports.
    Run(Box<ReportRequest>),
}

/// How results are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// As text, window by window.
    Text,
    /// Our own JSON.
    Json,
    /// A page, into a file.
    Html(PathBuf),
    /// A picture, into a file.
    Svg(PathBuf),
    /// LAMI.
    Lami {
        /// With lines of progress before it.
        progress: bool,
        /// Only whether the trace can be read.
        test: bool,
    },
}

/// Reports, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRequest {
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// What to report, with its name.
    pub reports: Vec<(&'static str, Report)>,
    /// Where to look.
    pub window: WindowOptions,
    /// Only the time in which all streams have events.
    pub intersection: bool,
    /// What else was asked; its range is for the trace to say.
    pub options: ReportOptions,
    /// How to print.
    pub output: Output,
}

/// A report of another program, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalRequest {
    /// Its path, or its name without `rtscope-report-`.
    pub name: String,
    /// The traces.
    pub traces: Vec<PathBuf>,
    /// Where to look.
    pub window: WindowOptions,
    /// Only what it says of itself.
    pub metadata: bool,
    /// How to print.
    pub output: Output,
}

impl ReportVerb {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning, [`ErrorKind::NotFound`] for a
    /// report that does not exist.
    pub fn new(typed: &flags::Report) -> Result<Self> {
        if typed.mi_version {
            return Ok(ReportVerb::LamiVersion);
        }
        if typed.name == "list" {
            return Ok(ReportVerb::List);
        }
        let path = PathBuf::from(&typed.name);
        if typed.traces.is_empty() && monitor::is_store(&path) {
            return Ok(ReportVerb::Store(path, window(typed)?));
        }
        if is_external(&typed.name) {
            return Ok(ReportVerb::External(Box::new(ExternalRequest {
                name: typed.name.clone(),
                traces: typed.traces.clone(),
                window: window(typed)?,
                metadata: typed.metadata,
                output: output(typed),
            })));
        }
        let reports = typed.name.split(',').map(|name| named(name, &typed.tables));
        let reports = reports.collect::<Result<Vec<_>>>()?;
        if typed.metadata {
            return Ok(ReportVerb::Metadata(reports[0].1));
        }
        if typed.traces.is_empty() {
            return Err(refuse("no trace was given", &typed.name)
                .fix(format!("rtscope report {} TRACE", typed.name)));
        }
        check_subject(typed, &reports)?;
        if typed.refresh.is_some() && !typed.periods.period.is_empty() {
            return Err(
                refuse("--refresh and --period exclude each other", &typed.name)
                    .fix("take one of them"),
            );
        }
        if typed.lami && reports.len() > 1 {
            return Err(refuse("LAMI has one report at a time", &typed.name)
                .fix("ask for them one after the other, or take --json"));
        }
        Ok(ReportVerb::Run(Box::new(ReportRequest {
            traces: typed.traces.clone(),
            reports,
            window: window(typed)?,
            intersection: !typed.no_intersection,
            options: options(typed)?,
            output: output(typed),
        })))
    }
}

/// Whether a name is none of ours: a path, or one that a program in the search path has.
fn is_external(name: &str) -> bool {
    let is_path = name.contains('/') || name.ends_with(".py");
    is_path || report_named(name).is_none() && !name.contains(',') && report_program(name).is_some()
}

/// The program in the search path that makes the report `name`.
pub fn report_program(name: &str) -> Option<PathBuf> {
    which::which(format!("rtscope-report-{name}")).ok()
}

fn output(typed: &flags::Report) -> Output {
    match (&typed.html, &typed.svg) {
        (Some(path), _) => Output::Html(path.clone()),
        (_, Some(path)) => Output::Svg(path.clone()),
        _ if typed.json => Output::Json,
        _ if typed.lami => Output::Lami {
            progress: typed.output_progress,
            test: typed.test_compatibility,
        },
        _ => Output::Text,
    }
}

/// Refuses reports without what they are about.
fn check_subject(typed: &flags::Report, reports: &[(&'static str, Report)]) -> Result<()> {
    let (periods, wanted) = (&typed.periods, &typed.wanted);
    let no_period = periods.period.is_empty() && periods.period_begin.is_none();
    let no_name = wanted.task.is_empty() && wanted.procname.is_none();
    let no_task = no_name && wanted.tid.is_none();
    for (name, report) in reports {
        let (what, fix) = match report.kind.subject {
            Subject::Periods if no_period => (
                "no period was defined",
                "give --period, as in --period 'irq : $evt.$name == \"irq_handler_entry\" : \
                 $evt.$name == \"irq_handler_exit\"'",
            ),
            Subject::Task if no_task => (
                "a critical path is that of one task",
                "name it: --task NAME or --task TID",
            ),
            Subject::RtRules if typed.rt.is_empty() => (
                "no task was given to check",
                "give --rt TASK:PERIOD:NEEDED, as in --rt npt:1ms:200us",
            ),
            _ => continue,
        };
        return Err(refuse(what, name).fix(fix));
    }
    Ok(())
}

/// As in `npt:1ms:200us`; a name may have colons.
fn rt_rule(text: &str) -> Result<RtRule> {
    let wrong = || {
        refuse("--rt is no rule", text)
            .fix("give TASK:PERIOD:NEEDED with units, as in --rt npt:1ms:200us")
    };
    let mut parts = text.rsplitn(3, ':');
    let mut duration = || {
        let part = parts.next().ok_or_else(wrong)?;
        Duration::parse(part).map_err(|_| wrong())
    };
    let (needed_ns, period_ns) = (duration()?.as_ns(), duration()?.as_ns());
    let task = parts.next().filter(|task| !task.is_empty());
    let task = TaskPattern::parse(task.ok_or_else(wrong)?)?;
    if period_ns <= 0 || needed_ns > period_ns {
        return Err(wrong());
    }
    Ok(RtRule {
        task,
        period_ns,
        needed_ns,
    })
}

fn refuse(what: impl Into<String>, found: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what).found(format!("'{found}'"))
}

/// The report of this name, with the tables that were asked for besides.
fn named(name: &str, tables: &flags::ReportTables) -> Result<(&'static str, Report)> {
    let Some(Named { name, report, .. }) = report_named(name) else {
        let names: Vec<&str> = REPORTS.iter().map(|named| named.name).collect();
        let error = Error::new(ErrorKind::NotFound, "there is no such report");
        return Err(error
            .found(format!("'{name}'"))
            .fix(format!("choose from: {}", names.join(", "))));
    };
    let asked = Views {
        log: tables.log,
        top: tables.top,
        stats: tables.stats,
        freq: tables.freq,
        usage: tables.usage,
    };
    let views = report.views.and(asked);
    Ok((name, Report { views, ..*report }))
}

fn window(typed: &flags::Report) -> Result<WindowOptions> {
    let mut window = WindowOptions::new(&typed.window)?;
    window.utc = typed.gmt;
    if let Some(range) = &typed.timerange {
        let inside = range.trim().strip_prefix('[');
        let inside = inside.and_then(|range| range.strip_suffix(']'));
        let Some((begin, end)) = inside.and_then(|range| range.split_once(',')) else {
            return Err(refuse("not a range of time", range)
                .fix("give --timerange as in [09:07:19,09:07:20.5]"));
        };
        window.begin = Some(TimeWord::parse(begin.trim())?);
        window.end = Some(TimeWord::parse(end.trim())?);
    }
    Ok(window)
}

fn options(typed: &flags::Report) -> Result<ReportOptions> {
    let (filter, tables) = (&typed.wanted, &typed.tables);
    if tables.freq_resolution == 0 || tables.freq_resolution > BINS_MAX {
        return Err(refuse(
            "--freq-resolution is out of range",
            &tables.freq_resolution.to_string(),
        )
        .fix(format!("give --freq-resolution 1 to {BINS_MAX}")));
    }
    check_bounds(typed)?;
    let words = |list: &Option<String>| -> Vec<String> {
        let words = list.iter().flat_map(|list| list.split(','));
        words.map(str::to_owned).collect()
    };
    let size = |bytes: Option<f64>| bytes.map(|bytes| bytes.max(0.0) as u64);
    let cpus = typed
        .window
        .cpu
        .as_deref()
        .map(Cpu::parse_list)
        .transpose()?;
    no_groups(&filter.groups)?;
    Ok(ReportOptions {
        // Who reads LAMI knows the columns of lttng-analyses.
        as_lttng_analyses: typed.as_program.is_some() || typed.lami,
        code: CodeNames::default(),
        spill: Spill::default(),
        begin_ns: None,
        end_ns: None,
        refresh_ns: duration("--refresh", &typed.refresh, "s")?.filter(|ns| *ns > 0),
        cpus: cpus.unwrap_or_default().iter().map(|cpu| cpu.0).collect(),
        tasks: tasks(&filter.task, None)?.or(processes(&filter.pid, &filter.process)?),
        names: words(&filter.procname),
        tids: numbers("--tid", &filter.tid)?,
        min_ns: duration("--min", &filter.min, "us")?,
        max_ns: duration("--max", &filter.max, "us")?,
        min_size: size(filter.minsize),
        max_size: size(filter.maxsize),
        irqs: numbers("--irq", &filter.irq)?,
        softirqs: numbers("--softirq", &filter.softirq)?,
        limit: tables.limit,
        bins: Bins {
            count: tables.freq_resolution,
            uniform: tables.freq_uniform,
            series: tables.freq_series,
        },
        groups: Groups {
            total: tables.total,
            per_tid: tables.per_tid || !(tables.total || tables.per_prio),
            per_prio: tables.per_prio,
        },
        periods: periods(&typed.periods)?,
        min_period_ns: duration("--min-duration", &typed.periods.min_duration, "us")?,
        max_period_ns: duration("--max-duration", &typed.periods.max_duration, "us")?,
        select: words(&typed.periods.select)
            .iter()
            .map(|path| last(path))
            .collect(),
        aggregate_by: typed.periods.aggregate_by.as_deref().map(last),
        group_by: groups(&typed.periods.group_by)?,
        by_hierarchy: typed.periods.order_by.as_deref() == Some("hierarchy"),
        events: typed.filter.as_deref().map(Expr::parse).transpose()?,
        rt_rules: typed
            .rt
            .iter()
            .map(|text| rt_rule(text))
            .collect::<Result<_>>()?,
    })
}

/// Refuses bounds between which nothing can lie.
fn check_bounds(typed: &flags::Report) -> Result<()> {
    let (wanted, periods) = (&typed.wanted, &typed.periods);
    let ns = |flag, text: &Option<String>| Ok(duration(flag, text, "us")?.map(|ns| ns as f64));
    for (flag, min, max) in [
        ("min", ns("--min", &wanted.min)?, ns("--max", &wanted.max)?),
        ("minsize", wanted.minsize, wanted.maxsize),
        (
            "min-duration",
            ns("--min-duration", &periods.min_duration)?,
            ns("--max-duration", &periods.max_duration)?,
        ),
    ] {
        let upper = flag.replace("min", "max");
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let what = format!("nothing lies between --{flag} and --{upper}");
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("--{flag} is greater"))
                .fix(format!("let --{flag} be at most --{upper}")));
        }
    }
    Ok(())
}

/// The last part of a period's path.
fn last(path: &str) -> String {
    path.trim()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Names of periods with names of captures, as in `switch.comm`.
fn groups(list: &Option<String>) -> Result<Vec<(String, String)>> {
    let names = list.iter().flat_map(|list| list.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    let pair = |name: &str| match name.split_once('.') {
        Some((period, capture)) => Ok((last(period), capture.to_owned())),
        None => Err(refuse("--group-by names no capture", name)
            .fix("give PERIOD.CAPTURE, as in --group-by switch.comm")),
    };
    names.map(pair).collect()
}

fn periods(typed: &flags::ReportPeriods) -> Result<Periods> {
    let Some(begin) = &typed.period_begin else {
        return Periods::parse(&typed.period, &typed.period_captures);
    };
    let end = typed.period_end.as_ref().unwrap_or(begin);
    let begin_keys = typed.period_begin_key.as_deref().unwrap_or("cpu_id");
    let end_keys = typed.period_end_key.as_deref().unwrap_or(begin_keys);
    let mut begins = vec![format!("$evt.$name == {begin:?}")];
    let mut ends = vec![format!("$evt.$name == {end:?}")];
    let values = typed
        .period_key_value
        .iter()
        .flat_map(|list| list.split(','));
    for (key, value) in begin_keys.split(',').zip(values) {
        begins.push(match value.parse::<f64>() {
            Ok(_) => format!("$evt.{key} == {value}"),
            Err(_) => format!("$evt.{key} == {value:?}"),
        });
    }
    for (begin, end) in begin_keys.split(',').zip(end_keys.split(',')) {
        ends.push(format!("$evt.{end} == $begin.$evt.{begin}"));
    }
    let period = format!(": {} : {}", begins.join(" && "), ends.join(" && "));
    Periods::parse(&[period], &typed.period_captures)
}

/// More bins than a screen has lines help nobody.
const BINS_MAX: usize = 100_000;

fn numbers<T: std::str::FromStr>(flag: &str, list: &Option<String>) -> Result<Vec<T>> {
    let one = |text: &str| {
        text.trim().parse().map_err(|_| {
            refuse(format!("{flag} is not a list of numbers"), text).fix(format!(
                "give {flag} numbers with commas between, as in 7,24"
            ))
        })
    };
    list.iter()
        .flat_map(|list| list.split(','))
        .map(one)
        .collect()
}

/// A duration; a bare number has the unit that lttng-analyses gives it.
fn duration(flag: &str, text: &Option<String>, unit: &str) -> Result<Option<i64>> {
    let Some(text) = text else { return Ok(None) };
    let bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = match bare {
        true => format!("{text}{unit}"),
        false => text.clone(),
    };
    let duration = Duration::parse(&with_unit).map_err(|_| {
        refuse(format!("{flag} is not a duration"), text)
            .fix(format!("give {flag} a duration, as in 25ms"))
    })?;
    Ok(Some(duration.as_ns()))
}
