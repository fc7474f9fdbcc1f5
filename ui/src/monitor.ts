// The monitor's page: histograms by CPU, the worst over time, who was late and who had the CPU.

import { type Box, legend, logScale, places } from "./axis";
import { Chart, point } from "./chart";
import { css, onColour, themeChanged } from "./colours";
import { grid, value, words } from "./grid";
import { showInside } from "./inside";
import type { Pen } from "./pen";
import { choice, count, counted, duration, el, named, percent, problem, round } from "./text";

interface Task { tid: number; prio: number; name: string }
/** What a watch said of an activation over the limit. */
interface Late { latency_ns: number; cause: string; proven: boolean; sentence: string; ledger: [string, number][]; advice: string[]; snapshot: string | null }
interface Worst {
  cpu: number; value_ns: number; at_ns: number; timer_ns: number | null; wakeup_ns: number; switch_ns: number; return_ns: number; phase: string;
  victim: Task | null; running_at_the_time: Task | null; interrupted: string | null; other: string | null; key: string | null; function: string | null; call: string | null; stack: string[]; late: Late | null;
}
interface Cpu { cpu: number; samples: number; min_ns: number; mean_ns: number; p99_ns: number | null; p999_ns: number | null; max_ns: number; buckets_ns: [number, number, number][] }
interface Stretch { begin_ns: number; end_ns: number; p50_ns: number | null; p99_ns: number | null; p999_ns: number | null; max_ns: number; lost: number; intervals: number }
interface Ridge { begin_ns: number; end_ns: number; buckets_ns: [number, number, number][] }
interface Page {
  host: string | null; kernel: string | null; runs: number; intervals: number; scope: string; phase: string; scopes: string[]; phases: string[];
  lost: number; lost_tracked: number; hidden: number; unsaved: number; cost_ns: number; elapsed_ns: number; cpus: Cpu[]; over_time: Stretch[]; ridges: Ridge[]; worst: Worst[];
}

/** Told apart by everybody: the set of Okabe and Ito. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d00", "#7f7f7f"];
const HOUR = 3_600_000_000_000;
const SPANS: [string, string][] = [[String(HOUR), "last hour"], [String(24 * HOUR), "last 24 hours"], [String(7 * 24 * HOUR), "last 7 days"], [String(30 * 24 * HOUR), "last 30 days"], [String(4000 * 24 * HOUR), "all"]];
const PHASES: Record<string, string> = {
  timer: "timer expired → its function", wakeup: "→ on the run queue", switch: "run queue → on a CPU", timer_wakeup: "timer → run queue",
  timer_wakeup_switch: "timer → on a CPU", return: "on a CPU → back in the program", total: "timer → back in the program",
};
const SCOPES: Record<string, string> = { realtime: "real-time tasks", named: "named tasks", all: "every task" };
const PARTS: [keyof Worst & `${string}_ns`, string, string][] = [["timer_ns", "the timer came late", "#d55e00"], ["wakeup_ns", "until it was on the run queue", "#e69f00"],
  ["switch_ns", "until it had the CPU", "#56b4e9"], ["return_ns", "until its system call returned", "#009e73"]];

const by = (id: string) => document.getElementById(id)!;
const asked = { last_ns: String(24 * HOUR), scope: "", phase: "" };
const token = new URLSearchParams(location.search).get("token") ?? "";
let page: Page | null = null, chosen: Worst | null = null, shown = "", asRidges = false;
const bars = new Chart(drawBars), line = new Chart(drawLine);
const box = (chart: Chart): Box => ({ left: 66, top: 24, width: Math.max(chart.width - 78, 10), height: Math.max(chart.height - 46, 10) });
const colourOf = (cpu: number) => COLOURS[cpu % COLOURS.length]!;
/** As `2026-11-23 04:18:50`, where the page is read. */
const wall = (ns: number, seconds = true) => {
  const date = new Date(ns / 1e6), two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
};
const taskName = (task: Task | null) => (task ? (task.tid === 0 ? "the idle task" : `${named(task.name)} (${task.tid})`) : "nobody was seen");
const urgency = (task: Task | null) => (!task || task.tid === 0 ? "" : task.prio < 0 ? "deadline" : task.prio < 99 ? `rt ${99 - task.prio}` : "fair");

