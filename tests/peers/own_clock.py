#!/usr/bin/env python3
"""By what rtscope's figure of a miss is longer than the program's own: how far the begins lie
apart, what the program does between its last look at the clock and the call in which it waits
again, and what is left. Not a test: it prints.

usage: own_clock.py RTSCOPE TASK OVER_MS COMMAND...      (as root; cc is needed)

COMMAND is a loop on absolute times of CLOCK_MONOTONIC in clock_nanosleep, which prints its misses
as own_misses.py reads them.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MISS = re.compile(r"\[(\d+)\.(\d{6})\].*missed the (\d+) ms deadline by ([\d.]+) ms")
# The line is printed behind the end that it tells of, and its activation ends behind the line.
NEAR_US = 2_000


def main():
    rtscope, task, over_ms, *command = sys.argv[1:]
    source = Path(__file__).with_name("own_clock.c")
    with tempfile.TemporaryDirectory() as scratch:
        library, own = f"{scratch}/own_clock.so", f"{scratch}/own"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        watch = [rtscope, "watch", "--task", task, "--over", f"{over_ms}ms", "--rate", "1000/s"]
        watch += ["-o", f"{scratch}/late", "--", "env", f"LD_PRELOAD={library}"]
        watch += [f"OWN_CLOCK={own}", f"OWN_CLOCK_TASK={task}", *command]
        run = subprocess.run(watch, capture_output=True, text=True, check=False, env=os.environ)
        late = Path(f"{scratch}/late/late.ndjson")
        late = [json.loads(line) for line in late.read_text().splitlines()] if late.exists() else []
        late = [one for one in late if one["task"]["comm"] == task]
        waits = [tuple(map(int, line.split())) for line in Path(own).read_text().splitlines()]
    for second, micros, deadline, by in MISS.findall(run.stdout + run.stderr):
        end_us, length_us = int(second) * 1e6 + int(micros), int(deadline) * 1e3 + float(by) * 1e3
        if length_us <= float(over_ms) * 1e3:
            continue
        near = [one for one in late if abs(one["wall_ns"] / 1e3 - end_us) < NEAR_US]
        if not near:
            print(f"not told: {length_us / 1e3:.3f} ms")
            continue
        ours = min(near, key=lambda one: abs(one["wall_ns"] / 1e3 - end_us))
        place = min(range(len(waits)), key=lambda at: abs(waits[at][0] - ours["origin_ns"]))
        if place + 1 == len(waits):
            continue
        due_ns, called_ns = waits[place][0], waits[place + 1][1]
        print(
            f"{length_us / 1e3:.3f} ms, ours {ours['latency_ns'] / 1e3 - length_us:+.1f} us: "
            f"its begin {(ours['origin_ns'] - due_ns) / 1e3:+.1f} us; from the program's last "
            f"look to its call {(called_ns - due_ns) / 1e3 - length_us:.1f} us; from there to "
            f"our end {(ours['end_ns'] - called_ns) / 1e3:.1f} us"
        )


main()
