# SPDX-License-Identifier: MIT OR Apache-2.0
"""A handler that gives Python's log lines to rtscope: the event lttng_python:event.

    import logging, rtscope_probe
    logging.getLogger().addHandler(rtscope_probe.Handler())

`import lttngust`, beside this file, does it for programs that were written for LTTng.

Needs librtscope-agents.so, which `make -C probe` builds: named by RTSCOPE_AGENTS, two folders above
this file, as `make install` puts it, or where the linker finds it. Without it there is an OSError
when the handler is made, and none later.
"""

import ctypes
import logging
import os

_NAME = "librtscope-agents.so"


def _library():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", _NAME)
    found = os.environ.get("RTSCOPE_AGENTS")
    library = ctypes.CDLL(found or (beside if os.path.exists(beside) else _NAME))
    text, number = ctypes.c_char_p, ctypes.c_uint32
    library.rtscope_agent_python_line.argtypes = [
        text, text, text, number, number, ctypes.c_uint64, text, text]
    library.rtscope_agent_python_line.restype = None
    library.rtscope_agent_python_is_on.argtypes = []
    library.rtscope_agent_python_is_on.restype = ctypes.c_int
    return library


def _bytes(value):
    return str(value or "").encode("utf-8", "replace")


class Handler(logging.Handler):
    """Records every line that reaches it, while somebody records lttng_python:event."""

    def __init__(self, level=logging.NOTSET):
        super().__init__(level)
        library = _library()
        self._record = library.rtscope_agent_python_line
        self._is_on = library.rtscope_agent_python_is_on
        self._times = logging.Formatter("%(asctime)s")

    def is_on(self):
        """Whether somebody records the event."""
        return self._is_on() != 0

    def emit(self, record):
        try:
            if not self.is_on():
                return
            self._record(
                _bytes(self._times.formatTime(record)),
                _bytes(record.name),
                _bytes(record.funcName),
                record.lineno or 0,
                record.levelno,
                record.thread or 0,
                _bytes(record.threadName),
                _bytes(record.getMessage()),
            )
        except Exception:  # as logging wants it of handlers: a bad line ends no program
            self.handleError(record)
