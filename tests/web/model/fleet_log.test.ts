// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  emptyFleetLog, FLEET_EVENTS_MAX, matchingEvents, withEvents,
} from "../../../service/web/src/model/fleet_log";
import type { FleetEvent } from "../../../service/web/src/transport/fleet_types";
import { event } from "./bodies";

const one = (host: string, number: number, part: Partial<FleetEvent> = {}): FleetEvent =>
  ({ host, ...event({ number, at: new Date(number * 1000).toISOString(), ...part }) });
const shown = (events: readonly FleetEvent[]) => events.map(({ host, number }) => host + number);

test("events that come again are one, those of another host or another store are not", () => {
  const log = withEvents(emptyFleetLog, [one("a", 7), one("b", 7), one("a", 8)]);
  assert.deepEqual(shown(log.events), ["a8", "b7", "a7"]);
  assert.equal(withEvents(log, [one("a", 8), one("b", 7)]), log);
  const after = withEvents(log, [one("a", 8), one("b", 8), one("b", 8)]);
  assert.deepEqual(shown(after.events), ["b8", "a8", "b7", "a7"]);
  const restored = withEvents(after, [one("a", 7, { at: "2026-01-31T12:00:00.000Z" })]);
  assert.deepEqual(shown(restored.events), ["a7", "b8", "a8", "b7", "a7"]);
});

test("the log is bounded, and forgets the keys of what it drops", () => {
  const many = Array.from({ length: FLEET_EVENTS_MAX + 10 }, (_, at) => one("a", at + 1));
  const log = withEvents(emptyFleetLog, many);
  assert.deepEqual([log.events.length, log.keys.size], [FLEET_EVENTS_MAX, FLEET_EVENTS_MAX]);
  assert.equal(log.events[0]?.number, FLEET_EVENTS_MAX + 10);
});

test("events are found by host, severity, topic and words", () => {
  const events = [one("h1", 1, { kind: "drift", vm: "vm1", detail: "VF 2 has VLAN 100" }),
    one("h2", 2, { kind: "lost", vm: "vm2", detail: "" }), one("h1", 3, { kind: "vm_started" })];
  const found = (part: object) => shown(matchingEvents(events,
    { severity: "", topic: "", words: "", host: "", ...part }));
  assert.deepEqual(found({}), ["h11", "h22", "h13"]);
  assert.deepEqual(found({ host: "h1" }), ["h11", "h13"]);
  assert.deepEqual(found({ severity: "trouble" }), ["h22"]);
  assert.deepEqual(found({ topic: "vms" }), ["h13"]);
  assert.deepEqual(found({ words: "vlan H1" }), ["h11"]);
  assert.deepEqual(found({ words: "vm started" }), ["h13"]);
});
