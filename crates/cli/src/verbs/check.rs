//! `rtscope check`: whether a trace keeps its budgets.

use event::{Error, ErrorKind, Result};
use report::{budgets_json, budgets_junit, budgets_text};
use trace::{OpenOptions, Root};
use views::{Checked, Judgement, Rules, check_budgets_on};

use crate::exit::{Outcome, print_answer, write_file};
use crate::flags;
use crate::options::CheckOptions;
use crate::verbs::{opened, store, window};

/// Runs the verb.
pub fn run(typed: &flags::Check) -> Result<Outcome> {
    let options = CheckOptions::new(typed)?;
    let rules = rules(&options)?;
    if store::are_stores(&options.traces)? {
        return match &options.traces[..] {
            [path] => store::check(path, &options, &rules),
            stores => Err(
                Error::new(ErrorKind::InvalidInput, "stores are judged one by one")
                    .found(format!("{} stores", stores.len()))
                    .fix("give one"),
            ),
        };
    }
    if options.last.is_some() {
        return Err(store::only_stores("--last"));
    }
    let rules = rules.defined()?;
    let roots: Vec<Root> = options.traces.iter().map(Root::from).collect();
    let trace = opened::open_all(&roots, &OpenOptions::default())?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    window::warn_outside(range, &trace);
    let checked = check_budgets_on(&trace, &rules, range, &options.window.cpus)?;
    if let Some(path) = &options.junit {
        let names = options
            .traces
            .iter()
            .map(|trace| trace.display().to_string());
        let names: Vec<String> = names.collect();
        write_file(path, &budgets_junit(&checked, &names.join(" ")))?;
    }
    match options.json {
        true => print_answer(&format!("{:#}\n", budgets_json(&checked)))?,
        false => print_answer(&budgets_text(&checked))?,
    }
    Ok(outcome(&checked))
}

fn rules(options: &CheckOptions) -> Result<Rules> {
    let mut text = match &options.rules {
        Some(path) => {
            let what = || format!("cannot read {}", path.display());
            std::fs::read_to_string(path).map_err(|error| {
                Error::io(what(), error).fix("give --rules a file with a budget in each line")
            })?
        }
        None => String::new(),
    };
    for rule in &options.rule {
        text.push('\n');
        text.push_str(rule);
    }
    Rules::read(&text)
}

/// A broken budget goes before a doubt.
fn outcome(checked: &Checked) -> Outcome {
    let any = |wanted: fn(&Judgement) -> bool| {
        let mut findings = checked.findings.iter();
        findings.any(|finding| wanted(&finding.judgement))
    };
    if any(|judgement| *judgement == Judgement::Broken) {
        Outcome::Exceeded
    } else if any(|judgement| *judgement != Judgement::Held) {
        Outcome::Inconclusive
    } else {
        Outcome::Fine
    }
}
