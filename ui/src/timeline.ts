// The timeline: tracks, losses, what matches the filter, the chain and the ledger of what is selected.

import * as api from "./api";
import { Chart } from "./chart";
import { css, hatch, kindColour, onColour, termColour } from "./colours";
import { drawTrack, label } from "./draw";
import { isBeside } from "./beside";
import { trackWords, waker } from "./hover";
import { need } from "./names";
import * as periods from "./periods";
import type { Pen } from "./pen";
import { onChange, state } from "./state";
import { counted, day, duration, el, instant, stopped } from "./text";
import { places } from "./axis";
import { type Tile, decode, detailOf, kindOf } from "./tile";
import { ROW, type Row, heightOf, isCpu, losses, load as loadRows, rowAt, rowOf, rows, taskOf } from "./tracks";

const RULER = 24, STRIP = 22, LOST = "#d55e00";
export const SCROLLBAR = 10;
/** More arrows than this hide what they are drawn over. */
const ARROWS = 60;

const section = document.getElementById("timeline")!;
export const chart = new Chart(draw, section.querySelector("canvas")!, () => load());
let tile: Tile | null = null, marks: api.Marks | null = null, marked = "", refused = false;
let scroll = 0, asked: AbortController | null = null, waiting = 0;

/** The names of the tracks: no more than a third of a narrow window. */
export const gutter = () => Math.min(190, Math.round(chart.width / 3));
export const width = () => Math.max(chart.width - gutter() - SCROLLBAR, 10);
export const span = () => state.end - state.begin;
export const xOf = (ns: number) => gutter() + ((ns - state.begin) / span()) * width();
export const nsOf = (x: number) => state.begin + ((x - gutter()) / width()) * span();
const strips = () => (state.activation ? 1 : 0) + (state.filter ? 1 : 0) + (periods.areDefined() ? 1 : 0);
/** Where the strip of periods is: below the others. */
const periodsTop = () => RULER + (strips() - 1) * STRIP;
const head = () => RULER + strips() * STRIP;
const topOf = (row: Row) => head() + row.top - scroll;
const visible = () => rows.filter((row) => row.top + ROW > scroll && row.top - scroll < chart.height - head());

export async function loadTracks() {
  await loadRows();
  scrollTo(scroll);
}

export function scrollTo(to: number) {
  const most = Math.max(heightOf() - (chart.height - head()), 0);
  scroll = Math.min(Math.max(to, 0), most);
  load();
}
export const scrollBy = (by: number) => scrollTo(scroll + by);

/** For who measures: how long a tile took, and how long until it was drawn. */
function measured(name: string, start: number) {
  if (++measures % 1000 === 0) performance.clearMeasures();
  performance.measure(name, { start });
}
let measures = 0, wanted = 0;

function load() {
  clearTimeout(waiting);
  wanted ||= performance.now();
  waiting = window.setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    const range = { begin: Math.floor(state.begin), end: Math.ceil(state.end), columns: Math.min(Math.round(width()), 4096) };
    const tracks = visible().map((row) => row.id).filter(Boolean).slice(0, 500).join(",");
    try {
      const begun = performance.now();
      tile = decode(await api.tile({ ...range, tracks, counters: state.counters.join(",") }, asked.signal));
      measured("tile", begun);
      const start = wanted;
      wanted = 0;
      chart.redraw();
      requestAnimationFrame(() => measured("drawn", start));
      await loadNames();
      await loadMarks(range, asked.signal);
    } catch (error) {
      if (!stopped(error)) wanted = 0;
      // The line above the timeline says what is wrong with the server.
      if (!stopped(error)) console.warn(error);
    }
    chart.redraw();
  }, 15);
  chart.redraw();
}

