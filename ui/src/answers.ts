// What the API answers. Written by `cargo xtask reference` from crates/server/src/answers: change it there.

/** How far the index is. */
export interface Progress {
  /** All of the trace is in it. */
  done: boolean;
  /** Of the trace's time, 0 to 1. */
  share: number;
  /** Why it failed. */
  error: string | null;
  /** It was kept from another time. */
  from_cache: boolean;
}

/** `info`: the trace, and how far the index is. */
export interface Info {
  /** `rtscope.view`. */
  schema: string;
  /** The API's version. */
  version: number;
  /** What was opened. */
  name: string;
  /** The first event by the wall clock; as text, because JavaScript's numbers do not hold it. */
  begin_wall_ns: string;
  /** The first event by the trace's clock, as text too. */
  begin_trace_ns: string;
  /** From the first event to the last one. */
  length_ns: number;
  /** Events so far. */
  events: number;
  /** CPUs. */
  cpus: number;
  /** Tasks that were seen. */
  tasks: number;
  /** Wake-ups that led to a CPU. */
  activations: number;
  /** Handlers of interrupts and softirqs that ended. */
  handlers: number;
  /** System calls that returned. */
  calls: number;
  /** CPUs whose frequency was told. */
  frequencies: number;
  /** CPUs whose idle states were told. */
  idle_states: number;
  /** Tracks of what applications did. */
  user_tracks: number;
  /** Places at which events are missing. */
  losses: number;
  /** Stretches of bytes that could not be read. */
  damages: number;
  /** What the trace says of its machine and its tracer. */
  environment: Record<string, string>;
  /** How far the index is. */
  progress: Progress;
  /** The files are others than those that were opened. */
  stale: boolean;
  /** They are the same, but longer, or there are more: the trace is still recorded. */
  grown: boolean;
  /** How often the trace was read again since the server began. */
  generation: number;
}

/** Who a task is. */
export interface Facts {
  /** Its place among the tasks. */
  task: number;
  /** Its name, from the trace: text of others. */
  name: string;
  /** Its thread's id. */
  tid: number;
  /** Its process, where that is known. */
  pid: number | null;
  /** Its priority as people say it, where that is known. */
  prio: string | null;
}

/** A track, and its time in the range. */
export interface TrackRow {
  /** `c0`: a CPU; `t5`: a thread; `f0`, `i0`: frequency, idle states; `u3`: an application. */
  id: string;
  /** The thread's place among the tasks. */
  task: number | null;
  /** How long it had a CPU. */
  run_ns: number;
  /** How long it waited for one. */
  runnable_ns: number;
  /** Its time by kind, in the order of the kinds of tiles. */
  sums_ns: number[];
  /** Who it is. */
  facts: Facts | null;
  /** Of a track of an application: its thread, and what is in it. */
  user: User | null;
}

/** What is in a track of an application. */
export interface User {
  /** The thread's id, as its events say it. */
  tid: number;
  /** Its process, where they say it. */
  pid: number | null;
  /** The thread's name, from its events or from the kernel's; empty where neither says it. */
  name: string;
  /** The row of its spans, from 0 on; null of its events. */
  lane: number | null;
}

/** `tracks`: some of the tracks, in the order that was asked for. */
export interface Tracks {
  /** How many there are of that kind. */
  total: number;
  /** Those that were asked for. */
  tracks: TrackRow[];
}

/** `tasks`: who the tasks are that were asked for, in their order. */
export interface Tasks {
  /** Null for one that is not there. */
  tasks: (Facts | null)[];
}

/** Time of which events are missing. */
export interface Loss {
  /** On this CPU; null: nobody knows on which. */
  cpu: number | null;
  /** From when. */
  begin_ns: number;
  /** Until when. */
  end_ns: number;
  /** How many, where the tracer counted them. */
  count: number | null;
  /** Why, for people. */
  why: string;
}

/** `losses`: the first 10,000 places at which events are missing. */
export interface Losses {
  /** How many places there are. */
  total: number;
  /** In the order of the trace. */
  losses: Loss[];
}

/** A wake-up that led to a CPU, a handler or a system call. */
export interface Late {
  /** When it ended. */
  end_ns: number;
  /** How long it took. */
  latency_ns: number;
  /** The task's place among the tasks; null of a handler. */
  task: number | null;
  /** Who that is. */
  facts: Facts | null;
  /** The CPU on which it ended. */
  cpu: number;
  /** Which interrupt, softirq or system call, by number. */
  what: number;
  /** Its name; empty of a wake-up. */
  name: string;
}

