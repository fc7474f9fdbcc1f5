//! The table of cases: which script runs in which guest, and what it needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::image::in_path;
use super::profile::{self, Profile};
use super::{bundle, table};

const TABLE: &str = "tests/vm/cases.tsv";
const COLUMNS: &[&str] = &[
    "name", "script", "profile", "kernels", "core", "limit_s", "needs", "twice", "claim",
];

/// How the need for one of the command line's end-to-end tests begins.
pub const TEST: &str = "test:";

/// One row of the table, or a trial.
pub struct Case {
    /// Names the artefacts.
    pub name: String,
    /// What the guest runs, below the repository's root.
    pub script: PathBuf,
    /// How the emulator keeps time.
    pub profile: &'static Profile,
    /// Names of kernels; empty for all.
    kernels: Vec<String>,
    /// The kernels on which it belongs to the core set.
    core: Vec<String>,
    /// A guest that is not done by then has failed.
    pub limit: Duration,
    /// What the image holds beside the shell: `injector`, `rtscope`, a bundle, `test:` and one of
    /// our end-to-end tests, programs of the host, or `scenarios`, all or some, which are then
    /// judged.
    pub needs: Vec<String>,
    /// A result that two boots must have in common, byte by byte.
    pub twice: Option<String>,
    /// Further files of the host, put into `/root`.
    pub files: Vec<PathBuf>,
    /// What is shown.
    pub claim: String,
}

/// A trial that hangs ends then.
const TRIAL_LIMIT: Duration = Duration::from_secs(240);

impl Case {
    /// Whether the case runs on the kernel called `name`.
    pub fn runs_on(&self, name: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|kernel| kernel == name)
    }

    /// Whether the case on the kernel called `name` is one of the few that every change must pass.
    pub fn is_core_on(&self, name: &str) -> bool {
        self.core.iter().any(|kernel| kernel == name)
    }

    /// Whether the scenario called `name` is one of the case's: all are, unless `needs` names some,
    /// as in `scenarios:one+two`.
    pub fn has_row(&self, name: &str) -> bool {
        let rows = |need: &str| need.strip_prefix("scenarios").map(str::to_owned);
        let rows = self.needs.iter().find_map(|need| rows(need));
        let rows = rows.unwrap_or_default();
        let mut rows = rows.trim_start_matches(':').split('+').peekable();
        rows.peek() == Some(&"") || rows.any(|row| row == name)
    }

    /// Whether the program under test is in the image or judges what comes back.
    pub fn needs_program(&self) -> bool {
        let mut needs = self.needs.iter();
        needs.any(|need| need == "rtscope" || need.starts_with("scenarios"))
    }

    /// What this machine lacks for the case, and the way out.
    pub fn lack(&self) -> Option<String> {
        let ours = ["injector", "rtscope", "scenarios", TEST];
        let others = self.needs.iter();
        let mut others = others.filter(|need| !ours.iter().any(|name| need.starts_with(name)));
        others.find_map(|need| match bundle::by_name(need) {
            Some(bundle) => bundle.lack(),
            None if in_path(need).is_err() => Some(format!("no {need} in PATH")),
            None => None,
        })
    }

    /// Arguments of the emulator for the devices that it needs.
    pub fn devices(&self) -> Vec<&'static str> {
        let bundles = self.needs.iter().filter_map(|need| bundle::by_name(need));
        bundles.flat_map(|bundle| bundle.qemu).copied().collect()
    }

    /// A script of the user's own with some files and all that cases can need.
    pub fn trial(script: &str, files: &[&str], profile: &'static Profile) -> Case {
        Case {
            name: "trial".to_owned(),
            script: script.into(),
            profile,
            kernels: Vec::new(),
            core: Vec::new(),
            limit: TRIAL_LIMIT,
            needs: vec!["injector".to_owned()],
            twice: None,
            files: files.iter().map(PathBuf::from).collect(),
            claim: script.to_owned(),
        }
    }

    fn from_row(row: &[String]) -> Result<Case> {
        let [
            name,
            script,
            profile,
            kernels,
            core,
            limit_s,
            needs,
            twice,
            claim,
        ] = row
        else {
            anyhow::bail!("{} cells", row.len());
        };
        let limit_s: u64 = limit_s
            .parse()
            .with_context(|| format!("limit_s of {name}: '{limit_s}'"))?;
        Ok(Case {
            name: name.clone(),
            script: format!("tests/vm/guest/{script}.sh").into(),
            profile: profile::by_name(profile)?,
            kernels: list(kernels, "all"),
            core: list(core, "-"),
            limit: Duration::from_secs(limit_s),
            needs: list(needs, "-"),
            twice: (twice != "-").then(|| twice.clone()),
            files: Vec::new(),
            claim: claim.clone(),
        })
    }
}