const ask = (path: string) => fetch(`api/v1/${path}`, token ? { headers: { Authorization: `Bearer ${token}` } } : {});

async function load() {
  const query = Object.entries(asked).filter(([, text]) => text).map(([key, text]) => `${key}=${text}`).join("&");
  try {
    const answer = await ask(`monitor?${query}`);
    const found = await answer.json();
    if (!answer.ok) throw new Error([found.error?.what, found.error?.found, found.error?.fix].filter(Boolean).join(" · "));
    page = found as Page;
    note(page.intervals ? "" : "no interval of that time is in the store yet: one is closed every few minutes (--every)");
  } catch (error) {
    note(error instanceof TypeError ? "the monitor does not answer: was it ended?" : problem(error));
    return;
  }
  show();
}

function note(text: string) {
  by("note").hidden = !text;
  by("note").textContent = text;
}

function show() {
  if (!page) return;
  const lost = page.lost + page.unsaved ? `; ${counted(page.lost, "sample")} and ${counted(page.unsaved, "interval")} lost` : "";
  const tracked = page.lost_tracked ? `; ${counted(page.lost_tracked, "interval")} of trackers or more lost` : "";
  const hidden = page.hidden ? `; ${counted(page.hidden, "sample")} that no program saw, by the kernel's accounts` : "";
  const cost = page.elapsed_ns ? `; it cost ${percent(page.cost_ns / page.elapsed_ns)} of a CPU` : "";
  by("facts").textContent = `${page.host ? `${named(page.host)} ${named(page.kernel ?? "")}: ` : ""}${counted(page.intervals, "interval")} of ${counted(page.runs, "run")}${cost}${hidden}${lost}${tracked}`;
  choices();
  if (!chosen || !page.worst.some((one) => one.phase === chosen!.phase && one.at_ns === chosen!.at_ns && one.value_ns === chosen!.value_ns)) chosen = page.worst[0] ?? null;
  bars.redraw();
  line.redraw();
  worst();
  ledger();
}

function choices() {
  const pick = (key: keyof typeof asked) => (text: string) => { asked[key] = text; void load(); };
  const all = (known: string[], names: Record<string, string>, now: string): [string, string][] => [...new Set([...known, now])].map((one) => [one, names[one] ?? one]);
  by("choices").replaceChildren(choice("of what time", SPANS, asked.last_ns, pick("last_ns")),
    choice("whose", all(page!.scopes, SCOPES, page!.scope), page!.scope, (text) => { asked.phase = ""; pick("scope")(text); }),
    choice("which part of the way", all(page!.phases, PHASES, page!.phase), page!.phase, pick("phase")));
}

/** A bucket of one CPU behind the other, how many by a log scale. */
function drawBars(pen: Pen) {
  const cpus = page?.cpus ?? [], area = box(bars);
  if (!cpus.length) { pen.fillStyle = css("--faint"); pen.fillText("no sample of these tasks in this time", area.left, area.top + 20); return; }
  const edges = cpus.flatMap((one) => one.buckets_ns), low = Math.max(edges.reduce((a, one) => Math.min(a, one[0]), Infinity), 1), high = edges.reduce((a, one) => Math.max(a, one[1]), 2);
  const most = edges.reduce((a, one) => Math.max(a, one[2]), 1);
  // Half a sample is the ground: one sample is seen.
  const y = logScale(pen, area, 1, most * 1.5, (number) => count(Math.round(number))), ground = area.top + area.height;
  const xOf = (ns: number) => area.left + (Math.log(Math.max(ns, low) / low) / Math.log(high / low)) * area.width;
  pen.fillStyle = css("--faint");
  pen.fillRect(area.left, ground, area.width, 1);
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) {
    const x = xOf(10 ** power), text = round(10 ** power);
    pen.fillRect(x, ground, 1, 4);
    pen.textAlign = "center";
    if (x + 20 < area.left + area.width + 12) pen.fillText(text, x, ground + 12);
    pen.textAlign = "left";
  }
  const name = (one: (typeof cpus)[number]) => (cpus.length > 3 ? `CPU ${one.cpu}` : `CPU ${one.cpu}: 99.9 % below ${duration(one.p999_ns ?? one.max_ns)}`);
  legend(pen, area.left, bars.width, cpus.slice(0, 16).map((one) => [name(one), colourOf(one.cpu)]));
  for (const one of cpus.slice(0, 16)) {
    pen.strokeStyle = pen.fillStyle = colourOf(one.cpu);
    steps(pen, one.buckets_ns, xOf, y, ground);
    // The longest is what matters: it is marked.
    pen.beginPath();
    pen.arc(xOf(one.max_ns), ground - 3, 3.5, 0, 7);
    pen.fill();
  }
}

