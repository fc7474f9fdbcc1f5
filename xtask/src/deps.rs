//! Who may depend on whom, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run;

/// A crate and the crates it may import. A crate that is not listed is refused: naming
/// it here is part of adding it.
const CRATES: &[(&str, &[&str])] = &[
    ("event", &[]),
    ("abi", &["event"]),
    ("ring", &["event", "abi"]),
    ("ctf", &["event", "abi"]),
    ("ftrace", &["event", "abi"]),
    ("trace", &["event", "abi", "ctf", "ftrace", "ring"]),
    ("expr", &["event"]),
    ("kernel-state", &["event", "trace"]),
    ("diagnosis", &["event", "kernel-state", "trace"]),
    (
        "views",
        &["event", "expr", "kernel-state", "trace", "diagnosis"],
    ),
    ("timeline", &["event", "kernel-state", "trace"]),
    ("symbols", &["event", "trace"]),
    ("host", &["event"]),
    ("measure", &["event", "host"]),
    (
        "report",
        &[
            "event",
            "trace",
            "kernel-state",
            "diagnosis",
            "views",
            "host",
            "measure",
            "symbols",
            "timeline",
        ],
    ),
    ("export", &["event", "ctf", "trace"]),
    ("bpf-host", &["event", "abi"]),
    ("monitor", &["event", "abi"]),
    ("fleet", &["event", "abi", "monitor"]),
    ("relay", &["event", "ctf"]),
    (
        "capture",
        &[
            "event", "abi", "bpf-host", "ctf", "expr", "ftrace", "host", "relay", "ring",
            "symbols", "trace",
        ],
    ),
    (
        "server",
        &[
            "event",
            "trace",
            "expr",
            "diagnosis",
            "timeline",
            "views",
            "report",
        ],
    ),
    ("face", &["event", "ctf", "trace", "expr", "diagnosis"]),
    ("capi", &["event", "trace", "expr", "face"]),
    ("python", &["event", "trace", "expr", "face"]),
    ("rtscope-probe", &[]),
    ("cli", EVERYTHING_BELOW_CLI),
    ("testkit", &["event", "abi", "ctf", "ftrace", "trace"]),
    (
        "bench",
        &[
            "event", "bpf-host", "ctf", "ftrace", "host", "measure", "report", "trace",
        ],
    ),
    (
        "fuzz",
        &[
            "event", "abi", "ctf", "expr", "ftrace", "relay", "ring", "trace", "testkit",
        ],
    ),
    ("xtask", &[]),
];

/// `cli` ties the crates together, so it may see all of them; nothing may see `cli`.
const EVERYTHING_BELOW_CLI: &[&str] = &[
    "event",
    "abi",
    "ring",
    "ctf",
    "ftrace",
    "trace",
    "expr",
    "kernel-state",
    "diagnosis",
    "views",
    "report",
    "export",
    "host",
    "bpf-host",
    "capture",
    "measure",
    "monitor",
    "fleet",
    "symbols",
    "timeline",
    "server",
    "relay",
];

/// Libraries from outside that only the named crates may use, with the reason.
const RESERVED: &[(&str, &[&str], &str)] = &[
    ("libbpf-rs", &["bpf-host"], "only bpf-host links libbpf"),
    (
        "libbpf-cargo",
        &["bpf-host"],
        "only bpf-host builds BPF programs",
    ),
    (
        "blazesym",
        &["symbols"],
        "names of addresses come from one place",
    ),
    ("clap", &["cli"], "flags belong to cli"),
    ("rusqlite", &["monitor"], "one store, in one place"),
    (
        "anyhow",
        &["cli", "xtask", "bench"],
        "libraries return event::Error",
    ),
    (
        "rusty-s3",
        &["fleet"],
        "only fleet speaks to an object store",
    ),
    ("axum", &["server"], "only server talks to the network"),
    ("tokio", &["server"], "only server talks to the network"),
];

/// One package: its name and what it names in Cargo.toml, with the kind of the dependency.
#[derive(Debug)]
struct Package {
    name: String,
    dependencies: Vec<(String, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Normal,
    Build,
    /// Tests may use `testkit` and whatever the package's own rules allow.
    Dev,
}

/// Checks the workspace in `root`.
pub fn run(root: &Path) -> Result<()> {
    let mut metadata = run::cargo(root);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = metadata.output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let packages = packages(&serde_json::from_slice(&output.stdout)?);
    let mut problems = problems(&packages);
    problems.extend(dead_rules(&packages));
    if !problems.is_empty() {
        bail!(
            "{} dependency rules broken\n  {}",
            problems.len(),
            problems.join("\n  ")
        );
    }
    Ok(())
}

fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            dependencies: list(&package["dependencies"])
                .iter()
                .map(|dependency| {
                    let kind = match dependency["kind"].as_str() {
                        Some("dev") => Kind::Dev,
                        Some("build") => Kind::Build,
                        _ => Kind::Normal,
                    };
                    (text(&dependency["name"]), kind)
                })
                .collect(),
        })
        .collect()
}

