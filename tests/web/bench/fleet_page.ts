// SPDX-License-Identifier: Apache-2.0
// What the pages of a fleet of 1,000 hosts with 64 attached VFs each cost Chromium: node build.mjs
// --bench fleet_page SECONDS prints the CPU time of the page's tasks, by what is done to it. Frames
// are those tasks: at 60 frames a second none should take over 16 ms, and none that a person feels
// over 50.
import type { Browser, Page } from "playwright-core";
import { isLive, launched, Person } from "../browser/chromium";
import { fleetEvent, manyHosts } from "../browser/fleet_answers";
import { FleetStandIn } from "../browser/fleet_stage";
import { until } from "./events";
import { cpuMs, tasksOf } from "./trace";

const HOSTS = 1000;
const ATTACHED = 64;
const EVENTS_PER_SECOND = 100;
const WAVE_MS = 50;
const FRAME_MS = 16;
const LONG_MS = 50;
const SCROLLS = 60;

let browser: Browser;

async function measured(name: string, page: Page, act: () => Promise<unknown>): Promise<void> {
  const began = performance.now();
  const [tasks] = await tasksOf(browser, [page], act);
  const took = performance.now() - began;
  const ours = tasks!.map(one => one.cpuMs).sort((one, other) => one - other);
  const at = (part: number): string => ours[Math.floor((ours.length - 1) * part)]!.toFixed(1);
  const over = (most: number): number => ours.filter(one => one > most).length;
  console.log(`${name}: ${ours.length} tasks in ${(took / 1000).toFixed(1)} s, `
    + `${cpuMs(tasks!).toFixed(0)} ms of CPU; 99 % ${at(0.99)} ms, longest ${at(1)} ms; `
    + `${over(FRAME_MS)} over ${FRAME_MS} ms, ${over(LONG_MS)} over ${LONG_MS} ms`);
}

async function scrolled(page: Page): Promise<void> {
  await page.mouse.move(400, 400);
  for (let turn = 0; turn < SCROLLS; ++turn) {
    await page.mouse.wheel(0, 400);
    await page.evaluate(() => new Promise(resolve => requestAnimationFrame(resolve)));
  }
}

async function eventsCome(fleet: FleetStandIn, seconds: number): Promise<void> {
  const each = EVENTS_PER_SECOND * WAVE_MS / 1000;
  const began = performance.now();
  let number = 1;
  for (let wave = 0; wave * WAVE_MS < seconds * 1000; ++wave) {
    await until(began + wave * WAVE_MS);
    for (let one = 0; one < each; ++one) {
      const host = fleet.hosts[(number * 37) % HOSTS]!.host.name;
      fleet.emit(fleetEvent(host, number++, { kind: "verified" }));
    }
  }
}

async function rounds(fleet: FleetStandIn, seconds: number): Promise<void> {
  const person = await Person.with(browser, fleet);
  const page = await person.signedIn();
  await isLive(page);
  const proofs = page.locator("a.host-cell", { hasText: /\d+ proved, \d+ failed/ });
  await proofs.nth(HOSTS - 1).waitFor({ state: "attached", timeout: 300_000 });
  await measured("scrolling the racks", page, () => scrolled(page));
  await measured("typing a filter", page, async () => {
    await page.getByLabel("Words").pressSequentially("host01", { delay: 100 });
    await page.getByLabel("Words").fill("");
    await page.locator("a.host-cell").nth(HOSTS - 1).waitFor({ state: "attached" });
  });
  await measured(`${EVENTS_PER_SECOND} events a second on the racks`, page,
    () => eventsCome(fleet, seconds));
  await measured("opening VFs in use", page, async () => {
    await page.evaluate(() => { location.hash = "#/vfs"; });
    await page.getByText(`${HOSTS * ATTACHED} rows`).waitFor({ timeout: 300_000 });
  });
  await measured("filtering VFs in use", page, async () => {
    await page.getByLabel("Proof").selectOption("failed");
    await page.getByText(`${HOSTS * ATTACHED / 10} rows`).waitFor();
  });
  await measured("opening rails", page, async () => {
    await page.evaluate(() => { location.hash = "#/rails"; });
    await page.getByText("rail1 up, 16/16 free").first().waitFor({ timeout: 300_000 });
  });
  await measured("loading the racks, with all attachments", page, async () => {
    await page.evaluate(() => { location.hash = "#/"; });
    await page.reload();
    await proofs.nth(HOSTS - 1).waitFor({ state: "attached", timeout: 300_000 });
  });
  await person.leave();
}

async function main(seconds: number): Promise<void> {
  browser = await launched();
  const fleet = await FleetStandIn.start(manyHosts(HOSTS, ATTACHED));
  try {
    await rounds(fleet, seconds);
  } finally {
    await browser.close();
    await fleet.end();
  }
}

void main(Number(process.argv[2]));
