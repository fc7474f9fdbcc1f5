// One row of the timeline.

import * as beside from "./beside";
import { css, hatch, kindColour, onColour, taskColour, wordOf } from "./colours";
import { STACK } from "./hover";
import { taskName } from "./names";
import { type Pen, SvgPen } from "./pen";
import { type Columns, KINDS, type Stretch, type Tile, type TileTrack, detailOf, isInferred, kindOf } from "./tile";
import { ROW, type Row, isCpu } from "./tracks";

/** Where a row is drawn. */
export interface Place { left: number; width: number; top: number; xOf: (ns: number) => number }

const HEIGHT = ROW - 4;

export function drawTrack(pen: Pen, row: Row, track: TileTrack | undefined, tile: Tile | null, place: Place) {
  pen.save();
  pen.beginPath();
  pen.rect(place.left, place.top, place.width, HEIGHT);
  pen.clip();
  // What no stretch says nobody knows; what has not come yet is empty.
  if (track) {
    pen.fillStyle = hatch(pen);
    pen.fillRect(place.left, place.top, place.width, HEIGHT);
  }
  if (track && tile && beside.isBeside(row.id)) {
    beside.draw(pen, row.id, track, tile, place, HEIGHT);
    pen.restore();
    return;
  }
  if (track?.stretches) for (const one of track.stretches) drawStretch(pen, row, one, place);
  if (track?.columns && tile) drawColumns(pen, row, track.columns, tile, place);
  pen.restore();
}

function drawStretch(pen: Pen, row: Row, one: Stretch, { left, width, top, xOf }: Place) {
  const kind = kindOf(one.state);
  if (kind === 0) return;
  const x = Math.max(xOf(one.begin), left - 1);
  const w = Math.max(Math.min(xOf(one.end), left + width + 1) - x, 0.6);
  if (x > left + width || x + w < left) return;
  const task = detailOf(one.state) - 1, ofCpu = isCpu(row.id);
  if (kind === 1) {
    pen.fillStyle = css("--back");
    pen.fillRect(x, top, w, HEIGHT);
    pen.fillStyle = css("--quiet");
    pen.fillRect(x, top + HEIGHT / 2, w, 1);
    return;
  }
  const colour = ofCpu && task >= 0 ? taskColour(kind, task) : kindColour(kind === 3 ? 2 : kind);
  pen.fillStyle = colour;
  pen.fillRect(x, top, w, HEIGHT);
  // A call has a dark foot, so that a task keeps its colour.
  if (kind === 3) { pen.fillStyle = "#0b4f7d"; pen.fillRect(x, top + HEIGHT - 5, w, 5); }
  if (isInferred(one.state)) { pen.fillStyle = css("--text"); pen.fillRect(x, top, 1.5, HEIGHT); }
  if (w > 34 && (ofCpu ? kind === 2 || kind === 3 : kind === 6) && task >= 0) {
    pen.fillStyle = onColour(colour);
    label(pen, (ofCpu ? "" : "behind ") + taskName(task), x, top + HEIGHT / 2, w);
  }
}

/** A text that is cut where its place ends. */
export function label(pen: Pen, text: string, x: number, y: number, w: number) {
  const fits = Math.floor((w - 8) / 6.6);
  if (fits >= 3) pen.fillText(text.length > fits ? `${text.slice(0, fits - 1)}…` : text, x + 4, y);
}

function drawColumns(pen: Pen, row: Row, columns: Columns, tile: Tile, { left, width, top, xOf }: Place) {
  if (!(pen instanceof SvgPen)) {
    drawPixels(pen, row, columns, xOf(tile.begin), top, xOf(tile.end));
    return;
  }
  const each = (tile.end - tile.begin) / columns.count;
  forAlike(row, columns, HEIGHT, (first, last, y, size, colour) => {
    const x = xOf(tile.begin + first * each), w = Math.max(xOf(tile.begin + last * each) - x, 0.5);
    if (x + w < left || x > left + width) return;
    pen.fillStyle = colour;
    pen.fillRect(x, top + y, w + 0.5, size);
  });
}

/** What is filled, from a column to the one before another: from a height on, so much, with a colour. */
type Fill = (first: number, last: number, y: number, size: number, colour: string) => void;

/** Fills all columns, those that are alike at once. Where nobody knows nothing is filled: the row is hatched. */
function forAlike(row: Row, { count, shares, leaders }: Columns, height: number, fill: Fill) {
  const same = (a: number, b: number) => {
    if (leaders[a] !== leaders[b]) return false;
    for (let kind = 0; kind < KINDS; kind++) if (shares[a * KINDS + kind] !== shares[b * KINDS + kind]) return false;
    return true;
  };
  const ofCpu = isCpu(row.id);
  for (let column = 0, last = 0; column < count; column = last) {
    last = column + 1;
    while (last < count && same(column, last)) last++;
    const share = (kind: number) => shares[column * KINDS + kind]! / 255;
    const unknown = share(0) > 0 ? Math.max(height * share(0), 1) : 0, leader = leaders[column]!;
    fill(column, last, unknown, height - unknown, css("--back"));
    let y = height;
    for (const kind of STACK) {
      const part = share(kind);
      if (part === 0) continue;
      const size = Math.max(part * height, 1), task = ofCpu && kindOf(leader) === kind ? detailOf(leader) - 1 : -1;
      y -= size;
      fill(column, last, Math.max(y, 0), size, task >= 0 ? taskColour(kind, task) : kindColour(kind));
    }
    if (share(1) > 0.5) fill(column, last, height / 2, 1, css("--quiet"));
  }
}

const pixels = document.createElement("canvas");

/** The same as a picture with a pixel for each column: a rectangle for each part of each would take the browser longer than a step may. */
function drawPixels(pen: CanvasRenderingContext2D, row: Row, columns: Columns, x: number, top: number, end: number) {
  const height = Math.round(HEIGHT * (devicePixelRatio || 1)), { count } = columns;
  const image = new ImageData(count, height), words = new Uint32Array(image.data.buffer);
  forAlike(row, columns, height, (first, last, y, size, colour) => {
    const word = wordOf(colour), from = Math.min(Math.round(y), height - 1), until = Math.min(Math.max(Math.round(y + size), from + 1), height);
    for (let line = from * count; line < until * count; line += count) for (let at = line + first; at < line + last; at++) words[at] = word;
  });
  if (pixels.width !== count || pixels.height !== height) [pixels.width, pixels.height] = [count, height];
  pixels.getContext("2d", { willReadFrequently: true })!.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(pixels, x, top, end - x, HEIGHT);
}