async function loadNames() {
  const wanted = new Set<number>();
  for (const [id, track] of tile?.tracks ?? []) {
    const states = track.stretches?.map((one) => one.state) ?? track.columns?.leaders ?? [];
    for (const one of states) {
      const kind = kindOf(one), task = detailOf(one) - 1;
      if (isBeside(id)) continue;
      if (task >= 0 && kind > 1 && (isCpu(id) || kind === 6)) wanted.add(task);
      if (!isCpu(id) && kind === 1 && waker(one)[0] === 1) wanted.add(waker(one)[1]);
    }
  }
  await need(wanted);
}

async function loadMarks(range: { begin: number; end: number; columns: number }, signal: AbortSignal) {
  marked = state.filter;
  refused = false;
  if (!marked) { marks = null; return; }
  try { marks = await api.marks({ ...range, filter: marked }, signal); } catch (error) {
    if (stopped(error)) throw error;
    // The table of events says what is wrong with the filter.
    [marks, refused] = [null, true];
  }
}

function draw(pen: Pen, w: number, h: number) {
  pen.save();
  pen.beginPath();
  pen.rect(0, head(), w, h - head());
  pen.clip();
  for (const row of visible()) drawRow(pen, row);
  for (const loss of losses) drawLoss(pen, loss);
  drawWakeups(pen);
  if (state.activation) drawChain(pen, h);
  pen.restore();
  drawRuler(pen, w);
  let top = RULER;
  if (state.activation) { drawLedger(pen, top); top += STRIP; }
  if (state.filter) drawMarks(pen, top);
  if (periods.areDefined()) {
    strip(pen, periodsTop(), periods.title());
    periods.draw(pen, periodsTop(), STRIP, xOf);
    pen.restore();
  }
  drawOver(pen, h);
  drawScrollbar(pen, w, h);
}

function drawRow(pen: Pen, row: Row) {
  const top = topOf(row), task = taskOf(row.id);
  const chosen = task !== null && (task === state.thread || task === state.selected?.task);
  if (chosen) { pen.fillStyle = css("--raised"); pen.fillRect(0, top, gutter(), ROW); }
  const pinned = state.pins.includes(row.id), left = (row.indent ? 20 : 8) + (pinned ? 12 : 0);
  if (pinned) { pen.fillStyle = css("--accent"); pen.beginPath(); pen.arc(13, top + ROW / 2 - 1, 3.5, 0, 7); pen.fill(); }
  pen.fillStyle = css(row.title ? "--faint" : "--text");
  pen.fillText(row.label, left, top + ROW / 2 - 1, row.title ? chart.width - 16 : gutter() - left - 6);
  if (row.id) drawTrack(pen, row, tile?.tracks.get(row.id), tile, { left: gutter(), width: width(), top: top + 2, xOf });
  pen.fillStyle = css("--line");
  pen.fillRect(0, top + ROW - 1, chart.width, 0.5);
}

function drawLoss(pen: Pen, loss: api.Loss) {
  const [x, end] = [Math.max(xOf(loss.begin_ns), gutter()), Math.min(xOf(loss.end_ns), gutter() + width())];
  if (end < gutter() || x > gutter() + width()) return;
  const mark = (y: number) => { pen.fillStyle = LOST; pen.fillRect(x, y, Math.max(end - x, 2), 3); };
  // Where nobody knows of which CPU, it is of each: also where none of them is shown.
  if (loss.cpu === null) mark(head());
  for (const row of visible().filter((one) => isCpu(one.id) && (loss.cpu === null || one.id === `c${loss.cpu}`))) {
    // A mark at the place's foot. What was recorded inside is drawn, and hatched: it may not be all.
    mark(topOf(row) + ROW - 4);
    pen.fillStyle = hatch(pen);
    pen.fillRect(x, topOf(row) + 2, end - x, ROW - 6);
  }
}