/** The outline of a histogram; its body is faint, so that others are seen behind it. */
function steps(pen: Pen, buckets: [number, number, number][], xOf: (ns: number) => number, y: (count: number) => number, ground: number) {
  for (const [low, high, samples] of buckets) {
    const [x, end, top] = [xOf(low), xOf(high), Math.min(y(samples), ground - 2)];
    pen.globalAlpha = 0.18;
    pen.fillRect(x, top, Math.max(end - x, 1), ground - top);
    pen.globalAlpha = 1;
    pen.fillRect(x, top - 1, Math.max(end - x, 1.5), 2);
  }
}

/** Whose share of the samples was not longer, and how its line looks. */
const BANDS: [keyof Stretch & `p${string}`, string, string][] = [["p999_ns", "99.9 %", "#cc79a7"], ["p99_ns", "99 %", "#e69f00"], ["p50_ns", "half", "#009e73"]];

function drawLine(pen: Pen) {
  if (asRidges) { drawRidges(pen); return; }
  const all = page?.over_time ?? [], area = box(line);
  const known = all.filter((one) => one.max_ns > 0);
  if (!known.length) return;
  const [begin, end] = [all[0]!.begin_ns, all.at(-1)!.end_ns];
  const most = known.reduce((a, one) => Math.max(a, one.max_ns), 1), least = known.reduce((a, one) => Math.min(a, one.p50_ns ?? one.max_ns), most);
  const y = logScale(pen, area, least / 1.5, most * 1.5), xOf = (ns: number) => area.left + ((ns - begin) / Math.max(end - begin, 1)) * area.width, ground = area.top + area.height;
  for (const one of all) {
    const x = xOf(one.begin_ns), w = Math.max(xOf(one.end_ns) - x - 0.5, 1.5);
    if (one.max_ns > 0) {
      pen.fillStyle = css("--accent");
      pen.globalAlpha = 0.18;
      pen.fillRect(x, y(one.max_ns), w, ground - y(one.max_ns));
      pen.globalAlpha = 1;
      pen.fillRect(x, y(one.max_ns) - 1, w, 2);
    }
    for (const [key, , colour] of BANDS) {
      const ns = one[key];
      if (ns === null || one.max_ns === 0) continue;
      pen.fillStyle = colour;
      pen.fillRect(x, y(ns) - 1, w + 0.5, 2);
    }
    if (one.lost) { pen.fillStyle = "#d55e00"; pen.fillRect(x, ground - 3, w, 3); }
  }
  legend(pen, area.left, line.width, [["longest", css("--accent")], ...BANDS.map(([, name, colour]): [string, string] => [name === "half" ? "half are below" : `${name} are below`, colour])]);
  wallAxis(pen, area, begin, end);
  if (chosen && chosen.at_ns >= begin && chosen.at_ns <= end) {
    pen.fillStyle = "#d55e00";
    pen.beginPath();
    pen.arc(xOf(chosen.at_ns), y(chosen.value_ns), 5, 0, 7);
    pen.fill();
  }
}

/** Times of the day, or days, below a picture. */
function wallAxis(pen: Pen, area: Box, begin: number, end: number) {
  const xOf = (ns: number) => area.left + ((ns - begin) / Math.max(end - begin, 1)) * area.width, ground = area.top + area.height;
  pen.fillStyle = css("--faint");
  pen.fillRect(area.left, ground, area.width, 1);
  const { at } = places(begin, end, Math.max(area.width / 160, 1));
  for (const ns of at) {
    const text = wall(ns, end - begin < 600e9).slice(end - begin > 48 * HOUR ? 5 : 11);
    pen.fillRect(xOf(ns), ground, 1, 4);
    if (xOf(ns) + pen.measureText(text).width < area.left + area.width + 10) pen.fillText(text, xOf(ns), ground + 12);
  }
}