/// Every broken rule, a sentence each.
fn problems(packages: &[Package]) -> Vec<String> {
    let crates: BTreeMap<&str, &[&str]> = CRATES.iter().copied().collect();
    let mut problems = Vec::new();
    for Package { name, dependencies } in packages {
        let Some(allowed) = crates.get(name.as_str()) else {
            problems.push(format!(
                "{name} has no rule: add it to CRATES in xtask/src/deps.rs"
            ));
            continue;
        };
        for (dependency, kind) in dependencies {
            let inside = crates.contains_key(dependency.as_str());
            let for_tests = *kind == Kind::Dev && dependency != "cli";
            if inside && !for_tests && !allowed.contains(&dependency.as_str()) {
                problems.push(format!("{name} may not depend on {dependency}"));
            }
            let reserved = RESERVED.iter().find(|(library, ..)| library == dependency);
            if let Some((_, owners, reason)) = reserved
                && !owners.contains(&name.as_str())
                && *kind != Kind::Dev
            {
                problems.push(format!("{name} may not depend on {dependency}: {reason}"));
            }
            if name == "event" && !inside && *kind != Kind::Dev {
                problems.push(format!("event depends on nothing, yet on {dependency}"));
            }
        }
    }
    problems
}

/// Rules about crates that are not there and libraries that nobody uses.
fn dead_rules(packages: &[Package]) -> Vec<String> {
    let is_there = |member: &&str| packages.iter().any(|package| package.name == **member);
    let named = CRATES.iter().flat_map(|(member, allowed)| {
        let allowed = allowed.iter().copied();
        [*member].into_iter().chain(allowed)
    });
    let absent: BTreeSet<&str> = named.filter(|member| !is_there(member)).collect();
    let absent = absent
        .into_iter()
        .map(|member| format!("a rule names {member}, which is no crate"));
    let is_used = |library: &str| {
        let mut all = packages.iter().flat_map(|package| &package.dependencies);
        all.any(|(name, _)| name == library)
    };
    let unused = RESERVED.iter().filter(|(library, ..)| !is_used(library));
    let unused = unused.map(|(library, ..)| format!("{library} is reserved, and nobody uses it"));
    absent.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, dependency: &str, kind: Kind, expect: &[&str]) {
        let package = Package {
            name: name.into(),
            dependencies: vec![(dependency.into(), kind)],
        };
        assert_eq!(problems(&[package]), expect, "{name} -> {dependency}");
    }

    #[test]
    fn a_room_imports_only_what_its_rule_names() {
        check("trace", "ctf", Kind::Normal, &[]);
        check("diagnosis", "trace", Kind::Normal, &[]);
        check(
            "diagnosis",
            "ctf",
            Kind::Normal,
            &["diagnosis may not depend on ctf"],
        );
        check(
            "event",
            "abi",
            Kind::Normal,
            &["event may not depend on abi"],
        );
        check(
            "report",
            "cli",
            Kind::Normal,
            &["report may not depend on cli"],
        );
        check(
            "report",
            "cli",
            Kind::Dev,
            &["report may not depend on cli"],
        );
        check("trace", "testkit", Kind::Dev, &[]);
        check(
            "trace",
            "testkit",
            Kind::Normal,
            &["trace may not depend on testkit"],
        );
    }

    #[test]
    fn a_reserved_library_stays_with_its_owner() {
        check("bpf-host", "libbpf-rs", Kind::Normal, &[]);
        check(
            "capture",
            "libbpf-rs",
            Kind::Normal,
            &["capture may not depend on libbpf-rs: only bpf-host links libbpf"],
        );
        check(
            "event",
            "libc",
            Kind::Normal,
            &["event depends on nothing, yet on libc"],
        );
    }

    #[test]
    fn a_room_without_a_rule_is_refused() {
        let package = Package {
            name: "attic".into(),
            dependencies: Vec::new(),
        };
        let expect = ["attic has no rule: add it to CRATES in xtask/src/deps.rs"];
        assert_eq!(problems(&[package]), expect);
    }

    #[test]
    fn a_rule_about_nothing_is_told() {
        let mut all: Vec<Package> = CRATES
            .iter()
            .map(|(name, _)| Package {
                name: (*name).to_owned(),
                dependencies: Vec::new(),
            })
            .collect();
        let libraries = RESERVED.iter();
        all[0].dependencies = libraries
            .map(|(library, ..)| ((*library).to_owned(), Kind::Normal))
            .collect();
        assert_eq!(dead_rules(&all), [""; 0]);
        all[0].dependencies.retain(|(name, _)| name != "clap");
        all.retain(|package| package.name != "views");
        let expect = [
            "a rule names views, which is no crate",
            "clap is reserved, and nobody uses it",
        ];
        assert_eq!(dead_rules(&all), expect);
    }

    #[test]
    fn cargo_metadata_is_read_with_its_kinds() {
        let metadata = serde_json::json!({"packages": [{"name": "trace", "dependencies": [
            {"name": "event", "kind": null}, {"name": "testkit", "kind": "dev"}]}]});
        let packages = packages(&metadata);
        let expect = [
            ("event".to_owned(), Kind::Normal),
            ("testkit".to_owned(), Kind::Dev),
        ];
        assert_eq!(packages[0].dependencies, expect);
    }
}
