#!/usr/bin/env python3
"""Two network namespaces as two hosts: a session streams from one to the other, and the link is cut
for a while. Every event is in the trace there, once, or counted as lost in it, exactly; babeltrace2
reads it, also while it comes in. How long after an event a live reader prints it is told.

Needs root. Prints "skipped: why" and succeeds where it cannot be tried.

The events are an application's, and a few of the kernel's beside them; with "kernel" all are the kernel's.

usage: two_hosts.py RTSCOPE [SECONDS CUT_SECONDS [kernel]]    600 and 30 when nothing is said
"""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROBE = Path(__file__).resolve().parent.parent.parent / "probe"
# The smallest. Three times as much comes in meanwhile: some has to be lost in the cut.
SPOOL_BYTES = 4 << 20
TEXT_BYTES = 400
# What one event of a signal takes in the trace, about.
SIGNAL_BYTES = 50
# After the cut, until the other host has what waited.
SETTLED_S = 20

# Numbers are given when the event is recorded, so there are as many as were asked for.
STEPS = r"""
#include <rtscope/event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile sig_atomic_t is_over;
static uint64_t count;
static uint64_t next(void) { return ++count; }
static void end(int signal) { (void)signal; is_over = 1; }
int main(int words_count, char **words)
{
    int each_ms = words_count > 1 ? atoi(words[1]) : 1;
    char text[401] = "";
    memset(text, 'x', 400);
    signal(SIGTERM, end);
    while (!is_over) {
        for (int i = 0; i < each_ms; i++)
            RTSCOPE_EVENT(robot, step, u64("i", next()), text("much", text));
        usleep(1000);
    }
    printf("%lu\n", (unsigned long)count);
    return 0;
}
"""

# The same in events of the kernel: signals that are ignored, with a number in each.
SIGNALS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t is_over;
static void end(int signal) { (void)signal; is_over = 1; }
int main(int words_count, char **words)
{
    int each_ms = words_count > 1 ? atoi(words[1]) : 1;
    unsigned count = 0;
    siginfo_t told;
    struct timespec begin, now;
    memset(&told, 0, sizeof told);
    told.si_code = SI_QUEUE;
    signal(SIGURG, SIG_IGN);
    signal(SIGTERM, end);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (!is_over) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        /* As many as there should be by now: a busy machine makes none fewer. */
        long ms = (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000;
        while (count < (unsigned long)ms * each_ms && !is_over) {
            told.si_errno = ++count;
            if (syscall(SYS_rt_sigqueueinfo, getpid(), SIGURG, &told))
                return 1;
        }
        usleep(1000);
    }
    printf("%u\n", count);
    return 0;
}
"""

# One child each 10 ms from a line of the input on, until the next one.
FORKS = r"""
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    struct pollfd input = {0, POLLIN, 0};
    char byte;
    long count = 0;
    if (read(0, &byte, 1) != 1)
        return 1;
    for (; poll(&input, 1, 10) == 0; count++) {
        if (fork() == 0)
            _exit(0);
        wait(NULL);
    }
    printf("%ld\n", count);
    return 0;
}
"""


# Each with its number.
STEP = r" (?:robot:step: .*?\bi|signal_generate: .*?\berrno) = (\d+)"


def skip(why):
    print(f"skipped: a session streams between two hosts: {why}")
    sys.exit(0)


def run(*words, codes=(0,), **more):
    """What a command that must succeed writes to stdout."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode in codes, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Hosts:
    """Two namespaces with a link between them."""

    def __init__(self):
        self.names = [f"rtscope-{os.getpid()}-{end}" for end in "ab"]

    def __enter__(self):
        a, b = self.names
        try:
            run("ip", "netns", "add", a)
            run("ip", "netns", "add", b)
            wire = ["wire", "type", "veth", "peer", "wire", "netns", b]
            run("ip", "-n", a, "link", "add", *wire)
            for number, name in enumerate(self.names, 1):
                run("ip", "-n", name, "address", "add", f"10.98.0.{number}/24", "dev", "wire")
                run("ip", "-n", name, "link", "set", "wire", "up")
        except (AssertionError, OSError) as error:
            self.__exit__()
            skip(f"no network namespaces: {error}")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)

    def link(self, state):
        run("ip", "-n", self.names[0], "link", "set", "wire", state)

    def on(self, place, *words):
        # ip netns exec would mount a /sys of its own, without tracefs.
        return ["nsenter", f"--net=/run/netns/{self.names[place]}", *map(str, words)]


