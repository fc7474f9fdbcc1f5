#!/usr/bin/env python3
"""What is linked into a program of ours: CycloneDX, or the list of licences with their texts.

usage: sbom.py cyclonedx|licences CRATE [--static]

CRATE is `cli` (the program) or `capi` (librtscope). All of it comes from Cargo.lock and from the
sources that cargo has; --static adds what a program without shared libraries holds besides.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = {"cli": "rtscope", "capi": "librtscope"}
LICENCE_FILES = re.compile(r"^(licen[cs]e|copying|unlicense|notice)([-._].*)?$", re.IGNORECASE)

# C libraries whose source lies inside of a crate: crate, library, licence, where its version is.
BUNDLED = [
    ("libbpf-sys", "libbpf", "LGPL-2.1-only OR BSD-2-Clause", None),
    ("zstd-sys", "zstd", "BSD-3-Clause OR GPL-2.0-only", None),
    ("libsqlite3-sys", "sqlite", "blessing",
     ("sqlite3/sqlite3.h", r'#define SQLITE_VERSION +"([0-9.]+)"')),
]

# What a static program holds of the system's libraries: library, licence, package that has it.
STATIC = [
    ("glibc", "LGPL-2.1-or-later", "libc6-dev"),
    ("libelf", "GPL-2.0-or-later OR LGPL-3.0-or-later", "libelf-dev"),
    ("zlib", "Zlib", "zlib1g-dev"),
]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def workspace():
    with open(ROOT / "Cargo.toml", "rb") as file:
        return tomllib.load(file)["workspace"]["package"]


def checksums():
    """The registry's checksum of each crate, by name and version."""
    with open(ROOT / "Cargo.lock", "rb") as file:
        packages = tomllib.load(file)["package"]
    return {(p["name"], p["version"]): p["checksum"] for p in packages if "checksum" in p}


def linked(crate):
    """The crates of others that are linked into it: neither build scripts nor macros."""
    tree = run(
        "cargo", "tree", "--locked", "--package", crate, "--edges", "normal,no-proc-macro",
        "--prefix", "none", "--format", "{p}",
    )
    wanted = set()
    for line in tree.splitlines():
        name, version, *rest = line.split()
        if not any(word.startswith("(/") for word in rest):
            wanted.add((name, version.removeprefix("v")))
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1"))
    found = {(p["name"], p["version"]): p for p in metadata["packages"] if p["source"]}
    return [found[key] for key in sorted(wanted)]


def expression(licence):
    """Crates of old write `MIT/Apache-2.0`, which SPDX has no words for."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def bundled(crates):
    """The C libraries inside of these crates, as (name, version, licence, folder)."""
    for name, library, licence, place in BUNDLED:
        for crate in (c for c in crates if c["name"] == name):
            folder = Path(crate["manifest_path"]).parent
            version = crate["version"].partition("+")[2].removeprefix(f"{library}.").lstrip("v")
            if place:
                version = re.search(place[1], (folder / place[0]).read_text()).group(1)
            yield library, version, licence, folder / library


def static():
    """The system's libraries in a static program, by the packages that they were linked from."""
    for library, licence, package in STATIC:
        version = run("dpkg-query", "-W", "-f", "${Version}", package)
        yield library, version, licence, Path("/usr/share/doc") / package


def others(crates, is_static):
    return [*bundled(crates), *(static() if is_static else ())]


def cyclonedx(crate, is_static):
    """One document, the same bytes each time for a commit."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    when = datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    about, sums, crates = workspace(), checksums(), linked(crate)
    components = []
    for package in crates:
        name, version = package["name"], package["version"]
        url = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
        components.append({
            "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
            "licenses": [{"expression": expression(package["license"])}],
            "hashes": [{"alg": "SHA-256", "content": sums[name, version]}],
        })
    for name, version, licence, _ in others(crates, is_static):
        known = {"license": {"id": licence}} if " " not in licence else {"expression": licence}
        components.append({
            "type": "library", "bom-ref": f"c:{name}@{version}", "name": name,
            "version": version, "licenses": [known],
        })
    name = PRODUCTS[crate]
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": when,
            "component": {
                "type": "application" if crate == "cli" else "library", "bom-ref": name,
                "name": name, "version": about["version"],
                "licenses": [{"expression": about["license"]}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": name, "dependsOn": [component["bom-ref"] for component in components]},
        ],
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def texts(folder):
    """The files below `folder` that hold a licence."""
    if not folder.is_dir():
        return []
    files = [path for path in sorted(folder.iterdir()) if LICENCE_FILES.match(path.name)]
    files += sorted(folder.glob("copyright"))
    return [path.read_text(errors="replace").strip() for path in files if path.is_file()]


def licences(crate, is_static):
    """Each library with its licence, then each text once, with whose it is."""
    crates = linked(crate)
    name = f"{PRODUCTS[crate]} {workspace()['version']}"
    lines = [f"Libraries of others in {name}, and their licences.", ""]
    owners = {}
    entries = [
        (p["name"], p["version"], expression(p["license"]), Path(p["manifest_path"]).parent)
        for p in crates
    ]
    for name, version, licence, folder in [*entries, *others(crates, is_static)]:
        lines.append(f"{name} {version}: {licence}")
        for text in texts(folder):
            key = " ".join(text.split())
            owners.setdefault(key, (text, []))[1].append(name)
    for text, names in owners.values():
        lines += ["", "-" * 78, "Of " + ", ".join(sorted(set(names))) + ":", "", text]
    return "\n".join(lines) + "\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--static"]
    makers = {"cyclonedx": cyclonedx, "licences": licences}
    if len(words) != 2 or words[0] not in makers or words[1] not in PRODUCTS:
        sys.exit(__doc__)
    sys.stdout.write(makers[words[0]](words[1], "--static" in sys.argv))


main()
