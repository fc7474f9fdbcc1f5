// What the mouse and the keys do in the timeline.

import * as api from "./api";
import { isBeside } from "./beside";
import { point } from "./chart";
import { SCROLLBAR, chart, gutter, nsOf, rowUnder, scrollBarTo, scrollBy, scrollbar, span, under, width } from "./timeline";
import { back, choose, forward, pin, remember, setCursor, show, state, whole } from "./state";
import { instant, named, safe, duration, stopped } from "./text";
import { ROW, type Row, isCpu, taskOf } from "./tracks";

const canvas = chart.canvas;
const tip = document.getElementById("tip")!;
let drag: { x: number; y: number; begin: number; end: number; zoom: boolean; moved: boolean } | null = null;
/** Where each finger is, and what two of them hold: the instants that lie under them. */
const fingers = new Map<number, number>();
let pinched: [number, number] | null = null;
/** How far below its upper edge the scroll bar is held. */
let held: number | null = null;
let asked: AbortController | null = null, waiting = 0;

function zoom(factor: number, around: number) {
  show(around - (around - state.begin) * factor, around + (state.end - around) * factor);
}

function wheel(event: WheelEvent) {
  event.preventDefault();
  const { x } = point(canvas, event);
  const scale = event.deltaMode === 1 ? 20 : 1, [dx, dy] = [event.deltaX * scale, event.deltaY * scale];
  if (event.shiftKey || x < gutter()) scrollBy(dy + dx);
  else if (Math.abs(dx) > Math.abs(dy)) show(state.begin + (dx / width()) * span(), state.end + (dx / width()) * span(), false);
  else zoom(Math.exp(Math.max(-1, Math.min(1, dy / 300))), nsOf(x));
}

/** The instants under two fingers stay there. */
function pinch() {
  const [left, right] = [...fingers.values()].sort((a, b) => a - b) as [number, number];
  if (!pinched) {
    pinched = [nsOf(left), nsOf(right)];
    remember();
    return;
  }
  const each = (pinched[1] - pinched[0]) / Math.max(right - left, 8), begin = pinched[0] - (left - gutter()) * each;
  show(begin, begin + each * width(), false);
}

function move(event: PointerEvent) {
  const mouse = point(canvas, event);
  if (fingers.has(event.pointerId)) fingers.set(event.pointerId, mouse.x);
  if (fingers.size === 2) { pinch(); return; }
  if (held !== null) { scrollBarTo(mouse.y - held); return; }
  if (drag && Math.abs(mouse.x - drag.x) > 3) drag.moved = true;
  // A finger has no wheel.
  if (drag && event.pointerType === "touch" && (drag.moved || Math.abs(mouse.y - drag.y) > 3)) {
    scrollBy(drag.y - mouse.y);
    [drag.y, drag.moved] = [mouse.y, true];
  }
  if (drag?.moved && drag.zoom) {
    state.drawn = [nsOf(Math.min(drag.x, mouse.x)), nsOf(Math.max(drag.x, mouse.x))];
    chart.redraw();
  } else if (drag?.moved) {
    const shift = ((drag.x - mouse.x) / width()) * (drag.end - drag.begin);
    show(drag.begin + shift, drag.end + shift, false);
  }
  canvas.style.cursor = mouse.x < gutter() ? "pointer" : drag?.zoom || event.shiftKey ? "crosshair" : drag?.moved ? "grabbing" : "default";
  say(drag?.moved ? null : under(mouse.x, mouse.y), mouse);
  if (!drag) wait(mouse);
}

/** The tip beside the mouse. */
function say(words: string | null, mouse: { x: number; y: number }) {
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = safe(words);
  tip.style.left = `${Math.max(Math.min(mouse.x + 12, canvas.clientWidth - tip.offsetWidth - 4), 0)}px`;
  tip.style.top = `${mouse.y + 18 + tip.offsetHeight > canvas.clientHeight ? mouse.y - tip.offsetHeight - 8 : mouse.y + 18}px`;
}

