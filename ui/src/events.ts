// All events as a table of which only what is seen is fetched, with the filter language.

import * as api from "./api";
import { changed, onChange, setCursor, show, state } from "./state";
import { save } from "./keep";
import { button, count, counted, el, instant, problem, safe, stopped } from "./text";
import type { View } from "./views";

const ROW = 22;
/** Browsers draw no taller elements; a longer table scrolls in larger steps. */
const TALLEST = 8_000_000;

let total = 0, first = 0, asked: AbortController | null = null, rows: api.EventRow[] = [], byUs = false;

const input = el("input", { title: "as in: $name == \"sched_switch\" && next_prio < 0" });
const note = el("span", { cls: "faint" });
const body = el("tbody");
const scroller = el("div", { cls: "rows" });
const inside = el("div");
const heads = el("tr"), table = el("table", {}, el("thead", {}, heads), body);
const columns = el("input", { title: "Names of fields, each of which gets a column: prev_comm, prio" });
const known = el("datalist");

new ResizeObserver(() => { if (scroller.clientHeight > 0 && rows.length) void load(first); }).observe(scroller);

const fitting = () => Math.max(Math.floor((scroller.clientHeight - ROW) / ROW), 5);
const scale = () => Math.max((total * ROW) / TALLEST, 1);

function build(panel: HTMLElement) {
  input.value = state.filter;
  input.setAttribute("aria-label", "filter");
  input.placeholder = 'filter, as in rtscope cat: $name == "sched_*" && cpu_id == 1';
  input.spellcheck = false;
  inside.append(table);
  scroller.append(inside);
  scroller.tabIndex = 0;
  panel.append(el("div", { cls: "bar" }, input, columns, known, button("save rows", `As CSV, the first ${count(SAVED)} from here on`, () => void saveRows()), note), scroller);
  columns.value = state.columns.join(", ");
  columns.placeholder = "columns: fields' names";
  columns.className = "narrow";
  columns.setAttribute("aria-label", "columns");
  known.id = "columns";
  columns.setAttribute("list", known.id);
  columns.onfocus = async () => {
    if (!known.childElementCount) known.append(...(await api.fields()).columns.map((name) => Object.assign(el("option"), { value: name })));
  };
  columns.onchange = () => {
    state.columns = [...new Set(columns.value.split(",").map((name) => name.trim()).filter(Boolean))].slice(0, 16);
    changed("look");
    void load(first);
  };
  input.onchange = () => { state.filter = input.value.trim(); changed("filter"); void toCursor(); };
  scroller.onscroll = () => {
    if (byUs) { byUs = false; return; }
    void load(Math.round((scroller.scrollTop * scale()) / ROW));
  };
  scroller.addEventListener("wheel", (event) => {
    if (scale() === 1) return;
    event.preventDefault();
    void load(first + Math.sign(event.deltaY) * 3);
  }, { passive: false });
  scroller.onkeydown = (event) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: fitting(), PageUp: -fitting(), Home: -total, End: total };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    void load(first + step);
  };
  void toCursor();
}

async function toCursor() {
  note.className = "faint";
  note.textContent = "searching …";
  const filter = state.filter;
  try {
    const at = state.cursor ?? state.begin;
    const found = await api.rowAt({ at: Math.round(at), filter });
    if (filter !== state.filter) return;
    total = found.total;
    await load(Math.max(found.row - 2, 0));
  } catch (error) { refused(error); }
}

/** How many there are. A word without quotes is the name of a field, which a newcomer does not mean. */
function told(isCut: boolean): string {
  if (!state.filter) return counted(total, "event");
  const bare = /[=!]=\s*([a-z_]\w*)\s*($|[&|)])/i.exec(state.filter)?.[1];
  if (!total) return `no event matches${bare ? `: a text stands in quotes, as in "${bare}"` : ""}`;
  return `${counted(total, "event")} match${total === 1 ? "es; it is" : "; they are"} marked above the tracks${isCut ? ", and more" : ""}`;
}

function refused(error: unknown) {
  if (stopped(error)) return;
  note.className = "bad";
  note.textContent = safe(problem(error));
  // What is no filter matches nothing.
  if (error instanceof api.Refusal) { [rows, total] = [[], 0]; draw(); }
}

async function load(row: number) {
  first = Math.min(Math.max(row, 0), Math.max(total - fitting(), 0));
  asked?.abort();
  asked = new AbortController();
  const filter = state.filter;
  try {
    const found = await api.events({ first, count: fitting() + 1, filter, columns: state.columns.join(",") }, asked.signal);
    // Rows of another filter must not stand below this one.
    if (filter !== state.filter) return;
    total = found.total;
    rows = found.rows;
    note.className = "faint";
    note.textContent = told(found.cut);
  } catch (error) { refused(error); return; }
  inside.style.height = `${Math.min(total * ROW + ROW * 2, TALLEST)}px`;
  const top = (first * ROW) / scale();
  if (Math.abs(scroller.scrollTop - top) > 1) { byUs = true; scroller.scrollTop = top; }
  draw();
}

/** Rows of one file. */
const SAVED = 100_000;
async function saveRows() {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`, filter = state.filter, own = state.columns;
  const lines = [["time_ns", "cpu", "event", ...own, "fields"].map(quoted).join(",")];
  for (let at = first; at < total && lines.length <= SAVED; at += 1000) {
    const found = await api.events({ first: at, count: 1000, filter, columns: own.join(",") }).catch((error) => { refused(error); return null; });
    if (!found?.rows.length) break;
    for (const row of found.rows) lines.push([String(row.time_ns), row.cpu === null ? "" : String(row.cpu), ...[row.name, ...row.cells.map((cell) => cell ?? ""), row.text].map((text) => quoted(safe(text)))].join(","));
    note.textContent = `saving: ${counted(lines.length - 1, "row")} …`;
  }
  note.textContent = `${counted(lines.length - 1, "row")} saved`;
  save(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }), "rtscope-events.csv");
}

function draw() {
  heads.replaceChildren(...["time", "CPU", "event", ...state.columns, "fields"].map((text) => el("th", { text })));
  body.replaceChildren(...rows.map((row) => {
    const line = el("tr", {},
      el("td", { cls: "n", text: instant(row.time_ns, 1) }), el("td", { cls: "n", text: row.cpu === null ? "" : String(row.cpu) }),
      el("td", { text: row.name }), ...state.columns.map((_, at) => el("td", { cls: "own", text: row.cells[at] ?? "", title: row.cells[at] ?? "" })), el("td", { cls: "t", text: row.text, title: row.text }));
    line.tabIndex = 0;
    if (state.cursor !== null && Math.round(state.cursor) === row.time_ns) line.className = "here";
    line.onclick = () => to(row.time_ns);
    line.onkeydown = (event) => { if (event.key === "Enter") { event.stopPropagation(); to(row.time_ns); } };
    return line;
  }));
}

/** The cursor goes to an event, and the timeline where it does not show it. */
function to(ns: number) {
  ours = true;
  setCursor(ns);
  ours = false;
  const half = (state.end - state.begin) / 2;
  if (ns < state.begin || ns > state.end) show(ns - half, ns + half);
  draw();
}

let ours = false;
onChange((part) => {
  if (state.tab !== "events" || !scroller.isConnected) return;
  if (part === "cursor" && !ours) void toCursor();
  if (part === "look") draw();
});

export const view: View = { name: "Events", build };
