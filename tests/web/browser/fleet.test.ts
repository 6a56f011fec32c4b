// SPDX-License-Identifier: Apache-2.0
// The console of a fleet: its hosts, what is on all of them, a host's own pages through the fleet,
// and what an admin does about a host. h1 is a real vfmgrd on fakes, h2 and h3 are recorded.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { isLive, reload, signIn } from "./chromium";
import { fleetEvent, threeHosts } from "./fleet_answers";
import { FleetStandIn } from "./fleet_stage";
import { inEveryState, PFS } from "./scenes";
import { staged } from "./stage";
import type { Stage } from "./stage";
import type { Daemon } from "./daemon";

let h1: Daemon;
const stage: Stage<FleetStandIn> = staged(async () => {
  h1 = await inEveryState();
  return FleetStandIn.start(threeHosts(), { h1 });
});

function cell(page: Page, host: string) {
  return page.locator(`a.host-cell[href="#/hosts/${host}"]`);
}

test("fleet: hosts are in their racks, each with its condition and figures", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await isLive(page);
  const rack = page.getByRole("region", { name: "Rack r1 · 2 hosts" });
  await rack.getByRole("link", { name: /^h1 active 2 of 6 VFs free/ }).waitFor();
  await rack.getByRole("link", { name: /^h2 cordoned .* 0 proved, 1 failed/s }).waitFor();
  await cell(page, "h3").filter({ hasText: /quarantined, unreachable since/ }).waitFor();
  await page.getByText("3 hosts · 6 of 18 VFs free").waitFor();
  await page.getByRole("region", { name: "What is shown may be old" })
    .getByText(/h3 since .*connection refused/).waitFor();
  await person.leave();
});

test("fleet: the filter is by rack, label, condition and words, and in the address", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  const search = page.getByRole("search", { name: "Filter" });
  await search.getByLabel("Label").fill("zone=b");
  await page.getByText("1 of 3 hosts").waitFor();
  assert.equal(await page.locator("a.host-cell").count(), 1);
  await search.getByLabel("Label").fill("");
  await search.getByLabel("Condition").selectOption("unreachable");
  await cell(page, "h3").waitFor();
  assert.equal(await page.locator("a.host-cell").count(), 1);
  await search.getByLabel("Condition").selectOption("");
  await search.getByLabel("Rack").selectOption("r1");
  await search.getByLabel("Words").fill("fan");
  await page.getByText("1 of 3 hosts").waitFor();
  await reload(page);
  await page.getByText("1 of 3 hosts").waitFor();
  assert.equal(await search.getByLabel("Words").inputValue(), "fan");
  assert.equal(await search.getByLabel("Rack").inputValue(), "r1");
  await cell(page, "h2").waitFor();
  await person.leave();
});

test("fleet: the keyboard reaches each host, and the table has the same ones", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await cell(page, "h1").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("href")),
    "#/hosts/h2");
  await page.getByText("The hosts as a table").click();
  const rows = page.locator("details.table-below tbody tr");
  assert.equal(await rows.count(), 3);
  await page.getByRole("button", { name: "Free VFs" }).waitFor();
  await page.getByRole("button", { name: "Host", exact: true }).click();
  await page.getByRole("button", { name: "Host", exact: true }).click();
  assert.match(await rows.first().innerText(), /^h3/);
  assert.match(await rows.first().innerText(), /its store is older/);
  await cell(page, "h1").focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/hosts\/h1$/);
  await person.leave();
});

test("fleet: rails are columns with links and free VFs, a link that is down is said", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/rails");
  const row = page.locator("tbody tr").filter({ hasText: /^h2/ });
  await row.getByText("rail1 up, 1/3 free").waitFor();
  await row.getByText("rail2 no carrier, 1/3 free").waitFor();
  await page.getByLabel("Only hosts with a link that is not up").check();
  await page.locator("tbody tr").filter({ hasText: /^h3/ }).waitFor({ state: "detached" });
  await page.getByLabel("Columns").selectOption("network");
  await page.getByRole("columnheader", { name: "lab" }).waitFor();
  await person.leave();
});

test("fleet: who holds which VF is known over all hosts, with proof, and what may be old",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn("#/vfs");
    const rows = page.locator("tbody tr");
    await rows.filter({ hasText: "h2" }).getByText("failed").waitFor();
    assert.equal(await rows.filter({ hasText: "h1" }).count(), 3);
    assert.match(await rows.filter({ hasText: "h3" }).innerText(), /31 Jan 2026, 11:00:00/);
    await page.getByLabel("Proof").selectOption("failed");
    assert.equal(await rows.count(), 1);
    await page.goto("/#/vms");
    await rows.filter({ hasText: "vm2" }).first().waitFor();
    assert.equal(await rows.filter({ hasText: "h1" }).count(), 3);
    await person.leave();
  });

test("fleet: events come live, and once, also when the stream repeats them", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/events");
  await isLive(page);
  const entries = page.locator(".timeline .entry");
  const detail = "the link of rail1 is down";
  const event = fleetEvent("h2", 77, { kind: "link_down", detail });
  stage.daemon.emit(event);
  await entries.filter({ hasText: detail }).waitFor();
  stage.daemon.cutStreams();
  await page.getByText("not live since").waitFor();
  await isLive(page);
  stage.daemon.emit(event);
  stage.daemon.emit(fleetEvent("h3", 77, { kind: "link_up", detail: "the next one" }));
  await entries.filter({ hasText: "the next one" }).waitFor();
  assert.equal(await entries.filter({ hasText: detail }).count(), 1);
  await page.getByLabel("Host").fill("h3");
  await entries.filter({ hasText: detail }).waitFor({ state: "detached" });
  await page.goto("/#/");
  await cell(page, "h2").filter({ hasText: "link down" }).waitFor();
  await person.leave();
});

