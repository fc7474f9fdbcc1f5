// The timeline: a track of each CPU and of threads, the losses, and the ledger of what is selected.

import * as api from "./api";
import { css, hatch, kindColour, taskColour, termColour } from "./colours";
import { back, onChange, setCursor, show, state, whole } from "./state";
import { duration, el, instant, safe } from "./text";
import { KINDS, type Stretch, type Tile, decode, detailOf, isInferred, kindOf } from "./tile";

const GUTTER = 190, RULER = 24, LEDGER = 22, ROW = 22, THREADS = 200;
interface Row { id: string; label: string; top: number }

const section = document.getElementById("timeline")!;
const canvas = section.querySelector("canvas")!;
const tip = document.getElementById("tip")!;
const context = canvas.getContext("2d")!;
const names = new Map<number, api.Facts>();
let rows: Row[] = [];
let tile: Tile | null = null;
let losses: api.Loss[] = [];
let scroll = 0, asked: AbortController | null = null, waiting = 0, frame = 0;
let drag: { x: number; begin: number; end: number; zoom: boolean; moved: boolean } | null = null;
let mouse: { x: number; y: number } | null = null;

const width = () => Math.max(canvas.clientWidth - GUTTER, 10);
const span = () => state.end - state.begin;
const xOf = (ns: number) => GUTTER + ((ns - state.begin) / span()) * width();
const nsOf = (x: number) => state.begin + ((x - GUTTER) / width()) * span();
const head = () => RULER + (state.activation ? LEDGER : 0);
export const taskName = (task: number) => {
  const facts = names.get(task);
  return facts ? `${safe(facts.name)} (${facts.tid})` : `task ${task}`;
};

/** Which tracks there are. */
export async function loadTracks() {
  const cpus = state.info?.cpus ?? 0;
  const words = { kind: "thread", search: state.search, limit: THREADS, sort: "run" };
  const threads = await api.tracks(words);
  for (const row of threads.tracks) if (row.facts && row.task !== null) names.set(row.task, row.facts);
  const all = Array.from({ length: cpus }, (_, cpu) => ({ id: `c${cpu}`, label: `CPU ${cpu}` }));
  const list = threads.tracks.map((row) => ({ id: row.id, label: row.task === null ? row.id : taskName(row.task) }));
  // The selected task first, else who ran most.
  const chosen = list.findIndex((row) => row.id === `t${state.selected?.task}`);
  if (chosen > 0) list.unshift(...list.splice(chosen, 1));
  else if (chosen < 0 && state.selected) {
    const { tasks } = await api.tasks([state.selected.task]);
    if (tasks[0]) names.set(tasks[0].task, tasks[0]);
    list.unshift({ id: `t${state.selected.task}`, label: taskName(state.selected.task) });
  }
  rows = [...all, ...list].map((row, place) => ({ ...row, top: place * ROW + (place >= cpus ? 6 : 0) }));
  if (threads.total > list.length) rows.push({ id: "", label: `… ${threads.total - list.length} more: search`, top: rows.length * ROW + 6 });
  losses = (await api.losses()).losses;
  load();
}

const visible = () => rows.filter((row) => row.top + ROW > scroll && row.top - scroll < canvas.clientHeight - head());

function load() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    asked?.abort();
    asked = new AbortController();
    const words = {
      begin: Math.floor(state.begin), end: Math.ceil(state.end), columns: Math.round(width()),
      tracks: visible().map((row) => row.id).filter(Boolean).slice(0, 500).join(","),
    };
    try {
      tile = decode(await api.tile(words, asked.signal));
      await loadNames();
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
    }
    redraw();
  }, 15);
  redraw();
}

async function loadNames() {
  const wanted = new Set<number>();
  for (const [id, track] of tile?.tracks ?? []) {
    const states = track.stretches?.map((one) => one.state) ?? track.columns?.leaders ?? [];
    for (const one of states) {
      const task = detailOf(one) - 1;
      if (task >= 0 && (id[0] === "c" || kindOf(one) === 6) && !names.has(task)) wanted.add(task);
    }
  }
  if (!wanted.size) return;
  const { tasks } = await api.tasks([...wanted].slice(0, 1000));
  for (const facts of tasks) if (facts) names.set(facts.task, facts);
}

