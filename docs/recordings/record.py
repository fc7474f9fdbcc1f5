#!/usr/bin/env python3
"""Records late-loop.txt: boots scene.c as the only program of an emulated machine.

usage: record.py KERNEL OUTPUT

KERNEL is one of the laboratory's (`cargo xtask vm fetch`), below ~/.cache/rtscope/vm. The emulator counts
instructions, 2 ns each, so that lengths are true whatever the host does. What is kept is the time around the late cycle.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BEFORE_S, AFTER_S = 0.022, 0.024
SECONDS_MAX = 300


def entry(name, mode, data=b"", device=(0, 0)):
    """A file of an initial file system, in cpio's newer form."""
    name = name.encode() + b"\0"
    numbers = [0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def image(folder):
    """An initial file system of one program and a console."""
    program = folder / "init"
    flags = ["-O2", "-Wall", "-Wextra", "-static"]
    subprocess.run(["cc", *flags, "-o", program, HERE / "scene.c"], check=True)
    path = folder / "initrd"
    path.write_bytes(
        entry("dev", 0o040755) + entry("dev/console", 0o020600, device=(5, 1))
        + entry("init", 0o100755, program.read_bytes()) + entry("TRAILER!!!", 0)
    )
    return path


def boot(kernel, initrd):
    """What the guest prints."""
    command = [
        "qemu-system-x86_64", "-kernel", kernel, "-initrd", initrd, "-m", "512", "-smp", "1",
        "-accel", "tcg", "-icount", "shift=1,sleep=off", "-nographic", "-no-reboot", "-nodefaults",
        "-serial", "stdio", "-append", "console=ttyS0 quiet panic=-1 cryptomgr.notests nokaslr no_hash_pointers",
    ]
    done = subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX)
    return done.stdout.decode(errors="replace").replace("\r", "")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        said = boot(sys.argv[1], image(Path(folder)))
    late = re.search(r"late: (\d+)\n>>>\n(.*)<<<\n", said, re.DOTALL)
    if not late:
        sys.exit(f"error: the guest did not get so far\n  found: {said[-400:]}\n  fix:  another kernel")
    late_s = int(late.group(1)) / 1e9
    kept = []
    for line in late.group(2).splitlines():
        at = re.search(r" (\d+\.\d+): ", line)
        if not at or late_s - BEFORE_S <= float(at.group(1)) <= late_s + AFTER_S:
            kept.append(line)
    Path(sys.argv[2]).write_text("\n".join(kept) + "\n")
    print(f"{len(kept)} lines in {sys.argv[2]}; the loop was due at {late_s}")
    print("\n".join(line for line in said.splitlines() if "truth" in line))


main()
