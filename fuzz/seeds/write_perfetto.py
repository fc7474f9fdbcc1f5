"""Writes perfetto.pftrace and perfetto-compressed.pftrace with Perfetto's own Python package.

pip install perfetto; python3 write_perfetto.py FOLDER
"""

import sys
import zlib

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BOOT_NS, REAL_NS = 5_000_000_000, 1_795_165_638_000_000_000


def bundle(trace, cpu):
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = 1
    packet.ftrace_events.cpu = cpu
    return packet.ftrace_events


def event(events, us, pid):
    found = events.event.add()
    found.timestamp = BOOT_NS + us * 1000
    found.pid = pid
    return found


def written():
    trace = pb.Trace()
    clocks = trace.packet.add().clock_snapshot.clocks
    for clock_id, ns in [(6, BOOT_NS), (3, BOOT_NS - 7), (1, REAL_NS)]:
        clock = clocks.add()
        clock.clock_id, clock.timestamp = clock_id, ns
    name = trace.packet.add().system_info.utsname
    name.sysname, name.release, name.machine = "Linux", "6.6.1-example", "x86_64"
    thread = trace.packet.add().process_tree.threads.add()
    thread.tid, thread.name, thread.tgid = 700, "hog", 700

    # CPU 1, events by themselves: hog runs, an interrupt wakes ctrl, which waits for 9 ms.
    one = bundle(trace, 1)
    switch = event(one, 10, 0).sched_switch
    switch.prev_comm, switch.prev_pid, switch.prev_prio, switch.prev_state = "swapper/1", 0, 120, 0
    switch.next_comm, switch.next_pid, switch.next_prio = "hog", 700, 39
    entry = event(one, 1000, 700).irq_handler_entry
    entry.irq, entry.name = 24, "snd"
    waking = event(one, 1002, 700).sched_waking
    waking.comm, waking.pid, waking.prio, waking.target_cpu = "ctrl", 600, 49, 1
    leave = event(one, 1005, 700).irq_handler_exit
    leave.irq, leave.ret = 24, 1
    generic = event(one, 2000, 700).generic
    generic.event_name = "own_mark"
    for key, number in [("depth", 3), ("change", -4)]:
        field = generic.field.add()
        field.name = key
        if number < 0:
            field.int_value = number
        else:
            field.uint_value = number
    one = bundle(trace, 1)
    switch = event(one, 10_002, 700).sched_switch
    switch.prev_comm, switch.prev_pid, switch.prev_prio, switch.prev_state = "hog", 700, 39, 1
    switch.next_comm, switch.next_pid, switch.next_prio = "ctrl", 600, 49
    switch = event(one, 10_500, 600).sched_switch
    switch.prev_comm, switch.prev_pid, switch.prev_prio, switch.prev_state = "ctrl", 600, 49, 1
    switch.next_comm, switch.next_pid, switch.next_prio = "swapper/1", 0, 120

    # CPU 0, compact: two switches, a wake-up between them.
    compact = bundle(trace, 0).compact_sched
    compact.intern_table.extend(["swapper/0", "player"])
    compact.switch_timestamp.extend([BOOT_NS + 20_000, 300_000, 200_000])
    compact.switch_prev_state.extend([1, 0, 1])
    compact.switch_next_pid.extend([0, 500, 0])
    compact.switch_next_prio.extend([120, 19, 120])
    compact.switch_next_comm_index.extend([0, 1, 0])
    compact.waking_timestamp.extend([BOOT_NS + 250_000])
    compact.waking_pid.extend([500])
    compact.waking_target_cpu.extend([0])
    compact.waking_prio.extend([19])
    compact.waking_comm_index.extend([1])
    compact.waking_common_flags.extend([9])
    lost = bundle(trace, 0)
    lost.lost_events = True
    mark = event(lost, 9000, 0)
    mark.cpu_idle.state, mark.cpu_idle.cpu_id = 1, 0
    return trace.SerializeToString()


def main():
    folder, trace = sys.argv[1], written()
    with open(f"{folder}/perfetto.pftrace", "wb") as file:
        file.write(trace)
    packed = pb.Trace()
    packed.packet.add().compressed_packets = zlib.compress(trace)
    with open(f"{folder}/perfetto-compressed.pftrace", "wb") as file:
        file.write(packed.SerializeToString())


main()
