// What views draw with: a canvas, or a recorder that makes the same picture as SVG.

type Strokes = Pick<CanvasRenderingContext2D,
  "fillStyle" | "strokeStyle" | "globalAlpha" | "lineWidth" | "font" | "textAlign" | "textBaseline" | "fillRect" | "fillText"
  | "save" | "restore" | "beginPath" | "rect" | "clip" | "arc" | "moveTo" | "lineTo" | "fill" | "stroke" | "measureText" | "createPattern">;
export type Pen = CanvasRenderingContext2D | SvgPen;

export const FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

interface Kept { fillStyle: Strokes["fillStyle"]; strokeStyle: Strokes["strokeStyle"]; globalAlpha: number; lineWidth: number; groups: number }

const escaped = (text: string) =>
  text.replace(/[<>&"']/g, (one) => `&#${one.codePointAt(0)!};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
const short = (number: number) => String(Math.round(number * 100) / 100);

/** Draws into the text of an SVG file. */
export class SvgPen implements Strokes {
  fillStyle: Strokes["fillStyle"] = "#000";
  strokeStyle: Strokes["strokeStyle"] = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  font = FONT;
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private parts: string[] = [];
  private path = "";
  private box: [number, number, number, number] | null = null;
  private kept: Kept[] = [];
  private groups = 0;
  private clips = 0;
  private readonly letters = document.createElement("canvas").getContext("2d")!;

  constructor(private readonly width: number, private readonly height: number, private readonly hatch: string) {}

  private paint(style: Strokes["fillStyle"]) { return typeof style === "string" ? style : "url(#hatch)"; }
  private fade() { return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : ""; }

  fillRect(x: number, y: number, w: number, h: number) {
    if (w <= 0 || h <= 0 || this.paint(this.fillStyle) === "#00000000") return;
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${this.paint(this.fillStyle)}"${this.fade()}/>`);
  }
  fillText(text: string, x: number, y: number, most?: number) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign as string] ?? "start";
    const down = this.textBaseline === "middle" ? ' dominant-baseline="central"' : "";
    const wide = this.measureText(text).width;
    const squeeze = most !== undefined && wide > most ? ` textLength="${short(most)}" lengthAdjust="spacingAndGlyphs"` : "";
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" fill="${this.paint(this.fillStyle)}" text-anchor="${anchor}"${down}${squeeze}${this.fade()}>${escaped(text)}</text>`);
  }
  measureText(text: string) { this.letters.font = this.font; return this.letters.measureText(text); }
  createPattern() { return null; }
  save() {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, groups } = this;
    this.kept.push({ fillStyle, strokeStyle, globalAlpha, lineWidth, groups });
  }
  restore() {
    const kept = this.kept.pop();
    if (!kept) return;
    for (; this.groups > kept.groups; this.groups--) this.parts.push("</g>");
    Object.assign(this, { fillStyle: kept.fillStyle, strokeStyle: kept.strokeStyle, globalAlpha: kept.globalAlpha, lineWidth: kept.lineWidth });
  }
  beginPath() { [this.path, this.box] = ["", null]; }
  rect(x: number, y: number, w: number, h: number) {
    this.box = [x, y, w, h];
    this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`;
  }
  clip() {
    if (!this.box) return;
    const [x, y, w, h] = this.box.map(short);
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath><g clip-path="url(#${id})">`);
    this.groups++;
  }
  arc(x: number, y: number, radius: number) {
    const r = short(radius);
    this.path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0`;
  }
  moveTo(x: number, y: number) { this.path += `M${short(x)} ${short(y)}`; }
  lineTo(x: number, y: number) { this.path += `L${short(x)} ${short(y)}`; }
  fill() { this.parts.push(`<path d="${this.path}" fill="${this.paint(this.fillStyle)}"${this.fade()}/>`); }
  stroke() {
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.paint(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"${this.fade()}/>`);
  }

  /** Whether only the ground was painted. */
  get isBlank() { return this.parts.filter((part) => /^<(rect|text|path)/.test(part)).length < 2; }

  /** The whole file. */
  svg(): string {
    const [w, h] = [short(this.width), short(this.height)];
    const hatched = `<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0M-1 1L1 -1M5 7L7 5" stroke="${this.hatch}" stroke-width="1"/></pattern>`;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="12"><defs>${hatched}</defs>${this.parts.join("\n")}${"</g>".repeat(this.groups)}</svg>\n`;
  }
}
