// Time of which events are not known, and why.

import * as api from "./api";
import { type Line, grid, value, words } from "./grid";
import { setCursor, show } from "./state";
import { count, duration, el, instant } from "./text";
import type { View } from "./views";

async function build(panel: HTMLElement) {
  const holder = el("div", { cls: "scroll" });
  panel.append(holder);
  const { total, losses } = await api.losses();
  if (!total) { holder.append(el("p", { cls: "bar", text: "no event was lost, as far as the trace says" })); return; }
  const lines = losses.map((loss): Line => ({
    cells: [words(loss.cpu === null ? "any CPU" : `CPU ${loss.cpu}`), value(loss.begin_ns, instant(loss.begin_ns, 1)),
      value(loss.end_ns - loss.begin_ns, duration(loss.end_ns - loss.begin_ns)),
      value(loss.count ?? -1, loss.count === null ? "nobody counted" : count(loss.count)), words(loss.why)],
    click: () => {
      const margin = Math.max(loss.end_ns - loss.begin_ns, 1000);
      setCursor(loss.begin_ns);
      show(loss.begin_ns - margin, loss.end_ns + margin);
    },
  }));
  const heads = [{ text: "where" }, { text: "from", number: true }, { text: "for", number: true }, { text: "events", number: true }, { text: "why" }];
  holder.append(grid("losses", heads, lines));
  if (total > losses.length) holder.append(el("p", { cls: "bar faint", text: `and ${count(total - losses.length)} more` }));
}

export const view: View = { name: "Losses", build };
