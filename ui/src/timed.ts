// What took time: all of it over time, the worst, and statistics. Wake-ups and system calls, or interrupts and softirqs.

import * as api from "./api";
import { type Box, logScale, timeAxis, timeScale } from "./axis";
import { Chart, point } from "./chart";
import { css } from "./colours";
import { type Head, type Line, grid, value, words } from "./grid";
import { select } from "./ledger";
import { learn } from "./names";
import type { Pen } from "./pen";
import { choose, onChange, setCursor, show, state } from "./state";
import { choice, count, counted, duration, el, instant, named, problem, stopped } from "./text";
import type { View } from "./views";

const NAMES: Record<api.Family, { one: string; title: string; about: string }> = {
  wakeup: { one: "activation", title: "from wake-up to CPU", about: "thread" },
  call: { one: "system call", title: "system calls", about: "system call" },
  irq: { one: "interrupt", title: "interrupts' handlers", about: "interrupt" },
  softirq: { one: "softirq", title: "softirqs' handlers", about: "softirq" },
};
/** As /proc/interrupts has them: the number, then the name. */
const handler = (what: number, name: string) => `${what} ${named(name)}`.trim();
/** Other places mean that the latency is no more than this. */
const NEAR = 24;

/** A view of one or more families. */
export function timed(tab: string, name: string, families: api.Family[]): View {
  let family = families[0]!, list: "worst" | "stats" = "worst";
  let found: api.Latencies | null = null, failed = "", asked: AbortController | null = null, waiting = 0;
  let shown: [number, number] = [0, 1], y: (ns: number) => number = () => 0;
  const chart = new Chart(draw, undefined, load), side = el("div", { cls: "side" }), holder = el("div", { cls: "chart" }, chart.canvas);
  const box = (): Box => ({ left: 66, top: 10, width: Math.max(chart.width - 78, 10), height: Math.max(chart.height - 34, 10) });
  /** A thread is searched for: handlers have none. */
  const searched = () => (family === "irq" || family === "softirq" ? "" : state.search);
  const isHere = () => state.tab === tab && holder.isConnected;

  function build(panel: HTMLElement) {
    panel.append(el("div", { cls: "split" }, holder, side));
    chart.canvas.onclick = (event) => { const { x, y: at } = point(chart.canvas, event), late = nearest(x, at); if (late) go(late); };
    chart.canvas.onmousemove = (event) => {
      const { x, y: at } = point(chart.canvas, event), late = nearest(x, at);
      chart.canvas.style.cursor = late ? "pointer" : "default";
      chart.canvas.title = late ? `${nameOf(late)}: ${duration(late.latency_ns)} at ${instant(late.end_ns)}, CPU ${late.cpu}; click to go there` : "";
    };
    load();
  }

  function load() {
    clearTimeout(waiting);
    waiting = window.setTimeout(async () => {
      asked?.abort();
      asked = new AbortController();
      const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)];
      const columns = Math.min(Math.max(Math.floor(box().width / 3), 10), 1200);
      try {
        found = await api.latencies({ of: family, begin: range[0], end: range[1], columns, search: searched(), worst: 100, stats: list === "stats" ? 1 : "" }, asked.signal);
        failed = "";
      } catch (error) {
        if (stopped(error)) return;
        [found, failed] = [null, problem(error)];
      }
      found?.worst.forEach((late) => learn(late.facts));
      shown = range;
      chart.redraw();
      fill();
    }, 60);
  }

  const nameOf = (late: api.Late) =>
    family === "wakeup" ? `${named(late.facts?.name ?? "?")} (${late.facts?.tid ?? "?"})` : family === "call" ? `${named(late.name) || "system call"} of ${named(late.facts?.name ?? "?")}` : handler(late.what, late.name);

  function go(late: api.Late) {
    if (family === "wakeup" && late.task !== null) { void select(late.task, late.end_ns, late.latency_ns); return; }
    if (late.task !== null) choose(late.task);
    setCursor(late.end_ns);
    show(late.end_ns - late.latency_ns * 1.5 - 500, late.end_ns + late.latency_ns * 0.5 + 500);
  }

  function nearest(x: number, at: number): api.Late | null {
    if (!found) return null;
    const xOf = timeScale(box(), ...shown);
    let best: api.Late | null = null, least = NEAR;
    for (const late of [...found.longest, ...found.worst]) {
      if (!late) continue;
      const away = Math.hypot(xOf(late.end_ns) - x, y(late.latency_ns) - at);
      if (away < least) [best, least] = [late, away];
    }
    return best;
  }

  function draw(pen: Pen) {
    if (!found) return;
    const area = box(), rows = found.row_ends_ns, all = found.counts, begins = (row: number) => rows[row - 1] ?? 1;
    let [low, high, most] = [rows.length, -1, 1];
    all.forEach((number, at) => {
      if (!number) return;
      const row = at % rows.length;
      [low, high, most] = [Math.min(low, row), Math.max(high, row), Math.max(most, number)];
    });
    if (high < 0) [low, high] = [40, 80];
    y = logScale(pen, area, begins(low) / 1.5, rows[high]! * 1.5);
    timeAxis(pen, area, ...shown);
    const xOf = timeScale(area, ...shown), w = Math.max(area.width / found.columns, 2);
    pen.fillStyle = css("--accent");
    all.forEach((number, at) => {
      if (!number) return;
      const column = Math.floor(at / rows.length), row = at % rows.length, top = y(rows[row]!);
      pen.globalAlpha = 0.25 + 0.75 * (Math.log(number + 1) / Math.log(most + 1));
      pen.fillRect(area.left + (column / found!.columns) * area.width, top, w, Math.max(y(begins(row)) - top + 0.5, 2));
    });
    pen.globalAlpha = 1;
    for (const late of [...found.worst.slice(0, 20)].reverse()) {
      const here = state.selected?.end === late.end_ns && state.selected.task === late.task;
      pen.fillStyle = here ? "#d55e00" : css("--text");
      pen.beginPath();
      pen.arc(xOf(late.end_ns), y(late.latency_ns), here ? 6 : 3.5, 0, 7);
      pen.fill();
    }
  }

  function fill() {
    const about = !found ? failed : !found.count ? nothing()
      : `${counted(found.count, NAMES[family].one)}: half below ${duration(found.median_ns_max)}, 99 % below ${duration(found.p99_ns_max)}, 99.9 % below ${duration(found.p999_ns_max)}`;
    const bar = el("div", { cls: "bar" });
    if (families.length > 1) bar.append(choice("what is timed", families.map((one) => [one, NAMES[one].title]), family, (one) => { family = one as api.Family; load(); }));
    bar.append(choice("list", [["worst", "the longest"], ["stats", `by ${NAMES[family].about}`]], list, (one) => { list = one as typeof list; load(); }));
    // Whoever goes through the rows by keyboard goes on there.
    const rows = () => [...side.querySelectorAll<HTMLElement>("tbody tr")], at = rows().findIndex((row) => row === document.activeElement);
    side.replaceChildren(bar, el("div", { cls: "bar faint about", text: about }), list === "worst" ? worst() : stats());
    rows()[at]?.focus();
  }

  /** Why there is none. */
  function nothing(): string {
    const one = NAMES[family].one;
    if (searched()) return `no ${one} of '${named(searched())}' ends in this range`;
    const { activations, calls, handlers } = state.info ?? { activations: 0, calls: 0, handlers: 0 };
    if ({ wakeup: activations, call: calls, irq: handlers, softirq: handlers }[family]) return `no ${one} ends in this range: show a longer one, or all of it (0)`;
    return `no ${one} ends in this range; ${{ wakeup: "sched_waking and sched_switch", call: "syscall_entry_* and syscall_exit_*", irq: "irq_handler_entry and irq_handler_exit", softirq: "softirq_entry and softirq_exit" }[family]} have to be recorded for this`;
  }

  function worst(): HTMLElement {
    const threads = family === "wakeup", calls = family === "call";
    const heads: Head[] = [{ text: threads ? "latency" : "took", number: true }, { text: NAMES[family].about },
      ...(threads ? [{ text: "priority" }] : calls ? [{ text: "thread" }] : []), { text: "CPU", number: true }, { text: "at", number: true }];
    const lines = (found?.worst ?? []).map((late): Line => ({
      cells: [value(late.latency_ns, duration(late.latency_ns)), words(threads ? nameOf(late) : calls ? named(late.name) : handler(late.what, late.name)),
        ...(threads ? [words(late.facts?.prio ?? "")] : calls ? [words(`${named(late.facts?.name ?? "?")} (${late.facts?.tid ?? "?"})`)] : []),
        value(late.cpu, String(late.cpu)), value(late.end_ns, instant(late.end_ns, 1e4))],
      click: () => go(late), here: state.selected?.end === late.end_ns && state.selected.task === late.task,
    }));
    return grid(`${tab}-worst-${family}`, heads, lines);
  }

  function stats(): HTMLElement {
    const heads: Head[] = [{ text: NAMES[family].about }, ...["count", "longest", "99 %", "mean", "shortest", "in all"].map((text) => ({ text, number: true }))];
    const lines = (found?.stats?.rows ?? []).map((one): Line => {
      const who = one.facts ? `${named(one.facts.name)} (${one.facts.tid})` : family === "call" ? named(one.name) : handler(one.key, one.name);
      const cells = [words(who), value(one.count, count(one.count)), ...[one.max_ns, one.p99_ns_max, one.mean_ns, one.min_ns, one.total_ns].map((ns) => value(ns, duration(ns)))];
      const task = one.facts?.task;
      return task === undefined ? { cells } : { cells, click: () => { learn(one.facts); choose(task); } };
    });
    return grid(`${tab}-stats-${family}`, heads, lines);
  }

  onChange((part) => {
    if (!isHere()) return;
    if (part === "range" || part === "search" || part === "info") load();
    else if (part !== "cursor") { chart.redraw(); fill(); }
  });
  return { name, build, chart };
}
