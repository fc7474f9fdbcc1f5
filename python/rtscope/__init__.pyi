"""Open any Linux trace, iterate its events in time order, take them as tables, write a trace.

Times are nanoseconds on the trace's clock (`Trace.wall_ns` gives nanoseconds since 1970, UTC).
Filters are those of `rtscope cat --filter`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Optional, Union

_Path = Union[str, "os.PathLike[str]"]
_Cpus = Union[int, Sequence[int]]
_Key = Union[str, "BoundField"]
_Value = Union[int, float, str, bytes, Sequence[int], Sequence[float]]

class Error(Exception):
    """What failed, with the value that was found and the change that fixes it."""

    kind: str
    """One of `not_found`, `invalid_input`, `corrupt`, `unsupported`, `permission_denied`,
    `already_exists`, `storage_full`, `interrupted`, `io`."""
    what: str
    found: Optional[str]
    fix: Optional[str]

class LossWarning(UserWarning):
    """Events are missing, or bytes could not be read: results may be incomplete."""

class FilterWarning(UserWarning):
    """A filter names what the trace does not have."""

def open(
    path: Union[_Path, Sequence[_Path]],
    *,
    clock_offset_ns: int = 0,
    intersection: bool = False,
) -> Trace:
    """Opens a trace, or several as one on the clock of the first.

    `clock_offset_ns` is added to the wall clock; `intersection` keeps only the time in which all
    streams of a trace have packets.
    """

def create(
    path: _Path,
    *,
    environment: Optional[Mapping[str, object]] = None,
    wall_offset_ns: int = 0,
    format: Literal["ctf1", "ctf2"] = "ctf1",
) -> Writer:
    """Begins a trace that appears at `path` when it is finished, as CTF 1.8 or as CTF 2.

    `wall_offset_ns` is the wall clock, in nanoseconds since 1970 (UTC), at time 0.
    """

class Field:
    """A field of a class."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["unsigned", "signed", "bool", "float", "text", "other"]: ...
    @property
    def scope(
        self,
    ) -> Literal[
        "payload",
        "event_context",
        "event_header",
        "stream_context",
        "packet_context",
        "packet_header",
    ]: ...
    @property
    def labels(self) -> list[tuple[str, int, int]]:
        """Of an enumeration: label, first value, last value."""

class Class:
    """What all events of one kind share."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> list[Field]: ...

class BoundField:
    """A field looked up once, for `event[field]` in long loops."""

    @property
    def name(self) -> str: ...

class Event(Mapping[str, Any]):
    """One event: a mapping from the names of its fields to their values.

    Values are int (enumerations too, see `label`), float, bool, str, bytes, list, dict or None.
    An event may be kept: it does not change when the iterator goes on.
    """

    @property
    def name(self) -> str: ...
    @property
    def class_number(self) -> int: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def wall_ns(self) -> int: ...
    @property
    def cpu(self) -> Optional[int]: ...
    def __getitem__(self, key: _Key) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def get(self, key: _Key, default: Any = None) -> Any: ...
    def label(self, key: _Key) -> Optional[str]:
        """The first label of an enumeration's value."""

class Lost:
    """Events that the tracer knows it lost."""

    @property
    def cpu(self) -> Optional[int]: ...
    @property
    def begin_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def count(self) -> Optional[int]: ...
    @property
    def cause(self) -> Literal["discarded", "overrun", "unknown"]: ...

class Damage:
    """Bytes that could not be understood."""

    @property
    def file(self) -> str: ...
    @property
    def offset_bytes(self) -> int: ...
    @property
    def reason(self) -> str: ...

class _Passed:
    @property
    def lost_events(self) -> int:
        """How many events the tracer counted as lost, in what was passed so far."""
    @property
    def lost_count(self) -> int:
        """In how many places."""
    @property
    def damage_count(self) -> int:
        """How often bytes could not be understood."""

class Events(_Passed, Iterator[Event]):
    """Events in the order of time; `LossWarning` at the end when some are missing."""

    def __next__(self) -> Event: ...
    def seek(self, time_ns: int) -> Events:
        """Goes on, forward or back, with the first selected event at or after `time_ns`."""
    @property
    def losses(self) -> list[Lost]:
        """The first hundred."""
    @property
    def damages(self) -> list[Damage]:
        """The first hundred."""

