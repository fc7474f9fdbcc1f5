# SPDX-License-Identifier: MIT OR Apache-2.0
"""Who made a task late in a trace: why_late.py TRACE [TASK ...]."""

import sys

import rtscope

answer = rtscope.open(sys.argv[1]).diagnose(sys.argv[2:])
for group in answer["groups"]:
    print(group["verdict"]["sentence"])
    for advice in group["verdict"]["advice"]:
        print("  do:", advice["command"])
