//! Where the code of a probe is: functions and markers of files, of what a process runs, or of the
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use symbols::{Instruction, Marker, Places};

use super::spec::{Probe, ProbeKind};
use crate::programs::{self, ProgramFile};

/// Where a probe is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A function of the kernel.
    Function { symbol: String, offset: u64 },
    /// A place in a file.
    Code { path: PathBuf, offset: u64 },
    /// A marker in a file.
    Marker { path: PathBuf, marker: Marker },
}

/// Finds where `probe` is to be put: in several places where a marker has several.
pub(super) fn find(probe: &Probe) -> Result<Vec<Target>> {
    if probe.kind.is_of_kernel() {
        return Ok(vec![Target::Function {
            symbol: probe.symbol.clone(),
            offset: probe.offset,
        }]);
    }
    let met = match programs::first_with(&files(probe)?, |file, places| {
        let found = in_file(probe, &file.path, places)?;
        Ok((!found.is_empty()).then_some(found))
    })? {
        Ok(found) => return Ok(found),
        Err(met) => met,
    };
    Err(match probe.kind {
        _ if probe.kind != ProbeKind::Usdt && probe.symbol.is_empty() => {
            let what = format!("there is no such place in {}", probe.file);
            let found = format!("{:#x} lies behind the file's end", probe.offset);
            probe
                .refuse(ErrorKind::NotFound, what, found)
                .fix("objdump -dF FILE shows where code is in the file")
        }
        ProbeKind::Usdt => programs::no_marker(&probe.file, (&probe.provider, &probe.symbol), &met),
        _ => programs::no_function(&probe.file, &probe.symbol, &met),
    })
}

fn in_file(probe: &Probe, path: &Path, places: &Places) -> Result<Vec<Target>> {
    if probe.kind == ProbeKind::Usdt {
        let is_meant = |of: &&Marker| of.provider == probe.provider && of.name == probe.symbol;
        let markers = places.markers.iter().filter(is_meant).cloned();
        let target = |marker| Target::Marker {
            path: path.to_owned(),
            marker,
        };
        return Ok(markers.map(target).collect());
    }
    let offsets = match probe.symbol.is_empty() {
        true => {
            let is_there = fs::metadata(path).is_ok_and(|facts| probe.offset < facts.len());
            is_there.then_some(0).into_iter().collect()
        }
        false => programs::offsets(path, places, &probe.symbol)?,
    };
    let target = |offset: u64| {
        let offset = offset.saturating_add(probe.offset);
        if probe.offset > 0 {
            check_instruction(probe, path, places, offset)?;
        }
        Ok(Target::Code {
            path: path.to_owned(),
            offset,
        })
    };
    offsets.into_iter().map(target).collect()
}

/// That `offset`, which somebody counted, is none where a probe would break the program.
fn check_instruction(probe: &Probe, path: &Path, places: &Places, offset: u64) -> Result<()> {
    let (what, found) = match places.instruction_at(path, offset)? {
        Instruction::Possible => return Ok(()),
        Instruction::NoCode => (
            format!("there is no code at {offset:#x} of {}", path.display()),
            "a place that is not run".to_owned(),
        ),
        Instruction::Inside { before, behind } => (
            format!("no instruction begins at {offset:#x} of {}", path.display()),
            format!("one begins {before} before it, and the next one {behind} behind it"),
        ),
    };
    Err(probe
        .refuse(ErrorKind::InvalidInput, what, found)
        .fix("objdump -dF FILE shows where instructions begin"))
}

/// The files that are meant.
fn files(probe: &Probe) -> Result<Vec<ProgramFile>> {
    let files = programs::files(&probe.file)?;
    let paths = files.iter().map(|file| &file.path);
    let has_blank = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().contains(&b' ');
    match paths.into_iter().find(has_blank) {
        Some(path) if files.len() == 1 => {
            let what = "the kernel takes no path with a blank";
            Err(Error::new(ErrorKind::Unsupported, what)
                .found(path.display().to_string())
                .fix("give a link to it whose folder and name have none: hard, not symbolic"))
        }
        _ => Ok(files),
    }
}
