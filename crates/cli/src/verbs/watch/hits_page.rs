//! `watch --view`: the hits in a browser, as they happen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use capture::watch::HitReport;
use diagnosis::Diagnosis;
use event::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use server::{Answer, Listening, Pages, hits_page, serve_private};
use trace::Trace;

use super::log::wall_offset_ns;
use crate::exit::print;
use crate::verbs::page;

/// The schema of what is told of hits.
const SCHEMA: &str = "rtscope.hits";
const SCHEMA_VERSION: u32 = 1;
/// The last hits stay, so many; the others are in their snapshots.
const HITS_MAX: usize = 500;
/// And their pages, as long as they take no more than this.
const PAGES_BYTES_MAX: usize = 64 << 20;

/// A hit as the page shows it.
struct Told {
    line: Value,
    /// What `diagnose --html` writes of it.
    page: Option<String>,
}

/// The hits so far.
#[derive(Default)]
struct Hits {
    told: VecDeque<Told>,
    total: u64,
}

impl Hits {
    fn add(&mut self, mut line: Value, page: Option<String>) {
        self.total += 1;
        line["number"] = self.total.into();
        line["has_page"] = page.is_some().into();
        self.told.push_back(Told { line, page });
        if self.told.len() > HITS_MAX {
            self.told.pop_front();
        }
        let bytes = |told: &Told| told.page.as_ref().map_or(0, String::len);
        let mut sum: usize = self.told.iter().map(bytes).sum();
        for told in &mut self.told {
            if sum <= PAGES_BYTES_MAX {
                break;
            }
            sum -= bytes(told);
            (told.page, told.line["has_page"]) = (None, false.into());
        }
    }

    fn list(&self) -> Value {
        let lines = self.told.iter().map(|told| &told.line);
        json!({
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "total": self.total,
            "hits": lines.collect::<Vec<_>>(),
        })
    }

    fn page(&self, number: u64) -> Option<&str> {
        let mut all = self.told.iter();
        let told = all.find(|told| told.line["number"] == number)?;
        told.page.as_deref()
    }
}

/// What the server answers with.
#[derive(Default)]
struct HitPages(Mutex<Hits>);

impl HitPages {
    fn hits(&self) -> std::sync::MutexGuard<'_, Hits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self, query: &str) -> Result<Answer> {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let number = pairs.find_map(|(key, value)| (key == "number").then_some(value));
        let number = number.and_then(|number| number.parse().ok());
        let found = number.and_then(|number| self.hits().page(number).map(str::to_owned));
        let Some(page) = found else {
            let error = Error::new(ErrorKind::NotFound, "no page of such a hit is kept");
            return Err(error.fix("rtscope diagnose its snapshot, with --html"));
        };
        Ok(answer("text/html; charset=utf-8", page))
    }
}

impl Pages for HitPages {
    fn answer(&self, path: &str, query: &str, _accept: &str) -> Option<Answer> {
        match path {
            "/api/v1/hits" => {
                let list = self.hits().list().to_string();
                Some(answer("application/json", list))
            }
            "/api/v1/hit" => Some(self.page(query).into()),
            path => hits_page(path),
        }
    }
}

fn answer(content_type: &'static str, text: String) -> Answer {
    Answer {
        status: 200,
        content_type,
        body: text.into_bytes(),
    }
}

/// The page of a watch that goes on.
pub(super) struct HitsView {
    pages: Arc<HitPages>,
    _listening: Listening,
}

impl HitsView {
    /// Serves it, and prints where.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn open() -> Result<HitsView> {
        let pages = Arc::new(HitPages::default());
        let listening = serve_private(Arc::clone(&pages) as Arc<dyn Pages>, 0)?;
        print(&format!("{}\n", listening.url))?;
        Ok(HitsView {
            pages,
            _listening: listening,
        })
    }

    /// Shows a hit.
    pub fn show(&self, report: &HitReport, diagnosis: &Result<Diagnosis>) {
        let known = diagnosis.as_ref().ok();
        let page = match (&report.snapshot, known) {
            (Some(snapshot), Some(diagnosis)) => Trace::open(&snapshot.path)
                .and_then(|trace| page::text(&trace, &snapshot.path, diagnosis))
                .ok(),
            _ => None,
        };
        self.pages.hits().add(line(report, known), page);
    }
}

/// What the list says of a hit.
fn line(report: &HitReport, diagnosis: Option<&Diagnosis>) -> Value {
    let hit = &report.hit;
    let verdict = diagnosis.and_then(|diagnosis| diagnosis.groups.first());
    let verdict = verdict.map(|group| &group.verdict);
    let snapshot = report.snapshot.as_ref();
    json!({
        "wall_ns": hit.end.as_ns().saturating_add(wall_offset_ns()),
        "latency_ns": hit.latency().as_ns(),
        "task": { "name": hit.task.comm, "tid": hit.task.tid.0, "prio": hit.task.prio.to_string() },
        "sentence": verdict.map(|verdict| &verdict.sentence),
        "conclusive": verdict.is_some_and(|verdict| verdict.conclusive),
        "replaces": report.replaces,
        "snapshot": snapshot.map(|snapshot| snapshot.path.display().to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hits_are_listed_and_those_whose_page_went_say_so() {
        let mut hits = Hits::default();
        let large = "x".repeat(PAGES_BYTES_MAX / 2);
        for _ in 0..3 {
            hits.add(json!({}), Some(large.clone()));
        }
        assert_eq!(hits.page(1), None);
        assert_eq!(hits.page(3).map(str::len), Some(large.len()));
        assert_eq!(hits.list()["hits"][0]["has_page"], false);
        (0..HITS_MAX).for_each(|_| hits.add(json!({}), None));
        let list = hits.list();
        assert_eq!(list["total"], HITS_MAX as u64 + 3);
        assert_eq!(list["hits"].as_array().map(Vec::len), Some(HITS_MAX));
        assert_eq!(list["hits"][0]["number"], 4);
        assert_eq!(hits.page(3), None);
    }

    #[test]
    fn a_page_is_asked_for_by_its_number_and_nothing_else_is_served() {
        let pages = HitPages::default();
        pages.hits().add(json!({}), Some("<p>late".to_owned()));
        let check = |path: &str, query: &str, expect: Option<u16>| {
            let found = pages.answer(path, query, "").map(|answer| answer.status);
            assert_eq!(found, expect, "{path}?{query}");
        };
        check("/api/v1/hits", "", Some(200));
        check("/api/v1/hit", "number=1", Some(200));
        check("/api/v1/hit", "number=2", Some(404));
        check("/api/v1/hit", "number=../x", Some(404));
        check("/", "", Some(200));
        check("/rtscope-snapshots/hit-0001", "", None);
    }
}
