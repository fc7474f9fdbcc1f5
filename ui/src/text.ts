// Times, durations and names as people read them. Names come from traces and are hostile.

import { state } from "./state";

/** Longer names are cut: nobody reads them, and drawing them takes long. */
const LONGEST = 300;

/** Control and bidirectional characters made visible: they must not rearrange what stands around them. */
export function safe(text: string, longest = 4096): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`);
}
/** The name of a thread or of anything else that a trace names. */
export const named = (text: string) => safe(text, LONGEST);

/** 1.234 ms */
export function duration(ns: number): string {
  const sizes: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  for (const [size, unit] of sizes) if (Math.abs(ns) >= size) return `${(ns / size).toFixed(3)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

/** 1 ms: a round number, as on an axis. */
export function round(ns: number): string {
  const sizes: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  for (const [size, unit] of sizes) if (Math.abs(ns) >= size) return `${+(ns / size).toPrecision(3)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

export const percent = (share: number) => `${(share * 100).toFixed(share < 0.0995 ? 2 : 1)} %`;
export const count = (number: number) => number.toLocaleString("en");
export const counted = (number: number, what: string) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** An instant, by the clock that was chosen; `span` says how fine it must be. */
export function instant(ns: number, span = 1): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.max(span, 1) / 1e9)) + 2));
  const whole = BigInt(Math.round(ns));
  if (state.clock === "wall") {
    const wall = BigInt(state.info?.begin_wall_ns ?? "0") + whole;
    const part = ((wall % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
    const date = new Date(Number((wall - part) / 1_000_000n));
    const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
    return digits ? `${clock}.${String(part).padStart(9, "0").slice(0, digits)}` : clock;
  }
  const origin = state.clock === "trace" ? BigInt(state.info?.begin_trace_ns ?? "0") : 0n;
  const at = origin + whole;
  const [sign, size] = at < 0n ? ["-", -at] : [state.clock === "trace" ? "" : "+", at];
  const seconds = `${sign}${size / 1_000_000_000n}`;
  return `${seconds}${digits ? `.${String(size % 1_000_000_000n).padStart(9, "0").slice(0, digits)}` : ""} s`;
}

/** The day of an instant and the zone of its clock, for who reads times of the day. */
export function day(ns: number): string {
  const ms = (BigInt(state.info?.begin_wall_ns ?? "0") + BigInt(Math.round(ns))) / 1_000_000n, date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return "";
  const two = (number: number) => String(number).padStart(2, "0"), ahead = -date.getTimezoneOffset(), size = Math.abs(ahead);
  const zone = ahead ? `UTC${ahead < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}` : "UTC";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${zone}`;
}

interface Options { text?: string; cls?: string; title?: string }

/** Makes an element; text is only ever text. */
export function el<K extends keyof HTMLElementTagNameMap>(name: K, options: Options = {}, ...children: Node[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (options.text !== undefined) made.textContent = safe(options.text);
  if (options.cls) made.className = options.cls;
  if (options.title) made.title = safe(options.title);
  made.append(...children);
  return made;
}

/** A choice of several; says which was chosen. */
export function choice(label: string, options: [string, string][], chosen: string, pick: (value: string) => void): HTMLSelectElement {
  const made = el("select", { title: label });
  made.setAttribute("aria-label", label);
  for (const [value, text] of options) {
    const option = el("option", { text });
    option.value = value;
    made.append(option);
  }
  made.value = chosen;
  made.onchange = () => pick(made.value);
  return made;
}

export function button(text: string, title: string, click: () => void): HTMLButtonElement {
  const made = el("button", { text, title });
  made.onclick = click;
  return made;
}

export const problem = (error: unknown) => (error instanceof Error ? error.message : String(error));
export const stopped = (error: unknown) => error instanceof DOMException && error.name === "AbortError";