export function redraw() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
}

function draw() {
  const scale = devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
    [canvas.width, canvas.height] = [Math.round(w * scale), Math.round(h * scale)];
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = css("--back");
  context.fillRect(0, 0, w, h);
  const unknown = hatch(context);
  context.save();
  context.beginPath();
  context.rect(0, head(), w, h - head());
  context.clip();
  for (const row of visible()) drawRow(row, unknown);
  drawLosses(h);
  if (state.activation) drawSelected(h);
  context.restore();
  drawRuler(w);
  if (state.activation) drawLedger(unknown);
  drawCursor(h);
}

function drawRow(row: Row, unknown: CanvasPattern | string) {
  const top = head() + row.top - scroll;
  context.fillStyle = css("--text");
  context.textAlign = "left";
  context.fillText(row.label, 8, top + ROW / 2, GUTTER - 14);
  context.save();
  context.beginPath();
  context.rect(GUTTER, top + 2, width(), ROW - 4);
  context.clip();
  const track = tile?.tracks.get(row.id);
  // What no stretch says nobody knows.
  if (row.id) { context.fillStyle = unknown; context.fillRect(GUTTER, top + 2, width(), ROW - 4); }
  if (track?.stretches) for (const one of track.stretches) drawStretch(row, one, top + 2);
  if (track?.columns && tile) drawColumns(row, track.columns, top + 2, unknown);
  context.restore();
  context.fillStyle = css("--line");
  context.fillRect(0, top + ROW - 1, canvas.clientWidth, 0.5);
}

function drawStretch(row: Row, one: Stretch, top: number) {
  const kind = kindOf(one.state);
  if (kind === 0) return;
  const x = Math.max(xOf(one.begin), GUTTER - 1);
  const w = Math.max(Math.min(xOf(one.end), GUTTER + width() + 1) - x, 0.6);
  const task = detailOf(one.state) - 1;
  const isCpu = row.id[0] === "c";
  context.fillStyle = css("--back");
  context.fillRect(x, top, w, ROW - 4);
  if (kind === 1) {
    context.fillStyle = css("--line");
    context.fillRect(x, top + (ROW - 4) / 2, w, 1);
    return;
  }
  context.fillStyle = isCpu && task >= 0 ? taskColour(kind, task) : kindColour(kind);
  context.fillRect(x, top, w, ROW - 4);
  // A call is darker along its foot, so that a task keeps its colour.
  if (kind === 3) { context.fillStyle = "#0072b2"; context.fillRect(x, top + ROW - 9, w, 5); }
  if (isInferred(one.state)) { context.fillStyle = css("--text"); context.fillRect(x, top, 1.5, ROW - 4); }
  if (w > 40 && (isCpu ? kind === 2 || kind === 3 : kind === 6) && task >= 0) {
    context.fillStyle = "#000";
    label((isCpu ? "" : "behind ") + taskName(task), x, top + (ROW - 4) / 2, w);
  }
}

/** A text that is cut where its place ends. */
function label(text: string, x: number, y: number, w: number) {
  const fits = Math.floor((w - 8) / 6.6);
  if (fits >= 3) context.fillText(text.length > fits ? `${text.slice(0, fits - 1)}…` : text, x + 4, y);
}

/** The order from the ground up, so that rare handlers stand on top. */
const STACK = [2, 3, 6, 5, 4];

function drawColumns(row: Row, columns: { count: number; shares: Uint8Array; leaders: Uint32Array }, top: number, unknown: CanvasPattern | string) {
  const each = (tile!.end - tile!.begin) / columns.count, h = ROW - 4;
  for (let column = 0; column < columns.count; column++) {
    const x = xOf(tile!.begin + column * each);
    const w = Math.max(xOf(tile!.begin + (column + 1) * each) - x, 0.5);
    if (x + w < GUTTER || x > GUTTER + width()) continue;
    const share = (kind: number) => columns.shares[column * KINDS + kind]! / 255;
    context.fillStyle = back_;
    context.fillRect(x, top, w + 0.5, h);
    if (share(0) > 0) { context.fillStyle = unknown; context.fillRect(x, top, w + 0.5, Math.max(h * share(0), 1)); }
    let y = top + h;
    for (const kind of STACK) {
      const part = share(kind);
      if (part === 0) continue;
      const size = Math.max(part * h, 1);
      const leader = columns.leaders[column]!;
      const task = row.id[0] === "c" && kindOf(leader) === kind ? detailOf(leader) - 1 : -1;
      context.fillStyle = task >= 0 ? taskColour(kind, task) : kindColour(kind);
      y -= size;
      context.fillRect(x, Math.max(y, top), w + 0.5, size);
    }
    context.fillStyle = line_;
    if (share(1) > 0.5) context.fillRect(x, top + h / 2, w + 0.5, 1);
  }
}
let back_ = "", line_ = "";
export function themeChanged() { [back_, line_] = [css("--back"), css("--line")]; redraw(); }

