"""Open any Linux trace, iterate its events in time order, take them as tables, write a trace.

>>> import rtscope
>>> trace = rtscope.open("trace")
>>> for event in trace.filter('next_comm == "jackd"'):
...     print(event.time_ns, event.cpu, event["next_prio"])
>>> frame = trace.batches(["time_ns", "cpu", "next_tid"]).to_pandas()
"""

from collections.abc import Mapping as _Mapping

from ._native import (
    Batches,
    BoundField,
    Class,
    Damage,
    Error,
    Event,
    Field,
    FilterWarning,
    Items,
    Lost,
    LossWarning,
    Selection,
    Trace,
    Writer,
    create,
    open,
)

# What `Trace.events` returns: items of one kind.
Events = Items
_Mapping.register(Event)

__all__ = [
    "Batches",
    "BoundField",
    "Class",
    "Damage",
    "Error",
    "Event",
    "Events",
    "Field",
    "FilterWarning",
    "Items",
    "Lost",
    "LossWarning",
    "Selection",
    "Trace",
    "Writer",
    "create",
    "open",
]
