//! `rtscope report`, and the flags that lttng-analyses has.

use std::path::PathBuf;

use clap::Args;

use super::{TraceGroups, Window};

/// What was typed after `report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE, after_long_help = NAMES.as_str())]
pub struct Report {
    /// Reports, with commas between; 'list' names them all
    ///
    /// Or one of another program that speaks LAMI: its path, a Python file, or
    /// rtscope-report-NAME in PATH. Or a monitor's store, without a trace.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Traces, read as one
    pub traces: Vec<PathBuf>,
    /// The part to look at; also hh:mm:ss.n of the wall clock, or with its date.
    #[command(flatten)]
    pub window: Window,
    /// From and to, as --begin and --end
    #[arg(long, value_name = "[B,E]", conflicts_with_all = ["begin", "end"])]
    #[arg(hide_short_help = true)]
    pub timerange: Option<String>,
    /// A result after each DUR of the trace
    #[arg(short, long, value_name = "DUR")]
    #[arg(hide_short_help = true)]
    pub refresh: Option<String>,
    /// Times of day in UTC
    #[arg(long, visible_alias = "utc")]
    #[arg(hide_short_help = true)]
    pub gmt: bool,
    /// Which threads and what size of things.
    #[command(flatten)]
    pub wanted: ReportFilter,
    /// Which tables, and how.
    #[command(flatten)]
    pub tables: ReportTables,
    /// Periods, and what to do with them.
    #[command(flatten)]
    pub periods: ReportPeriods,
    /// intervals: only between these events
    ///
    /// docs/filter.md is the language.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// rtcheck: TASK:PERIOD:NEEDED, as in npt:1ms:200us; repeatable
    #[arg(long, value_name = "RULE")]
    #[arg(hide_short_help = true)]
    pub rt: Vec<String>,
    /// Also the time in which not all CPUs have events
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub no_intersection: bool,
    /// Names, rows and sums as this program has them, also where it errs
    ///
    /// docs/reports.md lists the differences.
    #[arg(long = "as", value_name = "PROGRAM", value_parser = ["lttng-analyses"])]
    #[arg(overrides_with = "as_program", hide_short_help = true)]
    pub as_program: Option<String>,
    /// JSON, schema rtscope.report version 1
    #[arg(long)]
    pub json: bool,
    /// A page with tables and pictures, into FILE
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
    /// The first picture of the first report, into FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "html"])]
    #[arg(hide_short_help = true)]
    pub svg: Option<PathBuf>,
    /// JSON for other programs: LAMI 1.0
    #[arg(long, conflicts_with_all = ["json", "html", "svg"])]
    #[arg(hide_short_help = true)]
    pub lami: bool,
    /// With --lami: what the report can say, without a trace
    #[arg(long, requires = "lami", hide_short_help = true)]
    pub metadata: bool,
    /// With --lami: the version of LAMI
    #[arg(long, requires = "lami", hide_short_help = true)]
    pub mi_version: bool,
    /// With --lami: only whether the trace can be read
    #[arg(long, requires = "lami", hide_short_help = true)]
    pub test_compatibility: bool,
    /// With --lami: lines of progress before the result
    #[arg(long, requires = "lami", hide_short_help = true)]
    pub output_progress: bool,
    /// Flags of lttng-analyses that change nothing here.
    #[command(flatten)]
    pub ignored: ReportIgnored,
}

/// Which threads, and what size of things.
#[derive(Clone, Debug, Default, Args)]
pub struct ReportFilter {
    /// Only these tasks: name, id, pid:N, prio:N
    ///
    /// TASK is a name (jackd, 'jack*'), a thread id (123), pid:123, process:NAME, prio:50 or rt;
    /// docs/tasks.md has them all. Repeatable.
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// The same for all threads of this process, by its id
    #[arg(short, long, value_name = "PID", hide_short_help = true)]
    pub pid: Vec<i32>,
    /// The same for all threads of processes whose first thread has this name
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub process: Vec<String>,
    /// What a trace does not know.
    #[command(flatten)]
    pub groups: TraceGroups,
    /// Of these, only threads of exactly these names
    ///
    /// With commas between, as in lttng-analyses.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub procname: Option<String>,
    /// Of these, only these thread ids
    #[arg(long, value_name = "LIST")]
    pub tid: Option<String>,
    /// Only what lasts as long
    ///
    /// In us without a unit.
    #[arg(long, value_name = "DUR", visible_alias = "over")]
    pub min: Option<String>,
    /// Only what lasts no longer
    #[arg(long, value_name = "DUR")]
    #[arg(hide_short_help = true)]
    pub max: Option<String>,
    /// Only requests of as many bytes
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub minsize: Option<f64>,
    /// Only requests of no more bytes
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub maxsize: Option<f64>,
    /// Only these interrupts
    #[arg(long, value_name = "LIST")]
    #[arg(hide_short_help = true)]
    pub irq: Option<String>,
    /// Only these softirqs, by vector
    #[arg(long, value_name = "LIST")]
    #[arg(hide_short_help = true)]
    pub softirq: Option<String>,
}

