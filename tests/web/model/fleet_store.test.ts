// SPDX-License-Identifier: Apache-2.0
// What the console of a fleet asks for, and when. Timers end when a test says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetStore } from "../../../service/web/src/live/fleet";
import { Refused } from "../../../service/web/src/transport/api";
import type { FleetApi } from "../../../service/web/src/transport/fleet";
import { fleetApiOver, transportTo } from "../../../service/web/src/transport/fleet";
import type { Stale } from "../../../service/web/src/transport/fleet_types";
import type { Answer, Transport } from "../../../service/web/src/transport/transport";
import { attachment, event, fleetHost } from "./bodies";

let due: (() => void)[] = [];
globalThis.setTimeout = ((task: () => void) => { due.push(task); }) as typeof setTimeout;
globalThis.requestAnimationFrame = callback => {
  due.push(() => callback(performance.now()));
  return 1;
};

// Until nothing is left to do but what waits for time. What a former test left waits, too.
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; ++turn) await Promise.resolve();
}
async function timePasses(): Promise<void> {
  const ready = due;
  due = [];
  for (const task of ready) task();
  await settled();
}

class Hosts {
  asked: string[] = [];
  stale: Stale[] = [];
  fails = false;
  readonly names = ["h1", "h2"];
  readonly api = {
    host: (name: string) => {
      this.asked.push(`host ${name}`);
      if (!this.names.includes(name))
        return Promise.reject(new Refused({ code: "not_found" } as never));
      return Promise.resolve(fleetHost(name));
    },
    each: (list: string, query: { host?: string }, take: (items: unknown[]) => void) => {
      this.asked.push(`${list} ${query.host ?? "all"}`);
      if (this.fails) return Promise.reject(new Error("away"));
      const names = this.names.filter(name => query.host === undefined || name === query.host);
      for (const host of names)
        take([list === "/v1/hosts" ? fleetHost(host) : { host, ...attachment({}) }]);
      return Promise.resolve(this.stale.filter(({ host }) => names.includes(host)));
    },
  } as unknown as FleetApi;

  event(store: FleetStore, host: string, number: number, part: object): void {
    const data = JSON.stringify({ host, ...event({ number, ...part }) });
    store.onFrame({ event: "", id: "opaque", data });
  }
}

test("a list is read while somebody looks at it, then of the hosts that events are about",
  async () => {
    const hosts = new Hosts();
    const store = new FleetStore(hosts.api);
    store.onFrame({ event: "current", id: "AA", data: "{}" });
    await settled();
    assert.deepEqual(hosts.asked, []);
    const end = store.attachments.follow();
    await settled();
    assert.deepEqual(hosts.asked, ["/v1/attachments all"]);
    assert.deepEqual(store.attachments.rows.keys(), ["h1 3f9c2b1d", "h2 3f9c2b1d"]);
    assert.equal(store.proofs.get("h1")?.proved, 1);
    hosts.event(store, "h2", 5, { attachment: "3f9c2b1d", pf: null });
    hosts.event(store, "h2", 5, { attachment: "3f9c2b1d", pf: null });
    await settled();
    assert.deepEqual(hosts.asked.slice(1), ["/v1/attachments h2"]);
    await timePasses();
    end();
    hosts.event(store, "h1", 6, { attachment: "3f9c2b1d", pf: null });
    await settled();
    assert.equal(hosts.asked.length, 2, "nobody looks");
  });

test("a host that has left the fleet is gone, with what it held", async () => {
  const hosts = new Hosts();
  const store = new FleetStore(hosts.api);
  store.hosts.follow();
  store.attachments.follow();
  await settled();
  hosts.names.pop();
  store.readAgain("h2");
  await settled();
  assert.deepEqual(store.hosts.rows.keys(), ["h1"]);
  assert.deepEqual(store.attachments.rows.keys(), ["h1 3f9c2b1d"]);
});

