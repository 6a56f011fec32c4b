// SPDX-License-Identifier: Apache-2.0
// console_live ROUNDS SECONDS: measures the console in Chromium beside an empty page, for
// tests/bench/benches/console-live.py, which says what and judges it. SECONDS: how long events come
// each time. Prints lines of JSON: {"figure", "ours", "peer"} for each round of a figure,
// {"step": text}, {"count", "n"} and {"failed": what is wrong}.
import type { Browser, Page } from "playwright-core";
import { isLive, launched, Person } from "../browser/chromium";
import { Daemon } from "../browser/daemon";
import { large } from "../browser/scenes";
import { Changes, declareFreeVfs, Reader, until } from "./events";
import type { VfPlace } from "./events";
import { cpuMs, longest, tasksOf } from "./trace";
import type { Task } from "./trace";

const EMPTY = "data:text/html,<title>empty</title>";
const VFS = 120; // of each PF
const CELLS = 960;
const TABS = 8;
const TASK_MS = 100; // by the clock; told only, as another load of the machine is in it
const EVENTS_PER_SECOND = 500;
const EVENTS_PART_MIN = 0.9; // that really come
// Whatever an event changes is drawn by then: tables and sums are a few times a second.
const AFTERWARDS_MS = 1000;
const PAGES = [
  { name: "host", hash: "#/", part: "svg.picture a.cell", count: CELLS },
  { name: "events", hash: "#/events", part: ".timeline .entry", count: 1 },
] as const;

