# SPDX-License-Identifier: MIT OR Apache-2.0
"""A handler that gives Python's log lines to rtscope: the event lttng_python:event.

    import logging, rtscope_probe
    logging.getLogger().addHandler(rtscope_probe.Handler())

Needs librtscope-agents.so, which `make -C probe` builds: where the linker finds it, or named by
RTSCOPE_AGENTS. Without it there is an OSError when the handler is made, and none later.
"""

import ctypes
import logging
import os


def _library():
    library = ctypes.CDLL(os.environ.get("RTSCOPE_AGENTS", "librtscope-agents.so"))
    text, number = ctypes.c_char_p, ctypes.c_uint32
    library.rtscope_agent_python.argtypes = [
        text, text, text, number, number, ctypes.c_uint64, text]
    library.rtscope_agent_python.restype = None
    return library


def _bytes(value):
    return str(value or "").encode("utf-8", "replace")


class Handler(logging.Handler):
    """Records every line that reaches it, while somebody records lttng_python:event."""

    def __init__(self, level=logging.NOTSET):
        super().__init__(level)
        self._record = _library().rtscope_agent_python

    def emit(self, record):
        try:
            self._record(
                _bytes(record.getMessage()),
                _bytes(record.name),
                _bytes(record.funcName),
                record.lineno or 0,
                record.levelno,
                record.thread or 0,
                _bytes(record.threadName),
            )
        except Exception:  # as logging wants it of handlers: a bad line ends no program
            self.handleError(record)
