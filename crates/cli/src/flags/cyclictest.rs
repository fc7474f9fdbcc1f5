//! The options of cyclictest (rt-tests 2.x), for scripts that go on working.

use std::path::PathBuf;

use event::Error;

use super::getopt::{self, Found, Opt, Takes};
use Takes::{MayHave, Nothing, Value};

/// How threads are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placed {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// Over all CPUs that we may use.
    All,
    /// Over those of the list.
    Listed,
}

/// Policies as cyclictest calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CyclictestPolicy {
    /// SCHED_OTHER.
    #[default]
    Other,
    /// SCHED_BATCH, which is printed and not used.
    Batch,
    /// SCHED_IDLE, which is printed and not used.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

impl CyclictestPolicy {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            CyclictestPolicy::Other => "other",
            CyclictestPolicy::Batch => "batch",
            CyclictestPolicy::Idle => "idle",
            CyclictestPolicy::Fifo => "fifo",
            CyclictestPolicy::Rr => "rr",
        }
    }

    /// By the first letters of its name; what is none is SCHED_OTHER.
    fn parse(text: &str) -> CyclictestPolicy {
        let text = text.to_ascii_lowercase();
        let named = [
            ("batch", CyclictestPolicy::Batch),
            ("idle", CyclictestPolicy::Idle),
            ("fifo", CyclictestPolicy::Fifo),
            ("rr", CyclictestPolicy::Rr),
        ];
        let found = named.iter().find(|(name, _)| text.starts_with(name));
        found.map_or(CyclictestPolicy::Other, |(_, policy)| *policy)
    }

    /// Whether it has priorities.
    pub fn is_real_time(self) -> bool {
        matches!(self, CyclictestPolicy::Fifo | CyclictestPolicy::Rr)
    }
}