/// Which tables, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct ReportTables {
    /// Also all, in order
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub log: bool,
    /// Also the greatest
    #[arg(long)]
    pub top: bool,
    /// Also least, mean, greatest and deviation
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub stats: bool,
    /// Also distributions
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub freq: bool,
    /// Also bytes by process, file, disk and interface
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub usage: bool,
    /// At most N rows of a top; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// Bins of a distribution
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(hide_short_help = true)]
    pub freq_resolution: usize,
    /// The same bins for all distributions
    #[arg(long, hide_short_help = true)]
    pub freq_uniform: bool,
    /// All distributions in one table (LAMI)
    #[arg(long, hide_short_help = true)]
    pub freq_series: bool,
    /// Waits: all in one
    #[arg(long, hide_short_help = true)]
    pub total: bool,
    /// Waits: by thread (the default)
    #[arg(long, hide_short_help = true)]
    pub per_tid: bool,
    /// Waits: by priority
    #[arg(long, hide_short_help = true)]
    pub per_prio: bool,
}

/// Periods, and what to do with them.
#[derive(Clone, Debug, Default, Args)]
pub struct ReportPeriods {
    /// A result for each period NAME(PARENT) : BEGIN : END
    ///
    /// docs/filter.md is the language.
    #[arg(long, value_name = "DEF")]
    pub period: Vec<String>,
    /// What to keep of them: NAME : alias = $evt.field, … : …
    #[arg(long, value_name = "DEF")]
    #[arg(hide_short_help = true)]
    pub period_captures: Vec<String>,
    /// Only periods as long; us without a unit
    #[arg(long, value_name = "DUR", hide_short_help = true)]
    pub min_duration: Option<String>,
    /// Only periods no longer
    #[arg(long, value_name = "DUR", hide_short_help = true)]
    pub max_duration: Option<String>,
    /// Only periods of these names
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub select: Option<String>,
    /// Only what is inside periods of this name
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub aggregate_by: Option<String>,
    /// Statistics and distributions by what was kept, as in switch.comm,switch.cpu
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub group_by: Option<String>,
    /// Periods in the order of their begins, or children after their parents
    #[arg(long, value_name = "ORDER", value_parser = ["time", "hierarchy"], hide_short_help = true)]
    pub order_by: Option<String>,
    /// The event that begins a period
    #[arg(
        long,
        value_name = "EVENT",
        conflicts_with = "period",
        hide_short_help = true
    )]
    pub period_begin: Option<String>,
    /// The event that ends it, the same when not given
    #[arg(
        long,
        value_name = "EVENT",
        requires = "period_begin",
        hide_short_help = true
    )]
    pub period_end: Option<String>,
    /// The fields of the begin that tell periods apart
    #[arg(
        long,
        value_name = "LIST",
        requires = "period_begin",
        hide_short_help = true
    )]
    pub period_begin_key: Option<String>,
    /// Those of the end, the same when not given
    #[arg(
        long,
        value_name = "LIST",
        requires = "period_begin",
        hide_short_help = true
    )]
    pub period_end_key: Option<String>,
    /// The values that those of the begin must have
    #[arg(
        long,
        value_name = "LIST",
        requires = "period_begin",
        hide_short_help = true
    )]
    pub period_key_value: Option<String>,
}

/// Flags that lttng-analyses has and that change nothing here.
#[derive(Clone, Debug, Default, Args)]
pub struct ReportIgnored {
    /// Losses are always looked at
    #[arg(long, hide = true)]
    pub skip_validation: bool,
    /// There is no progress bar
    #[arg(long, hide = true)]
    pub no_progress: bool,
    /// The same
    #[arg(long, hide = true)]
    pub progress_use_size: bool,
    /// Nothing is coloured
    #[arg(long, hide = true)]
    pub no_color: bool,
    /// Errors always say all that is known
    #[arg(long, hide = true)]
    pub debug: bool,
}

const EXAMPLE: &str = "\
Example: rtscope report schedtop,irqstats TRACE --begin +1.5s --cpu 1";

const EXAMPLES: &str = "\
Examples:
  rtscope report cputop TRACE
  rtscope report schedtop,irqstats TRACE --begin +1.5s --cpu 1
  rtscope report intervals TRACE --filter '$name == \"irq_handler_entry\"'
  rtscope report states,irqs,schedstats TRACE --html page.html";

/// The names of all reports, below the long help.
static NAMES: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let mut text = format!("{EXAMPLES}\n\nReports:\n");
    for named in views::reports::REPORTS.iter() {
        text.push_str(&format!("  {:<16}{}\n", named.name, named.about));
    }
    text.push_str(
        "\nUnder the names of lttng-analyses (lttng-cputop, lttng-cputop-mi, …), as a link",
    );
    text.push_str(
        "\nto rtscope or as NAME, a report takes the same flags; those in -mi print LAMI.",
    );
    text
});