/// All rows.
pub fn table(repository: &Path) -> Result<Vec<Case>> {
    let rows = table::read(&repository.join(TABLE), COLUMNS)?;
    rows.iter()
        .map(|row| Case::from_row(row))
        .collect::<Result<_>>()
        .context(TABLE)
}

fn list(cell: &str, none: &str) -> Vec<String> {
    let words = cell.split(',').filter(|word| *word != none);
    words.map(|word| word.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;

    fn row(text: &str) -> Result<Case> {
        let cells: Vec<String> = text.split('\t').map(str::to_owned).collect();
        Case::from_row(&cells)
    }

    #[test]
    fn a_row_names_profile_kernels_needs_and_what_must_repeat() {
        let case = row("a\ta\texact\t6.1,6.1-rt\t6.1-rt\t90\t-\tfigures\twhy").unwrap();
        assert_eq!(case.profile.name, "exact");
        assert!(case.runs_on("6.1-rt") && !case.runs_on("6.12"));
        assert!(case.is_core_on("6.1-rt") && !case.is_core_on("6.1"));
        assert_eq!((case.limit.as_secs(), case.needs.len()), (90, 0));
        assert_eq!(case.twice.as_deref(), Some("figures"));
        let case = row("a\ta\tcausal\tall\t-\t90\tinjector,rtscope\t-\twhy").unwrap();
        assert!(case.runs_on("anything") && !case.is_core_on("anything"));
        assert_eq!(case.needs, ["injector", "rtscope"]);
        assert_eq!(case.twice, None);
    }

    #[test]
    fn a_case_has_the_scenarios_that_it_names_or_all() {
        let check = |needs: &str, name: &str, expect: bool| {
            let case = row(&format!("a\ta\texact\tall\t-\t90\t{needs}\t-\twhy")).unwrap();
            assert_eq!(case.has_row(name), expect, "{needs} {name}");
        };
        check("rtscope,scenarios", "hog", true);
        check("scenarios:hog+irqoff,rtscope", "irqoff", true);
        check("scenarios:hog-500", "hog", false);
    }

    #[test]
    fn a_row_with_an_unknown_profile_or_no_limit_is_refused() {
        assert!(row("a\ta\tfast\tall\t-\t90\t-\t-\twhy").is_err());
        assert!(row("a\ta\texact\tall\t-\tlong\t-\t-\twhy").is_err());
    }

    #[test]
    fn the_table_in_the_tree_is_sound() {
        let root = crate::repository();
        let kernels = super::super::kernel::table(&root).unwrap();
        for case in table(&root).unwrap() {
            assert!(
                root.join(&case.script).is_file(),
                "{} has no script",
                case.name
            );
            let known = |name: &String| kernels.iter().any(|kernel| kernel.name == *name);
            assert!(case.kernels.iter().all(known), "{}: kernels", case.name);
            let core = case.core.iter();
            let may = |name: &String| known(name) && case.runs_on(name);
            assert!(core.clone().all(may), "{}: core", case.name);
            let rows = scenario::table(&root, "6.12-rt", case.profile.name).unwrap();
            let count = rows.iter().filter(|row| case.has_row(&row.name)).count();
            let named = case
                .needs
                .iter()
                .find(|need| need.starts_with("scenarios:"));
            let named = named.map(|need| need.split('+').count());
            assert!(
                named.is_none_or(|named| named == count),
                "{}: rows",
                case.name
            );
        }
    }
}
