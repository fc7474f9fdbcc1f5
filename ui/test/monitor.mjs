// Drives the monitor's page in a browser: histogram, the worst over time, a click on one shows its parts.
// usage: node monitor.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { drawn } from "./drawn.mjs";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(new URL(url).origin) || problems.push(`asks ${request.url()}`));
  await page.goto(url);
  await page.waitForSelector("html[data-ready=true]");
  await drawn(page, "#histogram canvas", 5);
  await drawn(page, "#over-time canvas", 3);
  assert.equal(await page.locator("#worst tbody tr").count(), 3, "the longest of each interval");
  await page.click("#worst tbody tr:has-text('hog')");
  assert.match(await page.textContent("#ledger h2 >> nth=1"), /victim <b> \(7\), rt 50, was late by 900\.000 µs on CPU 1/);
  assert.match(await page.textContent("#ledger"), /hog \(9\), rt 60, had the CPU/);
  assert.match(await page.textContent("#ledger pre"), /spin_forever/);
  assert.match(await page.textContent("#ledger code"), /rtscope watch --task 'victim <b>' --over 450us/);
  assert.equal(await page.locator("#ledger .answer, #ledger h3:has-text('proven')").count(), 0, "of this one nothing is proven");
  await page.screenshot({ path: `${folder}/monitor.png` });
  // One that was over the limit has its ledger, what to change, and the answer of its snapshot.
  await page.click("#worst tbody tr:has-text('600.000')");
  assert.match(await page.textContent("#ledger"), /proven by its snapshotvictim <b> was late: hog ran ahead of it/);
  assert.match(await page.textContent("#ledger table >> nth=1"), /run-queue wait behind hog600\.000 µs100\.0 %/);
  assert.deepEqual(await page.$$eval("#ledger code", (all) => all.map((one) => one.textContent)), ["taskset -pc 0 9", "rtscope diagnose /s/hit-0001 -v"]);
  await page.click("#ledger button:has-text('the whole answer')");
  await page.waitForFunction(() => document.querySelector("#ledger .answer")?.shadowRoot?.textContent.includes("the whole answer of it"));
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector("#ledger .answer").shadowRoot.querySelector("p")).color), "rgb(255, 0, 0)");
  // It stays while the page is filled anew.
  await page.waitForResponse((answer) => answer.url().includes("api/v1/monitor"));
  await page.waitForTimeout(300);
  assert.ok(await page.evaluate(() => document.querySelector("#ledger .answer")?.shadowRoot?.textContent.includes("the whole answer of it")));
  await page.screenshot({ path: `${folder}/monitor-late.png` });
  await page.selectOption("#over-time select", "ridges");
  await drawn(page, "#over-time canvas", 3);
  await page.screenshot({ path: `${folder}/monitor-ridges.png` });
  await page.selectOption("#over-time select", "bands");
  await page.selectOption("#choices select >> nth=0", "3600000000000");
  await page.waitForFunction(() => document.querySelectorAll("#worst tbody tr").length === 3);
  // What a tracker measures has its own words: of what it was, and what the other one did.
  await page.selectOption("#choices select >> nth=2", "block_device");
  await page.waitForFunction(() => document.querySelector("#worst thead")?.textContent.includes("woken by"));
  assert.match(await page.textContent("#worst tbody tr >> nth=0"), /900\.000 µs.*victim <b> \(7\).*hog \(9\).*vda read/);
  await page.click("#worst tbody tr:has-text('900.000')");
  assert.match(await page.textContent("#ledger h2 >> nth=1"), /block_device: vda read took 900\.000 µs on CPU 1/);
  assert.match(await page.textContent("#ledger p"), /victim <b> \(7\), rt 50, woken by hog \(9\)\./);
  assert.match(await page.textContent("#ledger code"), /rtscope watch block --over 450us/);
  await page.screenshot({ path: `${folder}/monitor-tracker.png` });
  await page.keyboard.press("l");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.equal(await page.locator("#ledger b, #worst b").count(), 0, "names of threads are text");
  await page.setViewportSize({ width: 390, height: 844 });
  const cards = await page.$$eval(".card", (all) => all.map((one) => one.getBoundingClientRect()).map(({ left, width, height }) => ({ left, width, height })));
  assert.ok(cards.every((card) => card.left === 0 && card.width === 390 && card.height === 320), `below each other on a telephone: ${JSON.stringify(cards)}`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the monitor fits a telephone");
  await page.screenshot({ path: `${folder}/monitor-phone.png` });
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
