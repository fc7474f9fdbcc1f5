// Opens pages of traces that are odd: of no event, of one, of hundreds of CPUs, of hostile names. Every tab of each must be usable.
// usage: node odd.mjs CHROMIUM URL,URL… FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [executablePath, urls, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const problems = [];

/** What an address may say that nobody's page wrote: the page takes what it understands of it. */
const HOSTILE = "range=x,1e999&cursor=Infinity&thread=-5&late=1e99,0.5&pins=c99999999999999999999,t-1,x,c0&sort=toString&group=constructor" +
  "&tab=toString&clock=__proto__&counter=%00&counter=a.b&columns=,,%3Cimg%3E&mark=,,&mark=5,1,x&filter=%28%28&search=%E2%80%AE&periods=%7B";

/** The page of an address that is not to be believed. */
async function mistrust(url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  page.on("pageerror", (error) => problems.push(`a hostile address: ${error}`));
  page.on("response", (answer) => /\/(tile|tracks|tasks)\?/.test(answer.url()) && answer.status() !== 200 && problems.push(`a hostile address: ${answer.url()} ${answer.status()}`));
  await page.goto(`${url}#${HOSTILE}`);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  await page.waitForFunction(() => performance.getEntriesByName("drawn").length > 0, null, { timeout: 60_000 });
  await page.waitForSelector("html[data-kept=true]");
  const kept = new URLSearchParams(new URL(page.url()).hash.slice(1));
  assert.equal(kept.get("tab"), "latencies", "a tab that there is not is the first one");
  assert.equal(kept.get("sort"), null);
  assert.equal(kept.get("pins"), "c0");
  assert.equal(await page.locator("img").count(), 0, "names are text");
  await page.close();
}

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
  if (name === "4") {
    await page.keyboard.press("0");
    await page.waitForSelector("html[data-kept=true]");
    await page.waitForTimeout(300);
    // Where nobody knows anything nothing is filled: the colour of the marks is that of interrupts, too.
    const share = await page.evaluate(() => {
      const canvas = document.querySelector("#timeline canvas"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let marks = 0;
      for (let at = 0; at < data.length; at += 4) marks += Number(data[at] === 0xd5 && data[at + 1] === 0x5e && data[at + 2] === 0);
      return marks / (data.length / 4);
    });
    assert.ok(share > 0.001 && share < 0.05, `${name}: a loss is marked, and hides nothing: ${share}`);
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
  await mistrust(urls.split(",").at(-1));
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
