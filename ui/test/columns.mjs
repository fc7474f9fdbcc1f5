// A timeline of more stretches than pixels: its picture on the screen is that of the file with lines, and nobody knows where events were lost.
// usage: node columns.mjs CHROMIUM URL FOLDER-FOR-PICTURES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { drawn } from "./drawn.mjs";

const [executablePath, url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });

/** How many of the places in the tracks of CPUs have the colour that they have in the file, and how many there are. */
const alike = (page, svg) => page.evaluate(async (svg) => {
  const canvas = document.querySelector("#timeline canvas"), { width, height } = canvas;
  const picture = new Image();
  picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await picture.decode();
  const other = document.createElement("canvas");
  [other.width, other.height] = [width, height];
  other.getContext("2d").drawImage(picture, 0, 0, width, height);
  const [one, two] = [canvas, other].map((from) => from.getContext("2d").getImageData(0, 0, width, height).data);
  const scale = width / canvas.clientWidth;
  let [same, all] = [0, 0];
  for (let x = Math.round(195 * scale); x < width - 15 * scale; x++) {
    for (let y = Math.round(26 * scale); y < 66 * scale; y++) {
      const at = (y * width + x) * 4;
      all++;
      same += [0, 1, 2].every((part) => Math.abs(one[at + part] - two[at + part]) < 48);
    }
  }
  return { same, all };
}, svg);

try {
  for (const [deviceScaleFactor, colorScheme] of [[1, "light"], [2, "dark"]]) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, deviceScaleFactor, colorScheme, acceptDownloads: true });
    await page.goto(`${url}#tab=losses`);
    await page.waitForSelector("html[data-ready=true]");
    await drawn(page, "#timeline canvas", 8);
    const box = await page.locator("#timeline canvas").boundingBox();
    await page.mouse.move(box.x + 900, box.y + 33);
    await page.waitForFunction(() => /a pixel: .* tasks/.test(document.querySelector("#tip").textContent));
    await page.mouse.move(640, 715);
    const [download] = await Promise.all([page.waitForEvent("download"), page.selectOption("#take", "timeline.svg")]);
    const svg = readFileSync(await download.path(), "utf8");
    assert.match(svg, /url\(#hatch\)/, "what nobody knows is hatched");
    await page.screenshot({ path: `${folder}/columns-${colorScheme}.png` });
    const { same, all } = await alike(page, svg);
    assert.ok(same > all * 0.9, `${same} of ${all} places have the colour of the file`);
    await page.close();
  }
} finally {
  await browser.close();
}
