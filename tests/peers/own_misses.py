#!/usr/bin/env python3
"""The misses that a program prints itself, beside what rtscope says of them: `watch` in both modes,
`record` and `diagnose`, `check`. Not a test: on a busy machine others are late, too.

usage: own_misses.py RTSCOPE TASK OVER_MS COMMAND...      (as root)

COMMAND prints for each miss a line like "[1795466120.878161] missed the 1 ms deadline by 4.660 ms
(woke 5.510 ms late)", whose deadline is what an activation may take; or one like "29264.840746 XRUN
1", by CLOCK_MONOTONIC, as a client of JACK may: that one is told while the late activation goes on,
or by the next cycle. Or it prints "max 61.645 ms" at its end, as a client of a server may.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

MISS = re.compile(
    r"\[(\d+)\.(\d{6})\].*missed the (\d+) ms deadline by ([\d.]+) ms \(woke ([\d.]+) ms late"
)
# The line is printed behind the end that it tells of, and its activation ends behind the line.
NEAR_US = 2_000
XRUN = re.compile(r"^(\d+\.\d+) XRUN \d+", re.MULTILINE)
# Two cycles of 256 frames at 48 kHz: whoever is late is noticed in the next one.
XRUN_US = 10_700
LONGEST = re.compile(r"max ([\d.]+) ms")


def printed(text, over_us):
    """When each miss over the limit ended, how long it was, and for how long it waited, in us."""
    found = []
    for second, micros, deadline, by, woke in MISS.findall(text):
        length_us = int(deadline) * 1_000 + float(by) * 1_000
        if length_us > over_us:
            end_us = int(second) * 1_000_000 + int(micros)
            found.append((end_us, length_us, float(woke) * 1_000))
    return found


def compare(name, misses, late):
    """Each of the program's misses belongs to one of ours at most."""
    left, longer, causes = list(late), [], Counter()
    for end_us, length_us, _ in misses:
        near = [one for one in left if abs(one[0] - end_us) < NEAR_US]
        if near:
            one = min(near, key=lambda one: abs(one[0] - end_us))
            left.remove(one)
            longer.append(one[1] - length_us)
            causes[one[2]] += 1
    longer.sort()
    by = ""
    if longer:
        by = f"; by {longer[0]:.0f} to {longer[-1]:.0f} us longer, {longer[len(longer) // 2]:.0f}"
    print(f"  {name}: {len(longer)} of {len(misses)}, {len(left)} more{by}")
    for cause, count in causes.most_common():
        print(f"    {count:3}  {cause}")
    for end_us, length_us, woke_us in misses:
        if all(abs(one[0] - end_us) >= NEAR_US for one in late):
            print(f"    not told: {length_us / 1e3:.3f} ms, woke {woke_us / 1e3:.3f} ms late")


def compare_xruns(name, xruns, late, wall_us):
    """An xrun falls into a late activation, or comes soon after it; several may be of one."""
    spans = [(end - length - wall_us, end - wall_us, cause) for end, length, cause in late]
    told, causes, left = 0, Counter(), []
    for at_us in xruns:
        his = [one for one in spans if one[0] <= at_us <= one[1] + XRUN_US]
        told += bool(his)
        if his:
            causes[max(his, key=lambda one: one[1] - one[0])[2]] += 1
        else:
            left.append(at_us)
    silent = sum(
        all(not begin <= at_us <= end + XRUN_US for at_us in xruns) for begin, end, _ in spans
    )
    print(f"  {name}: {told} of {len(xruns)} xruns, {silent} late without one")
    for cause, count in causes.most_common():
        print(f"    {count:3}  {cause}")
    for at_us in left:
        print(f"    not told: {at_us / 1e6:.6f}")


