// The page where there is little room, with fingers in place of a mouse, and in colours that the reader chose.
import assert from "node:assert/strict";

const range = (page) => page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("range").split(",").map(Number));
const settled = (page) => page.waitForSelector("html[data-kept=true]");

/** Two fingers that go apart, or one that goes along. */
async function fingers(page, from, to) {
  const session = await page.context().newCDPSession(page);
  const { x, y } = await page.locator("#timeline canvas").boundingBox();
  const send = (type, places) => session.send("Input.dispatchTouchEvent", { type, touchPoints: places.map((place, id) => ({ x: x + place, y: y + 60, id })) });
  await send("touchStart", from);
  for (let step = 1; step <= 8; step++) await send("touchMove", from.map((place, at) => place + ((to[at] - place) * step) / 8));
  await send("touchEnd", []);
  await page.evaluate(() => new Promise((go) => requestAnimationFrame(go)));
  await settled(page);
}

async function phone(page, folder) {
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  for (const name of ["usage", "reports", "intervals", "latencies"]) {
    await page.evaluate((name) => document.querySelector(`[data-tab=${name}]`).click(), name);
    assert.ok(await fits(), `${name} fits 320 pixels`);
    const { left, right } = await page.locator(`[data-tab=${name}]`).evaluate((one) => { const { left, right } = one.getBoundingClientRect(); return { left, right }; });
    assert.ok(left >= -1 && right <= 321, `the tab ${name} is seen: ${left} to ${right}`);
  }
  await page.keyboard.press("0");
  await settled(page);
  const whole = await range(page);
  await fingers(page, [200, 220], [170, 250]);
  const near = await range(page);
  assert.ok(near[1] - near[0] < (whole[1] - whole[0]) / 2, `two fingers zoom: ${whole} to ${near}`);
  await fingers(page, [240], [180]);
  const later = await range(page);
  assert.ok(later[0] > near[0], `one finger moves: ${near} to ${later}`);
  await page.keyboard.press("u");
  await settled(page);
  assert.deepEqual(await range(page), whole, "what was shown before the fingers came can be had back");
  await page.screenshot({ path: `${folder}/phone-320.png`, fullPage: true });
}

/** A window of 1280 by 720 that is zoomed to 200 %. */
async function zoomed(page, folder) {
  for (const selector of ["#tabs [aria-selected=true]", "#panel", "#timeline"]) {
    const { height } = await page.locator(selector).boundingBox();
    assert.ok(height > (selector === "#tabs [aria-selected=true]" ? 20 : 200), `${selector} is ${height} high`);
  }
  await page.emulateMedia({ forcedColors: "active" });
  const adjusted = await page.$$eval("#legend i", (all) => all.map((one) => getComputedStyle(one).forcedColorAdjust));
  assert.ok(adjusted.length > 4 && adjusted.every((one) => one === "none"), `the legend keeps its colours: ${adjusted}`);
  await page.screenshot({ path: `${folder}/zoomed-forced.png`, fullPage: true });
}

export async function small(browser, url, folder, problems) {
  const looks = [
    [{ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }, phone],
    [{ viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }, zoomed],
  ];
  for (const [look, test] of looks) {
    const context = await browser.newContext({ colorScheme: "light", ...look }), page = await context.newPage();
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.goto(`${url}#tab=losses`);
    await page.waitForSelector("html[data-ready=true]");
    await settled(page);
    assert.deepEqual(asked.filter((path) => /latencies|report$/.test(path)), [], "tabs that are closed ask for nothing");
    await test(page, folder);
    await context.close();
  }
}
