// SPDX-License-Identifier: Apache-2.0
// A VF's life in the browser: attached with its plan shown first, proved, changed by another
// program, verified anew, detached, and certified clean.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { reload } from "./chromium";
import { attached, passed, withVfs } from "./scenes";
import { staged } from "./stage";

const stage = staged(() => withVfs());

async function chooseNetwork(page: Page): Promise<void> {
  await page.getByLabel("Network").selectOption("train");
  await page.getByRole("button", { name: "Show the plan" }).click();
}

test("vms: a VF is attached after its plan was shown, step by step, and is proved", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/vms/vm2");
  await page.getByRole("link", { name: "Attach a VF …" }).click();
  await chooseNetwork(page);
  const plan = page.getByRole("region", { name: "Plan" });
  await plan.getByRole("listitem").first().waitFor();
  assert.match(await plan.innerText(), /Affected/);
  const before_ = await stage.daemon.ask("GET", "/v1/attachments");
  assert.deepEqual(before_.body!["items"], [], "a plan changes nothing");
  await page.getByRole("button", { name: "Attach to vm2" }).click();
  const steps = page.getByRole("region", { name: "attach" });
  await steps.getByText("succeeded").waitFor();
  assert.ok(await steps.locator("li.done").count() >= 3);
  await page.getByText("attached and proved").waitFor();
  await page.getByText("192.168.100.2").first().waitFor();
  await person.leave();
});

test("vms: the form is kept over a reload, and back leaves it", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/vms/vm1");
  await page.getByRole("link", { name: "Attach a VF …" }).click();
  await page.getByLabel("Network").selectOption("train");
  await page.getByLabel("Address").fill("192.168.100.77");
  await reload(page);
  const network = page.getByLabel("Network");
  await network.locator("option[value=train]").waitFor({ state: "attached" });
  assert.equal(await network.inputValue(), "train");
  assert.equal(await page.getByLabel("Address").inputValue(), "192.168.100.77");
  await page.goBack();
  await page.getByRole("link", { name: "Attach a VF …" }).waitFor();
  assert.equal(await page.getByRole("region", { name: "Attach a VF to vm1" }).count(), 0);
  await person.leave();
});

test("vms: a refused attach says why and what to do, and loses nothing of the form", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/vms/vm1?act=attach&network=train&address=10.0.0.1");
  await page.getByRole("button", { name: "Show the plan" }).click();
  const problem = page.getByRole("alert");
  await problem.waitFor();
  assert.match(await problem.innerText(), /10\.0\.0\.1/);
  assert.match(await problem.innerText(), /What to do:/);
  assert.equal(await page.getByLabel("Address").inputValue(), "10.0.0.1");
  await person.leave();
});

test("verification: one is begun and watched; a failed one says which side lost packets",
  async () => {
    await attached(stage.daemon, "vm1", { address: "192.168.100.50" });
    const failing = { ...passed, verdict: "fail", detail: "rdma_write: 512 octets differ",
      remedy: "rdma statistic show", losses: [{
        side: "host", detail: "the host dropped 812 packets", remedy: "tc -s qdisc show",
        counter: { source: "qdisc", device: "enp1s0", name: "ingress", count: 812 },
      }] };
    await stage.daemon.happen({ verdict: failing });
    const person = await stage.person();
    const page = await person.signedIn("#/verification");
    await page.getByRole("row").filter({ hasText: "vm1" }).getByRole("link").click();
    await page.getByRole("link", { name: "Verify now …" }).click();
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("button", { name: "Verify RDMA in vm1" }).click();
    const run = page.getByRole("region", { name: "Latest" });
    await run.getByText("the host dropped 812 packets").waitFor();
    await run.getByText("rdma statistic show").first().waitFor();
    assert.equal(await page.getByRole("table", { name: /kept/i }).getByRole("row").count(), 3);
    await stage.daemon.happen({ verdict: passed });
    await person.leave();
  });

test("vms: detaching wants the VM's name typed, and ends with a certificate to print", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/vms/vm2");
  await page.getByRole("link", { name: /^Detach VF \d+ …$/ }).click();
  const button = page.getByRole("button", { name: /^Detach VF \d+ from vm2$/ });
  await button.waitFor();
  assert.ok(await button.isDisabled());
  await page.getByLabel("Type vm2 to confirm").fill("vm1");
  assert.ok(await button.isDisabled());
  await page.getByLabel("Type vm2 to confirm").fill("vm2");
  await button.click();
  await page.getByText("was reset and verified clean at").waitFor();
  await page.getByRole("link", { name: "Certificate" }).click();
  await page.getByRole("heading", { name: "Certificate" }).waitFor();
  await page.getByText(/^VF \d of 0000:01:00.0 is clean$/).waitFor();
  const link = page.url();
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.getByRole("button", { name: "Print" }).isVisible(), false);
  assert.equal(await page.getByRole("navigation", { name: "Pages" }).isVisible(), false);
  await page.emulateMedia({ media: null });
  await page.goto(link);
  await reload(page);
  await page.getByText("Verified clean").waitFor();
  await person.leave();
});

test("events: what happened to a VF stands with its operation, newest first", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/events");
  const list = page.getByRole("list", { name: "Events and operations, newest first" });
  await list.getByRole("link", { name: "detach" }).first().waitFor();
  await page.getByLabel("Words").fill("vm2");
  await page.getByText(/of \d+ entries/).waitFor();
  await list.getByRole("link", { name: "attach", exact: true }).first().click();
  await page.getByRole("heading", { name: "Operation: attach" }).waitFor();
  await page.getByRole("table", { name: "Parts of the operation's time, in order" }).waitFor();
  await page.goBack();
  assert.equal(await page.getByLabel("Words").inputValue(), "vm2");
  await person.leave();
});
