//! Where the code of a probe is: functions and markers of files, of what a process runs, or of the
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use symbols::{Marker, Places};

use super::spec::{Probe, ProbeKind};
use crate::programs;

/// So many names are offered for one that is not there.
const NEAR_MAX: usize = 5;

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
    let files = files(probe)?;
    let mut met = Vec::new();
    for path in &files {
        let places = match Places::read(path) {
            Ok(places) => places,
            // Of a process's files some are no programs.
            Err(_) if files.len() > 1 => continue,
            Err(error) => return Err(error),
        };
        let found = in_file(probe, path, &places)?;
        if !found.is_empty() {
            return Ok(found);
        }
        met.push(places);
    }
    Err(match probe.kind {
        _ if probe.kind != ProbeKind::Usdt && probe.symbol.is_empty() => {
            let what = format!("there is no such place in {}", probe.file);
            let found = format!("{:#x} lies behind the file's end", probe.offset);
            probe
                .refuse(ErrorKind::NotFound, what, found)
                .fix("objdump -dF FILE shows where code is in the file")
        }
        ProbeKind::Usdt => no_marker(probe, &met),
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
    let target = |offset| Target::Code {
        path: path.to_owned(),
        offset: offset + probe.offset,
    };
    Ok(offsets.into_iter().map(target).collect())
}

/// The files that are meant.
fn files(probe: &Probe) -> Result<Vec<PathBuf>> {
    let files = programs::files(&probe.file)?;
    let has_blank = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().contains(&b' ');
    match files.iter().find(has_blank) {
        Some(path) if files.len() == 1 => {
            let what = "the kernel takes no path with a blank";
            Err(Error::new(ErrorKind::Unsupported, what)
                .found(path.display().to_string())
                .fix("give a link to it whose folder and name have none: hard, not symbolic"))
        }
        _ => Ok(files),
    }
}

fn no_marker(probe: &Probe, met: &[Places]) -> Error {
    let markers = met.iter().flat_map(|places| &places.markers);
    let mut names: Vec<String> = markers
        .map(|marker| format!("{}:{}", marker.provider, marker.name))
        .collect();
    names.sort();
    names.dedup();
    let (provider, name) = (&probe.provider, &probe.symbol);
    let what = format!("{} has no marker {provider}:{name}", probe.file);
    let found = match names.len() {
        0 => "no marker at all".to_owned(),
        count => format!("{count} markers"),
    };
    let typed = format!("{provider}:{name}");
    let near = programs::near(&typed, names.iter().map(String::as_str));
    let fix = match (near.is_empty(), names.is_empty()) {
        (false, _) => format!("did you mean {}?", near.join(", ")),
        (true, false) => format!("it has {}", names[..names.len().min(NEAR_MAX)].join(", ")),
        (true, true) => "build it with its markers (sys/sdt.h), or name its library".into(),
    };
    probe.refuse(ErrorKind::NotFound, what, found).fix(fix)
}
