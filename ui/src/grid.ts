// A table that is sorted by a click on its heads and copied as text.

import { el, safe } from "./text";

export type Shown = { text: string; sort: number | string; bar?: number; colour?: string; title?: string };
export interface Line { cells: Shown[]; click?: () => void; here?: boolean }
export interface Head { text: string; number?: boolean; wide?: boolean; title?: string }

export const words = (text: string, title?: string): Shown => (title ? { text, sort: text.toLowerCase(), title } : { text, sort: text.toLowerCase() });
export const value = (sort: number, text: string): Shown => ({ text, sort });

/** Which column each table is sorted by, while the page is open. */
const orders = new Map<string, { column: number; down: boolean }>();
const compare = (a: Shown, b: Shown) =>
  typeof a.sort === "number" && typeof b.sort === "number" ? a.sort - b.sort : String(a.sort).localeCompare(String(b.sort), "en", { numeric: true });

/** The table; `name` keeps its order when it is drawn again; a `total` stays at its foot. */
export function grid(name: string, heads: Head[], lines: Line[], total?: Shown[]): HTMLTableElement {
  const body = el("tbody");
  const cells = heads.map((head, column) => {
    const cell = el("th", { cls: head.number ? "n" : "", title: head.title ?? "click to sort" }), button = el("button", { text: head.text });
    button.onclick = () => {
      const order = orders.get(name), same = order?.column === column;
      // Numbers begin with the greatest, words with the first.
      orders.set(name, { column, down: same ? !order.down : head.number === true });
      fill();
    };
    cell.append(button);
    return cell;
  });
  const fill = () => {
    const order = orders.get(name);
    const sorted = order ? [...lines].sort((a, b) => {
      const way = compare(a.cells[order.column]!, b.cells[order.column]!);
      return order.down ? -way : way;
    }) : lines;
    cells.forEach((cell, column) => {
      if (order?.column === column) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    body.replaceChildren(...sorted.map((line) => row(heads, line)));
  };
  fill();
  const foot = total ? [el("tfoot", {}, row(heads, { cells: total }))] : [];
  return el("table", { cls: "grid" }, el("thead", {}, el("tr", {}, ...cells)), body, ...foot);
}

function row(heads: Head[], line: Line): HTMLTableRowElement {
  const made = el("tr", {}, ...line.cells.map((cell, at) => {
    const wide = heads[at]?.wide ? "t" : heads[at]?.number ? "n" : "";
    const td = el("td", { text: cell.text, cls: wide, title: cell.title ?? (wide === "t" ? cell.text : "") });
    if (cell.bar !== undefined) {
      const bar = el("i", { cls: "bar-in" });
      bar.style.width = `${Math.min(Math.max(cell.bar, 0), 1) * 100}%`;
      if (cell.colour) bar.style.background = cell.colour;
      td.classList.add("barred");
      td.append(bar);
    }
    return td;
  }));
  if (line.here) made.className = "here";
  if (line.click) {
    const click = line.click;
    made.tabIndex = 0;
    made.onclick = click;
    made.onkeydown = (event) => { if (event.key === "Enter") { event.stopPropagation(); click(); } };
  }
  return made;
}

/** All tables and texts of an element as text, columns with tabs between. */
export function tablesAsText(holder: HTMLElement): string {
  const parts: string[] = [];
  for (const one of holder.querySelectorAll("h2, h3, p, table, code, pre, .about")) {
    if (one instanceof HTMLTableElement) {
      for (const line of one.rows) parts.push([...line.cells].map((cell) => safe(cell.textContent ?? "")).join("\t"));
      parts.push("");
    } else if (!one.closest("table")) parts.push(one.textContent ?? "");
  }
  return `${parts.join("\n").trim()}\n`;
}
