// What stands beside the kernel's tracks: frequencies, idle states, events and spans of applications, counters.

import * as api from "./api";
import { css, hatch, onColour } from "./colours";
import type { Place } from "./draw";
import { label } from "./draw";
import { stretchAt } from "./hover";
import type { Pen } from "./pen";
import { state } from "./state";
import { count, counted, duration, instant, named, percent, problem } from "./text";
import { type Numbers, KINDS, type Stretch, type Tile, type TileTrack, detailOf, kindOf } from "./tile";

/** Which of them an id is of; none of a CPU's or a thread's. */
export const isBeside = (id: string) => /^[fiun]/.test(id);
const COLOURS = ["#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#f0e442", "#0072b2"];
export const colourOf = (name: number) => COLOURS[(Math.imul(name + 1, 0x9e3779b1) >>> 16) % COLOURS.length]!;

let names: string[] = [], asked = -1;
const users = new Map<string, api.User>();
const told = new Map<string, api.Counter>();
/** The greatest number that was drawn, by kind: what was seen once keeps its scale. */
const most: Record<string, number> = {};

export const nameOf = (place: number) => (names[place] === undefined ? `event ${place}` : named(names[place]!));
export const counterOf = (name: string) => told.get(name);

export function labelOf(id: string): string {
  const number = Number(id.slice(1));
  if (id[0] === "f") return `CPU ${number} frequency`;
  if (id[0] === "i") return `CPU ${number} idle state`;
  if (id[0] === "n") return named(state.counters[number] ?? `counter ${number}`);
  const user = users.get(id);
  if (!user) return `application ${number}`;
  return `${named(user.name) || "thread"} (${user.tid}) ${user.lane === null ? "events" : `spans${user.lane ? ` ${user.lane + 1}` : ""}`}`;
}

/** Asks which there are of those that are wanted. */
export async function load(limit: number) {
  const info = state.info, none: api.TrackRow[] = [];
  const some = async (wanted: boolean, kind: string, words = {}) => (wanted ? (await api.tracks({ kind, limit, ...words })).tracks : none);
  const [frequency, idle, user] = await Promise.all([
    some(state.frequency && !!info?.frequencies, "frequency"), some(state.idle && !!info?.idle_states, "idle"),
    some(state.users && !!info?.user_tracks, "user", { search: state.search }),
  ]);
  if (info?.user_tracks && asked !== info.events) {
    asked = info.events;
    names = (await api.names()).names;
  }
  for (const row of user) if (row.user) users.set(row.id, row.user);
  const unknown = state.counters.filter((name) => !told.has(name));
  // One by one: its name may be anything.
  for (const name of unknown) {
    try { for (const one of (await api.counters(name)).counters) told.set(name, one); } catch (error) {
      // The tracks of all others are there all the same.
      told.set(name, { name, count: 0, least: null, most: null, cut: false, error: problem(error) });
    }
  }
  return { frequency: new Set(frequency.map((row) => row.id)), idle: new Set(idle.map((row) => row.id)), user };
}

/** A number of a track in words. */
function worded(id: string, value: number): string {
  if (id[0] === "f") return value >= 1e6 ? `${+(value / 1e6).toFixed(3)} GHz` : `${+(value / 1e3).toFixed(3)} MHz`;
  if (id[0] === "i") return value < 0 ? "not idle" : `idle state ${value}`;
  return count(value);
}

export function draw(pen: Pen, id: string, track: TileTrack, tile: Tile, place: Place, height: number) {
  if (track.stretches) track.stretches.forEach((one) => drawSpan(pen, one, place, height));
  else if (track.columns) drawSpans(pen, track.columns, tile, place, height);
  else if (track.numbers && id[0] === "u") drawEvents(pen, track.numbers, tile, place, height);
  else if (track.numbers) drawNumbers(pen, id, track.numbers, tile, place, height);
}

