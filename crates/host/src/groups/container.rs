//! Containers: by the control groups that engines give them, and where there is none, by their PID
//! namespaces.

use std::path::Path;

use event::{Error, ErrorKind, GroupName, Result};

use super::engines;
use super::found::{Asked, Found};
use super::hierarchy::{Group, all};
use crate::namespace;

/// What engines put before a container's id or name in the last part of its control group's path.
const PREFIXES: [&str; 8] = [
    "docker-",
    "libpod-",
    "cri-containerd-",
    "nerdctl-",
    "crio-",
    "machine-",
    "systemd-nspawn@",
    "lxc.payload.",
];
/// And what systemd puts behind it.
const SUFFIXES: [&str; 2] = [".scope", ".service"];
/// The shortest part of an id that is taken for one.
const ID_DIGITS_MIN: usize = 4;

/// The container of this name or id.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a name that none can have.
pub(super) fn find(root: &Path, asked: &Asked, name: &str) -> Result<Found> {
    if name.is_empty() || name.contains(['/', '*']) {
        let error = Error::new(ErrorKind::InvalidInput, "not the name of a container");
        return Err(error.found(format!("'{name}'")).fix(
            "give its name or the begin of its id, as docker ps, podman ps or machinectl have",
        ));
    }
    let ids = engines::ids_called(root, name);
    let groups = all(root, |path| is_container(path, name, &ids));
    let mut found = Found {
        asked: asked.clone(),
        names: names(name, &groups, &ids)?,
        groups,
        namespaces: Vec::new(),
    };
    if found.groups.is_empty() {
        found.namespaces = namespaces(root, name, &ids);
    }
    Ok(found)
}

/// Whether a control group is that of a container of this name, or of one of these ids.
fn is_container(path: &str, name: &str, ids: &[String]) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path);
    let inner = PREFIXES.iter().find_map(|prefix| last.strip_prefix(prefix));
    let has_prefix = inner.is_some();
    let inner = inner.unwrap_or(last);
    let inner = SUFFIXES
        .iter()
        .find_map(|suffix| inner.strip_suffix(suffix))
        .filter(|_| has_prefix)
        .unwrap_or(inner);
    // systemd writes a dash in a name so.
    let inner = inner.replace("\\x2d", "-");
    let by_id = is_id(name) && is_whole_id(&inner) && inner.starts_with(name);
    inner == name || by_id || ids.contains(&inner)
}

