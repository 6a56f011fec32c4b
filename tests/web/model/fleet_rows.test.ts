// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fleetVmRows, heldRowOf, pfRowOf, proofsOf, railsOf, vmRowOf,
} from "../../../service/web/src/model/fleet_rows";
import type { Attachment, Pf } from "../../../service/web/src/transport/types";
import { attachment, pf, vf, vm } from "./bodies";

function pfOf(host: string, pci: string, part: Partial<Pf["info"]>, rail: string | null,
              networks: string[] = []) {
  const example = pf({});
  return pfRowOf({
    ...example, host, networks, vfs: [vf({}), vf({ state: "free" })], drift: [],
    info: { ...example.info, pci, ...part },
    spec: rail === null ? null : { ...example.spec!, labels: { rail } },
  } as Pf & { host: string });
}

const up = { up: true, carrier: true };
const pfs = [
  pfOf("h2", "0000:01:00.0", up, "1", ["lab", "train"]),
  pfOf("h10", "0000:01:00.0", { up: true, carrier: false }, "1", ["lab"]),
  pfOf("h2", "0000:02:00.0", { up: false, carrier: false }, "10"),
  pfOf("h2", "0000:03:00.0", up, null),
];

test("rails are the PFs with the same label, across hosts", () => {
  const { rails, hosts } = railsOf(pfs, "label");
  assert.deepEqual(rails.map(one => [one.name, one.hosts, one.up, one.notUp, one.free]),
    [["1", 2, 1, 1, 2], ["10", 1, 0, 1, 1], [null, 1, 1, 0, 1]]);
  assert.deepEqual(hosts.map(({ host, on }) => [host, on.map(those => those.length)]),
    [["h2", [1, 1, 1]], ["h10", [1, 0, 0]]]);
  assert.deepEqual(pfs.map(one => one.link), ["up", "no carrier", "down", "up"]);
});

test("or of the same network; a PF of two is on both", () => {
  const { rails } = railsOf(pfs, "network");
  assert.deepEqual(rails.map(one => [one.name, one.hosts]), [["lab", 2], ["train", 1], [null, 1]]);
});

test("what a PF reports of trouble stays with its row", () => {
  const row = (part: object) => pfRowOf({ ...pf({}), vfs: [], host: "h1", ...part } as never);
  assert.equal(row({ drift: [] }).trouble, null);
  assert.equal(row({ drift: ["VF 1 has VLAN 100"] }).trouble, "VF 1 has VLAN 100");
  assert.equal(row({ stale: true, stale_reason: "no answer" }).trouble, "no answer");
  assert.equal(row({ stuck: "it hangs", stale: true, stale_reason: "x" }).trouble, "it hangs");
});

const verified = (host: string, id: string, verdict: string, part: Partial<Attachment> = {}) =>
  heldRowOf({ host, ...attachment({ id, ...part }), verification:
    { ...attachment({}).verification!, verdict } } as Attachment & { host: string });

test("only a pass proves, and only a fail has failed", () => {
  const held = [verified("h1", "a", "pass"), verified("h1", "b", "fail"),
    verified("h1", "c", "pending"), verified("h1", "d", "pass", { state: "detaching" })];
  assert.deepEqual(proofsOf("h1", held), { host: "h1", proved: 1, failed: 1 });
});

test("VMs of one name or one UUID on two hosts are two, and other holders are rows", () => {
  const uuid = vm({}).uuid;
  const rows = fleetVmRows(
    [vmRowOf({ host: "h1", ...vm({}) }), vmRowOf({ host: "h2", ...vm({}) })],
    [verified("h2", "a", "pass", { vm_uuid: uuid, address: "10.0.0.7" }),
      verified("h1", "b", "fail", { vm_uuid: "", vm: "container" })]);
  assert.deepEqual(rows.map(one => [one.host, one.name, one.held, one.proved, one.failed]), [
    ["h1", "vm1", 0, 0, 0], ["h2", "vm1", 1, 1, 0], ["h1", "container", 1, 0, 1],
  ]);
  assert.equal(rows[1]!.addresses, "10.0.0.7");
  assert.equal(rows[2]!.state, "external");
});
