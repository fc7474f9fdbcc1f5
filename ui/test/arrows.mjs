// Wake-ups between threads whose tracks are neighbours say which of the two woke the other: their arrows have heads.
// usage: node arrows.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", acceptDownloads: true })).newPage();
  await page.goto(`${url}#sort=tid`);
  await page.waitForSelector("html[data-kept=true]");
  await page.selectOption("#order select", "tid");
  await page.waitForSelector("html[data-kept=true]");
  await page.screenshot({ path: `${folder}/arrows.png` });
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption("#take", "timeline.svg")]);
  const svg = readFileSync(await download.path(), "utf8"), numbers = (path) => [...path.matchAll(/[\d.]+/g)].map(Number);
  // A line, and two more that meet at its end.
  const paths = [...svg.matchAll(/<path d="(M[^"]*L[^"]*)" fill="none" stroke/g)].map((found) => found[1]);
  const heads = paths.filter((path) => (path.match(/L/g) ?? []).length === 3).map(numbers);
  assert.equal(paths.length, 9, "each wake-up is drawn, but for the first, before which nobody saw its thread sleep");
  assert.equal(heads.length, 9, `all have heads: ${paths[0]}`);
  const down = heads.filter(([, from, , to]) => to > from);
  assert.equal(down.length, 4, "the first woke the second four times, and was woken by that five times");
} finally {
  await browser.close();
}
