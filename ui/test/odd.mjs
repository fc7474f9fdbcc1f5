// Opens pages of traces that are odd: of no event, of one, of hundreds of CPUs, of hostile names. Every tab of each must be usable.
// usage: node odd.mjs CHROMIUM URL,URL… FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, urls, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];

async function look(url, name) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
  page.on("pageerror", (error) => problems.push(`${name}: ${error}`));
  // A refusal of a report that the trace cannot answer is told in its tab.
  page.on("console", (message) => message.type() === "error" && !/status of 4(00|22)/.test(message.text()) && problems.push(`${name}: ${message.text()}`));
  await page.goto(url);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  for (const tab of await page.$$("#tabs button")) {
    await tab.click();
    await page.waitForFunction(() => document.querySelector("#panel").textContent.length > 0 || document.querySelector("#panel canvas"));
    // Something that can be read must come in each: figures, or why there are none.
    await page.waitForFunction(() => /\S/.test(document.querySelector("#panel").textContent) && !/…$/.test(document.querySelector("#panel .bar span, #panel p")?.textContent ?? ""), null, { timeout: 30_000 });
  }
  for (const key of ["w", "w", "s", "0", "d", "u", "ArrowDown", "f", "p", "t", "t", "n"]) await page.keyboard.press(key);
  const canvas = await page.locator("#timeline canvas").boundingBox();
  const first = async () => { await page.mouse.move(60, canvas.y + 60); await page.mouse.move(62, canvas.y + 62); return page.textContent("#tip"); };
  if (name === "1") {
    const top = await first();
    await page.mouse.move(1275, canvas.y + 40);
    await page.mouse.down();
    await page.mouse.move(1275, canvas.y + canvas.height - 5, { steps: 3 });
    await page.mouse.up();
    assert.notEqual(await first(), top, `${name}: the bar scrolls the tracks`);
  }
  await page.mouse.move(700, 120);
  await page.waitForSelector("html[data-kept=true]");
  assert.equal(await page.locator("img, script:not([src]), iframe").count(), 0, `${name}: names are text`);
  assert.doesNotMatch(await page.evaluate(() => document.body.innerText), /[\u202a-\u202e\u2066-\u2069]/, `${name}: nothing turns the text around`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth || document.documentElement.scrollHeight > innerHeight);
  assert.ok(!wide, `${name}: the page fits its window`);
  await page.screenshot({ path: `${folder}/odd-${name}.png` });
  await page.close();
}

try {
  for (const [place, url] of urls.split(",").entries()) await look(url, String(place));
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
