// From wake-up to CPU: all activations over time, and the worst of them.

import * as api from "./api";
import { css } from "./colours";
import { select } from "./ledger";
import { onChange, state } from "./state";
import { duration, el, instant } from "./text";

const LEFT = 70, BOTTOM = 18;
let found: api.Latencies | null = null, asked: AbortController | null = null, waiting = 0;
let shown: [number, number] = [0, 1], lowest = 0, highest = 1;
const canvas = el("canvas", { title: "click: the ledger of the worst activation there" });
const side = el("div");
const holder = el("div", {}, canvas);

export function build(panel: HTMLElement) {
  panel.append(el("div", { cls: "split" }, holder, side));
  holder.style.overflow = "hidden";
  new ResizeObserver(load).observe(holder);
  canvas.onclick = (event) => {
    const late = nearest(event.offsetX, event.offsetY);
    if (late) void select(late.task, late.end_ns, late.latency_ns);
  };
  canvas.onmousemove = (event) => {
    const late = nearest(event.offsetX, event.offsetY);
    canvas.title = late ? `${late.facts?.name ?? ""}: ${duration(late.latency_ns)} at ${instant(late.end_ns)}, CPU ${late.cpu}; click for its ledger` : "";
  };
  load();
}

const plot = () => ({ w: Math.max(canvas.clientWidth - LEFT - 8, 10), h: Math.max(canvas.clientHeight - BOTTOM - 8, 10) });

function load() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    const columns = Math.min(Math.max(Math.floor(plot().w / 3), 10), 1200);
    const range: [number, number] = [Math.floor(state.begin), Math.ceil(state.end)];
    try {
      found = await api.latencies({ begin: range[0], end: range[1], columns, search: state.search, worst: 100 }, asked.signal);
    } catch (error) {
      if (error instanceof DOMException) return;
      throw error;
    }
    shown = range;
    draw();
    list();
  }, 60);
}

const xOf = (column: number) => LEFT + (column / (found?.columns ?? 1)) * plot().w;
const yOf = (row: number) => 4 + (1 - (row - lowest) / Math.max(highest - lowest, 1)) * plot().h;

function nearest(x: number, y: number): api.Late | null {
  if (!found) return null;
  const [begin, end] = shown;
  let best: api.Late | null = null, least = 24;
  for (const late of [...found.longest, ...found.worst]) {
    if (!late) continue;
    const away = Math.hypot(LEFT + ((late.end_ns - begin) / (end - begin)) * plot().w - x, yOf(rowOf(late.latency_ns)) - y);
    if (away < least) [best, least] = [late, away];
  }
  return best;
}

function rowOf(ns: number): number {
  const row = found!.row_ends_ns.findIndex((end) => ns < end);
  return row < 0 ? found!.row_ends_ns.length - 1 : row;
}

function draw() {
  if (!found) return;
  const scale = devicePixelRatio || 1, context = canvas.getContext("2d")!;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(canvas.clientHeight * scale);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  const rows = found.row_ends_ns.length;
  const used = [...Array(rows).keys()].filter((row) => { for (let c = 0; c < found!.columns; c++) if (found!.counts[c * rows + row]) return true; return false; });
  [lowest, highest] = [Math.max((used[0] ?? 40) - 2, 0), (used.at(-1) ?? 80) + 3];
  context.fillStyle = css("--faint");
  for (const [ns, text] of [[1, "1 ns"], [10, "10 ns"], [100, "100 ns"], [1e3, "1 µs"], [1e4, "10 µs"], [1e5, "100 µs"], [1e6, "1 ms"], [1e7, "10 ms"], [1e8, "100 ms"], [1e9, "1 s"], [1e10, "10 s"]] as const) {
    const row = rowOf(ns);
    if (row < lowest || row > highest) continue;
    context.fillText(text, 6, yOf(row) + 4);
    context.globalAlpha = 0.3;
    context.fillRect(LEFT, yOf(row), plot().w, 0.5);
    context.globalAlpha = 1;
  }
  context.fillText(instant(shown[0], shown[1] - shown[0]), LEFT, canvas.clientHeight - 6);
  const last = instant(shown[1], shown[1] - shown[0]);
  context.fillText(last, canvas.clientWidth - 8 - context.measureText(last).width, canvas.clientHeight - 6);
  const most = found.counts.reduce((a, b) => Math.max(a, b), 1);
  const [w, h] = [xOf(1) - xOf(0), Math.max(yOf(0) - yOf(1), 1)];
  context.fillStyle = css("--accent");
  for (let column = 0; column < found.columns; column++) for (let row = lowest; row < Math.min(highest, rows); row++) {
    const count = found.counts[column * rows + row]!;
    if (!count) continue;
    context.globalAlpha = 0.25 + 0.75 * (Math.log(count + 1) / Math.log(most + 1));
    context.fillRect(xOf(column), yOf(row + 1), Math.max(w, 2), h + 0.5);
  }
  context.globalAlpha = 1;
  for (const late of found.worst.slice(0, 20)) {
    const x = LEFT + ((late.end_ns - shown[0]) / (shown[1] - shown[0])) * plot().w, y = yOf(rowOf(late.latency_ns));
    const here = state.selected?.end === late.end_ns && state.selected.task === late.task;
    context.fillStyle = here ? "#d55e00" : css("--text");
    context.beginPath();
    context.arc(x, y, here ? 6 : 3.5, 0, 7);
    context.fill();
  }
}

function list() {
  if (!found) return;
  const about = found.count
    ? `${found.count.toLocaleString("en")} activation${found.count === 1 ? "" : "s"} here; half below ${duration(found.median_ns_max)}, 99 % below ${duration(found.p99_ns_max)}, 99.9 % below ${duration(found.p999_ns_max)}`
    : "no activation here";
  const head = el("tr", {}, ...["latency", "thread", "priority", "CPU", "at"].map((text, at) => el("th", { text, cls: at === 0 || at > 2 ? "n" : "" })));
  const lines = found.worst.map((late) => {
    const line = el("tr", {}, el("td", { cls: "n", text: duration(late.latency_ns) }),
      el("td", { text: `${late.facts?.name ?? "?"} (${late.facts?.tid ?? "?"})` }), el("td", { text: late.facts?.prio ?? "" }),
      el("td", { cls: "n", text: String(late.cpu) }), el("td", { cls: "n", text: instant(late.end_ns, 1e4) }));
    line.tabIndex = 0;
    if (state.selected?.end === late.end_ns && state.selected.task === late.task) line.className = "here";
    line.onclick = () => void select(late.task, late.end_ns, late.latency_ns);
    line.onkeydown = (event) => { if (event.key === "Enter") line.click(); };
    return line;
  });
  side.replaceChildren(el("div", { cls: "bar faint", text: about }), el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines)));
}

onChange((part) => {
  if (state.tab !== "latencies" || !canvas.isConnected) return;
  if (part === "range" || part === "search" || part === "info") load();
  else { draw(); list(); }
});
