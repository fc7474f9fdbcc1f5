// What lies under a place of the timeline, in words.

import * as beside from "./beside";
import { factsOf, taskName } from "./names";
import { duration, instant, percent } from "./text";
import { KINDS, type Stretch, type Tile, detailOf, isInferred, kindOf } from "./tile";
import { type Row, isCpu } from "./tracks";

/** The order from the ground up, so that rare handlers stand on top. */
export const STACK = [2, 3, 6, 5, 4];
const OF_CPU = ["unknown", "idle", "tasks", "system calls", "interrupts", "softirqs", ""];
const OF_THREAD = ["unknown", "blocked", "running", "system calls", "interrupted", "interrupted by softirqs", "waiting for a CPU"];
const ONE_OF_CPU = ["nobody knows", "idle", "", "a system call", "an interrupt", "a softirq", ""];
const ONE_OF_THREAD = ["nobody knows", "blocked", "running", "in a system call", "interrupted", "interrupted by a softirq", "waiting for a CPU"];

const prio = (task: number) => {
  const facts = factsOf(task);
  return facts?.prio ? `${taskName(task)}, ${facts.prio}` : taskName(task);
};

export function trackWords(row: Row, tile: Tile, ns: number): string | null {
  const track = tile.tracks.get(row.id);
  if (!track || ns < tile.begin || ns >= tile.end) return null;
  if (beside.isBeside(row.id)) return beside.words(row.id, track, tile, ns, (tile.end - tile.begin) / tile.columns);
  if (track.stretches) {
    const one = stretchAt(track.stretches, ns);
    return `${row.label}: ${one ? inWords(row, one) : "nobody knows"}`;
  }
  const { count, shares, leaders } = track.columns!;
  const column = Math.min(Math.floor(((ns - tile.begin) / (tile.end - tile.begin)) * count), count - 1);
  const told: string[] = [];
  for (const kind of [...STACK, 1, 0]) {
    const share = shares[column * KINDS + kind]!;
    const what = (isCpu(row.id) ? OF_CPU : OF_THREAD)[kind]!;
    if (share > 0) told.push(`${share === 1 ? "< 1 %" : percent(share / 255)} ${what}`);
  }
  const leader = leaders[column]!, task = detailOf(leader) - 1, kind = kindOf(leader);
  const who = task >= 0 && isCpu(row.id) && kind > 1 ? `; most of it ${taskName(task)}`
    : task >= 0 && kind === 6 ? `; mostly behind ${taskName(task)}` : "";
  return `${row.label}, ${duration((tile.end - tile.begin) / count)} a pixel: ${told.join(", ")}${who}`;
}

export const stretchAt = (all: Stretch[], ns: number): Stretch | undefined => {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle]!.end <= ns) low = middle + 1; else high = middle;
  }
  const one = all[low];
  return one && one.begin <= ns ? one : undefined;
};

function inWords(row: Row, one: Stretch): string {
  const kind = kindOf(one.state), detail = detailOf(one.state) - 1;
  let what = (isCpu(row.id) ? ONE_OF_CPU : ONE_OF_THREAD)[kind]!;
  if (isCpu(row.id) && detail >= 0 && kind > 1) what = kind === 2 ? prio(detail) : `${what} ${kind === 3 ? "of" : "on the time of"} ${prio(detail)}`;
  if (!isCpu(row.id) && detail >= 0 && kind > 1 && kind < 6) what += ` on CPU ${detail}`;
  const more = isCpu(row.id) ? "" : kind === 6 && detail >= 0 ? `, most of it behind ${prio(detail)}` : kind === 1 ? wokenBy(one.state) : "";
  return `${what} for ${duration(one.end - one.begin)}, from ${instant(one.begin, one.end - one.begin)}${more}${isInferred(one.state) ? "; its begin was inferred" : ""}`;
}

function wokenBy(state: number): string {
  const [what, number] = waker(state);
  return ["", `, woken by ${taskName(number)}`, ", woken by a timer", `, woken by interrupt ${number}`, `, woken by softirq ${number}`][what] ?? "";
}

/** What ended a wait for something: 1 a task, 2 a timer, 3 an interrupt, 4 a softirq; and its number. */
export function waker(state: number): [number, number] {
  const detail = state >>> 4;
  return [detail >>> 25, detail & 0x1ffffff];
}
