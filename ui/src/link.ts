// A link keeps what is seen: range, cursor, filter, selection, tracks, bookmarks.

import { type Bookmark, SORTS, onChange, state } from "./state";

let waiting = 0;
onChange(() => {
  clearTimeout(waiting);
  document.documentElement.dataset.kept = "false";
  waiting = window.setTimeout(() => {
    history.replaceState(null, "", link());
    // For who drives the page: what was done last is in its address.
    document.documentElement.dataset.kept = "true";
  }, 100);
});

export function link(): string {
  const words = new URLSearchParams();
  const say = (key: string, text: string) => { if (text) words.set(key, text); };
  words.set("range", `${Math.round(state.begin)},${Math.round(state.end)}`);
  if (state.cursor !== null) say("cursor", String(Math.round(state.cursor)));
  if (state.selected) say("late", `${state.selected.task},${state.selected.end}`);
  if (state.thread !== null) say("thread", String(state.thread));
  say("search", state.search);
  say("filter", state.filter);
  say("periods", state.periods);
  say("pins", state.pins.join(","));
  say("sort", state.sort === "run" ? "" : state.sort);
  say("group", state.group);
  say("cpus", state.cpus ? "" : "0");
  say("with", `${state.frequency ? "f" : ""}${state.idle ? "i" : ""}${state.users ? "" : "-"}`);
  for (const name of state.counters) words.append("counter", name);
  say("columns", state.columns.join(","));
  for (const mark of state.bookmarks) words.append("mark", `${Math.round(mark.begin)},${Math.round(mark.end)},${mark.name}`);
  words.set("tab", state.tab);
  words.set("clock", state.clock);
  return `${location.pathname}${location.search}#${words}`;
}

const numbers = (text: string | null): [number, number] | null => {
  const found = (text ?? "").split(",").map(Number);
  return text && found.length === 2 && found.every(Number.isFinite) ? (found as [number, number]) : null;
};

/** A task's place, which no trace has more of than these digits count. */
const isPlace = (text: string | number) => /^\d{1,9}$/.test(String(text));

function bookmark(text: string): Bookmark | null {
  const [begin, end, ...name] = text.split(",");
  const range = numbers(`${begin},${end}`);
  return range ? { begin: range[0], end: range[1], name: name.join(",").slice(0, 80) } : null;
}

/** Takes what a link says; whether it says a range. */
export function restore(): boolean {
  const words = new URLSearchParams(location.hash.slice(1));
  const text = (key: string) => words.get(key) ?? "";
  const [range, late, cursor, thread] = [numbers(words.get("range")), numbers(words.get("late")), words.get("cursor"), words.get("thread")];
  [state.search, state.filter] = [text("search"), text("filter")];
  // An address is whoever's who wrote it: what the server would refuse is as if it was not there.
  state.group = text("group") === "process" ? "process" : "";
  state.periods = text("periods");
  state.tab = words.get("tab") ?? state.tab;
  if (Object.hasOwn(SORTS, text("sort"))) state.sort = text("sort");
  state.cpus = text("cpus") !== "0";
  state.pins = text("pins").split(",").filter((id) => /^[ctfiu]/.test(id) && isPlace(id.slice(1))).slice(0, 100);
  [state.frequency, state.idle, state.users] = [text("with").includes("f"), text("with").includes("i"), !text("with").includes("-")];
  state.counters = [...new Set(words.getAll("counter"))].filter((name) => name && !name.includes(",")).slice(0, 16);
  state.columns = text("columns").split(",").map((name) => name.trim()).filter(Boolean).slice(0, 16);
  state.bookmarks = words.getAll("mark").slice(0, 100).map(bookmark).filter((one) => one !== null);
  const clock = words.get("clock");
  if (clock === "wall" || clock === "trace") state.clock = clock;
  if (cursor && Number.isFinite(Number(cursor))) state.cursor = Number(cursor);
  if (thread && isPlace(thread)) state.thread = Number(thread);
  if (late && isPlace(late[0]) && Number.isInteger(late[1])) { state.selected = { task: late[0], end: late[1] }; state.thread ??= late[0]; }
  if (range && range[0] < range[1]) [state.begin, state.end] = range;
  return range !== null;
}