def compare_longest(name, text, late):
    """A client's longest wait holds its server's longest activation."""
    longest = max(float(found) for found in LONGEST.findall(text))
    ours = max((length for _, length, _ in late), default=0.0) / 1e3
    print(f"  {name}: the client's longest {longest:.3f} ms, ours {ours:.3f} ms, {len(late)} told")
    for cause, count in Counter(cause for _, _, cause in late).most_common():
        print(f"    {count:3}  {cause}")


def compare_as_printed(name, text, late, over_us):
    """By whichever lines the program prints."""
    if LONGEST.search(text):
        compare_longest(name, text, late)
    elif XRUN.search(text):
        wall_us = (time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()) / 1e3
        compare_xruns(name, [float(at) * 1e6 for at in XRUN.findall(text)], late, wall_us)
    else:
        compare(name, printed(text, over_us), late)


def watched(rtscope, task, over_ms, command, options, folder):
    """What the program printed under a watch, and what that wrote down."""
    words = [rtscope, "watch", "--task", task, "--over", f"{over_ms}ms", "--rate", "1000/s"]
    words += ["-o", str(folder), *options]
    said = folder.parent / f"{folder.name}.err"
    with open(said, "w") as err:
        watch = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=err)
    while "watching" not in said.read_text():
        time.sleep(0.05)
    program = subprocess.run(command, capture_output=True, text=True, check=False)
    watch.send_signal(signal.SIGINT)
    code = watch.wait()
    late, file = [], folder / "late.ndjson"
    for line in file.read_text().splitlines() if file.exists() else []:
        one = json.loads(line)
        cause = one["cause"] if one["exact"] else f"({one['cause']})"
        late.append((one["wall_ns"] / 1e3, one["latency_ns"] / 1e3, cause))
    return program.stdout + program.stderr, late, code


def diagnosed(rtscope, task, over_ms, trace):
    """What `diagnose` says of a recording; its ends are of the trace's clock."""
    asked = [rtscope, "diagnose", trace, "--task", task, "--over", f"{over_ms}ms", "--json"]
    run = subprocess.run([*asked, "--worst", "1000"], capture_output=True, text=True, check=False)
    found = json.loads(run.stdout)
    signature = {}
    for group in found["groups"]:
        sure = group["verdict"]["conclusive"]
        for place in group["members"]:
            signature[place] = group["signature"] if sure else f"({group['signature']})"
    wall_us = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    ends = enumerate(found["activations"])
    late = [
        ((one["end_ns"] + wall_us) / 1e3, one["latency_ns"] / 1e3, signature.get(place, "?"))
        for place, one in ends
    ]
    return late, run.returncode


def main():
    rtscope, task, over_ms, *command = sys.argv[1:]
    over_us = float(over_ms) * 1_000
    with tempfile.TemporaryDirectory() as scratch:
        for name, options in (("watch", []), ("watch --until switch-in", ["--until", "switch-in"])):
            folder = Path(scratch) / name.replace(" ", "")
            text, late, code = watched(rtscope, task, over_ms, command, options, folder)
            misses = printed(text, over_us)
            if options and misses:
                # A wait ends where the work behind it begins.
                waits = [(end - all_of_it + woke, woke) for end, all_of_it, woke in misses]
                misses = [(end, woke, woke) for end, woke in waits if woke > over_us]
                compare(f"{name} ({code})", misses, late)
            else:
                compare_as_printed(f"{name} ({code})", text, late, over_us)
        trace = str(Path(scratch) / "trace")
        run = subprocess.run(
            [rtscope, "record", "-o", trace, "--", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        late, code = diagnosed(rtscope, task, over_ms, trace)
        compare_as_printed(f"record, diagnose ({code})", run.stdout + run.stderr, late, over_us)
        asked = [rtscope, "check", trace, "--task", task, "--over", f"{over_ms}ms"]
        check = subprocess.run(asked, capture_output=True, text=True, check=False)
        words = " ".join(check.stdout.split("\n")[:2])
        print(f"  check ({check.returncode}): {' '.join(words.split())}")


main()
