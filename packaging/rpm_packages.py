"""An .rpm of a package's tree, by rpmbuild."""

import os
import shutil
import textwrap
from pathlib import Path

from common import ROOT, epoch, run, version

LICENCES = ["LICENSE-MIT", "LICENSE-APACHE", "bpf/LICENSE-BSD"]
MACROS = {
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    # What would differ from build to build.
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
}


def licensed(package):
    """Puts the licences where .rpm packages have them, in the place of Debian's file."""
    folder = package.tree / "usr/share/licenses" / package.name
    folder.mkdir(parents=True)
    for name in LICENCES:
        shutil.copy2(ROOT / name, folder / Path(name).name)
    documents = package.tree / "usr/share/doc" / package.name
    for name in ("copyright", "changelog.gz"):
        (documents / name).unlink()
    shutil.rmtree(package.tree / "usr/share/lintian", ignore_errors=True)
    if not any(documents.iterdir()):
        documents.rmdir()


def entries(package):
    """The lines of %files: all files, and the folders that are the package's own."""
    for path in sorted(package.tree.rglob("*")):
        place = "/" + str(path.relative_to(package.tree))
        if not path.is_dir() or path.is_symlink():
            mark = "%license " if place.startswith("/usr/share/licenses/") else ""
            if place in package.described.get("settings", []):
                mark = "%config(noreplace) "
            yield mark + place
        elif path.name in (package.name, "rtscope") or "/rtscope/" in place:
            yield f"%dir {place}"


def scripts(unit):
    """A service that ran goes on with the new program, and is stopped where its program goes."""
    systemd = "[ ! -d /run/systemd/system ] ||"
    return [
        "%post",
        f"{systemd} systemctl --system daemon-reload >/dev/null || :",
        "%preun",
        f'[ "$1" != 0 ] || {systemd} systemctl stop {unit} >/dev/null || :',
        "%postun",
        f"{systemd} systemctl --system daemon-reload >/dev/null || :",
        f'[ "$1" = 0 ] || {systemd} systemctl try-restart {unit} >/dev/null || :',
    ]


def spec(package):
    described = package.described
    needs = [f"Requires: {need}%{{?_isa}} = %{{version}}" for need in described.get("needs", [])]
    lines = [
        f"Name: {package.name}",
        f"Version: {version()}",
        "Release: 1",
        f"Summary: {described['summary']}",
        "License: MIT OR Apache-2.0",
        *needs,
        "%description",
        textwrap.fill(described["text"].strip(), 78),
        "%install",
        f"cp -a {package.tree}/. %{{buildroot}}/",
        *(scripts(described["service"]) if "service" in described else []),
        "%files",
        *entries(package),
    ]
    return "\n".join(lines) + "\n"


def rpm(package, folder, output):
    """Builds it, and returns where it lies."""
    licensed(package)
    package.same_times()
    top = folder / "rpmbuild"
    top.mkdir(exist_ok=True)
    described = top / f"{package.name}.spec"
    described.write_text(spec(package))
    defined = {**MACROS, "_topdir": str(top), "_rpmdir": str(output)}
    words = [word for pair in defined.items() for word in ("--define", " ".join(pair))]
    named = ["--define", "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    run("rpmbuild", "-bb", "--quiet", *words, *named, described, env=environment)
    machine = run("rpm", "--eval", "%{_arch}").strip()
    return output / f"{package.name}-{version()}-1.{machine}.rpm"
