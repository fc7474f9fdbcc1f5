// The page: what is known of the trace, the tabs, the keys.

import * as api from "./api";
import * as events from "./events";
import * as latencies from "./latencies";
import * as ledger from "./ledger";
import * as losses from "./losses";
import * as reports from "./reports";
import { back, type Clock, changed, link, restore, state, whole } from "./state";
import { duration, el, safe } from "./text";
import * as timeline from "./timeline";

const by = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const TABS: Record<string, { name: string; build: (panel: HTMLElement) => void | Promise<void> }> = {
  latencies: { name: "Latencies", build: latencies.build },
  ledger: { name: "Ledger", build: ledger.build },
  events: { name: "Events", build: events.build },
  losses: { name: "Losses", build: losses.build },
  reports: { name: "Reports", build: reports.build },
};
const KEYS: [string, string][] = [
  ["w s, + -, wheel", "zoom in and out"], ["a d, ← →, drag", "earlier and later"], ["↑ ↓, shift wheel", "scroll the tracks"],
  ["shift drag", "zoom to a range"], ["double click", "zoom in there"], ["click", "put the cursor there"],
  ["f", "show the selected activation"], ["u", "back to the range before"], ["0", "the whole trace"],
  ["1 2 3 4 5", "latencies, ledger, events, losses, reports"], ["/", "find a thread"], ["t", "times: after the first event, wall clock, the trace's clock"],
  ["l", "dark or light"], ["?", "these keys"],
];

function note(text: string) {
  by("note").hidden = !text;
  by("note").textContent = safe(text);
}

function open(tab: string) {
  state.tab = tab in TABS ? tab : "latencies";
  for (const button of by("tabs").querySelectorAll("button")) button.setAttribute("aria-selected", String(button.dataset.tab === state.tab));
  by("panel").replaceChildren();
  void TABS[state.tab]!.build(by("panel"));
  changed("look");
}

const dark = () => document.documentElement.dataset.theme === "dark";
function theme(name: string) {
  document.documentElement.dataset.theme = name;
  by("theme").textContent = dark() ? "light" : "dark";
  try { localStorage.setItem("theme", name); } catch { /* a browser that keeps nothing */ }
  timeline.themeChanged();
  changed("look");
}

const CLOCKS: Clock[] = ["after", "wall", "trace"];
function nextClock() {
  state.clock = CLOCKS[(CLOCKS.indexOf(state.clock) + 1) % CLOCKS.length]!;
  by("clock").textContent = { after: "+s", wall: "wall", trace: "trace" }[state.clock];
  open(state.tab);
}

function facts(info: api.Info) {
  by("name").textContent = info.name.length > 40 ? `…${safe(info.name.slice(-39))}` : safe(info.name);
  by("name").title = safe(info.name);
  document.title = `rtscope: ${safe(info.name)}`;
  const host = info.environment["hostname"] ? ` on ${info.environment["hostname"]}` : "";
  by("facts").textContent = safe(`${info.events.toLocaleString("en")} events in ${duration(info.length_ns)}, ${info.cpus} CPUs${host}${info.losses ? `; events lost in ${info.losses} places` : ""}`);
}

/** Asks how far the index is until it is done; later only whether the trace is still the same. */
async function follow(ranged: boolean) {
  let seen = -1;
  for (;;) {
    let info: api.Info;
    try { info = await api.info(); } catch (error) {
      note(error instanceof api.Refusal ? error.message : "the server is gone: start 'rtscope view' again, and reload");
      await new Promise((go) => setTimeout(go, 2000));
      continue;
    }
    const before = state.info;
    state.info = info;
    facts(info);
    const { progress } = info;
    if (progress.error) note(`the index failed: ${progress.error}`);
    else if (!progress.done) note(`reading the trace: ${Math.round(progress.share * 100)} %, ${info.events.toLocaleString("en")} events; what is there can be used`);
    else if (info.stale) note("the trace has changed, or is gone, since it was opened: start 'rtscope view' again");
    else if (info.events === 0) note("the trace has no event");
    else note("");
    if (info.events !== seen) {
      seen = info.events;
      // While it grows, the whole is shown for who has not gone elsewhere.
      if (!ranged && (!before || (state.begin <= 0 && state.end >= before.length_ns))) [state.begin, state.end] = [0, Math.max(info.length_ns, 1000)];
      await timeline.loadTracks();
      changed("info");
      if (before === null) { if (state.selected) void ledger.select(state.selected.task, state.selected.end, null); open(state.tab); }
      else if (progress.done && state.tab !== "latencies") open(state.tab);
    }
    document.documentElement.dataset.ready = String(progress.done);
    await new Promise((go) => setTimeout(go, progress.done ? 5000 : 300));
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
    const tab = Object.keys(TABS)[Number(event.key) - 1];
    if (tab && event.key !== "0") open(tab);
    else if (event.key === "?") by<HTMLDialogElement>("keys").showModal();
    else if (event.key === "/") by("search").focus();
    else if (event.key === "t") nextClock();
    else if (event.key === "l") theme(dark() ? "light" : "dark");
    else if (!by<HTMLDialogElement>("keys").open && timeline.key(event.key)) { /* done */ }
    else return;
    event.preventDefault();
  });
}

function buttons() {
  for (const [tab, { name }] of Object.entries(TABS)) {
    const button = el("button", { text: name });
    button.setAttribute("role", "tab");
    button.dataset.tab = tab;
    button.onclick = () => open(tab);
    by("tabs").append(button);
  }
  const search = by<HTMLInputElement>("search");
  search.value = state.search;
  search.oninput = () => { state.search = search.value.trim(); changed("search"); };
  by("undo").onclick = back;
  by("whole").onclick = whole;
  by("clock").onclick = nextClock;
  by("theme").onclick = () => theme(dark() ? "light" : "dark");
  by("help").onclick = () => by<HTMLDialogElement>("keys").showModal();
  by("link").onclick = () => {
    history.replaceState(null, "", link());
    navigator.clipboard?.writeText(location.href).then(() => note("the link is copied; it works while this server runs"), () => note(location.href));
  };
}

const ranged = restore();
ledger.onOpen(open);
buttons();
keys();
timeline.start();
let chosen: string | null = null;
try { chosen = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
theme(chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
void follow(ranged);
