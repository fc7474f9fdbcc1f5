//! Recordings whose answer is known, damaged at random places: nobody is accused who was not
//! before, and nothing is said to have been in time that was not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Each recording is damaged so often, at one place each time.
const PLACES: usize = 20;
/// Bytes that are overwritten; zero means that the rest of the file is cut off.
const LENGTHS: [usize; 3] = [64, 4096, 0];
/// What the damaged recording gives a culprit may be more than in the whole by so much: the two
/// begin to know it at other events.
const MORE_NS_MAX: i64 = 10_000;

/// The same numbers each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// What became of all damaged recordings.
#[derive(Debug, Default)]
struct Score {
    recordings: usize,
    damaged: usize,
    /// The same culprit as before, in full or in part.
    same: usize,
    /// Nobody is accused, and the answer says that it does not know.
    open: usize,
    /// The recording could not be opened any more, and the error says so.
    refused: usize,
    /// Each with what was said.
    wrong: Vec<String>,
    /// "Nothing was late", where something was.
    silent: Vec<String>,
}

/// Damages every recording below these folders and asks `program`.
pub fn run(program: &Path, folders: &[PathBuf], seed: u64) -> Result<ExitCode> {
    let mut roots = Vec::new();
    for folder in folders {
        find(folder, &mut roots);
    }
    ensure!(
        !roots.is_empty(),
        "no recording there; leave some behind: cargo xtask vm run verdicts-core"
    );
    let mut score = Score::default();
    for root in &roots {
        judge(program, root, seed, &mut score).with_context(|| root.display().to_string())?;
    }
    println!(
        "{} recordings with a late activation of {}, damaged {} times: {} the same, {} open, \
         {} refused, {} wrong, {} false 'nothing was late'",
        score.recordings,
        roots.len(),
        score.damaged,
        score.same,
        score.open,
        score.refused,
        score.wrong.len(),
        score.silent.len()
    );
    for what in score.wrong.iter().chain(&score.silent) {
        println!("  {what}");
    }
    Ok(match score.wrong.is_empty() && score.silent.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Recordings at a folder or below it: a folder with the metadata of a trace in it or in one of its
/// own, or with the pages of ftrace.
fn find(folder: &Path, roots: &mut Vec<PathBuf>) {
    let is_trace = |dir: &Path| dir.join("metadata").is_file();
    let mut inside: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => return,
    };
    inside.sort();
    let is_root = is_trace(folder) || inside.iter().any(|dir| is_trace(dir));
    if is_root || folder.join("per_cpu").is_dir() {
        roots.push(folder.to_owned());
        return;
    }
    for path in inside {
        if path.is_dir() {
            find(&path, roots);
        } else if path.extension().is_some_and(|end| end == "dat") {
            roots.push(path);
        }
    }
}

/// The answer of the program, and its exit code; none where it refuses the recording.
fn ask(program: &Path, recording: &Path, words: &[&str]) -> Result<Option<(Value, i32)>> {
    let mut command = Command::new(program);
    command.args(["diagnose", "--json"]).arg(recording);
    let output = command.args(words).output().context("cannot start it")?;
    let code = output.status.code().context("killed by a signal")?;
    if code == 1 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&output.stdout)?, code)))
}

fn judge(program: &Path, root: &Path, seed: u64, score: &mut Score) -> Result<()> {
    let Some((worst, _)) = ask(program, root, &["--worst", "1"])? else {
        return Ok(());
    };
    let Some(latency_ns) = worst["activations"][0]["latency_ns"].as_i64() else {
        return Ok(());
    };
    let over = format!("{}ns", latency_ns / 10);
    // What the damaged one lists among its worst may be none of the whole's.
    let all = ["--over", &over, "--worst", "1000000"];
    let Some((whole, _)) = ask(program, root, &all)? else {
        return Ok(());
    };
    score.recordings += 1;
    let mut random = Random(seed);
    for place in 0..PLACES {
        let copy = std::env::temp_dir().join(format!("rtscope-damage-{}", std::process::id()));
        let _ = fs::remove_dir_all(&copy);
        copy_all(root, &copy)?;
        let what = damage(&copy, &mut random)?;
        let name = format!("{} ({place}: {what})", root.display());
        let answer = ask(program, &copy, &["--over", &over])?;
        remove(&copy)?;
        score.damaged += 1;
        match answer {
            None => score.refused += 1,
            Some((found, code)) => score.add(&name, &whole, &found, code),
        }
    }
    Ok(())
}

