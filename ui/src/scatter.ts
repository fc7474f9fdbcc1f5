// Points over time by how long each took, with a log scale.

import { type Box, legend, logScale, timeAxis, timeScale } from "./axis";
import { Chart, point } from "./chart";
import { css } from "./colours";
import type { Pen } from "./pen";
import { setCursor, show, state } from "./state";
import { round } from "./text";

export interface Dot { begin: number; end: number; size: number; colour: string; title: string }

export class Scatter {
  readonly chart = new Chart((pen) => this.draw(pen));
  private dots: Dot[] = [];
  private range: [number, number] = [0, 1];
  private legend: [string, string][] = [];
  private yOf: (size: number) => number = () => 0;

  constructor(private readonly title: string, private readonly text: (size: number) => string = round) {
    const canvas = this.chart.canvas;
    canvas.onmousemove = (event) => {
      const dot = this.under(event);
      canvas.title = dot?.title ?? "";
      canvas.style.cursor = dot ? "pointer" : "default";
    };
    canvas.onclick = (event) => {
      const dot = this.under(event);
      if (!dot) return;
      setCursor(dot.end);
      const margin = Math.max((dot.end - dot.begin) * 0.2, 500);
      show(dot.begin - margin, dot.end + margin);
    };
  }

  set(dots: Dot[], range: [number, number], legend: [string, string][]) {
    [this.dots, this.range, this.legend] = [dots, range, legend];
    this.chart.redraw();
  }

  private box(): Box { return { left: 66, top: 24, width: Math.max(this.chart.width - 78, 10), height: Math.max(this.chart.height - 48, 10) }; }

  private draw(pen: Pen) {
    const area = this.box();
    pen.fillStyle = css("--faint");
    pen.fillText(this.title, 8, 12);
    legend(pen, 16 + pen.measureText(this.title).width, this.chart.width, this.legend);
    const sizes = this.dots.map((dot) => dot.size), [least, most] = [sizes.reduce((a, b) => Math.min(a, b), Infinity), sizes.reduce((a, b) => Math.max(a, b), 1)];
    this.yOf = logScale(pen, area, (Number.isFinite(least) ? Math.max(least, 1) : 1000) / 1.3, Math.max(most, 2) * 1.3, this.text);
    timeAxis(pen, area, ...this.range);
    const xOf = timeScale(area, ...this.range);
    for (const dot of this.dots) {
      pen.fillStyle = dot.colour;
      pen.globalAlpha = 0.75;
      pen.beginPath();
      pen.arc(xOf(dot.end), this.yOf(dot.size), 3, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    if (state.cursor !== null && state.cursor >= this.range[0] && state.cursor <= this.range[1]) {
      pen.fillStyle = css("--accent");
      pen.fillRect(xOf(state.cursor) - 1, area.top, 2, area.height);
    }
  }

  private under(event: MouseEvent): Dot | null {
    const area = this.box(), { x, y } = point(this.chart.canvas, event), xOf = timeScale(area, ...this.range);
    let best: Dot | null = null, least = 14;
    for (const dot of this.dots) {
      const away = Math.hypot(xOf(dot.end) - x, this.yOf(dot.size) - y);
      if (away < least) [best, least] = [dot, away];
    }
    return best;
  }
}