/** What those of one task, interrupt, softirq or system call took. */
export interface Stat {
  /** Of a wake-up the task's place, else the number of what it is. */
  key: number;
  /** The name of an interrupt, a softirq or a system call. */
  name: string;
  /** Who the task is. */
  facts: Facts | null;
  /** How many. */
  count: number;
  /** The shortest. */
  min_ns: number;
  /** All together, divided by how many they are. */
  mean_ns: number;
  /** 99 of 100 take no longer. */
  p99_ns_max: number;
  /** The longest. */
  max_ns: number;
  /** All together. */
  total_ns: number;
}

/** Statistics, the one with the longest first. */
export interface Stats {
  /** How many there are. */
  total: number;
  /** The first 500. */
  rows: Stat[];
}

/** `latencies`: how many there are by time and length, and the longest. */
export interface Latencies {
  /** How many end in the range. */
  count: number;
  /** Columns of time. */
  columns: number;
  /** The upper edge of each row of lengths. */
  row_ends_ns: number[];
  /** How many, a column behind the other, the shortest length first. */
  counts: number[];
  /** The longest of each column. */
  longest: (Late | null)[];
  /** The longest of all, the longest first. */
  worst: Late[];
  /** Where they were asked for. */
  stats: Stats | null;
  /** Half take no longer. */
  median_ns_max: number;
  /** 99 of 100 take no longer. */
  p99_ns_max: number;
  /** 999 of 1000 take no longer. */
  p999_ns_max: number;
}

/** `moment`: in what a track was at an instant. */
export interface Moment {
  /** The thread's system call. */
  call: Late | null;
  /** The CPU's interrupt. */
  irq: Late | null;
  /** The CPU's softirq. */
  softirq: Late | null;
}

/** `marks`: how many events match a filter in each column. */
export interface Marks {
  /** How many match in all. */
  total: number;
  /** There are more, which were not looked at. */
  cut: boolean;
  /** By column; none for the empty filter. */
  counts: number[];
}

/** A row of the table of events. */
export interface EventRow {
  /** Its place in the table. */
  row: number;
  /** When. */
  time_ns: number;
  /** On which CPU, where the trace says so. */
  cpu: number | null;
  /** What happened. */
  name: string;
  /** Its fields as text. */
  text: string;
  /** The fields that were asked for as columns; null for one that it does not have. */
  cells: (string | null)[];
}

/** `events`: rows of the table. */
export interface Events {
  /** Rows in all. */
  total: number;
  /** More events match, which were not looked at. */
  cut: boolean;
  /** Those that were asked for. */
  rows: EventRow[];
}

/** A counter. */
export interface Counter {
  /** `event.field`. */
  name: string;
  /** How many numbers it has. */
  count: number;
  /** The least. */
  least: number | null;
  /** The greatest. */
  most: number | null;
  /** There are more, which were not looked at. */
  cut: boolean;
  /** Why it cannot be had. */
  error: string | null;
}

/** `counters`: what those are that were asked for. */
export interface Counters {
  /** In their order. */
  counters: Counter[];
}

/** `fields`: what can be asked for, 5,000 of each at most. */
export interface Fields {
  /** `event.field` of each field that can be a counter. */
  counters: string[];
  /** The names of fields, for columns of the table of events. */
  columns: string[];
}

/** `names`: of events and spans of applications. */
export interface Names {
  /** By the numbers in their tracks. */
  names: string[];
}

/** `row`: where the table is at an instant. */
export interface RowAt {
  /** The first row then or later. */
  row: number;
  /** Rows in all. */
  total: number;
}

/** A report that can be asked for. */
export interface ReportName {
  /** Its name. */
  name: string;
  /** What it says. */
  about: string;
}

/** `reports`: which there are. */
export interface Reports {
  /** Our own, and those of others. */
  reports: ReportName[];
}

/** A stretch of time. */
export interface Range {
  /** From when. */
  begin_ns: number;
  /** Until when. */
  end_ns: number;
}

/** A task in a table. */
export interface ProcessCell {
  /** Its name. */
  name: string | null;
  /** Its thread's id. */
  tid: number | null;
  /** Its process. */
  pid: number | null;
}

/** An interrupt or a softirq in a table. */
export interface IrqCell {
  /** An interrupt. */
  hard: boolean;
  /** Its number. */
  nr: number;
  /** Its name. */
  name: string;
}

