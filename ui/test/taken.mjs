// What is taken out of the page, on a screen of 4K: the text of every tab, its picture as PNG and as SVG; and tables of another program.
// usage: node taken.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { drawn } from "./drawn.mjs";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];
/** Of which tabs there is a picture in this trace, or would be in another one. */
const PICTURES = { latencies: true, ledger: false, events: false, critical: "blank", intervals: true, interrupts: true, usage: true, io: null, flame: "blank", statistics: false, losses: false, reports: false };
const settled = (page) => page.waitForSelector("html[data-kept=true]");
const range = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("range").split(",").map(Number));
const said = (page, words) => page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#said:not([hidden])")?.textContent ?? ""), words.source);

async function taken(page, what) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption("#take", what)]);
  return readFileSync(await download.path());
}

/** Width and height of a PNG. */
const sizeOf = (png) => [png.readUInt32BE(16), png.readUInt32BE(20)];

async function tab(page, name) {
  await page.click(`#tabs [data-tab=${name}]`);
  if (name === "intervals") { await page.fill("#panel input", '$name == "irq_handler_entry"'); await page.keyboard.press("Enter"); }
  await page.waitForFunction(() => /\S/.test(document.querySelector("#panel").textContent) && !/…$/.test(document.querySelector("#panel .bar span, #panel .about, #panel p")?.textContent ?? ""));
  if (PICTURES[name] === true) await drawn(page, "#panel canvas", 3);
}

async function pictures(page, name) {
  const wanted = PICTURES[name];
  // Axes without a point are a picture, too.
  if (wanted === null) return;
  await page.evaluate(() => { document.querySelector("#said").hidden = true; });
  if (wanted !== true) {
    await page.selectOption("#take", "tab.svg");
    await said(page, wanted ? /nothing on this picture/ : /has no picture: copy it as text/);
    return;
  }
  const [width, height] = await page.$eval("#panel canvas", (one) => [one.clientWidth, one.clientHeight]);
  assert.deepEqual(sizeOf(await taken(page, "tab.png")), [width, height], `${name} as it is on the screen`);
  const svg = (await taken(page, "tab.svg")).toString();
  const parsed = await page.evaluate((text) => { const found = new DOMParser().parseFromString(text, "image/svg+xml"); return [found.querySelector("parsererror")?.textContent ?? "", found.querySelectorAll("rect, text, path").length]; }, svg);
  assert.equal(parsed[0], "", name);
  assert.ok(parsed[1] > 10, `${name} has ${parsed[1]} shapes`);
}

async function text(page, name) {
  await page.evaluate(() => { document.querySelector("#said").hidden = true; document.activeElement.blur(); });
  await page.keyboard.press("c");
  await said(page, /copied as text/);
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^from \S+ s to \S+ s, [\d.]+ m?s\nat \S+ s:\nCPU 0/, name);
  // What stands in a cell stands in the text, a row a line.
  for (const cells of (await page.$$eval("#panel tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)))).slice(0, 5)) {
    assert.ok(copied.includes(cells.join("\t")), `${name}: ${cells}`);
  }
}

/** A row of a program that speaks LAMI has its instants by the page's clock, and leads there. */
async function foreign(page) {
  await tab(page, "reports");
  const mine = await page.$$eval("#panel select option", (all) => all.map((one) => one.value).find((value) => value.endsWith("mine.py")));
  await page.selectOption("#panel select", mine);
  await page.waitForFunction(() => /^Late <b>/.test(document.querySelector("#panel .scroll h3")?.textContent ?? ""));
  const first = await page.$$eval("#panel .scroll tbody tr:first-child td", (cells) => cells.map((cell) => cell.textContent));
  assert.deepEqual(first, ["victim\\u{202e} (100)", "2.000 ms", "+0.001000000 s", "+0.001000000 s for 4.000 ms", "1.95 KiB", "25.0 %", "7"]);
  await page.click("#panel .scroll th:nth-child(2) button");
  assert.deepEqual(await page.$$eval("#panel .scroll tbody td:nth-child(2)", (cells) => cells.map((cell) => cell.textContent)), ["2.000 ms", "900.000 µs", "9 ns"], "the longest first, whatever its unit");
  await page.screenshot({ path: `${folder}/foreign.png` });
  await page.click("#panel .scroll tbody tr:first-child");
  await settled(page);
  assert.deepEqual(await range(page), [1_000_000, 5_000_000], "its stretch is shown");
}

try {
  const context = await browser.newContext({ viewport: { width: 3840, height: 2160 }, colorScheme: "light", acceptDownloads: true, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(url);
  await page.waitForSelector("html[data-ready=true]");
  await settled(page);
  const canvas = await page.locator("#timeline canvas").boundingBox();
  assert.deepEqual([canvas.width, canvas.x], [3840, 0], "the timeline is as wide as the screen");
  assert.deepEqual(sizeOf(await taken(page, "timeline.png")), [3840, Math.round(canvas.height)]);
  const all = await page.$$eval("#tabs button", (tabs) => tabs.map((one) => one.dataset.tab));
  assert.deepEqual(all.sort(), Object.keys(PICTURES).sort());
  for (const name of Object.keys(PICTURES)) {
    await tab(page, name);
    const fits = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight && document.querySelector("#panel").clientHeight > 400);
    assert.ok(fits, `${name} fits 4K`);
    await page.screenshot({ path: `${folder}/4k-${name}.png` });
    await text(page, name);
    await pictures(page, name);
  }
  await foreign(page);
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
