// The page: what is known of the trace, the tabs, the keys.

import * as api from "./api";
import { themeChanged } from "./colours";
import * as critical from "./critical";
import * as events from "./events";
import * as flame from "./flame";
import { tablesAsText } from "./grid";
import * as hands from "./hands";
import * as intervals from "./intervals";
import * as io from "./io";
import { copy, save } from "./keep";
import * as ledger from "./ledger";
import { link, restore } from "./link";
import * as losses from "./losses";
import * as names from "./names";
import * as reports from "./reports";
import { back, bookmark, changed, type Clock, forward, onChange, show, SORTS, state, whole } from "./state";
import * as statistics from "./statistics";
import { button, choice, count, counted, duration, el, named, problem } from "./text";
import { timed } from "./timed";
import * as timeline from "./timeline";
import * as usage from "./usage";
import type { View } from "./views";

const by = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const TABS: Record<string, View> = {
  latencies: timed("latencies", "Latencies", ["wakeup", "call"]),
  ledger: ledger.view,
  events: events.view,
  critical: critical.view,
  intervals: intervals.view,
  interrupts: timed("interrupts", "Interrupts", ["irq", "softirq"]),
  usage: usage.view,
  io: io.view,
  flame: flame.view,
  statistics: statistics.view,
  losses: losses.view,
  reports: reports.view,
};
const KEYS: [string, string][] = [
  ["w s, + -, wheel", "zoom in and out"], ["a d, ← →, drag", "earlier and later"], ["↑ ↓, shift wheel", "scroll the tracks"],
  ["shift drag", "zoom to a range"], ["double click", "zoom in there; on a name: pin it to the top"], ["Tab, Enter", "from row to row of a table; go where the row is"], ["click", "put the cursor there; on a name: choose the thread"],
  ["f", "show the selected activation"], ["u, shift u", "back to the range before, and forward again"], ["0", "the whole trace"], ["p", "pin the chosen thread, or unpin it"],
  ["b, n, shift n", "bookmark the range; next and previous bookmark"], ["1 … 9", "the first nine tabs, from the left; ← → from tab to tab"], ["/", "find a thread"],
  ["t", "times: after the first event, wall clock, the trace's clock"], ["c", "copy what the tab shows as text"], ["l", "dark or light"], ["?", "these keys"],
];

function note(text: string) {
  by("note").hidden = !text;
  by("note").textContent = text;
}

/** A line that goes by itself. */
let said = 0;
function say(text: string) {
  clearTimeout(said);
  by("said").textContent = text;
  by("said").hidden = false;
  said = window.setTimeout(() => { by("said").hidden = true; }, 4000);
}

/** Scrolls a row of tabs to one of them, and nothing else; a part of its neighbours is seen. */
function reveal(row: HTMLElement, one: HTMLElement) {
  const left = one.offsetLeft - row.offsetLeft, beside = 28;
  row.scrollLeft = Math.max(Math.min(row.scrollLeft, left - beside), left + one.offsetWidth + beside - row.clientWidth);
}

function open(tab: string) {
  state.tab = Object.hasOwn(TABS, tab) ? tab : "latencies";
  for (const one of by("tabs").querySelectorAll("button")) {
    one.setAttribute("aria-selected", String(one.dataset.tab === state.tab));
    one.tabIndex = one.dataset.tab === state.tab ? 0 : -1;
    if (one.dataset.tab === state.tab) reveal(by("tabs"), one);
  }
  by("panel").replaceChildren();
  by("panel").setAttribute("aria-label", TABS[state.tab]!.name);
  void Promise.resolve(TABS[state.tab]!.build(by("panel"))).catch((error) => by("panel").append(el("p", { cls: "bar bad", text: problem(error) })));
  changed("look");
}

const dark = () => document.documentElement.dataset.theme === "dark";
function theme(name: string) {
  document.documentElement.dataset.theme = name;
  by("theme").textContent = dark() ? "light" : "dark";
  try { localStorage.setItem("theme", name); } catch { /* a browser that keeps nothing */ }
  themeChanged();
  changed("look");
}

