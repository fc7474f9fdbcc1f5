// Why one activation was late: its ledger, the verdict and the advice.

import * as api from "./api";
import { onColour, termColour } from "./colours";
import { grid, value, words } from "./grid";
import { save } from "./keep";
import { changed, show, state } from "./state";
import { button, duration, el, instant, named, percent, problem as said } from "./text";
import type { View } from "./views";

let answer: api.Diagnosis | null = null, problem = "", latest = 0;
/** How long it waited from its own wake-up, as *Latencies* has it, when it was chosen there. */
let wait: number | null = null;
let place: HTMLElement | null = null;
let open: (tab: string) => void = () => {};
export const onOpen = (opener: (tab: string) => void) => { open = opener; };

/** Selects an activation: the timeline goes there, and its ledger is asked for. */
export async function select(task: number, end: number, latency: number | null) {
  const panel = document.getElementById("panel")!, within = panel.contains(document.activeElement);
  [state.selected, state.cursor, state.thread] = [{ task, end }, end, task];
  if (latency !== null) show(end - latency * 1.15, end + latency * 0.15 + 100);
  const mine = ++latest;
  wait = latency;
  [answer, problem, state.activation, state.involved] = [null, "the ledger is being made …", null, []];
  changed("selected");
  if (latency !== null) open("ledger");
  // Who came by the keyboard goes on where the answer is; the row that was chosen is gone.
  if (within) panel.focus({ preventScroll: true });
  try {
    const found = await api.ledger(task, end);
    if (mine !== latest) return;
    answer = found;
    state.activation = found.activations.find((late) => late.end_ns === end) ?? found.activations[0] ?? null;
    const chosen = state.activation;
    // Its latency begins where its chain does, which may be long before its wake-up.
    if (chosen && latency !== null) show(chosen.origin_ns - chosen.latency_ns * 0.08, chosen.end_ns + chosen.latency_ns * 0.08, false);
    state.involved = chosen ? await involved(chosen) : [];
    if (mine !== latest) return;
    problem = chosen ? "" : "the diagnosis has no activation that ends there: events before it are missing";
  } catch (error) {
    if (mine !== latest) return;
    problem = said(error);
  }
  changed("selected");
  if (place?.isConnected) draw();
}

/** The tracks of the threads that the ledger names, the one that took most first. */
async function involved(late: api.Activation): Promise<string[]> {
  const tids = [...new Set(late.ledger.terms.map((term) => term.task?.tid ?? 0))].filter((tid) => tid > 0 && tid !== late.task.tid).slice(0, 4);
  const found = await Promise.all(tids.map((tid) => api.tracks({ kind: "thread", search: String(tid), limit: 20 })));
  return found.flatMap(({ tracks }, at) => tracks.filter((row) => row.facts?.tid === tids[at]).map((row) => row.id).slice(0, 1));
}

/** Without a selection: the worst of all real-time tasks. */
async function worst(holder: HTMLElement) {
  holder.append(el("p", { cls: "faint", text: "nothing is selected: looking for the worst activations of the tasks that matter …" }));
  try {
    const found = await api.late({ worst: 50, tasks: "" });
    const lines = found.activations.map((late, at) => {
      const sentence = ofRow(found, at);
      const cells = [value(late.latency_ns, duration(late.latency_ns)), words(`${named(late.task.comm)} (${late.task.tid})`),
        value(late.end_ns, instant(late.end_ns, 1e4)), words(sentence)];
      return { cells, click: () => void selectTid(late) };
    });
    const heads = [{ text: "latency", number: true }, { text: "thread" }, { text: "at", number: true }, { text: "verdict", wide: true }];
    holder.replaceChildren(lines.length ? grid("late", heads, lines)
      : el("p", { text: "no real-time task was activated here; find a thread above, or click a point of the latencies" }));
  } catch (error) {
    holder.replaceChildren(el("p", { cls: "bad", text: said(error) }));
  }
}

/** What a list says of one: a verdict is about the first of its cause, and names that one alone. */
function ofRow({ activations, groups }: api.Diagnosis, at: number): string {
  const group = groups.find((one) => one.members.includes(at)), first = group?.members[0], head = first === undefined ? undefined : activations[first];
  if (!group || first === undefined || !head) return "";
  if (first === at) return group.verdict.sentence;
  const who = `${named(head.task.comm)} (${head.task.tid}) at ${instant(head.end_ns, 1e4)}`;
  return group.verdict.conclusive ? `the same cause as that of ${who}` : "no verdict: the evidence does not carry one; click for its ledger";
}

