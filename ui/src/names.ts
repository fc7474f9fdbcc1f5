// Names of tasks by their places, asked for once.

import * as api from "./api";
import { named } from "./text";

const known = new Map<number, api.Facts>();
const asked = new Set<number>();

export function learn(facts: api.Facts | null | undefined) {
  if (!facts) return;
  known.set(facts.task, facts);
  asked.add(facts.task);
}
export const factsOf = (task: number) => known.get(task);
export function taskName(task: number): string {
  const facts = known.get(task);
  return facts ? `${named(facts.name)} (${facts.tid})` : `task ${task}`;
}

/** Asks for those that are not known yet. */
export async function need(tasks: Iterable<number>) {
  const wanted = [...new Set(tasks)].filter((task) => !asked.has(task)).slice(0, 1000);
  if (!wanted.length) return;
  wanted.forEach((task) => asked.add(task));
  const found = await api.tasks(wanted);
  found.tasks.forEach(learn);
}

/** Names change while the trace is still read: they are asked for once more, and shown as they were until then. */
export function forget() { asked.clear(); }