function say(what: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

function step(text: string): void {
  say({ step: text });
}

// Everything that is measured in one browser, of one daemon.
class Bench {
  private lastOnes = 0;

  // `pfs`: those without attachments.
  private constructor(private readonly browser: Browser, private readonly daemon: Daemon,
                      private readonly person: Person, private readonly empty: Page,
                      private readonly pfs: readonly string[]) {}

  static async of(browser: Browser, daemon: Daemon): Promise<Bench> {
    const answer = await daemon.ask("GET", "/v1/pfs");
    const items = answer.body!["items"] as { info: { pci: string } }[];
    const pfs = items.map(pf => pf.info.pci).slice(1); // all attachments are of the first one
    await declareFreeVfs(daemon, pfs, VFS);
    const person = await Person.with(browser, daemon);
    const empty = await (await browser.newContext()).newPage();
    await empty.goto(EMPTY);
    return new Bench(browser, daemon, person, empty, pfs);
  }

  async rounds(count: number, milliseconds: number): Promise<void> {
    const page = await this.person.signedIn();
    await page.locator("a.cell").nth(CELLS - 1).waitFor();
    await page.addInitScript(tellWhenComplete, CELLS);
    for (let at = 0; at < count; ++at) {
      await this.firstPicture(page);
      await this.changedCell(page, "event", () => this.daemon.happen({
        change_vf: { pf: this.pfs[0]!, index: at, settings: { trust: true } },
      }));
      await this.changedCell(page, "attach", () => this.daemon.do("POST", "/v1/attachments",
        { vm: `vm${100 + at}`, network: "train", verify: "none" }));
    }
    await page.close();
    await this.manyEvents(count, milliseconds);
    await this.person.leave();
  }

  // From the reload of a tab in which somebody is signed in.
  private async firstPicture(page: Page): Promise<void> {
    const ours = await this.measured(page, async () => {
      const complete = page.waitForEvent("console", one => one.text() === "complete");
      await page.reload({ waitUntil: "commit" });
      await complete;
    });
    const peer = await this.measured(this.empty, () => this.empty.reload());
    this.figure("picture", ours.tasks, peer.tasks, cpuMs);
    await isLive(page);
  }

  // From before the host changes until its cell has changed, and whatever else the events cause
  // afterwards. Nothing is subtracted: the empty page's tasks in the same time are the peer.
  private async changedCell(page: Page, name: string, change: () => Promise<unknown>):
      Promise<void> {
    await page.evaluate(tellWhenACellChanges);
    const ours = await this.measured(page, async () => {
      const changed = page.waitForEvent("console", one => one.text() === "changed");
      await Promise.all([change(), changed]);
    });
    const peer = await this.measured(this.empty, () => until(performance.now() + ours.took));
    this.figure(name, ours.tasks, peer.tasks, cpuMs);
    step(`${name}: the cell changes within ${ours.took.toFixed(0)} ms`);
  }

  private async measured(page: Page, act: () => Promise<unknown>):
      Promise<{ tasks: Task[]; took: number }> {
    let took = 0;
    const [tasks] = await tasksOf(this.browser, [page], async () => {
      const began = performance.now();
      await act();
      took = performance.now() - began;
      await until(performance.now() + AFTERWARDS_MS);
    });
    return { tasks: tasks!, took };
  }

  private figure(name: string, ours: readonly Task[], peer: readonly Task[],
                 of: (tasks: readonly Task[]) => number): void {
    say({ figure: name, ours: of(ours), peer: of(peer) });
  }

  private async manyEvents(count: number, milliseconds: number): Promise<void> {
    // The last VF of each PF changes last, and alone.
    const vfs = this.pfs.flatMap(pf =>
      Array.from({ length: VFS - 1 }, (_, index): VfPlace => ({ pf, index })));
    const changes = new Changes(this.daemon, vfs);
    const tabs = [await this.person.signedIn()];
    while (tabs.length < TABS) tabs.push(await this.person.open());
    await Promise.all(tabs.map(isLive));
    await Promise.all(tabs.map(tab => tab.evaluate(noteLapses)));
    for (let at = 0; at < count; ++at) {
      for (const { name, hash, part, count: parts } of PAGES) {
        await Promise.all(tabs.map(tab => tab.evaluate(to => { location.hash = to; }, hash)));
        await Promise.all(tabs.map(tab => tab.locator(part).nth(parts - 1).waitFor()));
        await this.burst(tabs, name, changes, milliseconds);
        await this.lastEvent(tabs, name);
      }
    }
  }

  // The longest task of any tab, and the empty page's in the same time.
  private async burst(tabs: readonly Page[], name: string, changes: Changes,
                      milliseconds: number): Promise<void> {
    const reader = await Reader.of(this.daemon);
    const all = await tasksOf(this.browser, [...tabs, this.empty], async () => {
      await changes.come(EVENTS_PER_SECOND, milliseconds);
      await until(performance.now() + AFTERWARDS_MS);
    });
    reader.end();
    const peer = all.pop()!;
    const ours = all.flat();
    const most = longest(ours);
    this.figure(`${name}-longest`, ours, peer, tasks => longest(tasks).cpuMs);
    const perSecond = reader.count / (milliseconds / 1000);
    const over = ours.filter(task => task.wallMs > TASK_MS).length;
    const used = all.map(one => `${(cpuMs(one) / milliseconds * 100).toFixed(0)}`);
    step(`${name}: ${perSecond.toFixed(0)} events a second came; by the clock, on a machine that `
      + `nine pages share, the longest task took ${most.wallMs.toFixed(0)} ms, and ${over} of `
      + `${ours.length} took over ${TASK_MS} ms; the tabs took ${used.join(", ")} % of a CPU, `
      + "the last one is in front");
    say({ count: "events", n: reader.count });
    if (perSecond < EVENTS_PER_SECOND * EVENTS_PART_MIN)
      say({ failed: `${perSecond.toFixed(0)} events a second came, not ${EVENTS_PER_SECOND}` });
  }

  // Each tab is live, has been so all the time, and shows what happened last.
  private async lastEvent(tabs: readonly Page[], name: string): Promise<void> {
    const pf = this.pfs[Math.floor(this.lastOnes / 2) % this.pfs.length]!;
    const trust = this.lastOnes++ % 2 === 0;
    const index = VFS - 1;
    await this.daemon.happen({ change_vf: { pf, index, settings: { trust } } });
    const shown = name === "host"
      ? `a.cell.${trust ? "drifted" : "free"}[data-vf="${pf}/${index}"]`
      : `.timeline .entry:has(a[title="${pf}/${index}"])`;
    const began = performance.now();
    await Promise.all(tabs.map(tab => tab.locator(shown).first().waitFor()));
    await Promise.all(tabs.map(isLive));
    const lapses = await Promise.all(tabs.map(tab => tab.evaluate(() => window.lapses)));
    if (lapses.some(one => one !== 0))
      say({ failed: `${name}: tabs that were not live all the time: ${lapses.join()} times` });
    step(`${name}: ${tabs.length} tabs are live, and show the last event within `
      + `${(performance.now() - began).toFixed(0)} ms`);
    say({ count: "live", n: tabs.length });
  }
}

declare global {
  interface Window {
    lapses: number;
  }
}

// The next three run in the page.
function tellWhenComplete(cells: number): void {
  new MutationObserver((_, observer) => {
    if (document.querySelectorAll("a.cell").length < cells) return;
    observer.disconnect();
    console.debug("complete");
  }).observe(document, { childList: true, subtree: true });
}

function tellWhenACellChanges(): void {
  new MutationObserver((_, observer) => {
    observer.disconnect();
    console.debug("changed");
  }).observe(document.querySelector("svg.picture")!,
    { attributes: true, attributeFilter: ["class"], subtree: true });
}

function noteLapses(): void {
  window.lapses = 0;
  new MutationObserver(() => {
    if (document.querySelector("header .not-live") !== null) ++window.lapses;
  }).observe(document.querySelector("header")!,
    { attributes: true, attributeFilter: ["class"], childList: true, subtree: true });
}

async function main(rounds: number, seconds: number): Promise<void> {
  const [browser, daemon] = await Promise.all([launched(), large()]);
  try {
    const bench = await Bench.of(browser, daemon);
    await bench.rounds(rounds, seconds * 1000);
  } finally {
    await browser.close();
    await daemon.end();
  }
}

void main(Number(process.argv[2]), Number(process.argv[3]));
