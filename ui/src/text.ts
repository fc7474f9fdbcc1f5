// Times, durations and names as people read them. Names come from traces and are hostile.

import { state } from "./state";

/** Control and bidirectional characters made visible: they must not rearrange what stands around them. */
export function safe(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`);
}

/** 1.234 ms */
export function duration(ns: number): string {
  const sizes: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  for (const [size, unit] of sizes) if (Math.abs(ns) >= size) return `${(ns / size).toFixed(3)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

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
  return digits ? `${seconds}.${String(size % 1_000_000_000n).padStart(9, "0").slice(0, digits)}` : seconds;
}

/** Makes an element; text is only ever text. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K, options: { text?: string; cls?: string; title?: string } = {}, ...children: Node[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (options.text !== undefined) made.textContent = safe(options.text);
  if (options.cls) made.className = options.cls;
  if (options.title) made.title = safe(options.title);
  made.append(...children);
  return made;
}