function drawSpan(pen: Pen, one: Stretch, { left, width, top, xOf }: Place, height: number) {
  const x = Math.max(xOf(one.begin), left - 1), w = Math.max(Math.min(xOf(one.end), left + width + 1) - x, 0.6);
  const kind = kindOf(one.state), name = detailOf(one.state) - 1;
  if (kind === 0 || x > left + width || x + w < left) return;
  pen.fillStyle = css("--back");
  pen.fillRect(x, top, w, height);
  if (kind !== 2) return;
  const colour = colourOf(name);
  pen.fillStyle = colour;
  pen.fillRect(x, top + 2, w, height - 4);
  // Where one ends and the next begins.
  pen.fillStyle = css("--back");
  if (w > 4) pen.fillRect(x + w - 0.5, top + 2, 0.5, height - 4);
  pen.fillStyle = onColour(colour);
  label(pen, nameOf(name), x, top + height / 2, w);
}

function drawSpans(pen: Pen, { count, shares, leaders }: NonNullable<TileTrack["columns"]>, tile: Tile, { top, xOf }: Place, height: number) {
  const each = (tile.end - tile.begin) / count;
  for (let column = 0; column < count; column++) {
    const x = xOf(tile.begin + column * each), w = xOf(tile.begin + (column + 1) * each) - x + 0.5;
    const share = shares[column * KINDS + 2]! / 255, unknown = shares[column * KINDS]! / 255;
    if (unknown < 1) { pen.fillStyle = css("--back"); pen.fillRect(x, top + height * unknown, w, height); }
    if (share === 0) continue;
    pen.fillStyle = kindOf(leaders[column]!) === 2 ? colourOf(detailOf(leaders[column]!) - 1) : COLOURS[0]!;
    const size = Math.max(share * (height - 4), 1);
    pen.fillRect(x, top + height - 2 - size, w, size);
  }
}

function drawEvents(pen: Pen, numbers: Numbers, tile: Tile, { left, width, top, xOf }: Place, height: number) {
  pen.fillStyle = css("--back");
  pen.fillRect(left, top, width, height);
  if (numbers.at) {
    numbers.at.forEach((at, place) => { pen.fillStyle = colourOf(numbers.last[place]!); pen.fillRect(xOf(at) - 0.75, top + 2, 1.5, height - 4); });
    return;
  }
  const each = (tile.end - tile.begin) / numbers.last.length, greatest = numbers.counts!.reduce((a, b) => Math.max(a, b), 1);
  numbers.counts!.forEach((came, column) => {
    if (!came) return;
    pen.fillStyle = colourOf(numbers.last[column]!);
    const size = (height - 4) * (0.3 + (0.7 * Math.log(came + 1)) / Math.log(greatest + 1));
    pen.fillRect(xOf(tile.begin + column * each), top + height - 2 - size, Math.max((width / numbers.last.length) * 0.9, 1), size);
  });
}

/** From where to where the numbers of a track reach. */
function scale(id: string, numbers: Numbers): [number, number] {
  const counter = id[0] === "n" ? told.get(state.counters[Number(id.slice(1))] ?? "") : undefined;
  if (counter) return [Math.min(counter.least ?? 0, 0), Math.max(counter.most ?? 0, 1)];
  for (const value of numbers.most) if (value > (most[id[0]!] ?? 0)) most[id[0]!] = value;
  return [id[0] === "i" ? -1 : 0, Math.max(most[id[0]!] ?? 0, id[0] === "i" ? 0 : 1)];
}