function drawLosses(h: number) {
  for (const loss of losses) {
    const [x, end] = [Math.max(xOf(loss.begin_ns), GUTTER), Math.min(xOf(loss.end_ns), GUTTER + width())];
    if (end < GUTTER || x > GUTTER + width()) continue;
    const row = rows.find((one) => one.id === `c${loss.cpu}`);
    const top = row && loss.cpu !== null ? head() + row.top - scroll : head();
    context.fillStyle = "#d55e00";
    // A mark at the place's foot: the hatching above says the rest.
    context.fillRect(x, top + (row ? ROW - 4 : 0), Math.max(end - x, 2), row ? 3 : h);
  }
}

function drawSelected(h: number) {
  const late = state.activation!;
  context.save();
  context.beginPath();
  context.rect(GUTTER, head(), width(), h);
  context.clip();
  const [x, end] = [xOf(late.origin_ns), xOf(late.end_ns)];
  context.fillStyle = css("--accent");
  context.globalAlpha = 0.1;
  context.fillRect(x, head(), end - x, h);
  context.globalAlpha = 1;
  for (const edge of [x, end]) context.fillRect(edge - 0.5, head(), 1, h);
  // The chain: from each step's CPU to the next one's.
  const place = (cpu: number) => {
    const row = rows.find((one) => one.id === `c${cpu}`);
    return row ? head() + row.top - scroll + 2 : head();
  };
  context.strokeStyle = context.fillStyle = css("--text");
  context.lineWidth = 1.5;
  late.steps.forEach((step, at) => {
    const [fromX, fromY] = [xOf(step.time_ns), place(step.cpu)];
    context.beginPath();
    context.arc(fromX, fromY, 3, 0, 7);
    context.fill();
    const next = late.steps[at + 1];
    if (!next) return;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.lineTo(xOf(next.time_ns), place(next.cpu));
    context.stroke();
  });
  context.restore();
}

function drawLedger(unknown: CanvasPattern | string) {
  const late = state.activation!;
  context.fillStyle = css("--text");
  context.textAlign = "left";
  context.fillText("ledger", 8, RULER + LEDGER / 2, GUTTER - 14);
  context.save();
  context.beginPath();
  context.rect(GUTTER, RULER, width(), LEDGER);
  context.clip();
  // A block is as high as the share of its stretch that the term has: nothing small looks large.
  const density = (term: api.Term) => Math.min(term.duration_ns / Math.max(term.range.end_ns - term.range.begin_ns, 1), 1);
  const terms = [...late.ledger.terms].sort((a, b) => density(b) - density(a) || b.duration_ns - a.duration_ns);
  for (const term of terms) {
    const x = Math.max(xOf(term.range.begin_ns), GUTTER - 1);
    const w = Math.max(Math.min(xOf(term.range.end_ns), GUTTER + width() + 1) - x, 1);
    if (xOf(term.range.end_ns) < GUTTER || x > GUTTER + width()) continue;
    context.fillStyle = term.kind === "unexplained" ? unknown : termColour(term.kind);
    const h = Math.max((LEDGER - 4) * density(term), 1);
    context.fillRect(x, RULER + LEDGER - 2 - h, w, h);
    if (w > 60 && density(term) > 0.9 && term.kind !== "unexplained") {
      context.fillStyle = "#000";
      label(safe(term.text), x, RULER + LEDGER / 2, w);
    }
  }
  context.restore();
}