/** A histogram behind the other, the newest in front: OSADL's picture of months. */
function drawRidges(pen: Pen) {
  const all = (page?.ridges ?? []).filter((one) => one.buckets_ns.length), area = box(line);
  if (!all.length) return;
  const edges = all.flatMap((one) => one.buckets_ns), low = Math.max(edges.reduce((a, one) => Math.min(a, one[0]), Infinity), 1), high = edges.reduce((a, one) => Math.max(a, one[1]), low * 10);
  const most = Math.log10(edges.reduce((a, one) => Math.max(a, one[2]), 1) + 1), ground = area.top + area.height;
  const xOf = (ns: number) => area.left + (Math.log(Math.max(ns, low) / low) / Math.log(high / low)) * area.width;
  const step = Math.min((area.height * 0.75) / all.length, 18), tall = Math.max(step * 3, area.height - step * all.length - 4);
  // There is room for a day or for a time.
  const days: [number, number] = all.at(-1)!.end_ns - all[0]!.begin_ns > 48 * HOUR ? [5, 10] : [11, 16];
  pen.fillStyle = css("--faint");
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) {
    pen.fillRect(xOf(10 ** power), area.top, 0.5, area.height + 4);
    if (xOf(10 ** power) + 40 < area.left + area.width) pen.fillText(round(10 ** power), xOf(10 ** power) + 3, ground + 12);
  }
  all.forEach((one, place) => {
    const base = ground - (all.length - 1 - place) * step, top = (count: number) => base - (Math.log10(count + 1) / most) * tall;
    pen.beginPath();
    pen.moveTo(xOf(one.buckets_ns[0]![0]), base);
    let before = one.buckets_ns[0]![0];
    for (const [from, to, samples] of one.buckets_ns) {
      // Between two buckets that have samples there may be some that have none.
      if (from > before) { pen.lineTo(xOf(before), base); pen.lineTo(xOf(from), base); }
      pen.lineTo(xOf(from), top(samples));
      pen.lineTo(xOf(to), top(samples));
      before = to;
    }
    pen.lineTo(xOf(before), base);
    pen.fillStyle = css("--raised");
    pen.fill();
    pen.strokeStyle = css("--accent");
    pen.lineWidth = 1;
    pen.stroke();
    if (place === 0 || place === all.length - 1) {
      pen.fillStyle = css("--faint");
      pen.fillText(wall(one.begin_ns, false).slice(...days), 2, base - 3);
    }
  });
}

/** The worst of the stretch that is under the mouse. */
function stretchAt(event: MouseEvent): Stretch | undefined {
  const all = page?.over_time ?? [], area = box(line);
  if (!all.length) return undefined;
  const ns = all[0]!.begin_ns + ((point(line.canvas, event).x - area.left) / area.width) * (all.at(-1)!.end_ns - all[0]!.begin_ns);
  return all.find((one) => one.begin_ns <= ns && ns < one.end_ns);
}

function worst() {
  // What a tracker measures says of what it was, and what the other one of it did.
  const first = page!.worst[0], other = first?.other ?? null, whole = other === null ? ["latency", "late", "had the CPU", "slept in"] : ["time", "task", other || "other", "of"];
  const [time, late, beside, where] = whole as [string, string, string, string];
  const heads = [{ text: time, number: true }, { text: late }, { text: beside }, { text: where }, { text: "CPU", number: true }, { text: "when", number: true }];
  const who = (one: Worst) => (one.other !== null && !one.running_at_the_time ? "" : taskName(one.running_at_the_time));
  const lines = page!.worst.map((one) => ({
    cells: [value(one.value_ns, duration(one.value_ns)), words(taskName(one.victim)), words(who(one)), words(named(one.call ?? one.key ?? "")),
      value(one.cpu, String(one.cpu)), { ...value(one.at_ns, wall(one.at_ns).slice(Number(asked.last_ns) > 24 * HOUR ? 5 : 11)), title: wall(one.at_ns) }],
    click: () => { chosen = one; show(); }, here: one === chosen,
  }));
  by("worst").replaceChildren(title("The longest of each interval", `${lines.length} of them; click one for its parts`), el("div", { cls: "scroll" }, grid("worst", heads, lines)));
}