test("fleet: an event of a host draws its cell anew", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await isLive(page);
  stage.daemon.change("h2", { unreachable_since: new Date().toISOString() });
  stage.daemon.emit(fleetEvent("h2", 90, { kind: "drift" }));
  await cell(page, "h2").filter({ hasText: "unreachable since" }).waitFor();
  stage.daemon.change("h2", { unreachable_since: null });
  stage.daemon.emit(fleetEvent("h2", 91, { kind: "settled" }));
  await cell(page, "h2").filter({ hasText: "unreachable" }).waitFor({ state: "detached" });
  await person.leave();
});

test("fleet: a host's own pages stand below it, live, by deep links, and lead back", async () => {
  const person = await stage.person();
  const page = await person.signedIn(`#/hosts/h1/verification/${PFS[0]}/0`);
  const failed: string[] = [];
  page.on("response", answer => {
    if (answer.status() >= 400) failed.push(`${answer.status()} ${answer.url()}`);
  });
  await page.getByRole("region", { name: "Latest" }).waitFor();
  await isLive(page);
  await page.getByRole("navigation", { name: "Pages" }).getByText("Host").click();
  const first = page.locator(`a.cell[data-vf="${PFS[0]}/3"]`);
  await first.waitFor();
  assert.match((await first.getAttribute("href"))!, /^#\/hosts\/h1\/verification\//);
  await h1.happen({ change_vf: { pf: PFS[0], index: 1, settings: { mac: "02:00:00:00:00:98" } } });
  await page.locator(`a.cell.drifted[data-vf="${PFS[0]}/1"]`).waitFor();
  for (const [path, there] of [
    ["events", "The host keeps no older events."], ["readiness", /^\d+ of \d+ findings?/],
    ["settings/networks/train", "The text is what this host has."],
    ["vms/vm1", "attached and proved"],
  ] as const) {
    await page.goto(`/#/hosts/h1/${path}`);
    await page.getByText(there).first().waitFor();
  }
  assert.deepEqual(failed, []);
  assert.equal(await page.locator('main a[href^="#/vms"]').count(), 0);
  await page.getByRole("navigation", { name: "Where this is" }).getByText("Fleet").first().click();
  await cell(page, "h1").waitFor();
  const own = stage.daemon.asked.filter(one => /^GET \/v1\/(operations|host\/|networks)/.test(one));
  assert.deepEqual(own, [], "asked of the fleet what is the host's");
  await person.leave();
});

test("fleet: a host that does not answer says since when, and its pages say why", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/hosts/h3");
  await page.getByText("h3 does not answer the fleet").waitFor();
  await page.getByText(/h3: connection refused/).first().waitFor();
  await page.goto("/#/hosts/h9");
  await page.getByText("The fleet has no host h9.").waitFor();
  await person.leave();
});

test("fleet: a draft for one host is not offered for another", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/hosts/h1/settings/networks/train");
  const area = page.getByLabel("Document, as JSON");
  await area.fill((await area.inputValue()).replace("9000", "4000"));
  const kept = await page.evaluate(() => Object.keys(sessionStorage));
  assert.ok(kept.includes("vfmgr-draft h1 networks/train"), kept.join());
  await person.leave();
});

test("fleet: cordoning says what it means and who is hit, and can be undone", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/hosts/h1/fleet");
  await page.getByRole("link", { name: "Cordon …" }).click();
  const act = page.getByRole("region", { name: "Cordon" });
  await act.getByText("Nothing new goes to h1").waitFor();
  await act.getByRole("region", { name: "Who is hit" }).getByText("2 VMs with 3 VFs").waitFor();
  await act.getByLabel("Reason").fill("new cables");
  await act.getByRole("button", { name: "Cordon h1" }).click();
  await page.getByText(/cordoned by token:admin.*: new cables/).waitFor();
  await page.getByRole("link", { name: "Uncordon …" }).click();
  await page.getByRole("button", { name: "Uncordon h1" }).click();
  await page.getByRole("link", { name: "Cordon …", exact: true }).waitFor();
  await person.leave();
});

test("fleet: fencing wants evidence and the host's name, and warns of two VMs with one identity",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn("#/hosts/h3/fleet?act=fence");
    const act = page.getByRole("region", { name: "Fence" });
    await act.getByText(/two VMs can have the same MAC/).waitFor();
    await act.getByText("The host does not report now: this is what it last reported.").waitFor();
    await act.getByText("Give the evidence first").waitFor();
    await act.getByLabel("Evidence").fill("PDU 7 says that both outlets are off");
    const button = act.getByRole("button", { name: "State that h3 is off" });
    assert.equal(await button.isDisabled(), true);
    await act.getByLabel("Type h3 to confirm").fill("h3");
    await button.click();
    await page.getByText(/fenced by token:admin.*: PDU 7 says/).waitFor();
    await page.goto("/#/");
    await cell(page, "h3").filter({ hasText: /fenced, quarantined, unreachable since/ }).waitFor();
    await person.leave();
  });

test("fleet: a viewer sees who would be hit, and that it takes an admin", async () => {
  const person = await stage.person();
  const page = await person.open("#/hosts/h2/fleet?act=expel");
  await signIn(page, stage.daemon.viewer);
  await page.getByText("Only an admin may do this. You are signed in with the role viewer.")
    .waitFor();
  await page.getByText("1 VM with 1 VF").waitFor();
  assert.equal(await page.getByRole("button", { name: "Expel h2" }).count(), 0);
  await person.leave();
});
