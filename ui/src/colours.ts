// Colours that people tell apart however they see them: the set of Okabe and Ito, and hatches.

/** By kind: unknown, idle or waiting, runs, in a call, interrupt, softirq, waits for a CPU. */
export const KIND_NAMES = ["unknown", "idle or blocked", "runs", "in a system call", "interrupt", "softirq", "waits for a CPU"];
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
export const termColour = (kind: string) => TERMS[kind] ?? "#b8c4ce";

export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Hatched: nobody knows. */
export function hatch(context: CanvasRenderingContext2D): CanvasPattern | string {
  const cell = document.createElement("canvas");
  cell.width = cell.height = 6;
  const inside = cell.getContext("2d")!;
  inside.strokeStyle = css("--faint");
  inside.lineWidth = 1;
  inside.beginPath();
  for (const shift of [-6, 0, 6]) { inside.moveTo(shift, 6); inside.lineTo(shift + 6, 0); }
  inside.stroke();
  return context.createPattern(cell, "repeat") ?? css("--line");
}
