// Writes the pages to dist, from where cargo puts them into the program.
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

/** A file that is the same stays as old as it is: a newer one would have the program linked anew. */
function write(path, bytes) {
  let is;
  try {
    is = readFileSync(path);
  } catch {
    // The first time.
  }
  if (!is?.equals(bytes)) writeFileSync(path, bytes);
}

mkdirSync("dist", { recursive: true });
const { outputFiles } = await build({
  entryPoints: { app: "src/main.ts", monitor: "src/monitor.ts", hits: "src/hits.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["chrome110", "firefox115", "safari16.4"],
  legalComments: "none",
});
for (const { path, contents } of outputFiles) write(path, Buffer.from(contents));
for (const name of ["index.html", "monitor.html", "hits.html", "app.css"]) write(`dist/${name}`, readFileSync(`src/${name}`));
