#!/usr/bin/env python3
"""Perfetto's trace_processor and `rtscope view` on the same trace: time until the first answer, memory.

usage: trace_processor_beside.py RTSCOPE TRACE…    with the `perfetto` package of PyPI; trace_processor.sh installs it
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig


def peak_mb(pid):
    """The most memory that a process had so far."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        peak = next(line for line in status if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def ours(rtscope, trace):
    """Opens a trace from nothing until the index is whole; switches, seconds, memory."""
    begun = time.monotonic()
    server = subprocess.Popen(
        [rtscope, "view", "--no-cache", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        url = urllib.parse.urlsplit(server.stdout.readline().strip())
        token = urllib.parse.parse_qs(url.query)["token"][0]

        def ask(name, **words):
            words = urllib.parse.urlencode({"token": token, **words})
            with urllib.request.urlopen(f"http://{url.netloc}/api/v1/{name}?{words}") as answer:
                return json.load(answer)

        while not ask("info")["progress"]["done"]:
            time.sleep(0.02)
        took = time.monotonic() - begun
        switches = ask("marks", filter='$name == "sched_switch"', columns=1)["total"]
        return switches, took, peak_mb(server.pid)
    finally:
        server.kill()
        server.wait()


def theirs(program, path):
    """Loads the same events until the first answer; switches, seconds, memory."""
    begun = time.monotonic()
    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=program)) as processor:
        # A sched slice begins at each switch; those that idle are among them.
        found = next(iter(processor.query("select count(*) as count from sched")))
        took = time.monotonic() - begun
        return found.count, took, peak_mb(processor.subprocess.pid)


def program():
    """The trace_processor that is there already, or the one that the package downloads; or why none."""
    named = os.environ.get("TRACE_PROCESSOR")
    if named:
        return named
    try:
        with TraceProcessor(trace=None) as processor:
            next(iter(processor.query("select 1 as one")))
        return None
    except Exception as error:  # Whatever stands in the way is told, and nothing is measured.
        code = getattr(error, "returncode", None)
        why = f"curl ended with {code}" if code else f"{type(error).__name__}: {str(error)[:80]}"
        print(f"skipped: trace_processor beside rtscope view: it cannot be downloaded ({why})")
        sys.exit(0)


def main():
    rtscope, traces = sys.argv[1], sys.argv[2:]
    peer = program()
    print("| trace | | switches | first answer, s | memory, MB |\n|---|---|---|---|---|")
    for trace in traces:
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "trace.pftrace")
            done = subprocess.run(
                [rtscope, "convert", trace, "--to", "perfetto", "-o", path], stderr=subprocess.PIPE, text=True
            )
            # 3 says that the trace has losses, which are carried over.
            if done.returncode not in (0, 3):
                sys.exit(f"{trace}: {done.stderr}")
            for name, found in (
                ("rtscope view", ours(rtscope, trace)),
                ("trace_processor", theirs(peer, path)),
            ):
                print(f"| {trace} | {name} | {found[0]} | {found[1]:.2f} | {found[2]:.0f} |")


main()
