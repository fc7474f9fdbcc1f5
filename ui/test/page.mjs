// Drives the page in a browser: from the trace to the culprit, through every view, and back by a link.
// usage: node page.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { drawn } from "./drawn.mjs";
import { small } from "./small.mjs";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", acceptDownloads: true });
const problems = [];

/** Opens a page; whatever it complains about fails the test. */
async function open(address) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(new URL(url).origin) || request.url().startsWith("blob:") || problems.push(`asks ${request.url()}`));
  await page.goto(address);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  return page;
}

const picture = (page, name) => page.screenshot({ path: `${folder}/${name}.png` });
const range = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("range"));
const settled = (page) => page.waitForSelector("html[data-kept=true]");
const tab = (page, name) => page.click(`#tabs [data-tab=${name}]`);

/** From the list of latencies to the ledger: one click. */
async function culprit(page) {
  await page.fill("#search", "victim");
  await page.waitForFunction(() => { const rows = [...document.querySelectorAll("#panel tbody tr")]; return rows.length && rows.every((row) => /victim/.test(row.textContent)); });
  await page.click("#panel tbody tr");
  await page.waitForSelector(".terms");
  const sentence = await page.textContent(".ledger h2");
  assert.match(sentence, /hog/);
  await settled(page);
  const box = await page.locator("#timeline canvas").boundingBox();
  await page.mouse.move(box.x + 640, box.y + 57);
  await page.waitForFunction(() => /^victim \(100\): waiting for a CPU for [\d.]+ µs, from \S+ s, most of it behind hog/.test(document.querySelector("#tip").textContent));
  await picture(page, "ledger");
  return sentence;
}

/** What a stranger would stumble over: without a mouse, without quotes, without a match, on a telephone. */
async function strangers(page) {
  await tab(page, "ledger");
  await page.waitForSelector("#panel tbody tr");
  // A verdict is about one; the rows of others must not claim it.
  for (const cells of await page.$$eval("#panel tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)))) {
    const name = cells[1].replace(/ \(\d+\)$/, "");
    assert.ok(cells[3].startsWith(`${name} (`) || /^(the same cause as that of|no verdict)/.test(cells[3]), cells.join(" | "));
  }
  await tab(page, "latencies");
  await page.waitForSelector("#panel tbody tr");
  await page.locator("#panel tbody tr").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".terms");
  assert.equal(await page.evaluate(() => document.activeElement.id), "panel", "the keyboard goes on at the answer");
  assert.match(await page.textContent(".ledger tfoot"), /in all.*100.*%/, "shares add up");
  await page.fill("#search", "nobody");
  await tab(page, "latencies");
  await page.waitForFunction(() => /no activation of 'nobody'/.test(document.querySelector("#panel").textContent));
  await page.fill("#search", "");
  await page.locator("#timeline").focus();
  for (const key of [..."w".repeat(30), ..."d".repeat(8)]) await page.keyboard.press(key);
  await page.waitForFunction(() => /no activation ends in this range: show a longer one/.test(document.querySelector("#panel .about").textContent));
  await page.keyboard.press("0");
  await tab(page, "events");
  await page.fill("#panel input", "next_comm == victim");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /stands in quotes, as in "victim"/.test(document.querySelector("#panel .bar span").textContent));
  await page.fill("#panel input", "");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^[\d,]+ events$/.test(document.querySelector("#panel .bar span").textContent));
  await page.locator("#panel tbody tr").nth(3).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#panel tr.here");
  await page.setViewportSize({ width: 390, height: 844 });
  for (const name of ["latencies", "events", "usage", "ledger"]) {
    await tab(page, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector("#timeline").clientHeight > 60), `${name} fits a telephone`);
  }
  await picture(page, "phone");
  await page.setViewportSize({ width: 1280, height: 720 });
}

/** Stacks that support a verdict stand in its ledger, and go with its text. */
async function stacks(address) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.route("**/api/v1/ledger?*", async (route) => {
    const response = await route.fetch(), json = await response.json();
    const stack = [{ address: "0xffffffff81000000", symbol: "spin_<b>+0x1" }, { address: "0xffffffff81000100", symbol: "" }];
    for (const group of json.groups) group.verdict.stacks = [{ what: "hog", stack }];
    await route.fulfill({ response, json });
  });
  await page.goto(address);
  await page.waitForSelector("#panel pre");
  assert.equal(await page.textContent("#panel pre"), "spin_<b>+0x1\n0xffffffff81000100");
  assert.match(await page.textContent("#panel"), /stack of hog, innermost first/);
  await page.close();
}

