// Why one activation was late: its ledger, the verdict and the advice.

import * as api from "./api";
import { termColour } from "./colours";
import { changed, show, state } from "./state";
import { duration, el, instant } from "./text";

let answer: api.Diagnosis | null = null, problem = "", latest = 0;
let place: HTMLElement | null = null;
let open: (tab: string) => void = () => {};
export const onOpen = (opener: (tab: string) => void) => { open = opener; };

/** Selects an activation: the timeline goes there, and its ledger is asked for. */
export async function select(task: number, end: number, latency: number | null) {
  [state.selected, state.cursor] = [{ task, end }, end];
  if (latency !== null) show(end - latency * 1.15, end + latency * 0.15 + 100);
  const mine = ++latest;
  [answer, problem, state.activation] = [null, "the ledger is being made …", null];
  changed("selected");
  if (latency !== null) open("ledger");
  try {
    const found = await api.ledger(task, end);
    if (mine !== latest) return;
    answer = found;
    state.activation = found.activations.find((late) => late.end_ns === end) ?? found.activations[0] ?? null;
    const chosen = state.activation;
    // Its latency begins where its chain does, which may be long before its wake-up.
    if (chosen && latency !== null) show(chosen.origin_ns - chosen.latency_ns * 0.08, chosen.end_ns + chosen.latency_ns * 0.08, false);
    problem = chosen ? "" : "the diagnosis has no activation that ends there: events before it are missing";
  } catch (error) {
    if (mine !== latest) return;
    problem = error instanceof Error ? error.message : String(error);
  }
  changed("selected");
  if (place?.isConnected) draw();
}

/** Without a selection: the worst of all real-time tasks. */
async function worst(holder: HTMLElement) {
  holder.append(el("p", { cls: "faint", text: "nothing is selected: the worst activations of the tasks that matter …" }));
  try {
    const found = await api.late({ worst: 50, tasks: state.search });
    const byPlace = new Map(found.groups.flatMap((group) => group.members.map((member) => [member, group] as const)));
    const lines = found.activations.map((late, at) => {
      const line = el("tr", {}, el("td", { cls: "n", text: duration(late.latency_ns) }), el("td", { text: `${late.task.comm ?? ""} (${late.task.tid})` }),
        el("td", { cls: "n", text: instant(late.end_ns, 1e4) }), el("td", { cls: "t", text: byPlace.get(at)?.verdict.sentence ?? "", title: byPlace.get(at)?.verdict.sentence ?? "" }));
      line.tabIndex = 0;
      line.onclick = () => void selectTid(late);
      line.onkeydown = (event) => { if (event.key === "Enter") line.click(); };
      return line;
    });
    const head = el("tr", {}, ...["latency", "thread", "at", "verdict on the worst of its cause"].map((text) => el("th", { text })));
    holder.replaceChildren(lines.length ? el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines))
      : el("p", { text: "no real-time task was activated here; find a thread above, or click a point of the latencies" }));
  } catch (error) {
    holder.replaceChildren(el("p", { cls: "bad", text: error instanceof Error ? error.message : String(error) }));
  }
}

async function selectTid(late: api.Activation) {
  const { tracks } = await api.tracks({ kind: "thread", search: String(late.task.tid), limit: 20 });
  const task = tracks.find((row) => row.facts?.tid === late.task.tid)?.task;
  if (task !== undefined && task !== null) await select(task, late.end_ns, late.latency_ns);
}

export function build(panel: HTMLElement) {
  place = el("div", { cls: "scroll ledger" });
  panel.append(place);
  if (state.selected) draw();
  else void worst(place);
}

function draw() {
  if (!place) return;
  const late = state.activation;
  if (!late || !answer) { place.replaceChildren(el("p", { text: problem })); return; }
  const at = answer.activations.indexOf(late);
  const group = answer.groups.find((one) => one.members.includes(at)) ?? answer.groups[0];
  const verdict = group?.verdict;
  place.replaceChildren(el("h2", { text: verdict?.sentence ?? "no verdict" }));
  if (verdict && !verdict.conclusive) place.append(el("p", { cls: "bad", text: "the evidence does not carry a verdict" }));
  const terms = late.ledger.terms;
  const bar = el("div", { cls: "terms" });
  for (const term of terms) {
    const part = el("span", { text: term.share > 0.08 ? term.text : "", title: `${term.text}: ${duration(term.duration_ns)}, ${(term.share * 100).toFixed(1)} %` });
    part.style.flex = `${Math.max(term.share, 0.002)} 1 0`;
    part.style.background = termColour(term.kind);
    bar.append(part);
  }
  place.append(bar);
  const unexplained = late.ledger.good ? "" : `; ${duration(late.ledger.unexplained_ns)} of it is unexplained`;
  place.append(el("p", { cls: "faint", text: `${duration(late.latency_ns)} from ${instant(late.origin_ns, 1)} to ${instant(late.end_ns, 1)}; evidence: ${late.ledger.grade}${unexplained}` }));
  place.append(table(["where the time went", "time", "share", "pieces", "CPU"], terms.map((term) =>
    [term.text, duration(term.duration_ns), `${(term.share * 100).toFixed(1)} %`, String(term.pieces), String(term.cpu)]), (row) => show(terms[row]!.range.begin_ns, terms[row]!.range.end_ns)));
  if (verdict?.advice.length) {
    place.append(el("h3", { text: "what to change (any one of these)" }));
    for (const advice of verdict.advice) {
      place.append(el("code", { text: advice.command }), el("p", { cls: "faint", text: `because ${advice.because}; then check: ${advice.then_check}` }));
    }
  }
  place.append(el("h3", { text: "the chain" }));
  place.append(table(["at", "CPU", "step"], late.steps.map((step) =>
    [instant(step.time_ns, 1), String(step.cpu), `${step.kind ?? ""} ${step.comm || (step.id ?? "")}`])));
  for (const warning of answer.warnings) place.append(el("p", { cls: "bad", text: `${warning.what} · ${warning.remedy}` }));
}

function table(head: string[], lines: string[][], click?: (row: number) => void) {
  const rows = lines.map((cells, at) => {
    const line = el("tr", {}, ...cells.map((text) => el("td", { text })));
    if (click) { line.tabIndex = 0; line.onclick = () => click(at); line.onkeydown = (event) => { if (event.key === "Enter") click(at); }; }
    return line;
  });
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { text })))), el("tbody", {}, ...rows));
}
