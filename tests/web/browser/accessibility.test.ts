// SPDX-License-Identifier: Apache-2.0
// axe on every page, in states that a person meets, light, dark, and on a narrow screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { look, nothingYet, seenByKeyboard } from "./axe";
import { signIn } from "./chromium";
import { inEveryState, PFS } from "./scenes";
import { staged } from "./stage";
import type { Stage } from "./stage";

const VM1 = "#/vms/vm1";

let attachment: string;
let operation: string;
const stage: Stage = staged(inEveryState, async () => {
  const { daemon } = stage;
  const { body } = await daemon.ask("GET", "/v1/attachments");
  attachment = (body!["items"] as { id: string; vf: { index: number } }[])
    .find(one => one.vf.index === 0)!.id;
  operation = ((await daemon.ask("GET", "/v1/operations")).body!["items"] as { id: string }[])[0]!
    .id;
});

// A place, and what is there once it is drawn whole.
type State = readonly [string, string, (page: Page) => Promise<unknown>];
const text = (words: string | RegExp) => (page: Page) => page.getByText(words).first().waitFor();

const states = (): readonly State[] => [
  ["Host", "#/", page => page.locator("a.cell.proved").waitFor()],
  ["Host, with its table", "#/", async page => {
    await page.getByText("The VFs as a table").click();
    await page.getByLabel("Filter").fill("free");
  }],
  ["Host, a VF pointed at", "#/", page => page.locator("a.cell.drifted").first().hover()],
  ["VMs", "#/vms", text("vm3")],
  ["a VM", VM1, text("attached and proved")],
  ["a VM that is gone", "#/vms/none", text("libvirt knows no VM none")],
  ["attaching", `${VM1}?act=attach&network=train`, async page => {
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("button", { name: "Attach to vm1" }).waitFor();
  }],
  ["a refused attach", `${VM1}?act=attach&network=train&address=10.0.0.1`, async page => {
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("alert").waitFor();
  }],
  ["detaching", `${VM1}?act=detach&ids=${attachment}`, text("Type vm1 to confirm")],
  ["Verification", "#/verification", text("vm1")],
  ["a VF's verifications", `#/verification/${PFS[0]}/0`,
    page => page.getByRole("region", { name: "Latest" }).waitFor()],
  ["a free VF", `#/verification/${PFS[1]}/0`, text("The VF is not attached")],
  ["verifying", `#/verification/${PFS[0]}/0?act=verify`, async page => {
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("button", { name: "Verify RDMA in vm1" }).waitFor();
  }],
  ["Events", "#/events", page => page.getByRole("link", { name: "attach" }).first().waitFor()],
  ["an operation", `#/events/operation/${operation}`, text("What its time went to")],
  ["no such certificate", "#/events/certificate/none", text("What to do:")],
  ["Readiness", "#/readiness", text(/^\d+ (failed|warnings?|ok)/)],
  ["Settings", "#/settings", text("Desired document")],
  ["a document that is refused", "#/settings/desired", async page => {
    const area = page.getByLabel("Document, as JSON");
    await area.fill((await area.inputValue()).replace("\"num_vfs\": 4", "\"num_vfs\": 6"));
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("alert").waitFor();
  }],
  ["PFs", "#/settings/pfs", text("enp65s0")],
  ["a PF", `#/settings/pfs/${PFS[0]}`, text("Number of VFs")],
  ["networks", "#/settings/networks", text("train")],
  ["a network", "#/settings/networks/train", text("Document, as JSON")],
  ["pools", "#/settings/pools", text("Make another one")],
  ["identities", "#/settings/identities", text("Document, as JSON")],
  ["tenants", "#/settings/tenants", text("Make another one")],
  ["tokens", "#/settings/tokens", text("Make a token …")],
  ["audit", "#/settings/audit", text("token:")],
  ["no such page", "#/nowhere", text("The console has no page")],
];

// What one visit to each state finds, by appearance.
const found = nothingYet();

test("accessibility: no serious finding on any page", async () => {
  const person = await stage.person({ bypassCSP: true });
  const page = await person.open();
  await page.getByLabel("Token").waitFor();
  await look(page, "sign-in", found);
  await signIn(page, stage.daemon.token);
  for (const [name, place, isThere] of states()) {
    await page.goto(`/${place}`);
    await isThere(page).catch((error: Error) => found.light.push(`${name}: ${error.message}`));
    await look(page, name, found);
  }
  assert.deepEqual(found.light, []);
  await person.leave();
});

test("accessibility: contrast is enough in the dark, too", () => {
  assert.deepEqual(found.dark, []);
});

test("accessibility: each page fits a screen of 320 px", () => {
  assert.deepEqual(found.narrow, []);
});

test("accessibility: the keyboard goes through every page, and the focus is seen", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  const visits = ["Host", "VMs", "a VM", "Events", "Readiness", "a PF"];
  for (const [, place, isThere] of states().filter(([name]) => visits.includes(name))) {
    await page.goto(`/${place}`);
    await isThere(page);
    const seen = await seenByKeyboard(page, place);
    assert.ok(seen >= 3, `${place}: Tab reaches ${seen} elements`);
  }
  await person.leave();
});