const CLOCKS: [Clock, string][] = [["after", "s after begin"], ["wall", "wall clock"], ["trace", "trace's clock"]];
function setClock(clock: Clock) {
  state.clock = clock;
  by<HTMLSelectElement>("clock").value = clock;
  open(state.tab);
}
const nextClock = () => setClock(CLOCKS[(CLOCKS.findIndex(([clock]) => clock === state.clock) + 1) % CLOCKS.length]![0]);

function facts(info: api.Info) {
  const name = named(info.name);
  by("name").textContent = name.length > 40 ? `…${name.slice(-39)}` : name;
  by("name").title = name;
  document.title = `rtscope: ${name}`;
  const host = info.environment["hostname"] ? ` on ${named(info.environment["hostname"])}` : "";
  const parts = [counted(info.events, "event"), `in ${duration(info.length_ns)},`, `${counted(info.cpus, "CPU")}${host}`];
  by("facts").textContent = parts.join(" ") + (info.losses ? `; events lost in ${count(info.losses)} place${info.losses === 1 ? "" : "s"}` : "");
  by("facts").classList.toggle("bad", info.losses > 0);
}

function progress(info: api.Info): string {
  const { done, share, error } = info.progress;
  if (error) return `the index failed: ${error}`;
  if (!done) return `reading the trace: ${Math.round(share * 100)} %, ${count(info.events)} events; what is there can be used`;
  if (info.grown) return "the trace grows: what has come since it was read is read soon";
  if (info.stale) return "the trace has changed, or is gone, since it was read: it is read again as soon as it can be";
  return info.events === 0 ? "the trace has no event" : "";
}

/** Asks for what is known of the trace until all of it is, and then whether it has changed. */
async function follow(ranged: boolean) {
  let seen = "";
  for (;;) {
    let info: api.Info;
    try { info = await api.info(); } catch (error) {
      note(error instanceof api.Refusal && error.status === 401 ? problem(error) : "the server does not answer: was it ended? Start 'rtscope view' again");
      document.documentElement.dataset.ready = "refused";
      await new Promise((go) => setTimeout(go, 3000));
      continue;
    }
    const before = state.info;
    state.info = info;
    facts(info);
    note(progress(info));
    const now = `${info.generation} ${info.events}`;
    if (now !== seen) {
      seen = now;
      names.forget();
      // While it grows, the whole is shown for who has not gone elsewhere.
      if (!ranged && (!before || (state.begin <= 0 && state.end >= before.length_ns))) [state.begin, state.end] = [0, Math.max(info.length_ns, 1000)];
      // A link of another trace may lead to where this one has nothing.
      if (ranged && info.progress.done && (state.begin >= Math.max(info.length_ns, 1) || state.end <= 0)) {
        [state.begin, state.end] = [0, Math.max(info.length_ns, 1000)];
        say("the link's range lies outside of this trace: all of it is shown");
      }
      await timeline.loadTracks();
      changed("info");
      if (before === null) { if (state.selected) void ledger.select(state.selected.task, state.selected.end, null); open(state.tab); }
      else if (info.progress.done && !["latencies", "interrupts", "usage", "statistics"].includes(state.tab)) open(state.tab);
    }
    document.documentElement.dataset.ready = String(info.progress.done);
    await new Promise((go) => setTimeout(go, info.progress.done ? 5000 : 300));
  }
}

function mark() {
  const name = prompt("name of the bookmark", state.activation ? `${state.activation.task.comm ?? ""} ${duration(state.activation.latency_ns)}` : "");
  if (name !== null) { bookmark(name.slice(0, 80)); marks(); }
}

/** Goes to the bookmark that comes after the one that is shown. */
function step(by: number) {
  const all = state.bookmarks, at = all.findIndex((one) => one.begin === state.begin && one.end === state.end);
  const next = all[(at + by + all.length) % all.length];
  if (next) show(next.begin, next.end);
}

