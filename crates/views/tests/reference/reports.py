"""What the reports must find, worked out slowly from their definitions.

Reads events from stdin, a JSON array per line: [time_ns, cpu, name, fields]. Prints one JSON object.
Everything is searched anew for each answer; nothing is followed from event to event.
"""

import json
import sys

EVENTS = [json.loads(line) for line in sys.stdin]
END = EVENTS[-1][0]
BEGIN = EVENTS[0][0]


def current(cpu, before):
    """The task on a CPU just before the event at place `before`; 0 is idle or unknown."""
    for time, at, name, fields in reversed(EVENTS[:before]):
        if name == "sched_switch" and at == cpu:
            return fields["next_tid"]
    return 0


def cpus():
    return sorted({cpu for _, cpu, _, _ in EVENTS})


def runs(place, tid):
    """Whether a task is on any CPU just before an event."""
    return any(current(cpu, place) == tid for cpu in cpus())


def shares():
    """Nanoseconds on a CPU by task: from each switch to the next one of its CPU, or to the end."""
    sums = {}
    for place, (time, cpu, name, fields) in enumerate(EVENTS):
        if name != "sched_switch" or fields["next_tid"] == 0:
            continue
        later = [e[0] for e in EVENTS[place + 1:] if e[1] == cpu and e[2] == "sched_switch"]
        tid = fields["next_tid"]
        sums[tid] = sums.get(tid, 0) + (later[0] if later else END) - time
    return sorted(sums.items())


def waits():
    """[woken, switched, task, waker] of each switch to a task that was woken since its last one."""
    found = []
    for place, (time, _, name, fields) in enumerate(EVENTS):
        if name != "sched_switch" or fields["next_tid"] == 0:
            continue
        tid = fields["next_tid"]
        first = 0
        for earlier in range(place - 1, -1, -1):
            event = EVENTS[earlier]
            if event[2] == "sched_switch" and event[3]["next_tid"] == tid:
                first = earlier + 1
                break
        for earlier in range(first, place):
            woken, cpu, name, fields = EVENTS[earlier]
            if name == "sched_waking" and fields["tid"] == tid and not runs(earlier, tid):
                found.append([woken, time, tid, current(cpu, earlier)])
                break
    return found


def interrupts():
    """[begin, end, cpu, number] of each handler that ended before another one began on its CPU."""
    found = []
    for place, (time, cpu, name, fields) in enumerate(EVENTS):
        if name != "irq_handler_exit":
            continue
        of_cpu = [e for e in EVENTS[:place] if e[1] == cpu and e[2].startswith("irq_handler_")]
        if of_cpu and of_cpu[-1][2] == "irq_handler_entry" and of_cpu[-1][3]["irq"] == fields["irq"]:
            found.append([of_cpu[-1][0], time, cpu, fields["irq"]])
    return found


def softirqs():
    """[raised or null, begin, end, cpu, vector]: raised at the first raise since the entry before."""
    found = []
    for place, (time, cpu, name, fields) in enumerate(EVENTS):
        if name != "irq_softirq_exit":
            continue
        vec = fields["vec"]
        same = [
            e for e in EVENTS[:place]
            if e[1] == cpu and e[2].startswith("irq_softirq_") and e[3]["vec"] == vec
        ]
        steps = [n for n, e in enumerate(same) if e[2] != "irq_softirq_raise"]
        if not steps or same[steps[-1]][2] != "irq_softirq_entry":
            continue
        entry = steps[-1]
        before = [n for n in range(entry) if same[n][2] == "irq_softirq_entry"]
        since = before[-1] + 1 if before else 0
        raises = [e[0] for e in same[since:entry] if e[2] == "irq_softirq_raise"]
        found.append([raises[0] if raises else None, same[entry][0], time, cpu, vec])
    return found


def calls():
    """[task, call, duration, failed] of each return to a task that was in a call."""
    found = []
    for place, (time, cpu, name, fields) in enumerate(EVENTS):
        if not name.startswith("syscall_exit_"):
            continue
        tid = current(cpu, place)
        if tid == 0:
            continue
        own = [
            e for n, e in enumerate(EVENTS[:place])
            if e[2].startswith("syscall_") and current(e[1], n) == tid
        ]
        if own and own[-1][2].startswith("syscall_entry_"):
            call = own[-1][2][len("syscall_entry_"):]
            found.append([tid, call, time - own[-1][0], fields["ret"] < 0])
    return sorted(found)


def next_step(place, tid):
    """When a task that is on no CPU is woken or switched to next."""
    for time, _, name, fields in EVENTS[place + 1:]:
        key = {"sched_switch": "next_tid", "sched_waking": "tid"}.get(name)
        if key is not None and fields[key] == tid:
            return time
    return None


def summed(stretches):
    """Count and sum of durations by task."""
    sums = {}
    for tid, begin, end in stretches:
        count, total = sums.get(tid, (0, 0))
        sums[tid] = (count + 1, total + end - begin)
    return sorted([tid, *sums[tid]] for tid in sums)


def blocked():
    """From a switch away from a task that is not runnable to its wake-up, or else its switch-in."""
    for place, (time, _, name, fields) in enumerate(EVENTS):
        if name == "sched_switch" and fields["prev_tid"] != 0 and fields["prev_state"] == 1:
            end = next_step(place, fields["prev_tid"])
            if end is not None:
                yield fields["prev_tid"], time, end


def waiting():
    """From a wake-up, or a switch away from a runnable task, to the next switch to it."""
    for place, (time, _, name, fields) in enumerate(EVENTS):
        if name == "sched_switch" and fields["next_tid"] != 0:
            tid, since = fields["next_tid"], None
            for earlier in range(place - 1, -1, -1):
                begin, _, name, fields = EVENTS[earlier]
                if name == "sched_waking" and fields["tid"] == tid and not runs(earlier, tid):
                    since = begin
                if name == "sched_switch" and fields["prev_tid"] == tid:
                    since = begin if fields["prev_state"] == 0 else since
                    break
            if since is not None:
                yield tid, since, time


def periods():
    """[number, cpu, count, mean time between begins] of interrupts, where there are two."""
    begins = {}
    for begin, _, cpu, irq in interrupts():
        begins.setdefault((irq, cpu), []).append(begin)
    return sorted(
        [irq, cpu, len(all_of), (all_of[-1] - all_of[0]) / (len(all_of) - 1)]
        for (irq, cpu), all_of in begins.items() if len(all_of) > 1
    )


print(json.dumps({
    "blocked": summed(blocked()),
    "waiting": summed(waiting()),
    "periods": periods(),
    "shares": shares(),
    "waits": waits(),
    "interrupts": interrupts(),
    "softirqs": softirqs(),
    "calls": calls(),
}))
