// SPDX-License-Identifier: Apache-2.0
// Readiness and Settings: findings with remedies; documents with their difference before they are
// applied; tokens that are shown once; the audit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reload } from "./chromium";
import { PFS, withVfs } from "./scenes";
import { staged } from "./stage";

const stage = staged(() => withVfs());

test("readiness: findings are worst first, each with what to do, and a filter in the address",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn("#/readiness");
    await page.getByText("findings").first().waitFor();
    const results = page.getByRole("group", { name: "Results" });
    const failed = results.getByRole("button").first();
    const pressed = await failed.getAttribute("aria-pressed");
    await failed.click();
    assert.notEqual(await failed.getAttribute("aria-pressed"), pressed);
    assert.match(page.url(), /#\/readiness\?/);
    await page.getByRole("searchbox").fill("no finding has these words");
    await reload(page);
    assert.equal(await page.getByRole("searchbox").inputValue(), "no finding has these words");
    await person.leave();
  });

test("settings: a document's difference and plan are shown before it is applied", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/settings/desired");
  const area = page.getByLabel("Document, as JSON");
  const text = await area.inputValue();
  await area.fill(text.replace("\"num_vfs\": 4", "\"num_vfs\": 6"));
  await page.getByRole("region", { name: "What the text changes" }).locator("ins").waitFor();
  await reload(page);
  await page.getByRole("button", { name: "Go on with it" }).click();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("region", { name: "Plan" }).getByText(/enp65s0|0000:41:00.0/).first()
    .waitFor();
  assert.equal((await stage.daemon.ask("GET", `/v1/pfs/${PFS[1]}`)).body!["num_vfs"] ?? 4, 4);
  const apply = page.getByRole("button", { name: "Apply the document" });
  const confirm = page.getByLabel(/^Type .* to confirm$/);
  await apply.waitFor();
  if (await confirm.count() > 0) await confirm.fill("apply");
  await apply.click();
  await page.getByText("succeeded").waitFor();
  const pf = (await stage.daemon.ask("GET", `/v1/pfs/${PFS[1]}`)).body!;
  assert.equal((pf["vfs"] as unknown[]).length, 6);
  await person.leave();
});

test("settings: text that is no JSON and a document that changed meanwhile are said, not lost",
  async () => {
    const person = await stage.person();
    const page = await person.signedIn("#/settings/networks/train");
    const area = page.getByLabel("Document, as JSON");
    const text = await area.inputValue();
    await area.fill(text.slice(0, -3));
    await page.getByText(/^This is no JSON yet:/).waitFor();
    await area.fill(text.replace("9000", "4000"));
    const other = await stage.daemon.ask("GET", "/v1/networks/train");
    await stage.daemon.ask("PUT", "/v1/networks/train", { ...other.body, dscp: 26 });
    await page.getByText("It changed on this host since you began").waitFor();
    assert.match(await area.inputValue(), /4000/);
    await page.getByRole("button", { name: "Take these changes into my text" }).click();
    assert.match(await area.inputValue(), /4000/);
    assert.match(await area.inputValue(), /26/);
    await person.leave();
  });

test("settings: a token's secret is shown once, works, and ends when it is revoked", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/settings/tokens");
  await page.getByRole("link", { name: "Make a token …" }).click();
  await page.getByLabel("Description").fill("night shift");
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("button", { name: /^Make a token with role/ }).click();
  await page.getByText("It is shown only this once").waitFor();
  const shown = await page.locator("main").innerText();
  const secret = /\b[0-9A-Za-z_.-]{40,}\b/.exec(shown)?.[0] ?? "";
  const bearer = { Authorization: `Bearer ${secret}` };
  const asThat = await stage.daemon.ask("GET", "/v1", undefined, bearer);
  assert.equal(asThat.status, 200);
  await reload(page);
  await page.getByRole("row").filter({ hasText: "night shift" }).first().waitFor();
  assert.ok(!(await page.locator("main").innerText()).includes(secret));
  await person.leave();
});

test("settings: the audit names who asked for what", async () => {
  const person = await stage.person();
  const page = await person.signedIn("#/settings/audit");
  const row = page.getByRole("row").filter({ hasText: "/v1/networks/train" }).first();
  await row.waitFor();
  assert.match(await row.innerText(), /token:/);
  await person.leave();
});