/** From who woke a thread to the thread, where both are seen; where there are too many, those of the chosen one. */
function drawWakeups(pen: Pen) {
  const all: { x: number; from: Row; to: Row }[] = [], seen = visible();
  for (const to of seen) {
    if (isCpu(to.id) || isBeside(to.id)) continue;
    for (const one of tile?.tracks.get(to.id)?.stretches ?? []) {
      if (kindOf(one.state) !== 1) continue;
      const [what, task] = waker(one.state), from = what === 1 ? rowOf(`t${task}`) : undefined, x = xOf(one.end);
      if (from && from !== to && x >= gutter() && x <= gutter() + width()) all.push({ x, from, to });
    }
  }
  const chosen = `t${state.thread}`, few = all.length <= ARROWS ? all : all.filter(({ from, to }) => from.id === chosen || to.id === chosen);
  if (few.length > ARROWS) return;
  pen.strokeStyle = css("--faint");
  pen.lineWidth = 1;
  for (const { x, from, to } of few) {
    const down = from.top < to.top;
    // From the middle of a row: between neighbours there is no room for a head, which says who woke whom.
    arrow(pen, [x, topOf(from) + ROW / 2], [x, topOf(to) + (down ? 2 : ROW - 4)]);
  }
}

/** A place on the way from one to another, so far before that. */
function before([fromX, fromY]: [number, number], [x, y]: [number, number], by: number): [number, number] {
  const length = Math.hypot(x - fromX, y - fromY), share = length > by ? by / length : 0;
  return [x - (x - fromX) * share, y - (y - fromY) * share];
}

/** A line with a head, which a line that is too short for one has not. */
function arrow(pen: Pen, [fromX, fromY]: [number, number], [x, y]: [number, number]) {
  const length = Math.hypot(x - fromX, y - fromY), [dx, dy] = [(x - fromX) / length, (y - fromY) / length];
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(x, y);
  if (length > 8) {
    pen.moveTo(x - 4 * dx - 3 * dy, y - 4 * dy + 3 * dx);
    pen.lineTo(x, y);
    pen.lineTo(x - 4 * dx + 3 * dy, y - 4 * dy - 3 * dx);
  }
  pen.stroke();
}

/** The chain of what is selected: from each step's CPU to the next one's. */
function drawChain(pen: Pen, h: number) {
  const late = state.activation!;
  pen.save();
  pen.beginPath();
  pen.rect(gutter(), head(), width(), h);
  pen.clip();
  const [x, end] = [xOf(late.origin_ns), xOf(late.end_ns)];
  pen.fillStyle = css("--accent");
  pen.globalAlpha = 0.1;
  pen.fillRect(x, head(), end - x, h);
  pen.globalAlpha = 1;
  for (const edge of [x, end]) pen.fillRect(edge - 0.5, head(), 1, h);
  const place = (cpu: number) => { const row = rowOf(`c${cpu}`); return row ? topOf(row) + 3 : head() + 3; };
  pen.strokeStyle = pen.fillStyle = css("--text");
  pen.lineWidth = 1.5;
  late.steps.forEach((step, at) => {
    const [fromX, fromY] = [xOf(step.time_ns), place(step.cpu)];
    pen.beginPath();
    pen.arc(fromX, fromY, 3, 0, 7);
    pen.fill();
    const next = late.steps[at + 1];
    // It ends at the next dot's edge.
    if (next) arrow(pen, [fromX, fromY], before([fromX, fromY], [xOf(next.time_ns), place(next.cpu)], 3));
  });
  pen.restore();
}

/** A block is as high as the share of its stretch that the term has: nothing small looks large. */
const density = (term: api.Term) => Math.min(term.duration_ns / Math.max(term.range.end_ns - term.range.begin_ns, 1), 1);

function drawLedger(pen: Pen, top: number) {
  const late = state.activation!;
  strip(pen, top, "ledger");
  // What is spread over its stretch lies below what fills its own; what is rare stays visible on top.
  const layer = (term: api.Term) => (density(term) >= 0.9 ? 1 : density(term) < 0.1 ? 2 : 0);
  const terms = [...late.ledger.terms].sort((a, b) => layer(a) - layer(b) || density(b) - density(a) || b.duration_ns - a.duration_ns);
  for (const term of terms) {
    const x = Math.max(xOf(term.range.begin_ns), gutter()), end = Math.min(xOf(term.range.end_ns), gutter() + width());
    if (end < gutter() || x > gutter() + width()) continue;
    const size = Math.max(density(term) * (STRIP - 4), 2), w = Math.max(end - x, 1), colour = termColour(term, late.ledger.terms);
    pen.fillStyle = term.kind === "unexplained" ? hatch(pen) : colour;
    pen.fillRect(x, top + STRIP - 2 - size, w, size);
    pen.fillStyle = term.kind === "unexplained" ? css("--text") : onColour(colour);
    if (layer(term) === 1) label(pen, `${term.text} ${duration(term.duration_ns)}`, x, top + STRIP / 2, w);
  }
  pen.restore();
}

