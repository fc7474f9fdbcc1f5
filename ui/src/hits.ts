// The page of a watch: hits as they happen, and the whole answer of the one that is chosen.

import { grid, value, words } from "./grid";
import { showInside } from "./inside";
import { counted, duration, el, named } from "./text";

interface Hit {
  number: number; wall_ns: number; latency_ns: number; task: { name: string; tid: number; prio: string };
  sentence: string | null; conclusive: boolean; replaces: boolean; has_page: boolean; snapshot: string | null;
}

const token = new URLSearchParams(location.search).get("token") ?? "";
const by = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const follow = by<HTMLInputElement>("follow");
const inside = by("page").attachShadow({ mode: "closed" });
let hits: Hit[] = [], chosen = 0, shown = 0, total = -1;

async function ask(path: string): Promise<Response> {
  const answer = await fetch(`api/v1/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  if (answer.ok) return answer;
  const error = (await answer.json().catch(() => null))?.error;
  throw new Error([error?.what, error?.fix].filter(Boolean).join(" · ") || `status ${answer.status}`);
}

function note(text: string) {
  by("note").hidden = !text;
  by("note").textContent = text;
}

async function look() {
  try {
    const found = (await (await ask("hits")).json()) as { total: number; hits: Hit[] };
    note("");
    if (found.total === total) return;
    [total, hits] = [found.total, found.hits.reverse()];
    if (follow.checked || !chosen) chosen = hits[0]?.number ?? 0;
    list();
    await show();
  } catch (error) {
    note(error instanceof TypeError ? "the watch has ended; what it found is in its snapshots" : String(error instanceof Error ? error.message : error));
  }
}

function list() {
  document.title = `${total} late: rtscope watch`;
  by("facts").textContent = total ? `${counted(total, "hit")}${total > hits.length ? `, the last ${hits.length} are listed` : ""}` : "nothing was late so far; what is late appears here";
  const lines = hits.map((hit) => ({
    cells: [value(hit.wall_ns, new Date(hit.wall_ns / 1e6).toTimeString().slice(0, 8)), value(hit.latency_ns, duration(hit.latency_ns)), words(`${named(hit.task.name)} (${hit.task.tid})`),
      words(hit.sentence === null ? "no diagnosis: see the terminal" : hit.conclusive ? hit.sentence : `not proven: ${hit.sentence}`)],
    here: hit.number === chosen,
    click: () => { [chosen, follow.checked] = [hit.number, false]; list(); void show(); },
  }));
  by("hits").replaceChildren(grid("hits", [{ text: "when", number: true }, { text: "latency", number: true }, { text: "late" }, { text: "why", wide: true }], lines));
}

async function show() {
  const hit = hits.find((one) => one.number === chosen);
  if (!hit || shown === chosen) return;
  shown = chosen;
  if (!hit.has_page) { inside.replaceChildren(el("p", { text: hit.snapshot ? `rtscope diagnose ${hit.snapshot} -v` : "this hit has no snapshot" })); return; }
  const text = await (await ask(`hit?number=${hit.number}`)).text();
  if (shown !== hit.number) return;
  showInside(inside, text);
}

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
follow.onchange = () => { if (follow.checked && hits[0]) { chosen = hits[0].number; list(); void show(); } };
void look().then(() => { document.documentElement.dataset.ready = "true"; });
setInterval(() => void look(), 1000);