/// What was typed after `--cyclictest`, or after the name cyclictest; numbers as atoi reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cyclictest {
    /// How threads are placed.
    pub placed: Placed,
    /// The list behind `-a`.
    pub cpus: Option<String>,
    /// `-S`.
    pub smp: bool,
    /// How many threads; none for one for each CPU.
    pub threads: Option<i64>,
    /// `-A` or `--secaligned`: in us.
    pub aligned: Option<i64>,
    /// `--secaligned`.
    pub secaligned: bool,
    /// `-b`, in us; zero without.
    pub breaktrace: i64,
    /// `--tracemark`.
    pub tracemark: bool,
    /// `-c`.
    pub clock: i64,
    /// `--default-system` or `--laptop`: idle states stay.
    pub default_system: bool,
    /// `--laptop`.
    pub laptop: bool,
    /// `--deepest-idle-state`, of later 2.x; none without.
    pub deepest_idle: Option<i64>,
    /// `-d`; none without.
    pub distance: Option<i64>,
    /// `-D` in seconds; zero without.
    pub duration_s: i64,
    /// `-F`.
    pub fifo: Option<PathBuf>,
    /// `-h` or `-H`; zero without.
    pub histogram: i64,
    /// `-H`.
    pub histofall: bool,
    /// `--histfile`.
    pub histfile: Option<PathBuf>,
    /// `-i`.
    pub interval: i64,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `--latency`.
    pub latency: i64,
    /// `-l`; zero without.
    pub loops: i64,
    /// `--mainaffinity`.
    pub mainaffinity: Option<String>,
    /// `-m`.
    pub mlockall: bool,
    /// `-M`.
    pub refresh_on_max: bool,
    /// `-N`.
    pub nsecs: bool,
    /// `-o`.
    pub oscope: i64,
    /// `-p`.
    pub priority: i64,
    /// `--policy`, or what `-p` makes of it.
    pub policy: CyclictestPolicy,
    /// `--priospread`.
    pub priospread: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-u`.
    pub unbuffered: bool,
    /// `-r` or `-s`.
    pub relative: bool,
    /// `-s`.
    pub system: bool,
    /// `-x`.
    pub posix_timers: bool,
    /// `-R`.
    pub resolution: bool,
    /// `--spike`; zero without.
    pub spike: i64,
    /// `--spike-nodes`.
    pub spike_nodes: i64,
    /// `--smi`.
    pub smi: bool,
    /// `-v`.
    pub verbose: bool,
    /// What cyclictest says of it on stderr, a line each.
    pub warnings: Vec<String>,
    /// The options mean nothing together.
    refused: bool,
}

/// Why a command line is no measurement.
#[derive(Debug)]
pub enum Refusal {
    /// What is said on stderr first, and the exit code behind the options' list.
    Usage(Vec<String>, u8),
    /// What is said on stderr, and nothing else.
    Fatal(Vec<String>),
    /// cyclictest has no words for it.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

const fn opt(letter: char, long: &'static str, takes: Takes) -> Opt {
    Opt {
        long,
        letter: Some(letter),
        takes,
    }
}

const fn long(long: &'static str, takes: Takes) -> Opt {
    Opt {
        long,
        letter: None,
        takes,
    }
}

static TABLE: &[Opt] = &[
    opt('a', "affinity", MayHave),
    opt('A', "aligned", MayHave),
    opt('b', "breaktrace", Value),
    opt('c', "clock", Value),
    long("default-system", Nothing),
    long("deepest-idle-state", Value),
    opt('d', "distance", Value),
    opt('D', "duration", Value),
    long("latency", Value),
    opt('F', "fifo", Value),
    opt('h', "histogram", Value),
    opt('H', "histofall", Value),
    long("histfile", Value),
    opt('i', "interval", Value),
    long("json", Value),
    long("laptop", Nothing),
    opt('l', "loops", Value),
    long("mainaffinity", Value),
    opt('m', "mlockall", Nothing),
    opt('M', "refresh_on_max", Nothing),
    opt('N', "nsecs", Nothing),
    opt('o', "oscope", Value),
    opt('p', "priority", Value),
    opt('q', "quiet", Nothing),
    long("priospread", Nothing),
    opt('r', "relative", Nothing),
    opt('R', "resolution", Nothing),
    long("secaligned", MayHave),
    opt('s', "system", Nothing),
    long("smi", Nothing),
    opt('S', "smp", Nothing),
    long("spike", Value),
    long("spike-nodes", Value),
    opt('t', "threads", MayHave),
    long("tracemark", Nothing),
    opt('u', "unbuffered", Nothing),
    opt('v', "verbose", Nothing),
    long("dbg_cyclictest", Nothing),
    long("policy", Value),
    long("help", Nothing),
    opt('x', "posix_timers", Nothing),
    // Of 1.x, where it chose what is the only way now. Its long name would make others unclear.
    opt('n', "", Nothing),
];

/// The options, for those who ask.
pub const USAGE: &str = "\
cyclictest's options, read and answered by rtscope measure cyclic:
  -t[N]  -S  -a[CPUS]  --mainaffinity=CPUS      threads, and where they run
  -p PRIO  --policy=NAME  --priospread          how urgent they are
  -i US  -d US  -A[US]  --secaligned[=US]       when they wake
  -c CLOCK  -r  -s  -x  -R                      how they sleep
  -l N  -D TIME  -b US  --tracemark             when it ends
  -h US  -H US  --histfile=FILE  --json=FILE    what is written at the end
  -q  -v  -o N  -M  -N  -u  -F PIPE             what is printed
  --spike=US  --spike-nodes=N  --smi            what is looked for besides
  -m  --latency=US  --laptop  --default-system  what is done to the machine
  --deepest-idle-state=N                        the same
rtscope measure cyclic --help has our own options, with causes of late samples.
";

impl Cyclictest {
    /// Reads a command line without the program's name.
    ///
    /// # Errors
    /// What cyclictest says of one that it refuses.
    pub fn read(words: &[String]) -> Result<Cyclictest, Refusal> {
        let order = getopt::Order::of_environment();
        let (found, refused) = getopt::read("cyclictest", TABLE, words, order);
        let mut typed = Cyclictest {
            threads: Some(1),
            interval: 1000,
            oscope: 1,
            spike_nodes: 1024,
            ..Cyclictest::default()
        };
        for one in &found {
            match one.opt.long {
                "help" => return Err(Refusal::Usage(Vec::new(), 0)),
                "smp" if typed.placed != Placed::Unsaid && !typed.smp => {
                    let what = "FATAL: numa and smp options are mutually exclusive";
                    return Err(Refusal::Fatal(vec![what.to_owned()]));
                }
                _ => {}
            }
            if !typed.place(one) && !typed.number(one) {
                typed.flag(one);
            }
        }
        match refused {
            Some(what) if !typed.lists_no_cpu() => Err(Refusal::Usage(vec![what], 0)),
            _ => typed.settle(),
        }
    }

    /// What follows `-a` and begins with a minus is no list to libnuma, which is asked at once:
    /// before the next word is looked at, which is the same and no option.
    fn lists_no_cpu(&self) -> bool {
        self.cpus.as_ref().is_some_and(|list| list.starts_with('-'))
    }

    fn warn(&mut self, what: &str) {
        self.warnings.push(format!("WARN: {what}"));
    }

    /// Options that say how many threads there are, and where.
    fn place(&mut self, one: &Found<'_>) -> bool {
        let numbered = |next: &&str| atoi(next) != 0;
        match one.opt.long {
            "affinity" if self.smp => self.warn("-a ignored due to smp mode"),
            "affinity" => {
                let is_listed =
                    |next: &str| next.starts_with(['0', '!', '+']) || next.starts_with("all");
                let is_list = |next: &&str| numbered(next) || is_listed(next);
                let list = one.value.or(one.next.filter(is_list));
                self.placed = match list {
                    Some(_) => Placed::Listed,
                    None => Placed::All,
                };
                self.cpus = list.map(str::to_owned).or(self.cpus.take());
            }
            "mainaffinity" => self.mainaffinity = one.value.map(str::to_owned),
            "smp" => (self.smp, self.placed, self.threads) = (true, Placed::All, None),
            "threads" if self.smp => self.warn("-t ignored due to smp mode"),
            "threads" => self.threads = one.value.or(one.next.filter(numbered)).map(atoi),
            "aligned" | "secaligned" => {
                let offset = one.value.or(one.next.filter(numbered)).map_or(0, atoi);
                let is_second = one.opt.long == "secaligned";
                // Both at once mean nothing.
                self.refused |= self.aligned.is_some() && self.secaligned != is_second;
                (self.aligned, self.secaligned) = (Some(offset), is_second);
            }
            _ => return false,
        }
        true
    }

    /// Options with a number, a name or a file.
    fn number(&mut self, one: &Found<'_>) -> bool {
        let Some(text) = one.value else {
            return false;
        };
        let number = atoi(text);
        match one.opt.long {
            "breaktrace" => self.breaktrace = number,
            "clock" => self.clock = number,
            // What is less means none.
            "deepest-idle-state" => self.deepest_idle = Some(number).filter(|one| *one >= -1),
            "distance" => self.distance = Some(number),
            "duration" => self.duration_s = seconds(text),
            "latency" => self.latency = number.max(0),
            "fifo" => self.fifo = Some(text.into()),
            "histogram" | "histofall" => {
                // No row at all: what stands behind it is no number, or the next option.
                self.refused |= number == 0;
                self.histofall |= one.opt.long == "histofall";
                self.histogram = number;
            }
            "histfile" => self.histfile = Some(text.into()),
            "interval" => self.interval = number,
            "json" => self.json = Some(text.into()),
            "loops" => self.loops = number,
            "oscope" => self.oscope = number,
            "priority" => {
                self.priority = number;
                if !self.policy.is_real_time() {
                    self.policy = CyclictestPolicy::Fifo;
                }
            }
            "policy" => self.policy = CyclictestPolicy::parse(text),
            "spike" => self.spike = number,
            "spike-nodes" if self.spike > 0 => self.spike_nodes = number,
            _ => {}
        }
        true
    }

    fn flag(&mut self, one: &Found<'_>) {
        match one.opt.long {
            "default-system" => self.default_system = true,
            "laptop" => (self.laptop, self.default_system) = (true, true),
            "mlockall" => self.mlockall = true,
            "refresh_on_max" => self.refresh_on_max = true,
            "nsecs" => self.nsecs = true,
            "quiet" => self.quiet = true,
            "unbuffered" => self.unbuffered = true,
            "priospread" => self.priospread = true,
            "relative" => self.relative = true,
            "system" => (self.relative, self.system) = (true, true),
            "posix_timers" => self.posix_timers = true,
            "resolution" => self.resolution = true,
            "smi" => self.smi = true,
            "tracemark" => self.tracemark = true,
            "verbose" => self.verbose = true,
            _ => {}
        }
    }

    /// What the options mean together.
    fn settle(mut self) -> Result<Cyclictest, Refusal> {
        if self.system && self.posix_timers {
            self.warn("The system option requires clock_nanosleep");
            self.warn("and is not compatible with posix_timers");
            self.warn("Using clock_nanosleep");
            self.posix_timers = false;
        }
        let mut refused = self.refused || self.oscope < 1 || self.histogram < 0;
        refused |= !(0..2).contains(&self.clock);
        if self.oscope > 1 && !self.verbose {
            self.warn("-o option only meaningful, if verbose");
            refused = true;
        }
        if self.histogram > 0 && self.distance.is_some() {
            self.warn("distance is ignored and set to 0, if histogram enabled");
        }
        refused |= !(0..=99).contains(&self.priority);
        // As many as there are CPUs.
        self.threads = self.threads.filter(|threads| *threads != -1);
        refused |= self.threads.is_some_and(|threads| threads < 1);
        match (self.laptop, self.default_system) {
            (true, _) => self.warn("not setting cpu_dma_latency to save battery power"),
            (false, true) => self.warn("not setting cpu_dma_latency from cyclictest"),
            (false, false) => {}
        }
        match refused {
            true => Err(Refusal::Usage(self.warnings, 1)),
            false => Ok(self),
        }
    }
}

/// A number as atoi(3) reads it: what stands at the begin, else zero. What no `long` holds is the
/// nearest that one does, and of that the lower half is taken.
fn atoi(text: &str) -> i64 {
    i64::from(leading(text).0)
}

/// The same, and what stands behind it.
fn leading(text: &str) -> (i32, &str) {
    let text = text.trim_start();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_digit = |letter: char| letter.is_ascii_digit();
    let rest = unsigned.trim_start_matches(is_digit);
    let number = text.strip_suffix(rest).unwrap_or(text);
    let nearest = match number.starts_with('-') {
        true => i64::MIN,
        false => i64::MAX,
    };
    let number = match unsigned.starts_with(is_digit) {
        true => number.parse().unwrap_or(nearest),
        false => 0,
    };
    (number as i32, rest)
}

/// A length: seconds, or with `m`, `h` or `d`.
fn seconds(text: &str) -> i64 {
    let (number, rest) = leading(text);
    let factor = match rest.chars().next() {
        Some('m' | 'M') => 60,
        Some('h' | 'H') => 3_600,
        Some('d' | 'D') => 86_400,
        _ => 1,
    };
    i64::from(number.wrapping_mul(factor))
}
