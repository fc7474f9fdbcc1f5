#!/usr/bin/env python3
"""Makes packages of an installation: .deb and .rpm files, tarballs, an image for containers.

usage: packages.py STAGE OUTPUT [STATIC]

STAGE is what `make install install-library` and `make -C probe install` put below DESTDIR with the
prefix /usr. packages.toml says which package holds what. STATIC is the program of `make static`;
without it there is neither its tarball nor the image.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path

from common import (
    HERE, ROOT, archived, epoch, fail, maintainer, run, sbom, squeeze, version
)
from oci_image import image
from rpm_packages import rpm


class Package:
    """One package's own tree."""

    def __init__(self, described, stage, folder, libraries):
        self.name = described["name"]
        self.described = described
        self.tree = folder / self.name
        for pattern in described["files"]:
            # A pattern with `/` before it stands for itself.
            source = stage / "usr" / pattern.replace("LIB", "lib", 1)
            target = self.tree / "usr" / pattern.replace("LIB", libraries, 1)
            if pattern.startswith("/"):
                source, target = stage / pattern[1:], self.tree / pattern[1:]
            if not source.exists():
                fail("an installation lacks a file", source, "make packages")
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)
        for path in self.tree.rglob("*.pc"):
            path.write_text(path.read_text().replace("/lib\n", f"/{libraries}\n", 1))

    def documents(self):
        """Licences and what changed, where Debian's readers look for them."""
        folder = self.tree / "usr/share/doc" / self.name
        folder.mkdir(parents=True)
        parts = [
            "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
            "Upstream-Name: rtscope\n\nFiles: *\nCopyright: The rtscope authors\n"
            "License: MIT or Apache-2.0\n\nFiles: bpf/*\nCopyright: The rtscope authors\n"
            "License: GPL-2.0-only or BSD-2-Clause\n"
        ]
        for licence, file in (("MIT", "LICENSE-MIT"), ("BSD-2-Clause", "bpf/LICENSE-BSD")):
            text = (ROOT / file).read_text().strip().splitlines()
            lines = "".join(f" {line.strip() or '.'}\n" for line in text)
            parts.append(f"License: {licence}\n{lines}")
        for licence, file in (("Apache-2.0", "Apache-2.0"), ("GPL-2.0-only", "GPL-2")):
            text = f" The text is in /usr/share/common-licenses/{file}.\n"
            parts.append(f"License: {licence}\n{text}")
        (folder / "copyright").write_text("\n".join(parts))
        when = run("date", "-uRd", f"@{epoch()}").strip()
        changes = (
            f"rtscope ({version()}) unstable; urgency=medium\n\n"
            f"  * What each verb does: see the project's CHANGELOG.md.\n\n"
            f" -- {maintainer()}  {when}\n"
        )
        squeeze(folder / "changelog.gz", changes.encode())
        self.others(folder)
        tags = self.described.get("lintian", [])
        if tags:
            overrides = self.tree / "usr/share/lintian/overrides" / self.name
            overrides.parent.mkdir(parents=True)
            overrides.write_text("".join(f"{self.name}: {tag}\n" for tag in tags))

    def others(self, folder):
        """What others wrote and is linked in: its licences, and all of it for programs."""
        crate = self.described.get("crate")
        if crate:
            (folder / "sbom.cdx.json").write_text(sbom("cyclonedx", crate))
            squeeze(folder / "licences.gz", sbom("licences", crate).encode())

    def strip(self, debug):
        """Programs and libraries without debug information, which goes to `debug` by build id."""
        for path in sorted(self.tree.rglob("*")):
            if path.is_symlink() or not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            identity = build_id(path)
            apart = debug / "usr/lib/debug/.build-id" / identity[:2] / f"{identity[2:]}.debug"
            apart.parent.mkdir(parents=True, exist_ok=True)
            run("objcopy", "--only-keep-debug", "--compress-debug-sections", path, apart)
            kind = "--strip-all" if "/bin/" in str(path) else "--strip-unneeded"
            run("strip", kind, "--remove-section=.comment", "--remove-section=.note", path)
            os.chmod(apart, 0o644)

        for path in sorted(self.tree.rglob("*.a")):
            # What rustc keeps for links of its own is four fifths, and no other compiler reads it.
            kept = ("--remove-section=.llvmbc", "--remove-section=.llvmcmd")
            run("strip", "--strip-debug", "--enable-deterministic-archives", *kept, path)

    def same_times(self):
        for path in [self.tree, *self.tree.rglob("*")]:
            os.utime(path, (epoch(), epoch()), follow_symlinks=False)
            if not path.is_symlink():
                is_open = path.is_dir() or "/bin/" in str(path)
                os.chmod(path, 0o755 if is_open else 0o644)

    def libraries(self):
        """The shared libraries of its own."""
        return sorted(p for p in self.tree.rglob("*.so*") if p.is_file() and not p.is_symlink())


