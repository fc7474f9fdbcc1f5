# SPDX-License-Identifier: MIT OR Apache-2.0
"""Asks a running 'rtscope view' for the worst latencies of threads, and why each was late.

usage: view_worst.py URL [THREAD], the URL as 'rtscope view TRACE' printed it

docs/format/view-answers.md has the keys of all answers.
"""

import json
import sys
import time
import urllib.parse
import urllib.request


class View:
    """The API of one page."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.base = f"{parts.scheme}://{parts.netloc}/api/v1/"
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]

    def ask(self, name, **words):
        request = urllib.request.Request(f"{self.base}{name}?{urllib.parse.urlencode(words)}")
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def wait(self):
        """What is known of the trace, once its index is whole."""
        while True:
            info = self.ask("info")
            if info["version"] != 1:
                sys.exit(f"version {info['version']} of the API is not known to this script")
            if info["progress"]["error"]:
                sys.exit(info["progress"]["error"])
            if info["progress"]["done"]:
                return info
            time.sleep(0.2)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    view, thread = View(sys.argv[1]), "".join(sys.argv[2:3])
    info = view.wait()
    print(f"{info['name']}: {info['events']} events, {info['losses']} losses")
    for late in view.ask("latencies", of="wakeup", search=thread, worst=3)["worst"]:
        who, at = late["facts"], late["end_ns"] / 1e9
        print(f"{who['name']} ({who['tid']}) waited {late['latency_ns'] / 1e3:.3f} us until +{at:.6f} s")
        ledger = view.ask("ledger", task=late["task"], end=late["end_ns"])
        for group in ledger["groups"]:
            print(f"  {group['verdict']['sentence']}")


main()
