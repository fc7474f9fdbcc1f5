# SPDX-License-Identifier: MIT OR Apache-2.0
"""Walks over a trace in one way and prints how many events it saw, the seconds and the seconds of CPU time.
usage: walk.py rtscope-batches|rtscope-events|bt2-events|bt2-fields|bt2-values TRACE"""

import ctypes
import sys
import time
import warnings


class Array(ctypes.Structure):
    """The beginning of Arrow's struct ArrowArray, and room for the rest."""

    _fields_ = [
        ("length", ctypes.c_int64),
        ("counts", ctypes.c_int64 * 4),
        ("pointers", ctypes.c_void_p * 3),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


class Stream(ctypes.Structure):
    """Arrow's struct ArrowArrayStream."""

    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


def rtscope_batches(path: str) -> int:
    """Every field of every event, in columns."""
    import rtscope

    capsule = rtscope.open(path).batches().__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"arrow_array_stream")
    stream = Stream.from_address(address)
    rows = 0
    while True:
        batch = Array()
        if stream.get_next(address, ctypes.addressof(batch)) != 0:
            raise RuntimeError("the stream failed")
        if not batch.release:
            return rows
        rows += batch.length
        batch.release(ctypes.addressof(batch))


def rtscope_events(path: str) -> int:
    """Every event, and every field of it as an object."""
    import rtscope

    events = 0
    for event in rtscope.open(path):
        event.values()
        events += 1
    return events


def bt2_events(path: str) -> int:
    """Every event; no field is looked at."""
    import bt2

    events = 0
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._EventMessageConst:
            events += 1
    return events


def bt2_fields(path: str) -> int:
    """Every event, and every field of its payload as an object."""
    import bt2

    events = 0
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._EventMessageConst:
            list(message.event.payload_field.values())
            events += 1
    return events


def bt2_values(path: str) -> int:
    """Every event, and the value of every field of its payload, as a table holds them."""
    import bt2

    def plain(field):
        if isinstance(field, bt2._IntegerFieldConst):
            return int(field)
        if isinstance(field, bt2._StringFieldConst):
            return str(field)
        return field

    events = 0
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._EventMessageConst:
            for field in message.event.payload_field.values():
                plain(field)
            events += 1
    return events


WAYS = {
    "rtscope-batches": rtscope_batches,
    "rtscope-events": rtscope_events,
    "bt2-events": bt2_events,
    "bt2-fields": bt2_fields,
    "bt2-values": bt2_values,
}


def main(way: str, path: str) -> None:
    warnings.simplefilter("ignore")
    begin, cpu = time.perf_counter(), time.process_time()
    events = WAYS[way](path)
    print(events, time.perf_counter() - begin, time.process_time() - cpu)


if __name__ == "__main__":
    main(*sys.argv[1:])
