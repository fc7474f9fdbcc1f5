// Drives the page in a browser: from the trace to the culprit, and back by a link.
// usage: node page.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
const problems = [];

/** Opens a page; whatever it complains about fails the test. */
async function open(address) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(new URL(url).origin) || problems.push(`asks ${request.url()}`));
  await page.goto(address);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  return page;
}

const picture = (page, name) => page.screenshot({ path: `${folder}/${name}.png` });
const range = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("range"));
const settled = (page) => page.waitForTimeout(500);

/** How many colours the timeline has: an empty one has few. */
const colours = (page) => page.evaluate(() => {
  const canvas = document.querySelector("#timeline canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return seen.size;
});

try {
  const page = await open(url);
  await settled(page);
  assert.ok((await colours(page)) > 8, "the timeline is drawn");
  await picture(page, "whole");

  // One click from the list of latencies to the ledger.
  await page.fill("#search", "victim");
  await page.waitForSelector("#panel tbody tr");
  await page.click("#panel tbody tr");
  await page.waitForSelector(".terms");
  const sentence = await page.textContent(".ledger h2");
  assert.match(sentence, /hog/);
  await settled(page);
  await picture(page, "ledger");
  const near = await range(page);

  await page.keyboard.press("w");
  await settled(page);
  assert.notEqual(await range(page), near, "w zooms");
  await page.keyboard.press("u");
  await settled(page);
  assert.equal(await range(page), near, "u goes back");

  await page.keyboard.press("3");
  await page.fill("#panel input", '$name == "irq_handler_entry"');
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^\d[\d,]* events match/.test(document.querySelector("#panel .bar span").textContent));
  const names = await page.$$eval("#panel tbody tr td:nth-child(3)", (cells) => cells.map((cell) => cell.textContent));
  assert.ok(names.length > 0 && names.every((name) => name === "irq_handler_entry"), names.join());
  await picture(page, "events");
  await page.fill("#panel input", "$name ==");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#panel .bar .bad");
  await page.fill("#panel input", '$name == "irq_handler_entry"');
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");

  await page.keyboard.press("4");
  await page.waitForSelector("#panel tbody tr, #panel p");
  await picture(page, "losses");
  await page.keyboard.press("5");
  await page.waitForSelector("#panel select");
  await page.selectOption("#panel select", "states");
  await page.waitForFunction(() => /hog/.test(document.querySelector("#panel .scroll").textContent));
  await picture(page, "reports");
  await page.locator("#timeline").focus();
  await page.keyboard.press("?");
  assert.ok(await page.isVisible("dialog"), "? shows the keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("l");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("1");
  await settled(page);
  await picture(page, "dark");

  // A link brings another page to the same place.
  await page.keyboard.press("2");
  await settled(page);
  const other = await open(page.url());
  await other.waitForSelector(".terms");
  assert.equal(await other.textContent(".ledger h2"), sentence);
  await settled(other);
  assert.equal(await range(other), await range(page));
  assert.equal(await other.inputValue("#search"), "victim");

  assert.equal(await page.locator("img, iframe, object").count(), 0, "names of threads are text");
  // A wrong token is refused by questions that the page asks itself.
  const status = await page.evaluate(async () => (await fetch("api/v1/info?token=0", {})).status);
  assert.equal(status, 401);
  problems.splice(0, problems.length, ...problems.filter((text) => !/status of 40[01]/.test(text)));
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
