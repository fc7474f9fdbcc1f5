// Time of which events are not known, and why.

import * as api from "./api";
import { setCursor, show } from "./state";
import { duration, el, instant } from "./text";

export async function build(panel: HTMLElement) {
  const holder = el("div", { cls: "scroll" });
  panel.append(holder);
  const { total, losses } = await api.losses();
  if (!total) { holder.append(el("p", { cls: "bar", text: "no event was lost, as far as the trace says" })); return; }
  const lines = losses.map((loss) => {
    const line = el("tr", {}, el("td", { text: loss.cpu === null ? "any" : `CPU ${loss.cpu}` }), el("td", { cls: "n", text: instant(loss.begin_ns, 1) }),
      el("td", { cls: "n", text: duration(loss.end_ns - loss.begin_ns) }), el("td", { cls: "n", text: loss.count === null ? "nobody counted" : String(loss.count) }), el("td", { text: loss.why }));
    line.tabIndex = 0;
    line.onclick = () => {
      const margin = Math.max(loss.end_ns - loss.begin_ns, 1000);
      setCursor(loss.begin_ns);
      show(loss.begin_ns - margin, loss.end_ns + margin);
    };
    return line;
  });
  const head = el("tr", {}, ...["where", "from", "for", "events", "why"].map((text) => el("th", { text })));
  holder.append(el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines)));
  if (total > losses.length) holder.append(el("p", { cls: "bar faint", text: `and ${total - losses.length} more` }));
}