impl Score {
    fn add(&mut self, name: &str, whole: &Value, found: &Value, code: i32) {
        let late = found["activations"].as_array().map_or(0, Vec::len);
        if late == 0 && code == 0 {
            self.silent.push(format!("{name}: nothing was late"));
            return;
        }
        let groups = found["groups"].as_array().into_iter().flatten();
        let conclusive = groups.filter(|group| {
            let verdict = &group["verdict"];
            verdict["conclusive"] == true && verdict["culprits"][0].is_object()
        });
        let mut accused = false;
        for group in conclusive {
            accused = true;
            if let Err(why) = bears_out(whole, found, group) {
                let sentence = group["verdict"]["sentence"].as_str().unwrap_or_default();
                self.wrong.push(format!("{name}: {why}: {sentence}"));
                return;
            }
        }
        match accused {
            true => self.same += 1,
            false => self.open += 1,
        }
    }
}

/// Whether the whole recording gives the culprit of a group at least as much of the same delay.
fn bears_out(whole: &Value, found: &Value, group: &Value) -> Result<(), String> {
    let member = group["members"][0].as_u64().unwrap_or(0) as usize;
    let late = &found["activations"][member];
    let same = |other: &&Value| {
        other["task"]["tid"] == late["task"]["tid"] && other["end_ns"] == late["end_ns"]
    };
    let mut all = whole["activations"].as_array().into_iter().flatten();
    let of_whole = all.find(same).ok_or("that activation never was")?;
    let culprit = &group["verdict"]["culprits"][0];
    let said_ns = culprit["duration_ns"].as_i64().unwrap_or(0);
    let is_it = |term: &&Value| {
        let keys = ["kind", "tid", "name", "function", "vector", "irq"];
        keys.iter().all(|key| term.get(key) == culprit.get(key))
    };
    let terms = of_whole["ledger"]["terms"].as_array().into_iter().flatten();
    let true_ns: i64 = terms
        .filter(is_it)
        .filter_map(|term| term["duration_ns"].as_i64())
        .sum();
    match said_ns <= true_ns + MORE_NS_MAX {
        true => Ok(()),
        false => Err(format!("{said_ns} ns, in the whole {true_ns} ns")),
    }
}

/// The files that hold events: what says how to read them is left alone.
fn streams(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_other = ["metadata", "kallsyms", "facts", "log"].contains(&&*name)
            || [".idx", ".txt", ".json", ".tsv"]
                .iter()
                .any(|end| name.ends_with(end));
        let size = fs::metadata(path).map_or(0, |status| status.len());
        if !is_other && size > 64 {
            found.push(path.to_owned());
        }
        return;
    }
    let mut inside: Vec<PathBuf> = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => return,
    };
    let has_pages = path.join("per_cpu").is_dir();
    inside.retain(|path| !has_pages || path.ends_with("per_cpu"));
    inside.sort();
    let pages = |path: &PathBuf| path.ends_with("trace_pipe_raw");
    if inside.iter().any(pages) {
        inside.retain(pages);
    }
    inside.iter().for_each(|path| streams(path, found));
}

/// Damages one place of one stream; says which.
fn damage(root: &Path, random: &mut Random) -> Result<String> {
    let mut files = Vec::new();
    streams(root, &mut files);
    let file = files.get(random.below(files.len())).context("no streams")?;
    let mut bytes = fs::read(file)?;
    let at = random.below(bytes.len());
    let length = LENGTHS[random.below(LENGTHS.len())];
    match length {
        0 => bytes.truncate(at),
        length => {
            let end = bytes.len().min(at + length);
            bytes[at..end].fill(0xff);
        }
    }
    fs::write(file, bytes)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{name} at {at}, {length} bytes"))
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        fs::copy(from, to)?;
        // The copy of a file that nobody may write is to be damaged.
        let mut rights = fs::metadata(to)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o600);
        return Ok(fs::set_permissions(to, rights)?);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}
