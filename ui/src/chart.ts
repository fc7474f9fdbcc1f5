// A canvas that is as sharp as the screen, drawn when the browser has time, and kept as PNG or SVG.

import { css } from "./colours";
import { FONT, type Pen, SvgPen } from "./pen";

export type Draw = (pen: Pen, width: number, height: number) => void;

export class Chart {
  readonly canvas: HTMLCanvasElement;
  private frame = 0;
  /** Until it changes. */
  private size: [number, number] | null = null;

  constructor(private readonly draw: Draw, canvas?: HTMLCanvasElement, resized?: () => void) {
    this.canvas = canvas ?? document.createElement("canvas");
    // Of a tab that is closed nothing is drawn, nor asked for.
    new ResizeObserver(() => {
      this.size = null;
      if (this.width > 0) (resized ?? (() => this.redraw()))();
    }).observe(this.canvas);
  }

  // Asked for at every place that is drawn: a canvas that is asked lays out the whole page anew, where that has changed.
  private sized(): [number, number] {
    if (this.size) return this.size;
    const size: [number, number] = [this.canvas.clientWidth, this.canvas.clientHeight];
    // One that is not in the page yet has none.
    if (size[0] > 0) this.size = size;
    return size;
  }
  get width() { return this.sized()[0]; }
  get height() { return this.sized()[1]; }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint() {
    const scale = devicePixelRatio || 1, context = this.canvas.getContext("2d")!;
    const [w, h] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.on(context);
  }

  private on(pen: Pen) {
    pen.globalAlpha = 1;
    pen.font = FONT;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = css("--back");
    pen.fillRect(0, 0, this.width, this.height);
    this.draw(pen, this.width, this.height);
  }

  private recorded(): SvgPen {
    const pen = new SvgPen(this.width, this.height, css("--hatch"));
    this.on(pen);
    return pen;
  }

  /** Whether there is nothing on it. */
  get isBlank() { return this.recorded().isBlank; }

  svg(): string { return this.recorded().svg(); }

  png(): Promise<Blob | null> {
    this.paint();
    return new Promise((done) => this.canvas.toBlob(done, "image/png"));
  }
}

/** A place of the canvas under the mouse. */
export function point(canvas: HTMLCanvasElement, event: MouseEvent) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
