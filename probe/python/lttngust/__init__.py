# SPDX-License-Identifier: MIT OR Apache-2.0
"""In the place of LTTng's Python agent: a program that imports it has its log recorded.

While somebody records lttng_python:event, the root logger has a handler of ours and lets all levels
through, as LTTng's agent does it; before and behind that it is as the program left it. A thread
looks for recorders a few times a second. Without librtscope-agents.so there is a warning.
"""

import logging
import os
import threading
import time
import warnings

import rtscope_probe

_PERIOD_S = 0.2


class _Agent:
    def __init__(self):
        self._handler = rtscope_probe.Handler()
        self._root = logging.getLogger()
        # The root logger's own level, while ours is in force.
        self._level = None

    def look(self):
        is_on = self._handler.is_on()
        if is_on and self._level is None:
            self._level = self._root.level
            self._root.setLevel(logging.NOTSET)
            self._root.addHandler(self._handler)
        elif not is_on and self._level is not None:
            self._root.removeHandler(self._handler)
            # Unless the program has set another since.
            if self._root.level == logging.NOTSET:
                self._root.setLevel(self._level)
            self._level = None

    def _watch(self):
        while True:
            time.sleep(_PERIOD_S)
            self.look()

    def start(self):
        threading.Thread(target=self._watch, name="lttngust", daemon=True).start()


def _begin():
    try:
        agent = _Agent()
    except (OSError, AttributeError) as error:
        warnings.warn(f"nothing that is logged is recorded: {error}", RuntimeWarning, stacklevel=3)
        return
    agent.look()
    agent.start()
    # Threads do not come along into a child.
    os.register_at_fork(after_in_child=agent.start)


_begin()