async function selectTid(late: api.Activation) {
  const { tracks } = await api.tracks({ kind: "thread", search: String(late.task.tid), limit: 20 });
  const task = tracks.find((row) => row.facts?.tid === late.task.tid)?.task;
  if (task !== undefined && task !== null) await select(task, late.end_ns, late.latency_ns);
}

function build(panel: HTMLElement) {
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
  place.append(bar(late), about(late), terms(late));
  if (verdict?.advice.length) {
    place.append(el("h3", { text: "what to change (any one of these)" }));
    for (const advice of verdict.advice) {
      place.append(el("code", { text: advice.command }), el("p", { cls: "faint", text: `because ${advice.because}; then check: ${advice.then_check}` }));
    }
  }
  place.append(el("h3", { text: "the chain" }), chain(late));
  for (const one of verdict?.stacks ?? []) {
    const pre = el("pre");
    pre.textContent = one.stack.map((frame) => named(frame.symbol || frame.address)).join("\n");
    if (one.stack.length) place.append(el("h3", { text: `stack of ${named(one.what)}, innermost first` }), pre);
  }
  for (const warning of answer.warnings) place.append(el("p", { cls: "bad", text: `${warning.what} · ${warning.remedy}` }));
}

function bar(late: api.Activation): HTMLElement {
  const made = el("div", { cls: "terms" });
  for (const term of late.ledger.terms) {
    const part = el("span", { text: term.share > 0.08 ? `${term.text} ${duration(term.duration_ns)}` : "", title: `${term.text}: ${duration(term.duration_ns)}, ${percent(term.share)}` });
    part.style.flex = `${Math.max(term.share, 0.002)} 1 0`;
    part.style.background = termColour(term, late.ledger.terms);
    part.style.color = onColour(termColour(term, late.ledger.terms));
    made.append(part);
  }
  return made;
}

function about(late: api.Activation): HTMLElement {
  const unexplained = late.ledger.good ? "" : `; ${duration(late.ledger.unexplained_ns)} of it is unexplained`;
  const text = `${duration(late.latency_ns)} from ${instant(late.origin_ns, 1)} to ${instant(late.end_ns, 1)}; evidence: ${late.ledger.grade}${unexplained}`;
  const page = button("page for the ticket", "One file with all of this, which opens anywhere (rtscope diagnose --html)", () => void ticket(page));
  const own = wait !== null && wait < late.latency_ns * 0.99 ? ` Its own wait for a CPU, as in Latencies, is the last ${duration(wait)} of it: the chain begins before its wake-up.` : "";
  return el("p", { cls: "faint about" }, document.createTextNode(`${text}.${own} `), page);
}

async function ticket(page: HTMLButtonElement) {
  if (!state.selected) return;
  page.disabled = true;
  try { save(await api.incident(state.selected.task, state.selected.end), "late.html"); } catch (error) { page.title = said(error); page.textContent = said(error); }
  page.disabled = false;
}

function terms(late: api.Activation): HTMLElement {
  const lines = late.ledger.terms.map((term) => {
    const share = { ...value(term.share, percent(term.share)), bar: term.share, colour: termColour(term, late.ledger.terms) };
    const cells = [words(term.text), value(term.duration_ns, duration(term.duration_ns)), share, value(term.pieces, String(term.pieces)), value(term.cpu, String(term.cpu))];
    return { cells, click: () => show(term.range.begin_ns, term.range.end_ns) };
  });
  const sums = [late.ledger.terms.reduce((sum, term) => sum + term.duration_ns, 0), late.ledger.terms.reduce((sum, term) => sum + term.share, 0)] as const;
  const total = [words("in all"), value(sums[0], duration(sums[0])), value(sums[1], percent(sums[1])), words(""), words("")];
  return grid("terms", [{ text: "where the time went" }, { text: "time", number: true }, { text: "share", number: true }, { text: "pieces", number: true }, { text: "CPU", number: true }], lines, total);
}

function chain(late: api.Activation): HTMLElement {
  const lines = late.steps.map((step) => ({
    cells: [value(step.time_ns, instant(step.time_ns, 1)), value(step.time_ns - late.origin_ns, `+${duration(step.time_ns - late.origin_ns)}`), value(step.cpu, String(step.cpu)),
      words(`${step.kind.replaceAll("_", " ")} ${named(step.comm) || step.id}`)],
  }));
  return grid("chain", [{ text: "at", number: true }, { text: "after its begin", number: true }, { text: "CPU", number: true }, { text: "step" }], lines);
}

export const view: View = { name: "Ledger", build };
