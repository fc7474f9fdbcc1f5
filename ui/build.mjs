// Writes the page to dist, from where cargo puts it into the program.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

mkdirSync("dist", { recursive: true });
await build({
  entryPoints: ["src/main.ts"],
  outfile: "dist/app.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome110", "firefox115", "safari16.4"],
  legalComments: "none",
});
for (const name of ["index.html", "app.css"]) copyFileSync(`src/${name}`, `dist/${name}`);