function marks() {
  const list = by<HTMLSelectElement>("marks");
  list.hidden = !state.bookmarks.length;
  list.replaceChildren(el("option", { text: `${state.bookmarks.length} bookmark${state.bookmarks.length === 1 ? "" : "s"}` }),
    ...state.bookmarks.map((one, at) => el("option", { text: `${at + 1} ${one.name || duration(one.end - one.begin)}` })));
  list.onchange = () => { const one = state.bookmarks[list.selectedIndex - 1]; if (one) show(one.begin, one.end); list.selectedIndex = 0; };
}

/** What the tab shows, as text: its tables, else what the timeline says. */
async function asText() {
  const tables = tablesAsText(by("panel"));
  say((await copy(`${timeline.asText()}\n${tables}`)) ? "copied as text" : "the browser keeps the clipboard closed");
}

async function keep(what: string) {
  const chart = what.startsWith("tab") ? TABS[state.tab]!.chart : timeline.chart;
  if (what === "text") await asText();
  else if (!chart) say("this tab has no picture: copy it as text");
  else if (chart.isBlank) say("there is nothing on this picture: the tab says why");
  else if (what.endsWith("svg")) save(new Blob([chart.svg()], { type: "image/svg+xml" }), `rtscope-${what.startsWith("tab") ? state.tab : "timeline"}.svg`);
  else {
    const png = await chart.png();
    if (png) save(png, `rtscope-${what.startsWith("tab") ? state.tab : "timeline"}.png`);
  }
}

function keys() {
  const rows = KEYS.map(([key, what]) => el("tr", {}, el("td", {}, el("code", { text: key })), el("td", { text: what })));
  by<HTMLDialogElement>("keys").replaceChildren(el("h3", { text: "Keys" }), el("table", {}, ...rows), el("p", { cls: "faint", text: "Esc closes this" }));
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (by<HTMLDialogElement>("keys").open) return;
    const tab = Object.keys(TABS)[Number(event.key) - 1];
    if (tab && event.key !== "0") open(tab);
    else if (event.key === "?") by<HTMLDialogElement>("keys").showModal();
    else if (event.key === "/") by("search").focus();
    else if (event.key === "t") nextClock();
    else if (event.key === "l") theme(dark() ? "light" : "dark");
    else if (event.key === "b") mark();
    else if (event.key === "n") step(1);
    else if (event.key === "N") step(-1);
    else if (event.key === "c" && !String(getSelection())) void asText();
    else if (!hands.key(event.key)) return;
    event.preventDefault();
  });
}

function tabs() {
  for (const [tab, { name }] of Object.entries(TABS)) {
    const made = button(name, "", () => open(tab));
    made.setAttribute("role", "tab");
    made.dataset.tab = tab;
    by("tabs").append(made);
  }
  by("tabs").onkeydown = (event) => {
    const all = Object.keys(TABS), by_ = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by_) return;
    event.preventDefault();
    event.stopPropagation();
    open(all[(all.indexOf(state.tab) + by_ + all.length) % all.length]!);
    by("tabs").querySelector<HTMLElement>("[aria-selected=true]")?.focus();
  };
}

