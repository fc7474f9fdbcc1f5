// Periods that who looks defines, each from an event to another one: bars in a strip above the tracks.

import * as api from "./api";
import { colourOf } from "./beside";
import { css, onColour } from "./colours";
import { label } from "./draw";
import type { Pen } from "./pen";
import { onChange, state } from "./state";
import { counted, duration, named, problem, stopped } from "./text";

interface Period { begin: number; end: number; name: string; lane: number }
/** Of more that are open at once, the others lie over each other in the last lane. */
const LANES = 3;
/** So many rows of a report come at once. */
const MOST = 1000;

let found: Period[] = [], more = 0, failed = "", asked: AbortController | null = null, waiting = 0;
let drawn: () => void = () => {};

export const areDefined = () => state.periods.trim() !== "";

/** Says whom to tell that there is something else to draw. */
export function start(redraw: () => void) {
  drawn = redraw;
  onChange((part) => {
    // They are looked for among the events: when the range has come to rest.
    if (part === "periods") load(0);
    else if (areDefined() && (part === "range" || part === "info")) load(400);
  });
}

function load(after: number) {
  clearTimeout(waiting);
  asked?.abort();
  if (!areDefined()) { [found, more, failed] = [[], 0, ""]; drawn(); return; }
  waiting = window.setTimeout(async () => {
    asked = new AbortController();
    try {
      const report = await api.report({ name: "periodlog", periods: state.periods, begin: Math.floor(state.begin), end: Math.ceil(state.end), limit: MOST }, asked.signal);
      const table = report.tables[0], at = (key: string) => table?.columns.findIndex((column) => column.key === key) ?? -1;
      const [begin, end, name] = [at("begin_ts"), at("end_ts"), at("name")];
      [found, more, failed] = [inLanes((table?.rows ?? []).map((row) => ({ begin: Number(row[begin]), end: Number(row[end]), name: String(row[name] ?? ""), lane: 0 }))), table?.left_out ?? 0, ""];
    } catch (error) {
      if (stopped(error)) return;
      [found, more, failed] = [[], 0, problem(error)];
    }
    drawn();
  }, after);
}

function inLanes(all: Period[]): Period[] {
  const free: number[] = new Array(LANES).fill(-Infinity);
  return all.sort((a, b) => a.begin - b.begin || b.end - a.end).map((one) => {
    const first = free.findIndex((end) => end <= one.begin), lane = first < 0 ? LANES - 1 : first;
    free[lane] = Math.max(free[lane]!, one.end);
    return { ...one, lane };
  });
}

export const title = () => (failed ? "periods: see Reports" : `periods: ${counted(found.length, "period")}${more ? " and more" : ""}`);

export function draw(pen: Pen, top: number, size: number, xOf: (ns: number) => number) {
  const lanes = Math.max(1, ...found.map((one) => one.lane + 1)), each = (size - 4) / lanes, names = [...new Set(found.map((one) => one.name))].sort();
  for (const one of found) {
    const x = xOf(one.begin), w = Math.max(xOf(one.end) - x, 1), y = top + 2 + one.lane * each, colour = colourOf(names.indexOf(one.name));
    pen.fillStyle = colour;
    pen.fillRect(x, y, w, each - 0.5);
    pen.fillStyle = css("--back");
    pen.fillRect(x, y, Math.min(w / 4, 1), each - 0.5);
    pen.fillStyle = onColour(colour);
    if (lanes === 1) label(pen, named(one.name), x, y + each / 2, w);
  }
}

/** Those at an instant, in words. */
export function words(ns: number): string | null {
  if (failed) return failed;
  const here = found.filter((one) => one.begin <= ns && ns < Math.max(one.end, one.begin + 1));
  return here.length ? here.slice(0, 8).map((one) => `${named(one.name) || "period"}: ${duration(one.end - one.begin)}`).join(" · ") : null;
}
