//! `rtscope receive`: recordings of other hosts, each below its host's name.

use event::Result;
use relay::{Receiver, Token, Told};

use crate::exit::{Outcome, print};
use crate::flags::Receive;
use crate::options::ReceiveOptions;
use crate::signals;

/// Receives until Ctrl-C.
pub fn run(typed: &Receive) -> Result<Outcome> {
    let options = ReceiveOptions::new(typed);
    let stop = signals::take_over()?;
    let (token, is_new) = Token::read_or_make(&options.token_file)?;
    if is_new {
        let file = options.token_file.display();
        note!("made a token: copy {file} to the hosts that record");
    }
    let receiver = Receiver::bind(&options.listen, &options.output, token)?;
    let (address, output) = (receiver.address(), options.output.display());
    note!("listening at {address}; traces come into {output}");
    let received = receiver.run(&stop, &|told| note!("{}", line(told)))?;
    print(&format!(
        "received {} traces, {} of them cut: {} events, {} lost; {} connections refused\n",
        received.whole + received.cut,
        received.cut,
        received.events,
        received.lost,
        received.refused
    ))?;
    Ok(Outcome::Fine)
}

/// What happened, in a line.
fn line(told: &Told) -> String {
    match told {
        Told::Joined { host } => format!("{host}: connected"),
        Told::Ended {
            path,
            is_whole: true,
            events,
            lost,
            ..
        } => format!("{}: {events} events, {lost} lost", path.display()),
        Told::Ended { path, .. } => format!("{}: cut; its recorder failed", path.display()),
        Told::Left { path } => format!(
            "{}: cut; its recorder did not come back, and its streams say so",
            path.display()
        ),
        Told::Refused { from, why } => format!("refused {from}: {why}"),
    }
}