/** A strip above the tracks; what is drawn into it stays inside until the pen is restored. */
function strip(pen: Pen, top: number, name: string) {
  pen.fillStyle = css("--text");
  pen.fillText(name, 8, top + STRIP / 2, gutter() - 14);
  pen.save();
  pen.beginPath();
  pen.rect(gutter(), top, width(), STRIP);
  pen.clip();
}

function drawMarks(pen: Pen, top: number) {
  strip(pen, top, marks ? `filter: ${counted(marks.total, "event")}` : refused ? "filter: see Events" : "filter: …");
  if (marks && tile) {
    const each = (tile.end - tile.begin) / marks.counts.length, most = marks.counts.reduce((a, b) => Math.max(a, b), 1);
    pen.fillStyle = css("--accent");
    marks.counts.forEach((count, column) => {
      if (!count) return;
      const x = xOf(tile!.begin + column * each), size = (STRIP - 4) * (0.3 + 0.7 * (Math.log(count + 1) / Math.log(most + 1)));
      pen.fillRect(x, top + STRIP - 2 - size, Math.max(xOf(tile!.begin + (column + 1) * each) - x, 1.5), size);
    });
  }
  pen.restore();
}

function drawRuler(pen: Pen, w: number) {
  pen.fillStyle = css("--back");
  pen.fillRect(0, 0, w, RULER);
  const { step, at } = places(state.begin, state.end, Math.max(width() / 140, 1));
  for (const ns of at) {
    const x = xOf(ns), text = instant(ns, step);
    pen.fillStyle = css("--faint");
    pen.fillRect(x, RULER - 6, 1, 6);
    if (x + 3 + pen.measureText(text).width < w) pen.fillText(text, x + 3, RULER / 2 - 1);
  }
  pen.fillStyle = css("--back");
  pen.fillRect(0, 0, gutter(), RULER);
  pen.fillStyle = css("--text");
  pen.fillText(state.clock === "wall" ? day(state.begin) : `${duration(span())} shown`, 8, RULER / 2, gutter() - 14);
  pen.fillStyle = css("--line");
  pen.fillRect(0, RULER - 0.5, w, 0.5);
}

function drawOver(pen: Pen, h: number) {
  for (const [at, mark] of state.bookmarks.entries()) {
    const x = xOf((mark.begin + mark.end) / 2);
    if (x < gutter() || x > gutter() + width()) continue;
    pen.fillStyle = "#cc79a7";
    pen.fillRect(x - 0.5, 0, 1, h);
    pen.fillRect(x, 0, 16, 13);
    pen.fillStyle = "#000000";
    pen.fillText(String(at + 1), x + 4, 7);
  }
  if (state.cursor !== null) {
    const x = xOf(state.cursor);
    if (x >= gutter()) { pen.fillStyle = css("--accent"); pen.fillRect(x - 1, 0, 2, h); }
  }
  if (state.drawn) {
    const chosen = [xOf(state.drawn[0]), xOf(state.drawn[1])] as const;
    pen.fillStyle = css("--accent");
    pen.globalAlpha = 0.2;
    pen.fillRect(chosen[0], 0, chosen[1] - chosen[0], h);
    pen.globalAlpha = 1;
    pen.fillStyle = css("--text");
    pen.fillText(duration(state.drawn[1] - state.drawn[0]), chosen[0] + 4, head() + 8);
  }
}