/** What is zoomed and undone; what is pinned and sorted. */
async function hands(page) {
  const near = await range(page);
  await page.keyboard.press("w");
  await settled(page);
  assert.notEqual(await range(page), near, "w zooms");
  await page.keyboard.press("u");
  await settled(page);
  assert.equal(await range(page), near, "u goes back");
  await page.keyboard.press("Shift+U");
  await settled(page);
  assert.notEqual(await range(page), near, "shift u goes forward");
  await page.keyboard.press("u");
  const box = await page.locator("#timeline canvas").boundingBox();
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.mouse.wheel(0, -240);
  await settled(page);
  assert.notEqual(await range(page), near, "the wheel zooms");
  await page.keyboard.press("u");
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 400, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 700, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await settled(page);
  assert.notEqual(await range(page), near, "shift and the mouse zoom to a range");
  await page.keyboard.press("u");
  await settled(page);
  assert.equal(await range(page), near);
  await page.keyboard.press("p");
  await page.selectOption("#order select", "waits");
  await settled(page);
  const words = await page.evaluate(() => location.hash);
  assert.match(words, /pins=t\d+/);
  assert.match(words, /sort=waits/);
  await page.keyboard.press("p");
  await page.selectOption("#order select", "run");
  page.once("dialog", (dialog) => dialog.accept("here it was late"));
  await page.locator("#timeline").focus();
  await page.keyboard.press("b");
  await page.keyboard.press("0");
  await settled(page);
  await page.keyboard.press("n");
  await settled(page);
  assert.equal(await range(page), near, "n goes to the bookmark");
}

async function filter(page) {
  await tab(page, "events");
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
  await page.waitForFunction(() => /events match/.test(document.querySelector("#panel .bar span").textContent));
  await page.keyboard.press("Escape");
}

/** Every view says something, and is kept as a picture. */
async function views(page) {
  await page.keyboard.press("0");
  for (const [name, says] of [["critical", /victim/], ["intervals", /intervals \d/], ["interrupts", /eth0/], ["usage", /hog/], ["io", /request/],
    ["flame", /function/], ["statistics", /victim/], ["losses", /buffer was full/], ["latencies", /activation/]]) {
    await tab(page, name);
    if (name === "intervals") { await page.fill("#panel input", '$name == "irq_handler_entry"'); await page.keyboard.press("Enter"); }
    await page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#panel").textContent), says.source);
    if (["critical", "intervals", "interrupts", "usage", "latencies"].includes(name)) await drawn(page, "#panel canvas", 3);
    await picture(page, name);
  }
  await tab(page, "interrupts");
  await page.selectOption("#panel .side select >> nth=1", "stats");
  await page.waitForFunction(() => /eth0/.test(document.querySelector("#panel .side table").textContent));
  await tab(page, "reports");
  await page.waitForSelector("#panel select");
  await page.selectOption("#panel select", "states");
  await page.waitForFunction(() => /hog/.test(document.querySelector("#panel .scroll").textContent));
  await picture(page, "reports");
}