class Live:
    """A live reader, and how long after each event it printed it."""

    def __init__(self, command):
        self.reader = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        # What happened before is printed at once, and as late as it is.
        self.begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.delays = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.reader.stdout:
            now = time.clock_gettime(time.CLOCK_MONOTONIC)
            found = re.match(r"\[(\d+\.\d+)\]", line)
            if found and float(found[1]) >= self.begin:
                self.delays.append((now, now - float(found[1])))

    def end(self):
        """It ends by itself when the trace does."""
        self.thread.join(60)
        self.reader.kill()
        self.reader.wait()


class Trial:
    """One session of `seconds`, without a link for `cut_s` in their middle."""

    def __init__(self, rtscope, hosts, scratch, seconds, cut_s, is_kernel):
        self.rtscope, self.hosts, self.scratch = rtscope, hosts, scratch
        self.is_kernel = is_kernel
        self.seconds, self.cut_s = seconds, cut_s
        self.received = scratch / "received"
        self.processes = []

    def begin(self, *words, **more):
        child = subprocess.Popen([str(word) for word in words], text=True, **more)
        self.processes.append(child)
        return child

    def end_all(self):
        run(self.rtscope, "record", "stop", "two-hosts", codes=(0, 1, 3))
        for child in self.processes:
            child.kill()
            child.wait()

    def compiled(self, name, source, *flags):
        (self.scratch / f"{name}.c").write_text(source)
        program = self.scratch / name
        run("cc", "-O2", "-o", program, self.scratch / f"{name}.c", *flags)
        return program

    def incoming(self):
        """The trace that comes in."""
        while True:
            found = list(self.received.glob("*/.two-hosts*"))
            if found and (found[0] / ".written-until").exists():
                return found[0]
            time.sleep(0.1)

    def play(self):
        steps = self.steps()
        forks = self.compiled("forks", FORKS)
        token = self.scratch / "token"
        listen = ["receive", "--listen", "10.98.0.2:7423", "-o", self.received]
        said = open(self.scratch / "receiver", "w", encoding="utf-8")
        receiver = self.begin(
            *self.hosts.on(1, self.rtscope, *listen, "--token-file", token), stderr=said
        )
        while not token.exists():
            assert receiver.poll() is None, "the receiver does not start"
            time.sleep(0.1)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        forks = self.begin(forks, **pipes)
        each_ms = 3 * SPOOL_BYTES / self.event_bytes() / self.cut_s / 1000
        wanted = ["--events", "sched:sched_process_fork"]
        wanted += ["--filter", f"sched_process_fork: parent_tid == {forks.pid}"]
        if self.is_kernel:
            wanted += ["--events", "signal:signal_generate"]
            wanted += ["--filter", f"signal_generate: sig == {int(signal.SIGURG)} && errno > 0"]
        else:
            wanted += ["--user", "robot:*"]
        to = ["--to", "10.98.0.2", "--token-file", token, "--spool", SPOOL_BYTES]
        output = ["-o", self.scratch / "here"]
        run(*self.hosts.on(0, self.rtscope, "record", "start", "two-hosts", *wanted, *to, *output))
        forks.stdin.write("\n")
        forks.stdin.flush()
        steps = self.begin(steps, math.ceil(each_ms), **pipes)
        time.sleep(2)
        path = self.incoming()
        name = "signal_generate" if self.is_kernel else "robot:step"
        wanted = ["--filter", f'$name == "{name}"', "--clock-trace"]
        live = Live([self.rtscope, "cat", "--live", *wanted, path.with_name(self.name_of(path))])
        cut = self.pass_the_time(path)
        steps.send_signal(signal.SIGTERM)
        asked = {"steps": int(steps.communicate()[0])}
        asked["forks"] = int(forks.communicate("\n")[0])
        # What was in the rings then is looked at before the session ends.
        status = json.loads(run(self.rtscope, "record", "status", "two-hosts", "--json"))
        stopped = run(*self.hosts.on(0, self.rtscope, "record", "stop", "two-hosts"), codes=(0, 3))
        print(stopped.rstrip())
        live.end()
        receiver.terminate()
        receiver.wait()
        trace = path.with_name(self.name_of(path))
        self.judge_events(trace, asked)
        print(f"connections that broke: {status['stream']['cuts']}")
        self.tell_delays(live.delays, cut)

    def steps(self):
        """The program whose events are counted."""
        if self.is_kernel:
            return self.compiled("signals", SIGNALS)
        libraries = self.scratch / "libraries"
        run("make", "-s", "-C", PROBE, f"OUT={libraries}", "CFLAGS=-O2")
        library = libraries / "librtscope-probe.a"
        return self.compiled("steps", STEPS, f"-I{PROBE}/include", library, "-ldl", "-pthread")

    def event_bytes(self):
        return SIGNAL_BYTES if self.is_kernel else TEXT_BYTES

    @staticmethod
    def name_of(path):
        return path.name[1:].split(".partial-")[0]

    def pass_the_time(self, path):
        """When the link was cut, and when it was settled again."""
        whole_s = (self.seconds - self.cut_s) / 2
        time.sleep(whole_s)
        # Readable as it is, by others too.
        if shutil.which("babeltrace2"):
            assert self.counted("babeltrace2", path)["steps"] > 0
        self.hosts.link("down")
        cut = time.clock_gettime(time.CLOCK_MONOTONIC)
        time.sleep(self.cut_s)
        self.hosts.link("up")
        time.sleep(whole_s)
        return cut, cut + self.cut_s + SETTLED_S

    def judge_events(self, trace, asked):
        seen = self.counted(self.rtscope, "cat", trace)
        info = json.loads(run(self.rtscope, "info", "--json", trace, codes=(0, 3)))
        streams = [stream for part in info["parts"] for stream in part["streams"]]
        # What the recorder notes there each second is lost too, and nobody asked for it.
        asked_for = [one for one in streams if not one["file"].endswith("statedump_0")]
        lost = sum(one["discarded"] for one in asked_for)
        print(f"asked for {asked}, there {seen}, counted as lost {lost}")
        assert lost > 0, "the cut cost nothing: it is too short to show losses"
        assert sum(seen.values()) + lost == sum(asked.values()), "not exact"
        if not shutil.which("babeltrace2"):
            return print("skipped: babeltrace2 reads it: it is not installed")
        assert self.counted("babeltrace2", trace) == seen, "babeltrace2 counts others"
        print("babeltrace2 reads as many")

    @staticmethod
    def counted(*words):
        """How many steps, each once and in order, and how many forks a reader prints."""
        seen, last = {"steps": 0, "forks": 0}, 0
        # stderr has the losses, which are judged by their number.
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        reader = subprocess.Popen([str(word) for word in words], text=True, **quiet)
        for line in reader.stdout:
            if found := re.search(STEP, line):
                assert int(found[1]) > last, f"{line} behind {last}"
                last = int(found[1])
                seen["steps"] += 1
            seen["forks"] += " sched_process_fork: " in line
        assert reader.wait() in (0, 3), words
        return seen

    @staticmethod
    def tell_delays(delays, cut):
        """Told, not judged: a busy machine lets anybody wait."""
        # What was on its way when the link was cut waited as long.
        begin, end = cut[0] - 2, cut[1]
        quiet = sorted(delay for at, delay in delays if not begin <= at - delay <= end)
        assert quiet, "the live reader printed nothing"
        at = [quiet[int(len(quiet) * part)] for part in (0.5, 0.99)]
        print(
            f"a live reader printed {len(delays)} steps that came while it read; outside of the cut "
            f"half of them within {at[0]:.2f} s, 99 % within {at[1]:.2f} s, all within {quiet[-1]:.2f} s"
        )


def main():
    rtscope = Path(sys.argv[1]).resolve()
    words = sys.argv[2:4] + ["600", "30"][len(sys.argv[2:4]) :]
    seconds, cut_s = [float(word) for word in words]
    is_kernel = sys.argv[4:] == ["kernel"]
    if os.getuid() != 0:
        skip("it needs root")
    for tool in ("ip", "nsenter"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as scratch, Hosts() as hosts:
        scratch = Path(scratch)
        os.environ["RTSCOPE_DIR"] = str(scratch / "rings")
        os.environ["RTSCOPE_RUNTIME_DIR"] = str(scratch / "runtime")
        trial = Trial(rtscope, hosts, scratch, seconds, cut_s, is_kernel)
        try:
            trial.play()
        finally:
            trial.end_all()
        print((scratch / "receiver").read_text(encoding="utf-8").rstrip())


if __name__ == "__main__":
    main()