/** Where the bar at the right edge is that says how many tracks there are; none when all are seen. */
export function scrollbar(): { top: number; size: number; room: number } | null {
  const room = chart.height - head(), all = heightOf();
  if (room <= 0 || all <= room) return null;
  const size = Math.max((room * room) / all, 24);
  return { top: head() + (scroll / (all - room)) * (room - size), size, room };
}
/** Scrolls as the bar is drawn to a height. */
export function scrollBarTo(top: number) {
  const bar = scrollbar();
  if (bar) scrollTo(((top - head()) / Math.max(bar.room - bar.size, 1)) * (heightOf() - bar.room));
}

function drawScrollbar(pen: Pen, w: number, h: number) {
  const bar = scrollbar();
  if (!bar) return;
  pen.fillStyle = css("--raised");
  pen.fillRect(w - SCROLLBAR, head(), SCROLLBAR, h - head());
  pen.fillStyle = css("--quiet");
  pen.fillRect(w - SCROLLBAR + 2, bar.top, SCROLLBAR - 4, bar.size);
}

/** The row at a height of the canvas. */
export const rowUnder = (y: number) => (y < head() ? undefined : rowAt(y - head() + scroll));

/** What lies under a place of the canvas, in words. */
export function under(x: number, y: number): string | null {
  const ns = nsOf(x);
  if (x < gutter()) {
    const row = rowUnder(y);
    return row?.id ? `${row.label} · click: choose it, double click: pin it to the top` : null;
  }
  if (state.activation && y > RULER && y < RULER + STRIP) {
    const inside = state.activation.ledger.terms.filter((term) => term.range.begin_ns <= ns && ns < term.range.end_ns);
    const words = inside.map((term) => `${term.text}: ${duration(term.duration_ns)}${term.pieces > 1 ? ` in ${term.pieces} pieces` : ""}`);
    return words.length ? words.join(" · ") : null;
  }
  if (periods.areDefined() && y > periodsTop() && y < periodsTop() + STRIP) return periods.words(ns);
  const row = rowUnder(y), words = row?.id && tile ? trackWords(row, tile, ns) : null;
  const lost = row && losses.find((loss) => (loss.cpu === null || row.id === `c${loss.cpu}`) && loss.begin_ns <= ns && ns < loss.end_ns);
  return words && lost ? `${words}; events were lost here (${lost.why}): this may not be all` : words;
}

/** The timeline as text: what each of its tracks did. */
export function asText(): string {
  const lines = [`from ${instant(state.begin, 1)} to ${instant(state.end, 1)}, ${duration(span())}`];
  const middle = state.cursor ?? (state.begin + state.end) / 2;
  if (tile) lines.push(`at ${instant(middle, 1)}:`, ...rows.filter((row) => tile!.tracks.has(row.id)).map((row) => trackWords(row, tile!, middle) ?? row.label));
  return `${lines.join("\n")}\n`;
}

export function legend() {
  const words = ["runs", "in a system call", "interrupt", "softirq", "waits for a CPU", "unknown"];
  const kinds = [2, 3, 4, 5, 6, 0];
  document.getElementById("legend")!.replaceChildren(...words.map((text, at) => {
    const box = el("i");
    box.style.background = kinds[at] ? kindColour(kinds[at]!) : "repeating-linear-gradient(135deg, var(--quiet) 0 1px, transparent 1px 4px)";
    const item = el("span", {}, box);
    item.append(text);
    return item;
  }));
}

export function start() {
  legend();
  periods.start(() => chart.redraw());
  let sorting = 0;
  onChange((part) => {
    if (part === "range") {
      load();
      clearTimeout(sorting);
      // The order by what happens here follows when the range has come to rest.
      if (["run", "waits", "blocked"].includes(state.sort)) sorting = window.setTimeout(() => void loadTracks(), 300);
    } else if (part === "search") { scroll = 0; void loadTracks(); }
    else if (part === "selected" || part === "tracks") void loadTracks();
    else if (part === "filter") load();
    else chart.redraw();
  });
}
