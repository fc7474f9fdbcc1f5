//! `rtscope cat`: the events of a trace, a line each, in time order.

mod ahead;
mod follow;
mod out;
mod passing;
mod print;

use event::Result;
use report::EventTextOptions;

use self::follow::follow;
use self::passing::pass;
use self::print::Print;
use super::filtered::compile;
use super::{opened, window};
use crate::exit::Outcome;
use crate::flags::Cat;
use crate::options::CatOptions;
use crate::paint::Paint;

/// Runs the verb.
pub fn run(typed: &Cat, paint: Paint) -> Result<Outcome> {
    let options = CatOptions::new(typed)?;
    if options.live {
        return live(&options, paint);
    }
    let trace = opened::open_all(&options.roots, &options.open)?;
    let range = window::resolve(&options.window, &trace)?;
    window::known_cpus(&options.window, &trace)?;
    window::warn_outside(range, &trace);
    let filter = options.filter.as_ref();
    let filter = filter.map(|expr| compile(expr, &trace)).transpose()?;
    let text = looks(&options, paint);
    let mut print = Print::new(&options, filter)?;
    let printed = print.all(&trace, range, text);
    // What was understood is delivered first.
    print.out.flush()?;
    printed?;
    // The program ends: the system takes back at once what many classes take long to give back.
    std::mem::forget(trace);
    Ok(print.outcome())
}

/// Prints a trace that is being written.
fn live(options: &CatOptions, paint: Paint) -> Result<Outcome> {
    let mut print = Print::new(options, None)?;
    let text = looks(options, paint);
    let followed = match &options.passing {
        Some(passing) => pass(&mut print, text, passing),
        None => follow(&mut print, text),
    };
    print.out.flush()?;
    followed?;
    Ok(print.outcome())
}

/// How lines look: colours are for terminals, unless somebody insists.
fn looks(options: &CatOptions, paint: Paint) -> EventTextOptions {
    let color = match options.output {
        None => paint.is_on(),
        Some(_) => false,
    };
    EventTextOptions {
        color,
        ..options.text
    }
}
