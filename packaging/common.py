"""What the scripts that make packages share: running programs, version, time, archives."""

import gzip
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def fail(what, found, fix):
    sys.exit(f"error: {what}\n  found: {found}\n  fix:  {fix}")


def run(*command, **more):
    """Runs a command; what it prints."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, **more)
    except FileNotFoundError:
        fail("a program is missing", command[0], "packaging/deps.sh packages")
    except subprocess.CalledProcessError as error:
        fail(f"{command[0]} failed", error.stderr.strip() or error.returncode, "see above")
    return done.stdout


def version():
    with open(ROOT / "Cargo.toml", "rb") as file:
        return tomllib.load(file)["workspace"]["package"]["version"]


def epoch():
    """When the commit was made: every time in a package, so that it can be built again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def maintainer():
    """Who answers for the packages: as Debian's tools are told, else who made the commit."""
    name, address = (os.environ.get(key) for key in ("DEBFULLNAME", "DEBEMAIL"))
    if name and address:
        return f"{name} <{address}>"
    return run("git", "-C", str(ROOT), "log", "-1", "--format=%cn <%ce>").strip()


def sbom(what, crate, *more):
    """What is linked into a crate of ours, as sbom.py tells it."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    return run(str(HERE / "sbom.py"), what, crate, *more, env=environment)


def plain(member):
    """An entry of an archive without what a machine would leave in it."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = epoch()
    return member


def archived(entries, to):
    """Writes pairs of a file and its name in the archive, uncompressed, into the file `to`."""
    with tarfile.open(fileobj=to, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, name in entries:
            archive.add(path, name, recursive=False, filter=plain)


def squeezed(data):
    """The same bytes for the same data."""
    return gzip.compress(data, 9, mtime=0)


def squeeze(path, data):
    Path(path).write_bytes(squeezed(data))
