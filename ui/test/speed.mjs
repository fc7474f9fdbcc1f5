// How fast the page of a trace is, and how much memory it takes: prints figures, asserts none.
// usage: node speed.mjs CHROMIUM RTSCOPE TRACE [FOLDER]    with FOLDER, the page of that folder is measured, as of ui/dist
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, readdirSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [executablePath, program, trace, folder] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "rtscope-speed-"));
const say = (what, text) => console.log(`${what.padEnd(52)} ${text}`);
const ms = (number) => `${number.toFixed(1)} ms`;
const sorted = (all) => [...all].sort((a, b) => a - b);
const told = (all) => { const list = sorted(all), at = (share) => list[Math.min(Math.floor(list.length * share), list.length - 1)]; return `p50 ${ms(at(0.5))}, p95 ${ms(at(0.95))}, longest ${ms(list.at(-1))} (${list.length})`; };
const resident = (pid) => `${(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024).toFixed(0)} MB`;
/** Seconds of CPU that a process took so far. */
const cpuSeconds = (pid) => { const parts = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" "); return (Number(parts[11]) + Number(parts[12])) / 100; };
const peak = (pid) => `${(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024).toFixed(0)} MB`;

function serve() {
  const child = spawn(program, ["view", trace], { env: { ...process.env, XDG_CACHE_HOME: home }, stdio: ["ignore", "pipe", "ignore"] });
  return new Promise((done, failed) => {
    child.stdout.once("data", (text) => done({ child, url: String(text).trim() }));
    child.once("exit", () => failed(new Error("rtscope view ended")));
  });
}

async function ask(url, path) {
  const at = new URL(url);
  const begun = performance.now();
  const answer = await fetch(`${at.origin}/api/v1/${path}`, { headers: { Authorization: `Bearer ${at.searchParams.get("token")}` } });
  const body = await answer.arrayBuffer();
  return { took: performance.now() - begun, body, json: () => JSON.parse(new TextDecoder().decode(body)) };
}

/** Until the index is whole. */
async function indexed(url, begun) {
  for (;;) {
    const info = (await ask(url, "info")).json();
    if (info.progress.error) throw new Error(info.progress.error);
    if (info.progress.done) return { info, took: performance.now() - begun };
    await new Promise((go) => setTimeout(go, 20));
  }
}

async function opened(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  if (folder) {
    for (const name of ["index.html", "app.js", "app.css"]) {
      await page.route((asked) => asked.pathname === `/${name}` || (name === "index.html" && asked.pathname === "/"), (route) => route.fulfill({ path: join(folder, name) }));
    }
  }
  const begun = performance.now();
  await page.goto(url);
  await page.waitForFunction(() => performance.getEntriesByName("drawn").length > 0, null, { timeout: 600_000 });
  return { page, took: performance.now() - begun };
}

/** From the whole trace to 1 µs and back, at five places. */
async function steps(page, length) {
  await page.evaluate(() => performance.clearMeasures());
  let count = 0;
  const go = async (key) => {
    await page.keyboard.press(key);
    count++;
    await page.waitForFunction((count) => performance.getEntriesByName("drawn").length >= count, count, { polling: 5 });
  };
  const deep = Math.ceil(Math.log2(length / 1000));
  for (let place = 0; place < 5; place++) {
    await page.mouse.click(250 + place * 220, 200);
    for (let step = 0; step < deep; step++) await go("w");
    for (let step = 0; step < deep; step++) await go("s");
  }
  return page.evaluate(() => ["tile", "drawn"].map((name) => performance.getEntriesByName(name).map((entry) => entry.duration)));
}

let server = null;
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox"] });
try {
  say("processors, load before", `${cpus().length}, ${loadavg()[0].toFixed(2)}`);
  server = await serve();
  const begun = performance.now(), first = opened(browser, server.url);
  const { info, took } = await indexed(server.url, begun);
  say("events, activations, handlers, calls", [info.events, info.activations, info.handlers, info.calls].join(", "));
  const cpu = cpuSeconds(server.child.pid);
  say("CPU time for it, the page's questions among it", `${cpu.toFixed(2)} s, ${(info.events / cpu / 1e6).toFixed(2)} million events/s of CPU`);
  say("index from nothing, with a page that looks on", `${(took / 1000).toFixed(2)} s, ${(info.events / took / 1000).toFixed(2)} million events/s`);
  const { page, took: useful } = await first;
  say("until something was drawn meanwhile", ms(useful));
  say("memory of the server, now and at most", `${resident(server.child.pid)}, ${peak(server.child.pid)}`);
  await page.close();
  server.child.kill();
  const keptIn = join(home, "rtscope/view");
  say("index on the disk", `${(readdirSync(keptIn).reduce((sum, name) => sum + statSync(join(keptIn, name)).size, 0) / 1e6).toFixed(1)} MB`);

  const again = performance.now();
  server = await serve();
  const { took: ready } = await indexed(server.url, again);
  say("with the index: until the program has it", ms(ready));
  const kept = await opened(browser, server.url);
  say("with the index: until the page was drawn", ms(kept.took));
  await kept.page.waitForSelector("html[data-ready=true]");
  const [tiles, drawn] = await steps(kept.page, info.length_ns);
  say("a step from the whole to 1 µs and back: server", told(tiles));
  say("the same until it was drawn", told(drawn));
  for (const part of [1, 100, 1000]) {
    const tracks = Array.from({ length: Math.min(info.cpus, 8) }, (_, cpu) => `c${cpu}`).join(","), begin = Math.floor(info.length_ns / 2) * (part > 1);
    const before = cpuSeconds(server.child.pid);
    for (let turn = 0; turn < 30; turn++) await ask(server.url, `tile?tracks=${tracks}&begin=${begin}&end=${begin + Math.floor(info.length_ns / part)}&columns=1090`);
    say(`a tile of up to 8 CPUs, 1/${part} of the trace`, `${ms(((cpuSeconds(server.child.pid) - before) / 30) * 1000)} of CPU`);
  }
  const rows = [];
  for (let at = 0; at < 60; at++) rows.push((await ask(server.url, `events?first=${Math.floor((info.events * ((at * 37) % 60)) / 60)}&count=40`)).took);
  say("40 rows of the table of events, anywhere", told(rows));
  const grids = [];
  for (let at = 0; at < 10; at++) grids.push((await ask(server.url, `latencies?columns=300&worst=100&stats=1`)).took);
  say("latencies of the whole trace, with statistics", told(grids));
  const session = await kept.page.context().newCDPSession(kept.page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  say("memory of the tab's script", `${(usedSize / 1e6).toFixed(1)} MB`);
  say("memory of the server, now and at most", `${resident(server.child.pid)}, ${peak(server.child.pid)}`);
  say("load after", loadavg()[0].toFixed(2));
} finally {
  await browser.close();
  server?.child.kill();
  rmSync(home, { recursive: true });
}
