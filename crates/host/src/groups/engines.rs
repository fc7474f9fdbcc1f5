//! What container engines keep on disk: the ids of containers by their names. Whoever may not read
//! it names containers by their ids.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The ids of containers that are called so.
pub(super) fn ids_called(root: &Path, name: &str) -> Vec<String> {
    let mut ids = docker(root, name);
    ids.extend(podman(root, name));
    ids.extend(nerdctl(root, name));
    ids.extend(containerd(root, name));
    ids.sort();
    ids.dedup();
    ids
}

fn folders(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn docker(root: &Path, name: &str) -> Vec<String> {
    let called = |folder: &PathBuf| {
        let config = json(&folder.join("config.v2.json"));
        config.is_some_and(|config| {
            let found = config["Name"].as_str().unwrap_or_default();
            found.strip_prefix('/').unwrap_or(found) == name
        })
    };
    let containers = folders(root.join("var/lib/docker/containers"));
    containers
        .filter(called)
        .filter_map(|folder| file_name(&folder))
        .collect()
}

fn podman(root: &Path, name: &str) -> Vec<String> {
    let users = folders(root.join("home"));
    let users = users.chain([root.join("root")]);
    let storages = users.map(|home| home.join(".local/share/containers/storage"));
    let storages = storages.chain([root.join("var/lib/containers/storage")]);
    // A folder for each driver, as overlay-containers.
    let of_drivers = storages.flat_map(folders).filter(|folder| {
        let name = file_name(folder);
        name.is_some_and(|name| name.ends_with("-containers"))
    });
    let lists = of_drivers.filter_map(|folder| json(&folder.join("containers.json")));
    let containers = lists.filter_map(|list| list.as_array().cloned()).flatten();
    let called = |container: &Value| {
        let names = container["names"].as_array();
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    containers
        .filter(called)
        .filter_map(|container| Some(container["id"].as_str()?.to_owned()))
        .collect()
}

fn nerdctl(root: &Path, name: &str) -> Vec<String> {
    let stores = folders(root.join("var/lib/nerdctl"));
    let namespaces = stores.flat_map(|store| folders(store.join("names")));
    let texts = namespaces.filter_map(|folder| std::fs::read_to_string(folder.join(name)).ok());
    texts
        .map(|id| id.trim().to_owned())
        .filter(|id| !id.is_empty())
        .collect()
}

/// Of Kubernetes: a container's name in its pod is an annotation.
fn containerd(root: &Path, name: &str) -> Vec<String> {
    const NAMES: [&str; 2] = ["io.kubernetes.cri.container-name", "nerdctl/name"];
    let namespaces = folders(root.join("run/containerd/io.containerd.runtime.v2.task"));
    let called = |folder: &PathBuf| {
        let config = json(&folder.join("config.json"));
        config.is_some_and(|config| {
            let annotations = &config["annotations"];
            NAMES.iter().any(|key| annotations[*key] == name)
        })
    };
    let containers = namespaces.flat_map(folders).filter(called);
    containers.filter_map(|folder| file_name(&folder)).collect()
}
