// SPDX-License-Identifier: Apache-2.0
// Who gets in, what of it stays in the browser, and how a session ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isLive, reload, signIn } from "./chromium";
import { Daemon } from "./daemon";
import { small } from "./scenes";
import { staged } from "./stage";

const stage = staged(() => Daemon.start(small, { alice: "admin", walter: "viewer" }));

test("sign-in: a wrong token is refused with a remedy, a right one leads to the page asked for",
  async () => {
    const person = await stage.person();
    const page = await person.open("#/vms");
    await page.getByLabel("Token").fill("nonsense");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    const problem = page.getByRole("alert");
    await problem.waitFor();
    assert.match(await problem.innerText(), /What to do:/);
    await signIn(page, stage.daemon.token);
    await page.getByRole("heading", { name: "VMs" }).waitFor();
    await isLive(page);
    await person.leave();
  });

test("sign-in: nothing of the session is in a cookie or outlives the browser", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  assert.deepEqual(await person.context.cookies(), []);
  const stored = await page.evaluate(() => ({
    local: JSON.stringify(localStorage), session: JSON.stringify(sessionStorage),
  }));
  const { token } = JSON.parse(JSON.parse(stored.session)["vfmgr-session"]);
  assert.ok(token.length > 20);
  assert.ok(!stored.session.includes(stage.daemon.token), "the token itself is kept");
  assert.ok(!stored.local.includes(token));
  await person.leave();
});

test("sign-in: a reload and a new tab keep the session; signing out ends it in both", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await reload(page);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  const other = await person.open("#/events");
  await other.getByRole("navigation", { name: "Pages" }).waitFor();
  const ended = page.waitForResponse(answer => answer.url().endsWith("/v1/sessions/current"));
  await page.getByRole("button", { name: "Sign out" }).click();
  assert.equal((await ended).status(), 204);
  await page.getByLabel("Token").waitFor();
  await other.getByLabel("Token").waitFor();
  await person.leave();
});

test("sign-in: a session that the daemon no longer knows is over, in words", async () => {
  const person = await stage.person();
  const page = await person.signedIn();
  await stage.daemon.stop();
  await page.getByText("not live since").waitFor();
  await stage.daemon.startAgain();
  await page.getByText("The session has ended. Sign in again.").waitFor();
  await signIn(page, stage.daemon.token);
  await isLive(page);
  await person.leave();
});

test("sign-in: with a client certificate no token is needed, and the name is the certificate's",
  async () => {
    const { certificate, key } = await stage.daemon.certificateOf("walter");
    const person = await stage.person({
      clientCertificates: [{ origin: stage.daemon.url, certPath: certificate, keyPath: key }],
    });
    const page = await person.open();
    await page.getByRole("button", { name: "Sign in without a token" }).click();
    await page.getByText(/walter.*, viewer/).waitFor();
    await person.leave();
  });
