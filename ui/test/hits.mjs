// Drives the page of a watch in a browser: hits come while one looks, and each has its whole answer.
// usage: node hits.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(new URL(url).origin) || problems.push(`asks ${request.url()}`));
  // The tree of the answer is closed to scripts of others; a test looks inside.
  await page.addInitScript(() => {
    const attach = Element.prototype.attachShadow;
    Element.prototype.attachShadow = function () { return attach.call(this, { mode: "open" }); };
  });
  await page.goto(url);
  await page.waitForSelector("html[data-ready=true]");
  const answer = () => page.locator("#page");
  await page.waitForFunction(() => document.querySelectorAll("#hits tbody tr").length >= 1);
  assert.match(await page.textContent("#hits tbody tr"), /victim \(100\).*<img src=x>/);
  await answer().locator("h1").waitFor();
  assert.match(await answer().locator("h1").textContent(), /victim was late by/);
  // The second comes while the first is looked at.
  await page.evaluate(() => fetch(`api/v1/hits${location.search}&second=1`));
  await page.waitForFunction(() => document.querySelectorAll("#hits tbody tr").length === 2);
  assert.match(await page.textContent("#hits tbody tr:first-child"), /no diagnosis/);
  await answer().locator("p", { hasText: "this hit has no snapshot" }).waitFor();
  await page.click("#hits tbody tr:nth-child(2)");
  await answer().locator(".verdict").waitFor();
  assert.equal(await page.isChecked("#follow"), false, "who chose one is not taken away from it");
  const wide = await answer().locator(".bar i").first().evaluate((one) => one.getBoundingClientRect().width);
  assert.ok(wide > 20, `the bars have their lengths: ${wide}`);
  assert.equal(await answer().locator("img, script").count(), 0, "names of threads are text");
  await page.screenshot({ path: `${folder}/hits.png` });
  const status = await page.evaluate(async () => (await fetch("api/v1/hits?token=0")).status);
  assert.equal(status, 401);
  assert.deepEqual(problems.filter((text) => !/status of 401/.test(text)), []);
} finally {
  await browser.close();
}