/** A column of a table. */
export interface ReportColumn {
  /** Its name for programs. */
  key: string;
  /** Its name for people. */
  title: string;
  /** `ns`, `time`, `bytes`, `share`, `number`, or nothing. */
  unit: string;
}

/** A table of a report. */
export interface ReportTable {
  /** Its name for programs. */
  table: string;
  /** Its name for people. */
  title: string;
  /** What of its kind it is about. */
  of: string | null;
  /** Rows behind the last one. */
  left_out: number;
  /** Its columns. */
  columns: ReportColumn[];
  /** A cell for each column. */
  rows: Cell[][];
}

/** `report`: the tables of a report over a range. */
export interface Report {
  /** Its name. */
  report: string;
  /** What it says. */
  about: string;
  /** Its tables. */
  tables: ReportTable[];
}

/** A task in a diagnosis. */
export interface TaskRef {
  /** Its thread's id. */
  tid: number;
  /** Its name. */
  comm: string;
  /** Its priority on LTTng's scale. */
  prio: number;
  /** Its priority as people say it. */
  priority: string;
}

/** A part of the time that an activation took. */
export interface Term {
  /** Its name for programs. */
  kind: string;
  /** What it is, for people. */
  text: string;
  /** Who it is about. */
  task?: TaskRef | null;
  /** How long. */
  duration_ns: number;
  /** Of all the activation's time, 0 to 1. */
  share: number;
  /** In how many pieces. */
  pieces: number;
  /** The CPU of most of it. */
  cpu: number;
  /** From the first piece's begin to the last one's end. */
  range: Range;
}

/** Where an activation's time went. */
export interface Ledger {
  /** How good the evidence is. */
  grade: string;
  /** Whether a verdict can stand on it. */
  good: boolean;
  /** All of it. */
  total_ns: number;
  /** What the evidence does not explain. */
  unexplained_ns: number;
  /** Its parts, the longest first. */
  terms: Term[];
}

/** A step of the chain that led to the activation. */
export interface Step {
  /** When. */
  time_ns: number;
  /** On which CPU. */
  cpu: number;
  /** What happened. */
  kind: string;
  /** Whom it is about, where it is a task. */
  comm: string;
  /** The number of the task, the interrupt or the softirq. */
  id: number;
}

/** A late activation. */
export interface Activation {
  /** Whose. */
  task: TaskRef;
  /** When its chain began. */
  origin_ns: number;
  /** When it ended. */
  end_ns: number;
  /** How long that took. */
  latency_ns: number;
  /** Where it ended. */
  cpu: number;
  /** The chain. */
  steps: Step[];
  /** Where the time went. */
  ledger: Ledger;
}

/** What to change. */
export interface Advice {
  /** Why this is offered, for programs. */
  rule: string;
  /** Why it would help. */
  because: string;
  /** The command that does it. */
  command: string;
  /** The command that shows whether it helped. */
  then_check: string;
}

/** A function on a stack. */
export interface Frame {
  /** Where, in hexadecimal digits. */
  address: string;
  /** Its name and how far in, where the trace tells that; else nothing. */
  symbol: string;
}

/** What was under way in the kernel. */
export interface SeenStack {
  /** Of what. */
  what: string;
  /** The innermost function first. */
  stack: Frame[];
}

/** Who did it. */
export interface Verdict {
  /** In one sentence. */
  sentence: string;
  /** Whether the evidence proves it. */
  conclusive: boolean;
  /** What to change; any one of these. */
  advice: Advice[];
  /** Stacks that support it. */
  stacks: SeenStack[];
}

/** Activations that were late for one cause. */
export interface Group {
  /** Their places among the activations. */
  members: number[];
  /** Of the worst of them. */
  verdict: Verdict;
}

/** What makes the diagnosis doubtful. */
export interface Warning {
  /** What. */
  what: string;
  /** What helps. */
  remedy: string;
}

/** `late`, `ledger`: what the page reads of `rtscope.diagnosis`, times after the first event. */
export interface Diagnosis {
  /** The version of `rtscope.diagnosis`. */
  version: number;
  /** The worst first. */
  activations: Activation[];
  /** By cause. */
  groups: Group[];
  /** What makes it doubtful. */
  warnings: Warning[];
}

/** What a cell of a table holds. */
export type Cell = null | boolean | number | string | Range | ProcessCell | IrqCell;
