// Requests on files, disks and the network: each over time, and who made most of them.

import * as api from "./api";
import { drawTable, isRange, bytes, cell } from "./reported";
import { Scatter, type Dot } from "./scatter";
import { onChange, state } from "./state";
import { counted, duration, el, problem, stopped } from "./text";
import type { View } from "./views";

const KINDS: [RegExp, string, string][] = [[/^(p?read|recv)/, "reads", "#56b4e9"], [/^(p?write|send)/, "writes", "#d55e00"], [/sync/, "syncs", "#cc79a7"], [/.*/, "opens and others", "#009e73"]];
/** So many requests of a kind are shown: the longest. */
const OF_A_KIND = 400;
const scatter = new Scatter("requests by how long they took");
const note = el("span", { cls: "faint about" }), side = el("div", { cls: "side" });
const holder = el("div", { cls: "chart" }, scatter.chart.canvas);
let asked: AbortController | null = null, waiting = 0;

function build(panel: HTMLElement) {
  panel.append(el("div", { cls: "bar" }, note), el("div", { cls: "split" }, holder, side));
  void load();
}

async function load() {
  asked?.abort();
  asked = new AbortController();
  note.className = "faint about";
  note.textContent = "reading the range …";
  const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)], words = { begin: range[0], end: range[1] };
  try {
    const longest = (await api.report({ ...words, name: "iolatencytop", limit: OF_A_KIND }, asked.signal)).tables.filter((table) => table.table === "top-syscall");
    const dots = longest.flatMap(dotsOf), isFull = longest.some((table) => table.rows.length >= OF_A_KIND);
    scatter.set(dots, range, KINDS.map(([, name, colour]) => [name, colour]));
    const tops: api.ReportTable[] = [];
    for (const name of ["iousagetop", "iolatencystats"]) tops.push(...(await api.report({ ...words, name, limit: 15 }, asked.signal)).tables);
    const full = tops.filter((table) => table.rows.length);
    note.textContent = dots.length ? `${counted(dots.length, "request")}${isFull ? `: the ${OF_A_KIND} longest of each kind; show a shorter range for the others` : ""}`
      : "no request on files here; system calls (syscall_entry_*, syscall_exit_*) and block events have to be recorded for this";
    side.replaceChildren(...full.flatMap((table) => drawTable("io", table)));
  } catch (error) {
    if (stopped(error)) return;
    scatter.set([], range, []);
    note.className = "bad";
    note.textContent = problem(error);
    side.replaceChildren();
  }
}

function dotsOf(table: api.ReportTable): Dot[] {
  const at = (key: string) => table.columns.findIndex((column) => column.key === key);
  const [call, took, size, who, file] = ["syscall", "duration", "size", "process", "path"].map(at) as [number, number, number, number, number];
  return table.rows.map((row): Dot | null => {
    const range = row.find(isRange), name = call >= 0 ? String(row[call] ?? "") : "", ns = Number(row[took] ?? 0);
    if (!range) return null;
    const colour = KINDS.find(([pattern]) => pattern.test(name))![2];
    const parts = [name, who >= 0 ? cell(row[who]!, "").text : "", file >= 0 ? String(row[file] ?? "") : "", typeof row[size] === "number" ? bytes(row[size]) : "", duration(ns)];
    return { begin: range.begin_ns, end: range.end_ns, size: ns, colour, title: parts.filter(Boolean).join(", ") };
  }).filter((dot) => dot !== null);
}

onChange((part) => {
  if (state.tab !== "io" || !holder.isConnected) return;
  if (part !== "range") { scatter.chart.redraw(); return; }
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), 400);
});

export const view: View = { name: "I/O", build, chart: scatter.chart };