test("that a host's part may be old is known until the host was read anew", async () => {
  const hosts = new Hosts();
  hosts.stale = [{ host: "h2", since: "2026-01-31T11:00:00.000Z", why: "no route" }];
  const store = new FleetStore(hosts.api);
  store.attachments.follow();
  await settled();
  assert.equal(store.attachments.status.stale.get("h2")?.why, "no route");
  hosts.stale = [];
  store.attachments.mark("h2");
  await settled();
  assert.equal(store.attachments.status.stale.size, 0);
});

test("a failure is said and not repeated, and the next question is asked", async () => {
  const hosts = new Hosts();
  hosts.fails = true;
  const store = new FleetStore(hosts.api);
  store.attachments.follow();
  await settled();
  assert.match(store.attachments.status.problem?.detail ?? "", /away/);
  assert.equal(hosts.asked.length, 1);
  hosts.fails = false;
  store.attachments.everything();
  await settled();
  assert.equal(store.attachments.status.problem, null);
  assert.equal(store.attachments.rows.keys().length, 2);
});

test("an event that comes again after a resume asks for nothing", async () => {
  const hosts = new Hosts();
  const store = new FleetStore(hosts.api);
  store.hosts.follow();
  await settled();
  hosts.event(store, "h1", 9, {});
  await settled();
  await timePasses();
  await timePasses();
  const asked = hosts.asked.length;
  assert.equal(store.log.events.length, 1);
  hosts.event(store, "h1", 9, {});
  await settled();
  await timePasses();
  assert.equal(hosts.asked.length, asked);
  assert.equal(store.log.events.length, 1);
});

// Notes what it is asked, and answers in two pages.
class Noting implements Transport {
  asked: string[] = [];
  request(method: string, path: string, body?: unknown): Promise<Answer> {
    this.asked.push([method, path, ...body === undefined ? [] : [JSON.stringify(body)]].join(" "));
    const isFirst = !path.includes("cursor");
    return Promise.resolve({ status: 200, headers: new Map(), body: {
      items: [{ name: isFirst ? "a" : "b" }], next: isFirst ? "2" : null,
      stale: isFirst ? [{ host: "a", since: "" }] : [],
    } });
  }
  stream(path: string): Promise<void> {
    this.asked.push(`stream ${path}`);
    return Promise.resolve();
  }
}

test("pages are taken one by one, and any of them may say what is old", async () => {
  const noting = new Noting();
  const taken: unknown[] = [];
  const stale = await fleetApiOver(noting, () => undefined)
    .each("/v1/attachments", { host: "h 1" }, items => { taken.push(...items); });
  assert.deepEqual(noting.asked,
    ["GET /v1/attachments?host=h%201", "GET /v1/attachments?host=h%201&cursor=2"]);
  assert.deepEqual([taken.length, stale.length], [2, 1]);
});

test("an admin's acts are the fleet's requests", async () => {
  const noting = new Noting();
  const api = fleetApiOver(noting, () => undefined);
  await api.patch("h1", { cordoned: true, reason: "fan" });
  await api.fence("h1", "the PDU");
  await api.unfence("h1");
  await api.confirm("h1");
  await api.expel("a/b");
  assert.deepEqual(noting.asked, [
    'PATCH /v1/hosts/h1 {"cordoned":true,"reason":"fan"}',
    'POST /v1/hosts/h1/fenced {"evidence":"the PDU"}', "DELETE /v1/hosts/h1/fenced",
    "POST /v1/hosts/h1/confirm", "DELETE /v1/hosts/a%2Fb",
  ]);
});

test("requests and streams of a host go to it through the fleet", async () => {
  const noting = new Noting();
  const host = transportTo("h1", noting);
  await host.request("PUT", "/v1/networks/train", {});
  await host.request("GET", "/v1/operations/7?wait=5");
  await host.stream("/v1/events", {} as never);
  assert.deepEqual(noting.asked, ["PUT /v1/hosts/h1/networks/train {}",
    "GET /v1/hosts/h1/operations/7?wait=5", "stream /v1/hosts/h1/events"]);
});
