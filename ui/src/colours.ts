// Colours that people tell apart however they see them: the set of Okabe and Ito, and hatches.

import { type Pen, SvgPen } from "./pen";

/** By kind: unknown, idle or waiting, runs, in a call, interrupt, softirq, waits for a CPU. */
const KIND_COLOURS = ["#888888", "#00000000", "#56b4e9", "#0072b2", "#d55e00", "#cc79a7", "#e69f00"];
/** Tasks on CPUs: tints of blue and green, so that no task looks like an interrupt or a wait. */
const TASKS = ["#56b4e9", "#009e73", "#7fb2d6", "#4aa39f", "#8cc5a2", "#3f8fc4"];

export const kindColour = (kind: number) => KIND_COLOURS[kind] ?? "#888888";

export function taskColour(kind: number, task: number): string {
  if (kind !== 2 && kind !== 3) return kindColour(kind);
  return TASKS[(Math.imul(task, 0x9e3779b1) >>> 16) % TASKS.length]!;
}

const TERMS: Record<string, string> = {
  run_queue_wait: "#e69f00", hardirq: "#d55e00", softirq: "#cc79a7", interrupts_off: "#f0e442", preemption_off: "#f0e442",
  upstream: "#56b4e9", own_run: "#009e73", lock_wait: "#0072b2", priority_inversion: "#0072b2", unexplained: "#aaaaaa",
};
/** Waits behind several tasks are told apart. */
const WAITS = ["#e69f00", "#f3c76b", "#b97f00", "#f8dfa8"];
export interface Coloured { kind: string }
/** The colour of a term of a ledger, beside the others. */
export function termColour<T extends Coloured>(term: T, all: T[]): string {
  if (term.kind !== "run_queue_wait") return TERMS[term.kind] ?? "#b8c4ce";
  return WAITS[all.filter((one) => one.kind === term.kind).indexOf(term) % WAITS.length] ?? WAITS[0]!;
}
/** Text on a colour: whichever of black and white is read. */
export function onColour(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return red! * 0.299 + green! * 0.587 + blue! * 0.114 > 90 ? "#000000" : "#ffffff";
}

const values = new Map<string, string>();
/** A colour of the theme. */
export function css(name: string): string {
  let value = values.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    values.set(name, value);
  }
  return value;
}
const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const wordsOf = new Map<string, number>();
/** A colour as a pixel of a picture has it. */
export function wordOf(colour: string): number {
  let word = wordsOf.get(colour);
  if (word === undefined) {
    // The canvas knows every way to write a colour.
    const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
    dot.fillStyle = colour;
    dot.fillRect(0, 0, 1, 1);
    word = new DataView(dot.getImageData(0, 0, 1, 1).data.buffer).getUint32(0, littleEndian);
    wordsOf.set(colour, word);
  }
  return word;
}

let hatched: CanvasPattern | string | null = null;
export function themeChanged() { values.clear(); hatched = null; }

/** Hatched: nobody knows. */
export function hatch(pen: Pen): CanvasPattern | string {
  if (pen instanceof SvgPen) return "url(#hatch)";
  if (hatched !== null) return hatched;
  const cell = document.createElement("canvas");
  cell.width = cell.height = 6;
  const inside = cell.getContext("2d")!;
  inside.strokeStyle = css("--hatch");
  inside.lineWidth = 1;
  inside.beginPath();
  for (const shift of [-6, 0, 6]) { inside.moveTo(shift, 6); inside.lineTo(shift + 6, 0); }
  inside.stroke();
  return (hatched = pen.createPattern(cell, "repeat") ?? css("--line"));
}