/** The parts of the one that is chosen, in the order in which they happened. */
function ledger() {
  const one = chosen, holder = el("div", { cls: "scroll ledger" });
  // Who reads the answer keeps it when the page is filled anew.
  const is = JSON.stringify(one);
  if (is === shown) return;
  shown = is;
  by("ledger").replaceChildren(title("Where its time went", ""), holder);
  if (!one) { holder.append(el("p", { cls: "faint", text: "nothing was late" })); return; }
  const parts = PARTS.map(([key, name, colour]) => ({ ns: Number(one[key] ?? 0), name, colour })).filter((part) => part.ns > 0), whole = parts.reduce((sum, part) => sum + part.ns, 0);
  if (one.other !== null) { tracked(holder, one, one.other); return; }
  holder.append(el("h2", { text: `${taskName(one.victim)}, ${urgency(one.victim)}, was late by ${duration(one.value_ns)} on CPU ${one.cpu}` }));
  const bar = el("div", { cls: "terms" });
  for (const part of parts) {
    const made = el("span", { text: part.ns / whole > 0.15 ? `${part.name} ${duration(part.ns)}` : "", title: `${part.name}: ${duration(part.ns)}` });
    [made.style.flex, made.style.background, made.style.color] = [`${Math.max(part.ns / whole, 0.004)} 1 0`, part.colour, onColour(part.colour)];
    bar.append(made);
  }
  const lines = parts.map((part) => ({ cells: [words(part.name), value(part.ns, duration(part.ns)), { ...value(part.ns, percent(part.ns / whole)), bar: part.ns / whole, colour: part.colour }] }));
  holder.append(bar, grid("parts", [{ text: "part" }, { text: "time", number: true }, { text: "share", number: true }], lines));
  if (one.late) told(holder, one.late);
  const culprit = one.running_at_the_time;
  const unseen = one.interrupted === "not_seen";
  const facts = [`At ${wall(one.at_ns)}.`, unseen ? `No program of the monitor was called meanwhile: the kernel's own accounts have this sample, its timer and its wake-up as one part. ${taskName(culprit)} was last seen to come on the CPU.` : `${taskName(culprit)}${urgency(culprit) ? `, ${urgency(culprit)},` : ""} had the CPU when the longest part ended; that proves nothing by itself.`,
    one.call ? `${taskName(one.victim)} waited in ${named(one.call)}.` : "", one.function ? `Interrupted was ${named(one.function)} (${(one.interrupted ?? "").replaceAll("_", " ")}).` : ""];
  for (const fact of facts.filter(Boolean)) holder.append(el("p", { text: fact }));
  if (one.stack.length) holder.append(el("h3", { text: "its functions in the kernel, innermost first" }), el("pre", { text: "" }));
  const pre = holder.querySelector("pre");
  if (pre) pre.textContent = one.stack.map((line) => named(line)).join("\n");
  const name = one.victim?.name ?? "";
  if (name && !one.late) holder.append(el("h3", { text: "to catch the next one with proof" }), el("code", { text: `rtscope watch --task '${named(name)}' --over ${limit(one.value_ns / 2)}` }));
}

/** The longest of a tracker: of what it was, and who else was in it. */
function tracked(holder: HTMLElement, one: Worst, other: string) {
  holder.append(el("h2", { text: `${one.phase}${one.key ? `: ${named(one.key)}` : ""} took ${duration(one.value_ns)} on CPU ${one.cpu}` }));
  const beside = other && one.running_at_the_time ? `, ${other} ${taskName(one.running_at_the_time)}` : "";
  holder.append(el("p", { text: `At ${wall(one.at_ns)}: ${taskName(one.victim)}${urgency(one.victim) ? `, ${urgency(one.victim)}` : ""}${beside}.` }));
  const tracker = one.phase.split("_")[0]!;
  if (tracker === "pair") return;
  holder.append(el("h3", { text: "to be told of the next one" }), el("code", { text: `rtscope watch ${tracker} --over ${limit(one.value_ns / 2)}` }));
}

