// The API of docs/view.md: its questions. The types of its answers are written from the server's.

import type { Counters, Diagnosis, Events, Fields, Info, Latencies, Losses, Marks, Moment, Names, Report, Reports, RowAt, Tasks, Tracks } from "./answers";

export type * from "./answers";
/** Of what latencies are. */
export type Family = "wakeup" | "irq" | "softirq" | "call";

const token = new URLSearchParams(location.search).get("token") ?? "";

/** What the server refused, in its words. */
export class Refusal extends Error {
  constructor(text: string, readonly status: number) { super(text); }
}

type Words = Record<string, string | number>;

async function ask(path: string, words: Words, signal?: AbortSignal): Promise<Response> {
  const query = Object.entries(words).map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`api/v1/${path}?${query}`, signal ? { headers, signal } : { headers });
  if (answer.ok) return answer;
  const error = (await answer.json().catch(() => null))?.error;
  const parts = error ? [error.what, error.found, error.fix].filter(Boolean) : [`status ${answer.status}`];
  throw new Refusal(parts.join(" · "), answer.status);
}

async function json<T>(path: string, words: Words = {}, signal?: AbortSignal): Promise<T> {
  return (await ask(path, words, signal)).json() as Promise<T>;
}

export const info = () => json<Info>("info");
export const tracks = (words: Words, signal?: AbortSignal) => json<Tracks>("tracks", words, signal);
export const tasks = (ids: number[]) => json<Tasks>("tasks", { ids: ids.join(",") });
export const names = () => json<Names>("names");
export const fields = () => json<Fields>("fields");
export const counters = (names: string) => json<Counters>("counters", { counters: names });
export const losses = () => json<Losses>("losses");
export const latencies = (words: Words, signal?: AbortSignal) => json<Latencies>("latencies", words, signal);
export const moment = (words: Words, signal?: AbortSignal) => json<Moment>("moment", words, signal);
export const marks = (words: Words, signal?: AbortSignal) => json<Marks>("marks", words, signal);
export const late = (words: Words) => json<Diagnosis>("late", words);
export const ledger = (task: number, end: number) => json<Diagnosis>("ledger", { task, end });
export const incident = async (task: number, end: number) => (await ask("incident", { task, end })).blob();
export const events = (words: Words, signal?: AbortSignal) => json<Events>("events", words, signal);
export const rowAt = (words: Words) => json<RowAt>("row", words);
export const reports = () => json<Reports>("reports");
export const report = (words: Words, signal?: AbortSignal) => json<Report>("report", words, signal);
export const tile = async (words: Words, signal?: AbortSignal) =>
  (await ask("tile", words, signal)).arrayBuffer();
