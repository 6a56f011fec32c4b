// SPDX-License-Identifier: Apache-2.0
// A fleet of 1,000 hosts with 64 VFs each, and one whose hosts say markup.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isLive } from "./chromium";
import { manyHosts } from "./fleet_answers";
import { FleetStandIn } from "./fleet_stage";
import { staged } from "./stage";

const HOSTS = 1000;
const MARKUP = "<img src=x onerror=\"document.title='taken'\"><b id=taken>bold</b>";
const ELEMENTS_PER_HOST_MAX = 6;

const stage = staged(() => {
  const hosts = manyHosts(HOSTS);
  Object.assign(hosts[0]!.host, {
    state: "quarantined", reason: MARKUP, labels: { a: MARKUP }, unreachable_why: MARKUP,
    unreachable_since: "2026-01-31T11:00:00.000Z",
  });
  return FleetStandIn.start(hosts);
});

test("fleet of 1000: every host is there, of few elements", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await isLive(page);
  await page.locator("a.host-cell").nth(HOSTS - 1).waitFor({ state: "attached" });
  const all = await page.locator(".cells *").count();
  assert.ok(all <= HOSTS * ELEMENTS_PER_HOST_MAX, `${all} elements`);
  await page.getByText(`${HOSTS} hosts`).first().waitFor();
  await page.getByText("The hosts as a table").click();
  await page.locator("details.table-below tbody tr").nth(99).waitFor();
  assert.equal(await page.locator("details.table-below tbody tr").count(), 100);
  await page.getByRole("button", { name: "Show 100 more rows" }).click();
  await page.locator("details.table-below tbody tr").nth(199).waitFor();
  await person.leave();
});

test("fleet of 1000: what a host says is text and no markup", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/?condition=quarantined");
  await page.getByText(MARKUP, { exact: false }).first().waitFor();
  await page.getByText("The hosts as a table").click();
  await page.locator("details.table-below tbody tr").first().waitFor();
  await page.goto("/#/hosts/host0001/fleet");
  await page.getByText(MARKUP, { exact: false }).first().waitFor();
  assert.equal(await page.locator("#taken").count(), 0);
  assert.notEqual(await page.title(), "taken");
  await person.leave();
});
