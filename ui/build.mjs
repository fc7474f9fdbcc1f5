// Writes the pages to dist, from where cargo puts them into the program.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

mkdirSync("dist", { recursive: true });
await build({
  entryPoints: { app: "src/main.ts", monitor: "src/monitor.ts", hits: "src/hits.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome110", "firefox115", "safari16.4"],
  legalComments: "none",
});
for (const name of ["index.html", "monitor.html", "hits.html", "app.css"]) copyFileSync(`src/${name}`, `dist/${name}`);
