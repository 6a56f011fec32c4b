// SPDX-License-Identifier: Apache-2.0
// What others may try: a page of another site that writes with the browser's client certificate or
// frames the console, and a VM whose name, report and log lines are markup.
import assert from "node:assert/strict";
import { createServer } from "node:https";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { Person } from "./chromium";
import type { Json } from "./daemon";
import { attached, passed, PFS, small, vm, withVfs } from "./scenes";
import { staged } from "./stage";
import type { Stage } from "./stage";
import type { Operation } from "../../../service/web/src/transport/types";

const MARKUP = "<img src=x onerror=\"document.title='taken'\"><b id=taken>bold</b>";
const HOSTILE = "<img src=x onerror=document.title='taken'>";
const ANOTHER = "https://localhost"; // another origin than 127.0.0.1

// All that the VM can say is markup.
function hostileHost(): Json {
  const verdict = { ...passed, verdict: "fail", detail: `rc_ping: ${MARKUP}`, remedy: MARKUP,
    tests: [{ name: "rc_ping", verdict: "fail", by: "guest", detail: MARKUP, remedy: MARKUP }],
    warnings: [{ test: MARKUP, detail: MARKUP, remedy: MARKUP }] };
  return { ...small, vms: [vm(1, { name: HOSTILE })], verdict };
}

let person: Person;
let elsewhere: string;
let server: ReturnType<typeof createServer>;
const start = () => withVfs(hostileHost(), { alice: "admin" });
const stage: Stage = staged(start, async () => {
  const { daemon } = stage;
  await attached(daemon, HOSTILE, { verify: "none" });
  const { certificate, key } = await daemon.certificateOf("alice");
  const own = { cert: readFileSync(certificate), key: readFileSync(key) };
  server = createServer(own, (_, answer) => {
    answer.writeHead(200, { "Content-Type": "text/html" });
    answer.end("<!doctype html><title>elsewhere</title><p>A page of another site.");
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  elsewhere = `${ANOTHER}:${(server.address() as AddressInfo).port}`;
  person = await stage.person({
    clientCertificates: [{ origin: daemon.url, certPath: certificate, keyPath: key }],
  });
});
after(() => new Promise(resolve => server.close(resolve)));

async function numVfs(): Promise<number> {
  return ((await stage.daemon.ask("GET", `/v1/pfs/${PFS[1]}`)).body!["vfs"] as unknown[]).length;
}

test("hostile page: the certificate alone lets the console's own page write", async () => {
  const page = await person.open();
  const operation = await page.evaluate(async at => (await fetch(at, {
    method: "PUT", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ num_vfs: 5 }),
  })).json(), `/v1/pfs/${PFS[1]}/spec`) as Operation;
  assert.equal((await stage.daemon.ended(operation)).state, "succeeded");
  assert.equal(await numVfs(), 5, "otherwise the tests below show nothing");
  await page.close();
});

const attempts: readonly (readonly [string, RequestInit])[] = [
  ["JSON, as the console sends it", { method: "PUT", mode: "cors",
    headers: { "Content-Type": "application/json" } }],
  ["a simple request", { method: "POST", mode: "no-cors" }],
  ["JSON that calls itself text", { method: "POST", mode: "no-cors",
    headers: { "Content-Type": "text/plain" } }],
  ["with the credentials asked for", { method: "POST", mode: "no-cors", credentials: "include",
    headers: { "Content-Type": "application/x-www-form-urlencoded" } }],
];
for (const [what, init] of attempts) {
  test(`hostile page: another site's fetch changes nothing: ${what}`, async () => {
    const page = await person.context.newPage();
    await page.goto(elsewhere);
    const told = await page.evaluate(async ([at, options]) => {
      try {
        const answer = await fetch(at, { credentials: "include", ...options,
          body: JSON.stringify({ num_vfs: 7 }) });
        return `${answer.type} ${answer.status}`;
      } catch (error) {
        return String(error);
      }
    }, [`${stage.daemon.url}/v1/pfs/${PFS[1]}/spec`, init] as const);
    assert.match(told, /Failed to fetch|opaque 0/);
    assert.equal(await numVfs(), 5);
    await page.close();
  });
}

