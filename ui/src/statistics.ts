// How the time of every thread and every CPU went.

import * as api from "./api";
import { kindColour } from "./colours";
import { type Head, type Line, grid, value, words } from "./grid";
import { learn, taskName } from "./names";
import { choose, onChange, state } from "./state";
import { count, duration, el, instant, problem, stopped } from "./text";
import type { View } from "./views";

/** The kinds of the columns, and what they are of threads and of CPUs. */
const COLUMNS: [number, string, string][] = [[2, "ran", "tasks"], [3, "system calls", "system calls"], [4, "interrupted", "interrupts"],
  [5, "by softirqs", "softirqs"], [6, "waited for a CPU", ""], [1, "blocked", "idle"], [0, "unknown", "unknown"]];
const holder = el("div", { cls: "scroll" });
let asked: AbortController | null = null, waiting = 0;

function build(panel: HTMLElement) {
  panel.append(holder);
  load();
}

function load() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    const range = { begin: Math.floor(state.begin), end: Math.ceil(state.end) }, whole = range.end - range.begin;
    try {
      const [threads, cpus] = await Promise.all([
        api.tracks({ ...range, kind: "thread", limit: 1000, search: state.search, sort: "run" }, asked.signal),
        api.tracks({ ...range, kind: "cpu", limit: 1000 }, asked.signal)]);
      threads.tracks.forEach((row) => learn(row.facts));
      const more = threads.total > threads.tracks.length ? `; the ${count(threads.tracks.length)} that ran most of ${count(threads.total)}` : "", found = state.search ? `; threads that match '${state.search}'` : "";
      holder.replaceChildren(el("div", { cls: "bar faint about", text: `${duration(whole)} from ${instant(state.begin, whole)}${more}${found}` }),
        table("cpus", cpus.tracks, whole), el("p"), table("threads", threads.tracks, whole));
    } catch (error) {
      if (!stopped(error)) holder.replaceChildren(el("p", { cls: "bad", text: problem(error) }));
    }
  }, 150);
}

function table(name: string, tracks: api.TrackRow[], whole: number): HTMLElement {
  const cpus = name === "cpus", shown = COLUMNS.filter(([, , ofCpu]) => !cpus || ofCpu);
  const heads: Head[] = [{ text: cpus ? "CPU" : "thread" }, ...(cpus ? [] : [{ text: "priority" }]), ...shown.map(([, thread, cpu]) => ({ text: cpus ? cpu : thread, number: true }))];
  const lines = tracks.map((row): Line => {
    const parts = shown.map(([kind]) => {
      const ns = row.sums_ns[kind] ?? 0;
      return { ...value(ns, ns ? duration(ns) : ""), bar: ns / whole, colour: kind > 1 ? kindColour(kind) : "var(--quiet)" };
    });
    if (cpus) return { cells: [value(Number(row.id.slice(1)), `CPU ${row.id.slice(1)}`), ...parts] };
    return { cells: [words(taskName(row.task!)), words(row.facts?.prio ?? ""), ...parts], click: () => choose(row.task), here: row.task === state.thread };
  });
  return grid(name, heads, lines);
}

onChange((part) => {
  if (state.tab === "statistics" && holder.isConnected && ["range", "search", "info"].includes(part)) load();
});

export const view: View = { name: "Statistics", build };
