// Axes: time along the bottom or the top, sizes up the side.

import { css } from "./colours";
import type { Pen } from "./pen";
import { instant, round } from "./text";

export interface Box { left: number; top: number; width: number; height: number }
export type Scale = (value: number) => number;

/** Round places of a range, about `most` of them, `least` apart: there is nothing between two nanoseconds. */
export function places(begin: number, end: number, most: number, least = 1): { step: number; at: number[] } {
  const rough = Math.max((end - begin) / Math.max(most, 1), least), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999) ?? rough;
  const at: number[] = [];
  for (let place = Math.ceil(begin / step) * step; place <= end && at.length < 1000; place += step) at.push(place);
  return { step, at };
}

export const timeScale = (box: Box, begin: number, end: number): Scale =>
  (ns) => box.left + ((ns - begin) / Math.max(end - begin, 1)) * box.width;

/** Times below a picture. */
export function timeAxis(pen: Pen, box: Box, begin: number, end: number) {
  const x = timeScale(box, begin, end), bottom = box.top + box.height;
  const { step, at } = places(begin, end, Math.max(box.width / 130, 2));
  pen.fillStyle = css("--faint");
  pen.textAlign = "center";
  for (const ns of at) {
    pen.fillRect(x(ns), bottom, 1, 4);
    const text = instant(ns, step), half = pen.measureText(text).width / 2;
    if (x(ns) - half > box.left - 40 && x(ns) + half < box.left + box.width + 8) pen.fillText(text, x(ns), bottom + 11);
  }
  pen.textAlign = "left";
  pen.fillRect(box.left, bottom, box.width, 1);
}

function rule(pen: Pen, box: Box, y: number, text: string) {
  pen.fillStyle = css("--faint");
  pen.textAlign = "right";
  pen.fillText(text, box.left - 6, y);
  pen.textAlign = "left";
  pen.globalAlpha = 0.3;
  pen.fillRect(box.left, y, box.width, 0.5);
  pen.globalAlpha = 1;
}

/** Powers of ten up the side. */
export function logScale(pen: Pen, box: Box, least: number, most: number, text: (value: number) => string = round): Scale {
  const low = Math.log10(Math.max(least, 1)), high = Math.max(Math.log10(Math.max(most, 1)), low + 0.3);
  const y: Scale = (value) => box.top + (1 - (Math.log10(Math.max(value, 1)) - low) / (high - low)) * box.height;
  const each = Math.max(Math.ceil((high - low) / Math.max(box.height / 18, 1)), 1);
  for (let power = Math.ceil(low); power <= high; power += each) rule(pen, box, y(10 ** power), text(10 ** power));
  // Less than a power of ten has no round number inside.
  if (Math.floor(high) < Math.ceil(low)) for (const value of [least, most]) rule(pen, box, y(value), text(value));
  return y;
}

/** Round numbers up the side. */
export function linearScale(pen: Pen, box: Box, most: number, text: (value: number) => string): Scale {
  const y: Scale = (value) => box.top + (1 - value / Math.max(most, 1e-9)) * box.height;
  for (const value of places(0, most, Math.max(box.height / 30, 2), 1e-9).at) rule(pen, box, y(value), text(value));
  return y;
}

/** Names beside their colours in one line: narrower where there is little room, and none that could not be read. */
export function legend(pen: Pen, left: number, right: number, all: [string, Pen["fillStyle"]][]) {
  const sizes = all.map(([name]) => pen.measureText(name).width);
  const squeeze = (some: number[]) => Math.min((right - left - 12 - some.length * 28) / some.reduce((a, b) => a + b, 1), 1);
  while (sizes.length > 1 && squeeze(sizes) < 0.6) sizes.pop();
  const share = Math.max(squeeze(sizes), 0.1);
  let x = left;
  sizes.forEach((size, at) => {
    const [name, paint] = all[at]!;
    pen.fillStyle = paint;
    pen.fillRect(x, 6, 11, 11);
    pen.fillStyle = css("--faint");
    pen.fillText(name, x + 15, 12, size * share);
    x += 28 + size * share;
  });
  if (sizes.length < all.length) pen.fillText("…", x, 12);
}