/** As it is typed after --over. */
const limit = (ns: number) => duration(ns).replace(/\s|\.\d+/g, "").replace("µ", "u");

/** What the watch beside the monitor found out of this one: its ledger, what to change, and its snapshot. */
function told(holder: HTMLElement, late: Late) {
  const whole = Math.max(late.latency_ns, 1);
  holder.append(el("h3", { text: late.proven ? "proven by its snapshot" : "over the limit, and not proven" }));
  if (late.sentence) holder.append(el("p", { text: late.sentence }));
  const lines = late.ledger.map(([text, ns]) => ({ cells: [words(named(text)), value(ns, duration(ns)), { ...value(ns, percent(ns / whole)), bar: ns / whole }] }));
  if (lines.length) holder.append(grid("told", [{ text: "who had the time", wide: true }, { text: "time", number: true }, { text: "share", number: true }], lines));
  if (late.advice.length) holder.append(el("h3", { text: "to change it" }), ...late.advice.map((line) => el("p", {}, el("code", { text: line }))));
  if (!late.snapshot) return;
  const name = late.snapshot.split("/").at(-1)!, place = el("div", { cls: "answer" }), button = el("button", { text: "the whole answer", title: "As rtscope diagnose says it, from the snapshot" });
  holder.append(el("h3", { text: "its snapshot" }), el("p", {}, el("code", { text: `rtscope diagnose ${named(late.snapshot)} -v` })), button, place);
  button.onclick = async () => {
    button.disabled = true;
    button.textContent = "the snapshot is being read …";
    try {
      const answer = await ask(`late?snapshot=${encodeURIComponent(name)}`);
      if (!answer.ok) { const { error } = await answer.json(); throw new Error([error?.what, error?.found, error?.fix].filter(Boolean).join(" · ")); }
      showInside(place.shadowRoot ?? place.attachShadow({ mode: "open" }), await answer.text());
      button.remove();
    } catch (error) {
      button.disabled = false;
      button.textContent = "the whole answer";
      note(problem(error));
    }
  };
}

function title(text: string, small: string): HTMLElement {
  const made = el("h2", { text: `${text} ` });
  if (small) made.append(el("small", { text: small }));
  return made;
}

function theme(name: string) {
  document.documentElement.dataset.theme = name;
  by("theme").textContent = name === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", name); } catch { /* a browser that keeps nothing */ }
  themeChanged();
  bars.redraw();
  line.redraw();
}

function start() {
  const other = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  by("theme").onclick = other;
  document.addEventListener("keydown", (event) => { if (event.key === "l" && !event.ctrlKey && !event.metaKey) other(); });
  by("histogram").append(title("How often which latency", "both scales by powers of ten; a dot: the longest"), el("div", { cls: "chart" }, bars.canvas));
  const kind = choice("how it is drawn", [["bands", "as bands"], ["ridges", "as ridges"]], "bands", (text) => { asRidges = text === "ridges"; line.redraw(); });
  const head = title("Over time", "click: the worst of then; red: samples were lost");
  head.append(kind);
  by("over-time").append(head, el("div", { cls: "chart" }, line.canvas));
  line.canvas.onclick = (event) => {
    const stretch = asRidges ? undefined : stretchAt(event), found = page?.worst.filter((one) => stretch && one.at_ns >= stretch.begin_ns && one.at_ns <= stretch.end_ns)[0];
    if (found) { chosen = found; show(); }
  };
  line.canvas.onmousemove = (event) => {
    const stretch = asRidges ? undefined : stretchAt(event);
    line.canvas.title = stretch ? `${wall(stretch.begin_ns)}: longest ${duration(stretch.max_ns)}${stretch.lost ? `, ${stretch.lost} lost` : ""}` : "";
  };
  let kept: string | null = null;
  try { kept = localStorage.getItem("theme"); } catch { /* a browser that keeps nothing */ }
  theme(kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  void load().then(() => { document.documentElement.dataset.ready = "true"; });
  // What is closed meanwhile is seen without a hand; who reads a list is not disturbed by a new order.
  setInterval(() => { if (!document.hidden) void load(); }, 10_000);
}

start();