function drawRuler(w: number) {
  context.fillStyle = css("--raised");
  context.fillRect(0, 0, w, RULER);
  const rough = (span() / width()) * 130;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max([1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough, 1);
  context.fillStyle = css("--faint");
  context.textAlign = "left";
  for (let at = Math.ceil(state.begin / step) * step; at < state.end; at += step) {
    const x = xOf(at);
    context.fillRect(x, RULER - 6, 1, 6);
    context.fillText(instant(at, step), x + 3, RULER / 2 - 2);
  }
  context.fillStyle = css("--text");
  context.fillText(`⟷ ${duration(span())}`, 8, RULER / 2);
}

function drawCursor(h: number) {
  if (state.cursor !== null) {
    const x = xOf(state.cursor);
    if (x >= GUTTER) { context.fillStyle = css("--accent"); context.fillRect(x - 1, 0, 2, h); }
  }
  if (drag?.zoom && mouse) {
    context.fillStyle = css("--accent");
    context.globalAlpha = 0.2;
    context.fillRect(Math.min(drag.x, mouse.x), 0, Math.abs(mouse.x - drag.x), h);
    context.globalAlpha = 1;
  }
}

/** What lies under a place of the canvas, in words. */
function under(x: number, y: number): string | null {
  if (x < GUTTER) return null;
  const ns = nsOf(x);
  if (state.activation && y > RULER && y < head()) {
    const inside = state.activation.ledger.terms.filter((term) => term.range.begin_ns <= ns && ns < term.range.end_ns);
    const words = inside.map((term) => `${safe(term.text)}: ${duration(term.duration_ns)} ${term.pieces > 1 ? `in ${term.pieces} pieces` : ""}`);
    return words.length ? words.join(" · ") : null;
  }
  const row = rows.find((one) => y >= head() + one.top - scroll && y < head() + one.top - scroll + ROW);
  const track = row && tile?.tracks.get(row.id);
  if (!row || !track) return null;
  const one = track.stretches?.find((stretch) => stretch.begin <= ns && ns < stretch.end);
  if (track.stretches) return `${row.label}: ${one ? inWords(row, one) : "nobody knows"}`;
  const column = Math.floor(((ns - tile!.begin) / (tile!.end - tile!.begin)) * track.columns!.count);
  const parts = [...STACK, 1, 0].map((kind) => [kind, track.columns!.shares[column * KINDS + kind] ?? 0] as const);
  const told = parts.filter(([, share]) => share > 0).map(([kind, share]) => `${share === 1 ? "< 1" : Math.round(share / 2.55)} % ${KIND_WORDS(row, kind)}`);
  const leader = track.columns!.leaders[column] ?? 0;
  const who = row.id[0] === "c" && detailOf(leader) > 0 ? `, most ${taskName(detailOf(leader) - 1)}` : "";
  return `${row.label}: ${told.join(", ")}${who}`;
}

const KIND_WORDS = (row: Row, kind: number) =>
  row.id[0] === "c"
    ? ["unknown", "idle", "tasks", "system calls", "interrupts", "softirqs", ""][kind]!
    : ["unknown", "blocked", "running", "system calls", "interrupted", "interrupted by softirqs", "waiting for a CPU"][kind]!;

function inWords(row: Row, one: Stretch): string {
  const kind = kindOf(one.state), detail = detailOf(one.state) - 1, isCpu = row.id[0] === "c";
  let what = KIND_WORDS(row, kind);
  if (isCpu && detail >= 0 && kind > 1) what = kind === 2 ? taskName(detail) : `${what.replace(/s$/, "")} ${kind === 3 ? "of" : "on the time of"} ${taskName(detail)}`;
  if (!isCpu && detail >= 0 && kind > 1 && kind < 6) what += ` on CPU ${detail}`;
  if (!isCpu && kind === 6 && detail >= 0) what += `, most of it behind ${taskName(detail)}`;
  if (!isCpu && kind === 1) what += wokenBy(one.state >>> 4);
  return `${what} for ${duration(one.end - one.begin)}, from ${instant(one.begin, one.end - one.begin)}${isInferred(one.state) ? ", its begin was inferred" : ""}`;
}

function wokenBy(detail: number): string {
  const [what, number] = [detail >>> 25, detail & 0x1ffffff];
  return ["", `, woken by ${taskName(number)}`, ", woken by a timer", `, woken by interrupt ${number}`, `, woken by softirq ${number}`][what] ?? "";
}

function point(event: MouseEvent) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function zoom(factor: number, around: number) {
  show(around - (around - state.begin) * factor, around + (state.end - around) * factor);
}

function scrollTo(to: number) {
  const most = Math.max((rows.at(-1)?.top ?? 0) + ROW - (canvas.clientHeight - head()), 0);
  scroll = Math.min(Math.max(to, 0), most);
  load();
}

function listen() {
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x } = point(event);
    if (event.shiftKey || x < GUTTER) scrollTo(scroll + event.deltaY + event.deltaX);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) show(state.begin + (event.deltaX / width()) * span(), state.end + (event.deltaX / width()) * span(), false);
    else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), nsOf(x));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    const { x } = point(event);
    if (x < GUTTER || event.button !== 0) return;
    drag = { x, begin: state.begin, end: state.end, zoom: event.shiftKey, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    mouse = point(event);
    if (drag && Math.abs(mouse.x - drag.x) > 3) drag.moved = true;
    if (drag?.moved && !drag.zoom) {
      const shift = ((drag.x - mouse.x) / width()) * (drag.end - drag.begin);
      show(drag.begin + shift, drag.end + shift, false);
    }
    const words = drag ? null : under(mouse.x, mouse.y);
    tip.hidden = !words;
    if (words) {
      tip.textContent = words;
      tip.style.left = `${Math.min(mouse.x + 12, canvas.clientWidth - tip.offsetWidth - 4)}px`;
      tip.style.top = `${mouse.y + 18 + tip.offsetHeight > canvas.clientHeight ? mouse.y - tip.offsetHeight - 8 : mouse.y + 18}px`;
    }
    if (drag?.zoom) redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const { x, y } = point(event);
    if (drag && !drag.moved) {
      setCursor(nsOf(x));
      document.getElementById("detail")!.textContent = under(x, y) ?? instant(nsOf(x), span() / width());
    } else if (drag?.zoom) {
      const [from, to] = [nsOf(Math.min(drag.x, x)), nsOf(Math.max(drag.x, x))];
      drag = null;
      show(from, to);
    }
    drag = null;
    redraw();
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, nsOf(point(event).x)));
  new ResizeObserver(load).observe(canvas);
}

