// SPDX-License-Identifier: Apache-2.0
// axe on every page of a fleet, light, dark, and on a narrow screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { look, nothingYet, seenByKeyboard } from "./axe";
import { fleetEvent, threeHosts } from "./fleet_answers";
import { FleetStandIn } from "./fleet_stage";
import { staged } from "./stage";

const stage = staged(() => FleetStandIn.start(threeHosts()));

const text = (words: string | RegExp) => (page: Page) => page.getByText(words).first().waitFor();
const states: readonly (readonly [string, string, (page: Page) => Promise<unknown>])[] = [
  ["Fleet", "#/", text("0 proved, 1 failed")],
  ["Fleet, with its table", "#/", async page => {
    await page.getByText("The hosts as a table").click();
    await page.locator("details.table-below tbody tr").nth(2).waitFor();
  }],
  ["Fleet, none matches", "#/?words=nothing", text("No host matches the filter.")],
  ["Rails", "#/rails", text("rail1 up, 1/3 free")],
  ["VFs in use", "#/vfs", text("vm2")],
  ["VMs", "#/vms", text("vm2")],
  ["Events", "#/events", async page => {
    await page.getByRole("status").filter({ hasText: /^live$/ }).waitFor();
    stage.daemon.emit(fleetEvent("h1", 5, { kind: "drift", detail: "a VF differs" }));
    await page.getByText("a VF differs").first().waitFor();
  }],
  ["a host", "#/hosts/h1", page => page.locator("svg.picture a.cell").first().waitFor()],
  ["a host that does not answer", "#/hosts/h3", text("h3 does not answer the fleet")],
  ["a host in the fleet", "#/hosts/h3/fleet", text("its store is older")],
  ["cordoning", "#/hosts/h1/fleet?act=cordon", text("1 VM with 1 VF")],
  ["fencing", "#/hosts/h3/fleet?act=fence", async page => {
    await page.getByLabel("Evidence").fill("the PDU says so");
    await page.getByLabel("Type h3 to confirm").waitFor();
  }],
  ["no such host", "#/hosts/none/fleet", text("The fleet has no host none.")],
  ["no such page", "#/nowhere", text("The console has no page")],
];

const found = nothingYet();

test("accessibility of a fleet: no serious finding on any page", async () => {
  const person = await stage.person({ bypassCSP: true });
  const page = await person.signedIn();
  for (const [name, place, isThere] of states) {
    await page.goto(`/${place}`);
    await isThere(page).catch((error: Error) => found.light.push(`${name}: ${error.message}`));
    await look(page, name, found);
  }
  assert.deepEqual(found.light, []);
  await person.leave();
});

test("accessibility of a fleet: contrast is enough in the dark, too", () => {
  assert.deepEqual(found.dark, []);
});

test("accessibility of a fleet: each page fits a screen of 320 px", () => {
  assert.deepEqual(found.narrow, []);
});

test("accessibility of a fleet: the keyboard goes through its pages, and the focus is seen",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn();
    for (const [name, place, isThere] of states.slice(0, 5)) {
      await page.goto(`/${place}`);
      await isThere(page);
      const seen = await seenByKeyboard(page, place);
      assert.ok(seen >= 3, `${name}: Tab reaches ${seen} elements`);
    }
    await person.leave();
  });
