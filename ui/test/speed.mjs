// How fast the page of a trace is, and how much memory it takes: prints figures, and beside those that have a bar whether it is met.
// usage: node speed.mjs CHROMIUM RTSCOPE TRACE [LARGER] [page=FOLDER]
// With LARGER, a trace of ten times the events, its steps are compared; with FOLDER, the page of that folder is measured, as of ui/dist.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, readdirSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const words = process.argv.slice(2);
const folder = words.find((word) => word.startsWith("page="))?.slice(5);
const [executablePath, program, ...traces] = words.filter((word) => !word.startsWith("page="));
const home = mkdtempSync(join(tmpdir(), "rtscope-speed-"));
const say = (what, text) => console.log(`${what.padEnd(52)} ${text}`);
const ms = (number) => `${number.toFixed(1)} ms`;
const sorted = (all) => [...all].sort((a, b) => a - b);
const share = (all, part) => { const list = sorted(all); return list[Math.min(Math.floor(list.length * part), list.length - 1)]; };
const told = (all) => `p50 ${ms(share(all, 0.5))}, p95 ${ms(share(all, 0.95))}, longest ${ms(share(all, 1))} (${all.length})`;
const resident = (pid) => `${(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024).toFixed(0)} MB`;
/** A figure beside its bar, which it may reach. */
const bar = (found, most, unit) => `   bar ${most} ${unit}: ${found <= most ? "met" : "MISSED"}`;
const atLeast = (found, least, unit) => `   bar ${least} ${unit}: ${found >= least ? "met" : "MISSED"}`;
/** The memory that the processes of tabs have of their own, and their part of what they share: the largest. */
function tabMegabytes() {
  let most = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer") || !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(profile)) continue;
      most = Math.max(most, Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]) / 1024);
    } catch { /* it has ended */ }
  }
  return most;
}
/** Seconds of CPU that a process took so far. */
const cpuSeconds = (pid) => { const parts = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" "); return (Number(parts[11]) + Number(parts[12])) / 100; };
const peak = (pid) => `${(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024).toFixed(0)} MB`;

function serve(trace) {
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
const profile = mkdtempSync(join(tmpdir(), "rtscope-profile-"));
const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: ["--no-sandbox"] });

/** From nothing: the index, while a page looks on. */
async function fromNothing(trace) {
  server = await serve(trace);
  const begun = performance.now(), first = opened(context, server.url);
  const { info, took } = await indexed(server.url, begun);
  say("events, activations, handlers, calls", [info.events, info.activations, info.handlers, info.calls].join(", "));
  const cpu = cpuSeconds(server.child.pid), rate = info.events / took / 1000;
  say("CPU time of the index, the page's questions among it", `${cpu.toFixed(2)} s, ${(info.events / cpu / 1e6).toFixed(2)} million events/s of CPU`);
  say("index from nothing, with a page that looks on", `${(took / 1000).toFixed(2)} s, ${rate.toFixed(2)} million events/s${atLeast(rate, 8, "million events/s")}`);
  const { page, took: useful } = await first;
  say("until something was drawn meanwhile", ms(useful) + bar(useful, 2000, "ms"));
  say("memory of the server, now and at most", `${resident(server.child.pid)}, ${peak(server.child.pid)}`);
  await page.close();
  await ended();
}

async function ended() {
  const gone = new Promise((go) => server.child.once("exit", go));
  server.child.kill();
  await gone;
  server = null;
}

/** With the index that was kept: the steps, tiles, rows, latencies, memory. Gives what is compared. */
async function withIndex(trace) {
  const again = performance.now();
  server = await serve(trace);
  const { info, took: ready } = await indexed(server.url, again);
  say("with the index: until the program has it", ms(ready));
  const kept = await opened(context, server.url), first = ready + kept.took;
  say("with the index: until the page was drawn", ms(kept.took) + bar(kept.took, 500, "ms"));
  say("the same from the start of the program", ms(first));
  await kept.page.waitForSelector("html[data-ready=true]");
  const [tiles, drawn] = await steps(kept.page, info.length_ns);
  say("a step from the whole to 1 µs and back: server", told(tiles) + bar(share(tiles, 0.95), 50, "ms p95"));
  say("the same until it was drawn", told(drawn) + bar(share(drawn, 0.95), 100, "ms p95"));
  const compared = { "server p95": share(tiles, 0.95), "drawn p95": share(drawn, 0.95) };
  for (const part of [1, 10, 100, 1000]) {
    const tracks = Array.from({ length: Math.min(info.cpus, 8) }, (_, cpu) => `c${cpu}`).join(","), begin = Math.floor(info.length_ns / 2) * (part > 1);
    const before = cpuSeconds(server.child.pid), took = [];
    for (let turn = 0; turn < 40; turn++) took.push((await ask(server.url, `tile?tracks=${tracks}&begin=${begin + turn}&end=${begin + turn + Math.floor(info.length_ns / part)}&columns=1090`)).took);
    say(`a tile of up to 8 CPUs, 1/${part} of the trace`, `${ms(((cpuSeconds(server.child.pid) - before) / 40) * 1000)} of CPU; ${told(took)}`);
    compared[`tile 1/${part} p50`] = share(took, 0.5);
  }
  const rows = [];
  for (let at = 0; at < 60; at++) rows.push((await ask(server.url, `events?first=${Math.floor((info.events * ((at * 37) % 60)) / 60)}&count=40`)).took);
  say("40 rows of the table of events, anywhere", told(rows) + bar(share(rows, 0.95), 100, "ms p95"));
  compared["rows p95"] = share(rows, 0.95);
  const grids = [];
  for (let at = 0; at < 10; at++) grids.push((await ask(server.url, `latencies?columns=300&worst=100&stats=1`)).took);
  say("latencies of the whole trace, with statistics", told(grids));
  const session = await context.newCDPSession(kept.page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage"), tab = tabMegabytes();
  say("memory of the tab's script", `${(usedSize / 1e6).toFixed(1)} MB`);
  say("memory of the tab's process", `${tab.toFixed(0)} MB${bar(tab, 300, "MB")}`);
  say("memory of the server, now and at most", `${resident(server.child.pid)}, ${peak(server.child.pid)}`);
  await kept.page.close();
  await ended();
  return compared;
}

try {
  const found = [];
  for (const trace of traces) {
    say("trace, processors, load before", `${trace}, ${cpus().length}, ${loadavg()[0].toFixed(2)}`);
    await fromNothing(trace);
    const keptIn = join(home, "rtscope/view");
    say("indexes on the disk", `${(readdirSync(keptIn).reduce((sum, name) => sum + statSync(join(keptIn, name)).size, 0) / 1e6).toFixed(1)} MB`);
    found.push(await withIndex(trace));
    say("load after", loadavg()[0].toFixed(2));
  }
  for (const [what, before] of Object.entries(found[1] ? found[0] : {})) {
    const times = found[1][what] / before;
    say(`the larger trace beside the other: ${what}`, `${times.toFixed(2)} times${bar(times, 1.5, "times")}`);
  }
} finally {
  await context.close();
  server?.child.kill();
  for (const made of [home, profile]) rmSync(made, { recursive: true, force: true });
}
