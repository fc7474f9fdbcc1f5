#!/usr/bin/env python3
"""Perfetto's own descriptors read what `rtscope convert --to perfetto` writes: counts per track
equal the trace's.

usage: perfetto_counts.py RTSCOPE TRACE…    with the `perfetto` package of PyPI; perfetto.sh installs it
"""

import collections
import json
import subprocess
import sys
import tempfile

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

BEGIN, END, INSTANT = 1, 2, 3
# Names of events that become ftrace events of Perfetto; LTTng's and the kernel's.
FTRACE = {
    "sched_switch": "sched_switch",
    "sched_waking": "sched_waking",
    "sched_wakeup": "sched_wakeup",
    "sched_wakeup_new": "sched_wakeup_new",
    "sched_migrate_task": "sched_migrate_task",
    "sched_pi_setprio": "sched_pi_setprio",
    "task_rename": "task_rename",
    "irq_handler_entry": "irq_handler_entry",
    "irq_handler_exit": "irq_handler_exit",
    "irq_softirq_raise": "softirq_raise",
    "irq_softirq_entry": "softirq_entry",
    "irq_softirq_exit": "softirq_exit",
    "softirq_raise": "softirq_raise",
    "softirq_entry": "softirq_entry",
    "softirq_exit": "softirq_exit",
}


def syscall(name):
    """The system call and which end of it an event is."""
    for prefix, end in (
        ("syscall_entry_", BEGIN),
        ("sys_enter_", BEGIN),
        ("syscall_exit_", END),
        ("sys_exit_", END),
    ):
        if name.startswith(prefix):
            return name[len(prefix):], end
    return None


def convert(rtscope, trace, form, output):
    done = subprocess.run(
        [rtscope, "convert", trace, "--to", form, "-o", output], stderr=subprocess.PIPE, text=True
    )
    # 3 says that the trace has losses, which are carried over.
    if done.returncode not in (0, 3):
        sys.exit(f"{trace}: {done.stderr}")


def expected(path):
    """Counts by CPU and event of the JSON lines, system calls by name, and losses."""
    ftrace, calls, others = (collections.Counter() for _ in range(3))
    losses, times = 0, []
    with open(path, encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            event = json.loads(line)
            if "lost" in event:
                losses += 1
                continue
            if "name" not in event:
                continue
            name, cpu = event["name"], event["cpu"]
            times.append(event["time_ns"])
            if name in FTRACE and cpu is not None:
                ftrace[cpu, FTRACE[name]] += 1
            elif syscall(name):
                calls[syscall(name)] += 1
            else:
                others[name] += 1
    return ftrace, calls, others, losses, times


def found(path):
    trace = proto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    ftrace, begins, points = (collections.Counter() for _ in range(3))
    open_calls, tracks, losses, times = collections.Counter(), {}, 0, []
    ends = 0
    for packet in trace.packet:
        assert not len(UnknownFieldSet(packet)), "a field that Perfetto does not know"
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks, "a track twice"
            assert not descriptor.parent_uuid or descriptor.parent_uuid in tracks
            tracks[descriptor.uuid] = descriptor
        for event in packet.ftrace_events.event:
            kind = event.WhichOneof("event")
            ftrace[packet.ftrace_events.cpu, kind] += 1
            times.append(event.timestamp)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks, "an event before its track"
        if "loss" in event.categories:
            losses += 1
            continue
        if event.type == BEGIN:
            begins[event.name] += 1
            open_calls[event.track_uuid] += 1
            assert tracks[event.track_uuid].HasField("thread")
        elif event.type == END:
            ends += 1
            open_calls[event.track_uuid] -= 1
        else:
            points[event.name] += 1
        assert open_calls[event.track_uuid] in (0, 1), "slices of system calls nest"
        times.append(packet.timestamp)
    return ftrace, begins, ends, points, losses, times


def check(rtscope, trace):
    with tempfile.TemporaryDirectory() as scratch:
        convert(rtscope, trace, "json", f"{scratch}/events.json")
        convert(rtscope, trace, "perfetto", f"{scratch}/trace.pftrace")
        ftrace, calls, others, losses, times = expected(f"{scratch}/events.json")
        got, begins, ends, points, got_losses, _ = found(f"{scratch}/trace.pftrace")
    assert got == ftrace, f"{trace}: by CPU and event {ftrace - got} {got - ftrace}"
    for name, count in others.items():
        assert points[name] == count, f"{trace}: {name}: {count}, then {points[name]}"
    entries = exits = 0
    for (name, end), count in calls.items():
        if end == BEGIN:
            # An entry whose thread nobody knew is a point.
            left = points[f"syscall_entry_{name}"] + points[f"sys_enter_{name}"]
            assert begins[name] + left == count, f"{trace}: {name}"
            entries += count
        else:
            exits += count
    assert ends <= entries, f"{trace}: {ends} ends of {entries} calls"
    assert got_losses == losses, f"{trace}: {losses} losses, then {got_losses}"
    total = sum(ftrace.values()) + sum(calls.values()) + sum(others.values())
    print(
        f"{trace}: {total} events: {sum(ftrace.values())} of scheduler and interrupts, "
        f"{entries} system calls, {sum(others.values())} others, {losses} losses"
    )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for trace_path in sys.argv[2:]:
        check(sys.argv[1], trace_path)
