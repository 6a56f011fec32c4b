// SPDX-License-Identifier: Apache-2.0
// A large host: 8 PFs with 120 VFs each, 120 VMs. And eight tabs, which share one event stream,
// since a browser allows six connections to a host.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { isLive } from "./chromium";
import { attached, large } from "./scenes";
import { staged } from "./stage";

const TABS = 8;

const stage = staged(large);

// A tab that nobody looks at draws nothing until somebody does.
async function eachShows(tabs: readonly Page[], vm: string): Promise<void> {
  for (const tab of tabs) {
    await tab.bringToFront();
    await tab.locator(`a.cell.unproved[aria-label$=", ${vm}"]`).waitFor();
  }
}

test("many: 960 VFs and 120 VMs are drawn, none over another", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await page.locator("svg.picture a.cell").nth(959).waitFor();
  const boxes = await page.evaluate(() => [...document.querySelectorAll("a.cell")].map(one => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return { x, y, width, height };
  }));
  assert.equal(boxes.length, 960);
  const places = new Set(boxes.map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`));
  assert.equal(places.size, 960);
  assert.equal(await page.locator("[data-vm]").count() >= 120, true);
  await person.leave();
});

test("many: eight tabs are live, and follow one event over one stream", async () => {
  const person = await stage.person();
  let streams = 0;
  person.context.on("request", request => {
    if (request.url().includes("/v1/events") && request.headers()["accept"] === "text/event-stream")
      ++streams;
  });
  const first = await person.signedIn();
  const tabs = [first];
  while (tabs.length < TABS) tabs.push(await person.open());
  for (const tab of tabs) {
    await tab.bringToFront();
    await isLive(tab);
  }
  await attached(stage.daemon, "vm120", { verify: "none" });
  await eachShows(tabs, "vm120");
  assert.equal(streams, 1);
  // The tab that has the stream goes; another one takes it over.
  await first.close();
  await attached(stage.daemon, "vm119", { verify: "none" });
  await eachShows(tabs.slice(1), "vm119");
  await person.leave();
});