function tools() {
  const search = by<HTMLInputElement>("search");
  search.value = state.search;
  let waiting = 0;
  search.oninput = () => {
    clearTimeout(waiting);
    waiting = window.setTimeout(() => { state.search = search.value.trim(); changed("search"); }, 120);
  };
  const redo = (part: "sort" | "group") => (value: string) => { state[part] = value; changed("tracks"); };
  type Shown = "cpus" | "frequency" | "idle" | "users";
  const check = (text: string, part: Shown, title: string) => {
    const box = el("input");
    box.type = "checkbox";
    box.checked = state[part];
    box.onchange = () => { state[part] = box.checked; changed("tracks"); };
    return el("label", { title }, box, document.createTextNode(text));
  };
  const [frequency, idle, users] = [check("frequency", "frequency", "Show the frequencies of CPUs"), check("idle states", "idle", "Show the idle states of CPUs"), check("applications", "users", "Show events and spans of applications")];
  // What the trace has none of is not offered.
  const offer = () => { [frequency.hidden, idle.hidden, users.hidden] = [!state.info?.frequencies, !state.info?.idle_states, !state.info?.user_tracks]; };
  offer();
  onChange((part) => { if (part === "info") offer(); });
  by("order").append(choice("order of the threads", Object.entries(SORTS), state.sort, redo("sort")),
    choice("grouping of the threads", [["", "no groups"], ["process", "by process"]], state.group, redo("group")), check("CPUs", "cpus", "Show the tracks of CPUs"), frequency, idle, users, counters());
  const clock = choice("how times are shown (t)", CLOCKS, state.clock, (value) => setClock(value as Clock));
  clock.id = "clock";
  by("clock").replaceWith(clock);
  const takes: [string, string][] = [["", "save …"], ["text", "text of the tab (c)"], ["timeline.png", "timeline as PNG"], ["timeline.svg", "timeline as SVG"], ["tab.png", "picture of the tab as PNG"], ["tab.svg", "picture of the tab as SVG"]];
  const take = choice("save or copy what is shown", takes, "", (what) => { take.value = ""; void keep(what); });
  take.id = "take";
  by("take").replaceWith(take);
  by("undo").onclick = back;
  by("redo").onclick = forward;
  by("whole").onclick = whole;
  by("mark").onclick = mark;
  by("theme").onclick = () => theme(dark() ? "light" : "dark");
  by("help").onclick = () => by<HTMLDialogElement>("keys").showModal();
  by("link").onclick = async () => {
    history.replaceState(null, "", link());
    say((await copy(location.href)) ? "the link is copied; it works while this server runs" : "copy the address above: it is the link");
  };
}

/** Counters are added by their names, and taken away by a click. */
function counters(): HTMLElement {
  const input = el("input", { title: "An integer field of an event over time: event.field" }), list = el("datalist"), taken = el("span");
  list.id = "fields";
  input.size = 14;
  input.placeholder = "counter: event.field";
  input.setAttribute("aria-label", "add a counter");
  input.setAttribute("list", list.id);
  // Which there are is asked for by who wants one.
  input.onfocus = async () => {
    if (!list.childElementCount) list.append(...(await api.fields()).counters.map((name) => Object.assign(el("option"), { value: name })));
  };
  const fill = () => taken.replaceChildren(...state.counters.map((name) => button(`${named(name)} ×`, "Take this counter away", () => {
    state.counters = state.counters.filter((one) => one !== name);
    fill();
    changed("tracks");
  })));
  input.onchange = () => {
    const name = input.value.trim();
    if (name && !name.includes(",") && state.counters.length < 16 && !state.counters.includes(name)) state.counters = [...state.counters, name];
    input.value = "";
    fill();
    changed("tracks");
  };
  fill();
  return el("span", {}, input, list, taken);
}

/** The line between the timeline and the tab is drawn up and down. */
function splitter() {
  const line = by("splitter"), page = document.querySelector("main")!;
  line.onpointerdown = (event) => { line.setPointerCapture(event.pointerId); event.preventDefault(); };
  line.onpointermove = (event) => {
    if (!line.hasPointerCapture(event.pointerId)) return;
    const box = page.getBoundingClientRect(), share = Math.min(Math.max((event.clientY - box.top) / box.height, 0.15), 0.8);
    page.style.setProperty("--top", `${share * 100}fr`);
    page.style.setProperty("--bottom", `${(1 - share) * 100}fr`);
  };
}

const ranged = restore();
ledger.onOpen(open);
tabs();
tools();
keys();
marks();
splitter();
timeline.start();
hands.listen();
onChange((part) => { if (part === "look") marks(); });
let chosen: string | null = null;
try { chosen = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
theme(chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
void follow(ranged);
