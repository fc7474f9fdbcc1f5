// The API of docs/view.md: its questions, and the types of its answers.

export interface Info {
  name: string; begin_wall_ns: string; begin_trace_ns: string; length_ns: number;
  events: number; cpus: number; tasks: number; activations: number; handlers: number; calls: number; losses: number; damages: number;
  environment: Record<string, string>;
  progress: { done: boolean; share: number; error: string | null; from_cache: boolean };
  stale: boolean;
}
export interface Facts { task: number; name: string; tid: number; pid: number | null; prio: string | null }
export interface TrackRow { id: string; task: number | null; run_ns: number; runnable_ns: number; sums_ns: number[]; facts?: Facts | null }
/** Of what latencies are. */
export type Family = "wakeup" | "irq" | "softirq" | "call";
export interface Late {
  end_ns: number; latency_ns: number; task: number | null; facts: Facts | null; cpu: number; what: number; name: string;
}
export interface Stat {
  key: number; name: string; facts: Facts | null; count: number;
  min_ns: number; mean_ns: number; p99_ns_max: number; max_ns: number; total_ns: number;
}
export interface Latencies {
  count: number; columns: number; row_ends_ns: number[]; counts: number[]; longest: (Late | null)[]; worst: Late[];
  stats: { total: number; rows: Stat[] } | null;
  median_ns_max: number; p99_ns_max: number; p999_ns_max: number;
}
export interface Loss { cpu: number | null; begin_ns: number; end_ns: number; count: number | null; why: string }
export interface EventRow { row: number; time_ns: number; cpu: number | null; name: string; text: string }
export interface Moment { call: Late | null; irq: Late | null; softirq: Late | null }
export interface Marks { total: number; cut: boolean; counts: number[] }
export interface Range { begin_ns: number; end_ns: number }
export interface TaskRef { tid: number; comm?: string; name?: string; prio?: string }
export interface Term { kind: string; text: string; task?: { tid: number } | null; duration_ns: number; share: number; pieces: number; cpu: number; range: Range }
export interface Step { time_ns: number; cpu: number; text?: string; kind?: string; comm?: string; id?: number }
export interface Activation {
  task: TaskRef; origin_ns: number; end_ns: number; latency_ns: number; cpu: number; steps: Step[];
  ledger: { grade: string; good: boolean; total_ns: number; unexplained_ns: number; terms: Term[] };
}
export interface Advice { rule: string; because: string; command: string; then_check: string }
export interface Verdict { sentence: string; conclusive: boolean; advice: Advice[]; stacks: { what: string; stack: unknown }[] }
export interface Diagnosis {
  activations: Activation[]; groups: { members: number[]; verdict: Verdict }[];
  warnings: { what: string; remedy: string }[];
}

export type Cell = null | boolean | number | string | Range
  | { name: string | null; tid: number | null; pid: number | null } | { hard: boolean; nr: number; name: string | null };
export interface ReportTable {
  table: string; title: string; of: string | null; left_out: number;
  columns: { key: string; title: string; unit: string }[]; rows: Cell[][];
}

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
export const tracks = (words: Words, signal?: AbortSignal) => json<{ total: number; tracks: TrackRow[] }>("tracks", words, signal);
export const tasks = (ids: number[]) => json<{ tasks: (Facts | null)[] }>("tasks", { ids: ids.join(",") });
export const losses = () => json<{ total: number; losses: Loss[] }>("losses");
export const latencies = (words: Words, signal?: AbortSignal) => json<Latencies>("latencies", words, signal);
export const moment = (words: Words, signal?: AbortSignal) => json<Moment>("moment", words, signal);
export const marks = (words: Words, signal?: AbortSignal) => json<Marks>("marks", words, signal);
export const late = (words: Words) => json<Diagnosis>("late", words);
export const ledger = (task: number, end: number) => json<Diagnosis>("ledger", { task, end });
export const incident = async (task: number, end: number) => (await ask("incident", { task, end })).blob();
export const events = (words: Words, signal?: AbortSignal) =>
  json<{ total: number; cut: boolean; rows: EventRow[] }>("events", words, signal);
export const rowAt = (words: Words) => json<{ row: number; total: number }>("row", words);
export const reports = () => json<{ reports: { name: string; about: string }[] }>("reports");
export const report = (words: Words, signal?: AbortSignal) => json<{ tables: ReportTable[] }>("report", words, signal);
export const tile = async (words: Words, signal?: AbortSignal) =>
  (await ask("tile", words, signal)).arrayBuffer();