class Items(_Passed, Iterator[Union[Event, Lost, Damage]]):
    """Events, losses and damage in the order of time."""

    def __next__(self) -> Union[Event, Lost, Damage]: ...
    def seek(self, time_ns: int) -> Items: ...
    @property
    def losses(self) -> list[Lost]: ...
    @property
    def damages(self) -> list[Damage]: ...

class Batches(_Passed):
    """A table in batches, for pyarrow, pandas, polars, DuckDB and all that take Arrow's PyCapsules.

    >>> pyarrow.table(trace.batches())
    >>> polars.DataFrame(trace.batches())
    """

    @property
    def columns(self) -> list[str]: ...
    @property
    def rows(self) -> int:
        """How many were handed out so far."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def to_arrow(self) -> Any:
        """The rest as a pyarrow.Table; `LossWarning` when events are missing."""
    def to_pandas(self) -> Any:
        """The rest as a pandas.DataFrame."""

class Selection:
    """The events of a trace that match."""

    def filter(self, filter: str) -> Selection: ...
    def events(
        self,
        *,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Events: ...
    def items(
        self,
        *,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Items: ...
    def batches(
        self,
        columns: Optional[Sequence[str]] = None,
        *,
        rows: int = 0,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Batches: ...
    def __iter__(self) -> Events: ...

class Trace:
    """An open trace. Iterating it gives its events."""

    @property
    def begin_ns(self) -> Optional[int]:
        """The first packet's begin; None when nobody says."""
    @property
    def end_ns(self) -> Optional[int]:
        """The last packet's end."""
    @property
    def environment(self) -> dict[str, str]: ...
    @property
    def cpus(self) -> list[int]: ...
    @property
    def classes(self) -> list[Class]: ...
    def wall_ns(self, time_ns: int) -> int:
        """An instant as nanoseconds since 1970 (UTC)."""
    def diagnose(
        self,
        tasks: Optional[Sequence[str]] = None,
        *,
        over_ns: Optional[int] = None,
        until: Literal["block", "switch-in"] = "block",
        worst: int = 10,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
    ) -> dict[str, Any]:
        """Who made tasks late: what `rtscope diagnose --json` says, schema `rtscope.diagnosis`.

        Without tasks: the trace's own hits, else all real-time tasks. `worst=0` is all of them.
        """
    def bind(self, name: str) -> BoundField: ...
    def filter(self, filter: str) -> Selection: ...
    def events(
        self,
        filter: Optional[str] = None,
        *,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Events:
        """Events in the order of time, in `[begin_ns, end_ns)`, of these CPUs."""
    def items(
        self,
        filter: Optional[str] = None,
        *,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Items:
        """Events, losses and damage; losses whatever was selected."""
    def batches(
        self,
        columns: Optional[Sequence[str]] = None,
        *,
        filter: Optional[str] = None,
        rows: int = 0,
        begin_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        cpu: Optional[_Cpus] = None,
    ) -> Batches:
        """A table of the named columns: `time_ns`, `wall_time`, `cpu`, `event` and fields by name
        (a field of one of these names has a `_` behind it); by default `time_ns`, `cpu`, `event`
        and all fields of the events that the filter can want. `rows` bounds a batch."""
    def __iter__(self) -> Events: ...

class Writer:
    """Writes a trace; as a context manager it finishes it, or removes it after an exception."""

    def add_stream(self, name: str) -> int: ...
    def add_class(
        self, stream: int, name: str, fields: Optional[Mapping[str, str]] = None
    ) -> int:
        """Types: u8 to u64, i8 to i64, x8 to x64 (hexadecimal), f32, f64, string, any number with
        [] behind it, and labels: `u8{LOW=0..9,HIGH=10}`."""
    def add_field(self, class_number: int, name: str, type: str) -> int: ...
    def write(
        self,
        class_number: int,
        time_ns: int,
        fields: Optional[Mapping[str, _Value]] = None,
        *,
        cpu: int = 0,
    ) -> None:
        """Writes an event; fields that are not given are zero, or empty. On one stream and CPU
        time must not go backwards."""
    def discarded(self, stream: int, total: int, *, cpu: int = 0) -> None:
        """How many events were lost so far, all together: before the next event."""
    def finish(self) -> "os.PathLike[str]": ...
    def __enter__(self) -> Writer: ...
    def __exit__(self, *exception: object) -> Literal[False]: ...