/** What a key does here; whether it is one of ours. */
export function key(name: string): boolean {
  const middle = state.cursor !== null && state.cursor > state.begin && state.cursor < state.end ? state.cursor : (state.begin + state.end) / 2;
  const step = span() / 4;
  switch (name) {
    case "w": case "+": zoom(0.5, middle); return true;
    case "s": case "-": zoom(2, middle); return true;
    case "a": case "ArrowLeft": show(state.begin - step, state.end - step, false); return true;
    case "d": case "ArrowRight": show(state.begin + step, state.end + step, false); return true;
    case "ArrowUp": scrollTo(scroll - ROW * 3); return true;
    case "ArrowDown": scrollTo(scroll + ROW * 3); return true;
    case "u": case "Backspace": back(); return true;
    case "0": whole(); return true;
    case "f": if (state.activation) { const late = state.activation; const margin = late.latency_ns * 0.1; show(late.origin_ns - margin, late.end_ns + margin); } return true;
    default: return false;
  }
}

export function legend() {
  const words = ["runs (a tint for each task)", "in a system call", "interrupt", "softirq", "waits for a CPU", "unknown: never filled"];
  const kinds = [2, 3, 4, 5, 6, 0];
  document.getElementById("legend")!.replaceChildren(...words.map((text, at) => {
    const box = el("i");
    box.style.background = kinds[at] ? kindColour(kinds[at]!) : "repeating-linear-gradient(135deg, var(--faint) 0 1px, transparent 1px 4px)";
    const item = el("span", {}, box);
    item.append(text);
    return item;
  }));
}

export function start() {
  themeChanged();
  listen();
  legend();
  onChange((part) => {
    if (part === "range") load();
    else if (part === "search") { scroll = 0; void loadTracks(); }
    else if (part === "selected") void loadTracks();
    else redraw();
  });
}
