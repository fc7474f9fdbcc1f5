// Where the time of one thread went, followed backwards through the threads that woke it.

import * as api from "./api";
import { type Box, timeAxis, timeScale } from "./axis";
import { Chart, point } from "./chart";
import { css, hatch, kindColour, onColour } from "./colours";
import { label } from "./draw";
import { factsOf, need, taskName } from "./names";
import type { Pen } from "./pen";
import { cell, drawTable, isRange } from "./reported";
import { onChange, setCursor, show, state } from "./state";
import { duration, el, instant, problem, stopped } from "./text";
import type { View } from "./views";

interface Step { begin: number; end: number; who: string; what: string }

const LANE = 20;
let steps: Step[] = [], lanes: string[] = [], shown: [number, number] = [0, 1], asked: AbortController | null = null, waiting = 0;
const chart = new Chart(draw);
const scroll = el("div", { cls: "chart scroll" }, chart.canvas), side = el("div", { cls: "side" });
const note = el("div", { cls: "bar faint about" });
const left = () => Math.min(190, Math.round(chart.width / 3));
const box = (): Box => ({ left: left(), top: 4, width: Math.max(chart.width - left(), 10), height: lanes.length * LANE });

function build(panel: HTMLElement) {
  panel.append(el("div", { cls: "split" }, el("div", { cls: "column" }, note, scroll), side));
  chart.canvas.onclick = (event) => { const step = under(event); if (step) { setCursor(step.begin); show(step.begin, step.end); } };
  chart.canvas.onmousemove = (event) => {
    const step = under(event);
    chart.canvas.title = step ? `${step.who}: ${step.what} for ${duration(step.end - step.begin)}, from ${instant(step.begin, 1)}` : "";
  };
  void load();
}

async function load() {
  asked?.abort();
  asked = new AbortController();
  const task = state.thread ?? state.selected?.task ?? null;
  if (task === null) {
    [steps, lanes] = [[], []];
    note.textContent = "choose a thread: click its name in the timeline, or one of the latencies";
    side.replaceChildren();
    layout();
    return;
  }
  await need([task]);
  note.textContent = `following ${taskName(task)} …`;
  try {
    const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)];
    const words = { name: "criticalpath", begin: range[0], end: range[1], limit: 1000, tasks: `tid:${factsOf(task)?.tid ?? 0}` };
    const { tables } = await api.report(words, asked.signal);
    take(tables.find((one) => one.table === "steps"));
    shown = range;
    note.textContent = `how ${taskName(task)} came to be where it is at ${instant(state.end, state.end - state.begin)}, backwards: who ran, and who waited for whom`;
    side.replaceChildren(...tables.filter((one) => one.table === "sums" && one.rows.length).flatMap((one) => drawTable("critical", one)));
  } catch (error) {
    if (stopped(error)) return;
    [steps, lanes] = [[], []];
    note.textContent = problem(error);
    side.replaceChildren();
  }
  layout();
}

function take(table: api.ReportTable | undefined) {
  const [thread, what] = ["process", "what"].map((key) => table?.columns.findIndex((column) => column.key === key) ?? -1) as [number, number];
  const found = (table?.rows ?? []).map((row): Step | null => {
    const range = row.find(isRange);
    return range ? { begin: range.begin_ns, end: range.end_ns, who: cell(row[thread >= 0 ? thread : 2]!, "").text, what: cell(row[what >= 0 ? what : 3]!, "").text } : null;
  });
  steps = found.filter((step) => step !== null);
  lanes = [...new Set(steps.map((step) => step.who))];
}

function layout() {
  chart.canvas.style.height = `${Math.max(lanes.length * LANE + 30, 60)}px`;
  chart.redraw();
}

function colour(what: string): number {
  if (/^blocked/.test(what)) return 1;
  if (/^(runs?|running|in a system call)/.test(what)) return 2;
  if (/softirq/.test(what)) return 5;
  if (/interrupt/.test(what)) return 4;
  if (/CPU|preempted|runnable/.test(what)) return 6;
  return /unknown/.test(what) ? 0 : 1;
}

function draw(pen: Pen) {
  const area = box(), x = timeScale(area, ...shown);
  lanes.forEach((lane, at) => {
    pen.fillStyle = css("--text");
    pen.fillText(lane, 8, area.top + at * LANE + LANE / 2, area.left - 14);
    pen.fillStyle = css("--line");
    pen.fillRect(0, area.top + (at + 1) * LANE - 0.5, chart.width, 0.5);
  });
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.width, area.height);
  pen.clip();
  let before: Step | null = null;
  for (const step of steps) {
    const top = area.top + lanes.indexOf(step.who) * LANE + 2, left = x(step.begin), w = Math.max(x(step.end) - left, 1), kind = colour(step.what);
    pen.fillStyle = kind === 0 ? hatch(pen) : kind === 1 ? css("--quiet") : kindColour(kind);
    pen.fillRect(left, top, w, LANE - 4);
    pen.fillStyle = kind > 1 ? onColour(kindColour(kind)) : css("--text");
    label(pen, `${step.what} ${duration(step.end - step.begin)}`, left, top + (LANE - 4) / 2, w);
    if (before && before.who !== step.who) {
      const from = area.top + lanes.indexOf(before.who) * LANE + LANE / 2;
      pen.fillStyle = css("--text");
      pen.fillRect(left - 0.5, Math.min(from, top + 8), 1, Math.abs(top + 8 - from));
    }
    before = step;
  }
  pen.restore();
  if (lanes.length) timeAxis(pen, area, ...shown);
}

function under(event: MouseEvent): Step | null {
  const area = box(), { x, y } = point(chart.canvas, event), ns = shown[0] + ((x - area.left) / area.width) * (shown[1] - shown[0]);
  const lane = lanes[Math.floor((y - area.top) / LANE)];
  return steps.find((step) => step.who === lane && step.begin <= ns && ns < step.end) ?? null;
}

onChange((part) => {
  if (state.tab !== "critical" || !scroll.isConnected) return;
  if (part !== "range" && part !== "selected") { chart.redraw(); return; }
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), part === "range" ? 300 : 30);
});

export const view: View = { name: "Critical path", build, chart };
