// What all views share: the range, the cursor, what is selected. And how a link keeps it.

import type { Activation, Info } from "./api";

export type Clock = "after" | "wall" | "trace";
export interface Selected { task: number; end: number }

export const state = {
  info: null as Info | null,
  begin: 0, end: 1,
  cursor: null as number | null,
  search: "", filter: "", tab: "latencies",
  clock: "after" as Clock,
  selected: null as Selected | null,
  /** The ledger of what is selected, once it is known. */
  activation: null as Activation | null,
};

type Part = "range" | "cursor" | "selected" | "search" | "look" | "info";
const listeners: ((part: Part) => void)[] = [];
const before: [number, number][] = [];

export const onChange = (listener: (part: Part) => void) => void listeners.push(listener);
export function changed(part: Part) {
  listeners.forEach((listener) => listener(part));
  keep();
}

const length = () => Math.max(state.info?.length_ns ?? 1, 1);

/** Shows another range; what was shown can be had back. */
export function show(begin: number, end: number, remember = true) {
  const whole = length();
  const span = Math.min(Math.max(end - begin, 100), whole * 1.1);
  const first = Math.min(Math.max((begin + end - span) / 2, -whole * 0.05), whole * 1.05 - span);
  if (remember && (Math.abs(first - state.begin) > span / 100 || Math.abs(span - (state.end - state.begin)) > span / 100)) {
    before.push([state.begin, state.end]);
    if (before.length > 200) before.shift();
  }
  [state.begin, state.end] = [first, first + span];
  changed("range");
}

export function back() {
  const range = before.pop();
  if (range) show(range[0], range[1], false);
}

export const whole = () => show(0, length());

export function setCursor(ns: number | null) {
  state.cursor = ns;
  changed("cursor");
}

let kept = 0;
function keep() {
  clearTimeout(kept);
  kept = window.setTimeout(() => history.replaceState(null, "", link()), 200);
}

export function link(): string {
  const words = new URLSearchParams();
  words.set("range", `${Math.round(state.begin)},${Math.round(state.end)}`);
  if (state.cursor !== null) words.set("cursor", String(Math.round(state.cursor)));
  if (state.selected) words.set("late", `${state.selected.task},${state.selected.end}`);
  if (state.search) words.set("search", state.search);
  if (state.filter) words.set("filter", state.filter);
  words.set("tab", state.tab);
  words.set("clock", state.clock);
  return `${location.pathname}${location.search}#${words}`;
}

/** Takes what a link says; whether it says a range. */
export function restore(): boolean {
  const words = new URLSearchParams(location.hash.slice(1));
  const numbers = (key: string) => {
    const found = (words.get(key) ?? "").split(",").map(Number);
    return found.length === 2 && found.every(Number.isFinite) ? (found as [number, number]) : null;
  };
  const [range, late, cursor] = [numbers("range"), numbers("late"), words.get("cursor")];
  state.search = words.get("search") ?? "";
  state.filter = words.get("filter") ?? "";
  state.tab = words.get("tab") ?? state.tab;
  const clock = words.get("clock");
  if (clock === "wall" || clock === "trace") state.clock = clock;
  if (cursor && Number.isFinite(Number(cursor))) state.cursor = Number(cursor);
  if (late) state.selected = { task: late[0], end: late[1] };
  if (range && range[0] < range[1]) [state.begin, state.end] = range;
  return range !== null;
}
