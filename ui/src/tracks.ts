// Which tracks stand where: pinned ones first, CPUs, threads as they are sorted and grouped.

import * as api from "./api";
import * as beside from "./beside";
import { factsOf, learn, need, taskName } from "./names";
import { state } from "./state";
import { counted, named } from "./text";

export const ROW = 22;
const GAP = 6, THREADS = 200;

export interface Row { id: string; label: string; top: number; indent?: boolean; title?: boolean }

export let rows: Row[] = [];
export let losses: api.Loss[] = [];
let latest = 0;

export const isCpu = (id: string) => id[0] === "c";
export const taskOf = (id: string) => (id[0] === "t" ? Number(id.slice(1)) : null);
const labelOf = (id: string) => (beside.isBeside(id) ? beside.labelOf(id) : isCpu(id) ? `CPU ${id.slice(1)}` : taskName(Number(id.slice(1))));
export const heightOf = () => (rows.at(-1)?.top ?? 0) + ROW;
export const rowAt = (y: number) => rows.find((row) => y >= row.top && y < row.top + ROW);
export const rowOf = (id: string) => rows.find((row) => row.id === id);

/** Asks which there are. */
export async function load() {
  const mine = ++latest;
  const words = {
    kind: "thread", search: state.search, limit: THREADS, sort: state.sort, group: state.group,
    begin: Math.floor(state.begin), end: Math.ceil(state.end),
  };
  const [threads, lost, more] = await Promise.all([api.tracks(words), api.losses(), beside.load(THREADS)]);
  if (mine !== latest) return;
  threads.tracks.forEach((row) => learn(row.facts));
  losses = lost.losses;
  const list = threads.tracks.map((row) => row.id);
  const chosen = state.selected ? `t${state.selected.task}` : state.thread !== null ? `t${state.thread}` : null;
  const top = [...state.pins];
  // The selected thread is always there, and so is who made it late.
  if (chosen && (state.involved.length || !list.slice(0, 20).includes(chosen)) && !top.includes(chosen)) top.push(chosen);
  top.push(...state.involved.filter((id) => !top.includes(id)));
  await need(top.map(taskOf).filter((task) => task !== null));
  if (mine !== latest) return;
  place(top, list, threads.total, more);
}

function place(top: string[], list: string[], total: number, more: Awaited<ReturnType<typeof beside.load>>) {
  const made: Row[] = [];
  let at = 0;
  const add = (row: Omit<Row, "top">) => { made.push({ ...row, top: at }); at += ROW; };
  state.counters.forEach((_, place) => add({ id: `n${place}`, label: labelOf(`n${place}`) }));
  const ofTask = new Map<number | null, string[]>();
  for (const row of more.user.filter((one) => !top.includes(one.id))) ofTask.set(row.task, [...(ofTask.get(row.task) ?? []), row.id]);
  /** What an application did in a thread stands below the thread. */
  const addUsers = (task: number | null) => {
    for (const id of ofTask.get(task) ?? []) add({ id, label: labelOf(id), indent: task !== null });
    ofTask.delete(task);
  };
  for (const id of top) { add({ id, label: labelOf(id) }); if (taskOf(id) !== null) addUsers(taskOf(id)); }
  if (made.length) at += GAP;
  const cpus = state.cpus ? (state.info?.cpus ?? 0) : 0;
  for (let cpu = 0; cpu < cpus; cpu++) {
    if (!top.includes(`c${cpu}`)) add({ id: `c${cpu}`, label: `CPU ${cpu}` });
    for (const id of [`f${cpu}`, `i${cpu}`]) if (!top.includes(id) && (more.frequency.has(id) || more.idle.has(id))) add({ id, label: labelOf(id), indent: true });
  }
  at += GAP;
  let process: number | null = null;
  for (const id of list.filter((one) => !top.includes(one))) {
    const pid = factsOf(taskOf(id)!)?.pid ?? null;
    if (state.group === "process" && pid !== process) {
      process = pid;
      const leader = pid === null ? undefined : list.find((one) => factsOf(taskOf(one)!)?.tid === pid);
      if (pid !== null) add({ id: "", label: `process ${pid}${leader ? ` ${factsOf(taskOf(leader)!)?.name ?? ""}` : ""}`, title: true });
    }
    add({ id, label: labelOf(id), indent: state.group === "process" && pid !== null });
    addUsers(taskOf(id));
  }
  if (ofTask.size) at += GAP;
  for (const task of [...ofTask.keys()]) addUsers(task);
  if (!total && state.search) add({ id: "", label: `no thread is called '${named(state.search)}', or has that id`, title: true });
  if (total > list.length) add({ id: "", label: `… ${counted(total - list.length, "more thread")}: find them above`, title: true });
  rows = made;
}
