// The reports of `rtscope report`, over the range that is shown.

import * as api from "./api";
import { onChange, show, state } from "./state";
import { duration, el, instant } from "./text";

const choice = el("select");
const note = el("span", { cls: "faint" });
const holder = el("div", { cls: "scroll" });
let latest = 0, waiting = 0, name = "cputop";

export async function build(panel: HTMLElement) {
  choice.setAttribute("aria-label", "report");
  panel.append(el("div", { cls: "bar" }, choice, note), holder);
  if (!choice.options.length) {
    for (const one of (await api.reports()).reports) {
      const option = el("option", { text: `${one.name}: ${one.about}` });
      option.value = one.name;
      choice.append(option);
    }
    choice.value = name;
    choice.onchange = () => { name = choice.value; void load(); };
  }
  await load();
}

async function load() {
  const mine = ++latest;
  note.className = "faint";
  note.textContent = "reading the range …";
  try {
    const found = await api.report({ name, begin: Math.floor(state.begin), end: Math.ceil(state.end) });
    if (mine !== latest) return;
    note.textContent = `from ${instant(state.begin, state.end - state.begin)} for ${duration(state.end - state.begin)}`;
    const full = found.tables.filter((table) => table.rows.length);
    holder.replaceChildren(...(full.length ? full.flatMap(draw) : [el("p", { cls: "bar", text: "nothing in this range" })]));
  } catch (error) {
    if (mine !== latest) return;
    note.className = "bad";
    note.textContent = error instanceof Error ? error.message : String(error);
    holder.replaceChildren();
  }
}

function draw(table: api.ReportTable): Node[] {
  const isNumber = (unit: string) => unit !== "";
  const head = el("tr", {}, ...table.columns.map((column) => el("th", { text: column.title, cls: isNumber(column.unit) ? "n" : "" })));
  const lines = table.rows.map((cells) => {
    const line = el("tr", {}, ...cells.map((cell, at) => {
      const unit = table.columns[at]?.unit ?? "";
      return el("td", { text: words(cell, unit), cls: isNumber(unit) || typeof cell === "number" ? "n" : "" });
    }));
    const range = cells.find((cell): cell is api.Range => typeof cell === "object" && cell !== null && "begin_ns" in cell);
    if (range) { line.tabIndex = 0; line.onclick = () => show(range.begin_ns, range.end_ns); }
    return line;
  });
  const title = table.of ? `${table.title}: ${table.of}` : table.title;
  const parts: Node[] = [el("h3", { cls: "bar", text: title }), el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines))];
  if (table.left_out) parts.push(el("p", { cls: "bar faint", text: `and ${table.left_out} more rows` }));
  return parts;
}

function words(cell: api.Cell, unit: string): string {
  if (cell === null) return "";
  if (typeof cell === "number") {
    if (unit === "ns") return duration(cell);
    if (unit === "time") return instant(cell, 1);
    if (unit === "share") return `${(cell * 100).toFixed(2)} %`;
    return unit ? `${cell.toLocaleString("en")} ${unit}` : String(cell);
  }
  if (typeof cell !== "object") return String(cell);
  if ("begin_ns" in cell) return `${instant(cell.begin_ns, 1)} for ${duration(cell.end_ns - cell.begin_ns)}`;
  if ("tid" in cell) return `${cell.name ?? "?"} (${cell.tid ?? cell.pid ?? "?"})`;
  return `${cell.hard ? "interrupt" : "softirq"} ${cell.nr} ${cell.name ?? ""}`;
}

onChange((part) => {
  if (state.tab !== "reports" || !holder.isConnected || part !== "range") return;
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), 400);
});
