//! Prints the events of a trace: `cargo run --release -p report --example events -- TRACE`.

use std::io::Write;

use event::{Error, TimeRange};
use report::{EventLines, EventText, EventTextOptions};
use trace::{Item, Trace};

fn main() -> event::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let trace = Trace::open(&path)?;
    let mut text = EventText::new(&trace, EventTextOptions::default());
    let mut cursor = trace.cursor(TimeRange::ALL);
    let mut line = EventLines::default();
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    cursor.each(|item| {
        match item {
            Item::Event(event) => {
                line.clear();
                text.write(event, &mut line);
                out.write_all(line.text())
                    .map_err(|cause| Error::io("cannot print", cause))?;
            }
            other => eprintln!("{other:?}"),
        }
        Ok(())
    })?;
    out.flush()
        .map_err(|cause| Error::io("cannot print", cause))
}
