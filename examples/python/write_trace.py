# SPDX-License-Identifier: MIT OR Apache-2.0
"""Turns lines "TIME_NS NAME VALUE" into a trace. usage: write_trace.py NEW-DIRECTORY < LINES"""

import sys

import rtscope


def main(path: str) -> None:
    lines = [line.split() for line in sys.stdin]
    with rtscope.create(path, environment={"hostname": "example"}) as writer:
        stream = writer.add_stream("values")
        names = sorted({name for _, name, _ in lines})
        classes = {name: writer.add_class(stream, name, {"value": "f64"}) for name in names}
        for time_ns, name, value in lines:
            writer.write(classes[name], int(time_ns), {"value": float(value)})


if __name__ == "__main__":
    main(*sys.argv[1:])
