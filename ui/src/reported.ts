// Tables of the reports: cells as people read them, and a table of one.

import type * as api from "./api";
import { type Line, type Shown, grid, value, words } from "./grid";
import { setCursor, show } from "./state";
import { count, duration, el, instant, named, percent } from "./text";

export const isRange = (cell: api.Cell): cell is api.Range => typeof cell === "object" && cell !== null && "begin_ns" in cell;

export function cell(one: api.Cell, unit: string): Shown {
  if (one === null) return { text: "", sort: -1 };
  if (typeof one === "number") {
    const text = unit === "ns" ? duration(one) : unit === "time" ? instant(one, 1) : unit === "share" ? percent(one) : unit === "bytes" ? bytes(one) : count(one);
    const shown = value(one, text);
    if (unit === "share") shown.bar = one;
    return shown;
  }
  if (typeof one !== "object") return words(named(String(one)));
  if ("begin_ns" in one) return { text: `${instant(one.begin_ns, 1)} for ${duration(one.end_ns - one.begin_ns)}`, sort: one.begin_ns };
  if ("tid" in one) return words(`${named(one.name ?? "?")} (${one.tid ?? one.pid ?? "?"})`);
  return words(`${one.hard ? "interrupt" : "softirq"} ${one.nr} ${named(one.name ?? "")}`);
}

export function bytes(number: number): string {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) if (number >= size) return `${(number / size).toFixed(2)} ${unit}`;
  return `${count(number)} B`;
}

export const titleOf = (table: api.ReportTable) => (table.of ? `${table.title}: ${table.of}` : table.title);

/** A table with its title; a row that has a place in time leads there. */
export function drawTable(name: string, table: api.ReportTable): Node[] {
  const heads = table.columns.map((column, at) => {
    const numbers = column.unit !== "" || table.rows.some((row) => typeof row[at] === "number");
    return { text: column.title, number: numbers };
  });
  const lines = table.rows.map((row): Line => {
    const cells = row.map((one, at) => cell(one, table.columns[at]?.unit ?? ""));
    const range = row.find(isRange), time = table.columns.findIndex((column, at) => column.unit === "time" && typeof row[at] === "number");
    if (range) return { cells, click: () => { setCursor(range.begin_ns); show(range.begin_ns, range.end_ns); } };
    if (time < 0) return { cells };
    const at = row[time] as number;
    return { cells, click: () => { setCursor(at); show(at - 5e5, at + 5e5); } };
  });
  const parts: Node[] = [el("h3", { cls: "bar", text: titleOf(table) }), grid(`${name}-${table.table}`, heads, lines)];
  if (table.left_out) parts.push(el("p", { cls: "bar faint", text: `and ${count(table.left_out)} more rows: show a shorter range` }));
  return parts;
}
