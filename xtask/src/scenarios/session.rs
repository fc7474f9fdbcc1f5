//! Many scenarios in a row under one watch, and what each is worth.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::evidence::Events;
use super::hit::{self, Hit};
use super::judge::{Grade, Judgement, judge};
use super::language::Scenario;
use super::log;
use super::place::Place;
use super::score::{Cell, Score};

/// What a session leaves, by name: what was played, what the actor and the watch said.
pub const PLAYED: &str = "scenarios";
pub const LOG: &str = "actor";
pub const WATCH: &str = "watch.json";
pub const SNAPSHOTS: &str = "snapshots";
/// In place of the watch's: what the diagnosis of a recording said, and the recording, in
/// `SNAPSHOTS`.
pub const DIAGNOSIS: &str = "diagnosis.json";
pub const RECORDING: &str = "recording";
const TOLD: &str = "late.ndjson";
/// What fell short is kept there, a folder each.
const KEPT: &str = "kept";

/// The text of a file of scenarios.
pub fn text(scenarios: &[Scenario]) -> String {
    scenarios.iter().map(|one| format!("{one}\n")).collect()
}

/// What was played, and where.
pub struct Session<'a> {
    /// What it left.
    pub folder: PathBuf,
    pub scenarios: &'a [Scenario],
    pub place: Place,
    /// As tables call the place.
    pub name: String,
    /// Reads snapshots.
    pub program: PathBuf,
}

/// What was said in a session.
struct Heard {
    hits: Vec<Hit>,
    /// The spans of all late activations that were told, with a snapshot or in short.
    told: Vec<(i64, i64)>,
    /// How many more were counted and could not be judged.
    counted: u64,
}

impl Heard {
    fn of(folder: &Path) -> Result<Heard> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))
        };
        if let Ok(said) = read(DIAGNOSIS) {
            let diagnosis = serde_json::from_str(&said).context("no diagnosis")?;
            let hits = Hit::all(&diagnosis, RECORDING);
            return Ok(Heard {
                told: hits.iter().map(Hit::span).collect(),
                counted: hit::unjudged(&diagnosis),
                hits,
            });
        }
        let said = read(WATCH)?;
        // Beside the snapshots, or where an earlier judgement put it; nowhere: nothing was late.
        let told = read(&format!("{SNAPSHOTS}/{TOLD}")).or_else(|_| read(TOLD));
        Ok(Heard {
            hits: said.lines().filter_map(Hit::parse).collect(),
            told: told
                .unwrap_or_default()
                .lines()
                .filter_map(Hit::told)
                .collect(),
            counted: said.lines().filter_map(hit::counted).sum(),
        })
    }
}

/// Judges a session, adds it to the score and keeps the evidence of what fell short.
pub fn judge_all(session: &Session<'_>, score: &mut Score) -> Result<()> {
    let Session {
        folder, scenarios, ..
    } = session;
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))
    };
    let played = log::parse(&read(LOG)?);
    let mut heard = Heard::of(folder)?;
    ensure!(
        played.len() == scenarios.len(),
        "{} of {} scenarios were played, the last is {:?}",
        played.len(),
        scenarios.len(),
        played.last().map(|last| &last.name)
    );
    for (scenario, played) in scenarios.iter().zip(&played) {
        ensure!(
            scenario.name == played.name,
            "another order: {}",
            played.name
        );
        let said = (&heard.hits[..], &heard.told[..]);
        let mut judgement = judge(scenario, played, said, session.place);
        session.look_into(&mut judgement)?;
        // It said so at its end, with the number of those of which it could not say more.
        if judgement.grade == Grade::Unseen && heard.counted > 0 {
            heard.counted -= 1;
            judgement.grade = Grade::Open;
            judgement.why.push_str(", but that it was not judged");
        }
        let wanted = [Grade::Wrong, Grade::Unseen, Grade::Open, Grade::Inexact];
        if wanted.contains(&judgement.grade) {
            session.keep(scenario, &judgement)?;
        }
        score.add(Cell {
            place: session.name.clone(),
            fault: scenario.fault.clone(),
            name: scenario.name.clone(),
            known: scenario.known.is_some(),
            judgement,
        });
    }
    // One for all cells; what there is not has nobody missing it.
    let recording = folder.join(SNAPSHOTS).join(RECORDING);
    fs::rename(recording, folder.join(KEPT).join(RECORDING)).ok();
    // What there is not: nothing was late.
    fs::rename(folder.join(SNAPSHOTS).join(TOLD), folder.join(TOLD)).ok();
    fs::remove_dir_all(folder.join(SNAPSHOTS)).ok();
    Ok(())
}

impl Session<'_> {
    /// Who is no part of the scenario is rightly accused where the snapshot's events bear it out.
    fn look_into(&self, judgement: &mut Judgement) -> Result<()> {
        let hit = judgement
            .hit
            .as_ref()
            .filter(|_| judgement.grade == Grade::Foreign);
        let Some((hit, snapshot)) = hit.and_then(|hit| Some((hit, self.snapshot(hit)?))) else {
            return Ok(());
        };
        if let Some(against) = Events::of(&self.program, &snapshot)?.against(hit) {
            judgement.grade = Grade::Wrong;
            judgement.why.insert_str(0, &against);
        }
        Ok(())
    }

    fn keep(&self, scenario: &Scenario, judgement: &Judgement) -> Result<()> {
        let to = self.folder.join(KEPT).join(&scenario.name);
        fs::create_dir_all(&to)?;
        fs::write(to.join("scenario"), scenario.to_string())?;
        fs::write(to.join("why"), format!("{judgement:#?}\n"))?;
        let snapshot = judgement.hit.as_ref().and_then(|hit| self.snapshot(hit));
        if let Some(from) = snapshot.filter(|path| !path.ends_with(RECORDING)) {
            fs::rename(&from, to.join("snapshot")).ok(); // two may share one
        }
        Ok(())
    }

    /// A snapshot of the session, by the path that the watch gave it.
    fn snapshot(&self, hit: &Hit) -> Option<PathBuf> {
        let name = Path::new(&hit.snapshot).file_name()?;
        let path = self.folder.join(SNAPSHOTS).join(name);
        path.is_dir().then_some(path)
    }
}
