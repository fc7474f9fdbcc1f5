// How busy all CPUs were together, over time, and who used them.

import * as api from "./api";
import { type Box, legend, linearScale, timeAxis } from "./axis";
import { Chart, point } from "./chart";
import { css, hatch, kindColour } from "./colours";
import { grid, value, words } from "./grid";
import { learn, taskName } from "./names";
import type { Pen } from "./pen";
import { choose, onChange, setCursor, state } from "./state";
import { duration, el, instant, percent, problem, stopped } from "./text";
import { KINDS, decode, kindOf } from "./tile";
import type { View } from "./views";

/** From the ground up, with what each is called. */
const KINDS_SHOWN: [number, string][] = [[2, "tasks"], [3, "system calls"], [5, "softirqs"], [4, "interrupts"], [0, "unknown"]];
/** CPUs that are asked for at once. */
const AT_ONCE = 256;

/** By column and kind; `exact` unless some came as shares in 255th parts, of which what is there at all has one. */
let sums: Float64Array | null = null, exact = true, columns = 0, shown: [number, number] = [0, 1], cpus = 1, failed = "";
let asked: AbortController | null = null, waiting = 0, threads: api.TrackRow[] = [];
const chart = new Chart(draw, undefined, () => load());
const side = el("div", { cls: "side" }), holder = el("div", { cls: "chart" }, chart.canvas);
const box = (): Box => ({ left: 66, top: 24, width: Math.max(chart.width - 78, 10), height: Math.max(chart.height - 48, 10) });

function build(panel: HTMLElement) {
  panel.append(el("div", { cls: "split" }, holder, side));
  chart.canvas.onclick = (event) => {
    const area = box(), { x } = point(chart.canvas, event);
    if (x >= area.left) setCursor(shown[0] + ((x - area.left) / area.width) * (shown[1] - shown[0]));
  };
  chart.canvas.onmousemove = (event) => { chart.canvas.title = under(point(chart.canvas, event).x); };
  load();
}

function load() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    try {
      await fetchAll(asked.signal);
      failed = "";
    } catch (error) {
      if (stopped(error)) return;
      [sums, failed] = [null, problem(error)];
    }
    chart.redraw();
    fill();
  }, 60);
}

async function fetchAll(signal: AbortSignal) {
  const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)], count = Math.min(Math.max(Math.round(box().width / 2), 10), 2000);
  const words = { begin: range[0], end: range[1] };
  const all = Math.max(state.info?.cpus ?? 1, 1), found = new Float64Array(count * KINDS);
  let isExact = true;
  for (let first = 0; first < all; first += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, all - first) }, (_, at) => `c${first + at}`);
    const tile = decode(await api.tile({ ...words, columns: count, tracks: ids.join(",") }, signal));
    for (const track of tile.tracks.values()) {
      if (track.columns) { isExact = false; track.columns.shares.forEach((share, at) => { found[at]! += share / 255; }); }
      else spread(track.stretches ?? [], range, count, found);
    }
  }
  const list = await api.tracks({ ...words, kind: "thread", limit: 100, sort: "run" }, signal);
  list.tracks.forEach((row) => learn(row.facts));
  [sums, exact, columns, shown, cpus, threads] = [found, isExact, count, range, all, list.tracks];
}

/** Adds stretches to columns, exactly. */
function spread(stretches: { begin: number; end: number; state: number }[], [begin, end]: [number, number], count: number, into: Float64Array) {
  const each = (end - begin) / count, known = new Float64Array(count);
  for (const one of stretches) {
    const kind = kindOf(one.state), from = Math.max(one.begin, begin), to = Math.min(one.end, end);
    for (let column = Math.max(Math.floor((from - begin) / each), 0); column < count && begin + column * each < to; column++) {
      const part = Math.max(Math.min(to, begin + (column + 1) * each) - Math.max(from, begin + column * each), 0) / each;
      into[column * KINDS + kind]! += part;
      known[column]! += part;
    }
  }
  known.forEach((part, column) => { into[column * KINDS]! += Math.max(1 - part, 0); });
}

function draw(pen: Pen) {
  const area = box();
  legend(pen, area.left, chart.width, KINDS_SHOWN.map(([kind, name]) => [name, kind ? kindColour(kind) : hatch(pen)]));
  const y = linearScale(pen, area, 1, percent0);
  timeAxis(pen, area, ...shown);
  if (!sums) return;
  const w = area.width / columns;
  for (let column = 0; column < columns; column++) {
    let ground = 0;
    for (const [kind] of KINDS_SHOWN) {
      const part = sums[column * KINDS + kind]! / cpus;
      if (part <= 0) continue;
      pen.fillStyle = kind ? kindColour(kind) : hatch(pen);
      const top = y(Math.min(ground + part, 1));
      pen.fillRect(area.left + column * w, top, w + 0.5, y(ground) - top);
      ground += part;
    }
  }
  if (state.cursor !== null && state.cursor >= shown[0] && state.cursor <= shown[1]) {
    pen.fillStyle = css("--accent");
    pen.fillRect(area.left + ((state.cursor - shown[0]) / (shown[1] - shown[0])) * area.width - 1, area.top, 2, area.height);
  }
}
const percent0 = (share: number) => `${Math.round(share * 100)} %`;
/** No finer than it is known. */
const inWords = (share: number) => (exact ? percent(share) : share < 0.01 ? "< 1 %" : percent0(share));

function under(x: number): string {
  const area = box(), column = Math.floor(((x - area.left) / area.width) * columns);
  if (!sums || column < 0 || column >= columns) return "";
  const parts = KINDS_SHOWN.map(([kind, name]) => [name, sums![column * KINDS + kind]! / cpus] as const).filter(([, part]) => part > 0.0005);
  return `${instant(shown[0] + (column / columns) * (shown[1] - shown[0]), (shown[1] - shown[0]) / columns)}: ${parts.map(([name, part]) => `${inWords(part)} ${name}`).join(", ") || "idle"}`;
}

function fill() {
  const whole = shown[1] - shown[0];
  const lines = threads.filter((row) => row.run_ns > 0 && row.task !== null).map((row) => ({
    cells: [words(taskName(row.task!)), { ...value(row.run_ns, percent(row.run_ns / whole)), bar: row.run_ns / whole, colour: kindColour(2) },
      value(row.run_ns, duration(row.run_ns)), value(row.runnable_ns, duration(row.runnable_ns))],
    click: () => choose(row.task), here: row.task === state.thread,
  }));
  const heads = [{ text: "thread" }, { text: "of one CPU", number: true }, { text: "ran", number: true }, { text: "waited for a CPU", number: true }];
  side.replaceChildren(el("div", { cls: "bar faint about", text: failed || `who used ${cpus === 1 ? "the CPU" : `the ${cpus} CPUs`}, ${duration(whole)} from ${instant(shown[0], whole)}` }), grid("usage", heads, lines));
}

onChange((part) => {
  if (state.tab !== "usage" || !holder.isConnected) return;
  if (part === "range" || part === "info") load();
  else { chart.redraw(); if (part === "selected") fill(); }
});

export const view: View = { name: "CPU usage", build, chart };
