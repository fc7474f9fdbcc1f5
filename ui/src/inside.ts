// The answer of a hit, which `diagnose --html` wrote, inside of another page.

/** Shows it in a tree of its own: its style and that of the page around it do not meet. */
export function showInside(inside: ShadowRoot, text: string) {
  // The policy of the page takes no styles that are written into text: they are set, one by one. In text, '<' begins a tag alone.
  const sheets = [...text.matchAll(/<style>([^<]*)<\/style>/g)].map((found) => found[1]!), style = new CSSStyleSheet();
  const page = new DOMParser().parseFromString(text.replace(/<style>[^<]*<\/style>/g, "").replace(/(<[^<>]*?) style="/g, '$1 data-style="'), "text/html");
  style.replaceSync(sheets.join("\n").replace(/:root|\bbody\b/g, ":host"));
  inside.adoptedStyleSheets = [style];
  for (const one of page.querySelectorAll("script")) one.remove();
  inside.replaceChildren(...page.body.childNodes);
  for (const one of inside.querySelectorAll<HTMLElement | SVGElement>("[data-style]")) one.style.cssText = one.dataset.style ?? "";
}
