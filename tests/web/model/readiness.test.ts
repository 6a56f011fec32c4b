// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import example from "../../../api/examples/check_report.json";
import {
  chosenGroups, countResults, groupsOf, hindranceOf, lookOf, queryOfLook, RESULTS,
} from "../../../service/web/src/model/readiness";
import type { Finding, Remedy } from "../../../service/web/src/transport/types";

const finding = (part: Partial<Finding>): Finding =>
  ({ ...(example.findings as Finding[])[0]!, remedy: null, evidence: [], ...part });
const remedy = (part: Partial<Remedy>): Remedy =>
  ({ commands: [], blast_radius: "none", note: "", drain: [], ...part });
const everything = new Set(RESULTS);

test("the worst come first, and equals stay in the report's order", () => {
  const groups = groupsOf([
    finding({ rule: "a", result: "ok" }), finding({ rule: "b", result: "warning" }),
    finding({ rule: "c", result: "failed" }), finding({ rule: "d", result: "not_applicable" }),
    finding({ rule: "e", result: "unknown" }), finding({ rule: "f", result: "failed" }),
  ]);
  assert.deepEqual(groups.map(one => one.rule), ["c", "f", "b", "e", "a", "d"]);
});

test("what says the same of devices of one kind is one group, and the machine's is alone", () => {
  const port = (subject: string, detail: string, part: Partial<Finding> = {}) =>
    finding({ rule: "port.mtu", result: "warning", subject, detail, ...part });
  const groups = groupsOf([
    port("0000:3b:00.0", "0000:3b:00.0 has MTU 1500"),
    port("0000:af:00.1", "0000:af:00.1 has MTU 900"),
    port("mlx5_2", "mlx5_2 is down"), port("0000:5e:00.0", "0000:5e:00.0 has MTU 1500",
      { caused_by: "log.pcie 0000:5e:00.0" }),
    port("", "no port"), port("", "no port"),
  ]);
  assert.deepEqual(groups.map(one => one.subjects),
    [["0000:3b:00.0", "0000:af:00.1"], ["mlx5_2"], ["0000:5e:00.0"], [], []]);
  assert.deepEqual(groups[0]?.names, ["port.mtu 0000:3b:00.0", "port.mtu 0000:af:00.1"]);
  assert.equal(groups[3]?.names[0], "port.mtu");
});

test("a group's remedy has each command once, one reboot at the end, and the widest effect", () => {
  const one = (subject: string, part: Partial<Remedy>) =>
    finding({ subject, detail: "wrong", remedy: remedy(part) });
  const [group] = groupsOf([
    one("ens1", { commands: ["set ens1", "reboot"], drain: ["db1"], blast_radius: "netdev" }),
    one("ens2", {
      commands: ["set ens2", "reboot"], drain: ["db1", "db2"], blast_radius: "reboot",
    }),
  ]);
  assert.deepEqual(group?.remedy,
    remedy({ commands: ["set ens1", "set ens2", "reboot"], drain: ["db1", "db2"],
      blast_radius: "reboot" }));
  assert.equal(groupsOf([finding({})])[0]?.remedy, null);
});

test("results are counted one by one, also within a group", () => {
  const of = (result: Finding["result"], subject: string) => finding({ result, subject });
  assert.deepEqual(countResults([of("failed", "ens1"), of("failed", "ens2"), of("ok", "")]),
    { failed: 2, warning: 0, unknown: 0, ok: 1, not_applicable: 0 });
});

test("every word of the filter is in a group, in a command or in what was read", () => {
  const groups = groupsOf([
    finding({ rule: "iommu.enabled", remedy: remedy({ commands: ["update-grub"] }) }),
    finding({
      rule: "stack.driver", detail: "no driver",
      evidence: [{ source: "/proc/modules", text: "mlx5_core" }],
    }),
  ]);
  const rules = (words: string, results = everything) =>
    chosenGroups(groups, results, words).map(one => one.rule);
  assert.deepEqual(rules(""), ["iommu.enabled", "stack.driver"]);
  assert.deepEqual(rules("IOMMU grub"), ["iommu.enabled"]);
  assert.deepEqual(rules("modules mlx5"), ["stack.driver"]);
  assert.deepEqual(rules("iommu mlx5"), []);
  assert.deepEqual(rules("", new Set(["ok" as const])), []);
});

test("what a person looks at survives a reload, and an unknown result is dropped", () => {
  const look = { results: new Set(["ok" as const]), words: "ens1 mtu" };
  assert.deepEqual(lookOf(new Map(Object.entries(queryOfLook(look)))), look);
  assert.deepEqual(queryOfLook(lookOf(new Map())), {});
  assert.deepEqual([...lookOf(new Map([["show", "ok,<b>"]])).results], ["ok"]);
  assert.deepEqual([...lookOf(new Map([["show", ""]])).results], []);
});

test("what is in vfmgrd's way is told apart, and a new name stays as it is", () => {
  const words = ["store", "libvirt", "not observed yet", "0000:3b:00.0", "clock"];
  assert.deepEqual(words.map(hindranceOf),
    [{ is: "store" }, { is: "libvirt" }, { is: "unobserved" }, { is: "pf", pci: "0000:3b:00.0" },
      { is: "other", name: "clock" }]);
});
