// What stands beside the kernel's tracks: frequencies, idle states, spans and events of applications, counters, columns.
// usage: node beside.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { drawn } from "./drawn.mjs";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];

async function open(address) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light", acceptDownloads: true });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(address);
  await page.waitForSelector("html[data-ready=true]");
  await drawn(page, "#timeline canvas", 8);
  return page;
}

/** What the tip says of a row, which is found by its words, once it is drawn; for 20 seconds at most. */
async function row(page, words, x = 700) {
  const end = Date.now() + 20_000;
  while (Date.now() < end) {
    const tip = await rowNow(page, words, x);
    if (tip) return tip;
    await page.waitForTimeout(100);
  }
  return "";
}

async function rowNow(page, words, x) {
  const canvas = await page.locator("#timeline canvas").boundingBox();
  for (let y = 30; y < canvas.height; y += 6) {
    await page.mouse.move(canvas.x + x, canvas.y + y);
    const tip = await page.evaluate(() => (document.querySelector("#tip").hidden ? "" : document.querySelector("#tip").textContent));
    if (tip.includes(words)) return tip;
  }
  return "";
}

try {
  const page = await open(url);
  assert.match(await row(page, "spans"), /app \(7\) spans: (app:frame|none) for /, "applications are shown by themselves");
  assert.match(await row(page, "events"), /app \(7\) events: /);
  for (const name of ["frequency", "idle states"]) await page.check(`#order label:has-text("${name}") input`);
  await page.waitForFunction(() => /with=fi/.test(location.hash));
  await page.fill("#order input[list=fields]", "app:frame_begin.level");
  await page.keyboard.press("Enter");
  await page.fill("#order input[list=fields]", "no.such");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /counter=app/.test(location.hash));
  await page.waitForFunction(() => document.querySelectorAll("#order span button").length === 2);
  await page.locator("#timeline").focus();
  assert.match(await row(page, "CPU 1 frequency"), /CPU 1 frequency: [\d.]+ [GM]Hz/);
  assert.match(await row(page, "CPU 0 idle"), /CPU 0 idle state: (idle state \d|not idle)/);
  assert.match(await row(page, "app:frame_begin.level"), /: -?\d+$/);
  assert.match(await row(page, "no.such"), /no integer field of an event/, "what is not there says why");
  await page.mouse.move(640, 700);
  await page.screenshot({ path: `${folder}/beside.png` });
  await page.click('#order button:has-text("no.such")');
  await page.waitForFunction(() => !/no\.such/.test(location.hash));
  await page.click("#tabs [data-tab=events]");
  await page.fill("#panel input.narrow", "level, next_comm");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll("#panel th")].map((one) => one.textContent).join() === "time,CPU,event,level,next_comm,fields");
  await page.waitForFunction(() => /-5/.test(document.querySelector("#panel tbody")?.textContent ?? ""));
  await page.screenshot({ path: `${folder}/columns.png` });
  const [download] = await Promise.all([page.waitForEvent("download"), page.click('#panel button:has-text("save rows")')]);
  const saved = readFileSync(await download.path(), "utf8").split("\n");
  assert.equal(saved[0], '"time_ns","cpu","event","level","next_comm","fields"');
  assert.ok(saved.some((line) => /"app:frame_begin","-5"/.test(line)), saved.slice(0, 5).join("\n"));
  await page.waitForSelector("html[data-kept=true]");

  // A link brings all of it back.
  const other = await open(page.url());
  await other.waitForFunction(() => [...document.querySelectorAll("#panel th")].some((one) => one.textContent === "next_comm"));
  assert.match(await row(other, "app:frame_begin.level"), /: -?\d+$/);
  assert.match(await row(other, "CPU 1 frequency"), /Hz/);
  // As a picture, too.
  const [svg] = await Promise.all([other.waitForEvent("download"), other.selectOption("#take", "timeline.svg")]);
  assert.match(readFileSync(await svg.path(), "utf8"), /CPU 1 frequency/);
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
