// A flame graph of functions that were traced: callers below, callees above, as wide as the time that they took.

import * as api from "./api";
import { Chart, point } from "./chart";
import { css, onColour } from "./colours";
import { label } from "./draw";
import type { Pen } from "./pen";
import { onChange, state } from "./state";
import { button, duration, el, named, percent, problem, stopped } from "./text";
import type { View } from "./views";

interface Node { name: string; ns: number; own: number; depth: number; left: number; parent: Node | null; children: Map<string, Node> }

const LINE = 18;
const WARM = ["#e69f00", "#f0b84a", "#e8883a", "#f3c96b", "#d98f2b"];
let root = fresh("all", null), zoomed = root, depth = 1, asked: AbortController | null = null, waiting = 0;
const chart = new Chart(draw), note = el("span", { cls: "faint about" });
const holder = el("div", { cls: "chart scroll" }, chart.canvas);

function fresh(name: string, parent: Node | null): Node {
  return { name, ns: 0, own: 0, depth: parent ? parent.depth + 1 : 0, left: 0, parent, children: new Map() };
}

function build(panel: HTMLElement) {
  const all = button("all", "Show all stacks again", () => zoom(root));
  panel.append(el("div", { cls: "bar" }, all, note), holder);
  chart.canvas.onclick = (event) => { const node = under(event); if (node) zoom(node); };
  chart.canvas.onmousemove = (event) => {
    const node = under(event);
    chart.canvas.style.cursor = node ? "pointer" : "default";
    chart.canvas.title = node ? `${node.name}: ${duration(node.ns)} (${percent(node.ns / Math.max(root.ns, 1))}), of it itself ${duration(node.own)}` : "";
  };
  void load();
}

function zoom(node: Node) {
  zoomed = node;
  chart.redraw();
}

async function load() {
  asked?.abort();
  asked = new AbortController();
  note.className = "faint about";
  note.textContent = "reading the range …";
  try {
    const words = { name: "flamegraph", begin: Math.floor(state.begin), end: Math.ceil(state.end), limit: 1000 };
    const found = await api.report(words, asked.signal);
    take(found.tables.find((table) => table.table === "stacks"));
    note.textContent = root.ns ? `${duration(root.ns)} in functions that were traced; click one to look into it`
      : "no function was traced here: record lttng_ust_cyg_profile* (gcc -finstrument-functions) or the kernel's function graph";
  } catch (error) {
    if (stopped(error)) return;
    take(undefined);
    note.className = "bad";
    note.textContent = problem(error);
  }
  chart.canvas.style.height = `${Math.max(depth * LINE + 8, 40)}px`;
  chart.redraw();
}

function take(table: api.ReportTable | undefined) {
  [root, depth] = [fresh("all", null), 1];
  for (const row of table?.rows ?? []) {
    const ns = Number(row[1] ?? 0);
    let node = root;
    root.ns += ns;
    for (const name of String(row[0] ?? "").split(";").slice(0, 200)) {
      let child = node.children.get(name);
      if (!child) node.children.set(name, (child = fresh(named(name), node)));
      child.ns += ns;
      node = child;
    }
    node.own += ns;
    depth = Math.max(depth, node.depth + 1);
  }
  place(root, 0);
  zoomed = root;
}

function place(node: Node, left: number) {
  node.left = left;
  for (const child of [...node.children.values()].sort((a, b) => a.name.localeCompare(b.name, "en"))) { place(child, left); left += child.ns; }
}

const xOf = (ns: number) => ((ns - zoomed.left) / Math.max(zoomed.ns, 1)) * chart.width;
const yOf = (node: Node) => chart.height - (node.depth + 1) * LINE - 2;

function draw(pen: Pen) {
  if (!root.ns) return;
  const each = (node: Node) => {
    const [x, end] = [Math.max(xOf(node.left), 0), Math.min(xOf(node.left + node.ns), chart.width)];
    if (end - x < 0.4) return;
    const colour = node.depth ? WARM[[...node.name].reduce((sum, one) => (sum * 31 + one.codePointAt(0)!) >>> 0, 7) % WARM.length]! : "#c9ccd1";
    pen.fillStyle = colour;
    pen.globalAlpha = node.depth < zoomed.depth ? 0.5 : 1;
    pen.fillRect(x, yOf(node), Math.max(end - x - 0.5, 0.4), LINE - 1);
    pen.globalAlpha = 1;
    pen.fillStyle = onColour(colour);
    label(pen, node.name, x, yOf(node) + LINE / 2, end - x);
    node.children.forEach(each);
  };
  each(root);
  pen.fillStyle = css("--text");
}

function under(event: MouseEvent): Node | null {
  const { x, y } = point(chart.canvas, event), wanted = Math.floor((chart.height - 2 - y) / LINE);
  let node: Node | null = root.ns ? root : null;
  while (node && node.depth < wanted) node = [...node.children.values()].find((child) => xOf(child.left) <= x && x < xOf(child.left + child.ns)) ?? null;
  return node;
}

onChange((part) => {
  if (state.tab !== "flame" || !holder.isConnected) return;
  if (part !== "range") { chart.redraw(); return; }
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), 400);
});

export const view: View = { name: "Flame graph", build, chart };