fn is_id(text: &str) -> bool {
    text.len() >= ID_DIGITS_MIN && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// As engines make them: 64 digits, or 32 of pods.
fn is_whole_id(text: &str) -> bool {
    text.len() >= 32 && is_id(text)
}

/// How its control group is called when it is made: as now, or as the engine that knows it would;
/// of one that nobody knows, as it is called itself.
fn names(name: &str, groups: &[Group], ids: &[String]) -> Result<Vec<GroupName>> {
    let tail = |path: &str| {
        let begin = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        path[begin..].to_owned()
    };
    let mut texts: Vec<String> = groups.iter().map(|group| tail(&group.path)).collect();
    if texts.is_empty() {
        let escaped = name.replace('-', "\\x2d");
        texts = vec![name.to_owned(), format!("machine-{escaped}.scope")];
        texts.push(format!("lxc.payload.{name}"));
        let known = ids.iter().map(String::as_str);
        for id in known.chain(is_id(name).then_some(name)) {
            texts = ["docker", "libpod", "cri-containerd"]
                .map(|engine| format!("{engine}-{id}*.scope"))
                .into();
            texts.extend([format!("docker/{id}*"), format!("{id}*")]);
        }
    }
    texts.sort();
    texts.dedup();
    texts.iter().map(|text| GroupName::parse(text)).collect()
}

/// The PID namespaces below our own whose number, whose first process's name or whose host name is
/// this, or whose engine was told so.
fn namespaces(root: &Path, name: &str, ids: &[String]) -> Vec<u32> {
    let proc = root.join("proc");
    let own = namespace::of(&proc.join("self"));
    let entries = std::fs::read_dir(&proc).into_iter().flatten().flatten();
    let processes = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str()
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let mut found: Vec<u32> = processes
        .filter_map(|entry| {
            let folder = entry.path();
            let number = namespace::of(&folder).filter(|number| Some(*number) != own)?;
            let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            let is_first = namespace::ids(&text("status")).last() == Some(&1);
            let called = |name: &str, text: &str| text.trim_end() == name;
            let is_it = called(name, &number.to_string())
                || is_first
                    && (called(name, &text("comm"))
                        || called(name, &text("root/etc/hostname"))
                        || is_kept_as(&proc, &text("status"), name, ids));
            is_it.then_some(number)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether the process that keeps a container (conmon, a containerd-shim), its first one's parent,
/// was started with this name or one of these ids. Without root a container may have no control
/// group of its own.
fn is_kept_as(proc: &Path, status: &str, name: &str, ids: &[String]) -> bool {
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let line = parent.map(|parent| std::fs::read(proc.join(parent.trim()).join("cmdline")));
    let line = line.and_then(Result::ok).unwrap_or_default();
    let words = line.split(|byte| *byte == 0);
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let by_name = words
        .windows(2)
        .any(|pair| pair[0] == "-n" && pair[1] == name);
    let by_id = |word: &str| {
        let begins = is_id(name) && is_whole_id(word) && word.starts_with(name);
        begins || ids.iter().any(|id| id == word)
    };
    by_name || words.iter().any(|word| by_id(word))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, machine};
    use super::*;

    const ID: &str = "3fa94c1e5b7d3fa94c1e5b7d3fa94c1e5b7d3fa94c1e5b7d3fa94c1e5b7d3fa9";

    #[test]
    fn every_engines_container_is_found_by_id_and_name() {
        let folders: Vec<String> = [
            format!("cg/unified/system.slice/docker-{ID}.scope"),
            "cg/unified/machine.slice/machine-my\\x2dbox.scope".to_owned(),
            "cg/unified/machine.slice/systemd-nspawn@deb.service".to_owned(),
            "cg/unified/lxc.payload.lx".to_owned(),
            "cg/cpu/default/redis".to_owned(),
            "cg/cpu/docker/3fa9".to_owned(),
        ]
        .into();
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        let machine = machine(&folders);
        let check = |name: &str, expect: &[&str]| {
            let asked = Asked::Container(name.to_owned());
            assert_eq!(found(machine.path(), &asked), expect, "{name}");
        };
        let docker = format!("0:/system.slice/docker-{ID}.scope");
        check(ID, &[&docker]);
        check(&ID[..12], &[&docker]);
        check("my-box", &["0:/machine.slice/machine-my\\x2dbox.scope"]);
        check("deb", &["0:/machine.slice/systemd-nspawn@deb.service"]);
        check("lx", &["0:/lxc.payload.lx"]);
        check("redis", &["7:/default/redis"]);
        check("3fb9", &[]);
        check("box", &[]);
        // Too short for an id, and the name of nothing.
        check("3fa", &[]);
    }

    #[test]
    fn an_engines_files_say_which_id_a_name_has() {
        let machine = machine(&[&format!("cg/cpu/docker/{ID}")]);
        let folder = machine.path().join("var/lib/docker/containers").join(ID);
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("config.v2.json"), r#"{"Name":"/web","x":1}"#).expect("written");
        let asked = Asked::Container("web".to_owned());
        assert_eq!(found(machine.path(), &asked), [format!("7:/docker/{ID}")]);
        let again = super::super::find(machine.path(), &asked).expect("a name");
        assert!(
            again
                .names
                .iter()
                .any(|name| name.matches(&format!("/docker/{ID}")))
        );
    }

    #[test]
    fn a_container_without_a_control_group_is_known_by_what_its_engine_was_told() {
        let machine = machine(&["proc/12/ns", "proc/11"]);
        let proc = machine.path().join("proc");
        std::fs::write(proc.join("12/status"), "PPid:\t11\nNSpid:\t12\t1\n").expect("written");
        std::os::unix::fs::symlink("pid:[4026532000]", proc.join("12/ns/pid")).expect("linked");
        let line = format!("/usr/bin/conmon\0-c\0{ID}\0-n\0loop\0--exit-dir\0/run\0");
        std::fs::write(proc.join("11/cmdline"), line).expect("written");
        let check = |name: &str, expect: &[u32]| {
            let asked = Asked::Container(name.to_owned());
            let found = super::super::find(machine.path(), &asked).expect("a name");
            assert_eq!(found.namespaces, expect, "{name}");
        };
        check("loop", &[4_026_532_000]);
        check(ID, &[4_026_532_000]);
        check(&ID[..12], &[4_026_532_000]);
        check("conmon", &[]);
        check("run", &[]);
        check("other", &[]);
    }

    #[test]
    fn the_next_group_of_a_container_is_known_by_the_name_of_this_one_or_by_its_own() {
        let machine = machine(&["cg/unified/machine.slice/machine-box.scope"]);
        let check = |name: &str, made: &str, expect: bool| {
            let asked = Asked::Container(name.to_owned());
            let found = super::super::find(machine.path(), &asked).expect("a name");
            let is_known = found.names.iter().any(|name| name.matches(made));
            assert_eq!(is_known, expect, "{name} {made}");
            assert!(found.names.len() <= 8, "{found:?}");
        };
        check("box", "/machine.slice/machine-box.scope", true);
        check("later", "/machine.slice/machine-later.scope", true);
        check("la-ter", "/machine.slice/machine-la\\x2dter.scope", true);
        check("later", "/x/later", true);
        check("3fa94c", &format!("/system.slice/docker-{ID}.scope"), true);
        check("3fa94c", &format!("/docker/{ID}"), true);
        check("3fb", &format!("/docker/{ID}"), false);
    }
}