/** When the mouse rests, the system call or the interrupt is asked for by name. */
function wait(mouse: { x: number; y: number }) {
  clearTimeout(waiting);
  asked?.abort();
  const row = rowUnder(mouse.y);
  if (!row?.id || isBeside(row.id) || mouse.x < gutter()) return;
  waiting = window.setTimeout(async () => {
    const more = await names(row, nsOf(mouse.x));
    if (more && !tip.hidden) say(`${under(mouse.x, mouse.y)}${more}`, mouse);
  }, 120);
}

async function names(row: Row, ns: number): Promise<string> {
  asked = new AbortController();
  try {
    const found = await api.moment({ track: row.id, at: Math.round(ns) }, asked.signal);
    const one = (what: string, late: api.Late | null) => (late ? `; ${what} ${named(late.name) || late.what} for ${duration(late.latency_ns)}` : "");
    return one("system call", found.call) + one(isCpu(row.id) ? "interrupt" : "", found.irq) + one("softirq", found.softirq);
  } catch (error) {
    if (!stopped(error)) console.warn(error);
    return "";
  }
}

function lift(event: PointerEvent) {
  fingers.delete(event.pointerId);
  [drag, held, pinched] = [null, null, null];
}

function up(event: PointerEvent) {
  const { x, y } = point(canvas, event), was = drag;
  lift(event);
  if (was && !was.moved) void click(x, y);
  else if (was?.zoom && state.drawn) show(state.drawn[0], state.drawn[1]);
  state.drawn = null;
  chart.redraw();
}

async function click(x: number, y: number) {
  const row = rowUnder(y);
  if (x < gutter()) {
    const task = row ? taskOf(row.id) : null;
    if (task !== null) choose(task);
    return;
  }
  const ns = nsOf(x);
  setCursor(ns);
  const detail = document.getElementById("detail")!, words = under(x, y) ?? instant(ns, span() / width());
  detail.textContent = safe(words);
  if (row?.id && !isBeside(row.id)) detail.textContent = safe(words + (await names(row, ns)));
}

export function listen() {
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    const { x, y } = point(canvas, event), bar = scrollbar();
    if (event.button !== 0) return;
    if (bar && x >= canvas.clientWidth - SCROLLBAR) {
      held = y >= bar.top && y < bar.top + bar.size ? y - bar.top : bar.size / 2;
      scrollBarTo(y - held);
      canvas.setPointerCapture(event.pointerId);
      return;
    }
    if (event.pointerType === "touch") fingers.set(event.pointerId, x);
    drag = { x, y, begin: state.begin, end: state.end, zoom: event.shiftKey || x < gutter() || event.ctrlKey, moved: false };
    if (x < gutter()) drag.zoom = false;
    if (fingers.size === 2) { drag = null; pinch(); }
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", (event) => { lift(event); state.drawn = null; chart.redraw(); });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; clearTimeout(waiting); });
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = point(canvas, event), row = rowUnder(y);
    if (x >= gutter()) zoom(0.25, nsOf(x));
    else if (row?.id && row.id[0] !== "n") pin(row.id);
  });
}

/** What a key does here; whether it is one of ours. */
export function key(name: string): boolean {
  const middle = state.cursor !== null && state.cursor > state.begin && state.cursor < state.end ? state.cursor : (state.begin + state.end) / 2;
  const step = span() / 4, late = state.activation;
  switch (name) {
    case "w": case "+": zoom(0.5, middle); return true;
    case "s": case "-": zoom(2, middle); return true;
    case "a": case "ArrowLeft": show(state.begin - step, state.end - step, false); return true;
    case "d": case "ArrowRight": show(state.begin + step, state.end + step, false); return true;
    case "ArrowUp": scrollBy(-ROW * 3); return true;
    case "ArrowDown": scrollBy(ROW * 3); return true;
    case "u": case "Backspace": back(); return true;
    case "U": forward(); return true;
    case "0": whole(); return true;
    case "p": if (state.thread !== null) pin(`t${state.thread}`); return true;
    case "f": if (late) show(late.origin_ns - late.latency_ns * 0.1, late.end_ns + late.latency_ns * 0.1); return true;
    default: return false;
  }
}
