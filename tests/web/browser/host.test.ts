// SPDX-License-Identifier: Apache-2.0
// The host's picture: what it shows, by mouse and by keyboard, and what an event changes in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { isLive, reload } from "./chromium";
import { inEveryState, PFS } from "./scenes";
import { staged } from "./stage";

const STRANGE = "02:00:00:00:00:99";

const stage = staged(inEveryState);

function cell(page: Page, pf: string, index: number, state: string) {
  return page.locator(`a.cell.${state}[data-vf="${pf}/${index}"]`);
}

test("host: each VF is a cell that says its state, and whose it is", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await cell(page, PFS[0], 0, "proved").waitFor();
  assert.equal(await page.locator("svg.picture a.cell").count(), 11);
  assert.equal(await cell(page, PFS[0], 0, "proved").getAttribute("aria-label"),
    "VF 0, attached and proved, vm1");
  assert.equal(await cell(page, PFS[0], 1, "unproved").getAttribute("aria-label"),
    "VF 1, attached, not proved, vm1");
  const legend = await page.getByRole("list", { name: "States of VFs" }).innerText();
  assert.match(legend, /1 attached and proved/);
  assert.match(legend, /1 attached, not proved/);
  await page.getByRole("group", { name: "NUMA node not reported" }).waitFor();
  await person.leave();
});

test("host: another program changes a VF, and its cell shows that without a reload", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await isLive(page);
  await cell(page, PFS[0], 1, "unproved").waitFor();
  await stage.daemon.happen({ change_vf: { pf: PFS[0], index: 1, settings: { mac: STRANGE } } });
  const drifted = cell(page, PFS[0], 1, "drifted");
  await drifted.waitFor();
  await drifted.hover();
  await page.getByText(`has mac ${STRANGE} instead of mac`).waitFor();
  await person.leave();
});

test("host: what is said of a VF moves nothing under the mouse", async () => {
  const person = await stage.person({ viewport: { width: 500, height: 700 } });
  const page = await person.signedIn();
  const first = page.locator(`a.cell[data-vf="${PFS[0]}/0"]`);
  const before_ = await first.boundingBox();
  await first.hover();
  await page.getByText(/^VF 0 of enp1s0 .* · vm1 .* passed/).waitFor();
  assert.deepEqual(await first.boundingBox(), before_);
  await person.leave();
});

test("host: the keyboard reaches each VF, and Enter leads to it", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await cell(page, PFS[0], 0, "proved").focus();
  await page.keyboard.press("ArrowRight");
  await page.getByText(/^VF 1 of enp1s0 \(.*\) · .* · vm1/).waitFor();
  await page.keyboard.press("End");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-vf")),
    `${PFS[0]}/6`);
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/verification\//);
  await page.goBack();
  await page.locator("svg.picture").waitFor();
  await person.leave();
});

test("host: the table below has the same VFs, sorts, filters, and is kept over a reload",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn();
    await page.getByText("The VFs as a table").click();
    const rows = page.locator("details.table-below tbody tr");
    await page.getByLabel("Filter").fill("enp65s0");
    await page.getByText("4 of 11 rows").waitFor();
    assert.equal(await rows.count(), 4);
    await reload(page);
    await page.getByText("4 of 11 rows").waitFor();
    await page.getByRole("button", { name: "VF", exact: true }).click();
    await page.getByRole("button", { name: "VF", exact: true }).click();
    assert.match(await rows.first().innerText(), /41:00.0\/3/);
    await person.leave();
  });

test("host: without vfmgrd the page says since when it is not live, and goes on when it is back",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn();
    await isLive(page);
    await page.locator("svg.picture a.cell").nth(10).waitFor();
    await stage.daemon.stop();
    await page.getByText("not live since").waitFor();
    assert.equal(await page.locator("svg.picture a.cell").count(), 11, "the last look stays");
    await stage.daemon.startAgain();
    await page.getByLabel("Token").waitFor();
    await person.leave();
  });