test("hostile page: another site's form changes nothing", async () => {
  const page = await person.context.newPage();
  await page.goto(elsewhere);
  const answered = page.waitForResponse(answer => answer.url().includes("/v1/tokens"));
  await page.evaluate(at => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", enctype: "text/plain", action: at });
    const field = document.createElement("input");
    Object.assign(field, { name: "{\"role\": \"admin\", \"x\": \"", value: "\"}" });
    form.append(field);
    document.body.append(form);
    form.submit();
  }, `${stage.daemon.url}/v1/tokens`);
  assert.equal((await answered).status(), 403);
  await page.close();
});

test("hostile page: it reads nothing and frames nothing", async () => {
  const page = await person.context.newPage();
  await page.goto(elsewhere);
  const read = await page.evaluate(async at => fetch(at, { credentials: "include" })
    .then(answer => answer.text(), error => String(error)), `${stage.daemon.url}/v1/pfs`);
  assert.match(read, /Failed to fetch/);
  const refused = page.waitForEvent("console",
    message => /frame-ancestors|refused to connect|Refused to frame/i.test(message.text()));
  await page.evaluate(at => {
    const frame = document.createElement("iframe");
    frame.src = at;
    document.body.append(frame);
  }, stage.daemon.url);
  await refused;
  await page.close();
});

test("hostile page: a name that is not the daemon's is refused: no site rebinds its own",
  async () => {
    const answer = await stage.daemon.ask("GET", "/v1", undefined, { Host: "evil.example" });
    assert.equal(answer.status, 403);
  });

test("hostile VM: its name, report and log lines are text on every page", async () => {
  const { body } = await stage.daemon.ask("GET", "/v1/attachments");
  const attachment = (body!["items"] as Json[])[0]!;
  await stage.daemon.do("POST", `/v1/attachments/${attachment["id"]}/verifications`, {})
    .catch(() => undefined); // it fails, as the VM wants
  const own = await stage.person();
  const page = await own.signedIn();
  const vf = attachment["vf"] as { pf: string; index: number };
  const places = ["#/", "#/vms", `#/vms/${encodeURIComponent(HOSTILE)}`, "#/verification",
    `#/verification/${vf.pf}/${vf.index}`, `#/verification/attachment/${attachment["id"]}`,
    "#/events", "#/settings/audit"];
  for (const place of places) {
    await page.goto(`/${place}`);
    if (place !== "#/settings/audit")
      await page.getByText("<img src=x", { exact: false }).first().waitFor({ state: "attached" });
    assert.equal(await page.locator("#taken, main img").count(), 0, place);
    assert.ok(!(await page.title()).startsWith("taken"), place);
  }
  await own.leave();
});

test("content policy: strings as markup, and a script's address, are refused", async () => {
  const own = await stage.person();
  const page = await own.signedIn();
  const refused = await page.evaluate(() => {
    const thrown: string[] = [];
    for (const attempt of [() => { document.body.innerHTML = "<b>x</b>"; },
      () => { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); },
      () => { document.createElement("script").src = "data:text/javascript,1"; }]) {
      try {
        attempt();
      } catch (error) {
        thrown.push((error as Error).name);
      }
    }
    return thrown;
  });
  assert.deepEqual(refused, ["TypeError", "TypeError", "TypeError"]);
  await page.evaluate(() => true); // the reports were sent before the answer to this
  assert.equal(own.trouble.length, refused.length, "the suite counts violations");
  own.trouble.length = 0;
  await own.leave();
});

test("hostile page: nothing that it did disturbed a page of the console", async () => {
  await person.leave();
});
