// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { piecesOf, severityOf } from "../../../service/web/src/model/events";
import {
  emptyLog, EVENTS_MAX, withNewer, withOlder,
} from "../../../service/web/src/model/log";
import { filterOf, filterQueryOf, joined, matching } from "../../../service/web/src/model/timeline";
import type { Event, EventKind } from "../../../service/web/src/transport/types";
import { event, operation } from "./bodies";

const at = (second: number) => new Date(Date.UTC(2026, 0, 31, 12, 0, second)).toISOString();
const one = (number: number, part: Partial<Event>) =>
  event({ number, at: at(number), operation: null, because_of: null, ...part });

test("an operation's events are its entry, newest entry first", () => {
  const attach = operation({ id: "op", created_at: at(2), state: "succeeded" });
  const idle = operation({ id: "idle", created_at: at(5), state: "failed" });
  const early = operation({ id: "early", created_at: at(0) });
  const { entries } = joined([
    one(6, { kind: "link_down" }), one(4, { kind: "attached", operation: "op" }),
    one(3, { kind: "attaching", operation: "op" }), one(1, { kind: "vm_started" }),
  ], new Map([attach, idle, early].map(each => [each.id, each])), Date.parse(at(1)));
  assert.deepEqual(entries.map(({ key, events }) => [key, events.map(({ number }) => number)]), [
    ["event 6", [6]], ["operation idle", []], ["operation op", [3, 4]], ["event 1", [1]],
  ]);
  assert.deepEqual(entries.map(entry => entry.severity),
    ["attention", "trouble", "normal", "normal"]);
  assert.equal(entries[2]?.known, attach);
});

test("an operation that is not read is an entry by its events", () => {
  const { entries } = joined([one(1, { operation: "old" })], new Map(), 0);
  assert.deepEqual(entries.map(({ operation: id, known }) => [id, known]), [["old", null]]);
});

test("an event is joined with its cause and with what came of it", () => {
  const { byNumber, causedBy } = joined([
    one(3, { kind: "settled", because_of: 1 }), one(2, { kind: "repaired", because_of: 1 }),
    one(1, { kind: "drift" }),
  ], new Map(), 0);
  assert.equal(byNumber.get(1)?.kind, "drift");
  assert.deepEqual(causedBy.get(1)?.map(({ kind }) => kind), ["repaired", "settled"]);
});

test("a filter is by severity, topic and words, and survives a reload", () => {
  const { entries } = joined([
    one(3, { kind: "drift", vm: "vm1", detail: "VF 2 has VLAN 100" }),
    one(2, { kind: "lost", vm: "vm2" }), one(1, { kind: "vm_started", vm: "vm1" }),
  ], new Map(), 0);
  const numbers = (query: Record<string, string>) =>
    matching(entries, filterOf(new Map(Object.entries(query)))).map(each => each.events[0]?.number);
  assert.deepEqual(numbers({}), [3, 2, 1]);
  assert.deepEqual(numbers({ severity: "trouble" }), [2]);
  assert.deepEqual(numbers({ severity: "attention" }), [3, 2]);
  assert.deepEqual(numbers({ topic: "vms" }), [1]);
  assert.deepEqual(numbers({ words: "VM1 vlan" }), [3]);
  assert.deepEqual(numbers({ words: "vm started" }), [1]);
  const filter = { severity: "attention", topic: "drift", words: "vm1 <b>" } as const;
  assert.deepEqual(filterOf(new Map(Object.entries(filterQueryOf(filter)))), filter);
  assert.deepEqual(filterOf(new Map([["severity", "none"]])),
    { severity: "", topic: "", words: "" });
});

test("a failed verdict is trouble, and a kind of a later version is shown", () => {
  assert.equal(severityOf(one(1, { kind: "verified", verdict: "fail" })), "trouble");
  assert.equal(severityOf(one(1, { kind: "verified", verdict: "pass" })), "normal");
  assert.equal(severityOf(one(1, { kind: "of_a_later_version" as EventKind })), "normal");
});

test("files and lines of a drift's owners are set apart", () => {
  const places = (detail: string) =>
    piecesOf(detail).filter(({ place }) => place).map(({ text }) => text);
  const detail = "VF 0 has MAC 02:00:00:00:00:01; /etc/rc.local:12 sets VFs of it; "
    + "NetworkManager's connection x (/etc/NetworkManager/system-connections/x.nmconnection:7) "
    + "creates 4 VFs";
  assert.deepEqual(places(detail),
    ["/etc/rc.local:12", "/etc/NetworkManager/system-connections/x.nmconnection:7"]);
  assert.equal(piecesOf(detail).map(({ text }) => text).join(""), detail);
  assert.deepEqual(places("see: systemctl status vfmgrd; 9/10 of them, and/or 0000:01:00.0"), []);
});

const numbers = (events: readonly Event[]) => events.map(({ number }) => number);
const several = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, place) => one(from + place, {}));

test("a log has each event once and no hole", () => {
  const read = withOlder(emptyLog, several(5, 8), false);
  const live = withNewer(read, several(7, 10));
  assert.deepEqual(numbers(live.events), [10, 9, 8, 7, 6, 5]);
  const older = withOlder(live, several(1, 6), true);
  assert.deepEqual(numbers(older.events), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  assert.equal(older.complete, true);
  assert.equal(withNewer(older, several(9, 10)), older);
});

test("a log is bounded, and then no longer says that it is complete", () => {
  const full = withOlder(emptyLog, several(1, EVENTS_MAX), true);
  assert.equal(full.complete, true);
  const over = withNewer(full, several(EVENTS_MAX + 1, EVENTS_MAX + 3));
  assert.equal(over.events.length, EVENTS_MAX);
  assert.deepEqual([over.events[0]?.number, over.events.at(-1)?.number, over.complete],
    [EVENTS_MAX + 3, 4, false]);
  assert.equal(withOlder(over, several(1, 3), true).complete, false);
});