function drawNumbers(pen: Pen, id: string, numbers: Numbers, tile: Tile, { left, width, top, xOf }: Place, height: number) {
  const [low, high] = scale(id, numbers), size = (value: number) => ((value - low) / (high - low)) * (height - 2);
  const each = (tile.end - tile.begin) / numbers.last.length;
  numbers.last.forEach((last, place) => {
    const begin = numbers.at ? numbers.at[place]! : tile.begin + place * each;
    const end = numbers.at ? (numbers.at[place + 1] ?? state.info?.length_ns ?? tile.end) : begin + each;
    const x = Math.max(xOf(begin), left), w = Math.min(xOf(end), left + width) - x;
    const [least, greatest] = [numbers.least[place]!, numbers.most[place]!];
    // Hatched below: nobody knows.
    if (w <= 0 || Number.isNaN(greatest)) return;
    pen.fillStyle = css("--back");
    pen.fillRect(x, top, w + 0.5, height);
    pen.fillStyle = "#7fb2d6";
    pen.fillRect(x, top + height - 1 - size(greatest), w + 0.5, Math.max(size(greatest), 0.5));
    // Up to the least it is full; between that and the greatest it went up and down.
    pen.fillStyle = "#0072b2";
    pen.fillRect(x, top + height - 1 - size(least), w + 0.5, Math.max(size(least), 0.5));
    if (Number.isNaN(last)) { pen.fillStyle = hatch(pen); pen.fillRect(x, top, w + 0.5, height); }
  });
}

/** What a place of such a track says. */
export function words(id: string, track: TileTrack, tile: Tile, ns: number, pixel: number): string {
  const what = labelOf(id), why = id[0] === "n" ? told.get(state.counters[Number(id.slice(1))] ?? "")?.error : null;
  if (why) return `${what}: ${why}`;
  if (track.stretches) {
    const one = stretchAt(track.stretches, ns), kind = one ? kindOf(one.state) : 0;
    if (!one || kind === 0) return `${what}: nobody knows`;
    return `${what}: ${kind === 2 ? nameOf(detailOf(one.state) - 1) : "none"} for ${duration(one.end - one.begin)}, from ${instant(one.begin, one.end - one.begin)}`;
  }
  if (track.columns) {
    const { count, shares, leaders } = track.columns, column = Math.min(Math.floor(((ns - tile.begin) / (tile.end - tile.begin)) * count), count - 1);
    const share = shares[column * KINDS + 2]! / 255, leader = leaders[column]!;
    return `${what}: ${percent(share)} in spans${share > 0 && kindOf(leader) === 2 ? `, most of it ${nameOf(detailOf(leader) - 1)}` : ""}`;
  }
  const numbers = track.numbers;
  return numbers ? `${what}${id[0] === "u" ? eventsAt(numbers, tile, ns, pixel) : numbersAt(id, numbers, tile, ns)}` : what;
}

/** The place of the number that holds at an instant; -1 before the first. */
function placeAt(numbers: Numbers, tile: Tile, ns: number): number {
  if (!numbers.at) return Math.min(Math.floor(((ns - tile.begin) / (tile.end - tile.begin)) * numbers.last.length), numbers.last.length - 1);
  return numbers.at.filter((at) => at <= ns).length - 1;
}

function eventsAt(numbers: Numbers, tile: Tile, ns: number, pixel: number): string {
  if (!numbers.at) return `: ${counted(numbers.counts![placeAt(numbers, tile, ns)] ?? 0, "event")} in this pixel`;
  const near = [...numbers.at.keys()].filter((place) => Math.abs(numbers.at![place]! - ns) <= pixel * 3);
  near.sort((a, b) => Math.abs(numbers.at![a]! - ns) - Math.abs(numbers.at![b]! - ns));
  return near.length ? `: ${nameOf(numbers.last[near[0]!]!)} at ${instant(numbers.at[near[0]!]!, 1)}` : ": none right here";
}

function numbersAt(id: string, numbers: Numbers, tile: Tile, ns: number): string {
  const place = placeAt(numbers, tile, ns), [least, greatest] = [numbers.least[place], numbers.most[place]];
  if (place < 0 || greatest === undefined || least === undefined || Number.isNaN(greatest)) return ": nobody knows";
  return least === greatest ? `: ${worded(id, greatest)}` : `: ${worded(id, least)} to ${worded(id, greatest)}`;
}
