// What all views share: the range, the cursor, what is selected.

import type { Activation, Info } from "./api";

export type Clock = "after" | "wall" | "trace";
export interface Selected { task: number; end: number }
export interface Bookmark { begin: number; end: number; name: string }

export const state = {
  info: null as Info | null,
  begin: 0, end: 1,
  cursor: null as number | null,
  search: "", filter: "", tab: "latencies",
  /** Definitions of periods, one a line. */
  periods: "",
  clock: "after" as Clock,
  selected: null as Selected | null,
  /** The thread that views of one thread are about. */
  thread: null as number | null,
  /** The ledger of what is selected, once it is known. */
  activation: null as Activation | null,
  /** The tracks of who made it late. */
  involved: [] as string[],
  /** Tracks that stay on top. */
  pins: [] as string[],
  sort: "run", group: "", cpus: true,
  /** Which tracks stand beside those of the kernel. */
  frequency: false, idle: false, users: true,
  /** Integer fields of events, each `event.field`. */
  counters: [] as string[],
  /** Fields that have columns of their own in the table of events. */
  columns: [] as string[],
  bookmarks: [] as Bookmark[],
  /** The range that is being drawn with the mouse. */
  drawn: null as [number, number] | null,
};

/** What the threads are sorted by, and in words. */
export const SORTS = {
  run: "ran most first", waits: "waited most first", blocked: "blocked longest first", prio: "most urgent first", name: "by name", tid: "by id",
};

type Part = "range" | "cursor" | "selected" | "search" | "look" | "info" | "tracks" | "filter" | "periods";
const listeners: ((part: Part) => void)[] = [];
const before: [number, number][] = [], after: [number, number][] = [];

export const onChange = (listener: (part: Part) => void) => void listeners.push(listener);
export function changed(part: Part) { listeners.forEach((listener) => listener(part)); }

const length = () => Math.max(state.info?.length_ns ?? 1, 1);

/** What is shown now can be had back. */
export function remember() {
  before.push([state.begin, state.end]);
  after.length = 0;
  if (before.length > 200) before.shift();
}

/** Shows another range; what was shown can be had back. */
export function show(begin: number, end: number, isStep = true) {
  const whole = length();
  const span = Math.min(Math.max(end - begin, 100), Math.max(whole * 1.1, 100));
  const first = Math.min(Math.max((begin + end - span) / 2, -whole * 0.05), whole * 1.05 - span);
  if (isStep && (Math.abs(first - state.begin) > span / 100 || Math.abs(span - (state.end - state.begin)) > span / 100)) remember();
  [state.begin, state.end] = [first, first + span];
  changed("range");
}

function go(from: [number, number][], to: [number, number][]) {
  const range = from.pop();
  if (!range) return;
  to.push([state.begin, state.end]);
  show(range[0], range[1], false);
}
export const back = () => go(before, after);
export const forward = () => go(after, before);
export const whole = () => show(0, length());

export function setCursor(ns: number | null) {
  state.cursor = ns;
  changed("cursor");
}

export function pin(id: string) {
  state.pins = state.pins.includes(id) ? state.pins.filter((one) => one !== id) : [...state.pins, id];
  changed("tracks");
}

/** The thread that views of one thread are about. */
export function choose(task: number | null) {
  state.thread = task;
  changed("selected");
}

/** Remembers the range that is shown. */
export function bookmark(name: string) {
  state.bookmarks = [...state.bookmarks, { begin: state.begin, end: state.end, name }].slice(-100);
  changed("look");
}
