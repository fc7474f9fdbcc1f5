// The time between successive events of a filter: a timer tick that is missing is a peak.

import * as api from "./api";
import { type Box, linearScale, logScale, timeAxis, timeScale } from "./axis";
import { Chart, point } from "./chart";
import { css } from "./colours";
import type { Pen } from "./pen";
import { cell, drawTable, isRange } from "./reported";
import { onChange, setCursor, show, state } from "./state";
import { count, duration, el, problem, round, stopped } from "./text";
import type { View } from "./views";

interface Bin { begin: number; end: number; least: number; mean: number; most: number }
interface Bar { low: number; high: number; count: number }

const PRESETS: [string, string][] = [
  ['$name == "timer_hrtimer_expire_entry"', "high-resolution timers"], ['$name == "irq_handler_entry"', "interrupts"],
  ['$name == "local_timer_entry" || $name == "x86_irq_vectors_local_timer_entry"', "the timer tick"], ['$name == "sched_switch"', "switches"],
];
let filter = PRESETS[0]![0], bins: Bin[] = [], bars: Bar[] = [], shown: [number, number] = [0, 1];
let asked: AbortController | null = null, waiting = 0, y: (ns: number) => number = () => 0;
const chart = new Chart(draw), note = el("span", { cls: "faint" });
const holder = el("div", { cls: "chart" }, chart.canvas), side = el("div", { cls: "side" });
const input = el("input", { title: "The events: their filter. The language is that of Events" });
/** Beside the plot, where there is room. */
const hasBars = () => bars.length > 0 && chart.width > 480;
/** The plot has what the bars leave. */
const share = () => (hasBars() ? 0.68 : 1);
const plot = (): Box => ({ left: 66, top: 10, width: Math.max(chart.width * share() - 76, 10), height: Math.max(chart.height - 34, 10) });
const beside = (): Box => ({ left: chart.width * 0.68 + 66, top: 10, width: Math.max(chart.width * 0.32 - 80, 10), height: Math.max(chart.height - 34, 10) });

function build(panel: HTMLElement) {
  const list = el("datalist");
  list.id = "interval-filters";
  for (const [value, text] of PRESETS) {
    const option = el("option", { text });
    option.value = value;
    list.append(option);
  }
  input.setAttribute("list", list.id);
  input.setAttribute("aria-label", "events between which time is measured");
  if (state.filter) filter = state.filter;
  input.value = filter;
  input.spellcheck = false;
  input.onchange = () => { filter = input.value.trim(); void load(); };
  panel.append(el("div", { cls: "bar" }, input, list, note), el("div", { cls: "split" }, holder, side));
  chart.canvas.onclick = (event) => { const bin = under(event); if (bin) { setCursor(bin.end); show(bin.begin, bin.end); } };
  chart.canvas.onmousemove = (event) => {
    const bin = under(event);
    chart.canvas.title = bin ? `longest ${duration(bin.most)}, mean ${duration(bin.mean)}, shortest ${duration(bin.least)}; click to go there` : "";
  };
  void load();
}

async function load() {
  asked?.abort();
  asked = new AbortController();
  note.className = "faint";
  note.textContent = "reading the range …";
  try {
    const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)];
    const { tables } = await api.report({ name: "intervals", begin: range[0], end: range[1], filter, limit: 50, tables: "freq" }, asked.signal);
    const find = (name: string) => tables.find((one) => one.table === name);
    const number = (one: api.Cell | undefined) => (typeof one === "number" ? one : 0);
    bins = (find("series")?.rows ?? []).map((row) => {
      const place = row.find(isRange)!;
      return { begin: place.begin_ns, end: place.end_ns, least: number(row[2]), mean: number(row[3]), most: number(row[4]) };
    });
    bars = (find("freq")?.rows ?? []).map((row) => ({ low: number(row[0]), high: number(row[1]), count: number(row[2]) }));
    shown = range;
    const stats = find("stats"), about = stats?.rows[0];
    note.textContent = about && bins.length ? stats.columns.map((column, at) => `${column.title.toLowerCase()} ${cell(about[at] ?? null, column.unit).text}`).join(", ") : "fewer than two such events in this range: choose others, as in $name == \"sched_switch\", or show a longer one";
    side.replaceChildren(...tables.filter((one) => one.table === "top" && one.rows.length).flatMap((one) => drawTable("intervals", one)));
  } catch (error) {
    if (stopped(error)) return;
    [bins, bars] = [[], []];
    note.className = "bad";
    note.textContent = problem(error);
    side.replaceChildren();
  }
  chart.redraw();
}

function draw(pen: Pen) {
  if (!bins.length) return;
  const area = plot(), x = timeScale(area, ...shown);
  const least = bins.reduce((a, bin) => Math.min(a, bin.least), Infinity), most = bins.reduce((a, bin) => Math.max(a, bin.most), 1);
  y = logScale(pen, area, Math.max(least, 1) / 1.3, most * 1.3);
  timeAxis(pen, area, ...shown);
  for (const bin of bins) {
    const left = x(bin.begin), w = Math.max(x(bin.end) - left - 0.5, 1.5);
    pen.fillStyle = css("--accent");
    pen.globalAlpha = 0.35;
    pen.fillRect(left, y(bin.most), w, Math.max(y(bin.least) - y(bin.most), 1));
    pen.globalAlpha = 1;
    pen.fillRect(left, y(bin.most) - 1, w, 2);
    pen.fillStyle = css("--text");
    pen.fillRect(left, y(bin.mean) - 0.5, w, 1);
  }
  if (hasBars()) drawBars(pen, beside());
}

/** How often which interval: beside the plot. */
function drawBars(pen: Pen, area: Box) {
  const most = bars.reduce((a, bar) => Math.max(a, bar.count), 1), [low, high] = [bars[0]!.low, bars.at(-1)!.high];
  const yOf = linearScale(pen, area, most, (number) => count(Math.round(number))), xOf = (ns: number) => area.left + ((ns - low) / Math.max(high - low, 1)) * area.width;
  pen.fillStyle = css("--accent");
  for (const bar of bars) if (bar.count) pen.fillRect(xOf(bar.low), Math.min(yOf(bar.count), area.top + area.height - 1), Math.max(xOf(bar.high) - xOf(bar.low) - 1, 1), Math.max(area.top + area.height - yOf(bar.count), 1));
  pen.fillStyle = css("--faint");
  pen.fillRect(area.left, area.top + area.height, area.width, 1);
  pen.fillText(round(low), area.left, area.top + area.height + 11);
  pen.textAlign = "right";
  pen.fillText(round(high), area.left + area.width, area.top + area.height + 11);
  pen.textAlign = "left";
}

function under(event: MouseEvent): Bin | null {
  const area = plot(), ns = shown[0] + ((point(chart.canvas, event).x - area.left) / area.width) * (shown[1] - shown[0]);
  return bins.find((bin) => bin.begin <= ns && ns < bin.end) ?? null;
}

onChange((part) => {
  if (state.tab !== "intervals" || !holder.isConnected) return;
  if (part !== "range") { chart.redraw(); return; }
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), 300);
});

export const view: View = { name: "Intervals", build, chart };