/** Periods of one's own: a report's table, and a strip above the tracks, which a link brings back. */
async function periods(page) {
  await page.selectOption("#panel select", "periodlog");
  await page.fill("#panel textarea", 'turn : $evt.$name == "sched_switch" && $evt.next_comm == "victim"\n : nonsense');
  await page.locator("#panel textarea").press("Enter");
  await page.waitForSelector("#panel .bar .bad");
  await page.fill("#panel textarea", 'turn : $evt.$name == "sched_switch" && $evt.next_comm == "victim" : $evt.$name == "sched_switch" && $evt.prev_comm == "victim"');
  await page.locator("#panel textarea").press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#panel .scroll tbody tr").length === 40);
  await page.locator("#panel .scroll tbody tr").nth(3).click();
  await settled(page);
  await page.waitForFunction(() => document.querySelectorAll("#panel .scroll tbody tr").length === 1);
  const seen = async (one) => {
    const box = await one.locator("#timeline canvas").boundingBox(), middle = box.x + 190 + (box.width - 200) * 0.6;
    for (const end = Date.now() + 20_000; Date.now() < end;) {
      for (let y = 28; y < 100; y += 8) {
        await one.mouse.move(middle, box.y + y);
        if (/^turn: 1\d\d\.000 µs$/.test(await one.textContent("#tip"))) return true;
      }
    }
    return false;
  };
  assert.ok(await seen(page), "the strip says what a period is");
  await picture(page, "periods");
  assert.match(await page.evaluate(() => location.hash), /periods=turn/);
  const other = await open(page.url());
  assert.ok(await seen(other), "a link brings periods back");
  await other.close();
  await page.fill("#panel textarea", "");
  await page.locator("#panel textarea").press("Enter");
  await page.keyboard.press("Escape");
}

/** What is taken out of the page: pictures, and one file for the ticket that opens without the server. */
async function takes(page) {
  const taken = async (act) => {
    const [download] = await Promise.all([page.waitForEvent("download"), act()]);
    return readFileSync(await download.path());
  };
  await tab(page, "latencies");
  await settled(page);
  const png = await taken(() => page.selectOption("#take", "timeline.png"));
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  const svg = (await taken(() => page.selectOption("#take", "timeline.svg"))).toString();
  assert.match(svg, /^<svg /);
  assert.match(svg, /victim/);
  assert.doesNotMatch(svg, /<img/, "a name is text");
  const parsed = await page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? "", svg);
  assert.equal(parsed, "");
  await tab(page, "ledger");
  await page.waitForSelector(".terms");
  const file = await taken(() => page.click(".ledger button:has-text('page for the ticket')"));
  assert.ok(file.length < 2 << 20, `${file.length} bytes`);
  const offline = await browser.newContext({ offline: true });
  const other = await offline.newPage();
  other.on("request", (request) => request.url() === "about:blank" || problems.push(`the page for the ticket asks ${request.url()}`));
  await other.setContent(file.toString());
  assert.match(await other.textContent("h1"), /victim/);
  assert.match(await other.textContent(".verdict"), /hog/);
  await other.setViewportSize({ width: 320, height: 640 });
  const wide = await other.$eval(".ledger", (one) => one.getBoundingClientRect().right);
  assert.ok(wide <= 320, `the ledger's figures fit a telephone: ${wide}`);
  await other.emulateMedia({ forcedColors: "active" });
  const adjusted = await other.$$eval("figcaption b", (all) => all.map((one) => getComputedStyle(one).forcedColorAdjust));
  assert.ok(adjusted.length > 3 && adjusted.every((one) => one === "none"), `its legend keeps its colours: ${adjusted}`);
  await offline.close();
}

try {
  const page = await open(url);
  await drawn(page, "#timeline canvas", 8);
  await picture(page, "whole");
  const stranger = await open(url);
  await strangers(stranger);
  await stranger.close();
  await small(browser, url, folder, problems);
  const sentence = await culprit(page);
  await stacks(page.url());
  await hands(page);
  await filter(page);
  await views(page);
  await periods(page);
  await takes(page);

  await page.locator("#timeline").focus();
  await page.keyboard.press("?");
  assert.ok(await page.isVisible("dialog"), "? shows the keys");
  await picture(page, "keys");
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
  assert.match(await other.textContent("#marks"), /here it was late/);

  // A link of another trace leads to all of this one.
  const astray = await open(`${url}#range=9000000000000,9100000000000&pins=c999,t77777,u12&thread=88888&with=fi&columns=foo&tab=nosuch`);
  await settled(astray);
  assert.match(await range(astray), /^0,/);
  assert.match(await astray.textContent("#said"), /outside of this trace/);
  await astray.close();
  assert.equal(await page.locator("img, iframe, object").count(), 0, "names of threads are text");
  // A wrong token is refused by questions that the page asks itself.
  const status = await page.evaluate(async () => (await fetch("api/v1/info?token=0", {})).status);
  assert.equal(status, 401);
  problems.splice(0, problems.length, ...problems.filter((text) => !/status of (40[01]|422)/.test(text)));
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
}