def build_id(path):
    for line in run("readelf", "-n", str(path)).splitlines():
        if "Build ID:" in line:
            return line.split()[-1]
    fail("a program has no build id", path, "link it with -Wl,--build-id")


def manuals(stage):
    """A page for each verb beside the program's, all of them packed."""
    folder = stage / "usr/share/man/man1"
    program = stage / "usr/bin/rtscope"
    text = run(str(program), "--help")
    verbs = text.split("Commands:")[1].split("\n\n")[0].splitlines()
    names = [line.split()[0] for line in verbs if line.startswith("  ") and line[2] != " "]
    for verb in (name for name in names if name != "help"):
        page = run(str(program), "--generate", "man", "--of", verb)
        (folder / f"rtscope-{verb}.1").write_text(page)
    for page in sorted(folder.glob("*.1")):
        squeeze(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()


def depends(package, folder):
    """The packages whose libraries it was linked with, by Debian's own records."""
    files = [p for p in package.tree.rglob("*") if p.is_file() and not p.is_symlink()]
    linked = [str(p) for p in files if p.read_bytes()[:4] == b"\x7fELF"]
    found = [f"{need} (= {version()})" for need in package.described.get("needs", [])]
    if linked:
        (folder / "debian").mkdir(exist_ok=True)
        (folder / "debian/control").write_text(
            "Source: rtscope\n\nPackage: rtscope\nArchitecture: any\n"
        )
        where = f"-l{folder / 'librtscope-probe1/usr/lib'}"
        printed = run(
            "dpkg-shlibdeps", "-O", "--ignore-missing-info", where, *linked, cwd=folder
        )
        found.append(printed.strip().removeprefix("shlibs:Depends="))
    return ", ".join(part for part in found if part)


def deb(package, folder, output, architecture):
    control = package.tree / "DEBIAN"
    control.mkdir()
    files = [p for p in package.tree.rglob("*") if p.is_file() and control not in p.parents]
    size = sum(-(-p.stat().st_size // 1024) for p in files if not p.is_symlink())
    text = "\n".join(textwrap.wrap(package.described["text"].strip(), 78))
    lines = [
        f"Package: {package.name}",
        "Source: rtscope",
        f"Version: {version()}",
        f"Architecture: {architecture}",
        f"Maintainer: {maintainer()}",
        f"Installed-Size: {size}",
    ]
    needs = depends(package, folder)
    if needs:
        lines.append(f"Depends: {needs}")
    if suggested := package.described.get("suggests"):
        lines.append(f"Suggests: {', '.join(suggested)}")
    lines += [
        f"Section: {package.described['section']}",
        "Priority: optional",
        "Multi-Arch: same" if package.described["section"].startswith("lib") else "Multi-Arch: no",
        f"Description: {package.described['summary']}",
        textwrap.indent(text, " "),
    ]
    (control / "control").write_text("\n".join(lines) + "\n")
    settings = package.described.get("settings", [])
    if settings:
        (control / "conffiles").write_text("".join(f"{path}\n" for path in settings))
    kept = [package.tree / path[1:] for path in settings]
    sums = sorted((path for path in files if path not in kept), key=lambda path: str(path))
    (control / "md5sums").write_text("".join(
        f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(package.tree)}\n"
        for p in sums if not p.is_symlink()
    ))
    if package.name.endswith("1"):
        shlibs(package, control)
    package.same_times()
    if "service" in package.described:
        for script in sorted((HERE / "debian").iterdir()):
            shutil.copy2(script, control)
            os.chmod(control / script.name, 0o755)
    for path in control.iterdir():
        os.utime(path, (epoch(), epoch()))
    os.utime(control, (epoch(), epoch()))
    name = output / f"{package.name}_{version()}_{architecture}.deb"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    # One thread: the bytes depend on whether there are several.
    packed = ("--root-owner-group", "-Zxz", "--threads-max=1")
    run("dpkg-deb", *packed, "--build", package.tree, name, env=environment)
    shutil.rmtree(control)
    return name


def shlibs(package, control):
    """Which package has which library, and that the loader must look again."""
    lines = []
    for path in package.libraries():
        name, dot, major = path.name.rpartition(".so.")
        if dot:
            lines.append(f"{name} {major} {package.name} (>= {version()})\n")
    (control / "shlibs").write_text("".join(lines))
    (control / "triggers").write_text("activate-noawait ldconfig\n")


def tarball(trees, output, top):
    """The program as it is: unpacked anywhere, it runs."""
    entries = [
        (path, f"{top}/{path.relative_to(tree / 'usr')}")
        for tree in trees
        for path in sorted((tree / "usr").rglob("*"))
    ]
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"):
        entries.append((ROOT / name, f"{top}/{name}"))
    name = output / f"{top}.tar.gz"
    with tempfile.TemporaryFile() as whole:
        archived(entries, whole)
        whole.seek(0)
        squeeze(name, whole.read())
    return name


def dynamic(stage, folder, output):
    """Packages of programs and libraries that use this system's libraries."""
    with open(HERE / "packages.toml", "rb") as file:
        description = tomllib.load(file)["package"]
    architecture = run("dpkg", "--print-architecture").strip()
    triplet = run("cc", "-dumpmachine").strip()
    debug = folder / "debug"

    def packages(name, libraries):
        made = [Package(one, stage, folder / name, libraries) for one in description]
        for package in made:
            package.strip(debug)
            package.documents()
        return made

    for_debian = packages("debian", f"lib/{triplet}")
    for package in for_debian:
        zsh = package.tree / "usr/share/zsh"
        if zsh.exists():
            # Debian's zsh looks for those of packages there, and nowhere else.
            (zsh / "site-functions").rename(zsh / "vendor-completions")
    made = [deb(package, folder / "debian", output, architecture) for package in for_debian]
    top = f"rtscope-{version()}-{architecture}"
    made.append(tarball([package.tree for package in for_debian], output, top))
    made.append(tarball([debug], output, f"{top}-debug"))
    return made + [rpm(package, folder, output) for package in packages("rpm", "lib64")]


def static(program, stage, folder, output):
    """The program alone, without any library: a tarball for every distribution, and an image."""
    needed = run("readelf", "--dynamic", str(program))
    if "(NEEDED)" in needed:
        fail("the static program wants libraries", needed, "make static")
    machine = run("uname", "-m").strip()
    with open(HERE / "packages.toml", "rb") as file:
        described = next(p for p in tomllib.load(file)["package"] if p["name"] == "rtscope")
    package = Package(described, stage, folder / "static", "lib")
    shutil.copy2(program, package.tree / "usr/bin/rtscope")
    package.strip(folder / "static/debug")
    documents = package.tree / "usr/share/doc/rtscope"
    documents.mkdir(parents=True)
    (documents / "sbom.cdx.json").write_text(sbom("cyclonedx", "cli", "--static"))
    (documents / "licences").write_text(sbom("licences", "cli", "--static"))
    package.same_times()
    top = f"rtscope-{version()}-linux-{machine}-static"
    return [tarball([package.tree], output, top), image(package.tree, machine, output)]


def main():
    words = sys.argv[1:]
    if len(words) not in (2, 3):
        sys.exit(__doc__)
    stage, output = Path(words[0]).resolve(), Path(words[1]).resolve()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        staged = folder / "stage"
        shutil.copytree(stage, staged, symlinks=True)
        manuals(staged)
        made = dynamic(staged, folder, output)
        if len(words) == 3:
            made += static(Path(words[2]).resolve(), staged, folder, output)
    for path in made:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{digest}  {path.stat().st_size:>10}  {path.name}")


main()
