//! How the page and its picture look: light and dark as the reader's system, narrow screens, paper.

/// The colours by their names.
pub(super) const COLORS: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--paper:#fff;\
--victim:#1f6feb;--culprit:#c4291c;--task:#9aa7b4;--irq:#6f42c1;--waits:#e0a100;\
--unknown:#d8dee4;--doubt:#8a5a00}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4ae;--line:#3a424b;\
--paper:#12161b;--victim:#6ea8ff;--culprit:#ff7b72;--task:#5d6975;--irq:#b392f0;\
--waits:#f0c14b;--unknown:#2d343c;--doubt:#f0c14b}}";

/// The picture.
pub(super) const PICTURE: &str = "\
svg text{font:11px system-ui,sans-serif;\
fill:var(--ink)}svg .axis{fill:var(--soft)}svg .victim{fill:var(--victim)}\
svg .culprit{fill:var(--culprit)}svg .task{fill:var(--task)}svg .irq{fill:var(--irq)}\
svg .waits{fill:var(--waits)}svg .unknown{fill:var(--unknown)}svg .edge{stroke:var(--ink);\
stroke-dasharray:3 3}svg .base{stroke:var(--line)}svg .on{fill:#fff}\
@media(prefers-color-scheme:dark){svg .on{fill:#12161b}}";

/// The page.
pub(super) const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);\
max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}\
h1{font-size:1.5rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}\
small,.soft,figcaption,dd{color:var(--soft)}.doubt{color:var(--doubt)}\
.verdict{font-size:1.1rem;font-weight:600;padding:.6rem 1rem;border-left:4px solid;\
margin:0 0 .5rem;background:color-mix(in srgb,currentColor 8%,transparent)}\
.verdict.known{border-color:var(--culprit)}\
code,pre{font:.9em/1.45 ui-monospace,monospace}pre{overflow-x:auto;padding:.6rem;\
background:color-mix(in srgb,currentColor 6%,transparent);overflow-wrap:normal}\
dl{margin:0}dt{font-weight:600}dd{margin:0 0 .6rem 1rem}\
.scroll,figure{overflow-x:auto;margin:0}table{border-collapse:collapse;font-size:.9rem}\
td,th{padding:.15rem .6rem .15rem 0;border-bottom:1px solid var(--line);text-align:left;\
vertical-align:top;overflow-wrap:normal}.chain td:last-child,\
.ledger td:first-child{min-width:9rem}.n{text-align:right;\
white-space:nowrap;font-variant-numeric:tabular-nums}\
.ledger{width:100%}.bar{width:25%;min-width:4rem}.bar i{display:block;height:.8em;\
margin-top:.35em;min-width:1px}\
i.victim{background:var(--victim)}i.culprit{background:var(--culprit)}\
i.task{background:var(--task)}i.unknown{background:var(--waits)}\
figcaption{font-size:.85rem}b.victim{color:var(--victim)}b.culprit{color:var(--culprit)}\
b.task{color:var(--task)}b.irq{color:var(--irq)}b.waits{color:var(--waits)}\
b.unknown{color:var(--unknown)}\
svg{display:block;width:100%;min-width:34rem;height:auto}\
summary{cursor:pointer}details{margin:.3rem 0}\
@media(max-width:30rem){body{margin:1rem auto;padding:0 .7rem}h1{font-size:1.25rem}\
.bar{display:none}table{font-size:.8rem}td,th{padding-right:.4rem}\
.chain td:last-child,.ledger td:first-child{min-width:6rem}}\
@media(forced-colors:active){figcaption b,.bar i{forced-color-adjust:none}}\
@media print{:root{color-scheme:light}body{max-width:none;margin:0;font-size:11pt}\
pre,code{white-space:pre-wrap}h2{break-after:avoid}figure,tr{break-inside:avoid}\
svg{min-width:0}*{print-color-adjust:exact}}";
