// The reports of `rtscope report`, over the range that is shown.

import * as api from "./api";
import { changed, onChange, state } from "./state";
import { drawTable } from "./reported";
import { duration, el, instant, problem, stopped } from "./text";
import type { View } from "./views";

const pick = el("select");
const note = el("span", { cls: "faint" });
const holder = el("div", { cls: "scroll" });
const definitions = el("textarea", { title: "Periods, a definition a line: Enter asks, shift Enter begins another line" });
let asked: AbortController | null = null, waiting = 0, name = "cputop";

async function build(panel: HTMLElement) {
  pick.setAttribute("aria-label", "report");
  definitions.value = state.periods;
  definitions.rows = 2;
  definitions.placeholder = 'NAME : BEGIN : END, as in turn : $evt.$name == "sched_switch" && $evt.next_comm == "app" : $evt.$name == "sched_switch" && $evt.prev_comm == "app"';
  definitions.setAttribute("aria-label", "definitions of periods");
  definitions.onkeydown = (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); define(); } };
  definitions.onchange = define;
  panel.append(el("div", { cls: "bar" }, pick, note), definitions, holder);
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

/** Takes the definitions, for this report and for the strip above the tracks. */
function define() {
  if (definitions.value === state.periods) return;
  state.periods = definitions.value;
  changed("periods");
  void load();
}

async function load() {
  const ofPeriods = name.startsWith("period");
  definitions.hidden = !ofPeriods;
  asked?.abort();
  asked = new AbortController();
  note.className = "faint";
  note.textContent = "reading the range …";
  try {
    const words = { name, begin: Math.floor(state.begin), end: Math.ceil(state.end), filter: name === "intervals" ? state.filter : "", periods: ofPeriods ? state.periods : "" };
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
