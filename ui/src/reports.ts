// The reports of `rtscope report`, over the range that is shown.

import * as api from "./api";
import { onChange, state } from "./state";
import { drawTable } from "./reported";
import { duration, el, instant, problem, stopped } from "./text";
import type { View } from "./views";

const pick = el("select");
const note = el("span", { cls: "faint" });
const holder = el("div", { cls: "scroll" });
let asked: AbortController | null = null, waiting = 0, name = "cputop";

async function build(panel: HTMLElement) {
  pick.setAttribute("aria-label", "report");
  panel.append(el("div", { cls: "bar" }, pick, note), holder);
  if (!pick.options.length) {
    for (const one of (await api.reports()).reports) {
      const option = el("option", { text: `${one.name}: ${one.about}` });
      option.value = one.name;
      pick.append(option);
    }
    pick.value = name;
    pick.onchange = () => { name = pick.value; void load(); };
  }
  await load();
}

async function load() {
  asked?.abort();
  asked = new AbortController();
  note.className = "faint";
  note.textContent = "reading the range …";
  try {
    const words = { name, begin: Math.floor(state.begin), end: Math.ceil(state.end), filter: name === "intervals" ? state.filter : "" };
    const tasks = name === "criticalpath" && state.selected ? await tidOf(state.selected.task) : "";
    const found = await api.report({ ...words, tasks }, asked.signal);
    note.textContent = `from ${instant(state.begin, state.end - state.begin)} for ${duration(state.end - state.begin)}`;
    const full = found.tables.filter((table) => table.rows.length);
    holder.replaceChildren(...(full.length ? full.flatMap((table) => drawTable(name, table)) : [el("p", { cls: "bar", text: "nothing in this range" })]));
  } catch (error) {
    if (stopped(error)) return;
    note.className = "bad";
    note.textContent = problem(error);
    holder.replaceChildren();
  }
}

async function tidOf(task: number): Promise<string> {
  const { tasks } = await api.tasks([task]);
  return tasks[0] ? `tid:${tasks[0].tid}` : "";
}

onChange((part) => {
  if (state.tab !== "reports" || !holder.isConnected || part !== "range") return;
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void load(), 400);
});

export const view: View = { name: "Reports", build };
