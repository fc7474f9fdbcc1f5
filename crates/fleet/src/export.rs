//! A part of a store as the tables of a fleet of one, for who has no fleet: files of Parquet in the
//! places that a push would give them.

use std::path::Path;

use event::{Error, Result};
use monitor::{Range, Run, Store, day_text};

use crate::directory::Directory;
use crate::push::{Target, put_part};
use crate::tables::Part;

/// Writes the intervals of `range` below `folder`, which is made; what is there of the same names
/// is replaced.
///
/// # Errors
/// When the store cannot be read, or the folder cannot be written.
pub fn export_parquet(store: &Store, range: Range, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|cause| {
        Error::io(format!("cannot make {}", folder.display()), cause)
            .fix("give --output a folder that can be written")
    })?;
    let mut target = Directory::new(folder);
    target.meet(false)?;
    let runs = store.runs()?;
    let run_of = |number: i64| {
        runs.iter()
            .find(|(of, _)| *of == number)
            .map(|(_, run)| run)
    };
    let mut open: Option<Open> = None;
    store.read(range, |number, interval| {
        let begin_ns = interval.head.begin_ns;
        let run = run_of(number).cloned().unwrap_or_default();
        if let Some(done) = open.take_if(|open| !open.has(&run, begin_ns)) {
            put_part(&mut target, done.part, &done.run, done.begin_ns)?;
        }
        let open = open.get_or_insert_with(|| Open {
            part: Part::default(),
            run: run.clone(),
            begin_ns,
        });
        open.part.add(&run, &interval);
        Ok(())
    })?;
    if let Some(done) = open {
        put_part(&mut target, done.part, &done.run, done.begin_ns)?;
    }
    Ok(())
}

/// The intervals of a boot on a day, so far.
struct Open {
    part: Part,
    run: Run,
    begin_ns: i64,
}

impl Open {
    /// Whether an interval belongs to these.
    fn has(&self, run: &Run, begin_ns: i64) -> bool {
        (&run.host, &run.boot_id) == (&self.run.host, &self.run.boot_id)
            && day_text(begin_ns) == day_text(self.begin_ns)
    }
}
